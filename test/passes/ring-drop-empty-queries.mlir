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
// CHECK: %[[R:.*]] = shard.process_multi_index
// CHECK: scf.for {{.*}} %[[OWNER:[^ ]*]] = %[[R]],
// CHECK: tensor.extract %[[NEEDS]]#0[%[[OWNER]], %[[R]],
// CHECK: ring.attend
// CHECK: pairs (%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) scale
// CHECK: %[[AHEAD:.*]] = arith.addi %[[R]], %[[NEEDS]]#2 : index
// CHECK: %[[TO:.*]] = arith.remui %[[AHEAD]],
// CHECK: ring.start {{.*}} to %[[TO]] segments(%[[A:[^,]*]], %{{[^,]*}}) receive
// What comes home, the own part, and what comes on the way.
// CHECK: %[[HOPS:.*]] = arith.select
// CHECK: %[[AWAY:.*]] = arith.cmpi ne, %[[HOPS]],
// CHECK: %[[ENDS:.*]] = arith.cmpi eq, %[[HOPS]],
// CHECK: %[[HOME:.*]] = arith.andi %[[AWAY]], %[[ENDS]]
// CHECK: ring.merge{{.*}} of <zigzag over 3>[%[[R]]] {{.*}} segments(%[[HOME]], %{{[^,]*}})
// CHECK: ring.merge{{.*}} of <zigzag over 3>[%[[R]]] {{.*}} segments(%[[FIRST:[^,]*]], %[[FIRST]])
// CHECK: %[[CAME:.*]] = arith.cmpi ugt,
// CHECK: %[[ON:.*]] = arith.andi %[[CAME]],
// CHECK: ring.merge{{.*}} of <zigzag over 3>[%[[OWNER]]] {{.*}} segments(%[[ON]], %{{[^,]*}})
// CHECK: ring.start {{.*}} segments(%{{[^,]*}}, %{{[^,]*}}) receive
// CHECK: ring.start {{.*}} segments(%{{[^,]*}}, %{{[^,]*}}) receive[%[[R]]]
// CHECK: scf.yield
// CHECK: ring.merge{{.*}} segments(%{{[^,]*}}, %{{[^,]*}})
func.func @q(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>) -> tensor<1x12x1x4xf32> {
  %o, %lse = burst.attention %q, %k, %k mask causal sequence <@cp, zigzag>
      strategy <ring_q>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x1x12xf32>)
  return %o : tensor<1x12x1x4xf32>
}
