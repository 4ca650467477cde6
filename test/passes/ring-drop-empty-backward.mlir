// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty | FileCheck %s
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty --ring-lower-rotate --ring-verify

// What is dropped is shown by burst-explain-backward.mlir; that nothing is
// missing, by ring-verify here.

shard.grid @cp(shape = 3)

// Every pair has a flag. Shards, and gradients by them, go the way that is
// cheaper, each segment as far as it is needed.
//
// CHECK-LABEL: func private @kv_needs
// CHECK-LABEL: func @kv
// CHECK: %[[NEEDS:.*]]:3 = call @kv_needs
// CHECK: ring.rotate{{.*}} reach %[[NEEDS]]#1 by %[[NEEDS]]#2 : tensor<3x2xindex> carry(%{{.*}}) partial add dims [1, 1]
// CHECK: ring.attend_grad
// CHECK: pairs(%[[NEEDS]]#0 : tensor<3x3x2x2xi1>) scale
func.func @kv(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>,
    %v: tensor<1x12x1x4xf32>, %o: tensor<1x12x1x4xf32>, %lse: tensor<1x1x12xf32>,
    %do: tensor<1x12x1x4xf32>)
    -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>,
         tensor<1x12x1x4xf32>, tensor<1x1x12xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>
}

// CHECK-LABEL: func private @q_needs
// CHECK-LABEL: func @q
// CHECK: %[[NEEDS:.*]]:3 = call @q_needs
// CHECK: ring.rotate{{.*}} reach %[[NEEDS]]#1 by %[[NEEDS]]#2 : tensor<3x2xindex> carry(%{{.*}}) partial add dims [1]
// CHECK: ring.attend_grad
// CHECK: pairs(%[[NEEDS]]#0 : tensor<3x3x2x2xi1>) scale
func.func @q(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>,
    %v: tensor<1x12x1x4xf32>, %o: tensor<1x12x1x4xf32>, %lse: tensor<1x1x12xf32>,
    %do: tensor<1x12x1x4xf32>)
    -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>,
         tensor<1x12x1x4xf32>, tensor<1x1x12xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>
}
