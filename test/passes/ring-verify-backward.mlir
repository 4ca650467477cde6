// RUN: burst-opt %s --burst-to-ring -verify-diagnostics -split-input-file

// Backward programs that are whole. How they are broken: see the unit tests.

// The gradients of an attention that the same program computes.
shard.grid @cp(shape = 4)
func.func @forward_and_backward(%q: tensor<1x64x4x16xf32>, %k: tensor<1x64x2x16xf32>, %v: tensor<1x64x2x16xf32>, %do: tensor<1x64x4x16xf32>, %dlse: tensor<1x4x64xf32>)
    -> (tensor<1x64x4x16xf32>, tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> : (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>) -> (tensor<1x64x4x16xf32>, tensor<1x4x64xf32>)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x4x16xf32>, tensor<1x4x64xf32>, tensor<1x64x4x16xf32>)
    -> (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>)
  return %o, %dq, %dk, %dv : tensor<1x64x4x16xf32>, tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>
}

// -----

// Of a table, each rank gives the part of its own pairs.
shard.grid @cp(shape = 3)

func.func @table(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>,
    %v: tensor<1x12x1x4xf32>, %o: tensor<1x12x1x4xf32>, %lse: tensor<1x1x12xf32>,
    %do: tensor<1x12x1x4xf32>, %t: tensor<12xf32>)
    -> (tensor<1x12x1x4xf32>, tensor<12xf32>) {
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<12xf32>) {
        %x = tensor.extract %c[%j] : tensor<12xf32>
        %y = arith.addf %s, %x : f32
        burst.yield %y : f32
      }
      sequence <@cp, zigzag> strategy <ring_q>
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : tensor<12xf32>) {
        burst.yield %w : f32
      }
      gradients [0]
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>,
         tensor<1x12x1x4xf32>, tensor<1x1x12xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<12xf32>)
  return %dq, %dt : tensor<1x12x1x4xf32>, tensor<12xf32>
}

// -----

// The gradients are not those of the attention whose out and lse they take.
shard.grid @cp(shape = 4)
// expected-note @below {{in the program of a rank of @other_mask}}
func.func @other_mask(%q: tensor<1x64x4x16xf32>, %k: tensor<1x64x2x16xf32>, %v: tensor<1x64x2x16xf32>, %do: tensor<1x64x4x16xf32>, %dlse: tensor<1x4x64xf32>)
    -> (tensor<1x64x4x16xf32>, tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> : (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>) -> (tensor<1x64x4x16xf32>, tensor<1x4x64xf32>)
  // expected-error @below {{has another mask, score, scale or layout than the one that lse is of}}
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask full sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x4x16xf32>, tensor<1x4x64xf32>, tensor<1x64x4x16xf32>)
    -> (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>)
  return %o, %dq, %dk, %dv : tensor<1x64x4x16xf32>, tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>
}

// -----

shard.grid @cp(shape = 4)
// expected-note @below {{in the program of a rank of @other_value}}
func.func @other_value(%q: tensor<1x64x4x16xf32>, %k: tensor<1x64x2x16xf32>, %v: tensor<1x64x2x16xf32>, %v2: tensor<1x64x2x16xf32>, %do: tensor<1x64x4x16xf32>, %dlse: tensor<1x4x64xf32>)
    -> (tensor<1x64x4x16xf32>, tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> : (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>) -> (tensor<1x64x4x16xf32>, tensor<1x4x64xf32>)
  // expected-error @below {{attends slices of other tensors than the one that lse is of}}
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v2, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x4x16xf32>, tensor<1x4x64xf32>, tensor<1x64x4x16xf32>)
    -> (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>)
  return %o, %dq, %dk, %dv : tensor<1x64x4x16xf32>, tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>
}
