// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @zero_c1(%k: tensor<1x8x2x4xf32>) {
  // expected-error @below {{makes what has the shape of 'tensor<1x8x2x4xf32>', got: 'tensor<1x9x2x4xf32>'}}
  %0 = ring.zero %k : tensor<1x8x2x4xf32> -> tensor<1x9x2x4xf32>
  return
}

// -----

func.func @zero_c1(%k: memref<1x8x2x4xbf16>) {
  // expected-error @below {{makes gradients of f32 or f64, got: 'memref<1x8x2x4xbf16>'}}
  ring.zero %k into %k : memref<1x8x2x4xbf16>, memref<1x8x2x4xbf16>
  return
}

// -----

func.func @zero_c1(%k: tensor<1x8x2x4xf32>) {
  // expected-error @below {{result #0 must be}}
  %0 = ring.zero %k : tensor<1x8x2x4xf32> -> tensor<1x8x2x4xbf16>
  return
}

// -----

func.func @zero_c1(%k: memref<f32>) {
  // expected-error @below {{makes gradients of 1 to 4 dimensions, got: 'memref<f32>'}}
  ring.zero %k into %k : memref<f32>, memref<f32>
  return
}

// -----

func.func @zero_form(%k: tensor<1x8x2x4xf32>, %b: memref<1x8x2x4xf32>) {
  // expected-error @below {{works on tensors or on buffers, got both}}
  "ring.zero"(%k, %b) : (tensor<1x8x2x4xf32>, memref<1x8x2x4xf32>) -> ()
  return
}

// -----

func.func @zero_form(%k: tensor<1x8x2x4xf32>) {
  // expected-error @below {{on tensors needs its results, got: 0}}
  "ring.zero"(%k) : (tensor<1x8x2x4xf32>) -> ()
  return
}

// -----

func.func @zero_form(%k: memref<1x8x2x4xf32>) {
  // expected-error @below {{needs a result, or a buffer to write into}}
  "ring.zero"(%k) : (memref<1x8x2x4xf32>) -> ()
  return
}

// -----

func.func @delta_c1(%o: tensor<1x8x2x4xf32>, %g: tensor<1x9x2x4xf32>) {
  // expected-error @below {{out and its gradient must have one shape and element type, got: 'tensor<1x8x2x4xf32>' and 'tensor<1x9x2x4xf32>'}}
  %0 = ring.delta %o, %g : tensor<1x8x2x4xf32>, tensor<1x9x2x4xf32> -> tensor<1x2x8xf32>
  return
}

// -----

func.func @delta_c1(%o: tensor<1x8x2x4xf32>, %g: tensor<1x8x2x4xbf16>) {
  // expected-error @below {{out and its gradient must have one shape and element type}}
  %0 = ring.delta %o, %g : tensor<1x8x2x4xf32>, tensor<1x8x2x4xbf16> -> tensor<1x2x8xf32>
  return
}

// -----

func.func @delta_c1(%o: tensor<1x8x2x4xf32>) {
  // expected-error @below {{delta must be (batch, heads, sequence) of 'tensor<1x8x2x4xf32>' in 'f32', got: 'tensor<1x8x2xf32>'}}
  %0 = ring.delta %o, %o : tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32> -> tensor<1x8x2xf32>
  return
}

// -----

func.func @delta_c1(%o: tensor<1x8x2x4xf32>) {
  // expected-error @below {{delta must be (batch, heads, sequence) of 'tensor<1x8x2x4xf32>' in 'f32', got: 'tensor<1x2x8xf64>'}}
  %0 = ring.delta %o, %o : tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32> -> tensor<1x2x8xf64>
  return
}

// -----

func.func @delta_c1(%o: tensor<1x8x2x4xf32>, %l: tensor<2x2x8xf32>) {
  // expected-error @below {{the gradient of lse must be (batch, heads, sequence) of 'tensor<1x8x2x4xf32>' in 'f32', got: 'tensor<2x2x8xf32>'}}
  %0 = ring.delta %o, %o less %l : tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<2x2x8xf32> -> tensor<1x2x8xf32>
  return
}

// -----

func.func @delta_c1(%o: memref<1x8x2x4xf32>) {
  // expected-error @below {{writes (batch, heads, sequence), got: 'memref<1x8x2x4xf32>'}}
  ring.delta %o, %o into %o : memref<1x8x2x4xf32>, memref<1x8x2x4xf32>, memref<1x8x2x4xf32>
  return
}

// -----

func.func @delta_form(%o: memref<1x8x2x4xf32>) {
  // expected-error @below {{needs a result, or a buffer to write into}}
  "ring.delta"(%o, %o) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (memref<1x8x2x4xf32>, memref<1x8x2x4xf32>) -> ()
  return
}

// -----

func.func @add_c1(%a: tensor<1x8x2x4xf32>, %b: tensor<1x8x2x4xf64>, %n: index) {
  // expected-error @below {{adds gradients of one shape and type, got: 'tensor<1x8x2x4xf32>' and 'tensor<1x8x2x4xf64>'}}
  %0 = "ring.add"(%a, %b, %n, %n) <{layout = #ring.layout<zigzag over 2>}> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf64>, index, index) -> tensor<1x8x2x4xf32>
  return
}

// -----

func.func @add_c1(%a: tensor<1x8x2x4xf32>, %b: tensor<1x9x2x4xf32>, %n: index) {
  // expected-error @below {{adds gradients of one shape and type, got: 'tensor<1x8x2x4xf32>' and 'tensor<1x9x2x4xf32>'}}
  %0 = "ring.add"(%a, %b, %n, %n) <{layout = #ring.layout<zigzag over 2>}> : (tensor<1x8x2x4xf32>, tensor<1x9x2x4xf32>, index, index) -> tensor<1x8x2x4xf32>
  return
}

// -----

func.func @add_c1(%a: tensor<1x8x2x4xf32>, %n: index) {
  // expected-error @below {{adds gradients of one shape and type}}
  %0 = "ring.add"(%a, %a, %n, %n) <{layout = #ring.layout<zigzag over 2>}> : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, index, index) -> tensor<1x9x2x4xf32>
  return
}

// -----

func.func @add_c2(%a: tensor<1x8x2x4xf32>, %n: index, %p: tensor<2x4x3xi1>) {
  // expected-error @below {{takes flags as tensor<2xNx2xi1>, of static sizes, each or 1, got: 'tensor<2x4x3xi1>'}}
  %0 = ring.add %a, %a of <zigzag over 2>[%n] extent %n segments(%p[%n] : tensor<2x4x3xi1>) : tensor<1x8x2x4xf32>
  return
}

// -----

func.func @round_c1(%a: tensor<1x8x2x4xf32>) {
  // expected-error @below {{makes what has the shape of 'tensor<1x8x2x4xf32>', got: 'tensor<1x8x3x4xbf16>'}}
  %0 = ring.round %a : tensor<1x8x2x4xf32> -> tensor<1x8x3x4xbf16>
  return
}

// -----

func.func @round_c1(%a: tensor<1x8x8x4xf32>) {
  // expected-error @below {{makes what has the shape of 'tensor<1x8x8x4xf32>', got: 'tensor<1x8x3x4xbf16>'}}
  %0 = ring.round %a : tensor<1x8x8x4xf32> -> tensor<1x8x3x4xbf16>
  return
}

// -----

func.func @round_c2(%a: tensor<1x8x8x4xf32>) {
  // expected-error @below {{rounds to a narrower type than 'f32', got: 'f64'}}
  %0 = ring.round %a : tensor<1x8x8x4xf32> -> tensor<1x8x2x4xf64>
  return
}

// -----

func.func @round_c1(%a: tensor<1x8x2x4xf32>) {
  // expected-error @below {{rounds to a narrower type than 'f32', got: 'f32'}}
  %0 = ring.round %a : tensor<1x8x2x4xf32> -> tensor<1x8x2x4xf32>
  return
}

// -----

func.func @round_c1(%a: tensor<1x8x2x4xf32>) {
  // expected-error @below {{rounds to a narrower type than 'f32', got: 'f64'}}
  %0 = ring.round %a : tensor<1x8x2x4xf32> -> tensor<1x8x2x4xf64>
  return
}

// -----

func.func @round_c1(%a: memref<1x8x2x4xf32>, %b: memref<1x8x2x4xi16>) {
  // expected-error @below {{rounds to a narrower type than 'f32', got: 'i16'}}
  ring.round %a into %b : memref<1x8x2x4xf32>, memref<1x8x2x4xi16>
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x300xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x300xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x300xf32>, %dk: tensor<1x8x2x300xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x2x300xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x300xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x300xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x300xf32>, tensor<1x8x2x300xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x?x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{heads and head dims must be static, at least 1, and head dims at most 256, got: 'tensor<1x8x?x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x?x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xbf16>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{query, outGrad, key and value must have one element type, got: 'tensor<1x8x2x4xf32>' and 'tensor<1x8x2x4xbf16>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xbf16>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<3x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{all tensors must have one batch, got: 'tensor<1x8x2x4xf32>' and 'tensor<3x8x2x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<3x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x9x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{outGrad must have sequence and heads of the query, got: 'tensor<1x9x2x4xf32>' for 'tensor<1x8x2x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x9x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x1x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{outGrad must have sequence and heads of the query, got: 'tensor<1x8x1x4xf32>' for 'tensor<1x8x2x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x1x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x7x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{a slice must have one sequence and head count, got: 'tensor<1x8x2x4xf32>' and 'tensor<1x7x2x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x7x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x1x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{a slice must have one sequence and head count, got: 'tensor<1x8x2x4xf32>' and 'tensor<1x8x1x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x4x4xf32>, %v: tensor<1x8x4x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{query heads must be a multiple of key heads, got: 'tensor<1x8x2x4xf32>' and 'tensor<1x8x4x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x5xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{key must have the head dim of the query, and value that of outGrad, got: 'tensor<1x8x2x4xf32>', 'tensor<1x8x2x5xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x5xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x5xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{key must have the head dim of the query, and value that of outGrad}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x5xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x8x2xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{lse must be (batch, heads, sequence) of 'tensor<1x8x2x4xf32>' in 'f32', got: 'tensor<1x8x2xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf64>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{delta must be (batch, heads, sequence) of 'tensor<1x8x2x4xf32>' in 'f32', got: 'tensor<1x2x8xf64>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf64>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c1(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{layouts must have as many parts, got: #ring.layout<zigzag over 2> and #ring.layout<zigzag over 4>}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 4> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c2(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{needs gradients by query, key, value and 0 captures, got: 2}}
  %0:2 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c2(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{`captures` names tables that the score captures, got: 0}}
  %0:4 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv, %dv captures [0] scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c2(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x9x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{the gradient by 'tensor<1x8x2x4xf32>' must have its shape, in 'f32', got: 'tensor<1x9x2x4xf32>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x9x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c2(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf64>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{the gradient by 'tensor<1x8x2x4xf32>' must have its shape, in 'f32', got: 'tensor<1x8x2x4xf64>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf64>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c3(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: tensor<2x1x2x2xi1>) {
  // expected-error @below {{takes flags as tensor<2x2x2x2xi1>, of static sizes, got: 'tensor<2x1x2x2xi1>'}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv pairs(%p : tensor<2x1x2x2xi1>) scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c4(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{scale must be finite}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 0x7FF0000000000000
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c4(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{a score region and its gradient region go together, got one of them}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        burst.yield %s : f32
      }
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_c4(%q: tensor<1x8x2x4xf32>, %do: tensor<1x8x2x4xf32>, %lse: tensor<1x2x8xf32>, %delta: tensor<1x2x8xf32>, %k: tensor<1x8x2x4xf32>, %v: tensor<1x8x2x4xf32>, %dq: tensor<1x8x2x4xf32>, %dk: tensor<1x8x2x4xf32>, %dv: tensor<1x8x2x4xf32>, %n: index, %p: i1) {
  // expected-error @below {{captures and bounds are those of a mask region, got none}}
  %0:3 = ring.attend_grad (%q, %do, %lse, %delta at %n) of <zigzag over 2> extent %n
      slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv scale 1.0
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %true = arith.constant true
        burst.yield %true, %true : i1, i1
      }
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
      -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}

// -----

func.func @attend_grad_syntax(%q: tensor<1x8x2x4xf32>, %r: tensor<1x2x8xf32>, %n: index) {
  // expected-error @below {{expects the types of query, outGrad, lse, delta, key and value, then those of the gradients: 3 results, or on buffers as many operands more}}
  %0:2 = ring.attend_grad (%q, %q, %r, %r at %n) of <zigzag over 2> extent %n slice (%q, %q at %n) of <zigzag over 2> extent %n into %q, %q, %q scale 1.0
      : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>)
  return
}
