// RUN: burst-opt %s --ring-drop-empty | FileCheck %s

// What an attend needs is asked at the top of the program: one whose sizes,
// captures or query are made further down must be left alone.

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>

// CHECK-LABEL: func @sizes
// CHECK: ring.attend
func.func @sizes(%q: !q, %k: !q, %m: !m, %n: index) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %sk = arith.addi %n, %c1 : index
    %o, %m1, %l1 = ring.attend %q at <contiguous over 2>[%c0] extent %n
        slice (%k, %k at %c0) of <contiguous over 2> extent %sk
        state %q, %m, %m scale 0.5
        mask(%b, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %j, %i : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %j0, %i1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
  }
  return
}

// CHECK-LABEL: func @query
// CHECK: ring.attend
func.func @query(%q: !q, %k: !q, %m: !m, %n: index) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %t = %c0 to %n step %c1 iter_args(%qt = %q) -> !q {
    %o, %m1, %l1 = ring.attend %qt at <contiguous over 2>[%c0] extent %n
        slice (%k, %k at %c0) of <contiguous over 2> extent %n
        state %q, %m, %m scale 0.5
        mask(%b, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %j, %i : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %j0, %i1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
    scf.yield %qt : !q
  }
  return
}
