// RUN: burst-opt %s -verify-diagnostics -split-input-file

// What cannot be captured.

// Of names.
func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: memref<8xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'memref<8xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : memref<8xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: vector<8xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'vector<8xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : vector<8xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<i32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<i32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<i32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<*xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<*xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<*xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<1x1x1x1x1xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<1x1x1x1x1xi32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<1x1x1x1x1xi32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xcomplex<f32>>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<8xcomplex<f32>>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<8xcomplex<f32>>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xui32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<8xui32>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<8xui32>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xi128>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<8xi128>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<8xi128>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: tensor<8xf80>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<8xf80>'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : tensor<8xf80>)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<2x8x4x16xf32>, %k: tensor<2x6x4x16xf32>, %t: i0) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'i0'}}
  %o, %lse = burst.attention %q, %k, %k mask documents(%t : i0)
      : (tensor<2x8x4x16xf32>, tensor<2x6x4x16xf32>, tensor<2x6x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

// Of regions.
func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: memref<8xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'memref<8xi32>'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : memref<8xi32>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: vector<8xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'vector<8xi32>'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : vector<8xi32>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: tensor<i32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<i32>'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<i32>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: tensor<*xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<*xi32>'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<*xi32>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: tensor<1x1x1x1x1xi32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<1x1x1x1x1xi32>'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<1x1x1x1x1xi32>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: tensor<8xui32>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<8xui32>'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xui32>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi128>) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'tensor<8xi128>'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xi128>) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: f128) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'f128'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : f128) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: i0) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'i0'}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : i0) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c6(%q: tensor<1x8x1x4xf32>, %t: none) {
  // expected-error @below {{captures must be scalars, or tables of scalars of rank 1 to 4, got: 'none'}}
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : none) {
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}
