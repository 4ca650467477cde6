// RUN: burst-opt %s --burst-to-ring=fuse=false --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=32 warps=4" --canonicalize --cse -mlir-print-debuginfo -o %t.mlir
// RUN: FileCheck %s --check-prefix=TILE <%t.mlir
// RUN: FileCheck %s --check-prefix=ONE <%t.mlir
// RUN: burst-opt %t.mlir --cuda-stage-copies --cuda-narrow-positions --canonicalize --cse -mlir-print-debuginfo -o %t.staged.mlir
// RUN: FileCheck %s --check-prefix=STAGED <%t.staged.mlir
// RUN: burst-translate --burst-to-cuda %t.staged.mlir | FileCheck %s --check-prefix=TEXT
// RUN: burst-translate --burst-to-cuda --with-device-library %t.staged.mlir | FileCheck %s --check-prefix=LIBRARY
// RUN: not burst-translate --burst-to-cuda %t.mlir 2>&1 | FileCheck %s --check-prefix=LOADS
// RUN: not burst-translate --burst-to-cuda %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=32 warps=4" --canonicalize --cse --cuda-stage-copies --cuda-narrow-positions --canonicalize --cse -mlir-print-debuginfo | burst-translate --burst-to-cuda | FileCheck %s --check-prefix=FUSED
// LOADS: is to shared memory; run cuda-stage-copies first
// NONE: has no kernels for GPUs; run ring-lower-to-tile with warps

// Kernels of a GPU load tiles as they lie; what is to do is found out elsewhere.
//
// TILE-LABEL: func.func private @causal_classify(
// TILE-NOT: tile.warps
// TILE-LABEL: func.func private @causal_attend(
// TILE-SAME: attributes {tile.kernel, tile.warps = 4 : i64}
// TILE: %[[Q:.*]] = memref.alloca() {{.*}} : memref<64x64xbf16, #gpu.address_space<workgroup>>
// TILE: %[[S:.*]] = memref.alloca() {{.*}} : memref<64x32xf32, #gpu.address_space<private>>
// TILE: tile.load %{{.*}}, %[[Q]] :
// TILE: scf.for
// TILE: tile.load %{{.*}}, %[[K:.*]] : memref<?x64xbf16, strided<[?, 1], offset: ?>>, memref<32x64xbf16
// TILE: tile.multiply %[[Q]], %[[K]], %[[S]] rows %{{.*}} factor 0.18033688{{[0-9]*}} by_rows
// TILE: tile.row_max
// TILE-NEXT: tile.exponentials
// TILE-NEXT: tile.rescale
// TILE: tile.load %{{.*}}, %[[V:.*]] : memref<?x64xbf16, strided<[?, 1], offset: ?>>, memref<32x64xbf16
// TILE: tile.multiply %[[S]], %[[V]], %{{.*}} accumulate
// TILE-NOT: tile.pack

// One loop is over full and partial tiles; a branch goes around the mask.
//
// ONE-LABEL: func.func private @causal_attend(
// ONE: %[[FULL:.*]] = memref.load {{.*}} : memref<?x?x?x2xindex>
// ONE: %[[PARTIAL:.*]] = memref.load {{.*}} : memref<?x?x?x2xindex>
// ONE: %[[ALL:.*]] = arith.addi %[[FULL]], %[[PARTIAL]]
// ONE: scf.for %[[T:.*]] = %{{.*}} to %[[ALL]]
// ONE: %[[MASKED:.*]] = arith.cmpi sge, %[[T]], %[[FULL]]
// ONE: arith.select %[[MASKED]],
// ONE: tile.multiply
// ONE: scf.if %[[MASKED]] {
// ONE: tile.map
// ONE: }
// ONE: tile.row_max
// ONE-NOT: scf.for
// ONE: return

// The first keys are copied in front of the loop, the next ones while weights are
// computed; values while scores are.
//
// STAGED-LABEL: func.func private @causal_attend(
// STAGED: cuda.copy %{{.*}}, %[[Q:[^ ]*]] : {{.*}} memref<64x64xbf16
// STAGED-NEXT: cuda.commit
// STAGED: cuda.synchronize
// STAGED: scf.if
// STAGED: cuda.copy %{{.*}}, %[[K:[^ ]*]] :
// STAGED: cuda.commit
// STAGED: scf.for
// STAGED: cuda.wait 0
// STAGED-NEXT: cuda.synchronize
// STAGED: cuda.copy %{{.*}}, %[[V:[^ ]*]] :
// STAGED-NEXT: cuda.commit
// STAGED-NEXT: tile.multiply %[[Q]], %[[K]], {{.*}} by_rows
// STAGED-NEXT: cuda.wait 0
// STAGED-NEXT: cuda.synchronize
// STAGED: scf.if
// STAGED: cuda.copy %{{.*}}, %[[K]] :
// STAGED: cuda.commit
// STAGED: tile.row_max
// STAGED: tile.multiply %{{.*}}, %[[V]], {{.*}} accumulate
// STAGED-NOT: tile.load %{{.*}}workgroup

// TEXT: using namespace burst;
// TEXT: // 128 threads, 16384 bytes of shared memory
// TEXT-NEXT: using Group = Warps<64, 4>;
// TEXT: extern "C" __global__ void __launch_bounds__(Group::Threads, 2)
// TEXT-NEXT: causal_attend(
// TEXT-NEXT: const i32 *order,
// TEXT-NEXT: Buffer<const bf16, 4> q,
// TEXT: Buffer<float, 3> lState,
// TEXT-NEXT: int sq,
// TEXT-NEXT: int sk) {
// TEXT: const SharedTile<64, 64> queryTile{sharedMemory() + 0};
// TEXT-NEXT: Accumulator<Group, 32> scores;
// TEXT: RowSums<Group> l;
// TEXT: const SharedTile<32, 64> keyTile{sharedMemory() + 8192};
// TEXT: copy<Group, 64>(queryTile, {{.*}});
// TEXT: // scores = queryTile keyTile^T
// TEXT-NEXT: fill(scores, 0.f);
// TEXT-NEXT: multiplyTransposed<bf16>(scores, queryTile, keyTile);
// The scale and log2(e) are applied where exponentials subtract.
// TEXT-NOT: scale(
// TEXT: // mask of scores
// TEXT-NEXT: map(scores, [&](float s, int row, int column) {
// TEXT-NEXT: const int i = rows.at(row);
// TEXT-NEXT: const int j = columns.at(column);
// TEXT: return column < {{.*}} && {{.*}} ? s : -infinity();
// TEXT-NOT: scale(
// TEXT: rowMax(scores, m, factor, 0.180336878f);
// TEXT-NEXT: exponentials(scores, m, l, factor, 0.180336878f);
// TEXT-NEXT: rescale(o, factor);
// TEXT-NEXT: // o += scores valueTile
// TEXT-NEXT: multiply<bf16>(o, scores, valueTile);
// TEXT: store<64>(o, {{.*}});
// TEXT: causal_finalize(
// TEXT: normalize(
// TEXT-NOT: causal_classify

// From nothing to results, in one kernel.
//
// FUSED: causal_attend(
// FUSED: Buffer<bf16, 4> out,
// FUSED-NEXT: Buffer<float, 3> lse,
// FUSED: fill(o, 0.f);
// FUSED-NEXT: fill(m, -infinity());
// FUSED-NEXT: fill(l, 0.f);
// FUSED: multiply<bf16>(o, scores, valueTile);
// FUSED: normalize(o, m, l);
// FUSED: store<64>(o, {{.*}});
// FUSED: store(m, {{.*}});
// FUSED-NOT: causal_finalize

// LIBRARY: namespace burst {
// LIBRARY: __device__ __forceinline__ void multiplyTransposed(
// LIBRARY: using namespace burst;
// LIBRARY: causal_attend(

shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @causal(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
