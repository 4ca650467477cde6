// The smallest program with everything in it: 4 ranks, a causal mask, two query
// heads to each key/value head, and the sequence sharded in zigzag order.
// docs/walkthrough.md follows it through every phase.
shard.grid @cp(shape = 4)

func.func @tiny(%q: tensor<1x64x4x16xf32> {burst.name = "q"},
                %k: tensor<1x64x2x16xf32> {burst.name = "k"},
                %v: tensor<1x64x2x16xf32> {burst.name = "v"})
    -> (tensor<1x64x4x16xf32> {burst.name = "o"},
        tensor<1x4x64xf32> {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x64x4x16xf32>, tensor<1x64x2x16xf32>, tensor<1x64x2x16xf32>)
      -> (tensor<1x64x4x16xf32>, tensor<1x4x64xf32>)
  return %o, %lse : tensor<1x64x4x16xf32>, tensor<1x4x64xf32>
}
