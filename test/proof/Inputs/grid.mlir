shard.grid @mesh(shape = 4x4)

func.func @grid(%q: tensor<2x64x8x16xf32>, %k: tensor<2x64x4x16xf32>) -> tensor<2x8x64xf32> {
  %o, %lse = burst.attention %q, %k, %k mask causal
      sequence <@mesh[1], zigzag> heads <@mesh[0]> strategy <ring_kv>
      : (tensor<2x64x8x16xf32>, tensor<2x64x4x16xf32>, tensor<2x64x4x16xf32>)
      -> (tensor<2x64x8x16xf32>, tensor<2x8x64xf32>)
  return %lse : tensor<2x8x64xf32>
}
