// RUN: burst-opt %s --canonicalize | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// It has no result and is not dead.
// CHECK-LABEL: func @example
// CHECK-SAME: (%[[V:.*]]: f32, %[[BIAS:.*]]: tensor<512x512xbf16>, %[[I:.*]]: index, %[[J:.*]]: index)
// CHECK: burst.contribute %[[V]] to %[[BIAS]][%[[I]], %[[J]]] : f32, tensor<512x512xbf16>
func.func @example(%v: f32, %bias: tensor<512x512xbf16>, %i: index, %j: index) {
  burst.contribute %v to %bias[%i, %j] : f32, tensor<512x512xbf16>
  return
}

// CHECK-LABEL: func @captures
// CHECK: burst.contribute %[[V:.*]] to %{{.*}} : f64, f16
// CHECK: burst.contribute %[[V]] to %{{.*}}[%[[I:.*]]] {mine} : f64, tensor<?xf64>
// CHECK: burst.contribute %[[V]] to %{{.*}}[%[[I]], %[[I]], %[[I]], %[[I]]] : f64, tensor<2x?x1x8xf8E5M2>
func.func @captures(%v: f64, %0: f16, %1: tensor<?xf64>,
                    %2: tensor<2x?x1x8xf8E5M2>, %i: index) {
  burst.contribute %v to %0 : f64, f16
  burst.contribute %v to %1[%i] {mine} : f64, tensor<?xf64>
  burst.contribute %v to %2[%i, %i, %i, %i] : f64, tensor<2x?x1x8xf8E5M2>
  return
}
