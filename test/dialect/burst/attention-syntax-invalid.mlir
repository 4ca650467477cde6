// RUN: burst-opt %s -verify-diagnostics -split-input-file

// What does not parse, and what only the generic form can get wrong.

// Too few tensors.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected 3 operands}}
  %o, %lse = burst.attention %q, %q
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Names that are missing, or unknown.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected valid keyword}}
  %o, %lse = burst.attention %q, %q, %q mask %q
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected valid keyword}}
  %o, %lse = burst.attention %q, %q, %q mask []
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{unknown name 'nosuch', known masks: full, causal, window, prefix, documents; scores: alibi, softcap, bias}}
  %o, %lse = burst.attention %q, %q, %q mask nosuch
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{unknown name 'nosuch'}}
  %o, %lse = burst.attention %q, %q, %q mask [causal, nosuch]
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{unknown name 'softmax'}}
  %o, %lse = burst.attention %q, %q, %q score softmax<1.0>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Names without the parameters that they take.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{mask 'window' takes <left = N, right = N>, e.g. window<left = 1023, right = 0>}}
  %o, %lse = burst.attention %q, %q, %q mask window scale 1.0
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{mask 'window' takes <left = N, right = N>}}
  %o, %lse = burst.attention %q, %q, %q mask [causal, window] scale 1.0
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{mask 'prefix' takes <N>, the length of the prefix, e.g. prefix<128>}}
  %o, %lse = burst.attention %q, %q, %q mask prefix(128)
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{score 'softcap' takes <CAP>, the bound as a float, e.g. softcap<30.0>}}
  %o, %lse = burst.attention %q, %q, %q score [softcap, alibi]
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// expected-error @below {{mask 'window' takes <left = N, right = N>}}
func.func private @syntax() attributes {mask = #burst.window}

// -----

// Names without their dialect only.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected valid keyword}}
  %o, %lse = burst.attention %q, %q, %q mask #burst.causal
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected ']'}}
  %o, %lse = burst.attention %q, %q, %q mask [causal scale 1.0
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Clauses twice, or in another order.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected ':'}}
  %o, %lse = burst.attention %q, %q, %q mask causal mask full
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected ':'}}
  %o, %lse = burst.attention %q, %q, %q strategy <ring_kv> sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Tables without their types.
func.func @syntax(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>) {
  // expected-error @below {{expected ':'}}
  %o, %lse = burst.attention %q, %q, %q mask documents(%t)
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>) {
  // expected-error @below {{number of operands and types do not match: got 2 operands and 1 types}}
  %o, %lse = burst.attention %q, %q, %q mask documents(%t, %t : tensor<8xi32>)
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{use of undeclared SSA value name}}
  %o, %lse = burst.attention %q, %q, %q mask documents(%nosuch : tensor<8xi32>)
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// A scale that is no float.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{unexpected decimal integer literal for a floating point value}}
  // expected-note @below {{add a trailing dot to make the literal a float}}
  %o, %lse = burst.attention %q, %q, %q scale 1
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{invalid kind of attribute specified}}
  %o, %lse = burst.attention %q, %q, %q scale "one"
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{attribute 'scale' occurs more than once in the attribute list}}
  %o, %lse = burst.attention %q, %q, %q scale 1.0 {scale = 2.0 : f64}
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// A sequence that is none.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{invalid kind of attribute specified}}
  %o, %lse = burst.attention %q, %q, %q sequence #burst.causal
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// A mask without a region, and one with too few arguments.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected '{' to begin a region}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %h, %i, %j, %sq, %sk)
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{a mask region has at least 6 arguments, got: 2}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %h) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{a score region has at least 7 arguments, got: 2}}
  %o, %lse = burst.attention %q, %q, %q score(%s : f32, %b) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{a bounds region has at least 10 arguments, got: 6}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %h, %i, %j, %sq, %sk) { burst.yield } bounds(%b, %h, %i, %j, %sq, %sk) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected SSA operand}}
  %o, %lse = burst.attention %q, %q, %q mask() { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// A score names the state type, indices have none.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected ':'}}
  %o, %lse = burst.attention %q, %q, %q score(%s, %b, %h, %i, %j, %sq, %sk) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected ')'}}
  %o, %lse = burst.attention %q, %q, %q mask(%b : index, %h, %i, %j, %sq, %sk) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// A capture without what it captures, or without its type.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected '='}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %h, %i, %j, %sq, %sk, %t : tensor<8xi32>) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>) {
  // expected-error @below {{expected ':'}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %h, %i, %j, %sq, %sk, %c = %t) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// The bounds capture nothing of their own.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{expected ':'}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %h, %i, %j, %sq, %sk) { burst.yield } bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %c = %q : tensor<1x8x1x4xf32>) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// An argument twice.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{region entry argument '%b' is already in use}}
  // expected-note @below {{previously referenced here}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %b, %i, %j, %sq, %sk) { burst.yield }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{empty block: expect at least a terminator}}
  %o, %lse = burst.attention %q, %q, %q mask(%b, %h, %i, %j, %sq, %sk) {}
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Too few types.
func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{number of operands and types do not match: got 3 operands and 2 types}}
  %o, %lse = burst.attention %q, %q, %q : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{invalid kind of type specified: expected builtin.function, but found 'tensor<1x8x1x4xf32>'}}
  %o, %lse = burst.attention %q, %q, %q : tensor<1x8x1x4xf32>
  return
}

// -----

func.func @syntax(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{op expected 2 or more results}}
  %o = burst.attention %q, %q, %q : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32>
  return
}

// -----

// Regions too few and too many.
func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{op expected 3 regions}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{op expected 3 regions}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({}, {}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Segments of operands that are missing or wrong.
func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{operand count (3) does not match with the total size (0)}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{operand count (3) does not match with the total size (4)}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{'operandSegmentSizes' attribute cannot have negative elements}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, -1, 1>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{size mismatch in attribute conversion: 3 vs 5}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{expected DenseI32ArrayAttr}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i64: 1, 1, 1, 0, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{operand segment 0 must have one operand, got: 3}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 3, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{operand segment 2 must have one operand, got: 0}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{operand segment 0 must have one operand, got: 0}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 0, 0, 0, 3, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{expected 3 or more operands, but found 2}}
  %o, %lse = "burst.attention"(%q, %q) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{operand #1 must be 4D tensor of}}
  %o, %lse = "burst.attention"(%q, %n, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, index, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Results too few and too many.
func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{expected 2 or more results}}
  %o = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32>
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{result group starting at #2 requires 0 or 1 element, but found 2}}
  %o:4 = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Attributes of another kind.
func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{attribute 'scale' failed to satisfy constraint: 64-bit float attribute}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, scale = 1.0 : f32}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{Invalid attribute `scale` in property conversion: 1 : i64}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, scale = 1}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{Invalid attribute `sequence` in property conversion: @cp}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, sequence = @cp}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x8x1x4xf32>, %n: index) {
  // expected-error @below {{Invalid attribute `strategy` in property conversion: 1 : i64}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, strategy = 1}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Attributes that the dialect does not know.
func.func @generic(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{unknown attribute: "burst.foo"}}
  %o, %lse = burst.attention %q, %q, %q {burst.foo = 1}
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}
