// Llama-3-8B's attention, 32 query and 8 key/value heads of 128, causal, its
// sequence sharded in zigzag order over 8 ranks.
shard.grid @cp(shape = 8)

func.func @llama3(%q: tensor<1x2048x32x128xbf16> {burst.name = "q"},
                  %k: tensor<1x2048x8x128xbf16> {burst.name = "k"},
                  %v: tensor<1x2048x8x128xbf16> {burst.name = "v"})
    -> (tensor<1x2048x32x128xbf16> {burst.name = "o"},
        tensor<1x32x2048xf32> {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x2048x32x128xbf16>, tensor<1x2048x8x128xbf16>,
         tensor<1x2048x8x128xbf16>)
      -> (tensor<1x2048x32x128xbf16>, tensor<1x32x2048xf32>)
  return %o, %lse : tensor<1x2048x32x128xbf16>, tensor<1x32x2048xf32>
}
