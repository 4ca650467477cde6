// RUN: sed 's/RANKS/1/; s/ORDER/contiguous/' %s | burst-opt --burst-to-ring --ring-interpret | FileCheck %s -DRANKS=1
// RUN: sed 's/RANKS/2/; s/ORDER/contiguous/' %s | burst-opt --burst-to-ring --ring-interpret | FileCheck %s -DRANKS=2
// RUN: sed 's/RANKS/5/; s/ORDER/zigzag/' %s | burst-opt --burst-to-ring --ring-interpret | FileCheck %s -DRANKS=5
// RUN: sed 's/RANKS/16/; s/ORDER/zigzag/' %s | burst-opt --burst-to-ring --ring-interpret | FileCheck %s -DRANKS=16
// RUN: sed 's/RANKS/3/; s/ORDER/striped 2/' %s | burst-opt --burst-to-ring --ring-interpret | FileCheck %s -DRANKS=3
// RUN: sed 's/RANKS/3/; s/ORDER/zigzag/' %s | burst-opt --burst-to-ring="drop=false overlap=false" --ring-interpret | FileCheck %s -DRANKS=3

// The result depends neither on the number of ranks nor on the order, nor on what
// is dropped, up to rounding: here beyond what a digest shows.

// CHECK: @f on [[RANKS]] ranks
// CHECK-NEXT: o: 1x12x4x8xf32, sum [[SUM:.*]], norm [[NORM:.*]], largest [[LARGEST:.*]]
// CHECK-NEXT: result1: 1x4x12xf32, sum
// CHECK-NOT: NaN
// CHECK-NOT: module

// The digest of all of them is that of one.
//
// RUN: sed 's/RANKS/1/; s/ORDER/contiguous/' %s | burst-opt --burst-to-ring --ring-interpret | tail -n 2 > %t.one
// RUN: sed 's/RANKS/5/; s/ORDER/zigzag/' %s | burst-opt --burst-to-ring --ring-interpret | tail -n 2 | diff %t.one -
// RUN: sed 's/RANKS/3/; s/ORDER/striped 2/' %s | burst-opt --burst-to-ring --ring-interpret | tail -n 2 | diff %t.one -
// RUN: sed 's/RANKS/3/; s/ORDER/zigzag/' %s | burst-opt --burst-to-ring="drop=false overlap=false" --ring-interpret | tail -n 2 | diff %t.one -

// Another seed, other tensors.
//
// RUN: sed 's/RANKS/1/; s/ORDER/contiguous/' %s | burst-opt --burst-to-ring --ring-interpret=seed=1 | tail -n 2 | not diff %t.one -

shard.grid @cp(shape = RANKS)

func.func @f(%q: tensor<1x12x4x8xf32> {burst.name = "q"}, %k: tensor<1x14x2x8xf32>,
             %v: tensor<1x14x2x8xf32>, %slopes: tensor<4xf32>)
    -> (tensor<1x12x4x8xf32> {burst.name = "o"}, tensor<1x4x12xf32>) {
  %o, %lse = burst.attention %q, %k, %v mask [causal, window<left = 7>]
      score [alibi, softcap<4.0>](%slopes : tensor<4xf32>) sequence <@cp, ORDER>
      : (tensor<1x12x4x8xf32>, tensor<1x14x2x8xf32>, tensor<1x14x2x8xf32>)
      -> (tensor<1x12x4x8xf32>, tensor<1x4x12xf32>)
  return %o, %lse : tensor<1x12x4x8xf32>, tensor<1x4x12xf32>
}
