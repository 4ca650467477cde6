// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// CHECK-LABEL: func @example
// CHECK-SAME: (%[[IDS:.*]]: tensor<512xi32>, %[[FROM:.*]]: index, %[[TO:.*]]: index)
// CHECK: %min, %max = burst.table_range %[[IDS]][%[[FROM]] to %[[TO]]] : tensor<512xi32>
func.func @example(%ids: tensor<512xi32>, %i0: index, %i1: index) -> (i64, i64) {
  %min, %max = burst.table_range %ids[%i0 to %i1] : tensor<512xi32>
  return %min, %max : i64, i64
}

// CHECK-LABEL: func @tables
// CHECK: burst.table_range %{{.*}}[ to ] : tensor<i8>
// CHECK: burst.table_range %{{.*}}[%[[A:.*]], %[[B:.*]] to %[[B]], %[[A]]] : tensor<4x?xindex>
// CHECK: burst.table_range %{{.*}} : tensor<0xi1>
// CHECK: burst.table_range %{{.*}} {mine} : tensor<?xi64>
func.func @tables(%0: tensor<i8>, %1: tensor<4x?xindex>, %2: tensor<0xi1>,
                  %3: tensor<?xi64>, %a: index, %b: index) {
  %4:2 = burst.table_range %0[to] : tensor<i8>
  %5:2 = burst.table_range %1[%a, %b to %b, %a] : tensor<4x?xindex>
  %6:2 = burst.table_range %2[%a to %b] : tensor<0xi1>
  %7:2 = burst.table_range %3[%a to %b] {mine} : tensor<?xi64>
  return
}
