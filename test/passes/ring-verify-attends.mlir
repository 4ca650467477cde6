// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// Attends, states and results that ring-verify refuses.

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @query_owner}}
func.func @query_owner(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: takes the queries for those of rank 0, they are those of 1}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%p] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @slice_owner}}
func.func @slice_owner(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: takes the keys for those of rank 1, they are those of 0}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %r) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @value_owner}}
func.func @value_owner(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: takes the values for those of rank 0, they are those of 1}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @no_such_owner}}
func.func @no_such_owner(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: names rank 8 as owner of the keys, of 2 ranks}}
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %n) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @extent}}
func.func @extent(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: has 4 queries, its layout says 1}}
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %c2
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @twice}}
func.func @twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 0, hop 0: computes query segment 0 with segment 0 of rank 0 a second time}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @another_scale}}
func.func @another_scale(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: has another mask, score, scale or layout than the state before it}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.25 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @swapped}}
func.func @swapped(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: attends slices of other tensors than the state before it}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%v1, %k1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

// The parts of a state belong together.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @parts}}
func.func @parts(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: takes o, m and l of different states}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @parts_swapped}}
func.func @parts_swapped(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: takes m and l for each other}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %l1, %m1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @parts_of_result}}
func.func @parts_of_result(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: takes o, m and l of different states}}
  %out, %lse = ring.finalize %o2, %m1, %l1 : !q, !m -> !q
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @merged_twice}}
func.func @merged_twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: merges states that have absorbed the same pair}}
  %o3, %m3, %l3 = ring.merge (%o1, %m1, %l1) with (%o2, %m2, %l2)
      of <contiguous over 2>[%r] extent %n : !q, !m
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @nothing}}
func.func @nothing(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: ends a state that has attended nothing}}
  %out, %lse = ring.finalize %o, %m, %l : !q, !m -> !q
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @lacking}}
func.func @lacking(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 0, hop 0: lacks query segment 0 with segment 0 of rank 1, which no attend has computed}}
  %out, %lse = ring.finalize %o1, %m1, %l1 : !q, !m -> !q
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @returns_shard}}
func.func @returns_shard(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: returns as result 0 what no ring.finalize has made}}
  return %q : !q
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @returns_state}}
func.func @returns_state(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: returns as result 0 what no ring.finalize has made}}
  return %o : !q
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @another_mask}}
func.func @another_mask(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 1, hop 1: has another mask, score, scale or layout than the state before it}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi slt, %j, %i : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.cmpi slt, %j0, %i1 : index
        %must = arith.cmpi sle, %j1, %i0 : index
        burst.yield %may, %must : i1, i1
      } : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

// Under a causal mask the first rank needs nothing of the second.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @empty}}
func.func @empty(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 0, hop 1: computes query segment 0 with segment 0 of rank 1, of which the mask keeps nothing}}
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
  return
}
