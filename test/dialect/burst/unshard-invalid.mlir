// RUN: burst-opt %s -verify-diagnostics -split-input-file

// Another dimension, rank or element type.
shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x2x4xf32>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x8x3xf32>' must be 'tensor<1x2x3xf32>', got: 'tensor<1x2x4xf32>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x2x4xf32> -> tensor<1x8x3xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x2xf32>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x8x3xf32>' must be 'tensor<1x2x3xf32>', got: 'tensor<1x2xf32>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x2xf32> -> tensor<1x8x3xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x2x3xf16>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x8x3xf32>' must be 'tensor<1x2x3xf32>', got: 'tensor<1x2x3xf16>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x2x3xf16> -> tensor<1x8x3xf32>
  return
}

// -----

// Another size.
shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x4x3xf32>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x8x3xf32>' must be 'tensor<1x2x3xf32>', got: 'tensor<1x4x3xf32>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x4x3xf32> -> tensor<1x8x3xf32>
  return
}

// -----

// Static, though ranks hold different numbers, and the other way round.
shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x2x3xf32>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x9x3xf32>' must be 'tensor<1x?x3xf32>', got: 'tensor<1x2x3xf32>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x2x3xf32> -> tensor<1x9x3xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x3x3xf32>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x12x3xf32>' must be 'tensor<1x?x3xf32>', got: 'tensor<1x3x3xf32>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x3x3xf32> -> tensor<1x12x3xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x2x3xf32>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x?x3xf32>' must be 'tensor<1x?x3xf32>', got: 'tensor<1x2x3xf32>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x2x3xf32> -> tensor<1x?x3xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x?x3xf32>, %n: index) {
  // expected-error @below {{the shard of 'tensor<1x8x3xf32>' must be 'tensor<1x2x3xf32>', got: 'tensor<1x?x3xf32>'}}
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag>
      : tensor<1x?x3xf32> -> tensor<1x8x3xf32>
  return
}

// -----

// A dimension that does not exist.
shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x2x3xf32>, %n: index) {
  // expected-error @below {{dim must be in [0, 3), got: 3}}
  %g = burst.unshard %x dim 3 extent %n by <@cp, zigzag>
      : tensor<1x2x3xf32> -> tensor<1x8x3xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<1x2x3xf32>, %n: index) {
  // expected-error @below {{dim must be in [0, 3), got: -1}}
  %g = burst.unshard %x dim -1 extent %n by <@cp, zigzag>
      : tensor<1x2x3xf32> -> tensor<1x8x3xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<f32>, %n: index) {
  // expected-error @below {{dim must be in [0, 0), got: 0}}
  %g = burst.unshard %x dim 0 extent %n by <@cp, zigzag>
      : tensor<f32> -> tensor<f32>
  return
}

// -----

// An extent that is not that of the result, or none at all.
shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<2xf32>, %n: index) {
  %c = arith.constant 9 : index
  // expected-error @below {{the extent of 'tensor<8xf32>' along dimension 0 is not 9}}
  %g = burst.unshard %x dim 0 extent %c by <@cp, zigzag>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<?xf32>, %n: index) {
  %c = arith.constant -9 : index
  // expected-error @below {{extent must be in [0, 2^40), got: -9}}
  %g = burst.unshard %x dim 0 extent %c by <@cp, zigzag>
      : tensor<?xf32> -> tensor<?xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c1(%x: tensor<?xf32>, %n: index) {
  %c = arith.constant 1099511627776 : index
  // expected-error @below {{extent must be in [0, 2^40), got: 1099511627776}}
  %g = burst.unshard %x dim 0 extent %c by <@cp, zigzag>
      : tensor<?xf32> -> tensor<?xf32>
  return
}

// -----

// Grids.
func.func @unshard_c2(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{names the grid @cp, which does not exist}}
  %g = burst.unshard %x dim 0 extent %n by <@cp, zigzag>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c2(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{names axis 2 of the grid @cp, which has: 1}}
  %g = burst.unshard %x dim 0 extent %n by <@cp[2], zigzag>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

// expected-note @below {{the grid is declared here}}
shard.grid @cp(shape = ?)

func.func @unshard_c2(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{needs a grid whose shape is known, got: @cp with a dynamic axis}}
  %g = burst.unshard %x dim 0 extent %n by <@cp, zigzag>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 0)

func.func @unshard_c2(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{needs 1 to 2^20 ranks, got: grid @cp of 0}}
  %g = burst.unshard %x dim 0 extent %n by <@cp, zigzag>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

// Numbers of which the product does not fit.
shard.grid @cp(shape = 1099511627776)

func.func @unshard_c2(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{needs 1 to 2^20 ranks, got: grid @cp of 1099511627776}}
  %g = burst.unshard %x dim 0 extent %n by <@cp, striped 16777216>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @unshard_c2(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{shards in blocks of 1099511627775 positions to 4 ranks, which together must be fewer than 2^40}}
  %g = burst.unshard %x dim 0 extent %n by <@cp, striped 1099511627775>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @syntax(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{integer constant out of range for attribute}}
  %g = burst.unshard %x dim 99999999999999999999 extent %n by <@cp, zigzag>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @syntax(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{unknown order 'spiral', known: contiguous, zigzag, striped}}
  %g = burst.unshard %x dim 0 extent %n by <@cp, spiral>
      : tensor<2xf32> -> tensor<8xf32>
  return
}

// -----

// burst.shard has the same constraints.
shard.grid @cp(shape = 4)

func.func @shard_c1(%x: tensor<8xf32>) {
  // expected-error @below {{the shard of 'tensor<8xf32>' must be 'tensor<2xf32>', got: 'tensor<4xf32>'}}
  %l = burst.shard %x dim 0 by <@cp, zigzag> : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @shard_c1(%x: tensor<8xf32>) {
  // expected-error @below {{the shard of 'tensor<8xf32>' must be 'tensor<2xf32>', got: 'tensor<2xi32>'}}
  %l = burst.shard %x dim 0 by <@cp, zigzag> : tensor<8xf32> -> tensor<2xi32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @shard_c1(%x: tensor<8xf32>) {
  // expected-error @below {{dim must be in [0, 1), got: 1}}
  %l = burst.shard %x dim 1 by <@cp, zigzag> : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @shard_c2(%x: tensor<8xf32>) {
  // expected-error @below {{names the grid @nope, which does not exist}}
  %l = burst.shard %x dim 0 by <@nope, zigzag> : tensor<8xf32> -> tensor<2xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @generic(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{requires attribute 'dim'}}
  %g = "burst.unshard"(%x, %n) : (tensor<2xf32>, index) -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @generic(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{requires attribute 'sequence'}}
  %g = "burst.unshard"(%x, %n) <{dim = 0 : i64}> : (tensor<2xf32>, index) -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @generic(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{attribute 'dim' failed to satisfy constraint: 64-bit signless integer attribute}}
  %g = "burst.unshard"(%x, %n) <{dim = 0 : i32, sequence = #burst.sequence<@cp, zigzag>}> : (tensor<2xf32>, index) -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @generic(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{Invalid attribute `sequence` in property conversion: @cp}}
  %g = "burst.unshard"(%x, %n) <{dim = 0 : i64, sequence = @cp}> : (tensor<2xf32>, index) -> tensor<8xf32>
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @generic(%x: tensor<2xf32>, %n: index) {
  // expected-error @below {{requires attribute 'dim'}}
  %g = "burst.shard"(%x) <{sequence = #burst.sequence<@cp, zigzag>}> : (tensor<2xf32>) -> tensor<8xf32>
  return
}
