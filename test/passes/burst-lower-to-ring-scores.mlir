// RUN: split-file %s %t
// RUN: burst-opt %t/scores.mlir --burst-to-ring=overlap=false | FileCheck %t/scores.mlir
// RUN: burst-opt %t/scores.mlir --burst-to-ring --ring-plan -o /dev/null | FileCheck %t/scores.mlir --check-prefix=PLAN
// RUN: burst-opt %t/scores.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize | FileCheck %t/scores.mlir --check-prefix=BUFFERS
// RUN: burst-opt %t/scores.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=4 columns=8" | FileCheck %t/scores.mlir --check-prefix=TILE
// RUN: burst-opt %t/backward.mlir --burst-to-ring=overlap=false | FileCheck %t/backward.mlir
// RUN: burst-opt %t/backward.mlir --burst-to-ring | FileCheck %t/backward.mlir --check-prefix=OVERLAP
// RUN: burst-opt %t/backward.mlir --burst-to-ring --ring-plan -o /dev/null | FileCheck %t/backward.mlir --check-prefix=BACKWARD-PLAN
// RUN: burst-opt %t/backward.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize | FileCheck %t/backward.mlir --check-prefix=BACKWARD-BUFFERS
// RUN: burst-opt %t/backward.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=4 columns=8" | FileCheck %t/backward.mlir --check-prefix=BACKWARD-TILE
// RUN: not burst-opt %t/backward.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="warps=4 rows=64" 2>&1 | FileCheck %s --check-prefix=GPU
// GPU: op keeps scores in memory, for which there is no kernel for GPUs
// RUN: burst-opt %t/alibi.mlir --burst-to-ring | FileCheck %t/alibi.mlir --check-prefix=ALIBI
// RUN: not burst-opt %t/softcap.mlir --burst-to-ring 2>&1 | FileCheck %t/softcap.mlir --check-prefix=SOFTCAP
// RUN: not burst-opt %t/tables.mlir --burst-to-ring 2>&1 | FileCheck %t/tables.mlir --check-prefix=TABLES

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

// Keys travel, and scores become probabilities; values travel with their gradient,
// and probabilities become gradients by scores; keys travel with theirs. Partial
// results return to their owners, and nothing is dropped.
//
//--- backward.mlir
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[Q:[^ ]+]]: tensor<1x8x4x16xbf16> {{.*}}, %[[K:[^ ]+]]: tensor<1x8x2x16xbf16> {{.*}}, %[[V:[^ ]+]]: tensor<1x8x2x16xbf16> {{.*}}, %[[O:[^ ]+]]: tensor<1x8x4x16xbf16> {{.*}}, %[[LSE:[^ ]+]]: tensor<1x4x8xf32> {{.*}}, %[[DO:[^ ]+]]: tensor<1x8x4x16xbf16>
// CHECK-NOT: ring.attend
// CHECK: %[[DELTA:.*]] = ring.delta %[[O]], %[[DO]]
// CHECK: ring.scores %[[Q]]
// CHECK: ring.score %[[Q]]
// CHECK: %[[S:.*]] = ring.score %[[Q]]
// CHECK: %[[P:.*]] = ring.probabilities %[[S]], %[[LSE]]
// CHECK: %[[BYVALUES:.*]]:6 = scf.for {{.*}} iter_args(%[[VT:.*]] = %[[V]], %[[OWNER:.*]] = %{{.*}}, %[[PT:.*]] = %[[P]],
// CHECK: %[[FRESH:.*]] = ring.zero %[[VT]]
// CHECK: ring.weigh_grad(%[[DO]], %[[DELTA]]), (%[[VT]] at %[[OWNER]]) of <zigzag over 4> extent %{{.*}} into %[[PT]], %[[FRESH]] scale 2.5
// CHECK: ring.start %[[VT]]
// CHECK: ring.add
// CHECK: scf.for {{.*}} iter_args(%[[KT:.*]] = %[[K]],
// CHECK: ring.score_grad %[[BYVALUES]]#2, %[[Q]], (%[[KT]] at
// CHECK: ring.add
// CHECK-NOT: ring.score_grad
// CHECK: return

// Three slices of k, twice, and of v; three of dk and of dv in f32, of which the last
// goes to the owner.
// BACKWARD-PLAN: "bytes_sent": 10752,
// BACKWARD-PLAN-NEXT: "bytes_sent_by_tensor": {
// BACKWARD-PLAN-NEXT: "arg1": 3072,
// BACKWARD-PLAN-NEXT: "arg2": 1536,
// BACKWARD-PLAN-NEXT: "darg1": 3072,
// BACKWARD-PLAN-NEXT: "darg2": 3072
// BACKWARD-PLAN: "peak_slices": 2,

// A gradient is waited for where it is added to, behind the products of its turn.
// OVERLAP: ring.weigh_grad
// OVERLAP: %[[COMES:.*]] = ring.wait %{{.*}} : !ring.token<tensor<1x8x2x16xf32>>
// OVERLAP: ring.add %{{.*}}, %[[COMES]]

// BACKWARD-BUFFERS-LABEL: func.func @backward(
// BACKWARD-BUFFERS: %[[S:.*]] = tile.allocate "state"() : memref<1x4x8x32xf32>
// BACKWARD-BUFFERS: ring.probabilities %[[S]],
// BACKWARD-BUFFERS: ring.weigh_grad{{.*}} into %[[S]], %{{.*}} scale
// BACKWARD-BUFFERS: ring.score_grad %[[S]],

// BACKWARD-TILE-LABEL: func.func private @backward_probabilities(
// BACKWARD-TILE: tile.weights
// BACKWARD-TILE-LABEL: func.func private @backward_value_gradients(
// BACKWARD-TILE: tile.multiply {{.*}} accumulate transposed
// BACKWARD-TILE-LABEL: func.func private @backward_differentials(
// BACKWARD-TILE: tile.differentials
// BACKWARD-TILE-LABEL: func.func private @backward_query_gradients(
// BACKWARD-TILE: tile.multiply {{.*}} accumulate
// The kernel of gradients by keys is that of those by values, which are as wide.
// BACKWARD-TILE-LABEL: func.func @backward(
// BACKWARD-TILE: tile.launch @backward_probabilities
// BACKWARD-TILE: tile.launch @backward_value_gradients
// BACKWARD-TILE: tile.launch @backward_differentials
// BACKWARD-TILE: tile.launch @backward_query_gradients
// BACKWARD-TILE: tile.launch @backward_value_gradients
shard.grid @cp(shape = 4)
!q = tensor<1x32x4x16xbf16>
!k = tensor<1x32x2x16xbf16>
!l = tensor<1x4x32xf32>
func.func @backward(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      sequence <@cp, zigzag> strategy <ring_scores>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// What adds to scores has their gradients, what reads them has not.
//
//--- alibi.mlir
// ALIBI: ring.weigh_grad
shard.grid @cp(shape = 2)
!q = tensor<1x8x1x4xf32>
!l = tensor<1x1x8xf32>
func.func @f(%q: !q, %o: !q, %lse: !l, %do: !q, %t: tensor<1xf32>) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %o, %lse, %do score alibi(%t : tensor<1xf32>)
      sequence <@cp, zigzag> strategy <ring_scores>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

//--- softcap.mlir
// SOFTCAP: error: 'burst.attention_backward' op pins the strategy ring_scores, which has no backward pass through a score whose derivative reads products of queries and keys: it keeps scores only
shard.grid @cp(shape = 2)
!q = tensor<1x8x1x4xf32>
!l = tensor<1x1x8xf32>
func.func @f(%q: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %o, %lse, %do score softcap<2.0>
      sequence <@cp, zigzag> strategy <ring_scores>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

//--- tables.mlir
// TABLES: error: 'burst.attention_backward' op pins the strategy ring_scores, which has no gradients of tables: it keeps scores only
shard.grid @cp(shape = 2)
!q = tensor<1x8x1x4xf32>
!l = tensor<1x1x8xf32>
!t = tensor<8x8xf32>
func.func @f(%q: !q, %o: !q, %lse: !l, %do: !q, %t: !t) -> (!q, !q, !q, !t) {
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %q, %q, %o, %lse, %do score bias(%t : !t)
      sequence <@cp, zigzag> strategy <ring_scores> gradients [0]
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %dq, %dk, %dv, %dt : !q, !q, !q, !t
}
