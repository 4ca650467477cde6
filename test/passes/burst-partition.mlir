// RUN: burst-opt %s --burst-partition | FileCheck %s

shard.grid @cp(shape = 4)

// The example of the pass: sizes that 4 ranks, in two chunks each, share evenly.
//
// CHECK-LABEL: func @even
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x128x4x64xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>},
// CHECK-SAME: %[[K:[^ ]+]]: tensor<1x64x2x64xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 256>},
// CHECK-SAME: %[[V:[^ ]+]]: tensor<1x64x2x32xf32> {burst.name = "v", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 256>})
// CHECK-SAME: -> (tensor<1x128x4x32xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>},
// CHECK-SAME: tensor<1x4x128xf32> {burst.name = "lse", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 2 extent 512>})
// CHECK-SAME: attributes {ring.grid = @cp}
// CHECK-DAG: %[[SQ:.*]] = arith.constant 512 : index
// CHECK-DAG: %[[SK:.*]] = arith.constant 256 : index
// CHECK: %[[GQ:.*]] = burst.unshard %[[Q]] dim 1 extent %[[SQ]] by <@cp, zigzag> : tensor<1x128x4x64xf32> -> tensor<1x512x4x64xf32>
// CHECK: %[[GK:.*]] = burst.unshard %[[K]] dim 1 extent %[[SK]] by <@cp, zigzag> : tensor<1x64x2x64xf32> -> tensor<1x256x2x64xf32>
// CHECK: %[[GV:.*]] = burst.unshard %[[V]] dim 1 extent %[[SK]] by <@cp, zigzag> : tensor<1x64x2x32xf32> -> tensor<1x256x2x32xf32>
// CHECK: %[[O:.*]], %[[LSE:.*]] = burst.attention %[[GQ]], %[[GK]], %[[GV]] sequence <@cp, zigzag> :
// CHECK: %[[LO:.*]] = burst.shard %[[O]] dim 1 by <@cp, zigzag> : tensor<1x512x4x32xf32> -> tensor<1x128x4x32xf32>
// CHECK: %[[LLSE:.*]] = burst.shard %[[LSE]] dim 2 by <@cp, zigzag> : tensor<1x4x512xf32> -> tensor<1x4x128xf32>
// CHECK: return %[[LO]], %[[LLSE]]
func.func @even(%q: tensor<1x512x4x64xf32>, %k: tensor<1x256x2x64xf32>,
                %v: tensor<1x256x2x32xf32> {burst.name = "v"})
    -> (tensor<1x512x4x32xf32>, tensor<1x4x512xf32> {burst.name = "lse"}) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>
      : (tensor<1x512x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x32xf32>)
      -> (tensor<1x512x4x32xf32>, tensor<1x4x512xf32>)
  return %o, %lse : tensor<1x512x4x32xf32>, tensor<1x4x512xf32>
}

// Ranks hold different numbers of queries: their shard is dynamic, its extent is
// known. Keys are few, but even.
//
// CHECK-LABEL: func @uneven
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<striped 2 over 4>, dim 1 extent 9>},
// CHECK-SAME: %[[K:[^ ]+]]: tensor<1x2x1x4xf32> {ring.shard = #ring.shard<#ring.layout<striped 2 over 4>, dim 1 extent 8>})
// CHECK-SAME: -> (tensor<1x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<striped 2 over 4>, dim 1 extent 9>})
// CHECK-DAG: %[[NINE:.*]] = arith.constant 9 : index
// CHECK: burst.unshard %[[Q]] dim 1 extent %[[NINE]] by <@cp, striped 2> : tensor<1x?x1x4xf32> -> tensor<1x9x1x4xf32>
// CHECK: burst.shard %{{.*}} dim 1 by <@cp, striped 2> : tensor<1x9x1x4xf32> -> tensor<1x?x1x4xf32>
func.func @uneven(%q: tensor<1x9x1x4xf32>, %k: tensor<1x8x1x4xf32>) -> tensor<1x9x1x4xf32> {
  %o, %lse = burst.attention %q, %k, %k sequence <@cp, striped 2>
      : (tensor<1x9x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x9x1x4xf32>, tensor<1x1x9xf32>)
  return %o : tensor<1x9x1x4xf32>
}

// Sizes that are not known become arguments, one for queries and one for keys and
// values; in which order tensors come does not matter.
//
// CHECK-LABEL: func @dynamic
// CHECK-SAME: (%[[V:[^ ]+]]: tensor<?x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent ?>},
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<?x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent ?>},
// CHECK-SAME: %[[K:[^ ]+]]: tensor<?x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent ?>},
// CHECK-SAME: %[[T:[^ ]+]]: tensor<9xi32>,
// CHECK-SAME: %[[SQ:[^ ]+]]: index {ring.extent = array<i64: 1, 1>},
// CHECK-SAME: %[[SK:[^ ]+]]: index {ring.extent = array<i64: 2, 1, 0, 1>})
// CHECK-SAME: -> (tensor<?x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent ?>}, tensor<?x1x?xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 2 extent ?>})
// CHECK-DAG: burst.unshard %[[Q]] dim 1 extent %[[SQ]]
// CHECK-DAG: burst.unshard %[[K]] dim 1 extent %[[SK]]
// CHECK-DAG: burst.unshard %[[V]] dim 1 extent %[[SK]]
// CHECK: burst.attention {{.*}} mask documents(%[[T]] : tensor<9xi32>)
func.func @dynamic(%v: tensor<?x?x1x4xf32>, %q: tensor<?x?x1x4xf32>,
                   %k: tensor<?x?x1x4xf32>, %t: tensor<9xi32>)
    -> (tensor<?x?x1x4xf32>, tensor<?x1x?xf32>) {
  %o, %lse = burst.attention %q, %k, %v mask documents(%t : tensor<9xi32>)
      sequence <@cp, contiguous>
      : (tensor<?x?x1x4xf32>, tensor<?x?x1x4xf32>, tensor<?x?x1x4xf32>)
      -> (tensor<?x?x1x4xf32>, tensor<?x1x?xf32>)
  return %o, %lse : tensor<?x?x1x4xf32>, tensor<?x1x?xf32>
}

// What the value says of the size of the key is known.
//
// CHECK-LABEL: func @partly
// CHECK-SAME: (%{{.*}}: tensor<1x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent ?>},
// CHECK-SAME: %{{.*}}: tensor<1x?x1x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 16>},
// CHECK-SAME: %{{.*}}: tensor<1x4x1x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 16>},
// CHECK-SAME: %{{.*}}: index {ring.extent = array<i64: 0, 1>})
func.func @partly(%q: tensor<1x?x1x4xf32>, %k: tensor<1x?x1x4xf32>,
                  %v: tensor<1x16x1x4xf32>) -> tensor<1x?x1x4xf32> {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous>
      : (tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>, tensor<1x16x1x4xf32>)
      -> (tensor<1x?x1x4xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x?x1x4xf32>
}

// Several attentions share what they have in common; one tensor may be query and
// key, or returned twice.
//
// CHECK-LABEL: func @several
// CHECK-SAME: (%[[ARGX:[^ ]+]]: tensor<{{.*}}, %[[ARGV:[^ ]+]]: tensor<{{.*}}, %[[ARGY:[^ ]+]]: tensor<{{.*}}, %{{.*}}: tensor<5xf32>)
// CHECK: %[[X:.*]] = burst.unshard %[[ARGX]]
// CHECK: %[[V:.*]] = burst.unshard %[[ARGV]]
// CHECK: %[[A:.*]], %{{.*}} = burst.attention %[[X]], %[[X]], %[[V]] sequence
// CHECK: %[[Y:.*]] = burst.unshard %[[ARGY]]
// CHECK: burst.attention %[[Y]], %[[X]], %[[V]] sequence
// CHECK-COUNT-2: burst.shard %[[A]] dim 1
func.func @several(%x: tensor<1x8x1x4xf32>, %v: tensor<1x8x1x4xf32>,
                   %y: tensor<1x8x1x4xf32>, %unused: tensor<5xf32>)
    -> (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) {
  %0:2 = burst.attention %x, %x, %v sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %1:2 = burst.attention %y, %x, %v sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %0#0, %0#0 : tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>
}

// Constants may be captured, and tables that are the same on every rank.
//
// CHECK-LABEL: func @captures
// CHECK-SAME: %[[T:[^ ]+]]: tensor<1xf32>)
// CHECK: %[[N:.*]] = arith.constant 3 : index
// CHECK: mask({{.*}} = %[[N]] : index)
// CHECK: score alibi(%[[T]] : tensor<1xf32>)
func.func @captures(%q: tensor<1x8x1x4xf32>, %t: tensor<1xf32>) -> tensor<1x8x1x4xf32> {
  %n = arith.constant 3 : index
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %n : index) {
        %keep = arith.cmpi slt, %j, %c : index
        burst.yield %keep : i1
      }
      score alibi(%t : tensor<1xf32>) sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}

// Functions without attention, and programs of a rank, are left alone.
//
// CHECK-LABEL: func @other
// CHECK-SAME: (%{{.*}}: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
func.func @other(%x: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  return %x : tensor<1x8x1x4xf32>
}

// CHECK-LABEL: func @again
// CHECK-SAME: (%{{.*}}: tensor<1x2x1x4xf32>) attributes {ring.grid = @cp}
// CHECK-COUNT-1: burst.unshard
func.func @again(%x: tensor<1x2x1x4xf32>) attributes {ring.grid = @cp} {
  %n = arith.constant 8 : index
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> tensor<1x8x1x4xf32>
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}
