// RUN: split-file %s %t
// RUN: burst-opt %t/full.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=8" --canonicalize --cse --cuda-specialize-warps --canonicalize --cse -mlir-print-debuginfo -o %t/specialized.mlir
// RUN: burst-opt %t/specialized.mlir --cuda-software-pipeline --cuda-ping-pong -mlir-print-debuginfo -o %t/ping-pong.mlir
// RUN: FileCheck %s <%t/ping-pong.mlir
// RUN: burst-translate --burst-to-cuda %t/ping-pong.mlir | FileCheck %s --check-prefix=TEXT
// Products one by one need no ping-pong scheduling.
// RUN: burst-opt %t/specialized.mlir --cuda-ping-pong -mlir-print-debuginfo 2>%t/remark | diff %t/specialized.mlir -
// RUN: FileCheck %s --check-prefix=PLAIN <%t/remark
// RUN: burst-opt %t/full.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=64 warps=4" --cuda-specialize-warps --cuda-software-pipeline --cuda-ping-pong | FileCheck %s --check-prefix=ALONE
// PLAIN: remark: has no ping-pong scheduling: no loop has several products under way
// ALONE: cuda.warp_specialize
// ALONE-NOT: {{take|pass|begin|end}}_turn

// CHECK: } consumers registers 240 {
// CHECK-NEXT: cuda.ping_pong_begin
// CHECK: scf.if
// CHECK: cuda.multiply_async
// CHECK: scf.for
// CHECK: cuda.consumer_wait
// CHECK-NEXT: cuda.ping_pong_wait
// CHECK-NEXT: cuda.multiply_async
// CHECK-NEXT: cuda.consumer_wait
// CHECK-NEXT: cuda.multiply_async
// CHECK-NEXT: cuda.ping_pong_signal
// CHECK-NEXT: cuda.await
// CHECK: tile.store
// CHECK: cuda.ping_pong_end
// CHECK-NEXT: }

// TEXT: takeRegisters<240>();
// TEXT-NEXT: const int warpgroup = uniformWarpgroup();
// TEXT-NEXT: PingPong<Group>::begin();
// TEXT: PingPong<Group>::wait();
// TEXT: beginMultiplyTransposed<{{.*}}, warpgroup);
// TEXT: beginMultiply<
// TEXT-NEXT: PingPong<Group>::signal();
// TEXT-NEXT: await<1>(scores);
// TEXT: PingPong<Group>::end();

//--- full.mlir
shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @full(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
