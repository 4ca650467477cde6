// RUN: burst-opt %s --verify-roundtrip | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// CHECK-LABEL: func.func private @kernel(%arg0: index, %arg1: memref<?xf32>, %arg2: memref<?xf32>, %arg3: index) attributes {tile.kernel}
func.func private @kernel(%task: index, %read: memref<?xf32>, %written: memref<?xf32>, %n: index)
    attributes {tile.kernel} {
  return
}

// CHECK-LABEL: func.func @host
// CHECK: tile.launch @kernel[%{{.*}}] reads(%{{.*}} : memref<?xf32>) writes(%{{.*}} : memref<?xf32>) with(%{{.*}} : index)
// CHECK: tile.launch @kernel[%{{.*}}] order(%{{.*}} : memref<?xi32>) reads(%{{.*}} : memref<?xf32>) writes(%{{.*}} : memref<?xf32>) with(%{{.*}} : index)
// CHECK: tile.sort %{{.*}} into %{{.*}} : memref<?xi64>, memref<?xi32>
func.func @host(%n: index, %a: memref<?xf32>, %costs: memref<?xi64>, %order: memref<?xi32>) {
  tile.launch @kernel[%n] reads(%a : memref<?xf32>) writes(%a : memref<?xf32>) with(%n : index)
  tile.launch @kernel[%n] order(%order : memref<?xi32>) reads(%a : memref<?xf32>) writes(%a : memref<?xf32>) with(%n : index)
  tile.sort %costs into %order : memref<?xi64>, memref<?xi32>
  return
}

// CHECK-LABEL: func.func @memory
// CHECK: tile.load %{{.*}}, %{{.*}} : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<4x8xf32>
// CHECK: tile.load %{{.*}}, %{{.*}} factor 2.500000e-01 padding 1.000000e+00 : memref<?xf32, strided<[?], offset: ?>>, memref<4xf32>
// CHECK: tile.store %{{.*}}, %{{.*}} : memref<4x8xf32>, memref<?x5xbf16, strided<[?, 1], offset: ?>>
// CHECK: tile.pack %{{.*}}, %{{.*}} : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x5x4xf32>
// CHECK: tile.pack %{{.*}}, %{{.*}} transposed : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x5x4xf32>
// CHECK: tile.fill %{{.*}} with 0xFFF0000000000000 : memref<4xf32>
// CHECK: tile.positions %{{.*}} from %{{.*}} count %{{.*}} of{{ ?}}(%{{.*}}, %{{.*}}, %{{.*}}) : memref<4xindex>
func.func @memory(%n: index, %rows: memref<?x5xbf16, strided<[?, 1], offset: ?>>, %row: memref<?xf32, strided<[?], offset: ?>>,
                  %tile: memref<4x8xf32>, %numbers: memref<4xf32>, %panels: memref<2x5x4xf32>, %p: memref<4xindex>) {
  tile.load %rows, %tile : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<4x8xf32>
  tile.load %row, %numbers factor 0.25 padding 1.0 : memref<?xf32, strided<[?], offset: ?>>, memref<4xf32>
  tile.store %tile, %rows : memref<4x8xf32>, memref<?x5xbf16, strided<[?, 1], offset: ?>>
  tile.pack %rows, %panels : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x5x4xf32>
  tile.pack %rows, %panels transposed : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x5x4xf32>
  tile.fill %numbers with 0xFFF0000000000000 : memref<4xf32>
  tile.positions %p from %n count %n of (%n, %n, %n) : memref<4xindex>
  return
}

// Operands of bf16, in pairs of steps of the depth.
// CHECK-LABEL: func.func @pairs
// CHECK: tile.load %{{.*}}, %{{.*}} : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<4x6xbf16>
// CHECK: tile.pack %{{.*}}, %{{.*}} : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x3x4x2xbf16>
// CHECK: tile.pack %{{.*}}, %{{.*}} transposed : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x3x4x2xbf16>
// CHECK: tile.is_finite %{{.*}} : memref<2x3x4x2xbf16>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} factor 2.500000e-01 : memref<4x6xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf32>
// CHECK: tile.exponentials %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} into %{{.*}} : memref<4x8xbf16> : memref<4x8xf32>, memref<4xf32>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} where %{{.*}} : memref<4x8xf32> accumulate : memref<4x8xbf16>, memref<2x4x4x2xbf16>, memref<4x8xf32>
func.func @pairs(%n: index, %rows: memref<?x5xbf16, strided<[?, 1], offset: ?>>, %q: memref<4x6xbf16>, %k: memref<2x3x4x2xbf16>,
                 %v: memref<2x4x4x2xbf16>, %s: memref<4x8xf32>, %p: memref<4x8xbf16>, %o: memref<4x8xf32>, %m: memref<4xf32>) {
  tile.load %rows, %q : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<4x6xbf16>
  tile.pack %rows, %k : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x3x4x2xbf16>
  tile.pack %rows, %k transposed : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<2x3x4x2xbf16>
  %f = tile.is_finite %k : memref<2x3x4x2xbf16>
  tile.multiply %q, %k, %s rows %n factor 0.25 : memref<4x6xbf16>, memref<2x3x4x2xbf16>, memref<4x8xf32>
  tile.exponentials %s, %m, %m, %m rows %n into %p : memref<4x8xbf16> : memref<4x8xf32>, memref<4xf32>
  tile.multiply %p, %v, %o rows %n where %s : memref<4x8xf32> accumulate : memref<4x8xbf16>, memref<2x4x4x2xbf16>, memref<4x8xf32>
  return
}

// Pairs of rows.
// CHECK-LABEL: func.func @paired_rows
// CHECK: tile.round %{{.*}} into %{{.*}} rows %{{.*}} : memref<4x?xf32, strided<[8, 1]>>, memref<4x?xbf16, strided<[8, 1]>>
// CHECK: tile.round %{{.*}} into %{{.*}} rows %{{.*}} : memref<4x8xf32>, memref<2x8x2xbf16>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} depth %{{.*}} where %{{.*}} : memref<4x8xf32> accumulate transposed : memref<2x8x2xbf16>, memref<2x2x4x2xbf16>, memref<8x8xf32>
func.func @paired_rows(%n: index, %s: memref<4x8xf32>, %t: memref<4x?xf32, strided<[8, 1]>>, %u: memref<4x?xbf16, strided<[8, 1]>>,
                       %p: memref<2x8x2xbf16>, %g: memref<2x2x4x2xbf16>, %o: memref<8x8xf32>) {
  tile.round %t into %u rows %n : memref<4x?xf32, strided<[8, 1]>>, memref<4x?xbf16, strided<[8, 1]>>
  tile.round %s into %p rows %n : memref<4x8xf32>, memref<2x8x2xbf16>
  tile.multiply %p, %g, %o rows %n depth %n where %s : memref<4x8xf32> accumulate transposed : memref<2x8x2xbf16>, memref<2x2x4x2xbf16>, memref<8x8xf32>
  return
}

// Strips of a tile, of whole panels.
// CHECK-LABEL: func.func @strips
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x6xf32>, memref<?x6x4xf32>, memref<4x?xf32, strided<[8, 1], offset: ?>>
// CHECK: tile.row_max %{{.*}} : memref<4x?xf32, strided<[8, 1], offset: ?>>, memref<4xf32>
// CHECK: tile.exponentials %{{.*}} : memref<4x?xf32, strided<[8, 1], offset: ?>>, memref<4xf32>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} accumulate : memref<4x?xf32, strided<[8, 1], offset: ?>>, memref<2x?x4xf32, strided<[32, 4, 1], offset: ?>>, memref<4x8xf32>
func.func @strips(%n: index, %q: memref<4x6xf32>, %k: memref<?x6x4xf32>, %s: memref<4x?xf32, strided<[8, 1], offset: ?>>,
                  %v: memref<2x?x4xf32, strided<[32, 4, 1], offset: ?>>, %o: memref<4x8xf32>, %m: memref<4xf32>) {
  tile.multiply %q, %k, %s rows %n : memref<4x6xf32>, memref<?x6x4xf32>, memref<4x?xf32, strided<[8, 1], offset: ?>>
  tile.row_max %s, %m, %m rows %n : memref<4x?xf32, strided<[8, 1], offset: ?>>, memref<4xf32>
  tile.exponentials %s, %m, %m, %m rows %n : memref<4x?xf32, strided<[8, 1], offset: ?>>, memref<4xf32>
  tile.multiply %s, %v, %o rows %n accumulate : memref<4x?xf32, strided<[8, 1], offset: ?>>, memref<2x?x4xf32, strided<[32, 4, 1], offset: ?>>, memref<4x8xf32>
  return
}

// CHECK-LABEL: func.func @recurrence
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x6xf64>, memref<2x6x4xf64>, memref<4x8xf64>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} accumulate : memref<4x6xf64>, memref<2x6x4xf64>, memref<4x8xf64>
// CHECK: tile.row_max %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x8xf64>, memref<4xf64>
// CHECK: tile.exponentials %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x8xf64>, memref<4xf64>
// CHECK: tile.rescale %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x8xf64>, memref<4xf64>
// CHECK: tile.merge{{ ?}}(%{{.*}}, %{{.*}}, %{{.*}}) with{{ ?}}(%{{.*}}, %{{.*}}, %{{.*}}) rows %{{.*}} : memref<4x8xf64>, memref<4xf64>
// CHECK: tile.max_score %{{.*}}, %{{.*}} rows %{{.*}} : memref<4xf64>
// CHECK: tile.normalize %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x8xf64>, memref<4xf64>
func.func @recurrence(%n: index, %q: memref<4x6xf64>, %k: memref<2x6x4xf64>, %s: memref<4x8xf64>, %m: memref<4xf64>, %l: memref<4xf64>) {
  tile.multiply %q, %k, %s rows %n : memref<4x6xf64>, memref<2x6x4xf64>, memref<4x8xf64>
  tile.multiply %q, %k, %s rows %n accumulate : memref<4x6xf64>, memref<2x6x4xf64>, memref<4x8xf64>
  tile.row_max %s, %m, %l rows %n : memref<4x8xf64>, memref<4xf64>
  tile.exponentials %s, %m, %l, %m rows %n : memref<4x8xf64>, memref<4xf64>
  tile.rescale %s, %m rows %n : memref<4x8xf64>, memref<4xf64>
  tile.merge (%s, %m, %l) with (%s, %m, %l) rows %n : memref<4x8xf64>, memref<4xf64>
  tile.max_score %m, %l rows %n : memref<4xf64>
  tile.normalize %s, %m, %l rows %n : memref<4x8xf64>, memref<4xf64>
  return
}

// CHECK-LABEL: func.func @map
// CHECK: tile.map %{{.*}} rows %{{.*}} columns %{{.*}} at (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) of (%{{.*}}, %{{.*}}) unit 1.000000e+00
// CHECK: mask(%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[J:.*]], %[[SQ:.*]], %[[SK:.*]], %[[T:.*]] = %{{.*}} : memref<?xi32>) {
// CHECK: tensor.extract %[[T]][%[[I]]] : tensor<?xi32>
// CHECK: burst.yield %{{.*}} : i1
// CHECK: score(%[[S:.*]] : f32, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = %{{.*}} : bf16) {
// CHECK: burst.yield %[[S]] : f32
// CHECK: memref<4x8xf32>, memref<4xindex>, memref<8xindex>
// CHECK: tile.map {{.*}} unit 1.442695{{.*}} : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
func.func @map(%n: index, %s: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<?xi32>, %x: bf16) {
  tile.map %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n) unit 1.0
      mask(%b0, %h0, %i0, %j0, %sq, %sk, %table = %t : memref<?xi32>) {
        %e = tensor.extract %table[%i0] : tensor<?xi32>
        %zero = arith.constant 0 : i32
        %keep = arith.cmpi sgt, %e, %zero : i32
        burst.yield %keep : i1
      }
      score(%s0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %y = %x : bf16) {
        burst.yield %s0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  tile.map %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n) unit 1.4426950408889634
      : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// CHECK-LABEL: func.func @allocate
// CHECK: tile.allocate "state"() : memref<4x8xf32>
// CHECK: tile.allocate "slice"(%{{.*}}) : memref<2x?x8xf32>
// CHECK: tile.allocate "packing"(%{{.*}}, %{{.*}}) : memref<?x?xf32>
// CHECK: tile.allocate "schedule"() : memref<4xi64>
// CHECK: %{{.*}} = tile.is_finite %{{.*}} : memref<2x5x4xf32>
func.func @allocate(%n: index, %panels: memref<2x5x4xf32>) -> i1 {
  %0 = tile.allocate "state" () : memref<4x8xf32>
  %1 = tile.allocate "slice" (%n) : memref<2x?x8xf32>
  %2 = tile.allocate "packing" (%n, %n) : memref<?x?xf32>
  %3 = tile.allocate "schedule" () : memref<4xi64>
  %finite = tile.is_finite %panels : memref<2x5x4xf32>
  return %finite : i1
}

// CHECK-LABEL: func.func @gradients
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} depth %{{.*}} : memref<4x6xf32>, memref<2x6x4xf32>, memref<4x8xf32>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} depth %{{.*}} where %{{.*}} : memref<4x8xf32> accumulate transposed : memref<4x8xf32>, memref<2x4x3xf32>, memref<8x6xf32>
// CHECK: tile.weights %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x8xf32>, memref<4xf32>
// CHECK: tile.differentials %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} : memref<4x8xf32>, memref<4xf32>
// CHECK: tile.differentials %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} factor 1.250000e-01 : memref<4x8xf32>, memref<4xf32>
// CHECK: tile.map_gradient %{{.*}}, %{{.*}} rows %{{.*}} columns %{{.*}} at{{ ?}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) of{{ ?}}(%{{.*}}, %{{.*}})
// CHECK: gradient(%{{.*}} : f32, %{{.*}}, %[[H:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[W:.*]] : f32, %[[T:.*]] = %{{.*}} : memref<?xf32>, %{{.*}} = %{{.*}} : bf16) {
// CHECK: tensor.extract %[[T]][%[[H]]] : tensor<?xf32>
// CHECK: burst.yield %[[W]] : f32
// CHECK: memref<4x8xf32>, memref<4xindex>, memref<8xindex>
func.func @gradients(%n: index, %q: memref<4x6xf32>, %k: memref<2x6x4xf32>, %s: memref<4x8xf32>, %dp: memref<4x8xf32>, %g: memref<2x4x3xf32>, %dk: memref<8x6xf32>,
                     %lse: memref<4xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<?xf32>, %x: bf16) {
  tile.multiply %q, %k, %s rows %n depth %n : memref<4x6xf32>, memref<2x6x4xf32>, memref<4x8xf32>
  tile.multiply %s, %g, %dk rows %n depth %n where %dp : memref<4x8xf32> accumulate transposed : memref<4x8xf32>, memref<2x4x3xf32>, memref<8x6xf32>
  tile.weights %s, %lse rows %n : memref<4x8xf32>, memref<4xf32>
  tile.differentials %s, %dp, %lse rows %n : memref<4x8xf32>, memref<4xf32>
  tile.differentials %s, %dp, %lse rows %n factor 0.125 : memref<4x8xf32>, memref<4xf32>
  tile.map_gradient %dp, %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32, %table = %t : memref<?xf32>, %y = %x : bf16) {
        %e = tensor.extract %table[%h0] : tensor<?xf32>
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// CHECK-LABEL: func.func @threads
// CHECK: tile.threads
func.func @threads() -> index {
  %n = tile.threads
  return %n : index
}

// CHECK-LABEL: func.func @await
// CHECK: tile.await %{{.*}}[%{{.*}}, %{{.*}}] is %{{.*}} : memref<?x4xi32>
func.func @await(%counters: memref<?x4xi32>, %i: index, %turn: i32) {
  tile.await %counters[%i, %i] is %turn : memref<?x4xi32>
  return
}

// CHECK-LABEL: func.func @transposed
// CHECK: tile.map {{.*}} unit 1.000000e+00 {transposed} : memref<4x8xf32>, memref<8xindex>, memref<4xindex>
// CHECK: tile.weights %{{.*}}, %{{.*}} rows %{{.*}} transposed : memref<4x8xf32>, memref<8xf32>
// CHECK: tile.differentials %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} transposed : memref<4x8xf32>, memref<8xf32>
// CHECK: tile.map_gradient
// CHECK: transposed : memref<4x8xf32>, memref<8xindex>, memref<4xindex>
func.func @transposed(%n: index, %s: memref<4x8xf32>, %dp: memref<4x8xf32>, %lse: memref<8xf32>,
                      %i: memref<8xindex>, %j: memref<4xindex>) {
  tile.map %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n) unit 1.0 {transposed}
      : memref<4x8xf32>, memref<8xindex>, memref<4xindex>
  tile.weights %s, %lse rows %n transposed : memref<4x8xf32>, memref<8xf32>
  tile.differentials %s, %dp, %lse rows %n transposed : memref<4x8xf32>, memref<8xf32>
  tile.map_gradient %dp, %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32) {
        burst.yield %w0 : f32
      } transposed : memref<4x8xf32>, memref<8xindex>, memref<4xindex>
  return
}

// CHECK-LABEL: func.func @gradients_of_tables
// CHECK: tile.map_gradient %{{.*}}, %{{.*}} rows {{.*}} grads(%[[DU:.*]], %[[DT:.*]] of [2, 0] : memref<2x?xf32>, memref<?xf32>)
// CHECK: burst.contribute %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] : f32, tensor<2x3xbf16>
func.func @gradients_of_tables(%n: index, %w: memref<4x8xf32>, %i: memref<4xindex>, %j: memref<8xindex>, %t: memref<?xf32>, %x: bf16,
                               %u: memref<2x3xbf16>, %du: memref<2x?xf32>) {
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      grads (%du, %t of [2, 0] : memref<2x?xf32>, memref<?xf32>)
      gradient(%t0 : f32, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f32, %table = %t : memref<?xf32>, %y = %x : bf16, %z = %u : memref<2x3xbf16>) {
        burst.contribute %w0 to %z[%i0, %j0] : f32, tensor<2x3xbf16>
        burst.contribute %t0 to %table[%h0] : f32, tensor<?xf32>
        burst.yield %w0 : f32
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>
  return
}

// CHECK-LABEL: func.func @uploads
// CHECK-SAME: {tile.host}
func.func @uploads(%table: memref<?x7xindex> {tile.host}) {
  // CHECK: %{{.*}} = tile.upload %{{.*}} : memref<?x7xindex>
  %copy = tile.upload %table : memref<?x7xindex>
  return
}

// Rows of memory as they lie, of any type and number, and rows of several heads.
// CHECK-LABEL: func.func @slices
// CHECK: tile.is_finite %{{.*}} : memref<?x8xbf16, strided<[?, 1], offset: ?>>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} by_rows : memref<4x8xf32>, memref<?x8xbf16, strided<[?, 1], offset: ?>>, memref<4x?xf32, strided<[16, 1]>>
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}} where %{{.*}} : memref<4x?xf32, strided<[16, 1]>> accumulate : memref<4x?xf32, strided<[16, 1]>>, memref<?x8xbf16, strided<[?, 1], offset: ?>>, memref<4x8xf32>
// CHECK: tile.map %{{.*}} rows %{{.*}} columns %{{.*}} at (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) of (%{{.*}}, %{{.*}}) unit 1.0{{.*}}
// CHECK: : memref<4x8xf32>, memref<4xindex>, memref<8xindex>, memref<4xindex, strided<[2]>>
func.func @slices(%n: index, %k: memref<?x8xbf16, strided<[?, 1], offset: ?>>, %q: memref<4x8xf32>,
                  %s: memref<4x?xf32, strided<[16, 1]>>, %i: memref<4xindex>, %j: memref<8xindex>,
                  %heads: memref<4xindex, strided<[2]>>) {
  %f = tile.is_finite %k : memref<?x8xbf16, strided<[?, 1], offset: ?>>
  tile.multiply %q, %k, %s rows %n by_rows : memref<4x8xf32>, memref<?x8xbf16, strided<[?, 1], offset: ?>>, memref<4x?xf32, strided<[16, 1]>>
  tile.multiply %s, %k, %q rows %n where %s : memref<4x?xf32, strided<[16, 1]>> accumulate : memref<4x?xf32, strided<[16, 1]>>, memref<?x8xbf16, strided<[?, 1], offset: ?>>, memref<4x8xf32>
  tile.map %q rows %n columns %n at (%n, %heads, %i, %j) of (%n, %n) unit 1.0
      mask(%b, %h, %row, %column, %sq, %sk) {
        %keep = arith.cmpi sle, %column, %h : index
        burst.yield %keep : i1
      } : memref<4x8xf32>, memref<4xindex>, memref<8xindex>, memref<4xindex, strided<[2]>>
  return
}
