// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// burst.unshard and burst.shard.

shard.grid @cp(shape = 8)
shard.grid @one(shape = 1)
shard.grid @three(shape = 3)

// The examples of both ops.
//
// CHECK-LABEL: func @example
// CHECK-SAME: (%[[LOCAL:.*]]: tensor<1x256x32x128xbf16>, %[[SQ:.*]]: index, %[[G:.*]]: tensor<1x32x2048xf32>)
// CHECK: burst.unshard %[[LOCAL]] dim 1 extent %[[SQ]] by <@cp, zigzag> : tensor<1x256x32x128xbf16> -> tensor<1x2048x32x128xbf16>
// CHECK: burst.shard %[[G]] dim 2 by <@cp, zigzag> : tensor<1x32x2048xf32> -> tensor<1x32x256xf32>
func.func @example(%local: tensor<1x256x32x128xbf16>, %sq: index,
                   %h: tensor<1x32x2048xf32>) {
  %g = burst.unshard %local dim 1 extent %sq by <@cp, zigzag>
      : tensor<1x256x32x128xbf16> -> tensor<1x2048x32x128xbf16>
  %l = burst.shard %h dim 2 by <@cp, zigzag>
      : tensor<1x32x2048xf32> -> tensor<1x32x256xf32>
  return
}

// Static where every rank, and every segment, holds as many positions.
//
// CHECK-LABEL: func @sizes
func.func @sizes(%0: tensor<2xf32>, %1: tensor<?xf32>, %2: tensor<8x?xf32>,
                 %3: tensor<4xi1>, %4: tensor<0xf32>, %n: index) {
  // CHECK: by <@cp, contiguous> : tensor<2xf32> -> tensor<16xf32>
  %5 = burst.unshard %0 dim 0 extent %n by <@cp, contiguous> : tensor<2xf32> -> tensor<16xf32>
  // CHECK: by <@cp, contiguous> : tensor<?xf32> -> tensor<15xf32>
  %6 = burst.unshard %1 dim 0 extent %n by <@cp, contiguous> : tensor<?xf32> -> tensor<15xf32>
  // 8 divides 24, two chunks a rank do not.
  // CHECK: by <@cp, zigzag> : tensor<?xf32> -> tensor<24xf32>
  %7 = burst.unshard %1 dim 0 extent %n by <@cp, zigzag> : tensor<?xf32> -> tensor<24xf32>
  // CHECK: by <@cp, striped 3> : tensor<?xf32> -> tensor<16xf32>
  %8 = burst.unshard %1 dim 0 extent %n by <@cp, striped 3> : tensor<?xf32> -> tensor<16xf32>
  // CHECK: by <@three, striped 4> : tensor<8x?xf32> -> tensor<24x?xf32>
  %9 = burst.unshard %2 dim 0 extent %n by <@three, striped 4> : tensor<8x?xf32> -> tensor<24x?xf32>
  // CHECK: by <@one, zigzag> : tensor<4xi1> -> tensor<4xi1>
  %10 = burst.unshard %3 dim 0 extent %n by <@one, zigzag> : tensor<4xi1> -> tensor<4xi1>
  // CHECK: by <@cp[0], zigzag> : tensor<0xf32> -> tensor<0xf32>
  %11 = burst.unshard %4 dim 0 extent %n by <@cp[0], zigzag> : tensor<0xf32> -> tensor<0xf32>
  // CHECK: by <@cp, zigzag> {mine} : tensor<?xf32> -> tensor<?xf32>
  %12 = burst.unshard %1 dim 0 extent %n by <@cp, zigzag> {mine} : tensor<?xf32> -> tensor<?xf32>
  return
}

// CHECK-LABEL: func @constant
// CHECK: %[[N:.*]] = arith.constant 16 : index
// CHECK: burst.unshard %{{.*}} dim 0 extent %[[N]]
func.func @constant(%0: tensor<2xf32>) {
  %n = arith.constant 16 : index
  %1 = burst.unshard %0 dim 0 extent %n by <@cp, zigzag> : tensor<2xf32> -> tensor<16xf32>
  return
}
