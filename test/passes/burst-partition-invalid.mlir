// RUN: burst-opt %s --burst-partition --allow-unregistered-dialect -verify-diagnostics -split-input-file

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @sequence(%q: !q) -> !q {
  // expected-error @below {{has no sequence, so it cannot be partitioned; give it one, as in `sequence <@grid, zigzag>`}}
  %o, %lse = burst.attention %q, %q, %q : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @sequences(%q: !q) -> (!q, !q) {
  %0:2 = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{has the sequence #burst.sequence<@cp, striped>, but another attention of this function has #burst.sequence<@cp, zigzag>}}
  %1:2 = burst.attention %q, %q, %q sequence <@cp, striped> : (!q, !q, !q) -> (!q, !lse)
  return %0#0, %1#0 : !q, !q
}

// -----

// Two grids in one function.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

shard.grid @other(shape = 4)

func.func @grids(%q: !q) -> (!q, !q) {
  %0:2 = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{has the sequence #burst.sequence<@other, zigzag>, but another attention of this function has #burst.sequence<@cp, zigzag>}}
  %1:2 = burst.attention %q, %q, %q sequence <@other, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %0#0, %1#0 : !q, !q
}

// -----

// An op in front of the attention.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @before(%q: !q) -> !q {
  // expected-error @below {{stands between the boundary of @before and its attention, and has no sharding rule; do it before or behind the call}}
  %x = arith.addf %q, %q : !q
  %o, %lse = burst.attention %x, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

// One behind it.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @behind(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{stands between the boundary of @behind and its attention}}
  %x = arith.addf %o, %o : !q
  return %x : !q
}

// -----

// Control flow.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @inside(%q: !q, %c: i1) {
  // expected-error @below {{'scf.if' op stands between the boundary of @inside and its attention}}
  scf.if %c {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  }
  return
}

// -----

// One attention behind another.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @chain(%q: !q) -> !q {
  // expected-note @below {{it is made here}}
  %0:2 = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{must take its tensors from the function's arguments, got the result of another op: what stands in between has no sharding rule}}
  %1:2 = burst.attention %0#0, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %1#0 : !q
}

// -----

// A constant as a tensor of the attention.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @constant(%q: !q) -> !q {
  // expected-note @below {{it is made here}}
  %k = arith.constant dense<0.0> : !q
  // expected-error @below {{must take its tensors from the function's arguments}}
  %o, %lse = burst.attention %q, %k, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

// An argument that is sharded and captured.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @captured(%q: !q) -> !q {
  // expected-error @below {{cannot shard a tensor that a region captures: captured tables are the same on every rank}}
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %t = %q : !q) {
        burst.yield %s : f32
      } sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

// The same, by another attention.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @captured(%q: !q, %k: !q) -> (!q, !q) {
  // expected-error @below {{cannot shard a tensor that a region captures: captured tables are the same on every rank}}
  %0:2 = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  %1:2 = burst.attention %k, %k, %k
      mask(%b, %h, %i, %j, %sq, %sk, %t = %q : !q) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      } sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %0#0, %1#0 : !q, !q
}

// -----

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @captured(%q: !q) -> (!q, !q) {
  %0:2 = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{captures the result of an attention, which is sharded; captured tables are the same on every rank}}
  %1:2 = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %t = %0#1 : !lse) {
        burst.yield %s : f32
      } sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %0#0, %1#0 : !q, !q
}

// -----

// A result that is none of an attention.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @result(%q: !q) -> (!q, !q) {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{returns a value that is no result of an attention, which has no sharding}}
  return %o, %q : !q, !q
}

// -----

// A function that another one calls.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @callee(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

func.func @caller(%q: !q) -> !q {
  // expected-error @below {{calls a function with sharded attention; only the outermost function can be partitioned}}
  %o = call @callee(%q) : (!q) -> !q
  return %o : !q
}

// -----

// Several blocks.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

// expected-error @below {{has attention and several blocks; it must have one to be partitioned}}
func.func @blocks(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  "cf.br"() [^bb1] : () -> ()
^bb1:
  return %o : !q
}

// -----

// Another terminator.
shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @terminator(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{'burst.yield' op stands between the boundary of @terminator and its attention}}
  burst.yield %o : !q
}

// -----

shard.grid @mesh(shape = 4x2)

func.func @heads(%q: tensor<1x64x8x64xf32>, %k: tensor<1x64x2x64xf32>) -> tensor<1x8x64xf32> {
  // expected-error @below {{shards 2 key heads over 4 ranks of #burst.axes<@mesh[0]>, which does not divide them; give each rank a key head by repeating each 2 times}}
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh[1], contiguous> heads <@mesh[0]>
      : (tensor<1x64x8x64xf32>, tensor<1x64x2x64xf32>, tensor<1x64x2x64xf32>)
      -> (tensor<1x64x8x64xf32>, tensor<1x8x64xf32>)
  return %lse : tensor<1x8x64xf32>
}

// -----

shard.grid @mesh(shape = 4x2)

func.func @batch(%q: tensor<6x64x8x64xf32>) -> tensor<6x8x64xf32> {
  // expected-error @below {{shards 6 batches over 4 ranks of #burst.axes<@mesh[0]>, which does not divide them}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh[1], contiguous> batch <@mesh[0]>
      : (tensor<6x64x8x64xf32>, tensor<6x64x8x64xf32>, tensor<6x64x8x64xf32>)
      -> (tensor<6x64x8x64xf32>, tensor<6x8x64xf32>)
  return %lse : tensor<6x8x64xf32>
}

// -----

shard.grid @mesh(shape = 2x2)

func.func @two(%q: tensor<2x64x8x64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x64xf32>) {
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh[1], contiguous> batch <@mesh[0]>
      : (tensor<2x64x8x64xf32>, tensor<2x64x8x64xf32>, tensor<2x64x8x64xf32>)
      -> (tensor<2x64x8x64xf32>, tensor<2x8x64xf32>)
  // expected-error @below {{shards its heads and batch otherwise than another attention of this function}}
  %o1, %lse1 = burst.attention %q, %q, %q sequence <@mesh[1], contiguous> heads <@mesh[0]>
      : (tensor<2x64x8x64xf32>, tensor<2x64x8x64xf32>, tensor<2x64x8x64xf32>)
      -> (tensor<2x64x8x64xf32>, tensor<2x8x64xf32>)
  return %lse, %lse1 : tensor<2x8x64xf32>, tensor<2x8x64xf32>
}

// -----

// Chunks of heads.
shard.grid @g(shape = 4)

!q = tensor<1x16x8x4xf32>
!lse = tensor<1x8x16xf32>

func.func @chunks_of_heads(%q: !q) -> !q {
  // expected-error @below {{pins the strategy ulysses in 4 chunks, which do not divide the 2 query heads that a rank has in between; pin ulysses in 2 chunks, or without chunks}}
  %o, %lse = burst.attention %q, %q, %q sequence <@g, zigzag> strategy <ulysses in 4 chunks>
      : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

shard.grid @g(shape = 4)

!q = tensor<1x16x32x4xf32>
!k = tensor<1x16x16x4xf32>
!lse = tensor<1x32x16xf32>

func.func @chunks_of_groups(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ulysses in 4 chunks, which do not divide the 2 query heads of a key head; pin ulysses in 2 chunks, or without chunks}}
  %o, %lse = burst.attention %q, %k, %k sequence <@g, zigzag> strategy <ulysses in 4 chunks>
      : (!q, !k, !k) -> (!q, !lse)
  return %o : !q
}

// -----

shard.grid @g(shape = 4)

!q = tensor<1x16x260x4xf32>
!k = tensor<1x16x260x4xf32>
!lse = tensor<1x260x16xf32>

func.func @many_chunks(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ulysses in 65 chunks, which are more than 64}}
  %o, %lse = burst.attention %q, %k, %k sequence <@g, zigzag> strategy <ulysses in 65 chunks>
      : (!q, !k, !k) -> (!q, !lse)
  return %o : !q
}

// -----

shard.grid @g(shape = 2x2)

!q = tensor<1x16x8x4xf32>
!k = tensor<1x16x8x4xf32>
!lse = tensor<1x8x16xf32>

func.func @chunks_around_a_ring(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ulysses on [1] in 2 chunks, ring_kv on [0], which need the whole sequence on each rank in between; pin ulysses on all axes of the sequence, or without chunks}}
  %o, %lse = burst.attention %q, %k, %k sequence <@g, zigzag> strategy <ulysses on [1] in 2 chunks, ring_kv on [0]>
      : (!q, !k, !k) -> (!q, !lse)
  return %o : !q
}

// -----

shard.grid @g(shape = 4)

!q = tensor<1x16x8x4xf32>
!k = tensor<1x16x8x4xf32>
!lse = tensor<1x8x16xf32>

func.func @chunks_of_a_ring(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ring_kv in 2 chunks, and heads go in chunks by ulysses alone}}
  %o, %lse = burst.attention %q, %k, %k sequence <@g, zigzag> strategy <ring_kv in 2 chunks>
      : (!q, !k, !k) -> (!q, !lse)
  return %o : !q
}

// -----

shard.grid @g(shape = 2)

!q = tensor<1x16x8x4xf32>
!k = tensor<1x16x8x4xf32>
!lse = tensor<1x8x16xf32>

func.func @different_chunks(%q: !q) -> (!q, !q) {
  %0:2 = burst.attention %q, %q, %q sequence <@g, zigzag> strategy <ulysses>
      : (!q, !q, !q) -> (!q, !lse)
  // expected-error @below {{exchanges heads in 2 chunks, and another attention of this function in 1; pin the same for both}}
  %1:2 = burst.attention %q, %q, %q sequence <@g, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q) -> (!q, !lse)
  return %0#0, %1#0 : !q, !q
}

// -----

shard.grid @g(shape = 2)

!q = tensor<1x16x8x4xf32>
!k = tensor<1x16x2x4xf32>
!lse = tensor<1x8x16xf32>

func.func @groups_and_none(%q: !q, %k: !k) -> (!q, !q) {
  // expected-error @below {{exchanges heads in chunks, and in one attention of its function a key head has one query head, in another one several; pin ulysses without chunks, or put them into functions of their own}}
  %0:2 = burst.attention %q, %q, %q sequence <@g, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q) -> (!q, !lse)
  %1:2 = burst.attention %q, %k, %k sequence <@g, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !k, !k) -> (!q, !lse)
  return %0#0, %1#0 : !q, !q
}

// -----

shard.grid @g(shape = 2)

!q = tensor<1x16x16x4xf32>
!k = tensor<1x16x8x4xf32>
!m = tensor<1x16x4x4xf32>

func.func @keys_and_queries(%q: !q, %k: !k, %m: !m) -> (!q, !k) {
  // expected-error @below {{exchanges heads in chunks, and a tensor is keys or values of one attention of its function, and queries or a gradient by them of another one; pin ulysses without chunks, or put them into functions of their own}}
  %0:2 = burst.attention %q, %k, %k sequence <@g, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !k, !k) -> (!q, tensor<1x16x16xf32>)
  %1:2 = burst.attention %k, %m, %m sequence <@g, zigzag> strategy <ulysses in 2 chunks>
      : (!k, !m, !m) -> (!k, tensor<1x8x16xf32>)
  return %0#0, %1#0 : !q, !k
}
