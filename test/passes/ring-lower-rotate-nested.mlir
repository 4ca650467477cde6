// RUN: split-file %s %t
// RUN: burst-opt %t/nested.mlir --ring-lower-rotate | FileCheck %t/nested.mlir --implicit-check-not=ring.rotate
// RUN: not burst-opt %t/outside.mlir --ring-lower-rotate 2>&1 | FileCheck %t/outside.mlir

//--- nested.mlir
// A rotation in a rotation, in a module in a module: tables stand beside the
// program that reads them.
//
// CHECK: module {
// CHECK: module @inner {
// CHECK: func.func private @grid_slices_0
// CHECK: func.func @grid
// The outer loop has a turn for each owner, so that the inner one is there once.
// CHECK: scf.for %{{.*}} = %{{.*}} to %c4
// CHECK: scf.for %{{.*}} = %{{.*}} to %c3
// CHECK-NOT: scf.for
// CHECK: return
module @inner {
  shard.grid @cp(shape = 4)
  func.func private @grid_slices(%x: index)
  func.func @grid(%k: tensor<1x8x1x4xf32>, %c: index, %r: index, %n: index,
                  %reach: tensor<4x2xindex>, %step: index) -> index attributes {ring.grid = @cp} {
    %0 = ring.rotate (%k dims [1]) of <zigzag over 4>[%r] extent %n channel <@cp, 0>
        carry(%c : index) : (tensor<1x8x1x4xf32>) -> index {
    ^bb0(%outer: index, %kt: tensor<1x8x1x4xf32>, %ct: index):
      %1 = ring.rotate (%kt dims [1]) of <zigzag over 4>[%r] extent %n channel <@cp, 2>
          reach %reach by %step : tensor<4x2xindex> carry(%ct : index)
          : (tensor<1x8x1x4xf32>) -> index {
      ^bb0(%inner: index, %kk: tensor<1x8x1x4xf32>, %cc: index):
        %2 = arith.addi %cc, %inner : index
        ring.yield %2 : index
      }
      ring.yield %1 : index
    }
    return %0 : index
  }
}

// Beside it, so that both are in the module of the file.
module @other {
}

//--- outside.mlir
// CHECK: error: 'ring.rotate' op must be in a func.func, the program of a rank
shard.grid @cp(shape = 4)
%n = arith.constant 32 : index
%k = tensor.empty() : tensor<1x8x1x4xf32>
ring.rotate (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0> : (tensor<1x8x1x4xf32>) -> () {
^bb0(%owner: index, %kt: tensor<1x8x1x4xf32>):
  ring.yield
}
