// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=64 warps=4" --canonicalize --cse -mlir-print-debuginfo -o %t.mlir
// RUN: FileCheck %s --check-prefix=TILE <%t.mlir
// RUN: burst-opt %t.mlir --cuda-stage-copies --cuda-narrow-positions --canonicalize --cse -mlir-print-debuginfo -o %t.staged.mlir
// RUN: FileCheck %s --check-prefix=STAGED <%t.staged.mlir
// RUN: burst-translate --burst-to-cuda %t.staged.mlir | FileCheck %s --check-prefix=TEXT
// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=64 warps=4 query-gradients=128,32,8 key-gradients=64,16,2" | FileCheck %s --check-prefix=GIVEN

// A kernel that adds up gradients by queries over keys, and one that adds up
// those by keys and values over queries and the heads of their group. Each has
// its own list, made where programs run.
//
// TILE-LABEL: func.func @backward(
// TILE: tile.launch @backward_classify[
// TILE: tile.launch @backward_attend_grad_queries[{{.*}} writes(%{{[^ ,]*}} : memref<1x200x4x64xf32>)
// TILE: tile.launch @backward_classify_0[
// TILE: tile.launch @backward_attend_grad_keys[{{.*}} writes(%{{[^ ]*}}, %{{[^ ]*}} : memref<1x200x2x64xf32>, memref<1x200x2x64xf32>)
// TILE-NOT: tile.pack

// What is read once is copied while the other is worked on; gradients by outputs
// are copied again as soon as they are added up, in front of the last product.
//
// STAGED-LABEL: func.func private @backward_attend_grad_queries(
// STAGED: scf.for
// STAGED-NOT: scf.for
// STAGED: cuda.copy %{{.*}}, %[[K:[^ ]*]] :
// STAGED: tile.multiply %{{.*}}, %[[V:[^ ]*]], %[[DP:[^ ]*]] rows {{.*}} by_rows
// STAGED-NEXT: cuda.wait 0
// STAGED-NEXT: cuda.synchronize
// STAGED: cuda.copy %{{.*}}, %[[V]] :
// STAGED: tile.multiply %{{.*}}, %[[K]], %[[S:[^ ]*]] rows {{.*}} by_rows
// STAGED: tile.weights %[[S]], %{{.*}} rows %{{[^ ]*}} :
// STAGED-NEXT: tile.differentials %[[S]], %[[DP]],
// STAGED-NEXT: tile.map_gradient %[[DP]],
// STAGED: tile.multiply %[[DP]], %[[K]], {{.*}} accumulate
// STAGED-LABEL: func.func private @backward_attend_grad_keys(
// STAGED: scf.for %{{.*}} = %c0 to %c2
// STAGED: scf.for
// STAGED: tile.multiply %{{.*}}, %[[DO:[^ ]*]], %[[DP:[^ ]*]] rows {{.*}} by_rows
// STAGED-NEXT: cuda.wait 0
// STAGED-NEXT: cuda.synchronize
// STAGED-NEXT: tile.multiply %{{.*}}, %[[Q:[^ ]*]], %[[S:[^ ]*]] rows {{.*}} by_rows
// STAGED: tile.weights %[[S]], %{{.*}} transposed
// STAGED-NEXT: tile.multiply %[[S]], %[[DO]], {{.*}} accumulate
// STAGED-NEXT: cuda.synchronize
// STAGED: cuda.copy %{{.*}}, %[[DO]] :
// STAGED: tile.differentials %[[S]], %[[DP]], {{.*}} transposed
// STAGED: tile.multiply %[[DP]], %[[Q]], {{.*}} accumulate

// TEXT-LABEL: backward_delta(
// TEXT: rowDot(sums, sums1, rows);
// TEXT-LABEL: backward_zero(
// TEXT-LABEL: backward_attend_grad_queries(
// TEXT: load(lseRows, {{.*}}, 0.f, 1.44269502f);
// TEXT: products = scores;
// TEXT: mapGradient(weightGrads, products, [&](float w, float t, int row, int column) {
// TEXT: return column < {{count[0-9]*}} ? {{.*}} : 0.f;
// TEXT: rescale(dqSum, factors);
// TEXT: load<64>(before, [[VIEW:.*]]);
// TEXT-NEXT: add(dqSum, before);
// TEXT-NEXT: store<64>(dqSum, [[VIEW]]);
// TEXT: 24576 bytes of shared memory
// TEXT: backward_attend_grad_keys(
// TEXT: Accumulator<Group, 32> scores;
// TEXT-NEXT: ColumnVector<Group, 32> lseRows;
// Full and partial tiles are of one loop: the first need no mask.
// TEXT: const bool [[PARTIAL:.*]] = {{iteration[0-9]*}} >= full;
// Queries that a tile does not have weigh nothing.
// TEXT: load(lseRows, {{.*}}, -infinity(), 1.44269502f);
// TEXT: // score, ends of scores
// TEXT-NEXT: map(scores, [&](float s, int row, int column) {
// TEXT: if ([[PARTIAL]]) {
// TEXT-NEXT: // mask of scores
// TEXT-NEXT: map(scores, [&](float s, int row, int column) {
// TEXT-NEXT: const int i = columns.at(column);
// TEXT-NEXT: const int j = rows.at(row);
// TEXT: weights(scores, lseRows, 1.f);
// TEXT-NEXT: // dvSum += scores outGradTile
// TEXT: // dkSum += weightGrads queryTile
// TEXT-LABEL: backward_round(

// GIVEN-LABEL: func.func private @backward_attend_grad_queries(
// GIVEN-SAME: tile.warps = 8
// GIVEN: memref.alloca() {{.*}} memref<128x32xf32, #gpu.address_space<private>>
// GIVEN-LABEL: func.func private @backward_attend_grad_keys(
// GIVEN-SAME: tile.warps = 2
// GIVEN: memref.alloca() {{.*}} memref<64x16xf32, #gpu.address_space<private>>

shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @backward(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      score softcap<5.0> sequence <@cp, contiguous> : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
