// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @contribute_c1(%v: f32, %i: index) {
  %t = tensor.empty() : tensor<8xf32>
  // expected-error @below {{must add to an argument of its region}}
  burst.contribute %v to %t[%i] : f32, tensor<8xf32>
  return
}

// -----

func.func @contribute_c1(%v: f32, %t: tensor<8xf32>, %i: index, %c: i1) {
  scf.if %c {
    // expected-error @below {{must add to an argument of its region}}
    burst.contribute %v to %t[%i] : f32, tensor<8xf32>
  }
  return
}

// -----

func.func @contribute_c2(%v: f32, %t: tensor<8xi32>, %i: index) {
  // expected-error @below {{needs a captured float or table of floats, got: 'tensor<8xi32>'}}
  burst.contribute %v to %t[%i] : f32, tensor<8xi32>
  return
}

// -----

func.func @contribute_c2(%v: f32, %t: index) {
  // expected-error @below {{needs a captured float or table of floats, got: 'index'}}
  burst.contribute %v to %t : f32, index
  return
}

// -----

func.func @contribute_c2(%v: f32, %t: tensor<f32>) {
  // expected-error @below {{needs a captured float or table of floats, got: 'tensor<f32>'}}
  burst.contribute %v to %t : f32, tensor<f32>
  return
}

// -----

func.func @contribute_c2(%v: f32, %t: memref<8xf32>, %i: index) {
  // expected-error @below {{needs a captured float or table of floats, got: 'memref<8xf32>'}}
  burst.contribute %v to %t[%i] : f32, memref<8xf32>
  return
}

// -----

func.func @contribute_c2(%v: f32, %t: tensor<8x8xf32>, %i: index) {
  // expected-error @below {{needs an index per dimension of 'tensor<8x8xf32>', got: 1}}
  burst.contribute %v to %t[%i] : f32, tensor<8x8xf32>
  return
}

// -----

func.func @contribute_c2(%v: f32, %t: f32, %i: index) {
  // expected-error @below {{needs an index per dimension of 'f32', got: 1}}
  burst.contribute %v to %t[%i] : f32, f32
  return
}

// -----

func.func @contribute_types(%v: bf16, %t: f32) {
  // expected-error @below {{operand #0 must be 64-bit float or 32-bit float}}
  burst.contribute %v to %t : bf16, f32
  return
}

// -----

// Only gradient regions contribute.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>, %t: tensor<8xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xf32>) {
        // expected-error @below {{'burst.contribute' op is not allowed in a score region}}
        burst.contribute %s to %c[%i] : f32, tensor<8xf32>
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}
