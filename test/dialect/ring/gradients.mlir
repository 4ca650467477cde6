// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// ring.zero, ring.delta, ring.attend_grad, ring.add and ring.round: their
// examples and other types, on tensors and on buffers.

// CHECK-LABEL: func @zero
func.func @zero(%k: tensor<1x256x2x64xbf16>, %d: tensor<?x?xf64>,
                %kb: memref<1x256x2x64xbf16>, %dkb: memref<1x256x2x64xf32>) {
  // CHECK: ring.zero %{{.*}} : tensor<1x256x2x64xbf16> -> tensor<1x256x2x64xf32>
  %dk = ring.zero %k : tensor<1x256x2x64xbf16> -> tensor<1x256x2x64xf32>
  // Of a captured table, too.
  // CHECK: ring.zero %{{.*}} {mine} : tensor<?x?xf64> -> tensor<?x?xf64>
  %dt = ring.zero %d {mine} : tensor<?x?xf64> -> tensor<?x?xf64>
  // CHECK: ring.zero %{{.*}} into %{{.*}} : memref<1x256x2x64xbf16>, memref<1x256x2x64xf32>
  ring.zero %kb into %dkb : memref<1x256x2x64xbf16>, memref<1x256x2x64xf32>
  return
}

// CHECK-LABEL: func @delta
func.func @delta(%o: tensor<1x256x4x64xbf16>, %dlse: tensor<1x4x256xf32>,
                 %d: tensor<?x?x4x64xf64>, %ob: memref<1x256x4x64xf32>,
                 %db: memref<1x4x256xf32>) {
  // CHECK: ring.delta %{{.*}}, %{{.*}} less %{{.*}} : tensor<1x256x4x64xbf16>, tensor<1x256x4x64xbf16>, tensor<1x4x256xf32> -> tensor<1x4x256xf32>
  %0 = ring.delta %o, %o less %dlse : tensor<1x256x4x64xbf16>,
      tensor<1x256x4x64xbf16>, tensor<1x4x256xf32> -> tensor<1x4x256xf32>
  // CHECK: ring.delta %{{.*}}, %{{.*}} : tensor<?x?x4x64xf64>, tensor<?x?x4x64xf64> -> tensor<?x4x?xf64>
  %1 = ring.delta %d, %d : tensor<?x?x4x64xf64>, tensor<?x?x4x64xf64> -> tensor<?x4x?xf64>
  // CHECK: ring.delta %{{.*}}, %{{.*}} into %{{.*}} : memref<1x256x4x64xf32>, memref<1x256x4x64xf32>, memref<1x4x256xf32>
  ring.delta %ob, %ob into %db : memref<1x256x4x64xf32>, memref<1x256x4x64xf32>, memref<1x4x256xf32>
  // CHECK: ring.delta %{{.*}}, %{{.*}} less %{{.*}} into %{{.*}} : memref<1x256x4x64xf32>, memref<1x256x4x64xf32>, memref<1x4x256xf32>, memref<1x4x256xf32>
  ring.delta %ob, %ob less %db into %db : memref<1x256x4x64xf32>, memref<1x256x4x64xf32>, memref<1x4x256xf32>, memref<1x4x256xf32>
  return
}

// CHECK-LABEL: func @attend_grad
// CHECK-SAME: (%[[Q:.*]]: tensor<1x256x4x64xf32>, %[[DO:.*]]: tensor<1x256x4x64xf32>, %[[LSE:.*]]: tensor<1x4x256xf32>, %[[D:.*]]: tensor<1x4x256xf32>, %[[K:.*]]: tensor<1x256x2x64xf32>, %[[V:.*]]: tensor<1x256x2x64xf32>, %[[DQ:.*]]: tensor<1x256x4x64xf32>, %[[DK:.*]]: tensor<1x256x2x64xf32>, %[[DV:.*]]: tensor<1x256x2x64xf32>, %[[O:.*]]: index, %[[R:.*]]: index, %[[SQ:.*]]: index, %[[SK:.*]]: index)
// CHECK: %dq, %dk, %dv = ring.attend_grad (%[[Q]], %[[DO]], %[[LSE]], %[[D]] at %[[O]]) of <zigzag over 8> extent %[[SQ]]
// CHECK-NEXT: slice (%[[K]], %[[V]] at %[[R]]) of <zigzag over 8> extent %[[SK]]
// CHECK-NEXT: into %[[DQ]], %[[DK]], %[[DV]] scale 1.250000e-01
// CHECK-NEXT: : (tensor<1x256x4x64xf32>, tensor<1x256x4x64xf32>, tensor<1x4x256xf32>, tensor<1x4x256xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>) -> (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
func.func @attend_grad(%q: tensor<1x256x4x64xf32>, %do: tensor<1x256x4x64xf32>,
    %lse: tensor<1x4x256xf32>, %delta: tensor<1x4x256xf32>,
    %k: tensor<1x256x2x64xf32>, %v: tensor<1x256x2x64xf32>,
    %dq0: tensor<1x256x4x64xf32>, %dk0: tensor<1x256x2x64xf32>,
    %dv0: tensor<1x256x2x64xf32>, %o: index, %r: index, %sq: index, %sk: index) {
  %dq1, %dk1, %dv1 = ring.attend_grad (%q, %do, %lse, %delta at %o)
      of <zigzag over 8> extent %sq slice (%k, %v at %r) of <zigzag over 8>
      extent %sk into %dq0, %dk0, %dv0 scale 0.125
      : (tensor<1x256x4x64xf32>, tensor<1x256x4x64xf32>, tensor<1x4x256xf32>,
         tensor<1x4x256xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
      -> (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
  return
}

// All clauses; the score's second capture is a table whose gradient is wanted.
//
// CHECK-LABEL: func @all
// CHECK: %dq, %dk, %dv, %dt = ring.attend_grad
// CHECK: into %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} captures [1] pairs(%{{.*}} : tensor<2x2x1x2xi1>) scale 1.000000e+00
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk, %{{.*}} = %{{.*}} : i1) {
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %{{.*}} = %{{.*}} : f32, %{{.*}} = %{{.*}} : tensor<8x4xf32>) {
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %{{.*}} : i1) {
// CHECK: gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %{{.*}} : f32, %{{.*}} : f32, %{{.*}} : tensor<8x4xf32>) {
// CHECK: } {mine}
// CHECK-NEXT: -> (tensor<?x?x2x4xf32>, tensor<1x?x1x4xf32>, tensor<1x?x1x6xf32>, tensor<8x4xf32>)
func.func @all(%q: tensor<?x?x2x4xbf16>, %do: tensor<?x?x2x6xbf16>,
               %rows: tensor<1x2x?xf32>, %k: tensor<1x?x1x4xbf16>,
               %v: tensor<1x?x1x6xbf16>, %dq: tensor<?x?x2x4xf32>,
               %dk: tensor<1x?x1x4xf32>, %dv: tensor<1x?x1x6xf32>,
               %dt: tensor<8x4xf32>, %t: tensor<8x4xf32>, %x: f32, %p: i1,
               %need: tensor<2x2x1x2xi1>, %n: index) {
  %0:4 = ring.attend_grad (%q, %do, %rows, %rows at %n) of <contiguous over 2>
      extent %n slice (%k, %v at %n) of <zigzag over 2> extent %n
      into %dq, %dk, %dv, %dt captures [1] pairs(%need : tensor<2x2x1x2xi1>) scale 1.0
      mask(%b, %h, %i, %j, %sq, %sk, %c = %p : i1) {
        burst.yield %c : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %x : f32, %e = %t : tensor<8x4xf32>) {
        %y = arith.mulf %s, %c : f32
        burst.yield %y : f32
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %c : i1) {
        burst.yield %c, %c : i1, i1
      }
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : f32, %e : tensor<8x4xf32>) {
        %u = arith.mulf %w, %c : f32
        burst.yield %u : f32
      }
      {mine}
      : (tensor<?x?x2x4xbf16>, tensor<?x?x2x6xbf16>, tensor<1x2x?xf32>,
         tensor<1x2x?xf32>, tensor<1x?x1x4xbf16>, tensor<1x?x1x6xbf16>)
      -> (tensor<?x?x2x4xf32>, tensor<1x?x1x4xf32>, tensor<1x?x1x6xf32>, tensor<8x4xf32>)
  return
}

// CHECK-LABEL: func @buffers
// CHECK: ring.attend_grad (
// CHECK: into %{{.*}}, %{{.*}}, %{{.*}} scale
// CHECK-NEXT: : (memref<1x8x2x4xf64>, memref<1x8x2x4xf64>, memref<1x2x8xf64>, memref<1x2x8xf64>, memref<1x8x2x4xf64>, memref<1x8x2x4xf64>, memref<1x8x2x4xf64>, memref<1x8x2x4xf64>, memref<1x8x2x4xf64>) -> ()
// CHECK: ring.add %{{.*}}, %{{.*}} of <contiguous over 2>[%{{.*}}] extent %{{.*}} : memref<1x8x2x4xf64>, memref<1x8x2x4xf64>
// CHECK: ring.round %{{.*}} into %{{.*}} : memref<1x8x2x4xf64>, memref<1x8x2x4xf32>
func.func @buffers(%x: memref<1x8x2x4xf64>, %y: memref<1x8x2x4xf64>,
                   %r: memref<1x2x8xf64>, %z: memref<1x8x2x4xf32>, %n: index) {
  ring.attend_grad (%x, %x, %r, %r at %n) of <contiguous over 2> extent %n
      slice (%x, %x at %n) of <contiguous over 2> extent %n
      into %y, %y, %y scale 1.0
      : (memref<1x8x2x4xf64>, memref<1x8x2x4xf64>, memref<1x2x8xf64>,
         memref<1x2x8xf64>, memref<1x8x2x4xf64>, memref<1x8x2x4xf64>,
         memref<1x8x2x4xf64>, memref<1x8x2x4xf64>, memref<1x8x2x4xf64>) -> ()
  ring.add %x, %y of <contiguous over 2>[%n] extent %n : memref<1x8x2x4xf64>, memref<1x8x2x4xf64>
  ring.round %x into %z : memref<1x8x2x4xf64>, memref<1x8x2x4xf32>
  return
}

// CHECK-LABEL: func @add
func.func @add(%a: tensor<1x256x2x64xf32>, %d: tensor<?x?x2x64xf64>, %o: index,
               %s: index, %arrived: tensor<8x9x2xi1>, %turn: index) {
  // CHECK: ring.add %{{.*}}, %{{.*}} of <zigzag over 8>[%{{.*}}] extent %{{.*}} segments(%{{.*}}[%{{.*}}] : tensor<8x9x2xi1>) : tensor<1x256x2x64xf32>
  %c = ring.add %a, %a of <zigzag over 8>[%o] extent %s
      segments(%arrived[%turn] : tensor<8x9x2xi1>) : tensor<1x256x2x64xf32>
  // CHECK: ring.add %{{.*}}, %{{.*}} of <striped 4 over 8>[%{{.*}}] extent %{{.*}} : tensor<?x?x2x64xf64>
  %0 = ring.add %d, %d of <striped 4 over 8>[%o] extent %s : tensor<?x?x2x64xf64>
  return
}

// CHECK-LABEL: func @round
func.func @round(%dk: tensor<1x256x2x64xf32>, %d: tensor<?x?x2x64xf64>) {
  // CHECK: ring.round %{{.*}} : tensor<1x256x2x64xf32> -> tensor<1x256x2x64xbf16>
  %r = ring.round %dk : tensor<1x256x2x64xf32> -> tensor<1x256x2x64xbf16>
  // CHECK: ring.round %{{.*}} : tensor<1x256x2x64xf32> -> tensor<1x256x1x64xf32>
  %sum = ring.round %dk : tensor<1x256x2x64xf32> -> tensor<1x256x1x64xf32>
  // CHECK: ring.round %{{.*}} : tensor<?x?x2x64xf64> -> tensor<?x?x2x64xf32>
  %0 = ring.round %d : tensor<?x?x2x64xf64> -> tensor<?x?x2x64xf32>
  return
}
