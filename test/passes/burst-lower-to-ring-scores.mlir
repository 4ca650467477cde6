// RUN: split-file %s %t
// RUN: burst-opt %t/scores.mlir --burst-to-ring=overlap=false | FileCheck %t/scores.mlir
// RUN: burst-opt %t/scores.mlir --burst-to-ring --ring-plan -o /dev/null | FileCheck %t/scores.mlir --check-prefix=PLAN
// RUN: burst-opt %t/scores.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize | FileCheck %t/scores.mlir --check-prefix=BUFFERS
// RUN: burst-opt %t/scores.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=4 columns=8" | FileCheck %t/scores.mlir --check-prefix=TILE
// RUN: not burst-opt %t/backward.mlir --burst-to-ring 2>&1 | FileCheck %t/backward.mlir

// Keys travel past queries, whose scores are stored; then the softmax; then values
// travel. No pair is dropped, and nothing is rescaled.
//
//--- scores.mlir
// CHECK-LABEL: func.func @scores(
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<1x8x4x16xbf16> {{.*}}, %[[K:[^ ]+]]: tensor<1x8x2x16xbf16> {{.*}}, %[[V:[^ ]+]]: tensor<1x8x2x16xbf16>
// CHECK-NOT: ring.attend
// CHECK: %[[S0:.*]] = ring.scores %[[Q]] extent %{{.*}} : tensor<1x8x4x16xbf16> -> tensor<1x4x8x32xf32>
// CHECK: scf.for {{.*}} iter_args(%[[KT:.*]] = %[[K]], %[[OWNER:.*]] = %{{.*}}, %[[ST:.*]] = %[[S0]])
// CHECK: %[[S1:.*]] = ring.score %[[Q]] at <zigzag over 4>
// CHECK-NEXT: slice (%[[KT]] at %[[OWNER]]) of <zigzag over 4> extent %{{.*}} into %[[ST]] scale 2.5
// CHECK-NEXT: mask(
// CHECK: %[[TOKEN:.*]] = ring.start %[[KT]] dims [1]
// CHECK: %[[KN:.*]] = ring.wait %[[TOKEN]]
// CHECK: scf.yield %[[KN]], %{{.*}}, %[[S1]]
// CHECK: %[[S:.*]] = ring.score %[[Q]]
// CHECK: %[[O:.*]], %[[M:.*]], %[[L:.*]] = ring.init %[[Q]]
// CHECK: %[[P:.*]], %[[O0:.*]], %[[M0:.*]], %[[L0:.*]] = ring.softmax %[[S]] state %[[O]], %[[M]], %[[L]]
// CHECK: scf.for {{.*}} iter_args(%[[VT:.*]] = %[[V]],
// CHECK: ring.weigh %[[P]], (%[[VT]] at
// CHECK: ring.start %[[VT]]
// CHECK: ring.weigh %[[P]]
// CHECK: ring.finalize
// CHECK-NOT: ring.merge

// What each rank sends is what a ring of keys and values sends without dropping, 3
// slices of both; what it holds has 4 x 8 x 32 scores of 4 bytes.
// PLAN: "bytes_sent": 3072,
// PLAN: "bytes_sent_by_tensor": {
// PLAN-NEXT: "arg1": 1536,
// PLAN-NEXT: "arg2": 1536
// PLAN: "hops": 6,
// PLAN: "peak_bytes": [[PEAK:[0-9]+]],
// PLAN-NEXT: "peak_slices": 2,

// BUFFERS-LABEL: func.func @scores(
// BUFFERS: %[[S:.*]] = tile.allocate "state"() : memref<1x4x8x32xf32>
// BUFFERS: ring.scores %{{.*}} extent %{{.*}} into %[[S]]
// BUFFERS: ring.score {{.*}}
// BUFFERS-NEXT: into %[[S]]
// BUFFERS: ring.softmax %[[S]] state
// BUFFERS: ring.weigh %[[S]],

// TILE-LABEL: func.func private @scores_score(
// TILE: tile.multiply
// TILE: tile.store
// TILE-LABEL: func.func private @scores_softmax(
// TILE: tile.row_max
// TILE: tile.exponentials
// TILE: tile.store
// TILE-NOT: tile.merge
// TILE-LABEL: func.func private @scores_weigh(
// TILE: tile.multiply {{.*}} accumulate
// TILE-LABEL: func.func @scores(
// TILE: tile.launch @scores_score
// TILE: tile.launch @scores_softmax
// TILE: tile.launch @scores_weigh
shard.grid @cp(shape = 4)
!q = tensor<1x32x4x16xbf16>
!k = tensor<1x32x2x16xbf16>
!l = tensor<1x4x32xf32>
func.func @scores(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> strategy <ring_scores>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

//--- backward.mlir
// CHECK: error: 'burst.attention_backward' op pins the strategy ring_scores, which has a forward pass only
shard.grid @cp(shape = 4)
!q = tensor<1x32x4x16xf32>
!l = tensor<1x4x32xf32>
func.func @f(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      sequence <@cp, zigzag> strategy <ring_scores>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}
