// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// What ring-verify says of programs that store scores.

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

func.func @good(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @twice}}
func.func @twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  // expected-error @below {{schedule refused: rank 0, hop 0: scores query segment 0 with segment 0 of rank 0 a second time}}
  %s2 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s1 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s2 state %o, %m, %l : !s, !q, !m
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @other_scale}}
func.func @other_scale(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  // expected-error @below {{schedule refused: rank 0, hop 0: has another mask, score, scale or layout than the scores before it}}
  %s2 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s1 scale 0.25
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s2 state %o, %m, %l : !s, !q, !m
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @other_keys}}
func.func @other_keys(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  // expected-error @below {{schedule refused: rank 0, hop 0: scores slices of other tensors than the scores before it}}
  %s2 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%v at %r) of <contiguous over 1> extent %n into %s1 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s2 state %o, %m, %l : !s, !q, !m
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @no_scores}}
func.func @no_scores(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no scores}}
  %p, %o1, %m1, %l1 = ring.softmax %s0 state %o, %m, %l : !s, !q, !m
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @softmax_twice}}
func.func @softmax_twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no scores}}
  %p2, %o2, %m2, %l2 = ring.softmax %p state %o1, %m1, %l1 : !s, !q, !m
  %o3, %m3, %l3 = ring.weigh %p2, (%v at %r) of <contiguous over 1> extent %n
      state %o2, %m2, %l2 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o3, %m3, %l3 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @score_weights}}
func.func @score_weights(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: writes scores that ring.scores did not make, or that are weights already}}
  %s2 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %p scale 0.5
      : (!q, !q) -> !s
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @no_weights}}
func.func @no_weights(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: takes what are no weights}}
  %o2, %m2, %l2 = ring.weigh %s0, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @weigh_twice}}
func.func @weigh_twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: weighs segment 0 of rank 0 for query segment 0 a second time}}
  %o3, %m3, %l3 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %o2, %m2, %l2 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o3, %m3, %l3 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @unweighed}}
func.func @unweighed(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: lacks query segment 0 with segment 0 of rank 0, which no attend has computed}}
  %out, %lse = ring.finalize %o1, %m1, %l1 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

shard.grid @one(shape = 1)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 1>, dim 1 extent 4>
#l = #ring.shard<#ring.layout<contiguous over 1>, dim 2 extent 4>

// expected-note @below {{in the program of a rank of @no_softmax}}
func.func @no_softmax(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @one} {
  %r = arith.constant 0 : index
  %n = arith.constant 4 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 1>[%r] extent %n
      slice (%k at %r) of <contiguous over 1> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  %oa, %ma, %la = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: adds to a state that is of no ring.softmax}}
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 1> extent %n
      state %oa, %ma, %la : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}

// -----

// Half of the keys are scored only: the sum of a row would be too small.

shard.grid @two(shape = 2)

!q = tensor<1x4x1x4xf32>
!s = tensor<1x1x4x8xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>
#l = #ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8>

// expected-note @below {{in the program of a rank of @lacks}}
func.func @lacks(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    -> (!q {ring.shard = #s}, !m {ring.shard = #l}) attributes {ring.grid = @two} {
  %r = shard.process_multi_index on @two axes = [0] : index
  %n = arith.constant 8 : index
  %s0 = ring.scores %q extent %n : !q -> !s
  %s1 = ring.score %q at <contiguous over 2>[%r] extent %n
      slice (%k at %r) of <contiguous over 2> extent %n into %s0 scale 0.5
      : (!q, !q) -> !s
  %o, %m, %l = ring.init %q : !q -> !q, !m
  // expected-error @below {{schedule refused: rank 0, hop 0: lacks the scores of query segment 0 with segment 0 of rank 1}}
  %p, %o1, %m1, %l1 = ring.softmax %s1 state %o, %m, %l : !s, !q, !m
  %o2, %m2, %l2 = ring.weigh %p, (%v at %r) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 : !s, !q, !q, !m
  %out, %lse = ring.finalize %o2, %m2, %l2 : !q, !m -> !q
  return %out, %lse : !q, !m
}
