// RUN: burst-opt %s -verify-diagnostics -split-input-file

// Names and the tables they take.

// A score as a mask, and the other way round.
func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>) {
  // expected-error @below {{expects the name of a mask, got: #burst.alibi}}
  %o, %lse = burst.attention %q, %k, %k mask alibi
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>) {
  // expected-error @below {{expects the name of a score, got: #burst.causal}}
  %o, %lse = burst.attention %q, %k, %k score causal
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>) {
  // expected-error @below {{expects the name of a score, got: #burst.full}}
  %o, %lse = burst.attention %q, %k, %k score [softcap<1.0>, full]
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// Attributes that are no names.
func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>) {
  // expected-error @below {{expects the name of a mask, got: #burst.sequence<@cp, zigzag>}}
  %o, %lse = burst.attention %q, %k, %k mask sequence<@cp, zigzag>
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>) {
  // expected-error @below {{expects the name of a mask, got: #burst.strategy<ring_kv>}}
  %o, %lse = burst.attention %q, %k, %k mask strategy<ring_kv>
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// Tables for a name that takes none.
func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xi32>) {
  // expected-error @below {{mask #burst.causal takes 0 tables, got: 1}}
  %o, %lse = burst.attention %q, %k, %k mask causal(%t : tensor<8xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<?xi32>) {
  // expected-error @below {{mask #burst.causal takes 0 tables, got: 1}}
  %o, %lse = burst.attention %q, %k, %k mask [documents, causal](%t, %t : tensor<?xi32>, tensor<?xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<4xf32>) {
  // expected-error @below {{score #burst.softcap<1.000000e+00> takes 0 tables, got: 1}}
  %o, %lse = burst.attention %q, %k, %k score softcap<1.0>(%t : tensor<4xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// No tables for a name that takes some, and too many.
func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>) {
  // expected-error @below {{mask #burst.documents takes 1 or 2 tables, got: 0}}
  %o, %lse = burst.attention %q, %k, %k mask documents
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xi32>) {
  // expected-error @below {{mask #burst.documents takes 1 or 2 tables, got: 3}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t, %t, %t : tensor<8xi32>, tensor<8xi32>, tensor<8xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<4xf32>) {
  // expected-error @below {{score #burst.bias takes 1 tables, got: 0}}
  %o, %lse = burst.attention %q, %k, %k score [alibi, bias](%t : tensor<4xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<4xf32>) {
  // expected-error @below {{score #burst.alibi takes 1 tables, got: 2}}
  %o, %lse = burst.attention %q, %k, %k score alibi(%t, %t : tensor<4xf32>, tensor<4xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// Two documents need two tables.
func.func @attention_c4(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<?xi32>) {
  // expected-error @below {{mask #burst.documents takes 1 or 2 tables, got: 0}}
  %o, %lse = burst.attention %q, %k, %k mask [documents, documents](%t : tensor<?xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// Tables of another size, rank or type.
func.func @documents(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xi32>) {
  // expected-error @below {{'documents' takes a table of integers of shape 6 or 2x6, got: 'tensor<8xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<8xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @documents(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<6xi32>) {
  // expected-error @below {{'documents' takes a table of integers of shape 8 or 2x8, got: 'tensor<6xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t, %t : tensor<6xi32>, tensor<6xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @documents(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<2x8xi32>, %u: tensor<3x6xi32>) {
  // expected-error @below {{'documents' takes a table of integers of shape 6 or 2x6, got: 'tensor<3x6xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t, %u : tensor<2x8xi32>, tensor<3x6xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @documents(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<?x?x?xi32>) {
  // expected-error @below {{'documents' takes a table of integers of shape 8 or 2x8, got: 'tensor<?x?x?xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<?x?x?xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @documents(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<?xf32>) {
  // expected-error @below {{'documents' takes a table of integers of shape 8 or 2x8, got: 'tensor<?xf32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<?xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @documents(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: index) {
  // expected-error @below {{'documents' takes a table of integers of shape 8 or 2x8, got: 'index'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : index)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @documents(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xi32>, %u: tensor<6xi64>) {
  // expected-error @below {{'documents' takes ids of one type, got: 'tensor<8xi32>', 'tensor<6xi64>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t, %u : tensor<8xi32>, tensor<6xi64>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @alibi(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xf32>) {
  // expected-error @below {{'alibi' takes a table of floats of shape 4 or 2x4, got: 'tensor<8xf32>'}}
  %o, %lse = burst.attention %q, %k, %k score alibi(%t : tensor<8xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @alibi(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<1x4xf32>) {
  // expected-error @below {{'alibi' takes a table of floats of shape 4 or 2x4, got: 'tensor<1x4xf32>'}}
  %o, %lse = burst.attention %q, %k, %k score alibi(%t : tensor<1x4xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @alibi(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<4xi32>) {
  // expected-error @below {{'alibi' takes a table of floats of shape 4 or 2x4, got: 'tensor<4xi32>'}}
  %o, %lse = burst.attention %q, %k, %k score alibi(%t : tensor<4xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @alibi(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: f32) {
  // expected-error @below {{'alibi' takes a table of floats of shape 4 or 2x4, got: 'f32'}}
  %o, %lse = burst.attention %q, %k, %k score alibi(%t : f32)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @bias(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<6x8xf32>) {
  // expected-error @below {{'bias' takes a table of floats of shape 8x6 or 2x4x8x6, got: 'tensor<6x8xf32>'}}
  %o, %lse = burst.attention %q, %k, %k score bias(%t : tensor<6x8xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// Only rank 4 is broadcast.
func.func @bias(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<1x6xf32>) {
  // expected-error @below {{'bias' takes a table of floats of shape 8x6 or 2x4x8x6, got: 'tensor<1x6xf32>'}}
  %o, %lse = burst.attention %q, %k, %k score bias(%t : tensor<1x6xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @bias(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<1x2x8x6xf32>) {
  // expected-error @below {{'bias' takes a table of floats of shape 8x6 or 1x4x8x6, got: 'tensor<1x2x8x6xf32>'}}
  %o, %lse = burst.attention %q, %k, %k score bias(%t : tensor<1x2x8x6xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @bias(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<4x8x6xf32>) {
  // expected-error @below {{'bias' takes a table of floats of shape 8x6 or 2x4x8x6, got: 'tensor<4x8x6xf32>'}}
  %o, %lse = burst.attention %q, %k, %k score bias(%t : tensor<4x8x6xf32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @bias(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8x6xi32>) {
  // expected-error @below {{'bias' takes a table of floats of shape 8x6 or 2x4x8x6, got: 'tensor<8x6xi32>'}}
  %o, %lse = burst.attention %q, %k, %k score bias(%t : tensor<8x6xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// A name and a region.
func.func @attention_c4(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{mask must be names or a region, got both}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      maskNames = [#burst.causal]}> ({
    ^bb0(%b: index, %h: index, %i: index, %j: index, %sq: index, %sk: index):
      %keep = arith.constant true
      burst.yield %keep : i1
    }, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{score must be names or a region, got both}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      scoreNames = [#burst.softcap<1.0>]}> ({}, {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %sq: index, %sk: index):
      burst.yield %s : f32
    }, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Captures of nothing.
func.func @attention_c4(%q: tensor<1x8x1x4xf32>, %t: i32) {
  // expected-error @below {{mask captures values but has no region}}
  %o, %lse = "burst.attention"(%q, %q, %q, %t) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, i32) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<1x8x1x4xf32>, %t: i32) {
  // expected-error @below {{score captures values but has no region}}
  %o, %lse = "burst.attention"(%q, %q, %q, %t) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, i32) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Empty names, and no names.
func.func @attention_c4(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{mask names must not be empty}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      maskNames = []}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{score names must not be empty}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      scoreNames = []}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expects the name of a mask, got: 1 : i64}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      maskNames = [1]}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expects the name of a score, got: unit}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      scoreNames = [#burst.softcap<1.0>, unit]}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c4(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{Invalid attribute `maskNames` in property conversion: #burst.causal}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      maskNames = #burst.causal}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}
