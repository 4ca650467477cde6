// RUN: burst-opt %s --burst-lower-scalars | FileCheck %s
// RUN: not burst-opt %s --burst-lower-scalars=vector-bits=100 2>&1 | FileCheck %s --check-prefix=BITS
// BITS: error: vectors have a power of two of bits, from 64 to 2048, got: 100

// Positions of the owner's segment, without a product that could overflow.
// CHECK-LABEL: func.func @zigzag
// CHECK-NOT: ring.segment
// CHECK: arith.divui
// CHECK: arith.remui
// CHECK: return
func.func @zigzag(%owner: index, %n: index) -> (index, index, index, index, index) {
  %s1 = arith.constant 1 : index
  %0:5 = ring.segment %s1 of <zigzag over 4>[%owner] extent %n
  return %0#0, %0#1, %0#2, %0#3, %0#4 : index, index, index, index, index
}

// CHECK-LABEL: func.func @striped
// CHECK-NOT: ring.segment
// CHECK: arith.select
// CHECK: return
func.func @striped(%owner: index, %n: index) -> (index, index, index, index, index) {
  %s0 = arith.constant 0 : index
  %0:5 = ring.segment %s0 of <striped 3 over 4>[%owner] extent %n
  return %0#0, %0#1, %0#2, %0#3, %0#4 : index, index, index, index, index
}

// A row in vectors, then what is left of it, one by one.
// CHECK-LABEL: func.func @range
// CHECK: scf.if
// CHECK: scf.for
// CHECK: %[[VECTORS:.*]]:2 = scf.for
// CHECK: %[[EIGHT:.*]] = vector.load %{{.*}} : memref<?x4xi16>, vector<8xi16>
// CHECK: arith.minsi %{{.*}}, %[[EIGHT]] : vector<8xi16>
// CHECK: arith.maxsi %{{.*}}, %[[EIGHT]] : vector<8xi16>
// CHECK: vector.reduction <minsi>, %[[VECTORS]]#0
// CHECK: vector.reduction <maxsi>, %[[VECTORS]]#1
// CHECK: scf.for
// CHECK: memref.load
// CHECK: arith.extsi
// CHECK: arith.minsi
// CHECK: arith.maxsi
func.func @range(%t: memref<?x4xi16>, %i: index, %j: index) -> (i64, i64) {
  %min, %max = burst.table_range %t[%i, %i to %j, %j] : memref<?x4xi16>
  return %min, %max : i64, i64
}

// CHECK-LABEL: func.func @scattered
// CHECK-NOT: vector
// CHECK: return
func.func @scattered(%t: memref<8xi32, strided<[2]>>, %flags: memref<8xi1>, %one: memref<index>,
                     %i: index, %j: index) -> (i64, i64, i64) {
  %min, %max = burst.table_range %t[%i to %j] : memref<8xi32, strided<[2]>>
  %any, %all = burst.table_range %flags[%i to %j] : memref<8xi1>
  %least, %most = burst.table_range %one[to] : memref<index>
  return %min, %any, %least : i64, i64, i64
}

// What waits looks by an atomic operation, and gives the processor away; after
// 100 looks, it sleeps.
// CHECK-LABEL: func.func @await(
// CHECK-SAME: %[[COUNTERS:.*]]: memref<?x4xi32>, %[[I:.*]]: index, %[[TURN:.*]]: i32
// CHECK-DAG: %[[NOTHING:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[LOOKS:.*]] = arith.constant 100 : i32
// CHECK-DAG: %[[PAUSE:.*]] = arith.constant 50 : i32
// CHECK: scf.while (%[[BEFORE:.*]] = %[[NOTHING]])
// CHECK: %[[FOUND:.*]] = memref.atomic_rmw addi %[[NOTHING]], %[[COUNTERS]][%[[I]], %[[I]]]
// CHECK: %[[WAITS:.*]] = arith.cmpi ne, %[[FOUND]], %[[TURN]]
// CHECK: scf.condition(%[[WAITS]]) %[[BEFORE]] : i32
// CHECK: ^bb0(%[[LOOKED:.*]]: i32):
// CHECK: %[[FEW:.*]] = arith.cmpi ult, %[[LOOKED]], %[[LOOKS]]
// CHECK: scf.if %[[FEW]]
// CHECK: func.call @sched_yield() : () -> i32
// CHECK: else
// CHECK: func.call @usleep(%[[PAUSE]]) : (i32) -> i32
// CHECK: %[[MORE:.*]] = arith.addi %[[LOOKED]], %[[ONE]]
// CHECK: %[[NEXT:.*]] = arith.minsi %[[MORE]], %[[LOOKS]]
// CHECK: scf.yield %[[NEXT]] : i32
func.func @await(%counters: memref<?x4xi32>, %i: index, %turn: i32) {
  tile.await %counters[%i, %i] is %turn : memref<?x4xi32>
  return
}

// CHECK-LABEL: func.func @copy
// CHECK-NOT: memref.copy
// CHECK-COUNT-2: scf.for
// CHECK: memref.load
// CHECK-NEXT: memref.store
func.func @copy(%a: memref<?x4xf32, strided<[?, 1], offset: ?>>, %b: memref<?x4xf32>) {
  memref.copy %a, %b : memref<?x4xf32, strided<[?, 1], offset: ?>> to memref<?x4xf32>
  return
}
