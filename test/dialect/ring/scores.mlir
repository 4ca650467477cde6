// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// ring.scores, ring.score, ring.softmax, ring.weigh, ring.probabilities,
// ring.weigh_grad and ring.score_grad: their examples and other
// types, on tensors and on buffers.

// CHECK-LABEL: func @scores
func.func @scores(%q: tensor<1x256x4x64xbf16>, %d: tensor<?x?x4x64xf64>, %n: index,
                  %qb: memref<1x256x4x64xbf16>, %sb: memref<1x4x256x1024xf32>) {
  // CHECK: ring.scores %{{.*}} extent %{{.*}} : tensor<1x256x4x64xbf16> -> tensor<1x4x256x1024xf32>
  %s = ring.scores %q extent %n : tensor<1x256x4x64xbf16> -> tensor<1x4x256x1024xf32>
  // CHECK: ring.scores %{{.*}} extent %{{.*}} {mine} : tensor<?x?x4x64xf64> -> tensor<?x4x?x?xf64>
  %t = ring.scores %d extent %n {mine} : tensor<?x?x4x64xf64> -> tensor<?x4x?x?xf64>
  // CHECK: ring.scores %{{.*}} extent %{{.*}} into %{{.*}} : memref<1x256x4x64xbf16>, memref<1x4x256x1024xf32>
  ring.scores %qb extent %n into %sb : memref<1x256x4x64xbf16>, memref<1x4x256x1024xf32>
  return
}

// CHECK-LABEL: func @score
func.func @score(%q: tensor<1x256x4x64xf32>, %k: tensor<1x256x2x64xf32>, %r: index, %n: index,
                 %s0: tensor<1x4x256x1024xf32>, %qb: memref<1x256x4x64xf32>,
                 %kb: memref<1x256x2x64xf32>, %sb: memref<1x4x256x1024xf32>, %x: memref<4x4x1x1xi1>,
                 %slopes: tensor<4xf32>) {
  // CHECK: %{{.*}} = ring.score %{{.*}} at <zigzag over 4>[%{{.*}}] extent %{{.*}}
  // CHECK-NEXT: slice (%{{.*}} at %{{.*}}) of <zigzag over 4> extent %{{.*}} into %{{.*}} scale 1.250000e-01
  // CHECK-NEXT: : (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>) -> tensor<1x4x256x1024xf32>
  %s1 = ring.score %q at <zigzag over 4>[%r] extent %n
      slice (%k at %r) of <zigzag over 4> extent %n into %s0 scale 0.125
      : (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>) -> tensor<1x4x256x1024xf32>
  // CHECK: ring.score {{.*}}
  // CHECK-NEXT: into %{{.*}} pairs(%{{.*}} : memref<4x4x1x1xi1>) scale 1.250000e-01
  // CHECK-NEXT: mask(
  // CHECK: score(%{{.*}} : f32, %{{.*}}, %{{.*}} = %{{.*}} : tensor<4xf32>) {
  // CHECK: {mine}
  // CHECK-NEXT: : (memref<1x256x4x64xf32>, memref<1x256x2x64xf32>, memref<1x4x256x1024xf32>) -> ()
  ring.score %qb at <contiguous over 4>[%r] extent %n
      slice (%kb at %r) of <contiguous over 4> extent %n into %sb pairs(%x : memref<4x4x1x1xi1>) scale 0.125
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %t = %slopes : tensor<4xf32>) {
        %slope = tensor.extract %t[%h] : tensor<4xf32>
        %y = arith.mulf %s, %slope : f32
        burst.yield %y : f32
      }
      {mine}
      : (memref<1x256x4x64xf32>, memref<1x256x2x64xf32>, memref<1x4x256x1024xf32>) -> ()
  return
}

// CHECK-LABEL: func @softmax
func.func @softmax(%s: tensor<1x4x256x1024xf32>, %o: tensor<1x256x4x64xf32>, %m: tensor<1x4x256xf32>,
                   %sb: memref<1x4x256x1024xf32>, %ob: memref<1x256x4x64xf32>,
                   %mb: memref<1x4x256xf32>, %lb: memref<1x4x256xf32>) {
  // CHECK: ring.softmax %{{.*}} state %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x256x1024xf32>, tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
  %p, %o1, %m1, %l1 = ring.softmax %s state %o, %m, %m
      : tensor<1x4x256x1024xf32>, tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
  // CHECK: ring.softmax %{{.*}} state %{{.*}}, %{{.*}}, %{{.*}} : memref<1x4x256x1024xf32>, memref<1x256x4x64xf32>, memref<1x4x256xf32>, memref<1x4x256xf32>
  ring.softmax %sb state %ob, %mb, %lb : memref<1x4x256x1024xf32>, memref<1x256x4x64xf32>,
      memref<1x4x256xf32>, memref<1x4x256xf32>
  return
}

// CHECK-LABEL: func @weigh
func.func @weigh(%p: tensor<1x4x256x1024xf32>, %v: tensor<1x256x2x64xbf16>, %r: index, %n: index,
                 %o: tensor<1x256x4x64xf32>, %m: tensor<1x4x256xf32>,
                 %pb: memref<1x4x256x1024xf32>, %vb: memref<1x256x2x64xbf16>,
                 %ob: memref<1x256x4x64xf32>, %mb: memref<1x4x256xf32>, %lb: memref<1x4x256xf32>) {
  // CHECK: ring.weigh %{{.*}}, (%{{.*}} at %{{.*}}) of <zigzag over 4> extent %{{.*}} state %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x256x1024xf32>, tensor<1x256x2x64xbf16>, tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
  %o1, %m1, %l1 = ring.weigh %p, (%v at %r) of <zigzag over 4> extent %n state %o, %m, %m
      : tensor<1x4x256x1024xf32>, tensor<1x256x2x64xbf16>, tensor<1x256x4x64xf32>,
        tensor<1x4x256xf32>
  // CHECK: ring.weigh {{.*}} : memref<1x4x256x1024xf32>, memref<1x256x2x64xbf16>, memref<1x256x4x64xf32>, memref<1x4x256xf32>, memref<1x4x256xf32>
  ring.weigh %pb, (%vb at %r) of <zigzag over 4> extent %n state %ob, %mb, %lb
      : memref<1x4x256x1024xf32>, memref<1x256x2x64xbf16>, memref<1x256x4x64xf32>,
        memref<1x4x256xf32>, memref<1x4x256xf32>
  return
}

// CHECK-LABEL: func @probabilities
func.func @probabilities(%s: tensor<1x4x256x1024xf32>, %lse: tensor<1x4x256xf32>,
                         %sb: memref<1x4x256x1024xf32>, %lb: memref<1x4x256xf32>) {
  // CHECK: ring.probabilities %{{.*}}, %{{.*}} : tensor<1x4x256x1024xf32>, tensor<1x4x256xf32>
  %p = ring.probabilities %s, %lse : tensor<1x4x256x1024xf32>, tensor<1x4x256xf32>
  // CHECK: ring.probabilities %{{.*}}, %{{.*}} : memref<1x4x256x1024xf32>, memref<1x4x256xf32>
  ring.probabilities %sb, %lb : memref<1x4x256x1024xf32>, memref<1x4x256xf32>
  return
}

// CHECK-LABEL: func @weigh_grad
func.func @weigh_grad(%do: tensor<1x256x4x64xf32>, %delta: tensor<1x4x256xf32>,
                      %v: tensor<1x256x2x64xf32>, %owner: index, %sk: index,
                      %p0: tensor<1x4x256x1024xf32>, %dv0: tensor<1x256x2x64xf32>,
                      %dob: memref<?x?x4x64xbf16>, %deltab: memref<?x4x?xf32>,
                      %vb: memref<?x?x2x64xbf16>, %pb: memref<?x4x?x?xf32>,
                      %dvb: memref<?x?x2x64xf32>) {
  // CHECK: %{{.*}}, %{{.*}} = ring.weigh_grad(%{{.*}}, %{{.*}}), (%{{.*}} at %{{.*}}) of <zigzag over 4> extent %{{.*}} into %{{.*}}, %{{.*}} scale 1.250000e-01 : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>, tensor<1x256x2x64xf32>, tensor<1x4x256x1024xf32>, tensor<1x256x2x64xf32>
  %p1, %dv1 = ring.weigh_grad (%do, %delta), (%v at %owner) of <zigzag over 4>
      extent %sk into %p0, %dv0 scale 0.125
      : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>, tensor<1x256x2x64xf32>,
        tensor<1x4x256x1024xf32>, tensor<1x256x2x64xf32>
  // CHECK: ring.weigh_grad({{.*}} : memref<?x?x4x64xbf16>, memref<?x4x?xf32>, memref<?x?x2x64xbf16>, memref<?x4x?x?xf32>, memref<?x?x2x64xf32>
  ring.weigh_grad (%dob, %deltab), (%vb at %owner) of <contiguous over 2>
      extent %sk into %pb, %dvb scale 0.5
      : memref<?x?x4x64xbf16>, memref<?x4x?xf32>, memref<?x?x2x64xbf16>,
        memref<?x4x?x?xf32>, memref<?x?x2x64xf32>
  return
}

// CHECK-LABEL: func @score_grad
func.func @score_grad(%u: tensor<1x4x256x1024xf32>, %q: tensor<1x256x4x64xf32>,
                      %k: tensor<1x256x2x64xf32>, %owner: index, %sk: index,
                      %dk0: tensor<1x256x2x64xf32>, %ub: memref<1x4x8x32xf64>,
                      %qb: memref<1x8x4x16xf64>) {
  // CHECK: %{{.*}}, %{{.*}} = ring.score_grad %{{.*}}, %{{.*}}, (%{{.*}} at %{{.*}}) of <zigzag over 4> extent %{{.*}} into %{{.*}}, %{{.*}} : tensor<1x4x256x1024xf32>, tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>
  %dq1, %dk1 = ring.score_grad %u, %q, (%k at %owner) of <zigzag over 4>
      extent %sk into %q, %dk0
      : tensor<1x4x256x1024xf32>, tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>,
        tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>
  // CHECK: ring.score_grad {{.*}} : memref<1x4x8x32xf64>, memref<1x8x4x16xf64>, memref<1x8x4x16xf64>, memref<1x8x4x16xf64>, memref<1x8x4x16xf64>
  ring.score_grad %ub, %qb, (%qb at %owner) of <contiguous over 4> extent %sk into %qb, %qb
      : memref<1x4x8x32xf64>, memref<1x8x4x16xf64>, memref<1x8x4x16xf64>,
        memref<1x8x4x16xf64>, memref<1x8x4x16xf64>
  return
}
