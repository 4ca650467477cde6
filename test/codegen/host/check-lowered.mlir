// RUN: not burst-opt %s --burst-to-llvm 2>&1 | FileCheck %s --check-prefix=BURST
// RUN: not burst-opt %s --burst-to-tile --burst-to-llvm 2>&1 | FileCheck %s --check-prefix=BURST
// RUN: burst-opt %s --burst-to-ring -o %t.mlir
// RUN: not burst-opt %t.mlir --burst-to-llvm 2>&1 | FileCheck %s --check-prefix=RING
// RUN: burst-opt %t.mlir --burst-to-tile --burst-check-lowered | FileCheck %s
// RUN: burst-opt %t.mlir --burst-to-tile --burst-to-llvm -o /dev/null

// Says which pipelines to run where they were left out.

// BURST: error: 'burst.attention' op is not lowered to kernels over tiles: run burst-to-ring and burst-to-tile first
// BURST-NOT: error:
// RING: error: '{{.*}}' op is not lowered to kernels over tiles: run burst-to-tile first
// RING-NOT: error:
// CHECK: tile.launch
shard.grid @cp(shape = 2)

func.func @attention(%q: tensor<1x16x2x4xf32>, %ids: tensor<16xi32>) -> tensor<1x16x2x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask [causal, documents](%ids : tensor<16xi32>)
      sequence <@cp, zigzag>
      : (tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>)
      -> (tensor<1x16x2x4xf32>, tensor<1x2x16xf32>)
  return %o : tensor<1x16x2x4xf32>
}
