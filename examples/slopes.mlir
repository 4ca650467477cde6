// Slopes that are learnt: ALiBi's distances, times a slope per head, with the
// gradient of a loss by the slopes. Every rank has all slopes and gives the sum
// over its own pairs; what is compared here is the sum over the ranks.
shard.grid @cp(shape = 4)

!q = tensor<1x192x8x32xbf16>
!k = tensor<1x192x4x32xbf16>
!l = tensor<1x8x192xf32>
!t = tensor<8xf32>

func.func @slopes(%q: !q {burst.name = "q"}, %k: !k {burst.name = "k"},
                  %v: !k {burst.name = "v"}, %slopes: !t {burst.name = "slopes"},
                  %do: !q {burst.name = "do"})
    -> (!q {burst.name = "o"}, !q {burst.name = "dq"}, !k {burst.name = "dk"},
        !k {burst.name = "dv"}, !t {burst.name = "dslopes"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal score alibi(%slopes : !t)
      sequence <@cp, zigzag> : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %ds = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal score alibi(%slopes : !t)
      sequence <@cp, zigzag> gradients [0]
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, !t)
  return %o, %dq, %dk, %dv, %ds : !q, !q, !k, !k, !t
}
