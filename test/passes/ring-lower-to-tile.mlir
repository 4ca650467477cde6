// RUN: split-file %s %t
// DEFINE: %{options} = rows=8 columns=16 strip=4
// DEFINE: %{lower} = burst-opt --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="%{options}" --canonicalize --cse
// RUN: %{lower} %t/full.mlir | FileCheck %t/full.mlir
// RUN: %{lower} %t/scored.mlir | FileCheck %t/scored.mlir
// RUN: %{lower} %t/alone.mlir | FileCheck %t/alone.mlir
// RUN: %{lower} %t/stays.mlir | FileCheck %t/stays.mlir
// RUN: %{lower} %t/keys-stay.mlir | FileCheck %t/keys-stay.mlir
// RUN: %{lower} %t/none.mlir | FileCheck %t/none.mlir
// RUN: %{lower} %t/queries.mlir | FileCheck %t/queries.mlir
// RUN: %{lower} %t/pairs.mlir | FileCheck %t/pairs.mlir --check-prefix=APART
// RUN: %{lower} %t/few.mlir | FileCheck %t/few.mlir
// RUN: %{lower} %t/few-short.mlir | FileCheck %t/few-short.mlir
// RUN: %{lower} %t/few-hops.mlir | FileCheck %t/few-hops.mlir
// RUN: %{lower} %t/few-gathered.mlir | FileCheck %t/few-gathered.mlir
// RUN: %{lower} %t/not-few.mlir | FileCheck %t/not-few.mlir
// REDEFINE: %{options} = rows=8 columns=32 strip=4
// RUN: %{lower} %t/masked.mlir | FileCheck %t/masked.mlir
// RUN: %{lower} %t/gradients.mlir | FileCheck %t/gradients.mlir
// Panels of keys may be narrower than those of heads: strips leave out less.
// REDEFINE: %{options} = rows=8 columns=32 strip=4 panel-bytes=32 key-panel-bytes=16
// RUN: %{lower} %t/gradients.mlir | FileCheck %t/gradients.mlir --check-prefix=NARROW
// REDEFINE: %{options} = rows=8 columns=32 strip=4 panel-bytes=64 key-panel-bytes=32
// RUN: %{lower} %t/gradients.mlir | FileCheck %t/gradients.mlir --check-prefix=PADDED
// RUN: not burst-opt %t/full.mlir --ring-lower-to-tile=key-panel-bytes=12 2>&1 | FileCheck %s --check-prefix=UNEVEN
// UNEVEN: tiles need rows and columns, and panels a multiple of 8 bytes, none more than 65536, got: 96, 128, 64, 12
// RUN: not burst-opt %t/full.mlir --ring-lower-to-tile=key-panel-bytes=4611686018427387904 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: none more than 65536, got: 96, 128, 64, 4611686018427387904
// Tiles of one row, of which no dimension tells the other strides.
// REDEFINE: %{options} = rows=1 columns=16 strip=4
// RUN: %{lower} %t/gradients.mlir -o %t/one-row.mlir
// REDEFINE: %{options} = rows=8 columns=16 strip=4 pairs
// RUN: %{lower} %t/pairs.mlir | FileCheck %t/pairs.mlir
// RUN: %{lower} %t/full.mlir | FileCheck %t/full.mlir
// Two rows of a pair are of one strip, so strips of 3 rows become strips of 4.
// REDEFINE: %{options} = rows=7 columns=16 strip=3 pairs
// RUN: %{lower} %t/gradient-pairs.mlir | FileCheck %t/gradient-pairs.mlir
// REDEFINE: %{options} = rows=8 columns=16 strip=4 pairs local-tiling=false
// RUN: %{lower} %t/pairs.mlir | FileCheck %t/pairs.mlir --check-prefix=APART
// RUN: %{lower} %t/gradient-pairs.mlir | FileCheck %t/gradient-pairs.mlir --check-prefix=APART
// RUN: %{lower} %t/masked.mlir | FileCheck %t/masked.mlir --check-prefix=STORED
// RUN: %{lower} %t/backward.mlir | FileCheck %t/backward.mlir
// RUN: not burst-opt %t/full.mlir --burst-to-ring --ring-lower-to-tile 2>&1 | FileCheck %s --check-prefix=TENSORS
// TENSORS: works on tensors; run ring-bufferize first
// RUN: not burst-opt %t/full.mlir --ring-lower-to-tile=strip=0 2>&1 | FileCheck %s --check-prefix=STRIP
// STRIP: strips need rows, got: 0
// RUN: not burst-opt %t/full.mlir --ring-lower-to-tile=rows=0 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: tiles need rows and columns, and panels a multiple of 8 bytes, none more than 65536, got: 0, 128, 64

// A kernel of each kind is made once, though two attends launch it. What is full
// does without positions, what is partial (fewer keys than a tile has columns)
// knows them. In front: pack, what is to do, and in which order.
//
//--- full.mlir
// CHECK-LABEL: func.func private @full_init(
// CHECK-SAME: attributes {tile.kernel}
// CHECK: tile.fill %{{.*}} with 0.0{{.*}} : memref<8x16xf32>
// CHECK: tile.fill %{{.*}} with 0xFFF0000000000000 : memref<8xf32>
// CHECK-LABEL: func.func private @full_classify(
// CHECK-LABEL: func.func private @full_pack(
// CHECK: tile.pack %{{.*}}, %{{.*}} transposed
// CHECK: tile.pack
// CHECK-LABEL: func.func private @full_attend(
// CHECK: scf.if
// The scale and log2(e) are in q.
// CHECK: tile.load %{{.*}}, %{{.*}} factor 0.51006972
// Four rows at a time go through all steps, with all panels of a full tile, and
// with those of a partial one that they may see.
// CHECK: scf.for
// CHECK-NOT: tile.map
// CHECK: scf.for {{.*}} step %c4
// CHECK: tile.multiply {{.*}} : memref<4x8xf32, {{.*}}>, memref<?x8x16xf32, {{.*}}>, memref<4x?xf32, {{.*}}>
// CHECK-NEXT: tile.row_max
// CHECK-NEXT: tile.exponentials
// CHECK-NEXT: tile.rescale
// CHECK: tile.multiply {{.*}} accumulate : memref<4x?xf32, {{.*}}>, memref<1x?x16xf32, {{.*}}>, memref<4x16xf32, {{.*}}>
// CHECK: scf.for
// CHECK: tile.positions
// CHECK: scf.for {{.*}} step %c4
// CHECK: tile.multiply
// CHECK: tile.map {{.*}} unit 1.0{{.*}} : memref<4x16xf32, {{.*}}>, memref<4xindex, {{.*}}>, memref<16xindex{{.*}}>
// CHECK: tile.row_max
// CHECK-NEXT: tile.exponentials
// CHECK-COUNT-3: tile.store
// CHECK-LABEL: func.func private @full_finalize(
// CHECK: tile.normalize
// CHECK-NOT: tile.kernel
// CHECK-LABEL: func.func @full(
// CHECK: tile.launch @full_init
// CHECK: scf.for
// CHECK: ring.start
// CHECK: tile.launch @full_classify
// CHECK: tile.sort %{{.*}} into %[[ORDER:.*]] :
// CHECK: tile.launch @full_pack
// CHECK: tile.launch @full_attend[%{{.*}}] order(%[[ORDER]]
// CHECK: ring.wait
// CHECK: tile.launch @full_pack
// CHECK: tile.launch @full_attend
// CHECK: tile.launch @full_finalize
shard.grid @cp(shape = 4)
!q = tensor<1x32x2x8xf32>
!k = tensor<1x32x1x8xf32>
!l = tensor<1x2x32xf32>
func.func @full(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// A state that meets one attend stays out of memory: the kernel begins it, and
// ends with the results, of rows without tiles as well. Tasks of few tiles go by their
// tile, from the last one on.
//
//--- alone.mlir
// CHECK-NOT: @alone_init
// CHECK-LABEL: func.func private @alone_attend(
// CHECK-NOT: scf.if
// CHECK: tile.fill %[[O:.*]] with 0.0{{.*}} : memref<8x16xf32>
// CHECK: tile.fill %[[M:.*]] with 0xFFF0000000000000 : memref<8xf32>
// CHECK: tile.fill %[[L:.*]] with 0.0{{.*}} : memref<8xf32>
// CHECK: tile.multiply
// CHECK: tile.normalize %[[O]], %[[M]], %[[L]]
// CHECK-COUNT-2: tile.store
// CHECK-NOT: tile.store
// CHECK-LABEL: func.func @alone(
// CHECK: %[[LONG:.*]] = arith.cmpi sgt, %[[TILES:.*]], %c8
// CHECK: %[[WORK:.*]] = arith.index_cast %[[TILES]] : index to i64
// CHECK: math.ctlz %[[WORK]] : i64
// CHECK: %[[IN_HEAD:.*]] = arith.addi %{{.*}}, %[[TILES]] : index
// CHECK: %[[BY_WORK:.*]] = arith.addi %{{.*}}, %[[IN_HEAD]] : index
// CHECK: arith.select %[[LONG]], %[[BY_WORK]], %{{.*}} : index
// CHECK: tile.sort
// CHECK: tile.launch @alone_attend{{.*}} writes(%arg3, %arg4 :
// CHECK-NOT: tile.launch
shard.grid @cp(shape = 1)
!q = tensor<1x32x2x8xf32>
!l = tensor<1x2x32xf32>
func.func @alone(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> strategy <ring_kv> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// Few queries: a tile has the rows of all heads of a key head, one position's after
// the other. Each is read where it lies, and keys and values are multiplied where
// they lie. Tasks have parts of the keys, whose states are merged in their order.
// Bounds and masks see the heads of rows.
//
//--- few.mlir
// CHECK-LABEL: func.func private @few_classify(
// CHECK-NOT: @few_pack
// CHECK-LABEL: func.func private @few_attend(
// CHECK-SAME: %[[K:[a-z0-9]*]]: memref<1x256x2x16xf32, {{[^%]*}}, %[[V:[a-z0-9]*]]: memref<1x256x2x16xf32
// CHECK: %[[QUERY:.*]] = memref.alloca() {{.*}} : memref<6x16xf32>
// CHECK: %[[HEADS:.*]] = memref.alloca() {{.*}} : memref<6xindex>
// CHECK: scf.for %[[HEAD:.*]] = %c0 to %c2
// CHECK: %[[OF_HEAD:.*]] = memref.subview %[[QUERY]][%[[HEAD]], 0] [3, 16] [2, 1]
// CHECK: tile.load %{{.*}}, %[[OF_HEAD]] factor
// CHECK: tile.fill
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %{{.*}} : memref<3xindex, strided<[2], offset: ?>>
// CHECK: scf.for
// CHECK: memref.subview %[[K]]
// CHECK: memref.subview %[[V]]
// CHECK: scf.for {{.*}} step %c3
// CHECK: tile.multiply {{.*}} by_rows : memref<3x16xf32, {{.*}}>, memref<?x16xf32, strided<[?, 1], offset: ?>>, memref<3x?xf32, {{.*}}>
// CHECK: tile.row_max
// CHECK: tile.multiply {{.*}} accumulate : memref<3x?xf32, {{.*}}>, memref<?x16xf32, strided<[?, 1], offset: ?>>, memref<3x16xf32, {{.*}}>
// CHECK: scf.for
// CHECK: tile.is_finite %{{.*}} : memref<?x16xf32, strided<[?, 1], offset: ?>>
// CHECK: tile.map {{.*}} at (%{{.*}}, %[[OF_ROWS:.*]], %{{.*}}, %{{.*}}) of
// CHECK: } : memref<3x16xf32, {{.*}}>, memref<3xindex, {{.*}}>, memref<16xindex{{.*}}>, memref<3xindex, {{.*}}>
// CHECK-COUNT-3: tile.store
// CHECK-LABEL: func.func private @few_merge_parts(
// CHECK: tile.fill %[[O:.*]] with 0.0
// CHECK: scf.for
// CHECK: tile.merge(%[[O]],
// CHECK: tile.normalize %[[O]],
// CHECK-COUNT-2: tile.store
// CHECK-LABEL: func.func @few(
// Of each of two key heads a task, in as many parts as make 128, but of two tiles
// at least.
// CHECK: tile.launch @few_classify
// CHECK-NOT: tile.sort
// CHECK: %[[MOST:.*]] = arith.divui %{{.*}}, %c2
// CHECK: arith.minsi %{{.*}}, %[[MOST]]
// CHECK: %[[O:.*]] = tile.allocate "packing"(%c1, %{{.*}}) : memref<?x?x4x16xf32>
// CHECK: %[[M:.*]] = tile.allocate "packing"(%c1, %{{.*}}) : memref<?x4x?xf32>
// CHECK: %[[L:.*]] = tile.allocate "packing"(%c1, %{{.*}}) : memref<?x4x?xf32>
// CHECK: tile.launch @few_attend{{.*}} writes(%[[O]], %[[M]], %[[L]] :
// CHECK: tile.launch @few_merge_parts{{.*}} reads(%[[O]], %[[M]], %[[L]] : {{.*}} writes(%arg3, %arg4 :
// CHECK: memref.dealloc %[[O]]
shard.grid @cp(shape = 1)
!q = tensor<1x3x4x16xf32>
!k = tensor<1x256x2x16xf32>
!l = tensor<1x4x3xf32>
func.func @few(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %start = arith.subi %sk, %sq : index
        %own = arith.addi %i, %start : index
        %far = arith.addi %own, %h : index
        %keep = arith.cmpi sle, %j, %far : index
        burst.yield %keep : i1
      } sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// No more than two tiles of keys are no parts: the kernel ends with the results.
//
//--- few-short.mlir
// CHECK-NOT: @short_pack
// CHECK-LABEL: func.func private @short_attend(
// CHECK: tile.multiply {{.*}} by_rows
// CHECK: tile.normalize
// CHECK-NOT: tile.merge
// CHECK-LABEL: func.func @short(
// CHECK: tile.sort
// CHECK: tile.launch @short_attend
// CHECK-NOT: tile.launch
shard.grid @cp(shape = 1)
!q = tensor<2x1x4x16xbf16>
!k = tensor<2x32x2x16xbf16>
!l = tensor<2x4x1xf32>
func.func @short(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// So it is with the queries of all ranks, where each attends its own keys.
//
//--- few-gathered.mlir
// CHECK-NOT: @gathered_pack
// CHECK-LABEL: func.func private @gathered_attend(
// CHECK: memref.alloca() {{.*}} : memref<2x16xf32>
// CHECK: tile.multiply {{.*}} by_rows
// CHECK-LABEL: func.func private @gathered_merge_parts(
shard.grid @cp(shape = 4)
!q = tensor<1x3x4x16xf32>
!k = tensor<1x1024x2x16xf32>
!l = tensor<1x4x3xf32>
func.func @gathered(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <gather_q>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// A state goes through the hops: parts are merged into it.
//
//--- few-hops.mlir
// CHECK-LABEL: func.func private @hops_merge_parts(
// CHECK-COUNT-3: tile.load
// CHECK: scf.for
// CHECK-COUNT-3: tile.load
// CHECK: tile.merge
// CHECK-NOT: tile.normalize
// CHECK-COUNT-3: tile.store
// CHECK: return
// CHECK: tile.normalize
shard.grid @cp(shape = 2)
!q = tensor<1x2x4x16xf32>
!k = tensor<1x256x2x16xf32>
!l = tensor<1x4x2xf32>
func.func @hops(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// Five queries of two heads are more than the rows of a tile, and heads of 8 numbers
// are no whole vectors.
//
//--- not-few.mlir
// CHECK: func.func private @many_pack(
// CHECK: func.func private @narrow_pack(
shard.grid @cp(shape = 1)
!q = tensor<1x5x4x16xf32>
!k = tensor<1x256x2x16xf32>
!l = tensor<1x4x5xf32>
func.func @many(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
!q8 = tensor<1x1x4x8xf32>
!k8 = tensor<1x256x2x8xf32>
!l1 = tensor<1x4x1xf32>
func.func @narrow(%q: !q8, %k: !k8, %v: !k8) -> (!q8, !l1) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q8, !k8, !k8) -> (!q8, !l1)
  return %o, %lse : !q8, !l1
}

// Under a mask, partial tiles take it, and values that are no numbers count where
// they are seen only. The bounds stand in the kernel that lists the tiles.
//
//--- masked.mlir
// CHECK-LABEL: func.func private @masked_classify(
// CHECK: arith.cmpi sle
// CHECK-LABEL: func.func private @masked_pack(
// CHECK: tile.is_finite
// CHECK-LABEL: func.func private @masked_attend(
// CHECK: scf.for
// CHECK-NOT: tile.map
// CHECK: scf.for
//
// The bounds about a strip and each panel: which are needed, and which are whole.
// CHECK: %[[SPAN:.*]]:2 = scf.for %[[PANEL:[a-z0-9]+]] = %c0
// CHECK: %[[MAY:.*]] = arith.cmpi sle
// CHECK: %[[MUST:.*]] = arith.cmpi sle
// CHECK: %[[BEFORE:.*]] = arith.cmpi sle
// CHECK: %[[WHOLE:.*]] = arith.andi %[[MUST]], %[[BEFORE]]
// CHECK: memref.store %[[WHOLE]], %[[FLAGS:.*]][%[[PANEL]]] : memref<2xi1>
// CHECK: %[[THERE:.*]] = arith.cmpi slt
// CHECK: %[[NEEDED:.*]] = arith.andi %[[MAY]], %[[THERE]]
// CHECK: arith.select %[[NEEDED]]
// CHECK: arith.select %[[NEEDED]]
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[SPAN]]#0, %[[SPAN]]#1
// CHECK: scf.if %[[SOME]]
// CHECK: tile.multiply
// CHECK: scf.for %[[PANEL:[a-z0-9]+]] = %[[SPAN]]#0 to %[[SPAN]]#1
// CHECK: memref.load %[[FLAGS]][%[[PANEL]]]
// CHECK: scf.if
// CHECK: tile.map
// CHECK-NEXT: mask(%{{.*}}, %{{.*}}, %[[I:.*]], %[[J:.*]], %{{.*}}, %{{.*}}) {
// CHECK: arith.cmpi sle, %[[J]]
// CHECK: tile.multiply {{.*}} where %
//
// Without local tiling, scores of all pairs of tiles stand in memory between three
// kernels; where values are no numbers, the mask is asked again.
// STORED-LABEL: func.func private @masked_scores(
// STORED: %[[S:.*]] = memref.subview {{.*}} memref<?x2x?x?x8x16xf32> to memref<8x16xf32,
// STORED: tile.multiply %{{.*}}, %{{.*}}, %[[S]]
// STORED-NOT: tile.exponentials
// STORED-LABEL: func.func private @masked_softmax(
// STORED-NOT: tile.multiply
// STORED-COUNT-2: tile.row_max
// STORED: tile.merge
// STORED-COUNT-2: tile.exponentials
// STORED-NOT: tile.multiply
// STORED-LABEL: func.func private @masked_sums(
// STORED-NOT: tile.row_max
// STORED: tile.fill %[[SEEN:.*]] with 0.0
// STORED: tile.map %[[SEEN]]
// STORED: tile.multiply {{.*}} where %[[SEEN]]
// STORED-LABEL: func.func @masked(
// STORED: %[[SCORES:.*]] = tile.allocate "packing"({{.*}}) : memref<?x2x?x?x8x16xf32>
// STORED: tile.launch @masked_scores{{.*}} writes({{.*}}%[[SCORES]] :
// STORED: tile.launch @masked_softmax
// STORED: tile.launch @masked_sums
// STORED: memref.dealloc %[[SCORES]]
shard.grid @cp(shape = 4)
!q = tensor<1x32x2x8xf32>
!k = tensor<1x32x1x8xf32>
!l = tensor<1x2x32xf32>
func.func @masked(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// Backward, strips of queries make weights, their gradients and what these add to
// dq; then strips of keys add up dv and dk, over the rows that may see their
// panels. Blocks that are read by their columns are wider than a tile.
//
//--- gradients.mlir
// CHECK-LABEL: func.func private @gradients_attend_grad(
// CHECK: %[[P:.*]] = memref.alloca() {{.*}} : memref<8x48xf32>
// CHECK: %[[DP:.*]] = memref.alloca() {{.*}} : memref<8x48xf32>
// Full tiles from the front of the list and partial ones from its end, whichever has
// the smaller number. A tile of queries is added to when it is this tile's turn, from
// the last strip to the first.
// CHECK: scf.for {{.*}} iter_args(%[[NEXT:.*]] = %c0, %[[DONE:.*]] = %c0) -> (index, index)
// CHECK: arith.minsi %[[NEXT]],
// CHECK: arith.subi %{{.*}}, %[[DONE]]
// CHECK: %[[FULL:.*]] = arith.index_castui
// CHECK: %[[PARTIAL:.*]] = arith.index_castui
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi slt, %[[FULL]], %[[PARTIAL]]
// CHECK: arith.select %{{.*}}, %true, %[[IS_FIRST]]
// CHECK: %[[IS_FULL:.*]] = arith.select %{{.*}}, %false,
// CHECK: scf.if %[[IS_FULL]] {
// CHECK-NOT: tile.map
// CHECK: %[[LAST:.*]] = arith.muli %{{.*}}, %c4
// CHECK: tile.await %[[PASSED:.*]][%[[AT:.*]]] is
// CHECK-NEXT: scf.for %[[DONE_ROWS:.*]] = %c0 to %{{.*}} step %c4
// CHECK-NEXT: arith.subi %[[LAST]], %[[DONE_ROWS]]
// CHECK: memref.prefetch
// CHECK: tile.multiply {{.*}} : memref<4x8xf32>, memref<?x8x16xf32
// CHECK-NEXT: tile.weights
// CHECK: tile.multiply
// CHECK-NEXT: tile.differentials
// CHECK: tile.multiply {{.*}} accumulate : memref<4x?xf32
// CHECK-NEXT: tile.store
// CHECK: memref.atomic_rmw addi %c1_i32, %[[PASSED]][%[[AT]]]
// CHECK: scf.for {{.*}} step %c4
// CHECK: memref.subview %[[P]][0, %{{.*}}] [%{{.*}}, 4]
// CHECK: tile.multiply {{.*}} depth %{{.*}} accumulate transposed : memref<?x4xf32, {{.*}}>, memref<1x?x16xf32, {{.*}}>, memref<4x16xf32
// CHECK: memref.subview %[[DP]][0, %{{.*}}] [%{{.*}}, 4]
// CHECK: tile.multiply {{.*}} depth %{{.*}} accumulate transposed
// Partial ones.
// CHECK: } else {
// CHECK: scf.for {{.*}} step %c4
// CHECK: %[[SPAN:.*]]:2 = scf.for
// CHECK-COUNT-2: tile.fill {{.*}} with 0.0
// The rows of this strip are needed by its panels.
// CHECK: scf.for %[[PANEL:[a-z0-9]+]] = %[[SPAN]]#0 to %[[SPAN]]#1
// CHECK: memref.store %{{.*}}, %[[FIRST:.*]][%[[PANEL]]] : memref<2xindex>
// CHECK: memref.store %{{.*}}, %[[END:.*]][%[[PANEL]]] : memref<2xindex>
// CHECK: tile.multiply
// CHECK: tile.map
// CHECK: tile.weights
// CHECK: scf.for {{.*}} step %c4
// CHECK: memref.load %[[FIRST]]
// CHECK: memref.load %[[END]]
// CHECK: tile.multiply {{.*}} transposed
//
// Keys as columns of scores, in panels of 4; as rows, which sums go over, of 8.
// NARROW-LABEL: func.func private @gradients_pack_keys(
// NARROW-COUNT-2: tile.pack {{.*}} transposed : {{.*}}, memref<8x8x4xf32
// NARROW: tile.pack {{.*}} : {{.*}}, memref<1x32x8xf32
// NARROW-LABEL: func.func private @gradients_attend_grad(
// NARROW: memref.alloca() {{.*}} : memref<8x36xf32>
// NARROW: tile.multiply {{.*}} : memref<4x8xf32>, memref<?x8x4xf32
// NARROW: tile.multiply {{.*}} depth %{{.*}} accumulate transposed : memref<?x4xf32, {{.*}}>, memref<1x?x8xf32, {{.*}}>, memref<4x8xf32
// A strip of keys is of one or two panels.
// NARROW: tile.store
// NARROW: arith.divui %{{.*}}, %c4
// NARROW: %[[REACH:.*]]:2 = scf.for {{.*}} iter_args(
// NARROW-NEXT: memref.load
// NARROW: arith.cmpi slt, %[[REACH]]#0, %[[REACH]]#1
//
// Half of a panel of 16 would be padding.
// PADDED-LABEL: func.func private @gradients_pack_keys(
// PADDED-COUNT-2: tile.pack {{.*}} transposed : {{.*}}, memref<4x8x8xf32
// PADDED: tile.pack {{.*}} : {{.*}}, memref<1x32x8xf32
shard.grid @cp(shape = 2)
!q = tensor<1x32x2x8xf32>
!l = tensor<1x2x32xf32>
func.func @gradients(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal sequence <@cp, zigzag> strategy <ring_kv>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// With a score, all tiles are mapped, and what the score gives has natural units.
//
//--- scored.mlir
// CHECK-LABEL: func.func private @scored_attend(
// CHECK: tile.load %{{.*}}, %{{.*}} factor 0.35355
// CHECK: tile.map {{.*}} unit 1.44269
// CHECK: score(
// CHECK: math.tanh
// CHECK: tile.map {{.*}} unit 1.44269
// CHECK: score(
shard.grid @cp(shape = 1)
!q = tensor<1x32x2x8xf32>
!k = tensor<1x32x1x8xf32>
!l = tensor<1x2x32xf32>
func.func @scored(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v score softcap<3.0> sequence <@cp, zigzag> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// In pairs, queries are as they were, the scale is applied to their product, and
// scores are still there when weights are multiplied. Without, all are numbers of
// the state. Seven numbers of a head are four pairs.
//
//--- pairs.mlir
// CHECK-LABEL: func.func private @pairs_pack(
// CHECK: tile.pack {{.*}} transposed : {{.*}}, memref<1x4x16x2xbf16, {{.*}}>
// CHECK: tile.pack {{.*}} : {{.*}}, memref<1x8x16x2xbf16, {{.*}}>
// CHECK-LABEL: func.func private @pairs_attend(
// CHECK: tile.load %{{.*}}, %[[Q:.*]] : memref<?x7xbf16, {{.*}}>, memref<8x8xbf16>
// CHECK-NOT: memref.copy
// CHECK-COUNT-2: tile.multiply
// CHECK: scf.for
// CHECK: tile.multiply %{{.*}}, %{{.*}}, %[[S:.*]] rows %{{.*}} factor 0.545{{.*}} : memref<4x8xbf16, {{.*}}>, memref<?x4x16x2xbf16, {{.*}}>
// CHECK: tile.map
// CHECK: tile.exponentials %[[S]], {{.*}} into %[[P:.*]] : memref<4x?xbf16, {{.*}}>
// CHECK: tile.multiply %[[P]], {{.*}} where %[[S]] : memref<4x?xf32, {{.*}}> accumulate : memref<4x?xbf16, {{.*}}>, memref<1x?x16x2xbf16, {{.*}}>
// CHECK-LABEL: func.func @pairs(
// CHECK: tile.allocate "packing"{{.*}} : memref<?x1x?x1x4x16x2xbf16>
// CHECK: tile.allocate "packing"{{.*}} : memref<?x1x?x1x8x16x2xbf16>
// APART-NOT: x2xbf16
// APART: tile.load {{.*}} factor 0.545
// APART-NOT: x2xbf16
shard.grid @cp(shape = 4)
!q = tensor<1x32x2x7xbf16>
!k = tensor<1x32x1x7xbf16>
!l = tensor<1x2x32xf32>
func.func @pairs(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// States are merged segment by segment, where a segment is flagged and not empty.
//
//--- queries.mlir
// CHECK-LABEL: func.func private @queries_merge(
// CHECK-COUNT-6: tile.load
// CHECK: tile.merge(%[[O:.*]], %[[M:.*]], %[[L:.*]]) with
// CHECK: tile.store %[[O]]
// CHECK: tile.store %[[M]]
// CHECK: tile.store %[[L]]
// CHECK-LABEL: func.func @queries(
// CHECK: scf.for
// CHECK: tile.launch @queries_attend
// Two segments each of what has returned, of the own state, and of what comes on
// the way.
// CHECK-COUNT-6: tile.launch @queries_merge
// CHECK-NOT: tile.launch
// CHECK: scf.yield
// CHECK: %[[COUNT:.*]], %{{.*}}, %{{.*}} = ring.segment %{{.*}} of <zigzag over 3>
// CHECK: %[[SOME:.*]] = arith.cmpi ne,
// CHECK: %[[ARRIVED:.*]] = memref.load %{{.*}} : memref<1x4x1xi1>
// CHECK: %[[BOTH:.*]] = arith.andi %[[SOME]], %[[ARRIVED]]
// CHECK: scf.if %[[BOTH]] {
// CHECK: tile.launch @queries_merge
// CHECK: tile.launch @queries_merge
// CHECK: tile.launch @queries_finalize
shard.grid @cp(shape = 3)
!q = tensor<1x96x2x16xf32>
!l = tensor<1x2x96xf32>
func.func @queries(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_q> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// Backward, weights and their gradients stand in memory.
//
//--- backward.mlir
// CHECK-LABEL: func.func private @backward_weights(
// CHECK-NOT: accumulate
// CHECK: tile.differentials
// CHECK-LABEL: func.func private @backward_sums(
// CHECK-NOT: tile.weights
// CHECK-COUNT-3: tile.multiply {{.*}} accumulate
// CHECK-LABEL: func.func @backward(
// CHECK-COUNT-2: tile.allocate "packing"{{.*}} : memref<?x2x?x?x8x32xf32>
// CHECK: tile.launch @backward_weights
// CHECK: tile.launch @backward_sums
shard.grid @cp(shape = 2)
!q = tensor<1x32x2x8xf32>
!l = tensor<1x2x32xf32>
func.func @backward(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do sequence <@cp, zigzag> strategy <ring_kv>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// In pairs, weights and their gradients are rounded: a strip's gradients by rows, for
// dq, and both with two rows side by side, for dv and dk, which then sum up half as
// many steps. All of a strip is rounded, also what it does not see and is 0.
//
//--- gradient-pairs.mlir
// APART-LABEL: func.func private @gradient_pairs_weights(
// APART-NOT: tile.round
// APART: tile.multiply {{.*}} : memref<4x7xf32>
// CHECK-LABEL: func.func private @gradient_pairs_pack_keys(
// CHECK-COUNT-2: tile.pack {{.*}} transposed : {{.*}}, memref<1x4x16x2xbf16
// CHECK: tile.pack {{.*}}, memref<1x8x16x2xbf16
// CHECK: tile.is_finite %{{.*}} : memref<1x8x16x2xbf16
// Seven rows are four pairs.
// CHECK-LABEL: func.func private @gradient_pairs_pack_queries(
// CHECK-COUNT-2: tile.pack {{.*}}, memref<1x4x16x2xbf16
// CHECK-LABEL: func.func private @gradient_pairs_attend_grad(
// CHECK: %[[S:.*]] = memref.alloca() {{.*}} : memref<4x32xf32>
// CHECK: %[[DP:.*]] = memref.alloca() {{.*}} : memref<4x32xf32>
// CHECK: %[[SPAIRS:.*]] = memref.alloca() {{.*}} : memref<4x32x2xbf16>
// CHECK: %[[DPPAIRS:.*]] = memref.alloca() {{.*}} : memref<4x32x2xbf16>
// CHECK: %[[ROUNDED:.*]] = memref.alloca() {{.*}} : memref<4x16xbf16>
// CHECK: scf.for {{.*}} step %c4
// CHECK: tile.load {{.*}}, memref<4x8xbf16>
// CHECK: tile.multiply {{.*}} factor {{.*}} : memref<4x8xbf16>, memref<?x4x16x2xbf16
// CHECK-NEXT: tile.weights
// CHECK: tile.multiply {{.*}} : memref<4x8xbf16>, memref<?x4x16x2xbf16
// CHECK-NEXT: tile.differentials
// CHECK: tile.round %{{.*}} into %[[LEFT:.*]] rows {{.*}} : memref<4x?xf32, {{.*}}>, memref<4x?xbf16
// CHECK: tile.multiply %[[LEFT]], {{.*}} accumulate : memref<4x?xbf16, {{.*}}>, memref<1x?x16x2xbf16
// CHECK: tile.round {{.*}} : memref<4x16xf32, {{.*}}>, memref<2x16x2xbf16
// CHECK: tile.round {{.*}} : memref<4x16xf32, {{.*}}>, memref<2x16x2xbf16
// CHECK: scf.for {{.*}} step %c4
// CHECK: memref.subview %[[SPAIRS]][0, %{{.*}}, 0] [%{{.*}}, 4, 2]
// CHECK: tile.multiply {{.*}} depth %{{.*}} accumulate transposed : memref<?x4x2xbf16, {{.*}}>, memref<1x?x16x2xbf16, {{.*}}>, memref<4x16xf32
// CHECK: memref.subview %[[DPPAIRS]][0, %{{.*}}, 0] [%{{.*}}, 4, 2]
// CHECK: tile.multiply {{.*}} depth %{{.*}} accumulate transposed : memref<?x4x2xbf16
// Partial tiles.
// CHECK: scf.for {{.*}} step %c4
// CHECK-COUNT-2: tile.fill {{.*}} with 0.0
// CHECK: tile.multiply
// CHECK-COUNT-2: tile.round {{.*}} : memref<4x16xf32, {{.*}}>, memref<2x16x2xbf16
// CHECK: scf.for {{.*}} step %c4
// Products of rows, by what was seen of them.
// CHECK: tile.multiply {{.*}} where %{{.*}} : memref<?x4xf32, {{.*}}> accumulate transposed : memref<?x4x2xbf16
shard.grid @cp(shape = 2)
!q = tensor<1x32x2x7xbf16>
!l = tensor<1x2x32xf32>
func.func @gradient_pairs(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal sequence <@cp, zigzag> strategy <ring_kv>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// What stays is packed in front of the loop, all of it; what travels in every hop, and
// only tiles that some list has: of keys by the lengths of their own lists. A tile of
// keys without a list leaves its gradients alone. Turns are numbered in every hop.
//
//--- stays.mlir
// CHECK-LABEL: func.func private @stays_pack_keys(
// CHECK: %[[FULL:.*]] = memref.load %{{.*}} : memref<?x?x?x2xindex>
// CHECK: %[[PARTIAL:.*]] = memref.load %{{.*}} : memref<?x?x?x2xindex>
// CHECK: %[[LENGTH:.*]] = arith.addi %[[FULL]], %[[PARTIAL]]
// CHECK: %[[SOME:.*]] = arith.cmpi ne, %[[LENGTH]], %c0
// CHECK: scf.if %[[SOME]] {
// CHECK: tile.pack
// CHECK-LABEL: func.func private @stays_pack_queries(
// CHECK-NOT: scf.if
// CHECK: tile.pack
// CHECK-LABEL: func.func private @stays_attend_grad(
// CHECK: %[[SOME:.*]] = arith.cmpi ne, %{{.*}}, %c0
// CHECK-NEXT: scf.if %[[SOME]] {
// CHECK: tile.load
// CHECK-LABEL: func.func @stays(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: memref<1x32x4x8xf32
// CHECK: %[[TILES:.*]] = tile.allocate "schedule"(%{{.*}}) : memref<?x7xindex>
// The last tile of queries is the first.
// CHECK: scf.for
// CHECK: scf.for %[[I:[a-z0-9]*]] = %c0 to
// CHECK: %[[PLACE:.*]] = arith.addi %{{.*}}, %[[I]] : index
// CHECK-NEXT: %[[DIM:.*]] = memref.dim %[[TILES]], %c0
// CHECK-NEXT: %[[LAST:.*]] = arith.subi %[[DIM]], %c1
// CHECK-NEXT: %[[TILE:.*]] = arith.subi %[[LAST]], %[[PLACE]]
// CHECK-NEXT: memref.store %{{.*}}, %[[TILES]][%[[TILE]], %c0]
// CHECK: %[[PACKED:.*]] = tile.allocate "packing"
// CHECK: tile.launch @stays_pack_queries[%{{.*}}] reads(%[[Q]], %{{.*}}, %[[TILES]] : {{.*}}) writes(%[[PACKED]],
// CHECK: scf.for
// CHECK-NOT: pack_queries
// CHECK: tile.launch @stays_classify{{.*}} reads(%[[TILES]],
// CHECK: %[[PASSED:.*]] = tile.allocate "schedule"(%c1, %c4, %{{.*}}) : memref<?x?x?xi32>
// CHECK: %[[TURNS:.*]] = tile.allocate "schedule"(%{{.*}}) : memref<?x?x?x?xi32>
// CHECK: %[[TURN:.*]] = memref.load %[[PASSED]]
// CHECK-NEXT: memref.store %[[TURN]], %[[TURNS]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[TURN]], %c1_i32
// CHECK-NEXT: memref.store %[[NEXT]], %[[PASSED]]
// CHECK: memref.store %c0_i32, %[[PASSED]]
// CHECK: tile.launch @stays_pack_keys
// CHECK: tile.launch @stays_attend_grad[{{.*}}, %[[TURNS]] : {{.*}} %[[PASSED]] :
// CHECK-NOT: memref.dealloc %[[PACKED]]
// CHECK: scf.yield
// CHECK: memref.dealloc %[[PACKED]]
shard.grid @cp(shape = 3)
!q = tensor<1x96x4x8xf32>
!k = tensor<1x96x2x8xf32>
!l = tensor<1x4x96xf32>
func.func @stays(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal sequence <@cp, zigzag>
      strategy <ring_kv> : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// Hops in which a rank computes no pair of segments cost no launch, and no memory.
//
//--- none.mlir
// CHECK-LABEL: func.func @none(
// CHECK: scf.for
// CHECK: ring.start
// CHECK-NOT: tile.
// The only pair is the condition.
// CHECK: %[[PAIR:.*]] = memref.load %{{.*}} : memref<3x3x1x1xi1>
// CHECK-NEXT: scf.if %[[PAIR]]
// CHECK: tile.launch @none_classify
// CHECK: tile.allocate "packing"
// CHECK: tile.launch @none_attend
// CHECK: }
// CHECK: ring.wait
shard.grid @cp(shape = 3)
!q = tensor<1x96x1x8xf32>
func.func @none(%q: !q, %k: !q, %v: !q, %ids: tensor<96xi32>) -> !q {
  %o, %lse = burst.attention %q, %k, %v mask documents(%ids : tensor<96xi32>) sequence <@cp, contiguous>
      strategy <ring_kv> : (!q, !q, !q) -> (!q, tensor<1x1x96xf32>)
  return %o : !q
}

// Keys and values stay where queries travel.
//
//--- keys-stay.mlir
// CHECK-LABEL: func.func private @keys_stay_pack_keys(
// CHECK-NOT: scf.if
// CHECK: tile.pack
// CHECK-LABEL: func.func private @keys_stay_pack_queries(
// CHECK: %[[NEEDED:.*]] = memref.load %{{.*}} : memref<?xi32>
// CHECK: %[[SOME:.*]] = arith.cmpi ne, %[[NEEDED]], %c0_i32
// CHECK: scf.if %[[SOME]] {
// CHECK: tile.pack
// CHECK-LABEL: func.func @keys_stay(
// CHECK: tile.launch @keys_stay_pack_keys
// CHECK: scf.for
// CHECK-NOT: tile.launch @keys_stay_pack_keys
// CHECK: tile.launch @keys_stay_pack_queries
// CHECK: scf.yield
shard.grid @cp(shape = 3)
!q = tensor<1x96x4x8xf32>
!k = tensor<1x96x2x8xf32>
!l = tensor<1x4x96xf32>
func.func @keys_stay(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal sequence <@cp, zigzag>
      strategy <ring_q> : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
