shard.grid @cp(shape = 4)
!q = tensor<1x32x16x4xf32>
!k = tensor<1x32x4x4xf32>
!l = tensor<1x16x32xf32>
func.func @step(%q: !q, %k: !q, %v: !q, %do: !q, %t: tensor<16xf32>) -> (!q, !l, !q, !q, !q) {
  %o, %lse = burst.attention %q, %k, %v mask causal score alibi(%t : tensor<16xf32>)
      sequence <@cp, zigzag> strategy <ulysses in 2 chunks> : (!q, !q, !q) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal score alibi(%t : tensor<16xf32>)
      sequence <@cp, zigzag> strategy <ulysses in 2 chunks> : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %o, %lse, %dq, %dk, %dv : !q, !l, !q, !q, !q
}
func.func @shared(%q: !q, %k: !k, %v: !k) -> !q {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> strategy <ulysses in 2 chunks> : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}
func.func @sums(%q: !q, %k: !k, %v: !k, %lse: !l, %do: !q, %t: tensor<16xf32>) -> (!q, !k, !k, tensor<16xf32>) {
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %q, %lse, %do mask causal score alibi(%t : tensor<16xf32>)
      sequence <@cp, zigzag> strategy <ulysses in 4 chunks> gradients [0] : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<16xf32>)
  return %dq, %dk, %dv, %dt : !q, !k, !k, tensor<16xf32>
}
