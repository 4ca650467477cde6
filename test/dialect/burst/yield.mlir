// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// CHECK-LABEL: func @example
// CHECK: burst.yield %[[KEEP:.*]] : i1
// CHECK: burst.yield %s : f32
// CHECK: burst.yield {mine} %[[MAY:.*]], %[[MAY]] : i1, i1
func.func @example(%q: tensor<1x8x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.constant true
        burst.yield %keep : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        burst.yield %s : f32
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %may = arith.constant true
        burst.yield {mine} %may, %may : i1, i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}
