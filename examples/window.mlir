// A sliding window: each query sees its own key and the 48 before it. Each of 8
// ranks holds 64 neighbouring positions, so all it needs from elsewhere is the
// shard of the rank before it (its halo): every slice travels one hop, and the
// last rank sends nothing.
shard.grid @cp(shape = 8)

func.func @window(%q: tensor<1x512x4x32xf32> {burst.name = "q"},
                  %k: tensor<1x512x2x32xf32> {burst.name = "k"},
                  %v: tensor<1x512x2x32xf32> {burst.name = "v"})
    -> (tensor<1x512x4x32xf32> {burst.name = "o"},
        tensor<1x4x512xf32> {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 48, right = 0>
      sequence <@cp, contiguous>
      : (tensor<1x512x4x32xf32>, tensor<1x512x2x32xf32>, tensor<1x512x2x32xf32>)
      -> (tensor<1x512x4x32xf32>, tensor<1x4x512xf32>)
  return %o, %lse : tensor<1x512x4x32xf32>, tensor<1x4x512xf32>
}
