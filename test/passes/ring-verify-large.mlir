// UNSUPPORTED: asan
// RUN: bash -c "ulimit -v 300000 && burst-opt %s --burst-explain" | FileCheck %s

// The proof of 1024 ranks in 300 MB: what ranks have added is kept as stretches of
// the ring, and not once more for every slice that is under way. With a bit for
// every pair of segments of all ranks it took 600 MB. (Sanitizers reserve more
// addresses than the limit.)
//
// CHECK: program @f, 1024 ranks; max-ranks=N shows what N of them do
// CHECK: proved for {{.*}}:
// CHECK-NEXT: each of 2098176 pairs of segments that the mask needs is computed once, 2096128 are dropped;
// CHECK: and 2 gradients by slices, and 2 by the rank's own
shard.grid @cp(shape = 1024)

!t = tensor<1x65536x1x4xf32>
!l = tensor<1x1x65536xf32>

func.func @f(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_q>
      : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
