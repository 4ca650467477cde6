// RUN: burst-opt %s --ring-lower-rotate | FileCheck %s --implicit-check-not=ring.rotate
// RUN: burst-opt %s --ring-lower-rotate --ring-overlap | FileCheck %s --check-prefix=OVERLAP

shard.grid @four(shape = 4)
shard.grid @five(shape = 5)
shard.grid @two(shape = 2)

!kv = tensor<1x8x1x4xf32>

// Of four ranks one shard goes ahead and two go back: in the first turn of two the
// own one is there, and the one from ahead, which has come a hop. Which segments
// come depends on the direction.
//
// CHECK-LABEL: func private @even_slices
// CHECK-SAME: (%[[REACH:[^ ]+]]: tensor<4x2x2xindex>) -> tensor<4x5x2xi1>
// CHECK: tensor.extract %[[REACH]][%{{.*}}, %c0, %{{.*}}]
// CHECK-LABEL: func private @even_slices_0
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %c1, %{{.*}}]
// CHECK-LABEL: func @even
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x8x1x4xf32>, %[[C0:[^ ]+]]: index, %[[R:[^ ]+]]: index,
// CHECK: %[[AHEAD:.*]] = call @even_slices(
// CHECK: %[[BACK:.*]] = call @even_slices_0(
// CHECK: %[[FIRST:.*]] = ring.start %[[K]] {{.*}} segments(%[[BACK]][%c1{{.*}}] : tensor<4x5x2xi1>) channel <@four, 3>
// CHECK: %[[KB:.*]] = ring.wait %[[FIRST]]
// CHECK: %[[END:.*]]:5 = scf.for %[[T:.*]] = %{{.*}} to %c1{{.*}} iter_args(%[[KA:.*]] = %[[K]], %[[OA:.*]] = %[[R]], %[[KT:.*]] = %[[KB]], %[[OB:.*]] = %{{.*}}, %[[C:.*]] = %[[C0]])
// CHECK: %[[C1:.*]] = arith.addi %[[C]], %[[OA]] : index
// CHECK: %[[C2:.*]] = arith.addi %[[C1]], %[[OB]] : index
// CHECK: ring.start %[[KA]] {{.*}} segments(%[[AHEAD]][%{{.*}}] : tensor<4x5x2xi1>) channel <@four, 0>
// CHECK: ring.start %[[KT]] {{.*}} segments(%[[BACK]][%{{.*}}] : tensor<4x5x2xi1>) channel <@four, 3>
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[C2]]
// CHECK: %[[S:.*]] = arith.addi %[[END]]#4, %[[END]]#1 : index
// CHECK: %[[SUM:.*]] = arith.addi %[[S]], %[[END]]#3 : index
// CHECK: return %[[SUM]]
func.func @even(%k: !kv, %c: index, %r: index, %n: index, %reach: tensor<4x2x2xindex>)
    -> index attributes {ring.grid = @four} {
  %0 = ring.rotate (%k dims [1]) of <zigzag over 4>[%r] extent %n channel <@four, 0> bidirectional
      reach %reach : tensor<4x2x2xindex> carry(%c : index) : (!kv) -> index {
  ^bb0(%owner: index, %kt: !kv, %ct: index):
    %1 = arith.addi %ct, %owner : index
    ring.yield %1 : index
  }
  return %0 : index
}

// Of five two go either way, in two turns behind that with the own shard.
//
// CHECK-LABEL: func @odd
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x8x1x4xf32>, %[[C0:[^ ]+]]: index, %[[R:[^ ]+]]: index,
// CHECK: %[[C1:.*]] = arith.addi %[[C0]], %[[R]] : index
// CHECK: %[[FA:.*]] = ring.start %[[K]] {{.*}} channel <@five, 0>
// CHECK: %[[KA:.*]] = ring.wait %[[FA]]
// CHECK: %[[FB:.*]] = ring.start %[[K]] {{.*}} channel <@five, 3>
// CHECK: %[[KB:.*]] = ring.wait %[[FB]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %c1{{.*}} iter_args(%{{.*}} = %[[KA]], %{{.*}}, %{{.*}} = %[[KB]], %{{.*}}, %{{.*}} = %[[C1]])
func.func @odd(%k: !kv, %c: index, %r: index, %n: index) -> index attributes {ring.grid = @five} {
  %0 = ring.rotate (%k dims [1]) of <zigzag over 5>[%r] extent %n channel <@five, 0> bidirectional
      carry(%c : index) : (!kv) -> index {
  ^bb0(%owner: index, %kt: !kv, %ct: index):
    %1 = arith.addi %ct, %owner : index
    ring.yield %1 : index
  }
  return %0 : index
}

// Of two ranks there is one way.
//
// CHECK-LABEL: func @pair
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c1{{.*}}
// CHECK: ring.start
// CHECK-NOT: ring.start
// CHECK: return
func.func @pair(%k: !kv, %c: index, %r: index, %n: index) -> index attributes {ring.grid = @two} {
  %0 = ring.rotate (%k dims [1]) of <zigzag over 2>[%r] extent %n channel <@two, 0> bidirectional
      carry(%c : index) : (!kv) -> index {
  ^bb0(%owner: index, %kt: !kv, %ct: index):
    %1 = arith.addi %ct, %owner : index
    ring.yield %1 : index
  }
  return %0 : index
}

// What comes back is attended second in a turn: it is waited for there, and not at
// the end of the turn before. What goes on starts in front of the attend that reads
// it.
//
// OVERLAP-LABEL: func @attended
// OVERLAP: %[[FIRST:.*]] = ring.start {{.*}} channel <@four, 3>
// OVERLAP: scf.for {{.*}} iter_args({{.*}}, %[[TOKEN:[^ ]+]] = %[[FIRST]])
// OVERLAP: %[[T:.*]] = ring.start {{.*}} channel <@four, 0>
// OVERLAP: ring.attend
// OVERLAP: %[[KB:.*]]:2 = ring.wait %[[TOKEN]]
// OVERLAP: %[[NEXT:.*]] = ring.start %[[KB]]#0, %[[KB]]#1 {{.*}} channel <@four, 3>
// OVERLAP: ring.attend
// OVERLAP: ring.wait %[[T]]
// OVERLAP: scf.yield {{.*}}, %[[NEXT]]
!m = tensor<1x1x8xf32>
func.func @attended(%q: !kv, %k: !kv, %v: !kv, %o: !kv, %m: !m, %l: !m, %r: index, %n: index)
    -> (!kv, !m, !m) attributes {ring.grid = @four} {
  %0:3 = ring.rotate (%k, %v dims [1, 1]) of <zigzag over 4>[%r] extent %n channel <@four, 0>
      bidirectional carry(%o, %m, %l : !kv, !m, !m) : (!kv, !kv) -> (!kv, !m, !m) {
  ^bb0(%owner: index, %kt: !kv, %vt: !kv, %ot: !kv, %mt: !m, %lt: !m):
    %o1, %m1, %l1 = ring.attend %q at <zigzag over 4>[%r] extent %n
        slice (%kt, %vt at %owner) of <zigzag over 4> extent %n
        state %ot, %mt, %lt scale 0.5 : (!kv, !kv, !kv) -> (!kv, !m)
    ring.yield %o1, %m1, %l1 : !kv, !m, !m
  }
  return %0#0, %0#1, %0#2 : !kv, !m, !m
}
