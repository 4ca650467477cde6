// Llama-3-8B's heads over 4 ranks, with heads exchanged in 4 chunks: while one
// is attended, the next one comes and what was made of the one before goes. Keys,
// of which each has 4 query heads, come whole, once.
shard.grid @cp(shape = 4)

!q = tensor<1x512x32x128xbf16>
!k = tensor<1x512x8x128xbf16>
!l = tensor<1x32x512xf32>

func.func @chunks(%q: !q {burst.name = "q"}, %k: !k {burst.name = "k"},
                  %v: !k {burst.name = "v"})
    -> (!q {burst.name = "o"}, !l {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> strategy <ulysses in 4 chunks>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
