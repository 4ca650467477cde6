// RUN: burst-opt %s --ring-lower-rotate | FileCheck %s --implicit-check-not=ring.rotate --implicit-check-not=ring.yield

shard.grid @cp(shape = 4)
shard.grid @one(shape = 1)

!kv = tensor<1x8x1x4xf32>
!m = tensor<1x1x8xf32>

// Which shards arrive for a turn: those that have come a hop per turn and were
// not at their end before. For turn 0 a rank has its own.
//
// CHECK-LABEL: func private @carry_slices
// CHECK-SAME: (%[[REACH:[^ ]+]]: tensor<4x2xindex>) -> tensor<4x5x2xi1>
// CHECK: ^bb0(%[[O:.*]]: index, %[[T:.*]]: index, %[[S:.*]]: index):
// CHECK-NEXT: %[[FAR:.*]] = tensor.extract %[[REACH]][%[[O]], %[[S]]]
// CHECK: %[[PAST:.*]] = arith.addi %[[FAR]], %{{.*}} : index
// CHECK: %[[LATER:.*]] = arith.cmpi ne, %[[T]],
// CHECK: %[[NEAR:.*]] = arith.cmpi ult, %[[T]], %[[PAST]]
// CHECK: arith.andi %[[LATER]], %[[NEAR]]

// P - 1 = 3 turns pass the shards on; the last ones are computed with behind the
// loop. The ring goes by the step.
//
// CHECK-LABEL: func @carry
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x8x1x4xf32>, %[[C0:[^ ]+]]: index, %[[R:[^ ]+]]: index, %[[N:[^ ]+]]: index, %[[REACH:[^ ]+]]: tensor<4x2xindex>, %[[STEP:[^ ]+]]: index)
// CHECK: %[[AHEAD:.*]] = arith.addi %[[R]], %[[STEP]] : index
// CHECK: %[[TO:.*]] = arith.remui %[[AHEAD]],
// CHECK: %[[LESS:.*]] = arith.subi %{{.*}}, %[[STEP]] : index
// CHECK: %[[BACK:.*]] = arith.addi %[[R]], %[[LESS]] : index
// CHECK: %[[FROM:.*]] = arith.remui %[[BACK]],
// CHECK: %[[ARRIVES:.*]] = call @carry_slices(%[[REACH]])
// CHECK: %[[END:.*]]:3 = scf.for %[[T:.*]] = %{{.*}} to %[[THREE:.*]] step %{{.*}} iter_args(%[[KT:.*]] = %[[K]], %[[OWNER:.*]] = %[[R]], %[[C:.*]] = %[[C0]])
// CHECK: %[[C1:.*]] = arith.addi %[[C]], %[[OWNER]] : index
// CHECK: %[[BEHIND:.*]] = arith.addi %[[OWNER]], %[[LESS]] : index
// CHECK: %[[NEXT:.*]] = arith.remui %[[BEHIND]],
// CHECK: %[[TURN:.*]] = arith.addi %[[T]], %{{.*}} : index
// CHECK: %[[TOKEN:.*]] = ring.start %[[KT]] dims [1] of <zigzag over 4>[%[[OWNER]]] extent %[[N]] to %[[TO]] receive[%[[NEXT]]] from %[[FROM]] segments(%[[ARRIVES]][%[[TURN]]] : tensor<4x5x2xi1>) channel <@cp, 3>
// CHECK: %[[GOT:.*]] = ring.wait %[[TOKEN]]
// CHECK: scf.yield %[[GOT]], %[[NEXT]], %[[C1]]
// CHECK: %[[SUM:.*]] = arith.addi %[[END]]#2, %[[END]]#1 : index
// CHECK: return %[[SUM]]
func.func @carry(%k: !kv, %c: index, %r: index, %n: index, %reach: tensor<4x2xindex>,
                 %step: index) -> index attributes {ring.grid = @cp} {
  %0 = ring.rotate (%k dims [1]) of <zigzag over 4>[%r] extent %n channel <@cp, 3>
      reach %reach by %step : tensor<4x2xindex> carry(%c : index) : (!kv) -> index {
  ^bb0(%owner: index, %kt: !kv, %ct: index):
    %1 = arith.addi %ct, %owner : index
    ring.yield %1 : index
  }
  return %0 : index
}

// Gradients go along one hop behind, but for what the owner computed, and return
// in the turn in which their shard is at its end.
//
// CHECK-LABEL: func private @add_partials
// CHECK-SAME: (%[[REACH:[^ ]+]]: tensor<4x2xindex>) -> (tensor<4x5x2xi1>, tensor<4x5x2xi1>)
// CHECK: tensor.generate
// CHECK: %[[PAST:.*]] = arith.addi
// CHECK: arith.cmpi ugt
// CHECK: arith.cmpi ult, %{{.*}}, %[[PAST]]
// CHECK: tensor.generate
// CHECK: %[[PAST:.*]] = arith.addi
// CHECK: arith.cmpi ugt
// CHECK: arith.cmpi eq, %{{.*}}, %[[PAST]]

// CHECK-LABEL: func @add
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x8x1x4xf32>, %[[R:[^ ]+]]: index,
// CHECK: %[[OWN0:.*]] = ring.zero %[[K]] : tensor<1x8x1x4xf32> -> tensor<1x8x1x4xf32>
// CHECK: %[[ARRIVES:.*]] = call @add_slices
// CHECK: %[[PARTIALS:.*]]:2 = call @add_partials
// CHECK: %[[END:.*]]:5 = scf.for %[[T:.*]] = {{.*}} iter_args(%[[KT:.*]] = %[[K]], %[[OWNER:.*]] = %[[R]], %[[OWN:.*]] = %[[OWN0]], %[[ONWARD:.*]] = %{{.*}}, %[[RETURNED:.*]] = %{{.*}})
// CHECK: %[[FRESH:.*]] = ring.zero %[[KT]]
// CHECK: %[[PART:.*]] = ring.add %[[FRESH]], %[[KT]]
// CHECK: ring.start %[[KT]] {{.*}} segments(%[[ARRIVES]][%[[NEXT:.*]]] : tensor<4x5x2xi1>) channel <@cp, 0>
// What has returned, what the owner computes itself, and what comes on the way.
// CHECK: %[[OWN1:.*]] = ring.add %[[OWN]], %[[RETURNED]] of <zigzag over 4>[%[[R]]] {{.*}} segments(%[[PARTIALS]]#1[%[[T]]] :
// CHECK: %[[OWN2:.*]] = ring.add %[[OWN1]], %[[PART]] of <zigzag over 4>[%[[R]]] {{.*}} segments(%{{.*}}[%[[T]]] : tensor<1x4x1xi1>)
// CHECK: %[[SUM:.*]] = ring.add %[[PART]], %[[ONWARD]] of <zigzag over 4>[%[[OWNER]]] {{.*}} segments(%[[PARTIALS]]#0[%[[T]]] :
// CHECK: ring.start %[[SUM]] {{.*}} segments(%[[PARTIALS]]#0[%[[NEXT]]] : tensor<4x5x2xi1>) channel <@cp, 1>
// CHECK: ring.start %[[SUM]] {{.*}} to %[[OWNER]] receive[%[[R]]] {{.*}} segments(%[[PARTIALS]]#1[%[[NEXT]]] : tensor<4x5x2xi1>) channel <@cp, 1>
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[OWN2]],
// CHECK: %[[ALL:.*]] = ring.add %[[END]]#2, %[[END]]#4 {{.*}} segments(%[[PARTIALS]]#1[
// CHECK: return %[[ALL]]
func.func @add(%k: !kv, %r: index, %n: index, %reach: tensor<4x2xindex>, %step: index)
    -> !kv attributes {ring.grid = @cp} {
  %0 = ring.rotate (%k dims [1]) of <zigzag over 4>[%r] extent %n channel <@cp, 0>
      reach %reach by %step : tensor<4x2xindex> partial add dims [1] : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %dk: !kv):
    %1 = ring.add %dk, %kt of <zigzag over 4>[%owner] extent %n : !kv
    ring.yield %1 : !kv
  }
  return %0 : !kv
}

// One rank has all: its region once.
//
// CHECK-LABEL: func @alone
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x8x1x4xf32>, %[[C:[^ ]+]]: index,
// CHECK-NEXT: %[[O:.*]], %[[M:.*]], %[[L:.*]] = ring.init %[[Q]]
// CHECK-NEXT: return %[[C]], %[[O]], %[[M]], %[[L]]
func.func @alone(%q: !kv, %c: index, %r: index, %n: index) -> (index, !kv, !m, !m) {
  %0:4 = ring.rotate (%q dims [1]) of <zigzag over 1>[%r] extent %n channel <@one, 0>
      carry(%c : index) partial merge dims [1, 2, 2] : (!kv) -> (index, !kv, !m, !m) {
  ^bb0(%owner: index, %qt: !kv, %ct: index, %o: !kv, %m: !m, %l: !m):
    ring.yield %ct, %o, %m, %l : index, !kv, !m, !m
  }
  return %0#0, %0#1, %0#2, %0#3 : index, !kv, !m, !m
}
