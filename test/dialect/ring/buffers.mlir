// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// The ops on buffers: results are memory that is written, and a token has no
// types.
//
// CHECK-LABEL: func @state
// CHECK-SAME: %[[Q:arg0]]: {{.*}}, %[[K:arg1]]: {{.*}}, %[[O:arg2]]: {{.*}}, %[[M:arg3]]: {{.*}}, %[[L:arg4]]: {{.*}}, %[[OUT:arg5]]: {{.*}}, %[[N:arg6]]: index)
// CHECK: ring.init %[[Q]] into %[[O]], %[[M]], %[[L]] : memref<1x8x4x16xbf16, strided<[?, ?, ?, 1], offset: ?>>, memref<1x8x4x16xf32>, memref<1x4x8xf32>, memref<1x4x8xf32>
// CHECK: ring.attend %[[Q]] at <contiguous over 2>[%[[N]]] extent %[[N]]
// CHECK-NEXT: slice (%[[K]], %[[K]] at %[[N]]) of <contiguous over 2> extent %[[N]]
// CHECK-NEXT: state %[[O]], %[[M]], %[[L]] scale 2.500000e-01
// CHECK: ring.merge(%[[O]], %[[M]], %[[L]]) with(%[[O]], %[[M]], %[[L]]) of <contiguous over 2>[%[[N]]] extent %[[N]] : memref<1x8x4x16xf32>, memref<1x4x8xf32>, memref<1x4x8xf32>, memref<1x8x4x16xf32>, memref<1x4x8xf32>, memref<1x4x8xf32>
// CHECK: ring.finalize %[[O]], %[[M]], %[[L]] into %[[OUT]], %[[M]] :
// CHECK: ring.finalize %[[O]], %[[M]], %[[L]] into %[[OUT]], %[[M]], %[[L]] :
!q = memref<1x8x4x16xbf16, strided<[?, ?, ?, 1], offset: ?>>
!o = memref<1x8x4x16xf32>
!m = memref<1x4x8xf32>
func.func @state(%q: !q, %k: memref<1x8x2x16xbf16>, %o: !o, %m: !m, %l: !m,
                 %out: memref<1x8x4x16xbf16>, %n: index) {
  ring.init %q into %o, %m, %l : !q, !o, !m, !m
  ring.attend %q at <contiguous over 2>[%n] extent %n
      slice (%k, %k at %n) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.25
      : (!q, memref<1x8x2x16xbf16>, memref<1x8x2x16xbf16>, !o, !m, !m) -> ()
  ring.merge (%o, %m, %l) with (%o, %m, %l) of <contiguous over 2>[%n] extent %n
      : !o, !m, !m, !o, !m, !m
  ring.finalize %o, %m, %l into %out, %m : !o, !m, !m, memref<1x8x4x16xbf16>, !m
  ring.finalize %o, %m, %l into %out, %m, %l
      : !o, !m, !m, memref<1x8x4x16xbf16>, !m, !m
  return
}

// CHECK-LABEL: func @transfer
// CHECK: %[[TOKEN:.*]] = ring.start %arg0 dims [1] of <zigzag over 2>[%arg2] extent %arg2 to %arg2 receive[%arg2] from %arg2 segments(%arg3[%arg2] : memref<2x3x2xi1>) into %arg1 : memref<1x8x2x16xf32> channel <@cp, 0> : (memref<1x8x2x16xf32>) -> !ring.token
// CHECK: ring.wait %[[TOKEN]] : !ring.token
shard.grid @cp(shape = 2)
func.func @transfer(%k: memref<1x8x2x16xf32>, %into: memref<1x8x2x16xf32>, %n: index, %flags: memref<2x3x2xi1>) {
  %token = ring.start %k dims [1] of <zigzag over 2>[%n] extent %n to %n
      receive[%n] from %n segments(%flags[%n] : memref<2x3x2xi1>) into %into : memref<1x8x2x16xf32>
      channel <@cp, 0> : (memref<1x8x2x16xf32>) -> !ring.token
  ring.wait %token : !ring.token
  return
}
