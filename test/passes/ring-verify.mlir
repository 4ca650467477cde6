// RUN: burst-opt %s --ring-verify --remarks-filter=ring-verify -verify-diagnostics -split-input-file
// RUN: burst-opt %s --ring-verify=allow-empty --remarks-filter=ring-verify -verify-diagnostics -split-input-file

// Programs that ring-verify proves, or cannot prove yet. The metrics count pairs
// of segments that are computed, and those that are dropped.

// Two ranks, each computes its own pair and that of the other.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=full | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=0, pairs=4, proved="for these ranks, sizes and tables", ranks=2}}
func.func @full(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
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
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// Each slice into a state of its own, then both are merged.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=merged | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=0, pairs=4, proved="for these ranks, sizes and tables", ranks=2}}
func.func @merged(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
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
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %o3, %m3, %l3 = ring.merge (%o1, %m1, %l1) with (%o2, %m2, %l2)
      of <contiguous over 2>[%r] extent %n : !q, !m
  %out, %lse = ring.finalize %o3, %m3, %l3 : !q, !m -> !q
  return %out : !q
}

// -----

// Causal: rank 1 needs the slice of rank 0, rank 0 needs nothing else.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=causal | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=1, pairs=3, proved="for these ranks, sizes and tables", ranks=2}}
func.func @causal(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  %moves = arith.constant dense<[[[true]], [[false]]]> : tensor<2x1x1xi1>
  %need = arith.constant dense<[[[[true]], [[false]]], [[[true]], [[true]]]]> : tensor<2x2x1x1xi1>
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

// One rank.
shard.grid @cp(shape = 1)

!q = tensor<1x8x1x4xf32>
!m = tensor<1x1x8xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 8>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=alone | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=0, pairs=1, proved="for these ranks, sizes and tables", ranks=1}}
func.func @alone(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 1>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 1> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o1, %m1, %l1 : !q, !m -> !q
  return %out : !q
}

// -----

// One position: rank 0 holds nothing, and an empty segment is never needed.
shard.grid @cp(shape = 2)

!q = tensor<1x?x1x4xf32>
!m = tensor<1x1x?xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 1>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=uneven | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=3, pairs=1, proved="for these ranks, sizes and tables", ranks=2}}
func.func @uneven(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 1 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// Two segments a rank.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<zigzag over 2>, dim 1 extent 8>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=zigzag | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=0, pairs=16, proved="for these ranks, sizes and tables", ranks=2}}
func.func @zigzag(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <zigzag over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <zigzag over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// Sizes that are not known.
shard.grid @cp(shape = 2)

!q = tensor<1x?x1x4xf32>
!m = tensor<1x1x?xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent ?>

// expected-remark @below {{[Missed] schedule-proved | Category:ring-verify | Function=dynamic | Reason="sizes or tables are known at run time only; the schedule is proved when they are bound (for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1)"}}
func.func @dynamic(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %n: index {ring.extent = array<i64: 0, 1, 1, 1, 2, 1>})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// A batch that is not known.
shard.grid @cp(shape = 2)

!q = tensor<?x4x1x4xf32>
!m = tensor<?x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-remark @below {{[Missed] schedule-proved | Category:ring-verify | Function=batch | Reason="sizes or tables are known at run time only; the schedule is proved when they are bound (for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1)"}}
func.func @batch(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
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
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// A table that is not known.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-remark @below {{[Missed] schedule-proved | Category:ring-verify | Function=captured | Reason="sizes or tables are known at run time only; the schedule is proved when they are bound (for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1)"}}
func.func @captured(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %ids: tensor<8xi32>)
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
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : tensor<8xi32>) {
        %x = tensor.extract %id[%i] : tensor<8xi32>
        %y = tensor.extract %id[%j] : tensor<8xi32>
        %keep = arith.cmpi eq, %x, %y : i32
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : tensor<8xi32>) {
        %x = tensor.extract %id[%i] : tensor<8xi32>
        %y = tensor.extract %id[%j] : tensor<8xi32>
        %keep = arith.cmpi eq, %x, %y : i32
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// A constant table is known. Without bounds every pair may be needed.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=constant | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=0, pairs=4, proved="for these ranks, sizes and tables", ranks=2}}
func.func @constant(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %ids = arith.constant dense<[0, 0, 0, 0, 1, 1, 1, 1]> : tensor<8xi32>
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : tensor<8xi32>) {
        %x = tensor.extract %id[%i] : tensor<8xi32>
        %y = tensor.extract %id[%j] : tensor<8xi32>
        %keep = arith.cmpi eq, %x, %y : i32
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !m)
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : tensor<8xi32>) {
        %x = tensor.extract %id[%i] : tensor<8xi32>
        %y = tensor.extract %id[%j] : tensor<8xi32>
        %keep = arith.cmpi eq, %x, %y : i32
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !m)
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out : !q
}

// -----

// A function that is no program of a rank, and one that has nothing to prove.
shard.grid @cp(shape = 2)

func.func @other(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// expected-remark @below {{[Passed] schedule-proved | Category:ring-verify | Function=empty | Reason="for every number of ranks it is not: of fewer than 3 ranks, whose number P - 1 is not told from 1", dropped=0, pairs=0, proved="for these ranks, sizes and tables", ranks=2}}
func.func @empty() attributes {ring.grid = @cp} {
  return
}
