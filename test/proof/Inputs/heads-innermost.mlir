shard.grid @mesh(shape = 4x2x2)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>
!l = tensor<1x8x48xf32>
func.func @three(%q: !q, %k: !k, %v: !k, %t: tensor<8xf32>) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal score alibi(%t : tensor<8xf32>) sequence <@mesh[0, 1], contiguous> heads <@mesh[2]> strategy <ulysses on [1], ring_kv on [0]>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
func.func @back(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q, %t: tensor<8xf32>) -> (!q, !k, !k, tensor<8xf32>) {
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal score alibi(%t : tensor<8xf32>) sequence <@mesh[0, 1], contiguous> heads <@mesh[2]> strategy <ulysses on [1], ring_q on [0]> gradients [0]
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<8xf32>)
  return %dq, %dk, %dv, %dt : !q, !k, !k, tensor<8xf32>
}
