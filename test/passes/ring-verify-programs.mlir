// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// Programs that ring-verify cannot run.

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @division}}
func.func @division(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: divides 1 by 0}}
  %x = arith.divsi %c1, %c0 : index
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @outside}}
func.func @outside(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: reads a table outside of its bounds, at [0, 8, 0, 0]}}
  %x = tensor.extract %q[%r, %n, %r, %r] : !q
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @forever}}
func.func @forever(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: runs a loop with the step 0}}
  scf.for %i = %c0 to %c2 step %c0 {
  }
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @unknown(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{'tensor.empty' op cannot be evaluated on 'tensor<4xi32>'}}
  %x = tensor.empty() : tensor<4xi32>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @large(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{cannot be evaluated: a table has at most}}
  %x = tensor.generate {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<4611686018427387904xindex>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @dynamic(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{cannot be evaluated: its shape must be static}}
  %x = tensor.generate %n {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<?xindex>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @owner}}
func.func @owner(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %s0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: names rank 2 as owner, of 2 ranks}}
  %0:5 = ring.segment %s0 of <contiguous over 2>[%c2] extent %n
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @segment}}
func.func @segment(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %s0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %p2 = arith.addi %p, %next : index
  // expected-error @below {{schedule refused: rank 0, hop 0: names segment 2 of 1}}
  %0:5 = ring.segment %p2 of <contiguous over 2>[%r] extent %n
  return
}

// -----

shard.grid @cp(shape = 2)
shard.grid @other(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @grid}}
func.func @grid(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: names the grid @other, the program runs on @cp}}
  %x = shard.process_multi_index on @other axes = [0] : index
  return
}

// -----

shard.grid @cp(shape = 2)
shard.grid @other(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @grid_shape}}
func.func @grid_shape(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: names the grid @other, the program runs on @cp}}
  %x = shard.grid_shape @other : index
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-error @below {{has no body to run}}
func.func private @body(!q {ring.shard = #s}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @calls_rank(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  call @rank() : () -> ()
  return
}

func.func private @rank() {
  // expected-error @below {{stands in a function that a rank's program calls, which must not depend on the rank nor call further}}
  %r = shard.process_multi_index on @cp axes = [0] : index
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @calls_caller(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  call @caller() : () -> ()
  return
}

func.func private @caller() {
  // expected-error @below {{stands in a function that a rank's program calls, which must not depend on the rank nor call further}}
  call @caller() : () -> ()
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @declared(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{calls a function without a body: nowhere}}
  call @nowhere() : () -> ()
  return
}

func.func private @nowhere()
