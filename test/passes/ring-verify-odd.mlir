// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// What no rank can evaluate is refused at the op.
shard.grid @cp(shape = 2)

func.func @poison() attributes {ring.grid = @cp} {
  // expected-error @below {{cannot be evaluated: it is no op on scalars}}
  %i = shard.process_linear_index on @cp : index
  return
}

// -----

// What stands for a loop must have become one.
shard.grid @cp(shape = 2)

!x = tensor<1x8x1x4xf32>
#x = #ring.shard<#ring.layout<zigzag over 2>, dim 1 extent 16>

// expected-note @below {{in the program of a rank}}
func.func @rotate(%x: !x {ring.shard = #x}) -> (!x {ring.shard = #x})
    attributes {ring.grid = @cp} {
  %n = arith.constant 16 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  // expected-error @below {{cannot be run: it stands for loops and transfers; run ring-lower-rotate first}}
  ring.rotate (%x dims [1]) of <zigzag over 2>[%r] extent %n channel <@cp, 0> : (!x) -> () {
  ^bb0(%owner: index, %t: !x):
    ring.yield
  }
  return %x : !x
}

// -----

// A loop without an end is given up.
shard.grid @cp(shape = 2)

// expected-note @below {{in the program of a rank}}
func.func @endless() attributes {ring.grid = @cp} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %far = arith.constant 4611686018427387904 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: does not end}}
  scf.for %i = %zero to %far step %one {
  }
  return
}

// -----

// A state of other rows than the queries': sizes are open, so the op passes.
shard.grid @cp(shape = 1)

!q = tensor<1x8x1x4xf32>
!k = tensor<1x?x1x4xf32>
!m = tensor<1x1x?xf32>
#q = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 8>
#k = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>

// expected-note @below {{in the program of a rank}}
func.func @rows(%q: !q {ring.shard = #q}, %k: !k {ring.shard = #k}) attributes {ring.grid = @cp} {
  %r = arith.constant 0 : index
  %sq = arith.constant 8 : index
  %sk = arith.constant 4 : index
  %o0, %m0, %l0 = ring.init %k : !k -> !k, !m
  // expected-error @below {{takes a state that has not the rows of its queries}}
  %o, %m, %l = ring.attend %q at <contiguous over 1>[%r] extent %sq
      slice (%k, %k at %r) of <contiguous over 1> extent %sk
      state %o0, %m0, %l0 scale 0.5 : (!q, !k, !k) -> (!k, !m)
  return
}

// -----

// A table that no machine holds.
shard.grid @cp(shape = 1)

func.func @table() -> i32 attributes {ring.grid = @cp} {
  // expected-error @below {{a table has at most 16777216 elements, got: 'tensor<1099511627776xi32>'}}
  %t = arith.constant dense<1> : tensor<1099511627776xi32>
  %c0 = arith.constant 0 : index
  %x = tensor.extract %t[%c0] : tensor<1099511627776xi32>
  return %x : i32
}
