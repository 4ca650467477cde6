// RUN: split-file %s %t
// RUN: burst-opt %t/documents.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=112 warps=8" --canonicalize --cse --cuda-specialize-warps --canonicalize --cse -mlir-print-debuginfo -o %t/roles.mlir
// RUN: burst-opt %t/roles.mlir --cuda-delegate-masks -mlir-print-debuginfo -o %t/marks.mlir
// RUN: burst-opt %t/marks.mlir | FileCheck %s
// RUN: burst-translate --burst-to-cuda %t/marks.mlir | FileCheck %s --check-prefix=TEXT
// RUN: burst-opt %t/marks.mlir --cuda-skew --cuda-take-turns --cuda-narrow-positions | FileCheck %s --check-prefix=SKEWED
// Slots for as much as there is room for, or none.
// RUN: burst-opt %t/roles.mlir --cuda-delegate-masks="stages=3 shared-bytes=79000" 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: burst-opt %t/roles.mlir --cuda-delegate-masks="shared-bytes=75000" -mlir-print-debuginfo 2>%t/remark | diff %t/roles.mlir -
// RUN: FileCheck %s --check-prefix=NONE <%t/remark
// RUN: not burst-opt %t/roles.mlir --cuda-delegate-masks=stages=0 2>&1 | FileCheck %s --check-prefix=SLOTS
// TWO: cuda.channel : !cuda.channel<2 of memref<128x112xi1,
// NONE: remark: consumers evaluate masks: a slot for marks makes 75872 bytes of shared memory, of 75000
// SLOTS: a channel has at least one slot, got: 0

// Masks of arithmetic alone stay with consumers.
// RUN: burst-opt %t/causal.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=112 warps=8" --cuda-specialize-warps --cuda-delegate-masks | FileCheck %s --check-prefix=CAUSAL
// CAUSAL: consumers registers 240
// CAUSAL: tile.map
// CAUSAL-NOT: cuda.hide

// A score stays with consumers.
//
// CHECK: %[[MARKS:.*]] = cuda.channel : !cuda.channel<4 of memref<128x112xi1, #gpu.address_space<workgroup>>>
// CHECK: cuda.roles producer warps 4 registers 56 {
// CHECK-NOT: tile.
// CHECK: } markers {
// CHECK: %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<128xindex>
// CHECK: tile.positions %[[ROWS]]
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: %[[COUNT:.*]] = arith.index_cast
// CHECK: tile.positions
// CHECK: %[[SLOT:.*]] = cuda.acquire %[[MARKS]]
// CHECK-NEXT: cuda.mark %[[SLOT]] columns %{{.*}} at(%{{.*}}, %{{.*}}, %[[ROWS]], %{{.*}}) of
// CHECK-NEXT: mask(%{{.*}}, %[[TABLE:.*]] = %{{.*}} : memref<200xi32,
// CHECK: tensor.extract %[[TABLE]]
// CHECK: cuda.publish %[[MARKS]]
// CHECK: }
// CHECK: } consumers registers 224 {
// CHECK-NOT: tensor.extract
// CHECK: tile.map %[[S:.*]] rows %{{.*}} columns %c112 {{.*}} unit
// CHECK-NEXT: score(
// CHECK: scf.if
// CHECK: %[[READ:.*]] = cuda.receive %[[MARKS]]
// CHECK-NEXT: cuda.hide %[[S]], %[[READ]] : memref<128x112xf32, #gpu.address_space<private>>, memref<128x112xi1, #gpu.address_space<workgroup>>
// CHECK-NEXT: cuda.release %[[MARKS]]
// CHECK: tile.row_max %[[S]]

// Barriers lie behind all slots.
//
// TEXT: Channel<SharedMarks<128, 112>, 4> marksChannel{sharedMemory() + 73728, sharedMemory() + 82000, Group::Warps};
// TEXT: giveRegisters<56>();
// TEXT-NEXT: if (isMarker<Group>()) {
// TEXT: const auto marks = marksChannel.acquire();
// TEXT-NEXT: // mask, as marks
// TEXT-NEXT: mark<Group>(marks, [&](int row, int column) {
// TEXT: return column < count{{[0-9]+}} && {{.*}};
// TEXT-NEXT: });
// TEXT-NEXT: marksChannel.publish();
// TEXT: } else if (isElected<Group>()) {
// TEXT: takeRegisters<224>();
// TEXT: const auto marks1 = marksChannel.receive();
// TEXT-NEXT: hide(scores, marks1);
// TEXT-NEXT: marksChannel.release();
// TEXT: rowMax(

// Positions in marks' masks are narrow too, and the first tile has marks of its own.
//
// SKEWED: cuda.mark
// SKEWED: arith.cmpi sle, {{.*}} : i32
// SKEWED: tensor.extract
// SKEWED: consumers
// SKEWED: cuda.hide
// SKEWED: cuda.hide
// SKEWED-NOT: cuda.hide

//--- documents.mlir
shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @f(%q: !q, %k: !k, %v: !k, %ids: tensor<200xi32>) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v
      mask [causal, documents](%ids : tensor<200xi32>)
      score softcap<5.0>
      sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

//--- causal.mlir
shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
