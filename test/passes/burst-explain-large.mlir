// RUN: split-file %s %t
// RUN: burst-opt %t/65.mlir --burst-explain | FileCheck %s
// RUN: burst-opt %t/65.mlir --burst-explain=max-ranks=2 | FileCheck %s --check-prefix=TWO
// RUN: burst-opt %t/65.mlir --burst-explain=svg=%t/65.svg | FileCheck %s --check-prefix=DRAWN
// RUN: burst-opt %t/64.mlir --burst-explain | FileCheck %s --check-prefix=TABLE

// Of more than 64 ranks a summary, unless ranks are asked for or drawn. With a
// causal mask on contiguous shards, rank r needs what the ranks before it have, so
// the last rank sends nothing and slices go up the ring.
//
// CHECK: program @f, 65 ranks; max-ranks=N shows what N of them do
// CHECK-EMPTY:
// CHECK-NEXT: sent        | 0 B (rank 64) to
// CHECK-NEXT: peak memory |
// CHECK-EMPTY:
// CHECK-NEXT: sent by all ranks:
// CHECK-NEXT: proved: each of 2145 pairs of segments that the mask needs is computed once, 2080 are dropped;
// CHECK-NOT: rank 0 |

// TWO: program @f, 65 ranks (the first 2 shown)
// TWO: hop | rank 0 | rank 1
// TWO-NOT: rank 2
// TWO: proved: each of 2145 pairs

// DRAWN: program @f, 65 ranks (the first 16 shown)

// TABLE: program @f, 64 ranks (the first 16 shown)
// TABLE: | rank 15
// TABLE-NOT: rank 16

//--- 65.mlir
shard.grid @cp(shape = 65)
func.func @f(%q: tensor<1x65x1x4xf32>) -> tensor<1x65x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x65x1x4xf32>, tensor<1x65x1x4xf32>, tensor<1x65x1x4xf32>)
      -> (tensor<1x65x1x4xf32>, tensor<1x1x65xf32>)
  return %o : tensor<1x65x1x4xf32>
}

//--- 64.mlir
shard.grid @cp(shape = 64)
func.func @f(%q: tensor<1x64x1x4xf32>) -> tensor<1x64x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x64x1x4xf32>, tensor<1x64x1x4xf32>, tensor<1x64x1x4xf32>)
      -> (tensor<1x64x1x4xf32>, tensor<1x1x64xf32>)
  return %o : tensor<1x64x1x4xf32>
}
