// RUN: burst-opt %s -verify-diagnostics -split-input-file

// Regions, also as only the generic form can spell them.

// Ops of other dialects.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'tensor.empty' op is not allowed in a mask region, which is made of side-effect free ops of arith and math, and of tensor.extract on captured tables}}
        %x = tensor.empty() : tensor<4xi32>
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'func.call' op is not allowed in a mask region}}
        func.call @f() : () -> ()
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'shard.process_linear_index' op is not allowed in a mask region}}
        %x = shard.process_linear_index on @cp : index
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>, %u: i32) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xi32>, %e = %u : i32) {
        // expected-error @below {{'tensor.insert' op is not allowed in a mask region}}
        %x = tensor.insert %e into %c[%i] : tensor<8xi32>
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Ops for bounds only.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xi32>) {
        // expected-error @below {{'tensor.dim' op is not allowed in a mask region}}
        %x = tensor.dim %c, %b : tensor<8xi32>
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xi32>) {
        // expected-error @below {{'burst.table_range' op is not allowed in a mask region}}
        %min, %max = burst.table_range %c[%i to %j] : tensor<8xi32>
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Nested regions.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %c = arith.cmpi eq, %i, %j : index
        // expected-error @below {{'scf.if' op is not allowed in a mask region}}
        %x = scf.if %c -> i1 { scf.yield %c : i1 } else { scf.yield %c : i1 }
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Tables as a whole.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>, %t: tensor<8xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xf32>) {
        // expected-error @below {{'math.absf' op makes a 'tensor<8xf32>', but a mask region works on scalars}}
        %x = math.absf %c : tensor<8xf32>
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'arith.constant' op makes a 'tensor<4xi32>', but a mask region works on scalars}}
        %x = arith.constant dense<1> : tensor<4xi32>
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Vectors.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'arith.constant' op makes a 'vector<4xi32>', but a mask region works on scalars}}
        %x = arith.constant dense<1> : vector<4xi32>
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Scalars that are too wide, or too narrow.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'arith.constant' op makes a 'i128', but a mask region works on scalars of at most 64 bits}}
        %x = arith.constant 1 : i128
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'arith.constant' op makes a 'i0', but a mask region works on scalars of at most 64 bits}}
        %x = arith.constant 0 : i0
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'arith.extf' op makes a 'f128', but a score region works on scalars of at most 64 bits}}
        %x = arith.extf %s : f32 to f128
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// An op of the enclosing function.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>, %n: index) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{use of undeclared SSA value name}}
        %x = arith.addi %n, %i : index
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// What is yielded.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{must yield ('i1') from a mask region, got: ('index')}}
        burst.yield %i : index
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{must yield ('i1') from a mask region, got: ()}}
        burst.yield
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{must yield ('f32') from a score region, got: ('f32', 'f32')}}
        burst.yield %s, %s : f32, f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.constant true
        // expected-error @below {{must yield ('i1', 'i1') from a bounds region, got: ('i1')}}
        burst.yield %may : i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Arguments: the state type, and captures that differ.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{the score region must have the arguments ('f32', 'index', 'index', 'index', 'index', 'index', 'index'), got: ('f64', 'index', 'index', 'index', 'index', 'index', 'index')}}
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f64, %b, %h, %i, %j, %sq, %sk) {
        burst.yield %s : f64
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// The bounds have the captures of the mask.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>, %t: i32) {
  // expected-error @below {{the bounds region must have the arguments ('index', 'index', 'index', 'index', 'index', 'index', 'index', 'index', 'index', 'index', 'i32'), got: ('index', 'index', 'index', 'index', 'index', 'index', 'index', 'index', 'index', 'index')}}
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : i32) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.constant true
        burst.yield %may, %may : i1, i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Bounds without a mask, or with one that has a name.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{bounds are bounds of a mask region, got none}}
  %o, %lse = burst.attention %q, %q, %q
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.constant true
        burst.yield %may, %may : i1, i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{bounds are bounds of a mask region, got none}}
  %o, %lse = burst.attention %q, %q, %q
      mask causal bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.constant true
        burst.yield %may, %may : i1, i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Several blocks.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{the mask region must have one block, got: 2}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
    ^bb0(%b: index, %h: index, %i: index, %j: index, %sq: index, %sk: index):
      %keep = arith.constant true
      burst.yield %keep : i1
    ^bb1:
      burst.yield
    }, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Too few arguments.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{the mask region must have the arguments ('index', 'index', 'index', 'index', 'index', 'index'), got: ('index')}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
    ^bb0(%b: index):
      %keep = arith.constant true
      burst.yield %keep : i1
    }, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

// Another terminator, and none.
func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
    ^bb0(%b: index, %h: index, %i: index, %j: index, %sq: index, %sk: index):
      // expected-error @below {{'func.return' op expects parent op 'func.func'}}
      return
    }, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
    ^bb0(%b: index, %h: index, %i: index, %j: index, %sq: index, %sk: index):
      %c = arith.constant true
      // expected-error @below {{expects parent op}}
      scf.yield
    }, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{empty block: expect at least a terminator}}
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
    ^bb0(%b: index, %h: index, %i: index, %j: index, %sq: index, %sk: index):
    }, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> ({
    ^bb0(%b: index, %h: index, %i: index, %j: index, %sq: index, %sk: index):
      // expected-error @below {{block with no terminator}}
      %c = arith.constant true
    }, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.isnan' op is not allowed in a score region, it is not evaluated on every device: use arith.cmpf uno of the value and itself}}
        %x = math.isnan %s : f32
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.isinf' op is not allowed in a score region, it is not evaluated on every device: use math.absf, and arith.cmpf oeq with infinity}}
        %x = math.isinf %s : f32
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.isfinite' op is not allowed in a score region, it is not evaluated on every device: use math.absf, and arith.cmpf olt with infinity}}
        %x = math.isfinite %s : f32
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.isnormal' op is not allowed in a score region, it is not evaluated on every device: use math.absf, and arith.cmpf oge with the least normal number and olt with infinity}}
        %x = math.isnormal %s : f32
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.clampf' op is not allowed in a score region, it is not evaluated on every device: use arith.maximumf and arith.minimumf}}
        %x = math.clampf %s to [%s, %s] : f32
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.sincos' op is not allowed in a score region, it is not evaluated on every device: use math.sin and math.cos}}
        %x, %y = math.sincos %s : f32
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.ipowi' op is not allowed in a score region, it is not evaluated on every device: multiply with arith.muli}}
        %x = math.ipowi %i, %j : index
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'math.ctlz' op is not allowed in a score region, it is not evaluated on every device: use arith.shrui and arith.andi, or read a captured table}}
        %x = math.ctlz %i : index
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        // expected-error @below {{'arith.mulsi_extended' op is not allowed in a score region, it is not evaluated on every device: extend the operands and use arith.addi or arith.muli}}
        %x, %y = arith.mulsi_extended %i, %j : index
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        %i32 = arith.index_cast %i : index to i32
        // expected-error @below {{'arith.bitcast' op must cast between a float and an integer in a score region, got: 'i32' to 'i32'}}
        %x = arith.bitcast %i32 : i32 to i32
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

func.func @attention_c5(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        %i32 = arith.index_cast %i : index to i32
        // expected-error @below {{'arith.truncf' op makes a 'f8E5M2', but a score region computes with f16, bf16, f32 and f64}}
        %x = arith.truncf %s : f32 to f8E5M2
        burst.yield %s : f32
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}
