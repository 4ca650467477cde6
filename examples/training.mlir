// A step of training: the forward pass and its gradients in one function, with
// Llama-3-8B's heads, causal, the sequence sharded in zigzag order over 4 ranks. Keys,
// values and their gradients travel: with 4 query heads for each key head, they
// are smaller than what ring_q would send.
shard.grid @cp(shape = 4)

!q = tensor<1x128x32x128xbf16>
!k = tensor<1x128x8x128xbf16>
!l = tensor<1x32x128xf32>

func.func @step(%q: !q {burst.name = "q"}, %k: !k {burst.name = "k"},
                %v: !k {burst.name = "v"}, %do: !q {burst.name = "do"})
    -> (!q {burst.name = "o"}, !q {burst.name = "dq"},
        !k {burst.name = "dk"}, !k {burst.name = "dv"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      sequence <@cp, zigzag> strategy <ring_kv>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}
