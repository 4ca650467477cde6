// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty | FileCheck %s
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty --ring-lower-rotate --ring-verify

// What is dropped is shown by burst-explain-queries.mlir; that nothing is
// missing, by ring-verify here.

shard.grid @cp(shape = 3)

// Every pair has a flag. Queries, and their softmax states, go the way that is
// cheaper, each segment as far as it is needed.
//
// CHECK-LABEL: func private @q_needs
// CHECK-LABEL: func @q
// CHECK: %[[NEEDS:.*]]:3 = call @q_needs
// CHECK: ring.rotate{{.*}} reach %[[NEEDS]]#1 by %[[NEEDS]]#2 : tensor<3x2xindex> partial merge dims [1, 2, 2]
// CHECK: ring.attend
// CHECK: pairs(%[[NEEDS]]#0 : tensor<3x3x2x2xi1>) scale
func.func @q(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>) -> tensor<1x12x1x4xf32> {
  %o, %lse = burst.attention %q, %k, %k mask causal sequence <@cp, zigzag>
      strategy <ring_q>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x1x12xf32>)
  return %o : tensor<1x12x1x4xf32>
}
