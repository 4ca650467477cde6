// RUN: burst-opt %s --burst-to-ring --ring-plan --remarks-filter=strategy -o /dev/null 2>&1 | FileCheck %s

// Only the gradient by queries is used: keys and values go three hops, 2 x 16
// positions of 64 bytes each, and no gradients by them; where queries travel, what
// belongs to them does, and their gradient back to them.

// CHECK: pinned {{.*}} bytes=6144, {{.*}} strategy=ring_kv
// CHECK: alternative {{.*}} bytes=9984, {{.*}} strategy=ring_q
// CHECK: alternative {{.*}} bytes=6144, {{.*}} strategy=direct_kv
// CHECK: alternative {{.*}} bytes=6144, {{.*}} strategy=all_gather
// CHECK-COUNT-4: "bytes_sent": 6144,
shard.grid @cp(shape = 4)
!q = tensor<1x64x2x8xf32>
!l = tensor<1x2x64xf32>
func.func @f(%q: !q, %k: !q, %v: !q, %o: !q, %l: !l, %do: !q) -> !q {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do
      sequence <@cp, contiguous> strategy <ring_kv>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq : !q
}
