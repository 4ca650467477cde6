// RUN: burst-opt %s -verify-diagnostics -split-input-file

// ring.grid
// expected-error @below {{'ring.grid' must name a grid of 1 to 2^20 ranks, got: @cp}}
func.func private @program() attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 1024x2048)

// expected-error @below {{'ring.grid' must name a grid of 1 to 2^20 ranks, got: @cp}}
func.func private @program() attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = ?)

// expected-error @below {{'ring.grid' must name a grid of 1 to 2^20 ranks, got: @cp}}
func.func private @program() attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 0)

// expected-error @below {{'ring.grid' must name a grid of 1 to 2^20 ranks, got: @cp}}
func.func private @program() attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 1048577)

// expected-error @below {{'ring.grid' must name a grid of 1 to 2^20 ranks, got: @cp}}
func.func private @program() attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.grid' must name a grid of 1 to 2^20 ranks, got: @program}}
func.func private @program() attributes {ring.grid = @program}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.grid' must name the grid of a function, got: 3 : i64}}
func.func private @program() attributes {ring.grid = 3}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.grid' must name the grid of a function, got: @a::@b}}
func.func private @program() attributes {ring.grid = @a::@b}

// -----

// expected-error @below {{'ring.grid' must name the grid of a function, got: @cp}}
module attributes {ring.grid = @cp} {
  shard.grid @cp(shape = 4)
}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{unknown attribute: "ring.shard"}}
func.func private @program() attributes {ring.shard = 3}

// -----

// ring.shard
shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' must be a #ring.shard, got: unit}}
func.func private @program(tensor<4xf32> {ring.shard}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' must be a #ring.shard, got: #ring.layout<zigzag over 4>}}
func.func private @program(tensor<4xf32> {ring.shard = #ring.layout<zigzag over 4>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' names dimension 1, got: 'tensor<4xf32>'}}
func.func private @program(tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 16>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' names dimension 0, got: 'index'}}
func.func private @program(index {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 16>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' names dimension 1, got: 'memref<4xf32>'}}
func.func private @program(memref<4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 16>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' names dimension 0, got: 'tensor<*xf32>'}}
func.func private @program(tensor<*xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 16>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' needs a function with 'ring.grid'}}
func.func private @program(tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 16>})

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' must layout to the 4 ranks of the grid, got: #ring.shard<#ring.layout<zigzag over 2>, dim 0 extent 8>}}
func.func private @program(tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 2>, dim 0 extent 8>}) attributes {ring.grid = @cp}

// -----

// Sizes that not every rank holds.
shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' does not give each rank a 'tensor<5xf32>', got: #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 16>}}
func.func private @program(tensor<5xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 16>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' does not give each rank a 'tensor<4xf32>', got: #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 15>}}
func.func private @program(tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 15>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' does not give each rank a 'tensor<4xf32>', got: #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}}
func.func private @program(tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}) attributes {ring.grid = @cp}

// -----

// Of results.
shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' names dimension 1, got: 'tensor<4xf32>'}}
func.func private @program() -> (tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 16>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.shard' does not give each rank a 'tensor<5xf32>'}}
func.func private @program() -> (tensor<5xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent 16>}) attributes {ring.grid = @cp}

// -----

// ring.extent
shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must be array<i64: argument, dimension, ...> on an index argument, got: array<i64: 0, 0> on 'i64'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, i64 {ring.extent = array<i64: 0, 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must be array<i64: argument, dimension, ...> on an index argument, got: array<i32: 0, 0> on 'index'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i32: 0, 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must be array<i64: argument, dimension, ...> on an index argument, got: array<i64: 0> on 'index'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must be array<i64: argument, dimension, ...> on an index argument, got: array<i64> on 'index'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must be array<i64: argument, dimension, ...> on an index argument, got: array<i64: 0, 0, 1> on 'index'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 0, 0, 1>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must be array<i64: argument, dimension, ...> on an index argument, got: 0 : i64 on 'index'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = 0}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' names argument 2 of 2}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 2, 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' names argument -1 of 2}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: -1, 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' names argument 9 of 2}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 0, 0, 9, 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' names dimension 1 of 'tensor<?xf32>'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 0, 1>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' names dimension -1 of 'tensor<?xf32>'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 0, -1>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' names dimension 0 of 'index'}}
func.func private @program(tensor<?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 1, 0>}) attributes {ring.grid = @cp}

// -----

// The dimension is that of a shard.
shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must name dimensions that 'ring.shard' shards, got: array<i64: 0, 0>}}
func.func private @program(tensor<?xf32>, index {ring.extent = array<i64: 0, 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{'ring.extent' must name dimensions that 'ring.shard' shards, got: array<i64: 0, 1>}}
func.func private @program(tensor<?x?xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 0 extent ?>}, index {ring.extent = array<i64: 0, 1>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{unknown attribute of a result: "ring.extent"}}
func.func private @program() -> (index {ring.extent = array<i64: 0, 0>}) attributes {ring.grid = @cp}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{unknown attribute of an argument: "ring.foo"}}
func.func private @program(index {ring.foo}) attributes {ring.grid = @cp}

// -----

// ring.max_slices
// expected-error @below {{'ring.max_slices' must give a program with 'ring.grid' an array of bounds by channel, each at least 1, got: array<i64: 2>}}
func.func private @no_program() attributes {ring.max_slices = array<i64: 2>}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{each at least 1, got: 3 : i64}}
func.func private @no_array() attributes {ring.grid = @cp, ring.max_slices = 3}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{each at least 1, got: array<i64>}}
func.func private @nothing() attributes {ring.grid = @cp, ring.max_slices = array<i64>}

// -----

shard.grid @cp(shape = 4)

// expected-error @below {{each at least 1, got: array<i64: 2, 0>}}
func.func private @none() attributes {ring.grid = @cp, ring.max_slices = array<i64: 2, 0>}

// -----

// ring.splits
shard.grid @mesh(shape = 2x4)

// expected-error @below {{'ring.splits' is an array of #ring.shard beside a 'ring.shard', got: []}}
func.func private @program(tensor<4x4x4xf32> {ring.splits = []}) attributes {ring.grid = @mesh}

// -----

shard.grid @mesh(shape = 2x4)

// expected-error @below {{'ring.splits' must be a #ring.shard, got: 3}}
func.func private @program(tensor<4x4x4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 8>, dim 2 extent 32>, ring.splits = [3]}) attributes {ring.grid = @mesh}

// -----

shard.grid @mesh(shape = 2x4)

// expected-error @below {{'ring.splits' shards batch and heads, each once, into equal contiguous parts, got: #ring.shard<#ring.layout<contiguous over 2>, dim 3 extent 8 axes [0]>}}
func.func private @program(tensor<4x4x4x4xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 16 axes [1]>, ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 3 extent 8 axes [0]>]}) attributes {ring.grid = @mesh}

// -----

shard.grid @mesh(shape = 2x4)

// expected-error @below {{two dimensions are sharded over axis 1 of 'ring.grid'}}
func.func private @program(tensor<4x4x4x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 16 axes [1]>, ring.splits = [#ring.shard<#ring.layout<contiguous over 4>, dim 2 extent 16 axes [1]>]}) attributes {ring.grid = @mesh}

// -----

shard.grid @mesh(shape = 2x4)

// expected-error @below {{nothing is sharded over axis 0 of 'ring.grid'}}
func.func private @program(tensor<4x4x4x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 16 axes [1]>}) attributes {ring.grid = @mesh}

// -----

shard.grid @mesh(shape = 2x4)

// expected-error @below {{all tensors must be sharded over the same axes of 'ring.grid'}}
func.func private @program(tensor<4x4x4x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 16 axes [1]>, ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8 axes [0]>]},
    tensor<4x4x4x4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 16 axes [1]>, ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 0 extent 8 axes [0]>]}) attributes {ring.grid = @mesh}

// -----

shard.grid @mesh(shape = 2x4)

// expected-error @below {{'ring.shard' names axis 2 of 2}}
func.func private @program(tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 4>, dim 0 extent 16 axes [2]>}) attributes {ring.grid = @mesh}
