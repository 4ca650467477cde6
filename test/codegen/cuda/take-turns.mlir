// RUN: split-file %s %t
// RUN: burst-opt %t/full.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=8" --canonicalize --cse --cuda-specialize-warps --canonicalize --cse -mlir-print-debuginfo -o %t/roles.mlir
// RUN: burst-opt %t/roles.mlir --cuda-skew --cuda-take-turns -mlir-print-debuginfo -o %t/turns.mlir
// RUN: FileCheck %s <%t/turns.mlir
// RUN: burst-translate --burst-to-cuda %t/turns.mlir | FileCheck %s --check-prefix=TEXT
// Products one by one need no turns.
// RUN: burst-opt %t/roles.mlir --cuda-take-turns -mlir-print-debuginfo 2>%t/remark | diff %t/roles.mlir -
// RUN: FileCheck %s --check-prefix=PLAIN <%t/remark
// RUN: burst-opt %t/full.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=64 warps=4" --cuda-specialize-warps --cuda-skew --cuda-take-turns | FileCheck %s --check-prefix=ALONE
// PLAIN: remark: takes no turns: no loop has several products under way
// ALONE: cuda.roles
// ALONE-NOT: {{take|pass|begin|end}}_turn

// CHECK: } consumers registers 240 {
// CHECK-NEXT: cuda.begin_turns
// CHECK: scf.if
// CHECK: cuda.multiply_async
// CHECK: scf.for
// CHECK: cuda.receive
// CHECK-NEXT: cuda.take_turn
// CHECK-NEXT: cuda.multiply_async
// CHECK-NEXT: cuda.receive
// CHECK-NEXT: cuda.multiply_async
// CHECK-NEXT: cuda.pass_turn
// CHECK-NEXT: cuda.await
// CHECK: tile.store
// CHECK: cuda.end_turns
// CHECK-NEXT: }

// TEXT: takeRegisters<240>();
// TEXT-NEXT: const int warpgroup = uniformWarpgroup();
// TEXT-NEXT: Turns<Group>::begin();
// TEXT: Turns<Group>::take();
// TEXT: beginMultiplyTransposed<{{.*}}, warpgroup);
// TEXT: beginMultiply<
// TEXT-NEXT: Turns<Group>::pass();
// TEXT-NEXT: await<1>(scores);
// TEXT: Turns<Group>::end();

//--- full.mlir
shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @full(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
