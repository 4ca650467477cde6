// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of tables are kept by blocks of 256 elements: of one block, and around it.

// RUN: burst-opt %s --burst-to-ring -o /dev/null 2>&1 | count 0
// RUN: sed s/256/255/g %s | burst-opt - --burst-to-ring -o /dev/null 2>&1 | count 0
// RUN: sed s/256/257/g %s | burst-opt - --burst-to-ring -o /dev/null 2>&1 | count 0

shard.grid @cp(shape = 1)
func.func @block(%q: tensor<1x256x1x8xf32>, %k: tensor<1x256x1x8xf32>,
                 %v: tensor<1x256x1x8xf32>) -> tensor<1x256x1x8xf32> {
  %ids = arith.constant dense<7> : tensor<256xi32>
  %o, %lse = burst.attention %q, %k, %v
      mask documents(%ids : tensor<256xi32>)
      sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x256x1x8xf32>, tensor<1x256x1x8xf32>, tensor<1x256x1x8xf32>)
      -> (tensor<1x256x1x8xf32>, tensor<1x1x256xf32>)
  return %o : tensor<1x256x1x8xf32>
}
