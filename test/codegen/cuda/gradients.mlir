// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=64 warps=4" --canonicalize --cse -mlir-print-debuginfo -o %t.mlir
// RUN: FileCheck %s --check-prefix=TILE <%t.mlir
// RUN: burst-opt %t.mlir --cuda-stage-copies --canonicalize --cse -mlir-print-debuginfo -o %t.staged.mlir
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

// GIVEN-LABEL: func.func private @backward_attend_grad_queries(
// GIVEN-SAME: cuda.team = 8
// GIVEN: memref.alloca() {{.*}} memref<128x32xf32, #gpu.address_space<private>>
// GIVEN-LABEL: func.func private @backward_attend_grad_keys(
// GIVEN-SAME: cuda.team = 2
// GIVEN-NOT: memref<64x16xf32
// GIVEN: return

shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @backward(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      score softcap<5.0> sequence <@cp, contiguous> : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
