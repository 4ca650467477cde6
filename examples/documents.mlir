// Documents packed into one sequence. A table says which document each position
// belongs to; a query sees the keys of its own document, up to its own position.
//
// The table is an argument: the schedule is proved for all of them, and what
// travels is known when the program is run. In striped order each rank holds a part of every document:
// work is balanced, and every slice is needed by every rank. In contiguous order
// a slice travels no further than its documents do.
shard.grid @cp(shape = 4)

func.func @documents(%q: tensor<1x256x4x32xf32> {burst.name = "q"},
                     %k: tensor<1x256x2x32xf32> {burst.name = "k"},
                     %v: tensor<1x256x2x32xf32> {burst.name = "v"},
                     %ids: tensor<256xi32> {burst.name = "ids"})
    -> (tensor<1x256x4x32xf32> {burst.name = "o"},
        tensor<1x4x256xf32> {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v
      mask [causal, documents](%ids : tensor<256xi32>)
      sequence <@cp, striped 8> strategy <ring_kv>
      : (tensor<1x256x4x32xf32>, tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>)
      -> (tensor<1x256x4x32xf32>, tensor<1x4x256xf32>)
  return %o, %lse : tensor<1x256x4x32xf32>, tensor<1x4x256xf32>
}
