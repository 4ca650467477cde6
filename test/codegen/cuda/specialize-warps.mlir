// RUN: burst-opt %s --burst-to-ring=fuse=false --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=8" --canonicalize --cse -mlir-print-debuginfo -o %t.mlir
// RUN: burst-opt %t.mlir --cuda-specialize-warps --canonicalize --cse -mlir-print-debuginfo -o %t.specialized.mlir
// RUN: FileCheck %s --check-prefix=SPECIALIZED <%t.specialized.mlir
// RUN: burst-translate --burst-to-cuda %t.specialized.mlir | FileCheck %s --check-prefix=TEXT
// Nothing is left to stage.
// RUN: burst-opt %t.specialized.mlir --cuda-stage-copies -mlir-print-debuginfo | diff %t.specialized.mlir -
// RUN: burst-opt %t.mlir --cuda-specialize-warps="shared-bytes=49000" | FileCheck %s --check-prefix=ONE
// RUN: burst-opt %t.mlir --cuda-specialize-warps="stages=3" | FileCheck %s --check-prefix=THREE
// RUN: burst-opt %t.mlir --cuda-specialize-warps="shared-bytes=16384" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: burst-opt %s --burst-to-ring=fuse=false --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=4" --cuda-specialize-warps -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/x64xbf16/x40xbf16/g' %s | burst-opt --burst-to-ring=fuse=false --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=8" --cuda-specialize-warps -o /dev/null 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not burst-opt %t.mlir --cuda-specialize-warps="stages=0" 2>&1 | FileCheck %s --check-prefix=STAGES

// ONE: cuda.pipeline : !cuda.pipeline<1 of memref<64x64
// THREE: cuda.pipeline : !cuda.pipeline<1 of memref<128x64
// THREE: cuda.pipeline : !cuda.pipeline<3 of memref<64x64
// LARGE: remark: is not warp-specialized: a stage for each tile takes 32816 bytes of shared memory, of 16384
// ROWS: remark: is not warp-specialized: asynchronous products have 16 rows for a warp, got 128 rows for 4 warps
// DIM: remark: is not warp-specialized: head dimensions of asynchronous products are multiples of 16, got 40
// STAGES: a pipeline has at least one stage, got: 0

// What decides nothing about loads is not the producer's.
//
// SPECIALIZED-LABEL: func.func private @causal_attend(
// SPECIALIZED: %[[S:.*]] = memref.alloca() {{.*}} : memref<128x64xf32, #gpu.address_space<private>>
// SPECIALIZED-NOT: workgroup>> loc
// SPECIALIZED: %[[QUERIES:.*]] = cuda.pipeline : !cuda.pipeline<1 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
// SPECIALIZED-NEXT: %[[KEYS:.*]] = cuda.pipeline : !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
// SPECIALIZED-NEXT: %[[VALUES:.*]] = cuda.pipeline : !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
// SPECIALIZED-NEXT: cuda.synchronize
// SPECIALIZED-NEXT: cuda.warp_specialize producer warps 4 registers 24 {
// SPECIALIZED-NOT: tile.
// SPECIALIZED: %[[STAGE:.*]] = cuda.producer_acquire %[[QUERIES]]
// SPECIALIZED-NEXT: cuda.tma_load %{{.*}}, %[[STAGE]]
// SPECIALIZED-NEXT: cuda.producer_commit %[[QUERIES]]
// SPECIALIZED-NOT: tile.
// SPECIALIZED: scf.for
// SPECIALIZED-NOT: tile.
// SPECIALIZED: %[[STAGE:.*]] = cuda.producer_acquire %[[KEYS]]
// SPECIALIZED-NEXT: cuda.tma_load %{{.*}}, %[[STAGE]]
// SPECIALIZED-NEXT: cuda.producer_commit %[[KEYS]]
// SPECIALIZED: %[[STAGE:.*]] = cuda.producer_acquire %[[VALUES]]
// SPECIALIZED-NEXT: cuda.tma_load %{{.*}}, %[[STAGE]]
// SPECIALIZED-NEXT: cuda.producer_commit %[[VALUES]]
// SPECIALIZED-NOT: tile.
// SPECIALIZED: } consumers registers 240 {
// SPECIALIZED: tile.load
// SPECIALIZED: %[[Q:.*]] = cuda.consumer_wait %[[QUERIES]]
// SPECIALIZED-NEXT: scf.for
// SPECIALIZED-NEXT: %[[MASKED:.*]] = arith.cmpi sge
// SPECIALIZED-NEXT: %[[K:.*]] = cuda.consumer_wait %[[KEYS]]
// SPECIALIZED-NEXT: %[[T:.*]] = cuda.multiply_async %[[Q]], %[[K]], %[[S]] factor 0.18033688{{[0-9]*}} by_rows
// SPECIALIZED-NEXT: cuda.await %[[T]]
// SPECIALIZED-NEXT: cuda.consumer_release %[[KEYS]]
// What a mask alone needs is read beside it.
// SPECIALIZED-NEXT: %[[END:.*]] = scf.if %[[MASKED]] -> (index) {
// SPECIALIZED: %[[KEY:.*]] = memref.load
// SPECIALIZED: tile.map %[[S]] rows %{{.*}} columns %[[COLUMNS:[^ ]*]] at
// SPECIALIZED: scf.yield %[[COLUMNS]] : index
// SPECIALIZED: scf.yield %c64{{.*}} : index
// SPECIALIZED: tile.row_max
// SPECIALIZED-NEXT: tile.exponentials
// SPECIALIZED-NEXT: tile.rescale
// SPECIALIZED-NEXT: cuda.round %[[S]], %[[W:.*]] : memref<128x64xf32, {{.*}}>, memref<128x64xbf16, #gpu.address_space<private>>
// SPECIALIZED-NEXT: %[[V:.*]] = cuda.consumer_wait %[[VALUES]]
// Where columns end inside a tile, what lies behind is cleared.
// SPECIALIZED-NEXT: scf.if %[[MASKED]] {
// SPECIALIZED-NEXT: cuda.clear %[[V]] from %[[END]]
// SPECIALIZED-NEXT: }
// SPECIALIZED-NEXT: %[[T:.*]] = cuda.multiply_async %[[W]], %[[V]], %{{.*}} accumulate
// SPECIALIZED-NEXT: cuda.await %[[T]]
// SPECIALIZED-NEXT: cuda.consumer_release %[[VALUES]]
// A kernel that loads nothing to shared memory is not warp-specialized.
// SPECIALIZED-LABEL: func.func private @causal_finalize(
// SPECIALIZED-NOT: cuda.warp_specialize

// TEXT: // 384 threads, 49232 bytes of shared memory
// TEXT-NEXT: using Group = Warps<128, 8>;
// TEXT: extern "C" __global__ void __launch_bounds__(Group::Threads + 128, 1)
// TEXT-NEXT: causal_attend(
// TEXT-NEXT: const i32 *order,
// TEXT-NEXT: const __grid_constant__ TensorMap q,
// TEXT-NEXT: const __grid_constant__ TensorMap k,
// TEXT-NEXT: const __grid_constant__ TensorMap v,
// TEXT-NEXT: Buffer<const i64, 2> queryTiles,
// TEXT: Pipeline<SharedTile<128, 64>, 1> queryTilePipeline{sharedMemory() + 0, sharedMemory() + 49152, Group::Count};
// TEXT-NEXT: Pipeline<SharedTile<64, 64>, 2> keyTilePipeline{sharedMemory() + 16384,
// TEXT: synchronize();
// TEXT-NEXT: if (isProducer<Group>()) {
// TEXT-NEXT: giveRegisters<24>();
// TEXT-NEXT: if (isElected<Group>()) {
// TEXT-NEXT: const auto view = boxOf(q, batch, row, head, 0);
// TEXT-NEXT: const auto queryTile = queryTilePipeline.producerAcquire();
// TEXT-NEXT: tmaLoad(queryTile, view);
// TEXT-NEXT: queryTilePipeline.producerCommit();
// TEXT: } else {
// TEXT-NEXT: takeRegisters<240>();
// TEXT: const auto [[Q:queryTile[0-9]*]] = queryTilePipeline.consumerWait();
// TEXT: const auto [[K:keyTile[0-9]*]] = keyTilePipeline.consumerWait();
// TEXT-NEXT: // scores = [[Q]] [[K]]^T
// TEXT-NEXT: beginMultiplyTransposed<bf16, false>(scores, [[Q]], [[K]], uniformWarpgroup());
// TEXT-NEXT: await<0>(scores);
// TEXT-NEXT: keyTilePipeline.consumerRelease();
// TEXT: rowMax(scores, m, factor, 0.180336878f);
// TEXT: round(scores, weights);
// TEXT: clear<Group>([[V:valueTile[0-9]*]], count{{[0-9]*}});
// TEXT-NEXT: }
// TEXT-NEXT: // o += weights [[V]]
// TEXT-NEXT: beginMultiply<bf16, true>(o, weights, [[V]]);
// TEXT-NEXT: await<0>(o);
// TEXT-NEXT: valueTilePipeline.consumerRelease();

shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @causal(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
