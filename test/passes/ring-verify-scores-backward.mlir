// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// What ring-verify says of backward programs that store scores.

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

func.func @good(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @not_scored}}
func.func @not_scored(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s = ring.scores %q extent %n : !q -> !s
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no scores}}
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @lse_of_another}}
func.func @lse_of_another(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  // expected-error @below {{schedule refused: rank 0, hop 0: takes as lse what is neither an argument nor of ring.finalize}}
  %p = ring.probabilities %s, %delta : !s, !m
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @no_probabilities}}
func.func @no_probabilities(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %p = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no probabilities}}
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @twice_probabilities}}
func.func @twice_probabilities(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p0 = ring.probabilities %s, %lse : !s, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no scores}}
  %p = ring.probabilities %p0, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @weights_of_softmax}}
func.func @weights_of_softmax(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o0, %m0, %l0 = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s state %o0, %m0, %l0 : !s, !q, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no probabilities}}
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @another_scale}}
func.func @another_scale(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  // expected-error @below {{schedule refused: rank 0, hop 0: has the scale 0.25, and scores have 0.50}}
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.25 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @another_delta}}
func.func @another_delta(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %delta2 = ring.delta %o, %v : !q, !q -> !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes a delta that was made of another outGrad}}
  %u, %dv = ring.weigh_grad (%do, %delta2), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @weighed_twice}}
func.func @weighed_twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u0, %dv0 = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  // expected-error @below {{schedule refused: rank 0, hop 0: takes probabilities of keys of rank 0 that are gradients already}}
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %u0, %dv0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @gradient_of_keys}}
func.func @gradient_of_keys(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  // expected-error @below {{schedule refused: rank 0, hop 0: adds gradients by the value to those by something else}}
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %k0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %v0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @probabilities_for_gradients}}
func.func @probabilities_for_gradients(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no gradients by scores}}
  %dq, %dk = ring.score_grad %p, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @another_query}}
func.func @another_query(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  // expected-error @below {{schedule refused: rank 0, hop 0: takes another query than the scores}}
  %dq, %dk = ring.score_grad %u, %o, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @values_for_keys}}
func.func @values_for_keys(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  // expected-error @below {{schedule refused: rank 0, hop 0: takes slices of other tensors than the scores}}
  %dq, %dk = ring.score_grad %u, %q, (%v at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @added_twice}}
func.func @added_twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq0, %dk0 = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  // expected-error @below {{schedule refused: rank 0, hop 0: adds query segment 0 of rank 0 with segment 0 of rank 0 a second time to the gradient by the query}}
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %dq0, %dk0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @swapped}}
func.func @swapped(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  // expected-error @below {{schedule refused: rank 0, hop 0: adds gradients by the query to those by something else}}
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %k0, %q0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @never_added}}
func.func @never_added(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %p = ring.probabilities %s, %lse : !s, !m
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 1> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 1> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  // expected-error @below {{schedule refused: rank 0, hop 0: returns as result 0 a gradient to which nothing was added}}
  return %q0, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @one(shape = 2)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x8xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>
#l = #ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8>

// expected-note @below {{in the program of a rank of @lacks_scores}}
func.func @lacks_scores(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s},
    %o: !q {ring.shard = #s}, %lse: !m {ring.shard = #l}, %do: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !q {ring.shard = #s}, !q {ring.shard = #s}) attributes {ring.grid = @one} {
  %r = shard.process_multi_index on @one axes = [0] : index
  %n = arith.constant 8 : index
  %delta = ring.delta %o, %do : !q, !q -> !m
  %s0 = ring.scores %q extent %n : !q -> !s
  %s = ring.score %q at <contiguous over 2>[%r] extent %n
      slice (%k at %r) of <contiguous over 2> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %q0 = ring.zero %q : !q -> !q
  %k0 = ring.zero %k : !q -> !q
  %v0 = ring.zero %v : !q -> !q
  // expected-error @below {{schedule refused: rank 0, hop 0: lacks the scores of query segment 0 with segment 0 of rank 1}}
  %p = ring.probabilities %s, %lse : !s, !m
  %u, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 2> extent %n
      into %p, %v0 scale 0.5 : !q, !m, !q, !s, !q
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 2> extent %n
      into %q0, %k0 : !s, !q, !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}
