// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// Tensors that hold as many positions as it is said, but others.

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @layout}}
func.func @layout(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes queries that are laid out as dimension 1 of 8 positions, contiguous over 2 as if they were laid out as dimension 1 of 8 positions, striped 1 over 2}}
  %o1, %m1, %l1 = ring.attend %q at <striped over 2>[%r] extent %n
      slice (%k, %v at %r) of <striped over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>
#t = #ring.shard<#ring.layout<striped over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @layout_of_argument}}
func.func @layout_of_argument(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #t}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes keys that are laid out as dimension 1 of 8 positions, striped 1 over 2 as if they were laid out as dimension 1 of 8 positions, contiguous over 2}}
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>
#t = #ring.shard<#ring.layout<contiguous over 2>, dim 3 extent 8>

// expected-note @below {{in the program of a rank of @dimension_of_argument}}
func.func @dimension_of_argument(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #t}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes keys that are laid out as dimension 3 of 8 positions, contiguous over 2 as if they were laid out as dimension 1 of 8 positions, contiguous over 2}}
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>
#t = #ring.shard<#ring.layout<striped over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @layout_of_result}}
func.func @layout_of_result(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #t}) attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 0, hop 0: returns as result 0 what is laid out as dimension 1 of 8 positions, contiguous over 2 as if it were laid out as dimension 1 of 8 positions, striped 1 over 2}}
  return %out : !q
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @result_without_layout}}
func.func @result_without_layout(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> !q attributes {ring.grid = @cp} {
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
  // expected-error @below {{schedule refused: rank 0, hop 0: returns as result 0 a shard, and has no 'ring.shard' there}}
  return %out : !q
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @layout}}
func.func @layout(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: sends what is laid out as dimension 1 of 8 positions, contiguous over 2 as if it were laid out as dimension 1 of 8 positions, striped 1 over 2}}
  %t = ring.start %k, %v dims [1, 1] of <striped over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @dimension}}
func.func @dimension(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: sends what is laid out as dimension 1 of 8 positions, contiguous over 2 as if it were laid out as dimension 3 of 8 positions, contiguous over 2}}
  %t = ring.start %k, %v dims [3, 3] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  return
}
