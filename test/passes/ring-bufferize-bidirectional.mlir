// RUN: burst-opt %s --burst-to-ring --ring-bufferize | FileCheck %s

// A token that a loop carries, of what is sent on while it is read: two buffers, of
// which the transfer in front of the loop fills the last one, and a turn reads that
// which the turn before has filled.

// CHECK-LABEL: func @kv
// CHECK: %[[K:.*]] = tile.allocate "slice"() : memref<2x1x8x1x4xf32>
// CHECK: %[[V:.*]] = tile.allocate "slice"() : memref<2x1x8x1x4xf32>
// CHECK: memref.subview %[[K]][1, 0, 0, 0, 0]
// CHECK: memref.subview %[[V]][1, 0, 0, 0, 0]
// CHECK: %[[FIRST:.*]] = ring.start %arg1, %arg2
// CHECK: tile.allocate "slice"() : memref<2x1x8x1x4xf32>
// CHECK: tile.allocate "slice"() : memref<2x1x8x1x4xf32>
// CHECK-NOT: tile.allocate
// CHECK: %[[END:.*]]:5 = scf.for %{{.*}} = %c0{{.*}} to %c3{{.*}} iter_args({{.*}}, %[[TOKEN:[^ ]*]] = %[[FIRST]])
// CHECK: ring.wait %[[TOKEN]]
// CHECK: %[[BEFORE:.*]] = arith.addi %[[TURN:.*]], %c1
// CHECK: %[[READ:.*]] = arith.remui %[[BEFORE]], %c2
// CHECK: memref.subview %[[K]][%[[READ]], 0, 0, 0, 0]
// CHECK: %[[FILLED:.*]] = arith.remui %[[TURN]], %c2
// CHECK: memref.subview %[[K]][%[[FILLED]], 0, 0, 0, 0]
// CHECK: ring.start
// CHECK: ring.wait %[[END]]#4
// CHECK: memref.subview %[[K]][0, 0, 0, 0, 0]
shard.grid @cp(shape = 8)
!q = tensor<1x64x1x4xf32>
!l = tensor<1x1x64xf32>
func.func @kv(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <bi_ring_kv>
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
