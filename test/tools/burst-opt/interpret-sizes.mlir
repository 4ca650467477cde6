// RUN: burst-opt %s --burst-to-ring --ring-interpret="extents=6,12 batch=2" | FileCheck %s
// RUN: burst-opt %s --burst-to-ring --ring-interpret="extents=0,12" | FileCheck %s --check-prefix=NONE
// RUN: not burst-opt %s --burst-to-ring --ring-interpret 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not burst-opt %s --burst-to-ring --ring-interpret="extents=6,12 batch=-1" 2>&1 | FileCheck %s --check-prefix=BATCH

// CHECK: @dynamic on 3 ranks
// CHECK-NEXT: result0: 2x6x1x8xf32, sum
// NONE: result0: 1x0x1x8xf32, sum 0.0000, norm 0.0000, largest 0.0000
// MISSING: error: has 2 dynamic sequence lengths, got extents: 0
// BATCH: error: needs a batch size in [0, 2^40), got: -1
shard.grid @cp(shape = 3)

func.func @dynamic(%q: tensor<?x?x1x4xf32>, %k: tensor<?x?x1x4xf32>, %v: tensor<?x?x1x8xf32>)
    -> tensor<?x?x1x8xf32> {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag>
      : (tensor<?x?x1x4xf32>, tensor<?x?x1x4xf32>, tensor<?x?x1x8xf32>)
      -> (tensor<?x?x1x8xf32>, tensor<?x1x?xf32>)
  return %o : tensor<?x?x1x8xf32>
}
