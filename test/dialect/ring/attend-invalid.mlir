// RUN: burst-opt %s -verify-diagnostics -split-input-file

// The state.
func.func @attend_c1(%q: tensor<1x8x4x16xf64>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xf64>' must be of 'f64', got: 'tensor<1x8x4x16xf32>' and 'tensor<1x4x8xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf64>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xbf16>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf64>, %m: tensor<1x4x8xf64>, %r: index, %n: index) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xbf16>' must be of 'f32', got: 'tensor<1x8x4x16xf64>' and 'tensor<1x4x8xf64>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xbf16>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf64>, tensor<1x4x8xf64>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x7x4x16xf32>, %m: tensor<1x4x7xf32>, %r: index, %n: index) {
  // expected-error @below {{o must have batch, sequence and heads of 'tensor<1x8x4x16xf32>', got: 'tensor<1x7x4x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x7x4x16xf32>, tensor<1x4x7xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x8x4xf32>, %r: index, %n: index) {
  // expected-error @below {{m and l must be (batch, heads, sequence) of 'tensor<1x8x4x16xf32>', got: 'tensor<1x8x4xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x8x4xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x12xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{o must have the head dim of the values, got: 'tensor<1x8x4x16xf32>' and 'tensor<1x8x2x12xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x12xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Slices.
func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf16>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{query, keys and values must have one element type, got: 'tensor<1x8x4x16xf32>', 'tensor<1x8x2x16xf16>' and 'tensor<1x8x2x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf16>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x7x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{a slice must have one batch, sequence and head count, got: 'tensor<1x8x2x16xf32>' and 'tensor<1x7x2x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x7x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x4x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{a slice must have one batch, sequence and head count, got: 'tensor<1x8x2x16xf32>' and 'tensor<1x8x4x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<2x8x2x16xf32>, %v: tensor<2x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{a key must have the query's batch and head dim, got: 'tensor<2x8x2x16xf32>' for 'tensor<1x8x4x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x8xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{a key must have the query's batch and head dim, got: 'tensor<1x8x2x8xf32>' for 'tensor<1x8x4x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x8xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x3x16xf32>, %v: tensor<1x8x3x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{query heads must be a multiple of key heads, got: 'tensor<1x8x4x16xf32>' and 'tensor<1x8x3x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x3x16xf32>, tensor<1x8x3x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Heads and head dims.
func.func @attend_c1(%q: tensor<1x8x0x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x0x16xf32>, %m: tensor<1x0x8xf32>, %r: index, %n: index) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x0x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x0x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x0x16xf32>, tensor<1x0x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x?x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x?x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x?x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x0x16xf32>, %v: tensor<1x8x0x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x0x16xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x0x16xf32>, tensor<1x8x0x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x?xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x4x?xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x?xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x257xf32>, %o: tensor<1x8x4x?xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x4x?xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x257xf32>) -> (tensor<1x8x4x?xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x257xf32>, %o: tensor<1x8x4x257xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x4x257xf32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x257xf32>) -> (tensor<1x8x4x257xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Layouts.
func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{layouts must have as many parts, got: #ring.layout<zigzag over 2> and #ring.layout<zigzag over 4>}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 4> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<8x4xf32>, %r: index, %n: index) {
  // expected-error @below {{operand #8 must be 3D tensor of}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<8x4xf32>)
  return
}

// -----

// Flags for some pairs only.
func.func @attend_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index, %p: tensor<2x2x2x1xi1>) {
  // expected-error @below {{takes flags as tensor<2x2x2x2xi1>, of static sizes, got: 'tensor<2x2x2x1xi1>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m pairs(%p : tensor<2x2x2x1xi1>) scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index, %p: tensor<2x2x?x2xi1>) {
  // expected-error @below {{takes flags as tensor<2x2x1x2xi1>, of static sizes, got: 'tensor<2x2x?x2xi1>'}}
  %0:3 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m pairs(%p : tensor<2x2x?x2xi1>) scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// A buffer of flags, where all else are tensors.
func.func @attend_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index, %p: memref<2x2x2x2xi1>) {
  // expected-error @below {{takes flags as tensor<2x2x2x2xi1>, of static sizes, got: 'memref<2x2x2x2xi1>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m pairs(%p : memref<2x2x2x2xi1>) scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// A scale that is not finite.
func.func @attend(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{scale must be finite, got: 0x7FF0000000000000 : f64}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 0x7FF0000000000000
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Regions are those of burst.attention.
func.func @attend_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{must yield ('i1') from a mask region, got: ('index')}}
        burst.yield %i : index
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{op is not allowed in a score region}}
        %x = tensor.empty() : tensor<4xf32>
        burst.yield %s : f32
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{the score region must have the arguments ('f32', }}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      score(%s : f64, %b, %h, %i, %j, %sq, %sk) {
        burst.yield %s : f64
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index, %t: memref<4xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'memref<4xi32>'}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : memref<4xi32>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{captures and bounds are those of a mask region, got none}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.constant true
        burst.yield %may, %may : i1, i1
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @attend_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index, %t: i32) {
  // expected-error @below {{the bounds region must have the arguments}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : i32) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.constant true
        burst.yield %may, %may : i1, i1
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Names are gone at this level.
func.func @syntax(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0
      // expected-error @below {{expected '('}}
      mask causal
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Syntax.
func.func @syntax(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  // expected-error @below {{unknown attribute: "ring.foo"}}
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m scale 1.0 {ring.foo = 1}
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %r: index, %n: index) {
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m 
      // expected-error @below {{expected 'scale'}}
      {mine}
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @syntax(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, 
              // expected-note @below {{prior use here}}
              %r: index, %n: index) {
  %0:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %v at %r) of <zigzag over 2> extent %n
      state %o, %m, %m 
      // expected-error @below {{use of value '%r' expects different type than prior uses: 'tensor<2x2x2x2xi1>' vs 'index'}}
      pairs(%r : tensor<2x2x2x2xi1>) scale 1.0
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

// Two slices, and types without those of the slice.
func.func @attend_slice(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  %0:3 = ring.attend %q at <zigzag over 2>[%n] extent %n
      // expected-error @below {{expected 'of'}}
      slice (%q, %q at %n), (%q, %q at %n) of <zigzag over 2> extent %n
      state %q, %m, %m scale 1.0 : (tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @attend_slice(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{expects the types of query, key and value, then those of o and m}}
  %0:3 = ring.attend %q at <zigzag over 2>[%n] extent %n
      slice (%q, %q at %n) of <zigzag over 2> extent %n
      state %q, %m, %m scale 1.0 : (tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>)
  return
}

// -----

// Segments of operands.
func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{operand group starting at #8 requires 0 or 1 element, but found 2}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{operand segment 0 must have one operand, got: 0}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 0, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{operand #9 must be 4D tensor of 1-bit signless integer values}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{size mismatch in attribute conversion: 12 vs 15}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{'operandSegmentSizes' attribute cannot have negative elements}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, -1, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{requires attribute 'keyLayout'}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{requires attribute 'scale'}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

// Regions and results.
func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{op expected 3 regions}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @generic(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{on tensors needs its results, got: 2}}
  %0:2 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{must give a state of the types it takes, got: }}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf64>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{must give a state of the types it takes, got: }}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q, %m, %m) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x3xf32>)
  return
}

// -----

// What is first or last.
func.func @attend_c1(%q: tensor<1x2x1x4xf32>, %r: index, %n: index) {
  // expected-error @below {{the state of 'tensor<1x2x1x4xf32>' must be of 'f32', got: 'tensor<1x2x1x4xf64>' and 'tensor<1x1x2xf32>'}}
  %0:2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%q, %q at %r) of <contiguous over 2> extent %n
      first last scale 1.0
      : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf64>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x2x1x4xf32>, %r: index, %n: index) {
  // expected-error @below {{o must have the head dim of the values, got: 'tensor<1x2x1x8xf32>' and 'tensor<1x2x1x4xf32>'}}
  %0:2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%q, %q at %r) of <contiguous over 2> extent %n
      first last scale 1.0
      : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> (tensor<1x2x1x8xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x2x1x4xf32>, %r: index, %n: index) {
  // expected-error @below {{makes (batch, sequence, heads, dim), then (batch, heads, sequence), got: 'tensor<1x1x2xf32>', 'tensor<1x1x2xf32>'}}
  %0:2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%q, %q at %r) of <contiguous over 2> extent %n
      first last scale 1.0
      : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> (tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @attend_c1(%q: tensor<1x2x1x4xf32>, %n: index) {
  // expected-error @below {{needs o, m and l of a state, or none of them}}
  %0:3 = "ring.attend"(%q, %n, %n, %q, %q, %n, %n, %q) <{
      keyLayout = #ring.layout<contiguous over 2>, queryLayout = #ring.layout<contiguous over 2>, scale = 1.0 : f64,
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0>}> ({}, {}, {})
      : (tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, index, index, tensor<1x2x1x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return
}

// -----

func.func @attend_c4(%q: memref<1x2x1x4xf32>, %m: memref<1x1x2xf32>, %r: index, %n: index) {
  // expected-error @below {{on buffers is written into o, m and l where it is first, into out and lse where it is last, got 3 buffers}}
  ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%q, %q at %r) of <contiguous over 2> extent %n
      first last into %q, %m, %m scale 1.0
      : (memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>) -> ()
  return
}

// -----

func.func @attend_c4(%q: memref<1x2x1x4xf32>, %m: memref<1x1x2xf32>, %r: index, %n: index) {
  // expected-error @below {{on buffers is written into o, m and l where it is first, into out and lse where it is last, got 2 buffers}}
  ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%q, %q at %r) of <contiguous over 2> extent %n
      state %q, %m, %m into %q, %m scale 1.0
      : (memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>, memref<1x2x1x4xf32>, memref<1x1x2xf32>) -> ()
  return
}

// -----

func.func @types(%q: tensor<1x2x1x4xf32>, %m: tensor<1x1x2xf32>, %n: index) {
  // expected-error @below {{makes ranked tensors, got: 'index', 'index'}}
  %0:2 = ring.attend %q at <contiguous over 2>[%n] extent %n
      slice (%q, %q at %n) of <contiguous over 2> extent %n
      state %q, %m, %m last scale 1.0
      : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> (index, index)
  return
}
