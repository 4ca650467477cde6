// RUN: burst-opt %s | burst-opt | FileCheck %s

// Attributes and the type, where they stand alone, and those of functions.

shard.grid @cp(shape = 4)
shard.grid @one(shape = 1)

// CHECK-LABEL: func private @layouts
// CHECK-SAME: a = #ring.layout<zigzag over 8>
// CHECK-SAME: b = #ring.layout<striped 64 over 4>
// CHECK-SAME: c = #ring.layout<striped over 4>
// CHECK-SAME: d = #ring.layout<contiguous over 1048576>
// CHECK-SAME: e = #ring.layout<striped 1099511627775 over 1>
func.func private @layouts() attributes {
  a = #ring.layout<zigzag over 8>,
  b = #ring.layout<striped 64 over 4>,
  c = #ring.layout<striped 1 over 4>,
  d = #ring.layout<contiguous over 1048576>,
  e = #ring.layout<striped 1099511627775 over 1>
}

// CHECK-LABEL: func private @shards
// CHECK-SAME: a = #ring.shard<#ring.layout<zigzag over 8>, dim 1 extent 2048>
// CHECK-SAME: b = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent ?>
// CHECK-SAME: c = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent 0>
// CHECK-SAME: d = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent 1099511627775>
func.func private @shards() attributes {
  a = #ring.shard<#ring.layout<zigzag over 8>, dim 1 extent 2048>,
  b = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent ?>,
  c = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent 0>,
  d = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent 1099511627775>
}

// CHECK-LABEL: func private @channels
// CHECK-SAME: a = #ring.channel<@cp, 0>
// CHECK-SAME: b = #ring.channel<@"a b", 9223372036854775807>
func.func private @channels() attributes {
  a = #ring.channel<@cp, 0>,
  b = #ring.channel<@"a b", 9223372036854775807>
}

// CHECK-LABEL: func private @tokens
// CHECK-SAME: (!ring.token<tensor<1x256x8x128xbf16>, tensor<1x256x8x128xbf16>>, !ring.token<tensor<?xf32>>)
func.func private @tokens(
    !ring.token<tensor<1x256x8x128xbf16>, tensor<1x256x8x128xbf16>>,
    !ring.token<tensor<?xf32>>)

// The program of a rank: even and uneven shards, sizes, results.
//
// CHECK-LABEL: func @program
// CHECK-SAME: (%{{.*}}: tensor<1x128xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>},
// CHECK-SAME: %{{.*}}: tensor<1x?xf32> {ring.shard = #ring.shard<#ring.layout<striped 5 over 4>, dim 1 extent 512>},
// CHECK-SAME: %{{.*}}: tensor<?x1xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 0 extent ?>},
// CHECK-SAME: %{{.*}}: tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 0 extent ?>},
// CHECK-SAME: %{{.*}}: index {ring.extent = array<i64: 2, 0, 3, 0>}, %{{.*}}: tensor<9xi32>)
// CHECK-SAME: -> (tensor<1x128xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>})
// CHECK-SAME: attributes {ring.grid = @cp}
func.func @program(
    %0: tensor<1x128xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>},
    %1: tensor<1x?xf32> {ring.shard = #ring.shard<#ring.layout<striped 5 over 4>, dim 1 extent 512>},
    %2: tensor<?x1xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 0 extent ?>},
    %3: tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 0 extent ?>},
    %4: index {ring.extent = array<i64: 2, 0, 3, 0>}, %5: tensor<9xi32>)
    -> (tensor<1x128xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>})
    attributes {ring.grid = @cp} {
  return %0 : tensor<1x128xf32>
}

// CHECK-LABEL: func @alone
// CHECK-SAME: attributes {ring.grid = @one}
func.func @alone() attributes {ring.grid = @one} {
  return
}

// CHECK-LABEL: func @slices
// CHECK-SAME: attributes {ring.grid = @one, ring.max_slices = array<i64: 3, 1>}
func.func @slices() attributes {ring.grid = @one, ring.max_slices = array<i64: 3, 1>} {
  return
}
