// Optimisations can be left out of what is explained: all is sent and computed then,
// and transfers stand behind what would hide them, which a table of hops does not show.

// RUN: burst-opt %s --burst-explain | FileCheck %s --check-prefix=ALL
// RUN: burst-opt %s --burst-explain='drop=false overlap=false' | FileCheck %s --check-prefix=WITHOUT
// RUN: burst-opt %s --burst-to-ring='drop=false overlap=false' --burst-explain | FileCheck %s --check-prefix=WITHOUT
// RUN: burst-opt %s --burst-to-ring -o %t.mlir
// RUN: not burst-opt %t.mlir --burst-explain=drop=false 2>&1 | FileCheck %s --check-prefix=DROP
// RUN: not burst-opt %t.mlir --burst-explain=overlap=false 2>&1 | FileCheck %s --check-prefix=OVERLAP

// ALL: sent by all ranks: 1.0 KiB
// ALL: the mask needs is computed once, 1 are dropped;
// WITHOUT: sent by all ranks: 2.0 KiB
// WITHOUT: the mask needs is computed once, 0 are dropped;
// WITHOUT-NEXT: 1 that it rules out are computed too;
// DROP: error: burst-explain with drop=false lowers burst.attention, got programs of ranks, which have a schedule
// OVERLAP: error: burst-explain with overlap=false lowers burst.attention, got programs of ranks, which have a schedule
shard.grid @cp(shape = 2)
!q = tensor<1x16x1x16xf32>
!l = tensor<1x1x16xf32>
func.func @f(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, contiguous> strategy <ring_kv>
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
