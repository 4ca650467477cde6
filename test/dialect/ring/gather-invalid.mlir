// RUN: burst-opt %s -verify-diagnostics -split-input-file

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c1(%k: !kv, %n: index) {
  // expected-error @below {{needs at least one tensor and a dimension of each, got: 1 and 2}}
  ring.gather (%k dims [1, 1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%ka: !all):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c1(%k: !kv, %n: index) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor: #ring.layout<zigzag over 4, all>}}
  ring.gather (%k dims [1]) of <zigzag over 4, all>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%ka: !all):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c2(%k: !kv, %n: index) {
  // expected-error @below {{region takes 1 gathered tensors and 0 partial results, got: }}
  ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%ka: !all, %more: index):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>

func.func @gather_c2(%k: !kv, %n: index) {
  // expected-error @below {{region takes as gathered along dimension 1 of 'tensor<1x32x2x16xf32>', got: 'tensor<1x128x3x16xf32>'}}
  ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%ka: tensor<1x128x3x16xf32>):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c2(%k: !kv, %n: index) {
  // expected-error @below {{region takes as gathered along dimension 2 of 'tensor<1x32x2x16xf32>', got: 'tensor<1x128x2x16xf32>'}}
  %0 = ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      partial add dims [2] : (!kv) -> !kv {
  ^bb0(%ka: !all, %dk: !all):
    ring.yield %dk : !all
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c2(%k: !kv, %n: index) {
  // expected-error @below {{region ends in a ring.yield of 'tensor<1x128x2x16xf32>', got: 'index'}}
  %0 = ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      partial add dims [1] : (!kv) -> !kv {
  ^bb0(%ka: !all, %dk: !all):
    ring.yield %n : index
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c3(%k: !kv, %n: index) {
  // expected-error @below {{adds gradients by its tensors, of which there are 1, got: 2}}
  %0:2 = ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      partial add dims [1, 1] : (!kv) -> (!kv, !kv) {
  ^bb0(%ka: !all, %dk: !all, %dv: !all):
    ring.yield %dk, %dv : !all, !all
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c3(%k: !kv, %n: index) {
  // expected-error @below {{merges one softmax state, (o, m, l), got: 1 partial results}}
  %0 = ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      partial merge dims [1] : (!kv) -> !kv {
  ^bb0(%ka: !all, %o: !all):
    ring.yield %o : !all
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c3(%k: !kv, %n: index) {
  // expected-error @below {{gives values and 1 partial results, got: 0}}
  ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      partial add dims [1] : (!kv) -> () {
  ^bb0(%ka: !all):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c3(%k: !kv, %n: index) {
  // expected-error @below {{must say of partial results how they are joined, and along which dimensions}}
  "ring.gather"(%k, %n, %n) <{channel = #ring.channel<@cp, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 4>, operandSegmentSizes = array<i32: 1, 1, 1, 0>, partialDims = array<i64>}> ({
  ^bb0(%ka: !all):
    ring.yield
  }) : (!kv, index, index) -> ()
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c4(%k: !kv, %n: index, %moves: tensor<4x3x2xi1>) {
  // expected-error @below {{takes flags as tensor<4x4x2xi1>, of static sizes, got: 'tensor<4x3x2xi1>'}}
  ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      segments(%moves : tensor<4x3x2xi1>) : (!kv) -> () {
  ^bb0(%ka: !all):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 5)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @gather_c5(%k: !kv, %n: index) {
  // expected-error @below {{needs a channel of 4 ranks, as its layout says, got: #ring.channel<@cp}}
  ring.gather (%k dims [1]) of <zigzag over 4>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%ka: !all):
    ring.yield
  }
  return
}

// -----

// Shards of one owner, where a gathered layout is none.

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>

func.func @start_c5(%k: !all, %n: index) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor: #ring.layout<zigzag over 4, all>}}
  %0 = ring.start %k dims [1] of <zigzag over 4, all>[%n] extent %n all_gather
      channel <@cp, 0> : (!all) -> !ring.token<!all>
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>

func.func @start_c5(%k: !kv, %n: index) {
  // expected-error @below {{has peers in a shift, and in an all_gather none}}
  %0 = "ring.start"(%k, %n, %n) <{channel = #ring.channel<@cp, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 4>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0>}> : (!kv, index, index) -> !ring.token<!kv>
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>

func.func @start_c5(%k: !kv, %n: index) {
  // expected-error @below {{has peers in a shift, and in an all_gather none}}
  %0 = "ring.start"(%k, %n, %n, %n, %n, %n) <{channel = #ring.channel<@cp, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 4>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0>, route = #ring<route all_gather>}> : (!kv, index, index, index, index, index) -> !ring.token<!kv>
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>

func.func @start_c3(%k: !kv, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{takes the distance between ranks for the turn, got one}}
  %0 = ring.start %k dims [1] of <zigzag over 4>[%n] extent %n all_gather
      segments(%moves[%n] : tensor<4x4x2xi1>) channel <@cp, 0>
      : (!kv) -> !ring.token<!kv>
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>

func.func @start_c3(%k: !kv, %n: index, %moves: tensor<4x4x2xi1>) {
  // expected-error @below {{needs a table of segments and a turn, or neither}}
  %0 = ring.start %k dims [1] of <zigzag over 4>[%n] extent %n
      to %n receive [%n] from %n segments(%moves : tensor<4x4x2xi1>)
      channel <@cp, 0> : (!kv) -> !ring.token<!kv>
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>

func.func @start_c2(%k: !kv, %n: index) {
  // expected-error @below {{receives tensors of the kind it sends, got: 'tensor<1x128x3x16xf32>' for 'tensor<1x32x2x16xf32>'}}
  %0 = ring.start %k dims [1] of <zigzag over 4>[%n] extent %n all_gather
      channel <@cp, 0> : (!kv) -> !ring.token<tensor<1x128x3x16xf32>>
  return
}

// -----

!kv = tensor<1x32x2x16xf32>

func.func @add_c2(%k: !kv, %n: index) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor}}
  %0 = ring.add %k, %k of <zigzag over 4, all>[%n] extent %n : !kv
  return
}

// -----

!o = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @merge_c2(%o: !o, %m: !m, %n: index) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor}}
  %0:3 = ring.merge (%o, %m, %m) with (%o, %m, %m) of <zigzag over 4, all>[%n]
      extent %n : !o, !m
  return
}

// -----

!q = tensor<1x32x2x16xf32>

func.func @score_c1(%q: !q, %s: tensor<1x2x32x128xf32>, %n: index) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor}}
  %0 = ring.score %q at <zigzag over 4>[%n] extent %n
      slice (%q at %n) of <zigzag over 4, all> extent %n into %s scale 0.25
      : (!q, !q) -> tensor<1x2x32x128xf32>
  return
}

// -----

!o = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>
!s = tensor<1x2x32x128xf32>

func.func @weigh_c1(%o: !o, %m: !m, %s: !s, %n: index) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor}}
  %0:3 = ring.weigh %s, (%o at %n) of <zigzag over 4, all> extent %n
      state %o, %m, %m : !s, !o, !o, !m
  return
}

// -----

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c1(%k: !kv, %n: index) {
  // expected-error @below {{works on shards of one owner, got the layout of a gathered tensor}}
  ring.rotate (%k dims [1]) of <zigzag over 4, all>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

// expected-error @below {{a shard is what one rank holds of a tensor that is sharded, got the layout of a gathered one}}
func.func @shard_c2(%k: tensor<4xf32> {x = #ring.shard<#ring.layout<zigzag over 4, all>, dim 0 extent 4>}) {
  return
}

// -----

func.func @segment_c1(%n: index) {
  %c8 = arith.constant 8 : index
  // expected-error @below {{index must be in [0, 8) for #ring.layout<zigzag over 4, all>, got: 8}}
  %0:5 = ring.segment %c8 of <zigzag over 4, all>[%n] extent %n
  return
}

// -----

// expected-error @below {{expected 'all'}}
func.func private @layout() attributes {x = #ring.layout<zigzag over 4, some>}
