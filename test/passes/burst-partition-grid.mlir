// RUN: burst-opt %s --burst-partition | FileCheck %s --check-prefix=PARTITION
// RUN: burst-opt %s --burst-partition --burst-lower-to-ring | FileCheck %s --check-prefix=RING

shard.grid @mesh(shape = 2x4x2)

// Heads and batch are those of this rank, of queries and of keys alike; the
// sequence is put together for the attention.
//
// PARTITION-LABEL: func @grid
// PARTITION-SAME: (%[[Q:[^ ]+]]: tensor<?x16x4x64xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 64 axes [1]>, ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 0 extent ? axes [2]>, #ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8 axes [0]>]},
// PARTITION-SAME: %[[K:[^ ]+]]: tensor<?x16x2x64xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 64 axes [1]>, ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 0 extent ? axes [2]>, #ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 4 axes [0]>]},
// PARTITION-SAME: %{{[^ ]+}}: tensor<8xf32>)
// PARTITION-SAME: tensor<?x4x16xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 2 extent 64 axes [1]>, ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 0 extent ? axes [2]>, #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8 axes [0]>]})
// PARTITION-SAME: attributes {ring.grid = @mesh}
// PARTITION: burst.unshard %[[Q]] dim 1 extent %{{.*}} by <@mesh[1], zigzag> : tensor<?x16x4x64xf32> -> tensor<?x64x4x64xf32>
// PARTITION: burst.attention
// PARTITION: } sequence <@mesh[1], zigzag> heads <@mesh[0]> batch <@mesh[2]> strategy <ring_kv> : (tensor<?x64x4x64xf32>, tensor<?x64x2x64xf32>, tensor<?x64x2x64xf32>) -> (tensor<?x64x4x64xf32>, tensor<?x4x64xf32>)

// The ring is that of the second axis; regions count from the first batch and
// the first head of this rank.
//
// RING-LABEL: func @grid
// RING: %[[R:.*]] = shard.process_multi_index on @mesh axes = [1] : index
// RING: %[[B:.*]] = tensor.dim %[[Q:.*]], %{{.*}} : tensor<?x16x4x64xf32>
// RING: %[[AT_B:.*]] = shard.process_multi_index on @mesh axes = [2] : index
// RING: %[[FIRST_B:.*]] = arith.muli %[[AT_B]], %[[B]]
// RING: %[[ALL_B:.*]] = arith.muli %[[B]], %{{.*}}
// RING: %[[H:.*]] = arith.constant 4 : index
// RING: %[[AT_H:.*]] = shard.process_multi_index on @mesh axes = [0] : index
// RING: %[[FIRST_H:.*]] = arith.muli %[[AT_H]], %[[H]]
// RING: %[[ALL_H:.*]] = arith.constant 8 : index
// RING: ring.rotate({{.*}}) of <zigzag over 4>[%[[R]]] extent %{{.*}} channel <@mesh[1], 0>
// RING: ring.attend {{.*}} at <zigzag over 4>[%[[R]]]
// RING: state {{.*}} offsets (%[[FIRST_B]] of %[[ALL_B]], %[[FIRST_H]] of %[[ALL_H]]) scale
func.func @grid(%q: tensor<?x64x8x64xf32>, %k: tensor<?x64x4x64xf32>,
                %slopes: tensor<8xf32>) -> tensor<?x8x64xf32> {
  %o, %lse = burst.attention %q, %k, %k
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %t = %slopes : tensor<8xf32>) {
        %x = tensor.extract %t[%h] : tensor<8xf32>
        %y = arith.addf %s, %x : f32
        burst.yield %y : f32
      }
      sequence <@mesh[1], zigzag> heads <@mesh[0]> batch <@mesh[2]>
      strategy <ring_kv>
      : (tensor<?x64x8x64xf32>, tensor<?x64x4x64xf32>, tensor<?x64x4x64xf32>)
      -> (tensor<?x64x8x64xf32>, tensor<?x8x64xf32>)
  return %lse : tensor<?x8x64xf32>
}

// Two axes of a sequence are one, the last of them the fastest.
//
// RING-LABEL: func @several
// RING: %[[AT:.*]]:2 = shard.process_multi_index on @mesh axes = [0, 1] : index, index
// RING: %[[N:.*]] = arith.constant 4 : index
// RING: %[[BEGIN:.*]] = arith.muli %[[AT]]#0, %[[N]]
// RING: %[[R:.*]] = arith.addi %[[BEGIN]], %[[AT]]#1
// RING: ring.rotate({{.*}}) of <contiguous over 8>[%[[R]]] extent %{{.*}} channel <@mesh[0, 1], 0>
func.func @several(%q: tensor<1x64x8x64xf32>) -> tensor<1x8x64xf32> {
  %o, %lse = burst.attention %q, %q, %q
      sequence <@mesh[0, 1], contiguous> heads <@mesh[2]> strategy <ring_kv>
      : (tensor<1x64x8x64xf32>, tensor<1x64x8x64xf32>, tensor<1x64x8x64xf32>)
      -> (tensor<1x64x8x64xf32>, tensor<1x8x64xf32>)
  return %lse : tensor<1x8x64xf32>
}

// All axes named, or none: the same sequence.
//
// PARTITION-LABEL: func @spelled
// PARTITION: burst.attention_backward {{.*}} sequence <@mesh, zigzag>
// RING-LABEL: func @spelled
// RING-COUNT-2: ring.rotate{{.*}} channel <@mesh, 0>
func.func @spelled(%q: tensor<1x64x1x64xf32>) -> tensor<1x64x1x64xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag> strategy <ring_kv>
      : (tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>)
      -> (tensor<1x64x1x64xf32>, tensor<1x1x64xf32>)
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %o, %lse, %q
      sequence <@mesh[0, 1, 2], zigzag> strategy <ring_kv>
      : (tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>,
         tensor<1x64x1x64xf32>, tensor<1x1x64xf32>, tensor<1x64x1x64xf32>)
      -> (tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>, tensor<1x64x1x64xf32>)
  return %dq : tensor<1x64x1x64xf32>
}
