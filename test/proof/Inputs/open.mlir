shard.grid @cp(shape = 100000)
!q = tensor<?x?x4x8xf32>
!k = tensor<?x?x2x8xf32>
!lse = tensor<?x4x?xf32>
func.func @f(%q: !q, %k: !k, %v: !k, %ids: tensor<?xi32>) -> (!q, !lse) {
  %o, %lse = burst.attention %q, %k, %v mask [causal, documents](%ids : tensor<?xi32>)
      sequence <@cp, zigzag> strategy <ring_q> : (!q, !k, !k) -> (!q, !lse)
  return %o, %lse : !q, !lse
}
