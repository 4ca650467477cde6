// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty | FileCheck %s
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty --ring-verify

// What is dropped is shown by burst-explain-queries.mlir; that nothing is
// missing, by ring-verify here.

shard.grid @cp(shape = 3)

// Every pair has a flag. Queries and their states go the way that is cheaper,
// each segment as far as it is needed, and from there states go home.
//
// CHECK-LABEL: func private @q_needs
// CHECK-LABEL: func @q
// CHECK: %[[NEEDS:.*]]:3 = call @q_needs
// CHECK-DAG: %[[PARTIALS:.*]]:2 = call @q_partials(%[[NEEDS]]#1)
// CHECK-DAG: %[[SLICES:.*]] = call @q_slices(%[[NEEDS]]#1)
// CHECK: %[[R:.*]] = shard.process_multi_index
// CHECK: scf.for %[[T:[^ ]*]] = {{.*}} %[[OWNER:[^ ]*]] = %[[R]],
// CHECK: ring.attend
// CHECK: pairs(%[[NEEDS]]#0 : tensor<3x3x2x2xi1>) scale
// CHECK: %[[AHEAD:.*]] = arith.addi %[[R]], %[[NEEDS]]#2 : index
// CHECK: %[[TO:.*]] = arith.remui %[[AHEAD]],
// CHECK: ring.start {{.*}} to %[[TO]] receive{{.*}} segments(%[[SLICES]][%[[NEXT:.*]]] : tensor<3x4x2xi1>)
// What has returned, the own partial result, and what comes on the way.
// CHECK: ring.merge{{.*}} of <zigzag over 3>[%[[R]]] {{.*}} segments(%[[PARTIALS]]#1[%[[T]]] :
// CHECK: ring.merge{{.*}} of <zigzag over 3>[%[[R]]] {{.*}} segments(%{{.*}}[%[[T]]] : tensor<1x3x1xi1>)
// CHECK: ring.merge{{.*}} of <zigzag over 3>[%[[OWNER]]] {{.*}} segments(%[[PARTIALS]]#0[%[[T]]] :
// CHECK: ring.start {{.*}} segments(%[[PARTIALS]]#0[%[[NEXT]]] :
// CHECK: ring.start {{.*}} receive[%[[R]]] {{.*}} segments(%[[PARTIALS]]#1[%[[NEXT]]] :
// CHECK: scf.yield
// CHECK: ring.merge{{.*}} segments(%[[PARTIALS]]#1[
func.func @q(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>) -> tensor<1x12x1x4xf32> {
  %o, %lse = burst.attention %q, %k, %k mask causal sequence <@cp, zigzag>
      strategy <ring_q>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x1x12xf32>)
  return %o : tensor<1x12x1x4xf32>
}
