// RUN: burst-opt %s --cuda-narrow-positions --canonicalize --cse | FileCheck %s

// What a causal mask with a window computes fits in 32 bits, and so does what is
// compared without a sign, below 0 or not.
//
// CHECK-LABEL: func.func @fits(
// CHECK: mask(%{{.*}}, %{{.*}}, %[[I:.*]], %[[J:.*]], %[[SQ:.*]], %[[SK:.*]]) {
// CHECK-DAG: %[[SK32:.*]] = arith.index_castui %[[SK]] : index to i32
// CHECK-DAG: %[[SQ32:.*]] = arith.index_castui %[[SQ]] : index to i32
// CHECK-DAG: %[[I32:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK-DAG: %[[J32:.*]] = arith.index_castui %[[J]] : index to i32
// CHECK-DAG: %[[SHIFT:.*]] = arith.subi %[[SK32]], %[[SQ32]] : i32
// CHECK-DAG: %[[LAST:.*]] = arith.addi %[[I32]], %[[SHIFT]] : i32
// CHECK-DAG: arith.cmpi sle, %[[J32]], %[[LAST]] : i32
// CHECK-DAG: %[[FIRST:.*]] = arith.subi %[[LAST]], %{{.*}} : i32
// CHECK-DAG: arith.cmpi sge, %[[J32]], %[[FIRST]] : i32
// CHECK-DAG: %[[FROM:.*]] = arith.subi %[[I32]], %[[J32]] : i32
// CHECK-DAG: arith.cmpi ult, %[[FROM]], %{{.*}} : i32
// CHECK-NOT: : index
// CHECK: burst.yield
func.func @fits(%task: index, %s: memref<64x64xf32>, %n: index, %b: index, %h: index, %i: memref<64xindex>, %j: memref<64xindex>)
    attributes {tile.kernel, tile.warps = 4 : i64} {
  tile.map %s rows %n columns %n at (%b, %h, %i, %j) of (%n, %n) unit 1.0
      mask(%b0, %h0, %i0, %j0, %sq, %sk) {
        %c1024 = arith.constant 1024 : index
        %shift = arith.subi %sk, %sq : index
        %last = arith.addi %i0, %shift : index
        %causal = arith.cmpi sle, %j0, %last : index
        %first = arith.subi %last, %c1024 : index
        %window = arith.cmpi sge, %j0, %first : index
        %from = arith.subi %i0, %j0 : index
        %near = arith.cmpi ult, %from, %c1024 : index
        %both = arith.andi %causal, %window : i1
        %keep = arith.andi %both, %near : i1
        burst.yield %keep : i1
      } : memref<64x64xf32>, memref<64xindex>, memref<64xindex>
  return
}

// Products of positions, sums of five and what is captured do not.
//
// CHECK-LABEL: func.func @grows(
// CHECK: arith.muli %{{.*}}, %{{.*}} : index
// CHECK: arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK: arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: arith.addi %{{.*}}, %{{.*}} : index
// CHECK: arith.cmpi sgt, %{{.*}}, %{{.*}} : index
// CHECK: arith.addi %{{.*}}, %{{.*}} : i64
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : i64
func.func @grows(%task: index, %s: memref<64x64xf32>, %n: index, %b: index, %h: index, %i: memref<64xindex>, %j: memref<64xindex>,
                 %far: i64)
    attributes {tile.kernel, tile.warps = 4 : i64} {
  tile.map %s rows %n columns %n at (%b, %h, %i, %j) of (%n, %n) unit 1.0
      mask(%b0, %h0, %i0, %j0, %sq, %sk, %c = %far : i64) {
        %product = arith.muli %i0, %j0 : index
        %large = arith.cmpi sge, %product, %sk : index
        %two = arith.addi %i0, %j0 : index
        %three = arith.addi %two, %sk : index
        %four = arith.addi %three, %sk : index
        %five = arith.addi %four, %sk : index
        %behind = arith.cmpi sgt, %five, %product : index
        %place = arith.index_cast %j0 : index to i64
        %moved = arith.addi %place, %c : i64
        %before = arith.cmpi slt, %moved, %c : i64
        %both = arith.andi %large, %behind : i1
        %keep = arith.andi %both, %before : i1
        burst.yield %keep : i1
      } : memref<64x64xf32>, memref<64xindex>, memref<64xindex>
  return
}

// A CPU has registers of 64 bits, and no bound on sizes.
//
// CHECK-LABEL: func.func @cpu(
// CHECK: arith.cmpi sle, %{{.*}}, %{{.*}} : index
func.func @cpu(%task: index, %s: memref<64x64xf32>, %n: index, %b: index, %h: index, %i: memref<64xindex>, %j: memref<64xindex>)
    attributes {tile.kernel} {
  tile.map %s rows %n columns %n at (%b, %h, %i, %j) of (%n, %n) unit 1.0
      mask(%b0, %h0, %i0, %j0, %sq, %sk) {
        %causal = arith.cmpi sle, %j0, %i0 : index
        burst.yield %causal : i1
      } : memref<64x64xf32>, memref<64xindex>, memref<64xindex>
  return
}
