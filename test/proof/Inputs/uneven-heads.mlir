// Six heads of four ranks: two, two, two and none.
shard.grid @cp(shape = 4)
!q = tensor<1x64x6x8xf32>
!l = tensor<1x6x64xf32>
func.func @uneven(%q: !q, %k: !q, %v: !q, %t: tensor<6xf32>, %do: !q)
    -> (!q {burst.name = "o"}, !q {burst.name = "dq"}, !q {burst.name = "dk"},
        tensor<6xf32> {burst.name = "dslopes"}) {
  %o, %lse = burst.attention %q, %k, %v score alibi(%t : tensor<6xf32>)
      sequence <@cp, zigzag> strategy <ulysses> : (!q, !q, !q) -> (!q, !l)
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %o, %lse, %do
      score alibi(%t : tensor<6xf32>)
      sequence <@cp, zigzag> strategy <ulysses> gradients [0]
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<6xf32>)
  return %o, %dq, %dk, %dt : !q, !q, !q, tensor<6xf32>
}
