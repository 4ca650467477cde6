// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// Gradients by captured tables: the ranks' parts together are complete.

shard.grid @cp(shape = 1)

!q = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

func.func @whole(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !l {ring.shard = #l}, %do: !q {ring.shard = #s},
    %t: tensor<4xf32>) -> (tensor<4xf32> {ring.partial}) attributes {ring.grid = @cp} {
  %n = arith.constant 4 : index
  %false = arith.constant false
  %r = shard.process_multi_index on @cp axes = [0] : index
  %delta = ring.delta %o, %do : !q, !q -> !l
  %dq = ring.zero %q : !q -> !q
  %dk = ring.zero %k : !q -> !q
  %dv = ring.zero %v : !q -> !q
  %dt = ring.zero %t : tensor<4xf32> -> tensor<4xf32>
  %0:4 = ring.attend_grad (%q, %do, %lse, %delta at %r) of <contiguous over 1> extent %n
      slice (%k, %v at %r) of <contiguous over 1> extent %n
      into %dq, %dk, %dv, %dt captures [0] scale 1.0
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<4xf32>) {
        %x = tensor.extract %c[%j] : tensor<4xf32>
        %y = arith.addf %s, %x : f32
        burst.yield %y : f32
      }
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : tensor<4xf32>) {
        burst.yield %w : f32
      }
      : (!q, !q, !l, !l, !q, !q) -> (!q, !q, !q, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}

// -----

shard.grid @cp(shape = 1)

!q = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @no_part}}
func.func @no_part(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !l {ring.shard = #l}, %do: !q {ring.shard = #s},
    %t: tensor<4xf32>) -> (tensor<4xf32>) attributes {ring.grid = @cp} {
  %n = arith.constant 4 : index
  %false = arith.constant false
  %r = shard.process_multi_index on @cp axes = [0] : index
  %delta = ring.delta %o, %do : !q, !q -> !l
  %dq = ring.zero %q : !q -> !q
  %dk = ring.zero %k : !q -> !q
  %dv = ring.zero %v : !q -> !q
  %dt = ring.zero %t : tensor<4xf32> -> tensor<4xf32>
  %0:4 = ring.attend_grad (%q, %do, %lse, %delta at %r) of <contiguous over 1> extent %n
      slice (%k, %v at %r) of <contiguous over 1> extent %n
      into %dq, %dk, %dv, %dt captures [0] scale 1.0
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<4xf32>) {
        %x = tensor.extract %c[%j] : tensor<4xf32>
        %y = arith.addf %s, %x : f32
        burst.yield %y : f32
      }
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : tensor<4xf32>) {
        burst.yield %w : f32
      }
      : (!q, !q, !l, !l, !q, !q) -> (!q, !q, !q, tensor<4xf32>)
  // expected-error @below {{returns as result 0 a part of a gradient, and has no 'ring.partial' there}}
  return %0#3 : tensor<4xf32>
}

// -----

shard.grid @cp(shape = 1)

!q = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @nothing}}
func.func @nothing(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !l {ring.shard = #l}, %do: !q {ring.shard = #s},
    %t: tensor<4xf32>) -> (tensor<4xf32> {ring.partial}) attributes {ring.grid = @cp} {
  %n = arith.constant 4 : index
  %false = arith.constant false
  %r = shard.process_multi_index on @cp axes = [0] : index
  %delta = ring.delta %o, %do : !q, !q -> !l
  %dq = ring.zero %q : !q -> !q
  %dk = ring.zero %k : !q -> !q
  %dv = ring.zero %v : !q -> !q
  %dt = ring.zero %t : tensor<4xf32> -> tensor<4xf32>
  %0:4 = ring.attend_grad (%q, %do, %lse, %delta at %r) of <contiguous over 1> extent %n
      slice (%k, %v at %r) of <contiguous over 1> extent %n
      into %dq, %dk, %dv, %dt captures [0] scale 1.0
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<4xf32>) {
        %x = tensor.extract %c[%j] : tensor<4xf32>
        %y = arith.addf %s, %x : f32
        burst.yield %y : f32
      }
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : tensor<4xf32>) {
        burst.yield %w : f32
      }
      : (!q, !q, !l, !l, !q, !q) -> (!q, !q, !q, tensor<4xf32>)
  // expected-error @below {{returns as result 0 parts of a gradient to which nothing was added}}
  return %dt : tensor<4xf32>
}

// -----

shard.grid @cp(shape = 1)

!q = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @a_pair_less}}
func.func @a_pair_less(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !l {ring.shard = #l}, %do: !q {ring.shard = #s},
    %t: tensor<4xf32>) -> (tensor<4xf32> {ring.partial}) attributes {ring.grid = @cp} {
  %n = arith.constant 4 : index
  %none = arith.constant dense<false> : tensor<1x1x1x1xi1>
  %r = shard.process_multi_index on @cp axes = [0] : index
  %delta = ring.delta %o, %do : !q, !q -> !l
  %dq = ring.zero %q : !q -> !q
  %dk = ring.zero %k : !q -> !q
  %dv = ring.zero %v : !q -> !q
  %dt = ring.zero %t : tensor<4xf32> -> tensor<4xf32>
  %0:4 = ring.attend_grad (%q, %do, %lse, %delta at %r) of <contiguous over 1> extent %n
      slice (%k, %v at %r) of <contiguous over 1> extent %n
      into %dq, %dk, %dv, %dt captures [0] pairs(%none : tensor<1x1x1x1xi1>) scale 1.0
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<4xf32>) {
        %x = tensor.extract %c[%j] : tensor<4xf32>
        %y = arith.addf %s, %x : f32
        burst.yield %y : f32
      }
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : tensor<4xf32>) {
        burst.yield %w : f32
      }
      : (!q, !q, !l, !l, !q, !q) -> (!q, !q, !q, tensor<4xf32>)
  // expected-error @below {{returns as result 0 parts of a gradient by a table, which lack query segment 0 of rank 0 with segment 0 of rank 0}}
  return %0#3 : tensor<4xf32>
}
