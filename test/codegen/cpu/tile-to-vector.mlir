// RUN: burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{vector-bits=256 micro-rows=2}))' | FileCheck %s --check-prefixes=CHECK,V256
// RUN: burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{vector-bits=128 micro-rows=2}))' | FileCheck %s --check-prefixes=CHECK,V128
// RUN: burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{vector-bits=512 micro-rows=2}))' | FileCheck %s --check-prefixes=CHECK,V512
// RUN: burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{fma=false micro-rows=2}))' | FileCheck %s --check-prefix=APART
// RUN: burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{dot vector-bits=512 micro-rows=2}))' | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: not burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{panel-bytes=48}))' 2>&1 | FileCheck %s --check-prefix=PANELS
// PANELS: panels are whole vectors wide, and 64 KiB at most, got: 48 bytes and vectors of 256 bits
// RUN: not burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{vector-bits=96}))' 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{dot vector-bits=128}))' 2>&1 | FileCheck %s --check-prefix=DOT128
// DOT128: instructions for pairs of bf16 have vectors of 256 or 512 bits, got: 128
// BITS: vectors have a power of two of bits, from 64 to 2048

// A function that is no kernel is left alone.
// CHECK-LABEL: func.func @host
// CHECK: tile.fill
func.func @host(%o: memref<8x16xf32>) {
  tile.fill %o with 0.0 : memref<8x16xf32>
  return
}

// A register tile of 2 rows: sums stay in registers over the depth.
// CHECK-LABEL: func.func private @multiply
// V128: scf.for {{.*}} iter_args({{.*}}) -> ({{.*}}vector<4xf32>
// V256: scf.for {{.*}} iter_args({{.*}}) -> ({{.*}}vector<8xf32>
// V512: scf.for {{.*}} iter_args({{.*}}) -> ({{.*}}vector<16xf32>
// CHECK: vector.fma
// CHECK-NOT: {{ tile\.}}
// CHECK: return
// APART-LABEL: func.func private @multiply
// APART-NOT: fma
// APART: arith.mulf
// APART-NEXT: arith.addf
func.func private @multiply(%task: index, %q: memref<8x4xf32>, %k: memref<1x4x16xf32>, %s: memref<8x16xf32>, %n: index)
    attributes {tile.kernel} {
  tile.multiply %q, %k, %s rows %n : memref<8x4xf32>, memref<1x4x16xf32>, memref<8x16xf32>
  return
}

// Sums begin at 0 and are added to what is there; the factor is not for that.
// CHECK-LABEL: func.func private @accumulate
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.0
// CHECK: %[[SUMS:.*]]:{{[0-9]+}} = scf.for {{.*}} iter_args({{.*}} = %[[ZERO]]
// CHECK: scf.yield
// CHECK: %[[BEFORE:.*]] = vector.load
// CHECK-NEXT: %[[AFTER:.*]] = arith.addf %[[SUMS]]#0, %[[BEFORE]]
// CHECK-NEXT: vector.store %[[AFTER]]
func.func private @accumulate(%task: index, %q: memref<8x4xf32>, %k: memref<1x4x16xf32>, %s: memref<8x16xf32>, %n: index)
    attributes {tile.kernel} {
  tile.multiply %q, %k, %s rows %n accumulate : memref<8x4xf32>, memref<1x4x16xf32>, memref<8x16xf32>
  return
}
// CHECK-LABEL: func.func private @factor
// CHECK: %[[SUMS:.*]]:{{[0-9]+}} = scf.for
// CHECK: scf.yield
// CHECK: %[[BEFORE:.*]] = vector.load
// CHECK-NEXT: %[[FACTOR:.*]] = arith.constant dense<2.500000e-01>
// CHECK-NEXT: %[[AFTER:.*]] = vector.fma %[[SUMS]]#0, %[[FACTOR]], %[[BEFORE]]
// CHECK-NEXT: vector.store %[[AFTER]]
func.func private @factor(%task: index, %q: memref<8x4xf32>, %k: memref<1x4x16xf32>, %s: memref<8x16xf32>, %n: index)
    attributes {tile.kernel} {
  tile.multiply %q, %k, %s rows %n factor 0.25 accumulate : memref<8x4xf32>, memref<1x4x16xf32>, memref<8x16xf32>
  return
}

// Exponentials are polynomials, in whatever type.
// CHECK-LABEL: func.func private @softmax
// CHECK-NOT: math.exp
// V128: vector<2xf64>
// V256: vector<4xf64>
// V512: vector<8xf64>
// CHECK-NOT: math.exp
// CHECK-NOT: {{ tile\.}}
// CHECK: return
// APART-LABEL: func.func private @softmax
// APART-NOT: fma
// APART: return
func.func private @softmax(%task: index, %s: memref<8x16xf64>, %m: memref<8xf64>, %l: memref<8xf64>, %a: memref<8xf64>, %n: index)
    attributes {tile.kernel} {
  tile.row_max %s, %m, %a rows %n : memref<8x16xf64>, memref<8xf64>
  tile.exponentials %s, %m, %l, %a rows %n : memref<8x16xf64>, memref<8xf64>
  tile.rescale %s, %a rows %n : memref<8x16xf64>, memref<8xf64>
  return
}

// A region is vectorised op by op: what depends on the column is a vector, other
// values stay scalars. Tables are read within their bounds, at a column once for
// all rows.
// CHECK-LABEL: func.func private @map
// CHECK: arith.minsi
// CHECK: arith.maxsi
// V128: vector.gather {{.*}} into vector<4xi32>
// V256: vector.gather {{.*}} into vector<8xi32>
// V512: vector.gather {{.*}} into vector<16xi32>
// CHECK: scf.for
// CHECK-NOT: vector.gather
// CHECK: memref.load %{{.*}} : memref<?xi32>
// CHECK: arith.divsi %{{.*}}, %{{.*}} : vector
// CHECK-NOT: {{ tile\.}}
// CHECK: return
func.func private @map(%task: index, %s: memref<8x16xf32>, %i: memref<8xindex>, %j: memref<16xindex>, %t: memref<?xi32>, %n: index)
    attributes {tile.kernel} {
  tile.map %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n) unit 1.0
      mask(%b0, %h0, %i0, %j0, %sq, %sk, %table = %t : memref<?xi32>) {
        %x = tensor.extract %table[%i0] : tensor<?xi32>
        %y = tensor.extract %table[%j0] : tensor<?xi32>
        %z = arith.divsi %x, %y : i32
        %zero = arith.constant 0 : i32
        %keep = arith.cmpi ne, %z, %zero : i32
        burst.yield %keep : i1
      } : memref<8x16xf32>, memref<8xindex>, memref<16xindex>
  return
}

// Memory, packing, rows.
// CHECK-LABEL: func.func private @rest
// CHECK-NOT: {{ tile\.}}
// CHECK: return
func.func private @rest(%task: index, %view: memref<?x5xbf16, strided<[?, 1], offset: ?>>, %o: memref<8x16xf32>, %o2: memref<8x16xf32>,
                        %p: memref<1x5x16xf32>, %v: memref<1x8x16xf32>, %m: memref<8xf32>, %l: memref<8xf32>, %m2: memref<8xf32>, %l2: memref<8xf32>,
                        %i: memref<8xindex>, %n: index) attributes {tile.kernel} {
  tile.load %view, %o factor 0.25 : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<8x16xf32>
  tile.pack %view, %p transposed : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<1x5x16xf32>
  tile.pack %view, %v : memref<?x5xbf16, strided<[?, 1], offset: ?>>, memref<1x8x16xf32>
  tile.fill %m with 0.0 : memref<8xf32>
  tile.positions %i from %n count %n of (%n, %n, %n) : memref<8xindex>
  tile.merge (%o, %m, %l) with (%o2, %m2, %l2) rows %n : memref<8x16xf32>, memref<8xf32>
  tile.max_score %m, %l rows %n : memref<8xf32>
  tile.normalize %o, %m, %l rows %n : memref<8x16xf32>, memref<8xf32>
  tile.store %o, %view : memref<8x16xf32>, memref<?x5xbf16, strided<[?, 1], offset: ?>>
  return
}

// Keys become columns as many at a time as a vector has numbers; what is left,
// of rows and of columns, number by number.
// CHECK-LABEL: func.func private @pack_columns
// V256-COUNT-8: vector.load {{.*}} : memref<?x21xf32, {{.*}}>, vector<8xf32>
// V256-COUNT-4: vector.shuffle {{.*}} [0, 8, 2, 10, 4, 12, 6, 14]
// V256-COUNT-4: vector.shuffle {{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// V256: vector.shuffle {{.*}} [4, 5, 6, 7, 12, 13, 14, 15]
// V256-COUNT-8: vector.store {{.*}} : memref<2x21x16xf32>, vector<8xf32>
// V128-COUNT-2: vector.shuffle {{.*}} [0, 1, 4, 5]
// V512-COUNT-8: vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]
// CHECK: memref.load {{.*}} : memref<?x21xf32, {{.*}}>
// CHECK: memref.load {{.*}} : memref<?x21xf32, {{.*}}>
// CHECK: memref.store {{.*}} : memref<2x21x16xf32>
// CHECK-NOT: {{ tile\.}}
// CHECK: return
func.func private @pack_columns(%task: index, %keys: memref<?x21xf32, strided<[?, 1], offset: ?>>, %k: memref<2x21x16xf32>)
    attributes {tile.kernel} {
  tile.pack %keys, %k transposed : memref<?x21xf32, strided<[?, 1], offset: ?>>, memref<2x21x16xf32>
  return
}

// Pairs: by an instruction, or number by number. The factor comes behind the sum.
// CHECK-LABEL: func.func private @pairs
// CHECK: %[[K:.*]] = memref.collapse_shape %{{.*}} {{\[\[0\], \[1\], \[2, 3\]\]}} : memref<1x2x16x2xbf16> into memref<1x2x32xbf16>
// DOT: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// DOT: vector.load %[[K]]{{.*}} : memref<1x2x32xbf16>, vector<32xbf16>
// DOT: vector.load {{.*}} : memref<8x4xbf16>, vector<2xbf16>
// DOT: vector.bitcast {{.*}} : vector<2xbf16> to vector<1xi32>
// DOT: x86vector.avx512.dot {{.*}} : vector<32xbf16> -> vector<16xf32>
// V256: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// V256: arith.shli {{.*}} : vector<8xi32>
// V256: vector.fma
// V256: arith.andi {{.*}} : vector<8xi32>
// V256: vector.fma
// V256-NOT: x86vector
// CHECK: arith.mulf
// DOT: x86vector.avx512.cvt.packed.f32_to_bf16
// V256: arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK-NOT: {{ tile\.}}
// CHECK: return
// APART-LABEL: func.func private @pairs
// APART-NOT: fma
// APART: return
func.func private @pairs(%task: index, %q: memref<8x4xbf16>, %k: memref<1x2x16x2xbf16>,
                         %s: memref<8x16xf32>, %p: memref<8x16xbf16>, %v: memref<1x8x16x2xbf16>, %m: memref<8xf32>, %n: index)
    attributes {tile.kernel} {
  tile.multiply %q, %k, %s rows %n factor 0.25 : memref<8x4xbf16>, memref<1x2x16x2xbf16>, memref<8x16xf32>
  tile.exponentials %s, %m, %m, %m rows %n into %p : memref<8x16xbf16> : memref<8x16xf32>, memref<8xf32>
  tile.multiply %p, %v, %s rows %n where %s : memref<8x16xf32> accumulate : memref<8x16xbf16>, memref<1x8x16x2xbf16>, memref<8x16xf32>
  return
}

// Two rows that are rounded lie side by side, the last of an odd number with zeros;
// a pair of them is copied to all lanes as 32 bits, like one of a row.
// CHECK-LABEL: func.func private @paired_rows
// CHECK: %[[P:.*]] = memref.collapse_shape %{{.*}} {{\[\[0\], \[1, 2\]\]}} : memref<4x16x2xbf16> into memref<4x32xbf16>
// DOT: %[[FIRST:.*]] = x86vector.avx512.cvt.packed.f32_to_bf16
// DOT: %[[SECOND:.*]] = x86vector.avx512.cvt.packed.f32_to_bf16
// DOT: %[[PAIRS:.*]] = vector.interleave %[[FIRST]], %[[SECOND]] : vector<16xbf16> -> vector<32xbf16>
// DOT: vector.store %[[PAIRS]], %[[P]]
// V256: %[[FIRST:.*]] = arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
// V256: %[[SECOND:.*]] = arith.truncf {{.*}} : vector<8xf32> to vector<8xbf16>
// V256: vector.interleave %[[FIRST]], %[[SECOND]] : vector<8xbf16> -> vector<16xbf16>
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector
// CHECK: vector.interleave %{{.*}}, %[[ZERO]]
// CHECK: vector.store {{.*}} : memref<8x16xbf16>
// CHECK: vector.load %{{.*}} : memref<4x16x2xbf16>, vector<2xbf16>
// DOT: x86vector.avx512.dot
// CHECK-NOT: {{ tile\.}}
// CHECK: return
func.func private @paired_rows(%task: index, %s: memref<8x16xf32>, %p: memref<4x16x2xbf16>, %r: memref<8x16xbf16>,
                               %g: memref<1x4x16x2xbf16>, %c: memref<16x16xf32>, %n: index) attributes {tile.kernel} {
  tile.round %s into %p rows %n : memref<8x16xf32>, memref<4x16x2xbf16>
  tile.round %s into %r rows %n : memref<8x16xf32>, memref<8x16xbf16>
  tile.multiply %p, %g, %c rows %n depth %n accumulate transposed : memref<4x16x2xbf16>, memref<1x4x16x2xbf16>, memref<16x16xf32>
  tile.multiply %p, %g, %c rows %n depth %n where %s : memref<8x16xf32> accumulate transposed : memref<4x16x2xbf16>, memref<1x4x16x2xbf16>, memref<16x16xf32>
  return
}

// Keys are pairs as they lie, the third number with a 0; values are interleaved.
// CHECK-LABEL: func.func private @pack_pairs
// CHECK: vector.load {{.*}} : memref<?x3xbf16, {{.*}}>, vector<2xbf16>
// CHECK: vector.store {{.*}} : memref<1x2x32xbf16>, vector<2xbf16>
// V256: vector.interleave {{.*}} : vector<8xbf16> -> vector<16xbf16>
// DOT: vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
// CHECK-NOT: {{ tile\.}}
// CHECK: return
func.func private @pack_pairs(%task: index, %keys: memref<?x3xbf16, strided<[?, 1], offset: ?>>, %q: memref<8x4xbf16>, %k: memref<1x2x16x2xbf16>,
                              %values: memref<?x16xbf16, strided<[?, 1], offset: ?>>, %v: memref<1x8x16x2xbf16>) attributes {tile.kernel} {
  tile.load %keys, %q : memref<?x3xbf16, strided<[?, 1], offset: ?>>, memref<8x4xbf16>
  tile.pack %keys, %k transposed : memref<?x3xbf16, strided<[?, 1], offset: ?>>, memref<1x2x16x2xbf16>
  tile.pack %values, %v : memref<?x16xbf16, strided<[?, 1], offset: ?>>, memref<1x8x16x2xbf16>
  %f = tile.is_finite %v : memref<1x8x16x2xbf16>
  return
}

// Sums over rows of the left operand: as many steps of two as the depth has, then
// the last one; sums stay in registers. What is not seen is looked up at the same
// place.
// CHECK-LABEL: func.func private @transposed
// V128: scf.for {{.*}} iter_args({{.*}}) -> ({{.*}}vector<4xf32>
// V256: scf.for {{.*}} iter_args({{.*}}) -> ({{.*}}vector<8xf32>
// V512: scf.for {{.*}} iter_args({{.*}}) -> ({{.*}}vector<16xf32>
// CHECK: vector.fma
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.fma
// CHECK-NOT: {{ tile\.}}
// CHECK: return
func.func private @transposed(%task: index, %p: memref<5x8xf32>, %g: memref<1x5x16xf32>, %c: memref<8x16xf32>, %seen: memref<5x8xf32>, %n: index, %d: index)
    attributes {tile.kernel} {
  tile.multiply %p, %g, %c rows %n depth %d accumulate transposed : memref<5x8xf32>, memref<1x5x16xf32>, memref<8x16xf32>
  tile.multiply %p, %g, %c rows %n depth %d where %seen : memref<5x8xf32> transposed : memref<5x8xf32>, memref<1x5x16xf32>, memref<8x16xf32>
  return
}

// Weights and gradients of pairs that are masked are 0 by selection: no product
// with 0 could rule out what is no number.
// CHECK-LABEL: func.func private @gradients
// CHECK: arith.cmpf ugt
// CHECK-NOT: math.exp
// CHECK: arith.cmpf oeq
// CHECK-NEXT: arith.select
// CHECK: arith.cmpf une
// CHECK: arith.select
// CHECK-NOT: {{ tile\.}}
// CHECK: return
func.func private @gradients(%task: index, %s: memref<8x16xf64>, %dp: memref<8x16xf64>, %lse: memref<8xf64>, %i: memref<8xindex>, %j: memref<16xindex>, %t: memref<?xf64>, %n: index)
    attributes {tile.kernel} {
  tile.weights %s, %lse rows %n : memref<8x16xf64>, memref<8xf64>
  tile.differentials %s, %dp, %lse rows %n factor 0.125 : memref<8x16xf64>, memref<8xf64>
  tile.map_gradient %dp, %s rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      gradient(%t0 : f64, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f64, %slopes = %t : memref<?xf64>) {
        %slope = tensor.extract %slopes[%h0] : tensor<?xf64>
        %u = arith.mulf %slope, %w0 : f64
        burst.yield %u : f64
      } : memref<8x16xf64>, memref<8xindex>, memref<16xindex>
  return
}

// What all points of a tile add to one element is summed up in a register and
// added once; what they add to elements of their own is added point by point,
// where it counts, at indices that are clamped into the table.
// CHECK-LABEL: func.func private @gradients_of_tables
// CHECK-SAME: %[[T:[^ ]*]]: memref<?xf64>, %[[U:[^ ]*]]: memref<4x?xf64>, %[[N:[^ ]*]]: index)
// CHECK: %[[SUMS:.*]] = scf.for {{.*}} iter_args
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (vector<[[LANES:.*]]xf64>)
// CHECK: %[[COUNTS:.*]] = arith.andi
// CHECK: %[[PLACE:.*]] = arith.select %[[COUNTS]]
// CHECK: vector.store %[[PLACE]], %[[PLACES:.*]][
// CHECK: scf.for %[[LANE:.*]] =
// CHECK: %[[AT:.*]] = memref.load %[[PLACES]][%[[LANE]]]
// CHECK: %[[IS_POINT:.*]] = arith.cmpi sge
// CHECK: scf.if %[[IS_POINT]]
// CHECK: memref.load %[[U]][%{{.*}}, %[[AT]]]
// CHECK: arith.addf
// CHECK: memref.store %{{.*}}, %[[U]][%{{.*}}, %[[AT]]]
// CHECK: arith.addf %[[SUM]], %{{.*}} : vector<[[LANES]]xf64>
// CHECK: %[[SUM:.*]] = vector.reduction <add>
// CHECK: memref.load %[[T]][%[[AT_TILE:.*]]]
// CHECK: memref.store %{{.*}}, %[[T]][%[[AT_TILE]]]
func.func private @gradients_of_tables(%task: index, %w: memref<8x16xf64>, %i: memref<8xindex>, %j: memref<16xindex>, %t: memref<?xf64>, %u: memref<4x?xf64>, %n: index)
    attributes {tile.kernel} {
  tile.map_gradient %w, %w rows %n columns %n at (%n, %n, %i, %j) of (%n, %n)
      grads (%t, %u of [0, 1] : memref<?xf64>, memref<4x?xf64>)
      gradient(%t0 : f64, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : f64, %slopes = %t : memref<?xf64>, %bias = %u : memref<4x?xf64>) {
        burst.contribute %w0 to %bias[%i0, %j0] : f64, tensor<4x?xf64>
        burst.contribute %w0 to %slopes[%h0] : f64, tensor<?xf64>
        burst.yield %w0 : f64
      } : memref<8x16xf64>, memref<8xindex>, memref<16xindex>
  return
}

// Rows of memory by rows: numbers of a row side by side, whose sums are added up
// at the end, each vector's to a number. All rows of the left operand share a load,
// and rows to come are asked for.
// CHECK-LABEL: func.func private @dots
// CHECK: scf.for
// CHECK: %[[SUMS:.*]]:4 = scf.for {{.*}} iter_args
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %{{.*}}], read, locality<3>, data : memref<?x32xbf16>
// CHECK: vector.load {{.*}} : memref<?x32xbf16>
// CHECK-NEXT: arith.extf
// CHECK-NEXT: vector.load {{.*}} : memref<2x32xf32>
// CHECK-NEXT: vector.fma
// CHECK-NEXT: vector.load {{.*}} : memref<2x32xf32>
// CHECK-NEXT: vector.fma
// CHECK: scf.yield
// CHECK: vector.shuffle %[[SUMS]]#0, %[[SUMS]]#1
// CHECK-NEXT: vector.shuffle %[[SUMS]]#0, %[[SUMS]]#1
// CHECK-NEXT: arith.addf
// CHECK: vector.extract_strided_slice {{.*}} {offsets = [0], sizes = [2], strides = [1]}
// CHECK: vector.store
// CHECK: vector.extract_strided_slice {{.*}} {offsets = [2], sizes = [2], strides = [1]}
// CHECK: vector.store
// CHECK: return
func.func private @dots(%task: index, %q: memref<2x32xf32>, %k: memref<?x32xbf16>, %s: memref<2x16xf32>, %n: index)
    attributes {tile.kernel} {
  tile.multiply %q, %k, %s rows %n by_rows : memref<2x32xf32>, memref<?x32xbf16>, memref<2x16xf32>
  return
}

// Of several heads, each row has its own.
// CHECK-LABEL: func.func private @heads
// CHECK: %[[HEAD:.*]] = memref.load %[[HEADS:.*]][%{{.*}}] : memref<4xindex>
// CHECK: vector.broadcast %[[HEAD]] : index to vector
// CHECK: return
func.func private @heads(%task: index, %s: memref<4x16xf32>, %i: memref<4xindex>, %j: memref<16xindex>,
                         %h: memref<4xindex>, %n: index) attributes {tile.kernel} {
  tile.map %s rows %n columns %n at (%n, %h, %i, %j) of (%n, %n) unit 1.0
      mask(%b, %head, %row, %column, %sq, %sk) {
        %keep = arith.cmpi sle, %column, %head : index
        burst.yield %keep : i1
      } : memref<4x16xf32>, memref<4xindex>, memref<16xindex>, memref<4xindex>
  return
}
