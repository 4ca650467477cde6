// RUN: burst-opt %s -verify-diagnostics -split-input-file

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c1(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{needs at least one tensor and a dimension of each, got: 1 and 2}}
  ring.rotate (%k dims [1, 1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c1(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{names dimension 4 of 'tensor<1x32x2x16xf32>'}}
  ring.rotate (%k dims [4]) of <zigzag over 8>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c1(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{names dimension -1 of 'tensor<1x32x2x16xf32>'}}
  ring.rotate (%k dims [-1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c2(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{region takes 'index', 'tensor<1x32x2x16xf32>', got: 'tensor<1x32x2x16xf32>'}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c2(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{different number of inits and region iter_args: 1 != 0}}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> carry(%k : !kv)
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield %kt : !kv
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c2(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{region ends in a ring.yield of 'tensor<1x32x2x16xf32>', got: }}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> carry(%k : !kv)
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %c: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c2(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{region ends in a ring.yield of 'tensor<1x32x2x16xf32>', got: }}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> partial add dims [1]
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %d: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c2(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{0-th region iter_arg and 0-th yielded value have different type: 'tensor<1x32x2x16xf32>' != 'index'}}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> carry(%k : !kv)
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %c: !kv):
    ring.yield %owner : index
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{gives the 1 values that it carries, and partial results, got: 0}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> carry(%k : !kv)
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv, %c: !kv):
    ring.yield %c : !kv
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{has partial results but does not say how they are joined: partial add dims [...], or merge}}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0>
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %d: !kv):
    ring.yield %d : !kv
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{merges one softmax state, (o, m, l), got: 1 partial results}}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> partial merge dims [1]
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %d: !kv):
    ring.yield %d : !kv
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{adds gradients by its tensors, of which there are 1, got: 2}}
  %0:2 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> partial add dims [1, 1]
      : (!kv) -> (!kv, !kv) {
  ^bb0(%owner: index, %kt: !kv, %d: !kv, %e: !kv):
    ring.yield %d, %e : !kv, !kv
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{adds gradients by its tensors, of which there are 1, got: 0}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> partial add dims []
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{needs a dimension of each partial result, got: 2 of 1}}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> partial add dims [1, 1]
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %d: !kv):
    ring.yield %d : !kv
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{names dimension 4 of 'tensor<1x32x2x16xf32>'}}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> partial add dims [4]
      : (!kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %d: !kv):
    ring.yield %d : !kv
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c3(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{names dimension 0 of 'index'}}
  %0 = ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> partial add dims [0]
      : (!kv) -> index {
  ^bb0(%owner: index, %kt: !kv, %d: index):
    ring.yield %d : index
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c4(%k: !kv, %m: !m, %n: index, %reach: tensor<8x1xindex>) {
  // expected-error @below {{needs a reach of 8x2, parts and segments of its layout, got: 'tensor<8x1xindex>'}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> reach %reach by %n : tensor<8x1xindex>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

func.func @rotate_c5(%k: !kv, %m: !m, %n: index) {
  // expected-error @below {{names the grid @dp, which does not exist}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@dp, 0>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

// One without the other cannot be written.
func.func @rotate_c4(%k: !kv, %n: index) {
  // expected-error @below {{needs a reach and a step, or neither}}
  "ring.rotate"(%k, %n, %n, %n) <{channel = #ring.channel<@cp, 0>, dims = array<i64: 1>, layout = #ring.layout<zigzag over 8>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 0, 0>}> ({
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }) : (!kv, index, index, index) -> ()
  return
}

// -----

shard.grid @mesh(shape = 2x4)

!kv = tensor<1x32x2x16xf32>

// A ring of a part of the ranks is one of a nest.
func.func @rotate_c5(%k: !kv, %n: index) {
  // expected-error @below {{needs a channel of 8 ranks, as its layout says, got: #ring.channel<@mesh[1], 0> of 4}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@mesh[1], 0>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @mesh(shape = 2x4)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c5(%k: !kv, %n: index) {
  // expected-error @below {{is a ring of 2 ranks with stride 3, which must divide the 8 parts of its layout}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@mesh[0], 0> stride 3
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.rotate (%kt dims [1]) of <zigzag over 8>[%owner] extent %n channel <@mesh[1], 3>
        : (!kv) -> () {
    ^bb0(%inner: index, %kk: !kv):
      ring.yield
    }
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c4(%k: !kv, %n: index, %reach: tensor<8x2xindex>) {
  // expected-error @below {{needs a reach of 8x?x2, parts and segments of its layout, got: 'tensor<8x2xindex>'}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> reach %reach[%n] by %n : tensor<8x2xindex>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c6(%k: !kv, %n: index, %reach: tensor<8x2xindex>) {
  // expected-error @below {{is direct, so that nothing has a reach, got one}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> direct reach %reach by %n : tensor<8x2xindex>
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c6(%k: !kv, %n: index, %needs: tensor<8x8x2xi1>) {
  // expected-error @below {{has segments that ranks need, which are those of a direct one; others have a reach}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> segments(%needs : tensor<8x8x2xi1>)
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

func.func @yield() {
  // expected-error @below {{expects parent op to be one of 'ring.rotate, ring.gather'}}
  ring.yield
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c4(%k: !kv, %n: index, %reach: tensor<8x3x2xindex>) {
  // expected-error @below {{needs a reach of 8x2x2, parts and segments of its layout, got: 'tensor<8x3x2xindex>'}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> bidirectional
      reach %reach : tensor<8x3x2xindex> : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c4(%k: !kv, %n: index, %reach: tensor<8x2x2xindex>) {
  // expected-error @below {{goes in both directions, and takes no step}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> bidirectional
      reach %reach by %n : tensor<8x2x2xindex> : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c7(%k: !kv, %n: index) {
  // expected-error @below {{is bidirectional, which is no direct one}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> direct bidirectional
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @mesh(shape = 2x4)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c7(%k: !kv, %n: index, %c: i1) {
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@mesh, 0> bidirectional
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    scf.if %c {
      // expected-error @below {{is in the region of a bidirectional one, of which there are no nests}}
      ring.rotate (%kt dims [1]) of <zigzag over 8>[%owner] extent %n channel <@mesh[1], 3>
          : (!kv) -> () {
      ^bb0(%inner: index, %ki: !kv):
        ring.yield
      }
    }
    ring.yield
  }
  return
}

// -----

shard.grid @mesh(shape = 2x4)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c7(%k: !kv, %n: index) {
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@mesh[0], 0> stride 4
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    // expected-error @below {{is bidirectional, which is no ring of a nest}}
    ring.rotate (%kt dims [1]) of <zigzag over 8>[%owner] extent %n channel <@mesh[1], 3> bidirectional
        : (!kv) -> () {
    ^bb0(%inner: index, %ki: !kv):
      ring.yield
    }
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate_c5(%k: !kv, %n: index) {
  // expected-error @below {{is one ring of all ranks, of which neighbours are 1 apart, got: stride 3}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 0> stride 3 bidirectional
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @rotate(%k: !kv, %n: index) {
  // expected-error @below {{takes several channels, of which the last has no number: #ring.channel<@cp, 9223372036854775804>}}
  ring.rotate (%k dims [1]) of <zigzag over 8>[%n] extent %n channel <@cp, 9223372036854775804> bidirectional
      : (!kv) -> () {
  ^bb0(%owner: index, %kt: !kv):
    ring.yield
  }
  return
}

// -----

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>

func.func @apart(%k: !kv) -> !kv attributes {ring.grid = @cp} {
  // expected-error @below {{'ring.apart' must be the number of an attend, got: 0}}
  %z = ring.zero %k {ring.apart = 0 : i64} : !kv -> !kv
  return %z : !kv
}
