// RUN: burst-opt %s --ring-overlap | FileCheck %s

// What the regions of an index computation use must stay in front of it.

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>

// CHECK-LABEL: func @nested
// CHECK: %[[X:.*]] = arith.addi
// CHECK: %[[P:.*]] = scf.if
// CHECK: scf.yield %[[X]]
// CHECK: ring.start {{.*}} to %[[P]]
// CHECK: ring.attend
func.func @nested(%q: !q, %k: !q, %m: !m, %n: index, %c: i1) {
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%n] extent %n
      slice (%k, %k at %n) of <contiguous over 2> extent %n
      state %q, %m, %m scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %x = arith.addi %n, %n : index
  %p = scf.if %c -> index {
    scf.yield %x : index
  } else {
    scf.yield %n : index
  }
  %t = ring.start %k dims [1] of <contiguous over 2>[%n] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  return
}
