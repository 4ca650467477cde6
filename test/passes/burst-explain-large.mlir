// RUN: split-file %s %t
// RUN: burst-opt %t/65.mlir --burst-explain | FileCheck %s
// RUN: burst-opt %t/65.mlir --burst-explain=max-ranks=2 | FileCheck %s --check-prefix=TWO
// RUN: burst-opt %t/65.mlir --burst-explain=svg=%t/65.svg | FileCheck %s --check-prefix=DRAWN
// RUN: FileCheck %s --check-prefix=SVG --input-file=%t/65.svg
// RUN: burst-opt %t/gather.mlir --burst-explain=svg=%t/gather.svg
// RUN: FileCheck %s --check-prefix=GATHER --input-file=%t/gather.svg
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
// CHECK-NEXT: proved for {{.*}}:
// CHECK-NEXT: each of 2145 pairs of segments that the mask needs is computed once, 2080 are dropped;
// CHECK-NOT: rank 0 |

// TWO: program @f, 65 ranks (the first 2 shown)
// TWO: hop | rank 0 | rank 1
// TWO-NOT: rank 2
// TWO: proved for {{.*}}:
// TWO-NEXT: each of 2145 pairs

// DRAWN: program @f, 65 ranks (the first 16 shown)

// Of many hops, blocks and messages the picture has the first ones.
// SVG: hop 63</text>
// SVG-NEXT: and 1 more hops</text>
// GATHER: of 7</text>
// GATHER-NEXT: and 24 more</text>
// GATHER: 0 to 12, 64 B</text>
// GATHER-NEXT: <path
// GATHER-NEXT: and 19 more</text>

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

//--- gather.mlir
shard.grid @cp(shape = 32)
func.func @f(%q: tensor<1x64x1x4xf32>) -> tensor<1x64x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask full sequence <@cp, contiguous> strategy <all_gather>
      : (tensor<1x64x1x4xf32>, tensor<1x64x1x4xf32>, tensor<1x64x1x4xf32>)
      -> (tensor<1x64x1x4xf32>, tensor<1x1x64xf32>)
  return %o : tensor<1x64x1x4xf32>
}
