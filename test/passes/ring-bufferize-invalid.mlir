// RUN: burst-opt %s --ring-bufferize -verify-diagnostics -split-input-file

// What has no form on buffers.

shard.grid @cp(shape = 1)
!q = tensor<1x8x1x4xf32>
!m = tensor<1x1x8xf32>
func.func @twice(%q: !q, %k: !q, %v: !q) -> (!q, !q) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 1>[%c0] extent %c8
      slice (%k, %v at %c0) of <contiguous over 1> extent %c8
      state %o, %m, %l scale 1.0 : (!q, !q, !q) -> (!q, !m)
  // expected-error @below {{updates a state that is used behind it too; buffers are updated in place}}
  %out, %lse = ring.finalize %o1, %m1, %l1 : !q, !m -> !q
  // expected-note @below {{used here}}
  %out2, %lse2 = ring.finalize %o1, %m1, %l1 : !q, !m -> !q
  return %out, %out2 : !q, !q
}

// -----

shard.grid @cp(shape = 1)
!q = tensor<1x8x1x4xf32>
!m = tensor<1x1x8xf32>
func.func @loop(%q: !q, %k: !q, %v: !q) -> (!q, !q) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %oi, %mi, %li = ring.init %q : !q -> !q, !m
  %o, %m, %l = ring.attend %q at <contiguous over 1>[%c0] extent %c8
      slice (%k, %v at %c0) of <contiguous over 1> extent %c8
      state %oi, %mi, %li scale 1.0 : (!q, !q, !q) -> (!q, !m)
  // expected-error @below {{updates a state that is used behind it too}}
  %s:3 = scf.for %t = %c0 to %c2 step %c1 iter_args(%ot = %o, %mt = %m, %lt = %l) -> (!q, !m, !m) {
    %on, %mn, %ln = ring.attend %q at <contiguous over 1>[%c0] extent %c8
        slice (%k, %v at %c0) of <contiguous over 1> extent %c8
        state %ot, %mt, %lt scale 1.0 : (!q, !q, !q) -> (!q, !m)
    scf.yield %on, %mn, %ln : !q, !m, !m
  }
  %out, %lse = ring.finalize %s#0, %s#1, %s#2 : !q, !m -> !q
  // expected-note @below {{used here}}
  %out2, %lse2 = ring.finalize %o, %m, %l : !q, !m -> !q
  return %out, %out2 : !q, !q
}

// -----

shard.grid @cp(shape = 1)
func.func @callee() { return }
func.func @call(%q: tensor<1x8x1x4xf32>) attributes {ring.grid = @cp} {
  // expected-error @below {{stands in the program of a rank; run inline before ring-bufferize}}
  func.call @callee() : () -> ()
  return
}

// -----

shard.grid @cp(shape = 1)
// expected-error @below {{returns a 'index'; results of a program are tensors}}
func.func @scalar(%q: tensor<1x8x1x4xf32>) -> index attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  return %c0 : index
}

// -----

shard.grid @cp(shape = 1)
func.func @choice(%q: tensor<1x8x1x4xf32>, %p: i1) -> tensor<1x8x1x4xf32> attributes {ring.grid = @cp} {
  // expected-error @below {{has tensors as results, which have no buffer of their own}}
  %r = scf.if %p -> tensor<1x8x1x4xf32> {
    scf.yield %q : tensor<1x8x1x4xf32>
  } else {
    scf.yield %q : tensor<1x8x1x4xf32>
  }
  return %r : tensor<1x8x1x4xf32>
}

// -----

shard.grid @cp(shape = 1)
func.func @tensors(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> attributes {ring.grid = @cp} {
  // expected-error @below {{works on tensors and has no form on buffers}}
  %r = arith.addf %q, %q : tensor<1x8x1x4xf32>
  return %r : tensor<1x8x1x4xf32>
}

// -----

shard.grid @cp(shape = 2)
!k = tensor<1x4x1x4xf32>
func.func @nested(%k: !k, %n: index) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %x = %c0 to %c8 step %c1 {
    %e = arith.addi %x, %c8 : index
    %0 = scf.for %t = %c0 to %c8 step %c1 iter_args(%kt = %k) -> (!k) {
      // expected-error @below {{needs an extent that its loop does not change}}
      %token = ring.start %kt dims [1] of <contiguous over 2>[%n] extent %e to %n receive [%n] from %n channel <@cp, 0>
          : (!k) -> !ring.token<!k>
      %kn = ring.wait %token : !ring.token<!k>
      scf.yield %kn : !k
    }
  }
  return
}

// -----

shard.grid @cp(shape = 2)
!k = tensor<1x4x1x4xf32>
func.func @extent(%k: !k, %n: index) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %0 = scf.for %t = %c0 to %c8 step %c1 iter_args(%kt = %k) -> (!k) {
    %e = arith.addi %t, %c8 : index
    // expected-error @below {{needs an extent that its loop does not change}}
    %token = ring.start %kt dims [1] of <contiguous over 2>[%n] extent %e to %n receive [%n] from %n channel <@cp, 0>
        : (!k) -> !ring.token<!k>
    %kn = ring.wait %token : !ring.token<!k>
    scf.yield %kn : !k
  }
  return
}

// -----

shard.grid @cp(shape = 2)
!k = tensor<1x4x1x4xf32>
func.func @other(%k: !k, %v: !k, %n: index) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %0 = scf.for %t = %c0 to %c8 step %c1 iter_args(%kt = %k) -> (!k) {
    // expected-error @below {{yields a tensor that is neither the state it came in with nor received in this turn}}
    scf.yield %v : !k
  }
  return
}

// -----

shard.grid @cp(shape = 1)
func.func @returned(%q: tensor<1x8x1x4xf32>) -> tensor<1x1x8xf32> attributes {ring.grid = @cp} {
  %o, %m, %l = ring.init %q : tensor<1x8x1x4xf32> -> tensor<1x8x1x4xf32>, tensor<1x1x8xf32>
  // expected-error @below {{returns a state, in which m has another unit than outside; finalize it first}}
  return %m : tensor<1x1x8xf32>
}

// -----

shard.grid @cp(shape = 1)
!o = tensor<1x8x1x4xf32>
!m = tensor<1x1x8xf32>
func.func @given(%o: !o, %m: !m, %l: !m) -> !o attributes {ring.grid = @cp} {
  // expected-error @below {{takes a state that does not come from a ring.init of this program}}
  %out, %lse = ring.finalize %o, %m, %l : !o, !m -> !o
  return %out : !o
}

// -----

shard.grid @cp(shape = 4)

!x = tensor<1x8x1x4xf32>

func.func @rotate(%x: !x) attributes {ring.grid = @cp} {
  %n = arith.constant 32 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  // expected-error @below {{stands for loops and transfers; run ring-lower-rotate and ring-lower-gather first}}
  ring.rotate (%x dims [1]) of <zigzag over 4>[%r] extent %n channel <@cp, 0> : (!x) -> () {
  ^bb0(%owner: index, %t: !x):
    ring.yield
  }
  return
}

// -----

// A gather has no double buffer.

shard.grid @cp(shape = 2)
!k = tensor<1x4x1x4xf32>
!all = tensor<1x8x1x4xf32>
!l = tensor<1x1x4xf32>
!la = tensor<1x1x8xf32>
#L = #ring.layout<contiguous over 2>

func.func @f(%q: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, %k: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, %v: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}) -> (!k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, !l {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8>}) attributes {ring.grid = @cp} {
 %c0 = arith.constant 0 : index
 %c1 = arith.constant 1 : index
 %c2 = arith.constant 2 : index
 %n = arith.constant 8 : index
 %r = shard.process_multi_index on @cp axes = [0] : index
 %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n all_gather channel <@cp, 0> : (!k, !k) -> !ring.token<!all, !all>
  // expected-error @below {{carries a token that is not that of a shift which its body starts}}
 %ti = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %t) -> (!ring.token<!all, !all>) {
   %a1, %b1 = ring.wait %x : !ring.token<!all, !all>
   %t2 = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n all_gather channel <@cp, 0> : (!k, !k) -> !ring.token<!all, !all>
   scf.yield %t2 : !ring.token<!all, !all>
 }
 %ka, %va = ring.wait %ti : !ring.token<!all, !all>
 %o, %lse = ring.attend %q at <contiguous over 2>[%r] extent %n slice (%ka, %va at %c0) of <contiguous over 2, all> extent %n first last scale 0.5 : (!k, !all, !all) -> (!k, !l)
 return %o, %lse : !k, !l
}

// -----

// A token that nothing starts again.

shard.grid @cp(shape = 2)
!k = tensor<1x4x1x4xf32>
!all = tensor<1x8x1x4xf32>
!l = tensor<1x1x4xf32>
func.func @f(%q: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, %k: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, %v: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}) -> (!k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, !l {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8>}) attributes {ring.grid = @cp} {
 %c0 = arith.constant 0 : index
 %c1 = arith.constant 1 : index
 %c2 = arith.constant 2 : index
 %n = arith.constant 8 : index
 %r = shard.process_multi_index on @cp axes = [0] : index
 %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %r receive[%r] from %r channel <@cp, 0> : (!k, !k) -> !ring.token<!k, !k>
  // expected-error @below {{carries a token that is not that of a shift which its body starts}}
 %ti = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %t) -> (!ring.token<!k, !k>) {
   scf.yield %x : !ring.token<!k, !k>
 }
 %ka, %va = ring.wait %ti : !ring.token<!k, !k>
 %o, %lse = ring.attend %q at <contiguous over 2>[%r] extent %n slice (%ka, %va at %r) of <contiguous over 2> extent %n first last scale 0.5 : (!k, !k, !k) -> (!k, !l)
 return %o, %lse : !k, !l
}

// -----

// What nobody uses goes.

shard.grid @cp(shape = 2)
!t = tensor<1x4x1x4xf32>
func.func @f(%q: !t {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}) attributes {ring.grid = @cp} {
  %z = ring.zero %q : !t -> !t
  return
}

// -----

shard.grid @cp(shape = 1)

// expected-error @below {{is on buffers already; ring-bufferize takes the programs that burst-to-ring leaves, once}}
func.func @twice(%q: memref<1x8x1x4xf32>) attributes {ring.grid = @cp} {
  return
}
