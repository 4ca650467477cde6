// RUN: burst-opt %s --ring-overlap | FileCheck %s
// RUN: burst-opt %s --ring-overlap | burst-opt --ring-overlap | FileCheck %s

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>

// The transfer of a slice starts before it is attended, and with it the index
// computation that it needs.
//
// CHECK-LABEL: func @above
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x4x1x4xf32>, %[[K:[^ ]+]]: tensor<1x4x1x4xf32>, %[[M:[^ ]+]]: tensor<1x1x4xf32>, %[[N:[^ ]+]]: index)
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[R:.*]] = shard.process_multi_index
// CHECK-NEXT: %[[P:.*]] = arith.addi %[[R]], %[[ONE]] : index
// CHECK-NEXT: %[[T:.*]] = ring.start %[[K]] dims [1] of <contiguous over 2>[%[[R]]] extent %[[N]] to %[[P]]
// CHECK-NEXT: ring.attend
// CHECK: ring.wait %[[T]]
func.func @above(%q: !q, %k: !q, %m: !m, %n: index) {
  %one = arith.constant 1 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 2> extent %n
      state %q, %m, %m scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %p = arith.addi %r, %one : index
  %t = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %k1 = ring.wait %t : !ring.token<!q>
  return
}

// In the body of a loop it goes to the top.
//
// CHECK-LABEL: func @loop
// CHECK: scf.for
// CHECK-NEXT: ring.start
// CHECK-NEXT: ring.attend
// CHECK: ring.wait
// CHECK: scf.yield
func.func @loop(%q: !q, %k: !q, %m: !m, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%ki = %k, %oi = %q) -> (!q, !q) {
    %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%c0] extent %n
        slice (%ki, %ki at %c0) of <contiguous over 2> extent %n
        state %oi, %m, %m scale 0.5 : (!q, !q, !q) -> (!q, !m)
    %t = ring.start %ki dims [1] of <contiguous over 2>[%c0] extent %n to %c1
        receive [%c1] from %c1 channel <@cp, 0> : (!q) -> !ring.token<!q>
    %k1 = ring.wait %t : !ring.token<!q>
    scf.yield %k1, %o1 : !q, !q
  }
  return
}

// It stays behind what it sends, and behind transfers before it; what it computes
// its turn of comes along.
//
// CHECK-LABEL: func @behind
// CHECK: %[[T:.*]] = ring.start
// CHECK-NEXT: %[[K1:.*]] = ring.wait %[[T]]
// CHECK-NEXT: %[[TURN:.*]] = arith.addi
// CHECK-NEXT: ring.start %[[K1]] {{.*}} segments(%{{.*}}[%[[TURN]]] : tensor<2x3x1xi1>)
// CHECK-NEXT: ring.attend
func.func @behind(%q: !q, %k: !q, %m: !m, %flags: tensor<2x3x1xi1>, %n: index) {
  %c0 = arith.constant 0 : index
  %t = ring.start %k dims [1] of <contiguous over 2>[%c0] extent %n to %c0
      receive [%c0] from %c0 channel <@cp, 0> : (!q) -> !ring.token<!q>
  %k1 = ring.wait %t : !ring.token<!q>
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%c0] extent %n
      slice (%k1, %k1 at %c0) of <contiguous over 2> extent %n
      state %q, %m, %m scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %turn = arith.addi %n, %n : index
  %t2 = ring.start %k1 dims [1] of <contiguous over 2>[%c0] extent %n to %c0
      receive [%c0] from %c0 segments(%flags[%turn] : tensor<2x3x1xi1>) channel <@cp, 0> : (!q) -> !ring.token<!q>
  return
}

// A slice that an attend makes cannot be sent before it, nor one that depends on
// what a call does.
//
// CHECK-LABEL: func @depends
// CHECK: %[[O:.*]], %{{.*}}, %{{.*}} = ring.attend
// CHECK: ring.start %[[O]]
// CHECK: call @something
// CHECK-NEXT: ring.start
func.func private @something()
func.func @depends(%q: !q, %k: !q, %m: !m, %n: index) {
  %c0 = arith.constant 0 : index
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%c0] extent %n
      slice (%k, %k at %c0) of <contiguous over 2> extent %n
      state %q, %m, %m scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %o1 dims [1] of <contiguous over 2>[%c0] extent %n to %c0
      receive [%c0] from %c0 channel <@cp, 0> : (!q) -> !ring.token<!q>
  call @something() : () -> ()
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%c0] extent %n
      slice (%k, %k at %c0) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t2 = ring.start %k dims [1] of <contiguous over 2>[%c0] extent %n to %c0
      receive [%c0] from %c0 channel <@cp, 0> : (!q) -> !ring.token<!q>
  return
}
