// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// The example of the op.
//
// CHECK-LABEL: func @example
// CHECK-SAME: (%[[Q:.*]]: tensor<1x256x4x64xf32>, %[[K:.*]]: tensor<1x256x2x64xf32>, %[[V:.*]]: tensor<1x256x2x64xf32>, %[[O:.*]]: tensor<1x256x4x64xf32>, %[[M:.*]]: tensor<1x4x256xf32>, %[[L:.*]]: tensor<1x4x256xf32>, %[[R:.*]]: index, %[[OWNER:.*]]: index, %[[SQ:.*]]: index, %[[SK:.*]]: index)
// CHECK: %o, %m, %l = ring.attend %[[Q]] at <zigzag over 8>[%[[R]]] extent %[[SQ]]
// CHECK-NEXT: slice (%[[K]], %[[V]] at %[[OWNER]]) of <zigzag over 8> extent %[[SK]]
// CHECK-NEXT: state %[[O]], %[[M]], %[[L]] scale 1.250000e-01
// CHECK-NEXT: : (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>) -> (tensor<1x256x4x64xf32>, tensor<1x4x256xf32>)
func.func @example(%q: tensor<1x256x4x64xf32>, %k: tensor<1x256x2x64xf32>,
                   %v: tensor<1x256x2x64xf32>, %o0: tensor<1x256x4x64xf32>,
                   %m0: tensor<1x4x256xf32>, %l0: tensor<1x4x256xf32>,
                   %r: index, %owner: index, %sq: index, %sk: index) {
  %o1, %m1, %l1 = ring.attend %q at <zigzag over 8>[%r] extent %sq
      slice (%k, %v at %owner) of <zigzag over 8> extent %sk
      state %o0, %m0, %l0 scale 0.125
      : (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
      -> (tensor<1x256x4x64xf32>, tensor<1x4x256xf32>)
  return
}

// Flags, layouts that differ, all regions.
//
// CHECK-LABEL: func @all
// CHECK-SAME: %[[P:[^ ]+]]: i1, %[[NEED:[^ ]+]]: tensor<2x2x2x1xi1>, %[[T:[^ ]+]]: tensor<8xi32>, %[[N:[^ ]+]]: index)
// CHECK: ring.attend %{{.*}} at <zigzag over 2>[%[[N]]] extent %[[N]]
// CHECK-NEXT: slice (%{{.*}}, %{{.*}} at %[[N]]) of <striped 4 over 2> extent %[[N]]
// CHECK-NEXT: state %{{.*}}, %[[M:.*]], %[[M]] pairs(%[[NEED]] : tensor<2x2x2x1xi1>) scale -1.000000e+00
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk, %[[A:.*]] = %[[T]] : tensor<8xi32>) {
// CHECK: }
// CHECK-NEXT: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %{{.*}} = %[[P]] : i1) {
// CHECK: }
// CHECK-NEXT: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %{{.*}} : tensor<8xi32>) {
// CHECK: } {mine}
// CHECK-NEXT: : (tensor<?x?x2x4xbf16>, tensor<1x?x1x4xbf16>, tensor<1x?x1x6xbf16>) -> (tensor<1x?x2x6xf32>, tensor<1x2x?xf32>)
func.func @all(%q: tensor<?x?x2x4xbf16>, %k: tensor<1x?x1x4xbf16>,
               %v: tensor<1x?x1x6xbf16>, %o: tensor<1x?x2x6xf32>,
               %m: tensor<1x2x?xf32>, %p: i1, %need: tensor<2x2x2x1xi1>, %t: tensor<8xi32>, %n: index) {
  %0:3 = ring.attend %q at <zigzag over 2>[%n] extent %n
      slice (%k, %v at %n) of <striped 4 over 2> extent %n
      state %o, %m, %m pairs(%need : tensor<2x2x2x1xi1>) scale -1.0
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xi32>) {
        %true = arith.constant true
        burst.yield %true : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %p : i1) {
        burst.yield %s : f32
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %c : tensor<8xi32>) {
        %true = arith.constant true
        burst.yield %true, %true : i1, i1
      }
      {mine}
      : (tensor<?x?x2x4xbf16>, tensor<1x?x1x4xbf16>, tensor<1x?x1x6xbf16>)
      -> (tensor<1x?x2x6xf32>, tensor<1x2x?xf32>)
  return
}

// f64 keeps its state in f64.
//
// CHECK-LABEL: func @f64
// CHECK: ring.attend
// CHECK: : (tensor<1x2x1x4xf64>, tensor<1x2x1x4xf64>, tensor<1x2x1x4xf64>) -> (tensor<1x2x1x4xf64>, tensor<1x1x2xf64>)
func.func @f64(%q: tensor<1x2x1x4xf64>, %m: tensor<1x1x2xf64>, %n: index) {
  %0:3 = ring.attend %q at <contiguous over 1>[%n] extent %n
      slice (%q, %q at %n) of <contiguous over 1> extent %n
      state %q, %m, %m scale 1.0
      : (tensor<1x2x1x4xf64>, tensor<1x2x1x4xf64>, tensor<1x2x1x4xf64>)
      -> (tensor<1x2x1x4xf64>, tensor<1x1x2xf64>)
  return
}

// What begins or ends with it.
//
// CHECK-LABEL: func @ends
func.func @ends(%q: tensor<1x256x4x64xbf16>, %k: tensor<1x256x2x64xbf16>, %r: index, %n: index)
    -> (tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>) {
  // CHECK: %out, %lse = ring.attend
  // CHECK-NEXT: slice
  // CHECK-NEXT: first last scale 1.250000e-01
  // CHECK-NEXT: : (tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>) -> (tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>)
  %0:2 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %k at %r) of <zigzag over 2> extent %n first last scale 0.125
      : (tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>)
      -> (tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>)
  // CHECK: %o, %m, %l = ring.attend
  // CHECK-NEXT: slice
  // CHECK-NEXT: first scale 1.250000e-01
  // CHECK-NEXT: : (tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>) -> (tensor<1x256x4x64xf32>, tensor<1x4x256xf32>)
  %1:3 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %k at %r) of <zigzag over 2> extent %n first scale 0.125
      : (tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>)
      -> (tensor<1x256x4x64xf32>, tensor<1x4x256xf32>)
  // CHECK: ring.attend
  // CHECK-NEXT: slice
  // CHECK-NEXT: state %o, %m, %l last scale 1.250000e-01
  // CHECK-NEXT: : (tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>) -> (tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>)
  %2:2 = ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%k, %k at %r) of <zigzag over 2> extent %n state %1#0, %1#1, %1#2 last scale 0.125
      : (tensor<1x256x4x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>)
      -> (tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>)
  return %2#0, %2#1 : tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>
}

// CHECK-LABEL: func @ends_on_buffers
func.func @ends_on_buffers(%q: memref<1x2x1x4xbf16>, %o: memref<1x2x1x4xf32>, %m: memref<1x1x2xf32>,
                           %l: memref<1x1x2xf32>, %out: memref<1x2x1x4xbf16>, %r: index, %n: index) {
  // CHECK: first into %{{.*}}, %{{.*}}, %{{.*}} scale
  // CHECK-NEXT: : (memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>) -> ()
  ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%q, %q at %r) of <zigzag over 2> extent %n first into %o, %m, %l scale 0.125
      : (memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>,
         memref<1x2x1x4xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>) -> ()
  // CHECK: state %{{.*}}, %{{.*}}, %{{.*}} last into %{{.*}}, %{{.*}} scale
  // CHECK-NEXT: : (memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xf32>, memref<1x1x2xf32>, memref<1x1x2xf32>, memref<1x2x1x4xbf16>, memref<1x1x2xf32>) -> ()
  ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%q, %q at %r) of <zigzag over 2> extent %n state %o, %m, %l last into %out, %m scale 0.125
      : (memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xf32>,
         memref<1x1x2xf32>, memref<1x1x2xf32>, memref<1x2x1x4xbf16>, memref<1x1x2xf32>) -> ()
  // CHECK: first last into %{{.*}}, %{{.*}} scale
  ring.attend %q at <zigzag over 2>[%r] extent %n
      slice (%q, %q at %r) of <zigzag over 2> extent %n first last into %out, %m scale 0.125
      : (memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>, memref<1x2x1x4xbf16>,
         memref<1x2x1x4xbf16>, memref<1x1x2xf32>) -> ()
  return
}
