// A mask and a score that have no name, written as regions. Positions are sharded
// with in blocks of 32: a query sees its own block, the one before it, and the
// first four keys of all. A key of the block before it scores 1/8 less.
shard.grid @cp(shape = 4)

func.func @blocks(%q: tensor<1x256x4x32xf32> {burst.name = "q"},
                  %k: tensor<1x256x2x32xf32> {burst.name = "k"},
                  %v: tensor<1x256x2x32xf32> {burst.name = "v"})
    -> (tensor<1x256x4x32xf32> {burst.name = "o"},
        tensor<1x4x256xf32> {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %c2 = arith.constant 2 : index
        %c4 = arith.constant 4 : index
        %c32 = arith.constant 32 : index
        %block_i = arith.divui %i, %c32 : index
        %block_j = arith.divui %j, %c32 : index
        // Unsigned: a later block gives a huge number.
        %back = arith.subi %block_i, %block_j : index
        %near = arith.cmpi ult, %back, %c2 : index
        %first = arith.cmpi ult, %j, %c4 : index
        %keep = arith.ori %near, %first : i1
        burst.yield %keep : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        %c32 = arith.constant 32 : index
        %eighth = arith.constant 0.125 : f32
        %block_i = arith.divui %i, %c32 : index
        %block_j = arith.divui %j, %c32 : index
        %before = arith.cmpi ne, %block_i, %block_j : index
        %less = arith.subf %s, %eighth : f32
        %new = arith.select %before, %less, %s : f32
        burst.yield %new : f32
      }
      sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x256x4x32xf32>, tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>)
      -> (tensor<1x256x4x32xf32>, tensor<1x4x256xf32>)
  return %o, %lse : tensor<1x256x4x32xf32>, tensor<1x4x256xf32>
}
