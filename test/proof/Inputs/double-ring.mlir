// What a double ring lowers to, of which double-ring.test makes wrong programs.
shard.grid @mesh(shape = 3x4)
!q = tensor<1x48x2x4xf32>
!k = tensor<1x48x1x4xf32>
!l = tensor<1x2x48xf32>
func.func @f(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      sequence <@mesh, contiguous> strategy <double_ring_kv>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
