// RUN: split-file %s %t
// RUN: burst-opt %t/documents.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=112 warps=8" --canonicalize --cse --cuda-specialize-warps --canonicalize --cse -mlir-print-debuginfo -o %t/specialized.mlir
// RUN: burst-opt %t/specialized.mlir --cuda-delegate-masks -mlir-print-debuginfo -o %t/bits.mlir
// RUN: burst-opt %t/bits.mlir | FileCheck %s
// RUN: burst-translate --burst-to-cuda %t/bits.mlir | FileCheck %s --check-prefix=TEXT
// RUN: burst-opt %t/bits.mlir --cuda-software-pipeline --cuda-ping-pong --cuda-narrow-positions | FileCheck %s --check-prefix=PIPELINED
// Stages for as much as there is room for, or none.
// RUN: burst-opt %t/specialized.mlir --cuda-delegate-masks="stages=3 shared-bytes=79000" 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: burst-opt %t/specialized.mlir --cuda-delegate-masks="shared-bytes=75000" -mlir-print-debuginfo 2>%t/remark | diff %t/specialized.mlir -
// RUN: FileCheck %s --check-prefix=NONE <%t/remark
// RUN: not burst-opt %t/specialized.mlir --cuda-delegate-masks=stages=0 2>&1 | FileCheck %s --check-prefix=STAGES
// TWO: cuda.pipeline : !cuda.pipeline<2 of memref<128x112xi1,
// NONE: remark: consumers evaluate masks: a stage for mask bits makes 75872 bytes of shared memory, of 75000
// STAGES: a pipeline has at least one stage, got: 0

// Masks of arithmetic alone stay with consumers.
// RUN: burst-opt %t/causal.mlir --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=112 warps=8" --cuda-specialize-warps --cuda-delegate-masks | FileCheck %s --check-prefix=CAUSAL
// CAUSAL: consumers registers 240
// CAUSAL: tile.map
// CAUSAL-NOT: cuda.apply_mask_bits

// A score stays with consumers.
//
// CHECK: %[[MASK_BITS:.*]] = cuda.pipeline : !cuda.pipeline<4 of memref<128x112xi1, #gpu.address_space<workgroup>>>
// CHECK: cuda.warp_specialize producer warps 4 registers 56 {
// CHECK-NOT: tile.
// CHECK: } mask_warps {
// CHECK: %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<128xindex>
// CHECK: tile.positions %[[ROWS]]
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: %[[COUNT:.*]] = arith.index_cast
// CHECK: tile.positions
// CHECK: %[[STAGE:.*]] = cuda.producer_acquire %[[MASK_BITS]]
// CHECK-NEXT: cuda.mask_bits %[[STAGE]] columns %{{.*}} at(%{{.*}}, %{{.*}}, %[[ROWS]], %{{.*}}) of
// CHECK-NEXT: mask(%{{.*}}, %[[TABLE:.*]] = %{{.*}} : memref<200xi32,
// CHECK: tensor.extract %[[TABLE]]
// CHECK: cuda.producer_commit %[[MASK_BITS]]
// CHECK: }
// CHECK: } consumers registers 224 {
// CHECK-NOT: tensor.extract
// CHECK: tile.map %[[S:.*]] rows %{{.*}} columns %c112 {{.*}} unit
// CHECK-NEXT: score(
// CHECK: scf.if
// CHECK: %[[READ:.*]] = cuda.consumer_wait %[[MASK_BITS]]
// CHECK-NEXT: cuda.apply_mask_bits %[[S]], %[[READ]] : memref<128x112xf32, #gpu.address_space<private>>, memref<128x112xi1, #gpu.address_space<workgroup>>
// CHECK-NEXT: cuda.consumer_release %[[MASK_BITS]]
// CHECK: tile.row_max %[[S]]

// Barriers lie behind all stages.
//
// TEXT: Pipeline<SharedMaskBits<128, 112>, 4> bitsPipeline{sharedMemory() + 73728, sharedMemory() + 82000, Group::Count};
// TEXT: giveRegisters<56>();
// TEXT-NEXT: if (isMaskWarp<Group>()) {
// TEXT: const auto bits = bitsPipeline.producerAcquire();
// TEXT-NEXT: // mask, as bits
// TEXT-NEXT: maskBits<Group>(bits, [&](int row, int column) {
// TEXT: return column < count{{[0-9]+}} && {{.*}};
// TEXT-NEXT: });
// TEXT-NEXT: bitsPipeline.producerCommit();
// TEXT: } else if (isElected<Group>()) {
// TEXT: takeRegisters<224>();
// TEXT: const auto bits1 = bitsPipeline.consumerWait();
// TEXT-NEXT: applyMaskBits(scores, bits1);
// TEXT-NEXT: bitsPipeline.consumerRelease();
// TEXT: rowMax(

// Positions in masks of mask warps are narrow too, and the first tile has mask bits of its own.
//
// PIPELINED: cuda.mask_bits
// PIPELINED: arith.cmpi sle, {{.*}} : i32
// PIPELINED: tensor.extract
// PIPELINED: consumers
// PIPELINED: cuda.apply_mask_bits
// PIPELINED: cuda.apply_mask_bits
// PIPELINED-NOT: cuda.apply_mask_bits

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
