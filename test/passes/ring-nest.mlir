// A ring inside of another one, from the strategy to transfers.
//
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring | FileCheck %s --check-prefix=BUILT
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty | FileCheck %s --check-prefix=DROP
// RUN: burst-opt %s --burst-to-ring | FileCheck %s
// RUN: burst-opt %s --burst-to-ring=overlap=false | FileCheck %s --check-prefix=LATE
// RUN: burst-opt %s --burst-to-ring --inline --ring-bufferize | FileCheck %s --check-prefix=BUFFERS

shard.grid @mesh(shape = 3x4)

!q = tensor<1x96x2x16xf32>
!l = tensor<1x2x96xf32>

// What the outer ring brings goes round inner ones, whose owners are neighbors.
//
// BUILT-LABEL: func.func @forward
// BUILT-SAME: ring.max_slices = array<i64: 2, 2, 2, 2, 2>
// BUILT: ring.rotate(%arg1, %arg2 dims [1, 1]) of <contiguous over 12>[%[[RANK:.*]]] extent %{{.*}} channel <@mesh[0], 0> stride 4
// BUILT-SAME: carry(
// BUILT: ^bb0(%[[OUTER:.*]]: index, %[[K:[a-z0-9]+]]: tensor<1x8x2x16xf32>, %[[V:[a-z0-9]+]]: tensor<1x8x2x16xf32>
// BUILT: ring.rotate(%[[K]], %[[V]] dims [1, 1]) of <contiguous over 12>[%[[OUTER]]] extent %{{.*}} channel <@mesh[1], 3>
// BUILT-SAME: carry(
// BUILT: ^bb0(%[[INNER:[a-z0-9_]+]]: index
// BUILT: ring.attend %arg0 at <contiguous over 12>[%[[RANK]]]
// BUILT-NEXT: at %[[INNER]])

// Each ring has a reach of its own; that of inner ones depends on which it is.
//
// DROP-LABEL: func.func private @forward_needs
// DROP-SAME: -> (tensor<12x12x1x1xi1>, tensor<12x1xindex>, index, tensor<12x3x1xindex>, index)
// DROP-LABEL: func.func @forward
// DROP: %[[NEEDS:.*]]:5 = call @forward_needs
// DROP: %[[RING:.*]] = arith.divui %[[RANK:.*]], %c4
// DROP: ring.rotate({{.*}}[%[[RANK]]] {{.*}} stride 4 reach %[[NEEDS]]#1 by %[[NEEDS]]#2 : tensor<12x1xindex>
// DROP: ring.rotate({{.*}} channel <@mesh[1], 3> reach %[[NEEDS]]#3[%[[RING]]] by %[[NEEDS]]#4 : tensor<12x3x1xindex>

// The outer transfer is under way behind a whole inner ring.
//
// CHECK-LABEL: func.func @forward
// CHECK: scf.for %{{.*}} = %c0 to %c3
// CHECK: %[[TOKEN:.*]] = ring.start {{.*}} channel <@mesh[0], 0>
// CHECK: scf.for %{{.*}} = %c0 to %c3
// CHECK: ring.start {{.*}} channel <@mesh[1], 3>
// CHECK: ring.attend
// CHECK: ring.wait
// CHECK: scf.yield
// CHECK: ring.attend
// CHECK: ring.wait %[[TOKEN]]
// CHECK: scf.yield
// CHECK-NOT: ring.attend

// LATE-LABEL: func.func @forward
// LATE: scf.for
// LATE: scf.for
// LATE: ring.attend
// LATE: scf.yield
// LATE: ring.attend
// LATE: ring.start {{.*}} channel <@mesh[0], 0>

// Buffers of both lie in front of all loops.
//
// BUFFERS-LABEL: func.func @forward
// BUFFERS-COUNT-4: memref<2x1x8x2x16xf32>
// BUFFERS: scf.for %{{.*}} = %c0 to %c3 step
// BUFFERS-NOT: tile.allocate
// BUFFERS: return
func.func @forward(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@mesh, contiguous> strategy <double_ring_kv> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
