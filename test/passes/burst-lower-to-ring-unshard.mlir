// RUN: split-file %s %t
// RUN: not burst-opt %t/result.mlir --burst-lower-to-ring 2>&1 | FileCheck %s
// RUN: not burst-opt %t/sequence.mlir --burst-lower-to-ring 2>&1 | FileCheck %s
// RUN: not burst-opt %t/order.mlir --burst-lower-to-ring 2>&1 | FileCheck %s
// RUN: not burst-opt %t/reorder.mlir --burst-lower-to-ring 2>&1 | FileCheck %s

// What burst-partition never makes must be refused, not crash nor be lowered
// wrongly.
//
// CHECK: error: 'burst.attention' op

// A result that does not go to burst.shard.
//--- result.mlir
shard.grid @cp(shape = 4)
func.func @f(%x: tensor<1x2x1x4xf32>, %n: index) -> tensor<1x8x1x4xf32> attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> tensor<1x8x1x4xf32>
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}

// No sequence.
//--- sequence.mlir
shard.grid @cp(shape = 4)
func.func @f(%x: tensor<1x2x1x4xf32>, %n: index) attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> tensor<1x8x1x4xf32>
  %o, %lse = burst.attention %q, %q, %q
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// Another sequence than that of the shards.
//--- order.mlir
shard.grid @cp(shape = 4)
func.func @f(%x: tensor<1x2x1x4xf32>, %n: index) attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> tensor<1x8x1x4xf32>
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// Another sequence than that of the result's shard.
//--- reorder.mlir
shard.grid @cp(shape = 4)
func.func @f(%x: tensor<1x2x1x4xf32>, %n: index) -> tensor<1x2x1x4xf32> attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> tensor<1x8x1x4xf32>
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %l = burst.shard %o dim 1 by <@cp, contiguous> : tensor<1x8x1x4xf32> -> tensor<1x2x1x4xf32>
  return %l : tensor<1x2x1x4xf32>
}
