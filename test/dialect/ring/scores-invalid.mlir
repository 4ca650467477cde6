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

// -----

func.func @probabilities_c1(%s: tensor<1x4x8x32xf32>, %lse: tensor<1x4x9xf32>) {
  // expected-error @below {{lse must be (batch, heads, sequence) of 'tensor<1x4x8x32xf32>', got: 'tensor<1x4x9xf32>'}}
  %p = ring.probabilities %s, %lse : tensor<1x4x8x32xf32>, tensor<1x4x9xf32>
  return
}

// -----

func.func @probabilities_c1(%s: tensor<1x4x8x32xf32>, %lse: tensor<1x4x8xf64>) {
  // expected-error @below {{lse must be (batch, heads, sequence) of 'tensor<1x4x8x32xf32>', got: 'tensor<1x4x8xf64>'}}
  %p = ring.probabilities %s, %lse : tensor<1x4x8x32xf32>, tensor<1x4x8xf64>
  return
}

// -----

func.func @probabilities_form(%s: tensor<1x4x8x32xf32>, %lse: memref<1x4x8xf32>) {
  // expected-error @below {{works on tensors or on buffers, got both}}
  %p = ring.probabilities %s, %lse : tensor<1x4x8x32xf32>, memref<1x4x8xf32>
  return
}

// -----

func.func @weigh_grad_c1(%do: tensor<1x8x4x16xf32>, %delta: tensor<1x4x8xf32>, %v: tensor<1x8x2x16xf32>,
                         %r: index, %n: index, %p: tensor<1x4x9x32xf32>) {
  // expected-error @below {{scores must be (batch, heads, sequence, keys) of 'tensor<1x8x4x16xf32>' in 'f32', got: 'tensor<1x4x9x32xf32>'}}
  %p1, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 4> extent %n into %p, %v scale 0.5
      : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x2x16xf32>, tensor<1x4x9x32xf32>,
        tensor<1x8x2x16xf32>
  return
}

// -----

func.func @weigh_grad_c1(%do: tensor<1x8x4x16xf32>, %delta: tensor<1x8x4xf32>, %v: tensor<1x8x2x16xf32>,
                         %r: index, %n: index, %p: tensor<1x4x8x32xf32>) {
  // expected-error @below {{delta must be (batch, heads, sequence) of 'tensor<1x4x8x32xf32>', got: 'tensor<1x8x4xf32>'}}
  %p1, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 4> extent %n into %p, %v scale 0.5
      : tensor<1x8x4x16xf32>, tensor<1x8x4xf32>, tensor<1x8x2x16xf32>, tensor<1x4x8x32xf32>,
        tensor<1x8x2x16xf32>
  return
}

// -----

func.func @weigh_grad_c1(%do: tensor<1x8x4x16xf32>, %delta: tensor<1x4x8xf32>, %v: tensor<1x8x3x16xf32>,
                         %r: index, %n: index, %p: tensor<1x4x8x32xf32>) {
  // expected-error @below {{the value must have the element type, batch and head dim of 'tensor<1x8x4x16xf32>', and heads of which that has a multiple, got: 'tensor<1x8x3x16xf32>'}}
  %p1, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 4> extent %n into %p, %v scale 0.5
      : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x3x16xf32>, tensor<1x4x8x32xf32>,
        tensor<1x8x3x16xf32>
  return
}

// -----

func.func @weigh_grad_c1(%do: tensor<1x8x4x16xbf16>, %delta: tensor<1x4x8xf32>, %v: tensor<1x8x2x16xbf16>,
                         %r: index, %n: index, %p: tensor<1x4x8x32xf32>, %dv0: tensor<1x8x2x16xf64>) {
  // expected-error @below {{a gradient by 'tensor<1x8x2x16xbf16>' must have its shape, in 'f32', got: 'tensor<1x8x2x16xf64>'}}
  %p1, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 4> extent %n into %p, %dv0 scale 0.5
      : tensor<1x8x4x16xbf16>, tensor<1x4x8xf32>, tensor<1x8x2x16xbf16>, tensor<1x4x8x32xf32>,
        tensor<1x8x2x16xf64>
  return
}

// -----

func.func @weigh_grad_c1(%do: tensor<1x8x4x16xf32>, %delta: tensor<1x4x8xf32>, %v: tensor<1x32x2x16xf32>,
                         %r: index, %n: index, %p: tensor<1x4x8x32xf32>) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor}}
  %p1, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 4, all> extent %n into %p, %v scale 0.5
      : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x32x2x16xf32>, tensor<1x4x8x32xf32>,
        tensor<1x32x2x16xf32>
  return
}

// -----

func.func @weigh_grad_c2(%do: tensor<1x8x4x16xf32>, %delta: tensor<1x4x8xf32>, %v: tensor<1x8x2x16xf32>,
                         %r: index, %n: index, %p: tensor<1x4x8x32xf32>) {
  // expected-error @below {{scale must be finite, got: 0x7FF0000000000000}}
  %p1, %dv = ring.weigh_grad (%do, %delta), (%v at %r) of <contiguous over 4> extent %n into %p, %v
      scale 0x7FF0000000000000
      : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x2x16xf32>, tensor<1x4x8x32xf32>,
        tensor<1x8x2x16xf32>
  return
}

// -----

func.func @score_grad_c1(%u: tensor<1x4x8x32xf32>, %q: tensor<1x9x4x16xf32>, %k: tensor<1x8x2x16xf32>,
                         %r: index, %n: index) {
  // expected-error @below {{scores must be (batch, heads, sequence, keys) of 'tensor<1x9x4x16xf32>'}}
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 4> extent %n into %q, %k
      : tensor<1x4x8x32xf32>, tensor<1x9x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x9x4x16xf32>,
        tensor<1x8x2x16xf32>
  return
}

// -----

func.func @score_grad_c1(%u: tensor<1x4x8x32xf32>, %q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x12xf32>,
                         %r: index, %n: index) {
  // expected-error @below {{the key must have the element type, batch and head dim of 'tensor<1x8x4x16xf32>', and heads of which that has a multiple, got: 'tensor<1x8x2x12xf32>'}}
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 4> extent %n into %q, %k
      : tensor<1x4x8x32xf32>, tensor<1x8x4x16xf32>, tensor<1x8x2x12xf32>, tensor<1x8x4x16xf32>,
        tensor<1x8x2x12xf32>
  return
}

// -----

func.func @score_grad_c1(%u: tensor<1x4x8x32xf32>, %q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>,
                         %r: index, %n: index, %dq0: tensor<1x8x2x16xf32>) {
  // expected-error @below {{a gradient by 'tensor<1x8x4x16xf32>' must have its shape, in 'f32', got: 'tensor<1x8x2x16xf32>'}}
  %dq, %dk = ring.score_grad %u, %q, (%k at %r) of <contiguous over 4> extent %n into %dq0, %k
      : tensor<1x4x8x32xf32>, tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>,
        tensor<1x8x2x16xf32>
  return
}

// -----

func.func @score_grad_tied(%u: tensor<1x4x8x32xf32>, %q: tensor<1x8x4x16xf32>, %r: index, %n: index) {
  // expected-error @below {{must give what has the types of what it updates, got: 'tensor<1x8x4x16xf32>' to 'tensor<1x?x4x16xf32>'}}
  %dq, %dk = "ring.score_grad"(%u, %q, %q, %r, %n, %q, %q)
      <{keyLayout = #ring.layout<contiguous over 4>}>
      : (tensor<1x4x8x32xf32>, tensor<1x8x4x16xf32>, tensor<1x8x4x16xf32>, index, index,
         tensor<1x8x4x16xf32>, tensor<1x8x4x16xf32>) -> (tensor<1x?x4x16xf32>, tensor<1x8x4x16xf32>)
  return
}
