// RUN: burst-opt %s --burst-poison-blocks | FileCheck %s

// CHECK-LABEL: func.func @kernel
func.func @kernel(%task: index, %out: memref<4xf32>) attributes {tile.kernel} {
  // CHECK: %[[BLOCK:.*]] = memref.alloca() : memref<4x8xf32>
  // CHECK: %[[NAN:.*]] = arith.constant 0xFFFFFFFF : f32
  // CHECK: %[[ROWS:.*]] = arith.constant 4 : index
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[ROWS]]
  // CHECK: %[[COLUMNS:.*]] = arith.constant 8 : index
  // CHECK: scf.for %[[J:.*]] = %{{.*}} to %[[COLUMNS]]
  // CHECK: memref.store %[[NAN]], %[[BLOCK]][%[[I]], %[[J]]]
  %block = memref.alloca() : memref<4x8xf32>
  // CHECK: %[[TRUTHS:.*]] = memref.alloca(%{{.*}}) : memref<?xi1>
  // CHECK: %[[ALL:.*]] = arith.constant true
  // CHECK: memref.dim %[[TRUTHS]]
  // CHECK: memref.store %[[ALL]], %[[TRUTHS]]
  %truths = memref.alloca(%task) : memref<?xi1>
  // CHECK: memref.alloca() : memref<index>
  // CHECK: %[[PLACE:.*]] = arith.constant -1 : index
  // CHECK: memref.store %[[PLACE]], %{{.*}}[] : memref<index>
  %place = memref.alloca() : memref<index>
  return
}

// Vectors, wide integers, and types that have no constants.
// CHECK-LABEL: func.func @others
func.func @others(%task: index) attributes {tile.kernel} {
  // CHECK: arith.constant dense<0xFFFFFFFF> : vector<4xf32>
  %vectors = memref.alloca() : memref<2xvector<4xf32>>
  // CHECK: arith.constant -1 : i128
  // CHECK: memref.store
  %wide = memref.alloca() : memref<2xi128>
  // CHECK-NOT: memref.store
  %signed = memref.alloca() : memref<2xsi8>
  %complex = memref.alloca() : memref<2xcomplex<f32>>
  return
}

// Not what is no kernel.
// CHECK-LABEL: func.func @host
// CHECK-NOT: memref.store
func.func @host() {
  %block = memref.alloca() : memref<4xbf16>
  return
}
