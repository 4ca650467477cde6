// RUN: burst-opt %s --burst-explain=svg=%t.svg -o /dev/null | FileCheck %s
// RUN: FileCheck %s --check-prefix=SVG --input-file=%t.svg

// A rank computes slices of queries as they come by. A state is sent in the hop
// behind the one that brought its queries: on, and from the last rank that they
// need to its owner.
//
// SVG: class="state"/>
// SVG-NEXT: its state
// SVG: class="state"><title>rank 1 to 0: s2ab to 0, 96 B</title></path>
//
// CHECK: program @f, 3 ranks
// CHECK: sends:    >receiver owner of the slice, and which of its segments, a or b
// CHECK-NEXT:          s the state of its queries, and not the slice
// CHECK: hop         | rank 0              | rank 1              | rank 2
// CHECK-NEXT: 0 computes  | 0 +./#+             | 1 +./#+             | 2 +./#+
// CHECK-NEXT:   sends     | >2 0b               | >0 1ab              | >1 2ab
// CHECK-NEXT: 1 computes  | 1 #./#.             | 2 #./#.             | 0 ../##
// CHECK-NEXT:   sends     | >2 1b >2 s1b >1 s1a | >0 2ab >0 s2ab      | >1 0b >1 s0b
// CHECK-NEXT: 2 computes  | 2 #./#.             | 0 ../##             | 1 ../##
// CHECK-NEXT:   sends     | >2 s2ab             | >0 s0b              | >1 s1b
// CHECK-EMPTY:
// CHECK-NEXT: sent        | 256 B               | 272 B               | 192 B
// CHECK-NEXT: peak memory | 736 B               | 736 B               | 736 B
// CHECK-EMPTY:
// CHECK-NEXT: sent by all ranks: 720 B
// CHECK-NEXT: proved for {{.*}}:
// CHECK-NEXT: each of 21 pairs of segments that the mask needs is computed once, 15 are dropped;
// CHECK-NEXT:         sends match receives, no deadlock, at most 2 received slices at a time
// CHECK-NEXT:         and 2 states of slices, and 2 of the rank's own
func.func @f(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>) -> tensor<1x12x1x4xf32> {
  %o, %lse = burst.attention %q, %k, %k mask causal sequence <@cp, zigzag>
      strategy <ring_q>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x1x12xf32>)
  return %o : tensor<1x12x1x4xf32>
}
shard.grid @cp(shape = 3)
