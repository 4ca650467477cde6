// Llama-3-8B's heads on a grid of 2 x 4 ranks, a step of training: heads are
// sharded over two ranks, as tensor parallelism has them, and the sequence over
// four. Nothing of the heads travels; keys, values and their gradients go round
// the four ranks that have the same heads. Slopes are those of all 32 heads on
// every rank, which counts its own from where they begin.
shard.grid @mesh(shape = 2x4)

!q = tensor<1x128x32x128xbf16>
!k = tensor<1x128x8x128xbf16>
!l = tensor<1x32x128xf32>
!t = tensor<32xf32>

func.func @heads(%q: !q {burst.name = "q"}, %k: !k {burst.name = "k"},
                  %v: !k {burst.name = "v"}, %slopes: !t {burst.name = "slopes"},
                  %do: !q {burst.name = "do"})
    -> (!q {burst.name = "o"}, !q {burst.name = "dq"},
        !k {burst.name = "dk"}, !k {burst.name = "dv"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal score alibi(%slopes : !t)
      sequence <@mesh[1], zigzag> heads <@mesh[0]> strategy <ring_kv>
      : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal score alibi(%slopes : !t)
      sequence <@mesh[1], zigzag> heads <@mesh[0]> strategy <ring_kv>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}
