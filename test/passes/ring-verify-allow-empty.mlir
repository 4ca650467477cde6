// RUN: burst-opt %s --ring-verify=allow-empty --remarks-filter=ring-verify -verify-diagnostics
// RUN: not burst-opt %s --ring-verify 2>&1 | FileCheck %s

// CHECK: error: 'ring.attend' op schedule refused: rank 0, hop 1: computes query segment 0 with segment 0 of rank 1, of which the mask keeps nothing

// Rank 0 computes the slice of rank 1, of which a causal mask keeps nothing.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=empty | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=0, pairs=4, proved="for these ranks, sizes and tables", ranks=2}}
func.func @empty(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.cmpi slt, %j0, %i1 : index
        %must = arith.cmpi sle, %j1, %i0 : index
        burst.yield %may, %must : i1, i1
      } : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.cmpi slt, %j0, %i1 : index
        %must = arith.cmpi sle, %j1, %i0 : index
        burst.yield %may, %must : i1, i1
      } : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}
