// RUN: burst-opt %s --burst-verify-partitioned -verify-diagnostics -split-input-file

shard.grid @cp(shape = 4)

func.func @partitioned(%x: tensor<1x2x1x4xf32>, %n: index) -> tensor<1x2x1x4xf32>
    attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> tensor<1x8x1x4xf32>
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %l = burst.shard %o dim 1 by <@cp, zigzag> : tensor<1x8x1x4xf32> -> tensor<1x2x1x4xf32>
  return %l : tensor<1x2x1x4xf32>
}

// -----

shard.grid @cp(shape = 4)

func.func @global(%q: tensor<1x8x1x4xf32>) {
  // expected-error @below {{stands in a function without 'ring.grid' behind burst-partition}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @operand(%q: tensor<1x8x1x4xf32>) attributes {ring.grid = @cp} {
  // expected-error @below {{takes a tensor that is no burst.unshard}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// -----

shard.grid @cp(shape = 4)

func.func @result(%x: tensor<1x2x1x4xf32>, %n: index) -> tensor<1x8x1x4xf32>
    attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> tensor<1x8x1x4xf32>
  // expected-error @below {{has a result that is used by another op than burst.shard}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}
