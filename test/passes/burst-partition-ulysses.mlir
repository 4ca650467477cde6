// RUN: burst-opt %s --burst-partition --split-input-file --verify-diagnostics | FileCheck %s

// Arguments come in all-to-alls that are under way together; between these and
// those of the results there is an attention of fewer ranks and heads.

shard.grid @mesh(shape = 3x2)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x24x4x16xf32>
!l = tensor<1x8x48xf32>

// CHECK-LABEL: func @usp
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<1x8x8x16xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 6>, dim 1 extent 48>}
// CHECK-SAME: %[[K:[^ ]+]]: tensor<1x4x4x16xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 6>, dim 1 extent 24>}
// CHECK-SAME: -> (tensor<1x8x8x16xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 6>, dim 1 extent 48>}
// CHECK: %[[TQ:.*]] = ring.start %[[Q]] dims [1] of <zigzag over 6>[%[[R:.*]]] extent %{{.*}} all_to_all heads over 2 channel <@mesh[1], 2>
// CHECK: %[[TK:.*]] = ring.start %[[K]] dims [1] of <zigzag over 6>[%[[R]]] extent %{{.*}} all_to_all heads over 2 channel <@mesh[1], 2>
// CHECK: %[[LQ:.*]] = ring.wait %[[TQ]] : !ring.token<tensor<1x16x4x16xf32>>
// CHECK: %[[GQ:.*]] = burst.unshard %[[LQ]] dim 1 extent %{{.*}} by <@mesh[0], zigzag> : tensor<1x16x4x16xf32> -> tensor<1x48x4x16xf32>
// CHECK: %[[LK:.*]] = ring.wait %[[TK]] : !ring.token<tensor<1x8x2x16xf32>>
// CHECK: %[[GK:.*]] = burst.unshard %[[LK]]
// CHECK: %[[O:.*]], %{{.*}} = burst.attention %[[GQ]], %[[GK]], %[[GK]] mask causal sequence <@mesh[0], zigzag> heads <@mesh[1]> strategy <ring_q> :
// CHECK: %[[LO:.*]] = burst.shard %[[O]] dim 1 by <@mesh[0], zigzag>
// CHECK: %[[TO:.*]] = ring.start %[[LO]] dims [1] of <zigzag over 6>[%[[R]]] extent %{{.*}} all_to_all sequence over 2 channel <@mesh[1], 2>
// CHECK: %[[OUT:.*]] = ring.wait %[[TO]]
// CHECK: return %[[OUT]]
func.func @usp(%q: !q, %k: !k) -> !q {
  %o, %lse = burst.attention %q, %k, %k mask causal sequence <@mesh, zigzag>
      strategy <ulysses on [1], ring_q> : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// -----

// With nothing left, every rank has all of the sequence; heads that are sharded
// already are sharded further.

shard.grid @mesh(shape = 2x4)
!q = tensor<1x48x8x16xf32>
!l = tensor<1x8x48xf32>

// CHECK-LABEL: func @alone
// CHECK-SAME: ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8 axes [0]>]
// CHECK: ring.start {{.*}} of <striped 4 over 4>[{{.*}} all_to_all heads over 4 channel <@mesh[1], 2>
// CHECK-SAME: (tensor<1x12x4x16xf32>) -> !ring.token<tensor<1x48x1x16xf32>>
// CHECK: burst.attention {{.*}} sequence <@mesh[], contiguous> heads <@mesh[0, 1]> :
func.func @alone(%q: !q) -> !l {
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh[1], striped 4> heads <@mesh[0]>
      strategy <ulysses> : (!q, !q, !q) -> (!q, !l)
  return %lse : !l
}

// -----

// Blocks of neighbours are one block.

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x8x16xf32>
!l = tensor<1x8x48xf32>

// CHECK-LABEL: func @stripes
// CHECK: sequence <@mesh[0], striped 8> heads <@mesh[1]>
func.func @stripes(%q: !q) -> !l {
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, striped 4>
      strategy <ulysses on [1]> : (!q, !q, !q) -> (!q, !l)
  return %lse : !l
}

// -----

// Two ranks share a key head: gradients come back in parts, and are added.
shard.grid @mesh(shape = 8)
!q = tensor<1x48x8x16xbf16>
!k = tensor<1x48x4x16xbf16>
!l = tensor<1x8x48xf32>
// CHECK-LABEL: func @shared
// CHECK: ring.start {{.*}} all_to_all heads over 8 {{.*}}: (tensor<1x6x4x16xbf16>) -> !ring.token<tensor<1x48x1x16xbf16>>
// CHECK: burst.attention_backward {{.*}} -> (tensor<1x48x1x16xbf16>, tensor<1x48x1x16xf32>, tensor<1x48x1x16xf32>)
// CHECK: all_to_all sequence over 8 {{.*}}tensor<1x48x1x16xf32>, tensor<1x48x1x16xf32>) -> !ring.token<tensor<1x6x8x16xf32>, tensor<1x6x8x16xf32>>
// CHECK-COUNT-2: ring.round %{{.*}} : tensor<1x6x8x16xf32> -> tensor<1x6x4x16xbf16>
func.func @shared(%q: !q, %k: !k, %o: !q, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %k, %o, %l, %o
      sequence <@mesh, striped> strategy <ulysses>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

// Two ranks share a key head, and four and three of its query heads.
shard.grid @mesh(shape = 8)
!q = tensor<1x48x28x16xf32>
!k = tensor<1x48x4x16xf32>
!l = tensor<1x28x48xf32>

// CHECK-LABEL: func @uneven
// CHECK: ring.start %arg0, {{.*}} all_to_all heads over 8 groups 4 {{.*}} -> !ring.token<tensor<1x48x4x16xf32>,
// CHECK: ring.start %arg1 {{.*}} all_to_all heads over 8 groups 4 {{.*}} -> !ring.token<tensor<1x48x1x16xf32>>
// CHECK-DAG: ring.start {{.*}} all_to_all sequence over 8 groups 4 {{.*}} -> !ring.token<tensor<1x6x28x16xf32>>
// CHECK-DAG: ring.start {{.*}} all_to_all sequence over 8 groups 4 {{.*}} -> !ring.token<tensor<1x6x8x16xf32>, tensor<1x6x8x16xf32>>
// CHECK-COUNT-2: ring.round %{{.*}} : tensor<1x6x8x16xf32> -> tensor<1x6x4x16xf32>
func.func @uneven(%q: !q, %k: !k, %o: !q, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %k, %o, %l, %o
      sequence <@mesh, contiguous> strategy <ulysses>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

// Of seven ranks three share each of two key heads, and one is left.
shard.grid @mesh(shape = 7)
!q = tensor<1x49x8x16xf32>
!k = tensor<1x49x2x16xf32>
!l = tensor<1x8x49xf32>

// CHECK-LABEL: func @left
// CHECK: ring.start %arg0, {{.*}} all_to_all heads over 7 groups 2 {{.*}} -> !ring.token<tensor<1x49x2x16xf32>,
// CHECK: ring.start %arg1 {{.*}} all_to_all heads over 7 groups 2 {{.*}} -> !ring.token<tensor<1x49x1x16xf32>>
// CHECK: ring.start {{.*}} all_to_all sequence over 7 groups 2 {{.*}} -> !ring.token<tensor<1x7x6x16xf32>, tensor<1x7x6x16xf32>>
// CHECK-COUNT-2: ring.round %{{.*}} : tensor<1x7x6x16xf32> -> tensor<1x7x2x16xf32>
func.func @left(%q: !q, %k: !k, %o: !q, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %k, %o, %l, %o
      sequence <@mesh, contiguous> strategy <ulysses>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

// Ranks that the clause gives heads exchange theirs, unevenly, too.
shard.grid @mesh(shape = 2x3)
!q = tensor<1x48x8x16xf32>

// CHECK-LABEL: func @parts
// CHECK: ring.start {{.*}} all_to_all heads over 3 channel <@mesh[1], 2> : (tensor<1x16x4x16xf32>) -> !ring.token<tensor<1x48x2x16xf32>>
func.func @parts(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh[1], zigzag> heads <@mesh[0]> strategy <ulysses>
      : (!q, !q, !q) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

// A tensor has its heads in one way, wherever it attends.
shard.grid @mesh(shape = 8)
!q = tensor<1x48x12x16xf32>
!k = tensor<1x48x4x16xf32>
!m = tensor<1x48x2x16xf32>
!l = tensor<1x12x48xf32>

func.func @refused(%q: !q, %k: !k, %m: !m) -> (!q, !q) {
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh, zigzag> strategy <ulysses>
      : (!q, !k, !k) -> (!q, !l)
  // expected-error @below {{shards heads over 8 ranks, and a tensor of which ranks have heads in 4 groups for one attention has them in 2 for another one; pin another strategy than ulysses, or put each into a function of its own}}
  %p, %lsf = burst.attention %q, %m, %m sequence <@mesh, zigzag> strategy <ulysses>
      : (!q, !m, !m) -> (!q, !l)
  return %o, %p : !q, !q
}

// -----

shard.grid @mesh(shape = 6)
!q = tensor<1x48x3x16xf32>

func.func @refused(%q: !q) -> !q {
  // expected-error @below {{pins the strategy ulysses, which shards 3 query heads over 6 ranks, of which 3 would have none; shard the sequence over two axes of the grid, the last one of 3 ranks, and pin ulysses on that and a ring on the other}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag> strategy <ulysses>
      : (!q, !q, !q) -> (!q, tensor<1x3x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 3)
!q = tensor<1x48x1x16xf32>

func.func @refused(%q: !q) -> !q {
  // expected-error @below {{pins the strategy ulysses, which shards 1 query heads over 3 ranks, of which 2 would have none; pin another strategy}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag> strategy <ulysses>
      : (!q, !q, !q) -> (!q, tensor<1x1x48xf32>)
  return %o : !q
}

// -----

// A tensor has one number of heads on a rank, wherever it attends.
shard.grid @mesh(shape = 3)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>
!l = tensor<1x8x48xf32>

func.func @refused(%q: !q, %k: !k) -> (!q, !q) {
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag> strategy <ulysses>
      : (!q, !q, !q) -> (!q, !l)
  // expected-error @below {{shards heads over 3 ranks, and a tensor of which a rank has 3 heads for one attention has 4 for another one; pin another strategy than ulysses, or put each into a function of its own}}
  %p, %lsf = burst.attention %q, %k, %k sequence <@mesh, zigzag> strategy <ulysses>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %p : !q, !q
}

// -----

shard.grid @mesh(shape = 3)
!q = tensor<1x48x8x16xf32>

func.func @refused(%q: !q) -> !q {
  // expected-error @below {{pins the strategy ulysses in 2 chunks, which do not divide the 3 query heads that a rank has in between; no number divides both 3 and 8: pin ulysses without chunks}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

// Room for four, of which a rank has three.
shard.grid @mesh(shape = 2)
!q = tensor<1x48x7x16xf32>

func.func @refused(%q: !q) -> !q {
  // expected-error @below {{pins the strategy ulysses in 2 chunks, which do not divide the 7 query heads; no number divides both 4 and 7: pin ulysses without chunks}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q) -> (!q, tensor<1x7x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>

func.func @refused(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ulysses, which works on the last axes of the sequence, of [0, 1], got: [0]}}
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh, zigzag> strategy <ulysses on [0], ring_kv>
      : (!q, !k, !k) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>

func.func @refused(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ulysses on [1], on axis 1, over which the sequence is not sharded}}
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh[0], zigzag> heads <@mesh[1]> strategy <ulysses on [1]>
      : (!q, !k, !k) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>

// What a rank of axis 1 has of the heads is cut along axis 0, wherever that is.
// CHECK-LABEL: func @behind
// CHECK-SAME: ring.splits = [#ring.shard<#ring.layout<contiguous over 2>, dim 2 extent 8 axes [1]>]
// CHECK: ring.start {{.*}} all_to_all heads over 2 channel <@mesh[0], 2>
// CHECK: burst.attention {{.*}} sequence <@mesh[], contiguous> heads <@mesh[1, 0]> :
func.func @behind(%q: !q, %k: !k) -> !q {
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh[0], zigzag> heads <@mesh[1]> strategy <ulysses>
      : (!q, !k, !k) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x8x16xf32>

func.func @refused(%q: !q) -> !q {
  // expected-error @below {{shards heads over #burst.axes<@mesh[1, 0]>, of which each axis follows the one before it in the grid, got: 0 behind 1}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh[], contiguous> heads <@mesh[1, 0]>
      : (!q, !q, !q) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>

func.func @refused(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ring_kv on [0], and nothing on axis 1 of the sequence}}
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh, zigzag> strategy <ring_kv on [0]>
      : (!q, !k, !k) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x8x16xf32>
!k = tensor<1x48x4x16xf32>

func.func @refused(%q: !q, %k: !k) -> !q {
  // expected-error @below {{pins the strategy ring_q on [1], ring_kv on [0], of which several compute; pin one, and ulysses beside it}}
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh, zigzag> strategy <ring_q on [1], ring_kv on [0]>
      : (!q, !k, !k) -> (!q, tensor<1x8x48xf32>)
  return %o : !q
}

// -----

shard.grid @mesh(shape = 4)
!q = tensor<1x48x8x16xf32>
!l = tensor<1x8x48xf32>

func.func @two(%q: !q) -> (!q, !q) {
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag>
      strategy <ulysses> : (!q, !q, !q) -> (!q, !l)
  // expected-error @below {{exchanges its sequence for heads over other axes than another attention of this function, whose tensors it may share; pin the same of strategy <ulysses> for both}}
  %o1, %lse1 = burst.attention %q, %q, %q sequence <@mesh, zigzag>
      strategy <ring_kv> : (!q, !q, !q) -> (!q, !l)
  return %o, %o1 : !q, !q
}

// -----

// A result that is returned twice is exchanged once.

shard.grid @cp(shape = 2)
!q = tensor<1x48x8x16xf32>

// CHECK-LABEL: func @twice
// CHECK: ring.start %{{[^,]*}} dims [1] {{.*}} all_to_all sequence
// CHECK: %[[O:.*]] = ring.wait
// CHECK: return %[[O]], %[[O]]
func.func @twice(%q: !q) -> (!q, !q) {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      strategy <ulysses> : (!q, !q, !q) -> (!q, tensor<1x8x48xf32>)
  return %o, %o : !q, !q
}

// -----

// Fewer key heads than the ranks of the clause, whatever exchanges the others.
shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x4x16xf32>
!k = tensor<1x48x1x16xf32>

func.func @refused(%q: !q, %k: !k) -> !q {
  // expected-error @below {{shards 1 key heads over 2 ranks of #burst.axes<@mesh[0]>, which does not divide them; give each rank a key head by repeating each 2 times}}
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh[1], zigzag> heads <@mesh[0]> strategy <ulysses in 2 chunks>
      : (!q, !k, !k) -> (!q, tensor<1x4x48xf32>)
  return %o : !q
}

// -----

// The grid has the axis already.
shard.grid @mesh(shape = 2x3)
!q = tensor<1x48x3x16xf32>

func.func @refused(%q: !q) -> !q {
  // expected-error @below {{pins the strategy ulysses, which shards 3 query heads over 6 ranks, of which 3 would have none; pin ulysses on [1] and a ring on the others}}
  %o, %lse = burst.attention %q, %q, %q sequence <@mesh, zigzag> strategy <ulysses>
      : (!q, !q, !q) -> (!q, tensor<1x3x48xf32>)
  return %o : !q
}
