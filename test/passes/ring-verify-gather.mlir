// RUN: burst-opt %s --ring-lower-gather --ring-verify -verify-diagnostics -split-input-file

// A type says another size than the layout.

shard.grid @cp(shape = 2)
!k = tensor<1x4x1x4xf32>
!all = tensor<1x8x1x4xf32>
!l = tensor<1x1x4xf32>
!la = tensor<1x1x8xf32>
// expected-note @below {{in the program of a rank}}
func.func @f(%q: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, %k: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, %v: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}) -> (!k {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>}, !l {ring.shard = #ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8>}) attributes {ring.grid = @cp} {
 %c0 = arith.constant 0 : index
 %c1 = arith.constant 1 : index
 %c2 = arith.constant 2 : index
 %n = arith.constant 8 : index
 %r = shard.process_multi_index on @cp axes = [0] : index
  // expected-error @below {{receives tensor 1 of 8 positions along dimension 1, its type says 3}}
 %o, %lse = ring.gather (%k, %v dims [1, 1]) of <contiguous over 2>[%r] extent %n channel <@cp, 0> : (!k, !k) -> (!k, !l) {
 ^bb0(%ka: tensor<1x?x1x4xf32>, %va: tensor<1x3x1x4xf32>):
 %vb = tensor.cast %va : tensor<1x3x1x4xf32> to tensor<1x?x1x4xf32>
 %x:2 = ring.attend %q at <contiguous over 2>[%r] extent %n slice (%ka, %vb at %c0) of <contiguous over 2, all> extent %n first last scale 0.5 : (!k, tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>) -> (!k, !l)
   ring.yield %x#0, %x#1 : !k, !l
 }
 return %o, %lse : !k, !l
}

// -----

// A state that is updated, and read as queries.

shard.grid @cp(shape = 1)
!k = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
// expected-note @below {{in the program of a rank}}
func.func @f(%q: !k {ring.shard = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>}) -> (!k {ring.shard = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>}, !l {ring.shard = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>}) attributes {ring.grid = @cp} {
 %n = arith.constant 4 : index
 %c0 = arith.constant 0 : index
 %i:3 = ring.init %q : !k -> !k, !l
  // expected-error @below {{attends with a query that is no shard of an argument}}
 %s:3 = ring.attend %i#0 at <contiguous over 1>[%c0] extent %n slice (%q, %q at %c0) of <contiguous over 1> extent %n state %i#0, %i#1, %i#2 scale 0.5 : (!k, !k, !k) -> (!k, !l)
 %o, %lse = ring.finalize %s#0, %s#1, %s#2 : !k, !l -> !k
 return %o, %lse : !k, !l
}
