// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=8" --canonicalize --cse -mlir-print-debuginfo -o %t.mlir
// RUN: burst-opt %t.mlir --cuda-specialize-warps --canonicalize --cse -mlir-print-debuginfo -o %t.roles.mlir
// RUN: FileCheck %s --check-prefix=ROLES <%t.roles.mlir
// RUN: burst-translate --burst-to-cuda %t.roles.mlir | FileCheck %s --check-prefix=TEXT
// Nothing is left to stage.
// RUN: burst-opt %t.roles.mlir --cuda-stage-copies -mlir-print-debuginfo | diff %t.roles.mlir -
// RUN: burst-opt %t.mlir --cuda-specialize-warps="shared-bytes=49000" | FileCheck %s --check-prefix=ONE
// RUN: burst-opt %t.mlir --cuda-specialize-warps="stages=3" | FileCheck %s --check-prefix=THREE
// RUN: burst-opt %t.mlir --cuda-specialize-warps="shared-bytes=16384" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=4" --cuda-specialize-warps -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/x64xbf16/x40xbf16/g' %s | burst-opt --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=8" --cuda-specialize-warps -o /dev/null 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not burst-opt %t.mlir --cuda-specialize-warps="stages=0" 2>&1 | FileCheck %s --check-prefix=STAGES

// ONE: cuda.channel : !cuda.channel<1 of memref<64x64
// THREE: cuda.channel : !cuda.channel<1 of memref<128x64
// THREE: cuda.channel : !cuda.channel<3 of memref<64x64
// LARGE: remark: all warps do the same: a slot for each tile takes 32816 bytes of shared memory, of 16384
// ROWS: remark: all warps do the same: asynchronous products have 16 rows for a warp, got 128 rows for 4 warps
// DIM: remark: all warps do the same: head dimensions of asynchronous products are multiples of 16, got 40
// STAGES: a channel has at least one slot, got: 0

// What decides nothing about loads is not the producer's.
//
// ROLES-LABEL: func.func private @causal_attend(
// ROLES: %[[S:.*]] = memref.alloca() {{.*}} : memref<128x64xf32, #gpu.address_space<private>>
// ROLES-NOT: workgroup>> loc
// ROLES: %[[QUERIES:.*]] = cuda.channel : !cuda.channel<1 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
// ROLES-NEXT: %[[KEYS:.*]] = cuda.channel : !cuda.channel<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
// ROLES-NEXT: %[[VALUES:.*]] = cuda.channel : !cuda.channel<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
// ROLES-NEXT: cuda.synchronize
// ROLES-NEXT: cuda.roles producer warps 4 registers 24 {
// ROLES-NOT: tile.
// ROLES: %[[SLOT:.*]] = cuda.acquire %[[QUERIES]]
// ROLES-NEXT: cuda.bring %{{.*}}, %[[SLOT]]
// ROLES-NEXT: cuda.publish %[[QUERIES]]
// ROLES-NOT: tile.
// ROLES: scf.for
// ROLES-NOT: tile.
// ROLES: %[[SLOT:.*]] = cuda.acquire %[[KEYS]]
// ROLES-NEXT: cuda.bring %{{.*}}, %[[SLOT]]
// ROLES-NEXT: cuda.publish %[[KEYS]]
// ROLES: %[[SLOT:.*]] = cuda.acquire %[[VALUES]]
// ROLES-NEXT: cuda.bring %{{.*}}, %[[SLOT]]
// ROLES-NEXT: cuda.publish %[[VALUES]]
// ROLES-NOT: tile.
// ROLES: } consumers registers 240 {
// ROLES: tile.load
// ROLES: %[[Q:.*]] = cuda.receive %[[QUERIES]]
// ROLES-NEXT: scf.for
// ROLES-NEXT: %[[MASKED:.*]] = arith.cmpi sge
// ROLES-NEXT: %[[K:.*]] = cuda.receive %[[KEYS]]
// ROLES-NEXT: %[[T:.*]] = cuda.multiply_async %[[Q]], %[[K]], %[[S]] factor 0.18033688{{[0-9]*}} by_rows
// ROLES-NEXT: cuda.await %[[T]]
// ROLES-NEXT: cuda.release %[[KEYS]]
// What a mask alone needs is read beside it.
// ROLES-NEXT: %[[END:.*]] = scf.if %[[MASKED]] -> (index) {
// ROLES: %[[KEY:.*]] = memref.load
// ROLES: tile.map %[[S]] rows %{{.*}} columns %[[COLUMNS:[^ ]*]] at
// ROLES: scf.yield %[[COLUMNS]] : index
// ROLES: scf.yield %c64{{.*}} : index
// ROLES: tile.row_max
// ROLES-NEXT: tile.exponentials
// ROLES-NEXT: tile.rescale
// ROLES-NEXT: cuda.round %[[S]], %[[W:.*]] : memref<128x64xf32, {{.*}}>, memref<128x64xbf16, #gpu.address_space<private>>
// ROLES-NEXT: %[[V:.*]] = cuda.receive %[[VALUES]]
// Where columns end inside a tile, what lies behind is cleared.
// ROLES-NEXT: scf.if %[[MASKED]] {
// ROLES-NEXT: cuda.clear %[[V]] from %[[END]]
// ROLES-NEXT: }
// ROLES-NEXT: %[[T:.*]] = cuda.multiply_async %[[W]], %[[V]], %{{.*}} accumulate
// ROLES-NEXT: cuda.await %[[T]]
// ROLES-NEXT: cuda.release %[[VALUES]]
// A kernel that stages nothing has no roles.
// ROLES-LABEL: func.func private @causal_finalize(
// ROLES-NOT: cuda.roles

// TEXT: // 384 threads, 49232 bytes of shared memory
// TEXT-NEXT: using Group = Team<128, 8>;
// TEXT: extern "C" __global__ void __launch_bounds__(Group::Threads + 128, 1)
// TEXT-NEXT: causal_attend(
// TEXT-NEXT: const i32 *order,
// TEXT-NEXT: const __grid_constant__ TensorMap q,
// TEXT-NEXT: const __grid_constant__ TensorMap k,
// TEXT-NEXT: const __grid_constant__ TensorMap v,
// TEXT-NEXT: Buffer<const i64, 2> queryTiles,
// TEXT: Channel<SharedTile<128, 64>, 1> queryTileChannel{sharedMemory() + 0, sharedMemory() + 49152, Group::Warps};
// TEXT-NEXT: Channel<SharedTile<64, 64>, 2> keyTileChannel{sharedMemory() + 16384,
// TEXT: synchronize();
// TEXT-NEXT: if (isProducer<Group>()) {
// TEXT-NEXT: giveRegisters<24>();
// TEXT-NEXT: if (isElected<Group>()) {
// TEXT-NEXT: const auto view = boxOf(q, batch, row, head, 0);
// TEXT-NEXT: const auto queryTile = queryTileChannel.acquire();
// TEXT-NEXT: bring(queryTile, view);
// TEXT-NEXT: queryTileChannel.publish();
// TEXT: } else {
// TEXT-NEXT: takeRegisters<240>();
// TEXT: const auto [[Q:queryTile[0-9]*]] = queryTileChannel.receive();
// TEXT: const auto [[K:keyTile[0-9]*]] = keyTileChannel.receive();
// TEXT-NEXT: // scores = [[Q]] [[K]]^T
// TEXT-NEXT: beginMultiplyTransposed<bf16, false>(scores, [[Q]], [[K]], uniformWarpgroup());
// TEXT-NEXT: await<0>(scores);
// TEXT-NEXT: keyTileChannel.release();
// TEXT: rowMax(scores, m, factor, 0.180336878f);
// TEXT: round(scores, weights);
// TEXT: clear<Group>([[V:valueTile[0-9]*]], count{{[0-9]*}});
// TEXT-NEXT: }
// TEXT-NEXT: // o += weights [[V]]
// TEXT-NEXT: beginMultiply<bf16, true>(o, weights, [[V]]);
// TEXT-NEXT: await<0>(o);
// TEXT-NEXT: valueTileChannel.release();

shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @causal(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
