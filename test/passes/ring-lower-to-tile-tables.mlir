// RUN: split-file %s %t
// DEFINE: %{lower} = burst-opt --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=8 columns=16" --canonicalize --cse
// RUN: %{lower} %t/shared.mlir | FileCheck %t/shared.mlir
// RUN: %{lower} %t/owned.mlir | FileCheck %t/owned.mlir
// RUN: burst-opt %t/unused.mlir --burst-to-tile | FileCheck %t/unused.mlir
// RUN: not burst-opt %t/unused.mlir --ring-bufferize --ring-lower-to-tile="warps=4 rows=64" 2>&1 | FileCheck %t/unused.mlir --check-prefix=GPU
// RUN: burst-run %t/shared.mlir --check
// RUN: burst-run %t/owned.mlir --check

// All heads add to one bias. So the task of the first key head adds to its
// gradient, that of the second to a table of its own, from the first hop to the
// last, when both are added up.
//
//--- shared.mlir
// CHECK-LABEL: func.func private @shared_zero_table(
// CHECK: %[[ZERO:.*]] = arith.constant 0.0{{.*}} : f32
// CHECK: memref.store %[[ZERO]]
// CHECK-LABEL: func.func private @shared_add_tables(
// CHECK-SAME: %[[COPIES:[^ ]*]]: memref<?x8x8xf32>, %[[GRADIENT:[^ ]*]]: memref<8x8xf32, {{.*}}>)
// CHECK: scf.for %[[COPY:.*]] =
// CHECK: scf.for %[[COLUMN:.*]] =
// CHECK: memref.load %[[GRADIENT]][%[[ROW:.*]], %[[COLUMN]]]
// CHECK: memref.load %[[COPIES]][%[[COPY]], %[[ROW]], %[[COLUMN]]]
// CHECK: arith.addf
// CHECK: memref.store %{{.*}}, %[[GRADIENT]][%[[ROW]], %[[COLUMN]]]
// CHECK-LABEL: func.func private @shared_attend_grad(
// CHECK-SAME: %[[GRADIENT:[^ ]*]]: memref<8x8xf32, {{[^%]*}}, %[[COPIES:[^ ]*]]: memref<?x8x8xf32>,
// CHECK: %[[HEAD:.*]] = arith.remui %{{.*}}, %c2
// CHECK: %[[NUMBER:.*]] = arith.addi %{{.*}}, %[[HEAD]]
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[NUMBER]], %c0
// CHECK: %[[VIEW:.*]] = memref.subview %[[COPIES]]
// CHECK: %[[COPY:.*]] = memref.cast %[[VIEW]]
// CHECK: %[[OWN:.*]] = arith.select %[[FIRST]], %[[GRADIENT]], %[[COPY]]
// CHECK: tile.map_gradient {{.*}} grads(%[[OWN]] of [0] :
// CHECK: burst.contribute
// CHECK: tile.map_gradient {{.*}} grads(%[[OWN]] of [0] :
// CHECK-LABEL: func.func @shared(
// CHECK-SAME: %[[RESULT:[^ ]*]]: memref<8x8xf32, {{[^>]*}}>> {ring.partial, ring.result})
// CHECK: tile.launch @shared_zero_table{{.*}}[%{{.*}}] reads() writes(%[[RESULT]]
// CHECK: %[[COPIES:.*]] = tile.allocate "packing"(%c1) : memref<?x8x8xf32>
// CHECK: tile.launch @shared_zero_table{{.*}}[%{{.*}}] reads() writes(%[[COPIES]]
// CHECK: scf.for
// CHECK: tile.launch @shared_attend_grad{{.*}}, %[[RESULT]], %[[COPIES]] :
// CHECK: scf.yield
// CHECK-NEXT: }
// What was packed in front of the loop ends behind it.
// CHECK-COUNT-5: memref.dealloc
// CHECK-NEXT: tile.launch @shared_add_tables[%c8] reads(%[[COPIES]] : {{.*}}) writes(%[[RESULT]] :
// CHECK-NEXT: memref.dealloc %[[COPIES]]
shard.grid @g(shape = 2)
!x = tensor<1x8x2x4xf32>
!l = tensor<1x2x8xf32>
!t = tensor<8x8xf32>
func.func @shared(%q: !x, %k: !x, %v: !x, %o: !x, %l: !l, %do: !x, %bias: !t) -> (!x, !x, !x, !t) {
  %dq, %dk, %dv, %db = burst.attention_backward %q, %k, %v, %o, %l, %do
      score bias(%bias : !t) sequence <@g, contiguous> gradients [0]
      : (!x, !x, !x, !x, !l, !x) -> (!x, !x, !x, !t)
  return %dq, %dk, %dv, %db : !x, !x, !x, !t
}

// A slope is its head's, and there is one batch: tasks need no tables of their
// own. Nor does what the score reads and does not depend on.
//
//--- owned.mlir
// CHECK-NOT: add_tables
// CHECK-LABEL: func.func private @owned_attend_grad(
// CHECK-NOT: arith.select {{.*}} : memref
// CHECK: tile.map_gradient {{.*}} of [1, 0] :
// CHECK-LABEL: func.func @owned(
// CHECK-NOT: tile.allocate "packing"(){{.*}} : memref<?x4xf32>
// CHECK: tile.launch @owned_zero_table
// CHECK: tile.launch @owned_zero_table
// CHECK-NOT: zero_table
shard.grid @g(shape = 1)
!q = tensor<1x8x4x4xf32>
!k = tensor<1x8x2x4xf32>
!l = tensor<1x4x8xf32>
!t = tensor<4xf32>
func.func @owned(%q: !q, %k: !k, %v: !k, %o: !q, %l: !l, %do: !q, %slopes: !t, %idle: tensor<8xf32>) -> (!q, tensor<8xf32>, !t) {
  %dq, %dk, %dv, %di, %ds = burst.attention_backward %q, %k, %v, %o, %l, %do
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %t = %slopes : !t, %u = %idle : tensor<8xf32>) {
        %x = tensor.extract %u[%j] : tensor<8xf32>
        %y = tensor.extract %t[%h] : !t
        %positive = arith.cmpf ogt, %x, %y : f32
        %z = arith.select %positive, %y, %s : f32
        %r = arith.addf %z, %s : f32
        burst.yield %r : f32
      } sequence <@g, contiguous> gradients [1, 0]
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<8xf32>, !t)
  return %dq, %di, %ds : !q, tensor<8xf32>, !t
}

// What is no shard's, by its shape, is a table's, also where no attend adds to
// it.
//
//--- unused.mlir
// GPU: error: 'ring.zero' op has no kernel for GPUs for gradients of captured tables, got: 'memref<4xf32
// CHECK-LABEL: func.func private @one_zero_table(
// CHECK: memref.store
// CHECK-LABEL: func.func @one(
// CHECK: tile.launch @one_zero_table
// CHECK-LABEL: func.func private @open_zero_table(
// CHECK: memref.store
// CHECK-LABEL: func.func @open(
// CHECK: tile.launch @open_zero_table
shard.grid @g(shape = 2)
func.func @one(%t: tensor<4xf32>) -> tensor<4xf32> attributes {ring.grid = @g} {
  %0 = ring.zero %t : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @open(%t: tensor<2x3x4x?xf32>) -> tensor<2x3x4x?xf32> attributes {ring.grid = @g} {
  %0 = ring.zero %t : tensor<2x3x4x?xf32> -> tensor<2x3x4x?xf32>
  return %0 : tensor<2x3x4x?xf32>
}
