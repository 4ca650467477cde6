// Of six query heads of two key heads five ranks have two, one, two, one and none.
shard.grid @cp(shape = 5)
!q = tensor<1x40x6x8xf32>
!k = tensor<1x40x2x8xf32>
!l = tensor<1x6x40xf32>
func.func @shared(%q: !q, %k: !k, %v: !k, %t: tensor<6xf32>, %do: !q)
    -> (!q {burst.name = "o"}, !q {burst.name = "dq"}, !k {burst.name = "dk"},
        tensor<6xf32> {burst.name = "dslopes"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal score alibi(%t : tensor<6xf32>)
      sequence <@cp, contiguous> strategy <ulysses> : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal score alibi(%t : tensor<6xf32>)
      sequence <@cp, contiguous> strategy <ulysses> gradients [0]
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<6xf32>)
  return %o, %dq, %dk, %dt : !q, !q, !k, tensor<6xf32>
}
