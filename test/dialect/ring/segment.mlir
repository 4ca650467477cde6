// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// CHECK-LABEL: func @example
// CHECK-SAME: (%[[OWNER:.*]]: index, %[[SK:.*]]: index)
// CHECK: %begin, %end, %count, %step, %block = ring.segment 1 of <zigzag over 8>[%[[OWNER]]] extent %[[SK]]
func.func @example(%owner: index, %sk: index)
    -> (index, index, index, index, index) {
  %begin, %end, %count, %step, %block =
      ring.segment 1 of <zigzag over 8>[%owner] extent %sk
  return %begin, %end, %count, %step, %block : index, index, index, index, index
}

// CHECK-LABEL: func @layouts
// CHECK: ring.segment 0 of <contiguous over 1>[
// CHECK: ring.segment 0 of <striped over 1048576>[
// CHECK: ring.segment 0 of <striped 549755813887 over 2>[
// CHECK: ring.segment 0 of <zigzag over 3>[{{.*}} {mine}
func.func @layouts(%r: index, %n: index) {
  %0:5 = ring.segment 0 of <contiguous over 1>[%r] extent %n
  %1:5 = ring.segment 0 of <striped over 1048576>[%r] extent %n
  %2:5 = ring.segment 0 of <striped 549755813887 over 2>[%r] extent %n
  %3:5 = ring.segment 0 of <zigzag over 3>[%r] extent %n {mine}
  return
}
