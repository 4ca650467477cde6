shard.grid @mesh(shape = 3x2)

!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>
!l = tensor<1x8x48xf32>
func.func @ulysses(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !l, !q, !k, !k) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@mesh, zigzag>
      strategy <ulysses on [1], ring_kv> : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@mesh, zigzag> strategy <ulysses on [1], ring_kv>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %lse, %dq, %dk, %dv : !q, !l, !q, !k, !k
}
