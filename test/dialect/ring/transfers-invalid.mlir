// RUN: burst-opt %s -verify-diagnostics -split-input-file

shard.grid @cp(shape = 8)

func.func @start_c1(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{needs at least one tensor and a dimension of each, got: 2 and 1}}
  %t = ring.start %k, %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c1(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{needs at least one tensor and a dimension of each, got: 1 and 0}}
  %t = ring.start %k dims [] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c1(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{names dimension 4 of 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [4] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c1(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{names dimension -1 of 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [-1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c1(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1, %x: tensor<f32>) {
  // expected-error @below {{names dimension 0 of 'tensor<f32>'}}
  %t = ring.start %x dims [0] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<f32>) -> !ring.token<tensor<f32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c1(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1, %x: tensor<*xf32>) {
  // expected-error @below {{operand #0 must be variadic of ranked tensor of any type values or strided memref of any type values, but got 'tensor<*xf32>'}}
  %t = ring.start %x dims [0] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<*xf32>) -> !ring.token<tensor<*xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x256x2x64xf32>', 'tensor<1x256x2x64xf32>' for 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x256x2x64xf32>' for 'tensor<1x256x2x64xf32>', 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k, %k dims [1, 1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x256x2xf32>' for 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x256x2x64xbf16>' for 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xbf16>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<2x256x2x64xf32>' for 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<2x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x255x2x64xf32>' for 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x255x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'i32' for 'tensor<1x256x2x64xf32>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<i32>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c2(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{result #0 must be a transfer under way, but got 'i32'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> i32
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c3(%k: tensor<1x256x2x64xf32>, %n: index, %p: tensor<4x2x2xi1>) {
  // expected-error @below {{takes flags as tensor<8xNx2xi1>, of static sizes, each or 1, got: 'tensor<4x2x2xi1>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n segments(%p[%n] : tensor<4x2x2xi1>) channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c3(%k: tensor<1x256x2x64xf32>, %n: index, %p: tensor<8x2x3xi1>) {
  // expected-error @below {{takes flags as tensor<8xNx2xi1>, of static sizes, each or 1, got: 'tensor<8x2x3xi1>'}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n segments(%p[%n] : tensor<8x2x3xi1>) channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c3(%k: tensor<1x256x2x64xf32>, %n: index, %p: tensor<8x?x1xi1>) {
  // expected-error @below {{takes flags as tensor<8xNx1xi1>, of static sizes, each or 1, got: 'tensor<8x?x1xi1>'}}
  %t = ring.start %k dims [1] of <striped 4 over 8>[%n] extent %n to %n receive [%n] from %n segments(%p[%n] : tensor<8x?x1xi1>) channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

func.func @start_c4(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{names the grid @cp, which does not exist}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c4(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{needs a channel of 8 ranks, as its layout says, got: #ring.channel<@cp}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4x4)

func.func @start_c4(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // A channel of a ring in a nest has a part of the ranks, but as many in each.
  %u = ring.start %k dims [1] of <zigzag over 16>[%n] extent %n to %n receive [%n] from %n channel <@cp[1], 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  // expected-error @below {{needs a channel of 6 ranks, as its layout says, got: #ring.channel<@cp[1], 0> of 4}}
  %t = ring.start %k dims [1] of <zigzag over 6>[%n] extent %n to %n receive [%n] from %n channel <@cp[1], 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

// expected-note @below {{the grid is declared here}}
shard.grid @cp(shape = ?)

func.func @start_c4(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{needs a grid whose shape is known, got: @cp with a dynamic axis}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @channel_c1(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{a channel's number must not be negative, got: -1}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, -1>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @syntax(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{expected ','}}
  %t = ring.start %k dims [1] of <zigzag over 8>[%n] extent %n to %n receive [%n] from %n channel <@a::@b, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @syntax(%k: tensor<1x256x2x64xf32>, %n: index, %p: i1) {
  // expected-error @below {{expected valid keyword}}
  %t = ring.start %k dims [1] of <3 over 8>[%n] extent %n to %n receive [%n] from %n channel <@cp, 0>
      : (tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @start_c3(%k: tensor<1x256x2x64xf32>, %n: index, %p: tensor<1x4x1xi1>) {
  // expected-error @below {{needs a table of segments and a turn, or neither}}
  %t = "ring.start"(%k, %n, %n, %n, %n, %n, %p) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 8>, channel = #ring.channel<@cp, 0>}>
      : (tensor<1x256x2x64xf32>, index, index, index, index, index, tensor<1x4x1xi1>) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

// The generic form.
shard.grid @cp(shape = 8)

func.func @generic(%k: tensor<1x256x2x64xf32>, %n: index) {
  // expected-error @below {{has peers in a shift, and in an all_gather none}}
  %t = "ring.start"(%k, %n, %n, %n, %n) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 8>, channel = #ring.channel<@cp, 0>}>
      : (tensor<1x256x2x64xf32>, index, index, index, index) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @generic(%k: tensor<1x256x2x64xf32>, %n: index) {
  // expected-error @below {{operand segment 1 must have one operand, got: 2}}
  %t = "ring.start"(%k, %n, %n, %n, %n, %n) <{
      operandSegmentSizes = array<i32: 1, 2, 1, 1, 0, 1, 0, 0, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 8>, channel = #ring.channel<@cp, 0>}>
      : (tensor<1x256x2x64xf32>, index, index, index, index, index) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @generic(%k: tensor<1x256x2x64xf32>, %n: index) {
  // expected-error @below {{operand #0 must be index, but got}}
  %t = "ring.start"(%k, %n, %n, %n, %n, %n) <{
      operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 0, 1, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 8>, channel = #ring.channel<@cp, 0>}>
      : (tensor<1x256x2x64xf32>, index, index, index, index, index) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @generic(%k: tensor<1x256x2x64xf32>, %n: index) {
  // expected-error @below {{needs at least one tensor and a dimension of each, got: 0 and 0}}
  %t = "ring.start"(%n, %n, %n, %n, %n) <{
      operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 0, 0, 0>, dims = array<i64>, layout = #ring.layout<zigzag over 8>, channel = #ring.channel<@cp, 0>}>
      : (index, index, index, index, index) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @generic(%k: tensor<1x256x2x64xf32>, %n: index) {
  // expected-error @below {{Invalid attribute `dims` in property conversion: array<i32: 1>}}
  %t = "ring.start"(%k, %n, %n, %n, %n, %n) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0>, dims = array<i32: 1>, layout = #ring.layout<zigzag over 8>, channel = #ring.channel<@cp, 0>}>
      : (tensor<1x256x2x64xf32>, index, index, index, index, index) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 8)

func.func @generic(%k: tensor<1x256x2x64xf32>, %n: index) {
  // expected-error @below {{requires attribute 'channel'}}
  %t = "ring.start"(%k, %n, %n, %n, %n, %n) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 8>}>
      : (tensor<1x256x2x64xf32>, index, index, index, index, index) -> !ring.token<tensor<1x256x2x64xf32>>
  return
}

// -----

func.func @wait_c1(%t: !ring.token<tensor<4xf32>>) {
  // expected-error @below {{must give what its token names, '!ring.token<tensor<4xf32>>', got: 'tensor<5xf32>'}}
  %0 = "ring.wait"(%t) : (!ring.token<tensor<4xf32>>) -> tensor<5xf32>
  return
}

// -----

func.func @wait_c1(%t: !ring.token<tensor<4xf32>>) {
  // expected-error @below {{must give what its token names, '!ring.token<tensor<4xf32>>', got: }}
  "ring.wait"(%t) : (!ring.token<tensor<4xf32>>) -> ()
  return
}

// -----

func.func @wait_c1(%t: !ring.token<i32>) {
  // expected-error @below {{result #0 must be variadic of ranked tensor of any type values, but got 'i32'}}
  %0 = ring.wait %t : !ring.token<i32>
  return
}

// -----

func.func @syntax(%t: !ring.token<tensor<4xf32>>) {
  // expected-error @below {{operation defines 1 results but was provided 2 to bind}}
  %0:2 = ring.wait %t : !ring.token<tensor<4xf32>>
  return
}

// -----

func.func @syntax(%t: i32) {
  // expected-error @below {{invalid kind of type specified: expected ring.token, but found 'i32'}}
  %0 = ring.wait %t : i32
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{'ring.start' op is over ranks that divide the 4 parts of its layout, got: 3}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 3 channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{needs a channel of 2 ranks, as its layout says, got: #ring.channel<@cp, 0> of 4}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 2 channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x256x4x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{'ring.start' op shards heads of tensors of 3 or 4 dimensions, got: 'tensor<8x2xf32>'}}
  %t = ring.start %x dims [0] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 channel <@cp, 0>
      : (tensor<8x2xf32>) -> !ring.token<tensor<32x2xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{shards heads in place of another dimension, got: 2 of 'tensor<1x128x8x64xf32>', that of the heads}}
  %t = ring.start %q dims [2] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 16)

func.func @start_c6(%q: tensor<1x128x6x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x2048x6x64xf32>' for 'tensor<1x128x6x64xf32>'}}
  %t = ring.start %q dims [1] of <zigzag over 16>[%n] extent %n all_to_all heads over 16 channel <@cp, 0>
      : (tensor<1x128x6x64xf32>) -> !ring.token<tensor<1x2048x6x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 16)

func.func @start_c6(%q: tensor<1x128x0x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{exchanges tensors with heads, got: 'tensor<1x128x0x64xf32>'}}
  %t = ring.start %q dims [1] of <zigzag over 16>[%n] extent %n all_to_all heads over 16 channel <@cp, 0>
      : (tensor<1x128x0x64xf32>) -> !ring.token<tensor<1x2048x1x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

// Two heads of each of four ranks are enough for five, one of each is not.
func.func @start_c6(%q: tensor<1x128x5x64xf32>, %n: index) {
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 channel <@cp, 0>
      : (tensor<1x128x5x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x512x1x64xf32>' for 'tensor<1x128x5x64xf32>'}}
  %u = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 channel <@cp, 0>
      : (tensor<1x128x5x64xf32>) -> !ring.token<tensor<1x512x1x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%o: tensor<1x512x1x64xf32>, %n: index) {
  // Two ranks have a head each, and two have none.
  %s = ring.start %o dims [1] of <zigzag over 4>[%n] extent %n all_to_all sequence over 4 channel <@cp, 0>
      : (tensor<1x512x1x64xf32>) -> !ring.token<tensor<1x128x2x64xf32>>
  // Heads that two ranks share come back from both.
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x128x2x64xf32>' for 'tensor<1x512x1x64xf32>'}}
  %t = ring.start %o dims [1] of <zigzag over 4>[%n] extent %n all_to_all sequence over 4 groups 2 channel <@cp, 0>
      : (tensor<1x512x1x64xf32>) -> !ring.token<tensor<1x128x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x6x64xf32>, %n: index) {
  // Room for two heads of each rank, of which two have three.
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 groups 2 channel <@cp, 0>
      : (tensor<1x128x6x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x512x1x64xf32>' for 'tensor<1x128x6x64xf32>'}}
  %u = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 groups 2 channel <@cp, 0>
      : (tensor<1x128x6x64xf32>) -> !ring.token<tensor<1x512x1x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x6x64xf32>, %n: index) {
  // expected-error @below {{has heads in groups that divide them, got: 6 heads in 4 groups}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 groups 4 channel <@cp, 0>
      : (tensor<1x128x6x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x10x64xf32>, %n: index) {
  // expected-error @below {{has 1 to 4 groups of heads, one of its ranks at least in each, got: 5}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 groups 5 channel <@cp, 0>
      : (tensor<1x128x10x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c6(%q: tensor<1x128x10x64xf32>, %n: index) {
  // expected-error @below {{has groups of heads in an all_to_all only, got: 2}}
  %t = "ring.start"(%q, %n, %n, %n, %n, %n) {dims = array<i64: 1>, layout = #ring.layout<zigzag over 4>, channel = #ring.channel<@cp, 0>, groups = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0>}
      : (tensor<1x128x10x64xf32>, index, index, index, index, index) -> !ring.token<tensor<1x128x10x64xf32>>
  return
}

// -----

// The heads of an argument are in as many groups, wherever they go.
shard.grid @cp(shape = 4)

func.func @program(%q: tensor<1x128x6x64xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>},
                   %n: index) attributes {ring.grid = @cp} {
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 groups 2 channel <@cp, 0>
      : (tensor<1x128x6x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  // expected-error @below {{has the heads of argument 0 in 1 groups, and another one in 2}}
  %u = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 channel <@cp, 0>
      : (tensor<1x128x6x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c2(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x512x8x64xf32>' for 'tensor<1x128x8x64xf32>'}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x8x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c2(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x128x8x64xf32>' for 'tensor<1x128x8x64xf32>'}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all sequence over 4 channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x128x8x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c3(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{sends all segments in an all_to_all, got a table of them}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4
      segments(%moves : tensor<4x4x2xi1>) channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @start_c5(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor: #ring.layout<zigzag over 4, all>}}
  %t = ring.start %q dims [1] of <zigzag over 4, all>[%n] extent %n all_to_all heads over 4 channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @syntax(%q: tensor<1x128x8x64xf32>, %x: tensor<8x2xf32>, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{an all_to_all shards 'heads' or 'sequence'}}
  %t = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all rows over 4 channel <@cp, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  return
}

// -----

shard.grid @mesh(shape = 2x4)
#s = #ring.shard<#ring.layout<zigzag over 8>, dim 1 extent 1024>

func.func @start_c6(%q: tensor<1x128x8x64xf32> {ring.shard = #s}, %n: index) attributes {ring.grid = @mesh} {
  // expected-error @below {{is an all_to_all along #ring.channel<@mesh[0], 0>, which must be along the last axes over which the sequence is sharded}}
  %t = ring.start %q dims [1] of <zigzag over 8>[%n] extent %n all_to_all heads over 2 channel <@mesh[0], 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x256x4x64xf32>>
  return
}

// -----

shard.grid @mesh(shape = 2x4)
#s = #ring.shard<#ring.layout<zigzag over 8>, dim 1 extent 1024>

func.func @start_c6(%q: tensor<1x128x8x64xf32> {ring.shard = #s}, %n: index) attributes {ring.grid = @mesh} {
  %0 = ring.start %q dims [1] of <zigzag over 8>[%n] extent %n all_to_all heads over 4 channel <@mesh[1], 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  // expected-error @below {{is an all_to_all along #ring.channel<@mesh, 0>, another one is along other axes}}
  %1 = ring.start %q dims [1] of <zigzag over 8>[%n] extent %n all_to_all heads over 8 channel <@mesh, 0>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x1024x1x64xf32>>
  return
}
