// RUN: burst-opt %s --ring-lower-rotate -verify-diagnostics

// Tables of what arrives are made in front of all loops, of a reach that is there.

shard.grid @cp(shape = 8)
!kv = tensor<1x32x2x16xf32>
func.func @inside(%k: !kv, %r: index, %n: index) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %reach = tensor.generate {
    ^bb0(%o: index, %s: index):
      tensor.yield %i : index
    } : tensor<8x2xindex>
    // expected-error @below {{takes a table of what travels that is made in a loop; make it in front of all loops}}
    %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%r] extent %n channel <@cp, 0>
        reach %reach by %c1 : tensor<8x2xindex> carry(%c0 : index) : (!kv) -> index {
    ^bb0(%owner: index, %kt: !kv, %ct: index):
      ring.yield %owner : index
    }
    %1 = arith.addi %0, %c1 : index
  }
  return
}
