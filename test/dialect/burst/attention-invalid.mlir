// RUN: burst-opt %s -verify-diagnostics -split-input-file

// Shapes, types, grid and scale. For the other constraints see names-invalid.mlir
// (C4), regions-invalid.mlir (C5) and captures-invalid.mlir (C6).

// The batch of the key.
func.func @attention_c1(%q: tensor<2x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<2x8x2x64xf32>) {
  // expected-error @below {{'burst.attention' op key must have the shape (B, Sk, Hkv, Dqk) = (2, 8, 2, 64), got: 'tensor<1x8x2x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<2x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// The head dim of the key.
func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x32xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{key must have the shape (B, Sk, Hkv, Dqk) = (1, 8, 2, 64), got: 'tensor<1x8x2x32xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x32xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// The positions of the value.
func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x9x2x64xf32>) {
  // expected-error @below {{value must have the shape (B, Sk, Hkv, Dv) = (1, 8, 2, 64), got: 'tensor<1x9x2x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x9x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// The heads of the value.
func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x4x64xf32>) {
  // expected-error @below {{value must have the shape (B, Sk, Hkv, Dv) = (1, 8, 2, 64), got: 'tensor<1x8x4x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x4x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// The head dim of the result is that of the value.
func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x32xf32>) {
  // expected-error @below {{out must have the shape (B, Sq, Hq, Dv) = (1, 8, 4, 32), got: 'tensor<1x8x4x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x32xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Queries and heads the wrong way round.
func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{lse must have the shape (B, Hq, Sq) = (1, 4, 8), got: 'tensor<1x8x4xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x8x4xf32>)
  return
}

// -----

// What one operand leaves open, another one says.
func.func @attention_c1(%q: tensor<?x8x4x64xf32>, %k: tensor<?x8x2x64xf32>, %v: tensor<3x?x2x64xf32>) {
  // expected-error @below {{out must have the shape (B, Sq, Hq, Dv) = (3, 8, 4, 64), got: 'tensor<4x8x4x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<?x8x4x64xf32>, tensor<?x8x2x64xf32>, tensor<3x?x2x64xf32>) -> (tensor<4x8x4x64xf32>, tensor<?x4x8xf32>)
  return
}

// -----

// Results are as static as the operands.
func.func @attention_c1(%q: tensor<?x?x4x64xf32>, %k: tensor<?x8x2x64xf32>) {
  // expected-error @below {{out must have the shape (B, Sq, Hq, Dv) = (?, ?, 4, 64), got: 'tensor<?x7x4x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %k
      : (tensor<?x?x4x64xf32>, tensor<?x8x2x64xf32>, tensor<?x8x2x64xf32>) -> (tensor<?x7x4x64xf32>, tensor<?x4x7xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<?x8x4x64xf32>, %k: tensor<2x8x2x64xf32>) {
  // expected-error @below {{lse must have the shape (B, Hq, Sq) = (2, 4, 8), got: 'tensor<2x4x?xf32>'}}
  %o, %lse = burst.attention %q, %k, %k
      : (tensor<?x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x?xf32>)
  return
}

// -----

// Ranks are those of the types.
func.func @attention_c1(%q: tensor<8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{result #1 must be 3D tensor of}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<*xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<*xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Sizes that no sequence has.
func.func @attention_c1(%q: tensor<1x1099511627776x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{sizes must be below 2^40, got: 1099511627776}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x1099511627776x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x1099511627776x4x64xf32>, tensor<1x4x1099511627776xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<1x8x1099511627776x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{sizes must be below 2^40, got: 1099511627776}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x1099511627776x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x1099511627776x64xf32>, tensor<1x1099511627776x8xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{out must have the shape (B, Sq, Hq, Dv) = (1, 8, 4, 64), got: 'tensor<1x8x4x?xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x?xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{lse must have the shape (B, Hq, Sq) = (1, 4, 8), got: 'tensor<1x?x8xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x?x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<1x8x?x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{heads and head dims must be static, got: 'tensor<1x8x?x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x?x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x?xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{heads and head dims must be static, got: 'tensor<1x8x2x?xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x?xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x?x64xf32>) {
  // expected-error @below {{heads and head dims must be static, got: 'tensor<1x8x?x64xf32>'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x?x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<1x8x3x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{query heads must be a multiple of key heads, got: 3 and 2}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x3x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x3x64xf32>, tensor<1x3x8xf32>)
  return
}

// -----

// Fewer query heads than key heads.
func.func @attention_c2(%q: tensor<1x8x1x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{query heads must be a multiple of key heads, got: 1 and 2}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x1x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x1x64xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// No heads.
func.func @attention_c2(%q: tensor<1x8x0x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{query heads must be a multiple of key heads, got: 0 and 2}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x0x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x0x64xf32>, tensor<1x0x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x0x64xf32>, %v: tensor<1x8x0x64xf32>) {
  // expected-error @below {{query heads must be a multiple of key heads, got: 4 and 0}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x0x64xf32>, tensor<1x8x0x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<1x8x4x0xf32>, %k: tensor<1x8x2x0xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{head dims must be in [1, 256], got: 0}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x0xf32>, tensor<1x8x2x0xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x257xf32>) {
  // expected-error @below {{head dims must be in [1, 256], got: 257}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x257xf32>) -> (tensor<1x8x4x257xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<1x8x4x64xbf16>, %k: tensor<1x8x2x64xf16>, %v: tensor<1x8x2x64xbf16>) {
  // expected-error @below {{key must have the element type of query, 'bf16', got: 'f16'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xbf16>, tensor<1x8x2x64xf16>, tensor<1x8x2x64xbf16>) -> (tensor<1x8x4x64xbf16>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<1x8x4x64xbf16>, %k: tensor<1x8x2x64xbf16>, %v: tensor<1x8x2x64xbf16>) {
  // expected-error @below {{out must have the element type of query, 'bf16', got: 'f32'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xbf16>, tensor<1x8x2x64xbf16>, tensor<1x8x2x64xbf16>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<1x8x4x64xbf16>, %k: tensor<1x8x2x64xbf16>, %v: tensor<1x8x2x64xbf16>) {
  // expected-error @below {{lse of 'bf16' attention must be of 'f32', got: 'f64'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xbf16>, tensor<1x8x2x64xbf16>, tensor<1x8x2x64xbf16>) -> (tensor<1x8x4x64xbf16>, tensor<1x4x8xf64>)
  return
}

// -----

func.func @attention_c3(%q: tensor<1x8x4x64xf64>, %k: tensor<1x8x2x64xf64>, %v: tensor<1x8x2x64xf64>) {
  // expected-error @below {{lse of 'f64' attention must be of 'f64', got: 'f32'}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf64>, tensor<1x8x2x64xf64>, tensor<1x8x2x64xf64>) -> (tensor<1x8x4x64xf64>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<1x8x4x64xi32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xi32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{result #1 must be 3D tensor of 64-bit float or 32-bit float values}}
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xbf16>)
  return
}

// -----

// No grid.
func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{names the grid @cp, which does not exist}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Something else of that name.
func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{names the grid @attention_c7, which does not exist}}
  %o, %lse = burst.attention %q, %k, %v sequence <@attention_c7, zigzag>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// An axis that the grid has not.
shard.grid @cp(shape = 4)

func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{names axis 1 of the grid @cp, which has: 1}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp[1], zigzag>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Axes that are used twice, or not.
shard.grid @cp(shape = 2x2)

func.func @attention_c7(%q: tensor<2x8x4x64xf32>, %k: tensor<2x8x2x64xf32>, %v: tensor<2x8x2x64xf32>) {
  // expected-error @below {{shards nothing over axis 0 of @cp, of 2 ranks, which would all do the same; shard the sequence, heads or batch over it}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp[1], zigzag>
      : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 2x2)

func.func @attention_c7(%q: tensor<2x8x4x64xf32>, %k: tensor<2x8x2x64xf32>, %v: tensor<2x8x2x64xf32>) {
  // expected-error @below {{shards sequence and heads over axis 1 of @cp; name axes for each, as in `sequence <@cp[0], zigzag> heads <@cp[1]>`}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> heads <@cp[1]>
      : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 2x2)

func.func @attention_c7(%q: tensor<2x8x4x64xf32>, %k: tensor<2x8x2x64xf32>, %v: tensor<2x8x2x64xf32>) {
  // expected-error @below {{shards heads and batch over axis 1 of @cp}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp[0], zigzag> heads <@cp[1]> batch <@cp[1]>
      : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 2x2)

func.func @attention_c7(%q: tensor<2x8x4x64xf32>, %k: tensor<2x8x2x64xf32>, %v: tensor<2x8x2x64xf32>) {
  // expected-error @below {{shards heads over #burst.axes<@cp[1]> and has no sequence; give it one, of no axes where it stays whole, as in `sequence <@cp[], contiguous>`}}
  %o, %lse = burst.attention %q, %k, %v heads <@cp[1]>
      : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 2x2)

func.func @attention_c7(%q: tensor<2x8x4x64xf32>, %k: tensor<2x8x2x64xf32>, %v: tensor<2x8x2x64xf32>) {
  // expected-error @below {{names axis 2 of the grid @cp, which has: 2}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp[0], zigzag> heads <@cp[2]>
      : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

shard.grid @tp(shape = 2)
shard.grid @cp(shape = 2x2)

func.func @attention_c7(%q: tensor<2x8x4x64xf32>, %k: tensor<2x8x2x64xf32>, %v: tensor<2x8x2x64xf32>) {
  // expected-error @below {{shards batch over @tp, and its sequence over @cp, got two grids}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp[0], zigzag> batch <@tp>
      : (tensor<2x8x4x64xf32>, tensor<2x8x2x64xf32>, tensor<2x8x2x64xf32>) -> (tensor<2x8x4x64xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// A grid whose size is not known.
// expected-note @below {{the grid is declared here}}
shard.grid @cp(shape = ?)

func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{needs a grid whose shape is known, got: @cp with a dynamic axis}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Too few ranks, or too many.
shard.grid @cp(shape = 0)

func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{needs 1 to 2^20 ranks, got: grid @cp of 0}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 1048577)

func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{needs 1 to 2^20 ranks, got: grid @cp of 1048577}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 4611686018427387904)

func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{needs 1 to 2^20 ranks, got: grid @cp of 4611686018427387904}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Blocks that cover more than any sequence.
shard.grid @cp(shape = 1048576)

func.func @attention_c7(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{shards in blocks of 1048576 positions to 1048576 ranks, which together must be fewer than 2^40}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, striped 1048576>
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c8(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{scale must be at most 2.36e+38 in magnitude, as scores in 'f32' are, got: -3.000000e+38 : f64}}
  %o, %lse = burst.attention %q, %k, %v scale -3.0e38
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c8(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{scale must be finite, got: 0x7FF0000000000000 : f64}}
  %o, %lse = burst.attention %q, %k, %v scale 0x7FF0000000000000
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attention_c8(%q: tensor<1x8x4x64xf32>, %k: tensor<1x8x2x64xf32>, %v: tensor<1x8x2x64xf32>) {
  // expected-error @below {{scale must be finite, got: 0x7FF8000000000000 : f64}}
  %o, %lse = burst.attention %q, %k, %v scale 0x7FF8000000000000
      : (tensor<1x8x4x64xf32>, tensor<1x8x2x64xf32>, tensor<1x8x2x64xf32>) -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @strategies(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{names a strategy once, got again: "ring_kv"}}
  %o, %lse = burst.attention %q, %q, %q strategy <ring_kv, ring_kv>
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @strategies(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{at most one strategy has no axes of its own, got: 2}}
  %o, %lse = burst.attention %q, %q, %q strategy <ulysses, ring_kv>
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @strategies(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{names axis 1, which another strategy has, for "ring_kv"}}
  %o, %lse = burst.attention %q, %q, %q strategy <ulysses on [1], ring_kv on [0, 1]>
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @strategies(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{names no axes for "ring_kv"}}
  %o, %lse = burst.attention %q, %q, %q strategy <ring_kv on []>
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @strategies(%q: tensor<1x8x2x4xf32>) {
  // expected-error @below {{expected the axes on which the strategy works, as in on [1]}}
  %o, %lse = burst.attention %q, %q, %q strategy <ulysses on, ring_kv on [0]>
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<1x8x4x64xf32>) {
  // expected-error @below {{max_scores must have the shape (B, Hq, Sq) = (1, 4, 8), got: 'tensor<1x8x4xf32>'}}
  %o, %lse, %max = burst.attention %q, %q, %q
      : (tensor<1x8x4x64xf32>, tensor<1x8x4x64xf32>, tensor<1x8x4x64xf32>)
      -> (tensor<1x8x4x64xf32>, tensor<1x4x8xf32>, tensor<1x8x4xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<1x8x4x64xbf16>) {
  // expected-error @below {{result #2 must be 3D tensor of 64-bit float or 32-bit float values}}
  %o, %lse, %max = burst.attention %q, %q, %q
      : (tensor<1x8x4x64xbf16>, tensor<1x8x4x64xbf16>, tensor<1x8x4x64xbf16>)
      -> (tensor<1x8x4x64xbf16>, tensor<1x4x8xf32>, tensor<1x4x8xbf16>)
  return
}

// -----

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @chunks(%q: !q) -> !q {
  // expected-error @below {{heads go in 1 chunk or more, got: 0}}
  %o, %lse = burst.attention %q, %q, %q strategy <ulysses in 0 chunks>
      : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @chunks(%q: !q) -> !q {
  // expected-error @below {{expected 'chunks'}}
  %o, %lse = burst.attention %q, %q, %q strategy <ulysses in 4 parts>
      : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}
