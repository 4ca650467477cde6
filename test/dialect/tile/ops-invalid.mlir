// RUN: burst-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{'tile.kernel' marks a function that takes the number of its task, an index, first, and has no results}}
func.func private @kernel(i32) attributes {tile.kernel}

// -----

// expected-error @below {{'tile.kernel' marks a function that takes}}
func.func private @kernel() attributes {tile.kernel}

// -----

// expected-error @below {{'tile.kernel' marks a function that takes}}
func.func private @kernel(index) -> index attributes {tile.kernel}

// -----

// expected-error @below {{'tile.shape' gives the tiles of a function rows and columns, from 1 to 16777216, got: array<i64: 96>}}
func.func private @program() attributes {tile.shape = array<i64: 96>}

// -----

// expected-error @below {{'tile.shape' gives the tiles of a function rows and columns, from 1 to 16777216, got: array<i64: 96, 0>}}
func.func private @program() attributes {tile.shape = array<i64: 96, 0>}

// -----

// expected-error @below {{columns, from 1 to 16777216, got: array<i64: 16777217, 1>}}
func.func private @program() attributes {tile.shape = array<i64: 16777217, 1>}

// -----

// expected-error @below {{unknown attribute: "tile.other"}}
func.func private @kernel(index) attributes {tile.other}

// -----

func.func @await_c1(%counters: memref<?x4xi32>, %i: index, %n: i32) {
  // expected-error @below {{needs an index for each dimension of 'memref<?x4xi32>', got: 1}}
  tile.await %counters[%i] is %n : memref<?x4xi32>
  return
}

// -----

func.func @launch_c1(%n: index) {
  // expected-error @below {{launches @nowhere, which is no kernel of this module}}
  tile.launch @nowhere[%n] reads() writes() with()
  return
}

// -----

func.func private @function(index)
func.func @launch_c1(%n: index) {
  // expected-error @below {{launches @function, which is no kernel of this module}}
  tile.launch @function[%n] reads() writes() with()
  return
}

// -----

func.func private @kernel(index, memref<4xf32>, index) attributes {tile.kernel}
func.func @launch_c1(%n: index, %a: memref<4xf32>) {
  // expected-error @below {{gives ('index', 'index', 'memref<4xf32>'), but @kernel takes ('index', 'memref<4xf32>', 'index')}}
  "tile.launch"(%n, %n, %a) <{kernel = @kernel, operandSegmentSizes = array<i32: 1, 0, 0, 0, 2>}> : (index, index, memref<4xf32>) -> ()
  return
}

// -----

func.func @load_c1(%view: memref<?xf32>, %block: memref<4x8xf32>) {
  // expected-error @below {{needs a view and a block of one rank, got: 'memref<?xf32>' and 'memref<4x8xf32>'}}
  tile.load %view, %block : memref<?xf32>, memref<4x8xf32>
  return
}

// -----

func.func @load_c1(%view: memref<?x8xf32, strided<[1, ?]>>, %block: memref<4x8xf32>) {
  // expected-error @below {{needs rows that are contiguous, got: 'memref<?x8xf32, strided<[1, ?]>>'}}
  tile.load %view, %block : memref<?x8xf32, strided<[1, ?]>>, memref<4x8xf32>
  return
}

// -----

func.func @load(%view: memref<?x8xf32>, %block: memref<?x8xf32>) {
  // expected-error @below {{operand #1 must be a tile or rows or a tile of bf16 or f16, but got 'memref<?x8xf32>'}}
  tile.load %view, %block : memref<?x8xf32>, memref<?x8xf32>
  return
}

// -----

func.func @load(%view: memref<?x8xi32>, %block: memref<4x8xf32>) {
  // expected-error @below {{operand #0 must be}}
  tile.load %view, %block : memref<?x8xi32>, memref<4x8xf32>
  return
}

// -----

func.func @store_c1(%view: memref<?x9xf32>, %block: memref<4x8xf32>) {
  // expected-error @below {{needs a view that is not larger than the block, got: 'memref<?x9xf32>' and 'memref<4x8xf32>'}}
  tile.store %block, %view : memref<4x8xf32>, memref<?x9xf32>
  return
}

// -----

func.func @store_c1(%view: memref<5xf32>, %block: memref<4xf32>) {
  // expected-error @below {{needs a view that is not larger than the block, got: 'memref<5xf32>' and 'memref<4xf32>'}}
  tile.store %block, %view : memref<4xf32>, memref<5xf32>
  return
}

// -----

func.func @pack_c1(%view: memref<?xf32>, %panels: memref<2x4x8xf32>) {
  // expected-error @below {{needs a view of two dimensions, got: 'memref<?xf32>'}}
  tile.pack %view, %panels : memref<?xf32>, memref<2x4x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<4x6xf32>, %b: memref<2x5x4xf32>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs M x K, N/W x K x W and M x N of one type, got: 'memref<4x6xf32>', 'memref<2x5x4xf32>' and 'memref<4x8xf32>'}}
  tile.multiply %a, %b, %c rows %n : memref<4x6xf32>, memref<2x5x4xf32>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<4x6xf32>, %b: memref<2x6x4xf32>, %c: memref<4x9xf32>) {
  // expected-error @below {{needs M x K, N/W x K x W and M x N of one type}}
  tile.multiply %a, %b, %c rows %n : memref<4x6xf32>, memref<2x6x4xf32>, memref<4x9xf32>
  return
}

// -----

func.func @multiply_c4(%n: index, %a: memref<4x6xf32>, %b: memref<2x6x4xf32>, %c: memref<4x?xf32>) {
  // expected-error @below {{needs M x K, N/W x K x W and M x N of one type}}
  tile.multiply %a, %b, %c rows %n : memref<4x6xf32>, memref<2x6x4xf32>, memref<4x?xf32>
  return
}

// -----

func.func @multiply_c4(%n: index, %a: memref<?x6xf32>, %b: memref<2x6x4xf32>, %c: memref<?x8xf32>) {
  // expected-error @below {{needs M x K, N/W x K x W and M x N of one type}}
  tile.multiply %a, %b, %c rows %n : memref<?x6xf32>, memref<2x6x4xf32>, memref<?x8xf32>
  return
}

// -----

func.func @multiply_c4(%n: index, %a: memref<4x6xf32>, %b: memref<2x6x?xf32>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs panels that are contiguous, got: 'memref<2x6x?xf32>'}}
  tile.multiply %a, %b, %c rows %n : memref<4x6xf32>, memref<2x6x?xf32>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<4x6xf32>, %b: memref<2x6x4xf64>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs M x K, N/W x K x W and M x N of one type}}
  tile.multiply %a, %b, %c rows %n : memref<4x6xf32>, memref<2x6x4xf64>, memref<4x8xf32>
  return
}

// -----

func.func @load_c2(%view: memref<?x8xbf16>, %block: memref<4x8xbf16>) {
  // expected-error @below {{takes numbers of 16 bits as they are, got: 'memref<?x8xbf16>' and factor 5.000000e-01}}
  tile.load %view, %block factor 0.5 : memref<?x8xbf16>, memref<4x8xbf16>
  return
}

// -----

func.func @load_c2(%view: memref<?x8xf16>, %block: memref<4x8xbf16>) {
  // expected-error @below {{takes numbers of 16 bits as they are, got: 'memref<?x8xf16>' and factor 1.000000e+00}}
  tile.load %view, %block : memref<?x8xf16>, memref<4x8xbf16>
  return
}

// -----

func.func @load(%view: memref<?xbf16>, %block: memref<4xbf16>) {
  // expected-error @below {{operand #1 must be a tile or rows or a tile of bf16 or f16, but got 'memref<4xbf16>'}}
  tile.load %view, %block : memref<?xbf16>, memref<4xbf16>
  return
}

// -----

func.func @fill(%block: memref<4x8xbf16>) {
  // expected-error @below {{operand #0 must be a tile or rows, but got 'memref<4x8xbf16>'}}
  tile.fill %block with 0.0 : memref<4x8xbf16>
  return
}

// -----

func.func @pack_c2(%view: memref<?x4xf32>, %panels: memref<2x2x8x2xbf16>) {
  // expected-error @below {{takes numbers of bf16 as they are, got: 'memref<?x4xf32>'}}
  tile.pack %view, %panels transposed : memref<?x4xf32>, memref<2x2x8x2xbf16>
  return
}

// -----

func.func @pack_c2(%view: memref<?x4xbf16>, %panels: memref<2x2x8x3xbf16>) {
  // expected-error @below {{needs panels that are contiguous pairs, got: 'memref<2x2x8x3xbf16>'}}
  tile.pack %view, %panels transposed : memref<?x4xbf16>, memref<2x2x8x3xbf16>
  return
}

// -----

func.func @pack(%view: memref<?x4xbf16>, %panels: memref<2x4x8xbf16>) {
  // expected-error @below {{operand #1 must be panels or panels of pairs of bf16, but got 'memref<2x4x8xbf16>'}}
  tile.pack %view, %panels transposed : memref<?x4xbf16>, memref<2x4x8xbf16>
  return
}

// -----

func.func @is_finite_c1(%panels: memref<2x?x8xf32>) {
  // expected-error @below {{needs panels that are contiguous, got: 'memref<2x?x8xf32>'}}
  %f = tile.is_finite %panels : memref<2x?x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<4x5xbf16>, %b: memref<2x3x4x2xbf16>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs M x K of bf16, N/W x K/2 x W x 2 of bf16 and M x N of f32, got: 'memref<4x5xbf16>', 'memref<2x3x4x2xbf16>' and 'memref<4x8xf32>'}}
  tile.multiply %a, %b, %c rows %n : memref<4x5xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<4x6xbf16>, %b: memref<2x3x4x2xbf16>, %c: memref<4x8xf64>) {
  // expected-error @below {{needs M x K of bf16, N/W x K/2 x W x 2 of bf16 and M x N of f32}}
  tile.multiply %a, %b, %c rows %n : memref<4x6xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf64>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<4x6xf32>, %b: memref<2x3x4x2xbf16>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs M x K, N/W x K x W and M x N of one type}}
  tile.multiply %a, %b, %c rows %n : memref<4x6xf32>, memref<2x3x4x2xbf16>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<6x4xbf16>, %b: memref<2x3x4x2xbf16>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs K/2 x M x 2 of bf16, N/W x K/2 x W x 2 of bf16 and M x N of f32, got: 'memref<6x4xbf16>', 'memref<2x3x4x2xbf16>' and 'memref<4x8xf32>'}}
  tile.multiply %a, %b, %c rows %n transposed : memref<6x4xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<3x4x4xbf16>, %b: memref<2x3x4x2xbf16>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs K/2 x M x 2 of bf16, N/W x K/2 x W x 2 of bf16 and M x N of f32, got: 'memref<3x4x4xbf16>'}}
  tile.multiply %a, %b, %c rows %n transposed : memref<3x4x4xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<3x4x2xbf16>, %b: memref<2x3x4x2xbf16>, %c: memref<3x8xf32>) {
  // expected-error @below {{needs M x K of bf16, N/W x K/2 x W x 2 of bf16 and M x N of f32, got: 'memref<3x4x2xbf16>'}}
  tile.multiply %a, %b, %c rows %n : memref<3x4x2xbf16>, memref<2x3x4x2xbf16>, memref<3x8xf32>
  return
}

// -----

func.func @multiply_c2(%n: index, %a: memref<3x4x2xbf16>, %b: memref<2x3x4x2xbf16>, %c: memref<4x8xf32>, %seen: memref<3x4xf32>) {
  // expected-error @below {{needs a score of the type of 'memref<4x8xf32>' for each number of 'memref<3x4x2xbf16>', got: 'memref<3x4xf32>'}}
  tile.multiply %a, %b, %c rows %n where %seen : memref<3x4xf32> transposed : memref<3x4x2xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c3(%n: index, %a: memref<4x6xbf16>, %b: memref<2x3x4x2xbf16>, %c: memref<4x8xf32>) {
  // expected-error @below {{of bf16 takes all of the depth of a left operand that is not transposed, got `depth`}}
  tile.multiply %a, %b, %c rows %n depth %n : memref<4x6xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c2(%n: index, %a: memref<4x6xf32>, %b: memref<2x6x4xf32>, %c: memref<4x8xf32>, %seen: memref<4x8xf32>) {
  // expected-error @below {{needs a score of the type of 'memref<4x8xf32>' for each number of 'memref<4x6xf32>', got: 'memref<4x8xf32>'}}
  tile.multiply %a, %b, %c rows %n where %seen : memref<4x8xf32> : memref<4x6xf32>, memref<2x6x4xf32>, memref<4x8xf32>
  return
}

// -----

func.func @round_c1(%n: index, %s: memref<4x8xf32>, %p: memref<4x8x2xbf16>) {
  // expected-error @below {{needs M x N of f32, and M x N or M/2 x N x 2 of bf16, got: 'memref<4x8xf32>' and 'memref<4x8x2xbf16>'}}
  tile.round %s into %p rows %n : memref<4x8xf32>, memref<4x8x2xbf16>
  return
}

// -----

func.func @round_c1(%n: index, %s: memref<4x8xf64>, %p: memref<4x8xbf16>) {
  // expected-error @below {{needs M x N of f32, and M x N or M/2 x N x 2 of bf16, got: 'memref<4x8xf64>' and 'memref<4x8xbf16>'}}
  tile.round %s into %p rows %n : memref<4x8xf64>, memref<4x8xbf16>
  return
}

// -----

func.func @exponentials_c2(%n: index, %s: memref<4x8xf64>, %m: memref<4xf64>, %p: memref<4x8xbf16>) {
  // expected-error @below {{needs weights of the shape of scores of f32, got: 'memref<4x8xbf16>' and 'memref<4x8xf64>'}}
  tile.exponentials %s, %m, %m, %m rows %n into %p : memref<4x8xbf16> : memref<4x8xf64>, memref<4xf64>
  return
}

// -----

func.func @map_c1(%n: index, %s: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<7xindex>) {
  // expected-error @below {{needs a position for each row and column of 'memref<4x8xf32>', got: 'memref<4xindex>' and 'memref<7xindex>'}}
  tile.map %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n) unit 1.0 : memref<4x8xf32>, memref<4xindex>, memref<7xindex>
  return
}

// -----

func.func @map_c2(%n: index, %s: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>) {
  tile.map %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n) unit 1.0
      mask(%b0, %h0, %i0, %j0, %sq, %sk) {
        // expected-error @below {{must yield ('i1') from a mask region, got: ('index')}}
        burst.yield %i0 : index
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @row_max_c1(%n: index, %s: memref<4x8xf32>, %m: memref<5xf32>) {
  // expected-error @below {{needs a number of the type of 'memref<4x8xf32>' for each of its rows, got: 'memref<5xf32>'}}
  tile.row_max %s, %m, %m rows %n : memref<4x8xf32>, memref<5xf32>
  return
}

// -----

func.func @exponentials_c1(%n: index, %s: memref<4x8xf32>, %m: memref<4xf64>) {
  // expected-error @below {{needs a number of the type of 'memref<4x8xf32>' for each of its rows, got: 'memref<4xf64>'}}
  tile.exponentials %s, %m, %m, %m rows %n : memref<4x8xf32>, memref<4xf64>
  return
}

// -----

func.func @rescale_c1(%n: index, %o: memref<4x8xf32>, %m: memref<3xf32>) {
  // expected-error @below {{for each of its rows, got: 'memref<3xf32>'}}
  tile.rescale %o, %m rows %n : memref<4x8xf32>, memref<3xf32>
  return
}

// -----

func.func @merge_c1(%n: index, %o: memref<4x8xf32>, %m: memref<3xf32>) {
  // expected-error @below {{for each of its rows, got: 'memref<3xf32>'}}
  tile.merge (%o, %m, %m) with (%o, %m, %m) rows %n : memref<4x8xf32>, memref<3xf32>
  return
}

// -----

func.func @normalize_c1(%n: index, %o: memref<4x8xf32>, %m: memref<3xf32>) {
  // expected-error @below {{for each of its rows, got: 'memref<3xf32>'}}
  tile.normalize %o, %m, %m rows %n : memref<4x8xf32>, memref<3xf32>
  return
}

// -----

func.func @multiply_c1(%n: index, %a: memref<6x4xf32>, %b: memref<2x6x4xf32>, %c: memref<6x8xf32>) {
  // expected-error @below {{needs K x M, N/W x K x W and M x N of one type, got: 'memref<6x4xf32>', 'memref<2x6x4xf32>' and 'memref<6x8xf32>'}}
  tile.multiply %a, %b, %c rows %n transposed : memref<6x4xf32>, memref<2x6x4xf32>, memref<6x8xf32>
  return
}

// -----

func.func @weights_c1(%n: index, %s: memref<4x8xf32>, %lse: memref<5xf32>) {
  // expected-error @below {{needs a number of the type of 'memref<4x8xf32>' for each of its rows, got: 'memref<5xf32>'}}
  tile.weights %s, %lse rows %n : memref<4x8xf32>, memref<5xf32>
  return
}

// -----

func.func @weights_c1_transposed(%n: index, %s: memref<4x8xf32>, %lse: memref<4xf32>) {
  // expected-error @below {{needs a number of the type of 'memref<4x8xf32>' for each of its columns, got: 'memref<4xf32>'}}
  tile.weights %s, %lse rows %n transposed : memref<4x8xf32>, memref<4xf32>
  return
}

// -----

func.func @map_c1_transposed(%n: index, %s: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>) {
  // expected-error @below {{needs a position for each row and column of}}
  tile.map %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n) unit 1.0 {transposed} : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @differentials_c1(%n: index, %p: memref<4x8xf32>, %delta: memref<4xf64>) {
  // expected-error @below {{needs a number of the type of 'memref<4x8xf32>' for each of its rows, got: 'memref<4xf64>'}}
  tile.differentials %p, %p, %delta rows %n : memref<4x8xf32>, memref<4xf64>
  return
}

// -----

func.func @map_gradient_c1(%n: index, %w: memref<4x8xf32>, %i: memref<3xindex>, %j: memref<8xindex>) {
  // expected-error @below {{needs a position for each row and column of 'memref<4x8xf32>', got: 'memref<3xindex>' and 'memref<8xindex>'}}
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32) {
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<3xindex>, memref<8xindex>
  return
}

// -----

func.func @map_gradient_c2(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>) {
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32) {
        // expected-error @below {{must yield ('f32') from a gradient region, got: ('index')}}
        burst.yield %i0 : index
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @map_gradient_c2(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>) {
  // expected-error @below {{the gradient region must have the arguments}}
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      gradient(%t0 : f64, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f64) {
        burst.yield %w0 : f64
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @map_gradient_c3(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<8xbf16>, %dt: memref<8xf32>) {
  // expected-error @below {{needs a gradient for each of 2 captures, got: 1}}
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      grads (%dt of [0, 0] : memref<8xf32>)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32, %x = %t : memref<8xbf16>) {
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @map_gradient_c3(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<8xbf16>, %dt: memref<8xf32>) {
  // expected-error @below {{`wanted` numbers captured tables, got: 1}}
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      grads (%dt of [1] : memref<8xf32>)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32, %x = %t : memref<8xbf16>) {
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @map_gradient_c3(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<8xbf16>, %dt: memref<8xf32>) {
  // expected-error @below {{`wanted` numbers captured tables, got: 0}}
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      grads (%dt of [0] : memref<8xf32>)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32, %x = %n : index) {
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @map_gradient_c3(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<8xbf16>, %dt: memref<8xf32>) {
  // expected-error @below {{the gradient by 'memref<8xbf16>' must have its shape, in 'f32', got: 'memref<8xbf16>'}}
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      grads (%t of [0] : memref<8xbf16>)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32, %x = %t : memref<8xbf16>) {
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

func.func @map_gradient_c4(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<8xbf16>, %dt: memref<8xf32>) {
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32, %x = %t : memref<8xbf16>) {
        // expected-error @below {{adds to the gradient of a capture that `wanted` does not name}}
        burst.contribute %w0 to %x[%i0] : f32, tensor<8xbf16>
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// -----

// expected-error @below {{with tile.warps must be a kernel of 1 to 32 warps, got: 33}}
func.func private @warps(%task: index) attributes {tile.kernel, tile.warps = 33} {
  return
}

// -----

// expected-error @below {{with tile.warps must be a kernel of 1 to 32 warps, got: 4}}
func.func private @warps(%task: index) attributes {tile.warps = 4} {
  return
}

// -----

// expected-error @below {{has an attribute of an argument that the tile dialect does not have: "tile.host"; there is tile.host, a unit, of memrefs}}
func.func private @host(%n: index {tile.host})

// -----

// expected-error @below {{with tile.gradient needs "queries" or "keys", got: "values"}}
func.func private @gradient() attributes {tile.gradient = "values"}

// -----

func.func @multiply_c1_slice(%n: index, %a: memref<4x6xf32>, %b: memref<?x8xf32>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs M x K of b's type or of c's, N x K, and M x N of f32 or of a wider b's type, got: 'memref<4x6xf32>', 'memref<?x8xf32>' and 'memref<4x8xf32>'}}
  tile.multiply %a, %b, %c rows %n by_rows : memref<4x6xf32>, memref<?x8xf32>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1_slice(%n: index, %a: memref<4x6xf32>, %b: memref<?x6xf64>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs M x K of b's type or of c's, N x K, and M x N}}
  tile.multiply %a, %b, %c rows %n by_rows : memref<4x6xf32>, memref<?x6xf64>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c1_slice(%n: index, %a: memref<4x6xf32>, %b: memref<?x6xf32, strided<[12, 2]>>, %c: memref<4x8xf32>) {
  // expected-error @below {{needs rows that are contiguous, got: 'memref<?x6xf32, strided<[12, 2]>>'}}
  tile.multiply %a, %b, %c rows %n by_rows : memref<4x6xf32>, memref<?x6xf32, strided<[12, 2]>>, memref<4x8xf32>
  return
}

// -----

func.func @multiply_c3_slice(%n: index, %a: memref<4x6xf32>, %b: memref<?x6xf32>, %c: memref<4x8xf32>) {
  // expected-error @below {{of tiles takes its left operand as it is, and all of its depth, got `transposed`, `depth` or `where` with `by_rows`}}
  tile.multiply %a, %b, %c rows %n where %a : memref<4x6xf32> by_rows : memref<4x6xf32>, memref<?x6xf32>, memref<4x8xf32>
  return
}

// -----

func.func @map_c1_heads(%n: index, %s: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %heads: memref<3xindex>) {
  // expected-error @below {{needs a head for each row of 'memref<4x8xf32>', got: 'memref<3xindex>'}}
  tile.map %s rows %n columns %n at (%n, %heads, %i, %j) of (%n, %n) unit 1.0 : memref<4x8xf32>, memref<4xindex>, memref<8xindex>, memref<3xindex>
  return
}
