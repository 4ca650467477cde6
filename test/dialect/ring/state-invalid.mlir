// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @init_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xf32>' must be of 'f32', got: 'tensor<1x8x4x16xf64>' and 'tensor<1x4x8xf64>'}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf32> -> tensor<1x8x4x16xf64>, tensor<1x4x8xf64>
  return
}

// -----

func.func @init_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xf32>' must be of 'f32', got: 'tensor<1x8x4x16xf32>' and 'tensor<1x4x8xf64>'}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf32> -> tensor<1x8x4x16xf32>, tensor<1x4x8xf64>
  return
}

// -----

func.func @init_c1(%q: tensor<1x8x4x16xf64>) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xf64>' must be of 'f64'}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf64> -> tensor<1x8x4x16xf32>, tensor<1x4x8xf32>
  return
}

// -----

func.func @init_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{o must have batch, sequence and heads of 'tensor<1x8x4x16xf32>', got: 'tensor<2x8x4x16xf32>'}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf32> -> tensor<2x8x4x16xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @init_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{o must have batch, sequence and heads of 'tensor<1x8x4x16xf32>', got: 'tensor<1x9x4x16xf32>'}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf32> -> tensor<1x9x4x16xf32>, tensor<1x4x9xf32>
  return
}

// -----

func.func @init_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{o must have batch, sequence and heads of 'tensor<1x8x4x16xf32>', got: 'tensor<1x8x2x16xf32>'}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf32> -> tensor<1x8x2x16xf32>, tensor<1x2x8xf32>
  return
}

// -----

func.func @init_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{m and l must be (batch, heads, sequence) of 'tensor<1x8x4x16xf32>', got: 'tensor<1x8x4xf32>'}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf32> -> tensor<1x8x4x16xf32>, tensor<1x8x4xf32>
  return
}

// -----

func.func @init_c1(%q: tensor<8x4x16xf32>) {
  // expected-error @below {{operand #0 must be 4D tensor of}}
  %0:3 = ring.init %q : tensor<8x4x16xf32> -> tensor<1x8x4x16xf32>, tensor<1x4x8xf32>
  return
}

// -----

func.func @init_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{result #0 must be 4D tensor of 64-bit float or 32-bit float values}}
  %0:3 = ring.init %q : tensor<1x8x4x16xf32> -> tensor<1x8x4x16xbf16>, tensor<1x4x8xf32>
  return
}

// -----

func.func @generic(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{m and l must have one shape and type, got: 'tensor<1x4x8xf32>' and 'tensor<1x4x9xf32>'}}
  %0:3 = "ring.init"(%q) : (tensor<1x8x4x16xf32>) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x9xf32>)
  return
}

// -----

func.func @merge_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x9xf32>, %n: index) {
  // expected-error @below {{m and l must be (batch, heads, sequence) of 'tensor<1x8x4x16xf32>', got: 'tensor<1x4x9xf32>'}}
  %0:3 = ring.merge (%o, %m, %m) with (%o, %m, %m) of <zigzag over 8>[%n] extent %n
      : tensor<1x8x4x16xf32>, tensor<1x4x9xf32>
  return
}

// -----

func.func @merge_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf64>, %n: index) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xf32>' must be of 'f32', got: 'tensor<1x8x4x16xf32>' and 'tensor<1x4x8xf64>'}}
  %0:3 = ring.merge (%o, %m, %m) with (%o, %m, %m) of <zigzag over 8>[%n] extent %n
      : tensor<1x8x4x16xf32>, tensor<1x4x8xf64>
  return
}

// -----

func.func @generic(%o: tensor<1x8x4x16xf32>, %u: tensor<1x8x4x15xf32>, %m: tensor<1x4x8xf32>, %n: index) {
  // expected-error @below {{needs states of one shape and type, got: }}
  %0:3 = "ring.merge"(%o, %m, %m, %u, %m, %m, %n, %n) {layout = #ring.layout<zigzag over 8>} : (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x8x4x15xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, index, index) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @generic(%o: tensor<1x8x4x16xf32>, %u: tensor<1x4x9xf32>, %m: tensor<1x4x8xf32>, %n: index) {
  // expected-error @below {{needs states of one shape and type, got: }}
  %0:3 = "ring.merge"(%o, %m, %m, %o, %m, %u, %n, %n) {layout = #ring.layout<zigzag over 8>} : (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x9xf32>, index, index) -> (tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @merge_c2(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %n: index, %a: tensor<8x9x3xi1>) {
  // expected-error @below {{takes flags as tensor<8xNx2xi1>, of static sizes, each or 1, got: 'tensor<8x9x3xi1>'}}
  %0:3 = ring.merge (%o, %m, %m) with (%o, %m, %m) of <zigzag over 8>[%n] extent %n segments(%a[%n] : tensor<8x9x3xi1>)
      : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>
  return
}

// -----

func.func @merge_c2(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>, %n: index, %a: tensor<8x9x2xi1>) {
  // expected-error @below {{takes flags as tensor<8xNx1xi1>, of static sizes, each or 1, got: 'tensor<8x9x2xi1>'}}
  %0:3 = ring.merge (%o, %m, %m) with (%o, %m, %m) of <contiguous over 8>[%n] extent %n segments(%a[%n] : tensor<8x9x2xi1>)
      : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>
  return
}

// -----

func.func @finalize_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>) {
  // expected-error @below {{out must have the shape of o, got: 'tensor<1x8x4x12xf32>' and 'tensor<1x8x4x16xf32>'}}
  %0:2 = ring.finalize %o, %m, %m : tensor<1x8x4x16xf32>, tensor<1x4x8xf32> -> tensor<1x8x4x12xf32>
  return
}

// -----

func.func @finalize_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>) {
  // expected-error @below {{o must have batch, sequence and heads of 'tensor<1x9x4x16xf32>', got: 'tensor<1x8x4x16xf32>'}}
  %0:2 = ring.finalize %o, %m, %m : tensor<1x8x4x16xf32>, tensor<1x4x8xf32> -> tensor<1x9x4x16xf32>
  return
}

// -----

func.func @finalize_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xf64>' must be of 'f64'}}
  %0:2 = ring.finalize %o, %m, %m : tensor<1x8x4x16xf32>, tensor<1x4x8xf32> -> tensor<1x8x4x16xf64>
  return
}

// -----

func.func @finalize_c1(%o: tensor<1x8x4x16xf64>, %m: tensor<1x4x8xf64>) {
  // expected-error @below {{the state of 'tensor<1x8x4x16xf32>' must be of 'f32'}}
  %0:2 = ring.finalize %o, %m, %m : tensor<1x8x4x16xf64>, tensor<1x4x8xf64> -> tensor<1x8x4x16xf32>
  return
}

// -----

func.func @finalize_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>) {
  // expected-error @below {{result #0 must be variadic of 4D tensor of}}
  %0:2 = ring.finalize %o, %m, %m : tensor<1x8x4x16xf32>, tensor<1x4x8xf32> -> tensor<1x8x4x16xi32>
  return
}

// -----

func.func @ranks(%q: memref<1x2x1x4xf32>, %m: memref<1x1x2xf32>) {
  // expected-error @below {{makes (batch, sequence, heads, dim), then (batch, heads, sequence), got: 'memref<1x1x2xf32>', 'memref<1x1x2xf32>', 'memref<1x1x2xf32>'}}
  ring.init %q into %m, %m, %m : memref<1x2x1x4xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>
  return
}

// -----

func.func @ranks(%q: memref<1x2x1x4xf32>, %m: memref<1x1x2xf32>) {
  // expected-error @below {{makes (batch, sequence, heads, dim), then (batch, heads, sequence), got: 'memref<1x1x2xf32>', 'memref<1x1x2xf32>'}}
  ring.finalize %q, %m, %m into %m, %m : memref<1x2x1x4xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>
  return
}

// -----

func.func @finalize_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>) {
  // expected-error @below {{m, l, lse and the largest scores must have one shape and type, got: 'tensor<1x4x8xf32>' and 'tensor<1x4x7xf32>'}}
  %0:3 = ring.finalize %o, %m, %m : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>
      -> tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x7xf32>
  return
}

// -----

func.func @finalize_c1(%o: memref<1x8x4x16xf32>, %m: memref<1x4x8xf32>) {
  // expected-error @below {{writes into out, lse and maybe the largest scores, got: 1}}
  ring.finalize %o, %m, %m into %o : memref<1x8x4x16xf32>, memref<1x4x8xf32>, memref<1x4x8xf32>, memref<1x8x4x16xf32>
  return
}

// -----

func.func @finalize_c1(%o: tensor<1x8x4x16xf32>, %m: tensor<1x4x8xf32>) {
  // expected-error @below {{on tensors needs its results, got: 4}}
  %0:4 = ring.finalize %o, %m, %m : tensor<1x8x4x16xf32>, tensor<1x4x8xf32>
      -> tensor<1x8x4x16xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>
  return
}
