// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file
// RUN: sed /expected-/d %s | burst-opt - --ring-verify=allow-needless -split-input-file -o /dev/null 2>&1 | count 0

// What arrives and is not needed.

// Rank 0 attends nothing of rank 1, and gets its shard.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @all}}
func.func @all(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %need = arith.constant dense<[[[[true]], [[false]]], [[[true]], [[true]]]]> : tensor<2x2x1x1xi1>
  %o0, %m0, %l0 = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o0, %m0, %l0 scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.cmpi slt, %j0, %i1 : index
        %must = arith.cmpi sle, %j1, %i0 : index
        burst.yield %may, %must : i1, i1
      } : (!q, !q, !q) -> (!q, !m)
  // expected-error @below {{schedule refused: rank 0, hop 0: receives segment 0 of the shard of rank 1, in tensor 0, and neither reads it nor sends it on; ring-drop-empty flags what is needed, where none are given all is sent, or the option allow-needless of ring-verify lets it pass}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 pairs(%need : tensor<2x2x1x1xi1>) scale 0.5
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

// -----

// The same, and flags say so.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @flagged}}
func.func @flagged(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %moves = arith.constant dense<[[[true]], [[true]]]> : tensor<2x1x1xi1>
  %need = arith.constant dense<[[[[true]], [[false]]], [[[true]], [[true]]]]> : tensor<2x2x1x1xi1>
  %o0, %m0, %l0 = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o0, %m0, %l0 scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.cmpi slt, %j0, %i1 : index
        %must = arith.cmpi sle, %j1, %i0 : index
        burst.yield %may, %must : i1, i1
      } : (!q, !q, !q) -> (!q, !m)
  // expected-error @below {{schedule refused: rank 0, hop 0: receives segment 0 of the shard of rank 1, in tensor 0, and neither reads it nor sends it on; its flags must leave that out, or the option allow-needless of ring-verify lets it pass}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p segments(%moves[%c0] : tensor<2x1x1xi1>) channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 pairs(%need : tensor<2x2x1x1xi1>) scale 0.5
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

// -----

// Flags leave it out.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @needed(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %moves = arith.constant dense<[[[true]], [[false]]]> : tensor<2x1x1xi1>
  %need = arith.constant dense<[[[[true]], [[false]]], [[[true]], [[true]]]]> : tensor<2x2x1x1xi1>
  %o0, %m0, %l0 = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o0, %m0, %l0 scale 0.5
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
      receive [%p] from %p segments(%moves[%c0] : tensor<2x1x1xi1>) channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 pairs(%need : tensor<2x2x1x1xi1>) scale 0.5
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

// -----

// Queries travel with their keys and values, and stay unused.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @queries}}
func.func @queries(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o0, %m0, %l0 = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o0, %m0, %l0 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  // expected-error @below {{schedule refused: rank 0, hop 0: receives segment 0 of the shard of rank 1, in tensor 2, and neither reads it nor sends it on; ring-drop-empty flags what is needed, where none are given all is sent, or the option allow-needless of ring-verify lets it pass}}
  %t = ring.start %k, %v, %q dims [1, 1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q, !q) -> !ring.token<!q, !q, !q>
  %k1, %v1, %q1 = ring.wait %t : !ring.token<!q, !q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// A state returns to its owner, which joins it, though nobody has attended with it.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @empty}}
func.func @empty(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o0, %m0, %l0 = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o0, %m0, %l0 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  // Queries of which only the sizes are taken.
  %q0 = arith.constant dense<false> : tensor<1x1x1xi1>
  %u = ring.start %q dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p segments(%q0[%c0] : tensor<1x1x1xi1>) channel <@cp, 1> : (!q) -> !ring.token<!q>
  %q1 = ring.wait %u : !ring.token<!q>
  %o3, %m3, %l3 = ring.init %q1 : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 2: receives segment 0 of its partial result from rank 1, in tensor 0, for which nothing was computed; ring-drop-empty flags what is needed, where none are given all is sent, or the option allow-needless of ring-verify lets it pass}}
  %w = ring.start %o3, %m3, %l3 dims [1, 2, 2] of <contiguous over 2>[%p] extent %n to %p
      receive [%r] from %p channel <@cp, 2> : (!q, !m, !m) -> !ring.token<!q, !m, !m>
  %o4, %m4, %l4 = ring.wait %w : !ring.token<!q, !m, !m>
  %o5, %m5, %l5 = ring.merge (%o2, %m2, %l2) with (%o4, %m4, %l4)
      of <contiguous over 2>[%r] extent %n : !q, !m
  %out, %lse = ring.finalize %o5, %m5, %l5 : !q, !m -> !q
  return %out : !q
}
