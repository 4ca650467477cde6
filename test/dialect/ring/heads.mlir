// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// CHECK-LABEL: func @example
// CHECK-SAME: (%[[Q:.*]]: tensor<1x64x32x128xbf16>, %[[O0:.*]]: tensor<1x64x16x128xbf16>, %[[O1:.*]]: tensor<1x64x16x128xbf16>)
// CHECK: %[[C:.*]] = ring.take_heads %[[Q]] chunk 1 of 4 : tensor<1x64x32x128xbf16> -> tensor<1x64x8x128xbf16>
// CHECK: %[[O:.*]] = ring.join_heads %[[O0]], %[[O1]] : tensor<1x64x16x128xbf16>, tensor<1x64x16x128xbf16> -> tensor<1x64x32x128xbf16>
// CHECK: return %[[C]], %[[O]]
func.func @example(%q: tensor<1x64x32x128xbf16>, %o0: tensor<1x64x16x128xbf16>,
                   %o1: tensor<1x64x16x128xbf16>)
    -> (tensor<1x64x8x128xbf16>, tensor<1x64x32x128xbf16>) {
  %c = ring.take_heads %q chunk 1 of 4
      : tensor<1x64x32x128xbf16> -> tensor<1x64x8x128xbf16>
  %o = ring.join_heads %o0, %o1
      : tensor<1x64x16x128xbf16>, tensor<1x64x16x128xbf16> -> tensor<1x64x32x128xbf16>
  return %c, %o : tensor<1x64x8x128xbf16>, tensor<1x64x32x128xbf16>
}

// Rows have their heads in front of the sequence, and other sizes may be open.
// CHECK-LABEL: func @rows
// CHECK: ring.take_heads %{{.*}} chunk 0 of 2 : tensor<?x4x?xf32> -> tensor<?x2x?xf32>
// CHECK: ring.join_heads {{.*}} -> tensor<?x8x?xf32>
func.func @rows(%l: tensor<?x4x?xf32>) -> (tensor<?x2x?xf32>, tensor<?x8x?xf32>) {
  %c = ring.take_heads %l chunk 0 of 2 : tensor<?x4x?xf32> -> tensor<?x2x?xf32>
  %j = ring.join_heads %l, %l : tensor<?x4x?xf32>, tensor<?x4x?xf32> -> tensor<?x8x?xf32>
  return %c, %j : tensor<?x2x?xf32>, tensor<?x8x?xf32>
}

// CHECK: func.func private @chunks() attributes {ring.head_chunks = 4 : i64}
func.func private @chunks() attributes {ring.head_chunks = 4 : i64}

// CHECK-LABEL: func @sum
// CHECK: ring.sum_chunks %{{.*}}, %{{.*}}, %{{.*}} : tensor<8xf32>
func.func @sum(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %s = ring.sum_chunks %a, %b, %a : tensor<8xf32>
  return %s : tensor<8xf32>
}
