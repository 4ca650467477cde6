// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @scores_c1(%q: tensor<1x8x4x16xbf16>, %n: index) {
  // expected-error @below {{scores must be (batch, heads, sequence, keys) of 'tensor<1x8x4x16xbf16>' in 'f32', got: 'tensor<1x8x4x32xf32>'}}
  %s = ring.scores %q extent %n : tensor<1x8x4x16xbf16> -> tensor<1x8x4x32xf32>
  return
}

// -----

func.func @scores_c1(%q: tensor<1x8x4x16xf32>, %n: index) {
  // expected-error @below {{in 'f32', got: 'tensor<1x4x8x32xf64>'}}
  %s = ring.scores %q extent %n : tensor<1x8x4x16xf32> -> tensor<1x4x8x32xf64>
  return
}

// -----

func.func @scores_form(%q: tensor<1x8x4x16xf32>, %n: index, %b: memref<1x4x8x32xf32>) {
  // expected-error @below {{works on tensors or on buffers, got both}}
  "ring.scores"(%q, %n, %b) : (tensor<1x8x4x16xf32>, index, memref<1x4x8x32xf32>) -> ()
  return
}

// -----

func.func @score_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x3x16xf32>, %r: index, %n: index,
                    %s: tensor<1x4x8x32xf32>) {
  // expected-error @below {{heads of which the query has a multiple, got: 'tensor<1x8x3x16xf32>' for 'tensor<1x8x4x16xf32>'}}
  %t = ring.score %q at <contiguous over 2>[%r] extent %n
      slice (%k at %r) of <contiguous over 2> extent %n into %s scale 0.5
      : (tensor<1x8x4x16xf32>, tensor<1x8x3x16xf32>) -> tensor<1x4x8x32xf32>
  return
}

// -----

func.func @score_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x4x16xf32>, %r: index, %n: index,
                    %s: tensor<1x4x9x32xf32>) {
  // expected-error @below {{scores must be (batch, heads, sequence, keys)}}
  %t = ring.score %q at <contiguous over 2>[%r] extent %n
      slice (%k at %r) of <contiguous over 2> extent %n into %s scale 0.5
      : (tensor<1x8x4x16xf32>, tensor<1x8x4x16xf32>) -> tensor<1x4x9x32xf32>
  return
}

// -----

func.func @score_c1(%q: tensor<1x8x4x16xf32>, %r: index, %n: index, %s: tensor<1x4x8x32xf32>) {
  // expected-error @below {{layouts must have as many parts}}
  %t = ring.score %q at <contiguous over 2>[%r] extent %n
      slice (%q at %r) of <contiguous over 4> extent %n into %s scale 0.5
      : (tensor<1x8x4x16xf32>, tensor<1x8x4x16xf32>) -> tensor<1x4x8x32xf32>
  return
}

// -----

func.func @score_c2(%q: tensor<1x8x4x16xf32>, %r: index, %n: index, %s: tensor<1x4x8x32xf32>,
                    %x: tensor<2x2x1x1xi1>) {
  // expected-error @below {{takes flags as tensor<2x2x2x2xi1>, of static sizes, got: 'tensor<2x2x1x1xi1>'}}
  %t = ring.score %q at <zigzag over 2>[%r] extent %n
      slice (%q at %r) of <zigzag over 2> extent %n into %s pairs(%x : tensor<2x2x1x1xi1>) scale 0.5
      : (tensor<1x8x4x16xf32>, tensor<1x8x4x16xf32>) -> tensor<1x4x8x32xf32>
  return
}

// -----

func.func @score_c3(%q: tensor<1x8x4x16xf32>, %r: index, %n: index, %s: tensor<1x4x8x32xf32>) {
  %t = ring.score %q at <contiguous over 2>[%r] extent %n
      slice (%q at %r) of <contiguous over 2> extent %n into %s scale 0.5
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{must yield}}
        burst.yield %i : index
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x4x16xf32>) -> tensor<1x4x8x32xf32>
  return
}

// -----

func.func @score_types(%q: tensor<1x8x4x16xf32>, %r: index, %n: index, %s: tensor<1x4x8x32xf32>) {
  // expected-error @below {{expects the types of query and key, then that of the scores}}
  %t = ring.score %q at <contiguous over 2>[%r] extent %n
      slice (%q at %r) of <contiguous over 2> extent %n into %s scale 0.5
      : (tensor<1x8x4x16xf32>) -> tensor<1x4x8x32xf32>
  return
}

// -----

func.func @softmax_c1(%s: tensor<1x4x8x32xf32>, %o: tensor<1x9x4x16xf32>, %m: tensor<1x4x9xf32>) {
  // expected-error @below {{scores must be (batch, heads, sequence, keys) of 'tensor<1x9x4x16xf32>'}}
  %p, %o1, %m1, %l1 = ring.softmax %s state %o, %m, %m
      : tensor<1x4x8x32xf32>, tensor<1x9x4x16xf32>, tensor<1x4x9xf32>
  return
}

// -----

func.func @softmax_c1(%s: tensor<1x4x8x32xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x8x4xf32>) {
  // expected-error @below {{m and l must be (batch, heads, sequence) of 'tensor<1x8x4x16xf32>', got: 'tensor<1x8x4xf32>'}}
  %p, %o1, %m1, %l1 = ring.softmax %s state %o, %m, %m
      : tensor<1x4x8x32xf32>, tensor<1x8x4x16xf32>, tensor<1x8x4xf32>
  return
}

// -----

func.func @weigh_c1(%p: tensor<1x4x8x32xf32>, %v: tensor<1x8x3x16xf32>, %r: index, %n: index,
                    %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>) {
  // expected-error @below {{heads of which o has a multiple, got: 'tensor<1x8x3x16xf32>' for 'tensor<1x8x4x16xf32>'}}
  %o1, %m1, %l1 = ring.weigh %p, (%v at %r) of <contiguous over 4> extent %n state %o, %m, %m
      : tensor<1x4x8x32xf32>, tensor<1x8x3x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>
  return
}
