// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// CHECK-LABEL: func @example
// CHECK-SAME: (%[[OWNER:.*]]: index, %[[SK:.*]]: index)
// CHECK: %[[I:.*]] = arith.constant 1 : index
// CHECK: %begin, %end, %count, %step, %block = ring.segment %[[I]] of <zigzag over 8>[%[[OWNER]]] extent %[[SK]]
func.func @example(%owner: index, %sk: index)
    -> (index, index, index, index, index) {
  %s1 = arith.constant 1 : index
  %begin, %end, %count, %step, %block =
      ring.segment %s1 of <zigzag over 8>[%owner] extent %sk
  return %begin, %end, %count, %step, %block : index, index, index, index, index
}

// CHECK-LABEL: func @layouts
// CHECK: ring.segment %{{.*}} of <contiguous over 1>[
// CHECK: ring.segment %{{.*}} of <striped over 1048576>[
// CHECK: ring.segment %{{.*}} of <striped 549755813887 over 2>[
// CHECK: ring.segment %{{.*}} of <zigzag over 3>[{{.*}} {mine}
func.func @layouts(%r: index, %n: index) {
  %s0 = arith.constant 0 : index
  %0:5 = ring.segment %s0 of <contiguous over 1>[%r] extent %n
  %1:5 = ring.segment %s0 of <striped over 1048576>[%r] extent %n
  %2:5 = ring.segment %s0 of <striped 549755813887 over 2>[%r] extent %n
  %3:5 = ring.segment %s0 of <zigzag over 3>[%r] extent %n {mine}
  return
}

// CHECK-LABEL: func @any
// CHECK-SAME: (%[[I:[^ ]+]]: index, %[[R:[^ ]+]]: index
// CHECK: ring.segment %[[I]] of <zigzag over 3>[%[[R]]]
func.func @any(%i: index, %r: index, %n: index) {
  %0:5 = ring.segment %i of <zigzag over 3>[%r] extent %n
  return
}
