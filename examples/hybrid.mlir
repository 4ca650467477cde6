// Llama-3-8B's heads on a grid of 2 x 4 ranks, a step of training, with the
// sequence sharded over all eight: once by an all-to-all along one axis and a
// ring along the other, once by a ring inside of another one. The last axis
// should lie inside of a node. Slopes are those of all 32 heads on every rank.
shard.grid @mesh(shape = 2x4)

!q = tensor<1x256x32x128xbf16>
!k = tensor<1x256x8x128xbf16>
!l = tensor<1x32x256xf32>
!t = tensor<32xf32>

// Each of four ranks gets the positions of all four and a quarter of the heads;
// keys, values and their gradients go round a ring of two.
func.func @ulysses(%q: !q {burst.name = "q"}, %k: !k {burst.name = "k"},
                   %v: !k {burst.name = "v"}, %slopes: !t {burst.name = "slopes"},
                   %do: !q {burst.name = "do"})
    -> (!q {burst.name = "o"}, !q {burst.name = "dq"},
        !k {burst.name = "dk"}, !k {burst.name = "dv"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal score alibi(%slopes : !t)
      sequence <@mesh, zigzag> strategy <ulysses on [1], ring_kv on [0]>
      : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal score alibi(%slopes : !t)
      sequence <@mesh, zigzag> strategy <ulysses on [1], ring_kv on [0]>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// Keys, values and their gradients go round four ranks along the last axis,
// while those of the other node are on their way along the first.
func.func @double_ring(%q: !q {burst.name = "q"}, %k: !k {burst.name = "k"},
                       %v: !k {burst.name = "v"},
                       %slopes: !t {burst.name = "slopes"},
                       %do: !q {burst.name = "do"})
    -> (!q {burst.name = "o"}, !q {burst.name = "dq"},
        !k {burst.name = "dk"}, !k {burst.name = "dv"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal score alibi(%slopes : !t)
      sequence <@mesh[0, 1], zigzag> strategy <double_ring_kv>
      : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal score alibi(%slopes : !t)
      sequence <@mesh[0, 1], zigzag> strategy <double_ring_kv>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}
