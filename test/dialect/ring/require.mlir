// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s
// RUN: burst-opt %s --cse --canonicalize | FileCheck %s

// Nothing drops what ends a run.
// CHECK-LABEL: func @require
// CHECK-SAME: %[[A:.*]]: index, %[[B:.*]]: index
// CHECK: ring.require %[[A]] at least %[[B]], "size of dimension 0 of ids"
// CHECK: ring.require %[[A]] at least %[[B]], "size of dimension 0 of ids"
func.func @require(%a: index, %b: index) {
  ring.require %a at least %b, "size of dimension 0 of ids"
  ring.require %a at least %b, "size of dimension 0 of ids"
  return
}
