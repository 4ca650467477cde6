// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// ring.init, ring.merge and ring.finalize: their examples and other types.

// CHECK-LABEL: func @init
func.func @init(%q: tensor<1x256x4x64xf32>, %h: tensor<?x?x4x64xbf16>,
                %d: tensor<1x0x4x64xf64>) {
  // CHECK: ring.init %{{.*}} : tensor<1x256x4x64xf32> -> tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
  %o, %m, %l = ring.init %q : tensor<1x256x4x64xf32>
      -> tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
  // The head dim of the state is that of values.
  // CHECK: ring.init %{{.*}} {mine} : tensor<?x?x4x64xbf16> -> tensor<2x?x4x32xf32>, tensor<2x4x?xf32>
  %0:3 = ring.init %h {mine} : tensor<?x?x4x64xbf16> -> tensor<2x?x4x32xf32>, tensor<2x4x?xf32>
  // CHECK: ring.init %{{.*}} : tensor<1x0x4x64xf64> -> tensor<1x0x4x64xf64>, tensor<1x4x0xf64>
  %1:3 = ring.init %d : tensor<1x0x4x64xf64> -> tensor<1x0x4x64xf64>, tensor<1x4x0xf64>
  return
}

// CHECK-LABEL: func @merge
// CHECK-SAME: (%[[O1:.*]]: tensor<1x256x4x64xf32>, %[[M1:.*]]: tensor<1x4x256xf32>, %[[L1:.*]]: tensor<1x4x256xf32>, %[[O2:.*]]: tensor<1x256x4x64xf32>, %[[M2:.*]]: tensor<1x4x256xf32>, %[[L2:.*]]: tensor<1x4x256xf32>, %[[N:.*]]: index, %[[A:.*]]: tensor<8x9x2xi1>)
// CHECK: ring.merge(%[[O1]], %[[M1]], %[[L1]]) with(%[[O2]], %[[M2]], %[[L2]]) of <zigzag over 8>[%[[N]]] extent %[[N]] segments(%[[A]][%[[N]]] : tensor<8x9x2xi1>) : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
// CHECK: ring.merge(%[[O1]], %[[M1]], %[[L1]]) with(%[[O2]], %[[M2]], %[[L2]]) of <contiguous over 8>[%[[N]]] extent %[[N]] : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
func.func @merge(%o1: tensor<1x256x4x64xf32>, %m1: tensor<1x4x256xf32>,
                 %l1: tensor<1x4x256xf32>, %o2: tensor<1x256x4x64xf32>,
                 %m2: tensor<1x4x256xf32>, %l2: tensor<1x4x256xf32>,
                 %n: index, %a: tensor<8x9x2xi1>) {
  %o, %m, %l = ring.merge (%o1, %m1, %l1) with (%o2, %m2, %l2)
      of <zigzag over 8>[%n] extent %n segments(%a[%n] : tensor<8x9x2xi1>)
      : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
  %0:3 = ring.merge (%o1, %m1, %l1) with (%o2, %m2, %l2)
      of <contiguous over 8>[%n] extent %n
      : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
  return
}

// CHECK-LABEL: func @finalize
func.func @finalize(%o: tensor<1x256x4x64xf32>, %m: tensor<1x4x256xf32>,
                    %l: tensor<1x4x256xf32>, %d: tensor<?x?x?x?xf64>,
                    %n: tensor<?x?x?xf64>) {
  // CHECK: ring.finalize %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x256x4x64xf32>, tensor<1x4x256xf32> -> tensor<1x256x4x64xbf16>
  %out, %lse = ring.finalize %o, %m, %l
      : tensor<1x256x4x64xf32>, tensor<1x4x256xf32> -> tensor<1x256x4x64xbf16>
  // CHECK: ring.finalize {{.*}} : tensor<?x?x?x?xf64>, tensor<?x?x?xf64> -> tensor<1x2x3x4xf64>
  %0:2 = ring.finalize %d, %n, %n : tensor<?x?x?x?xf64>, tensor<?x?x?xf64> -> tensor<1x2x3x4xf64>
  // CHECK: ring.finalize {{.*}} : tensor<1x256x4x64xf32>, tensor<1x4x256xf32> -> tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>, tensor<1x4x256xf32>
  %1:3 = ring.finalize %o, %m, %l : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
      -> tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>, tensor<1x4x256xf32>
  return
}
