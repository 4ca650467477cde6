// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x9x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{out must have the shape}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x9x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x8x4xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{lse must have the shape}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x8x4xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x8xf32>) {
  // expected-error @below {{out_grad must have the shape}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x8xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{query_grad must have the shape}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x9x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{key_grad must have the shape}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{value_grad must have the shape}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x8xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %dlse: tensor<1x4x9xf32>) {
  // expected-error @below {{lse_grad must have the shape}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do, %dlse
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>, tensor<1x4x9xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %dlse: tensor<1x4x8xf64>) {
  // expected-error @below {{lse_grad of 'f32' attention must be of 'f32', got: 'f64'}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do, %dlse
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf64>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xbf16>) {
  // expected-error @below {{out_grad must have the element type of query, 'f32', got: 'bf16'}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xbf16>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{query_grad must have the element type of query, 'f32', got: 'bf16'}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xbf16>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %t: tensor<9xf32>) {
  // expected-error @below {{gives a gradient per captured table in `gradients`, got: 0 for 1}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xf32>) {
        burst.yield %s : f32
      } gradients [0]
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %t: tensor<9xf32>) {
  // expected-error @below {{gives a gradient per captured table in `gradients`, got: 1 for 0}}
  %0:4 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xf32>) {
        burst.yield %s : f32
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<9xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %t: tensor<9xf32>) {
  // expected-error @below {{`gradients` counts the captures of the score, of which there are 1, got: 1}}
  %0:4 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xf32>) {
        burst.yield %s : f32
      } gradients [1]
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<9xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %t: tensor<9xf32>) {
  // expected-error @below {{`gradients` names capture 0 twice}}
  %0:5 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xf32>) {
        burst.yield %s : f32
      } gradients [0, 0]
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<9xf32>, tensor<9xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %t: tensor<9xi32>) {
  // expected-error @below {{only a table of floats has a gradient, capture 0 is 'tensor<9xi32>'}}
  %0:4 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xi32>) {
        burst.yield %s : f32
      } gradients [0]
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<9xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>, %t: tensor<9xf32>) {
  // expected-error @below {{the gradient of capture 0 must be 'tensor<9xf32>', got: 'tensor<9xf64>'}}
  %0:4 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xf32>) {
        burst.yield %s : f32
      } gradients [0]
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<9xf64>)
  return
}

// -----

func.func @attention_backward_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{a gradient region is that of a score region, got none}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32) {
        burst.yield %w : f32
      }
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c3(%q: tensor<1x8x4x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{scale must be finite}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do scale 0x7FF0000000000000
      : (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x4x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_c3(%q: tensor<1x8x?x16xf32>, %k: tensor<1x8x2x16xf32>, %v: tensor<1x8x2x16xf32>, %o: tensor<1x8x4x16xf32>, %lse: tensor<1x4x8xf32>, %do: tensor<1x8x4x16xf32>) {
  // expected-error @below {{heads and head dims must be static}}
  %0:3 = burst.attention_backward %q, %k, %v, %o, %lse, %do
      : (tensor<1x8x?x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>)
      -> (tensor<1x8x?x16xf32>, tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32>)
  return
}

// -----

func.func @attention_backward_syntax(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{expects query, key, value, out, lse, the gradient of out and maybe that of lse, got: 5 operands}}
  %0:3 = burst.attention_backward %q, %q, %q, %q, %q
      : (tensor<1x8x4x16xf32>) -> (tensor<1x8x4x16xf32>)
  return
}
