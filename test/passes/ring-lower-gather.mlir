// RUN: burst-opt %s --ring-lower-gather | FileCheck %s --implicit-check-not=ring.gather --implicit-check-not=ring.yield

shard.grid @cp(shape = 4)
shard.grid @one(shape = 1)

!kv = tensor<1x8x1x4xf32>
!all = tensor<1x32x1x4xf32>
!m = tensor<1x1x8xf32>
!ms = tensor<1x1x32xf32>

// Shards come with one transfer, with the flags of the op.
//
// CHECK-LABEL: func @values
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x8x1x4xf32>, %[[R:[^ ]+]]: index, %[[N:[^ ]+]]: index, %[[MOVES:[^ ]+]]: tensor<4x4x2xi1>)
// CHECK: %[[T:.*]] = ring.start %[[K]] dims [1] of <zigzag over 4>[%[[R]]] extent %[[N]] all_gather segments(%[[MOVES]] : tensor<4x4x2xi1>) channel <@cp, 3> : (tensor<1x8x1x4xf32>) -> !ring.token<tensor<1x32x1x4xf32>>
// CHECK: %[[ALL:.*]] = ring.wait %[[T]]
// CHECK: %[[DIM:.*]] = tensor.dim %[[ALL]],
// CHECK: return %[[DIM]]
func.func @values(%k: !kv, %r: index, %n: index, %moves: tensor<4x4x2xi1>) -> index {
  %0 = ring.gather (%k dims [1]) of <zigzag over 4>[%r] extent %n
      channel <@cp, 3> segments(%moves : tensor<4x4x2xi1>) : (!kv) -> index {
  ^bb0(%ka: !all):
    %c1 = arith.constant 1 : index
    %1 = tensor.dim %ka, %c1 : !all
    ring.yield %1 : index
  }
  return %0 : index
}

// Gradients return by distance: the own ones first, then those of the rank so far
// ahead, while this rank's go to the one as far behind. Flags are those by which
// the shards came.
//
// CHECK-LABEL: func @add
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x8x1x4xf32>, %[[R:[^ ]+]]: index, %[[N:[^ ]+]]: index, %[[MOVES:[^ ]+]]: tensor<4x4x2xi1>)
// CHECK: ring.start {{.*}} all_gather
// CHECK: %[[ALL:.*]] = ring.wait
// CHECK: %[[PART:.*]] = ring.zero %[[ALL]] : tensor<1x32x1x4xf32>
// CHECK: %[[ZERO:.*]] = ring.zero %[[K]] : tensor<1x8x1x4xf32>
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: ring.start %[[PART]] dims [1] of <zigzag over 4, all>[%[[R]]] extent %[[N]] to %[[R]] receive[%[[R]]] from %[[R]] segments(%[[MOVES]][%[[C0]]] : tensor<4x4x2xi1>) channel <@cp, 1>
// CHECK: %[[OWN:.*]] = ring.wait
// CHECK: %[[SUM:.*]]:2 = scf.for %[[D:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[DK:.*]] = %[[ZERO]], %[[CAME:.*]] = %[[OWN]])
// CHECK: %[[BEFORE:.*]] = arith.subi %[[D]],
// CHECK: %[[MORE:.*]] = ring.add %[[DK]], %[[CAME]] of <zigzag over 4>[%[[R]]] extent %[[N]] segments(%[[MOVES]][%[[BEFORE]]] : tensor<4x4x2xi1>)
// CHECK: %[[LESS:.*]] = arith.subi %{{.*}}, %[[D]] : index
// CHECK: %[[BEHIND:.*]] = arith.remui %[[LESS]],
// CHECK: %[[PLUS:.*]] = arith.addi %[[R]], %[[D]] : index
// CHECK: %[[AHEAD:.*]] = arith.remui %[[PLUS]],
// CHECK: ring.start %[[PART]] dims [1] of <zigzag over 4, all>[%[[BEHIND]]] extent %[[N]] to %[[BEHIND]] receive[%[[R]]] from %[[AHEAD]] segments(%[[MOVES]][%[[D]]] : tensor<4x4x2xi1>) channel <@cp, 1>
// CHECK: %[[NEXT:.*]] = ring.wait
// CHECK: scf.yield %[[MORE]], %[[NEXT]]
// CHECK: %[[C3:.*]] = arith.constant 3 : index
// CHECK: %[[LAST:.*]] = ring.add %[[SUM]]#0, %[[SUM]]#1 of <zigzag over 4>[%[[R]]] extent %[[N]] segments(%[[MOVES]][%[[C3]]] : tensor<4x4x2xi1>)
// CHECK: return %[[N]], %[[LAST]]
func.func @add(%k: !kv, %r: index, %n: index, %moves: tensor<4x4x2xi1>) -> (index, !kv) {
  %0:2 = ring.gather (%k dims [1]) of <zigzag over 4>[%r] extent %n
      channel <@cp, 0> segments(%moves : tensor<4x4x2xi1>)
      partial add dims [1] : (!kv) -> (index, !kv) {
  ^bb0(%ka: !all, %dk: !all):
    ring.yield %n, %dk : index, !all
  }
  return %0#0, %0#1 : index, !kv
}

// Of queries, states are merged by their owners. Without flags all travels.
//
// CHECK-LABEL: func @merge
// CHECK: ring.start {{.*}} all_gather channel <@cp, 0>
// CHECK: %[[O:.*]], %[[M:.*]], %[[L:.*]] = ring.init %{{.*}} : tensor<1x32x1x4xf32> ->
// CHECK: ring.init %{{.*}} : tensor<1x8x1x4xf32> ->
// CHECK: ring.start %[[O]], %[[M]], %[[L]] dims [1, 2, 2] of <striped over 4, all>[{{.*}} channel <@cp, 1>
// CHECK: scf.for
// CHECK: ring.merge
// CHECK: ring.start %[[O]], %[[M]], %[[L]] dims [1, 2, 2] of <striped over 4, all>[{{.*}} channel <@cp, 1>
// CHECK: ring.merge
func.func @merge(%q: !kv, %r: index, %n: index) -> (!kv, !m, !m) {
  %0:3 = ring.gather (%q dims [1]) of <striped over 4>[%r] extent %n
      channel <@cp, 0> partial merge dims [1, 2, 2] : (!kv) -> (!kv, !m, !m) {
  ^bb0(%qa: !all, %o: !all, %m: !ms, %l: !ms):
    ring.yield %o, %m, %l : !all, !ms, !ms
  }
  return %0#0, %0#1, %0#2 : !kv, !m, !m
}

// One rank has all.
//
// CHECK-LABEL: func @alone
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x8x1x4xf32>
// CHECK-NEXT: %[[PART:.*]] = ring.zero %[[K]]
// CHECK-NEXT: return %[[K]], %[[PART]]
func.func @alone(%k: !kv, %r: index, %n: index) -> (!kv, !kv) {
  %0:2 = ring.gather (%k dims [1]) of <zigzag over 1>[%r] extent %n
      channel <@one, 0> partial add dims [1] : (!kv) -> (!kv, !kv) {
  ^bb0(%ka: !kv, %dk: !kv):
    ring.yield %ka, %dk : !kv, !kv
  }
  return %0#0, %0#1 : !kv, !kv
}
