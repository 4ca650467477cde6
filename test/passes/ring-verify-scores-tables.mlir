// RUN: burst-opt %s --burst-to-ring | FileCheck %s
// RUN: burst-opt %s --burst-explain | FileCheck %s --check-prefix=EXPLAIN

// A table that a score captures does not decide what is sent, whichever op has
// the score: the schedule is proved without it.
//
// CHECK: ring.score
// EXPLAIN: proved for {{.*}}:
// EXPLAIN-NEXT: each of 4 pairs
shard.grid @g(shape = 2)
!q = tensor<1x8x1x4xf32>
!l = tensor<1x1x8xf32>
func.func @f(%q: !q, %s: tensor<1xf32>) -> !q {
  %o, %lse = burst.attention %q, %q, %q score alibi(%s : tensor<1xf32>)
      sequence <@g, contiguous> strategy <ring_scores> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
