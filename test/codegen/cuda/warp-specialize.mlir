// RUN: split-file %s %t
// RUN: burst-translate --burst-to-cuda %t/kernel.mlir | FileCheck %s
// RUN: not burst-translate --burst-to-cuda %t/element.mlir 2>&1 | FileCheck %s --check-prefix=ELEMENT
// RUN: not burst-translate --burst-to-cuda %t/boxes.mlir 2>&1 | FileCheck %s --check-prefix=BOXES
// RUN: not burst-translate --burst-to-cuda %t/branch.mlir 2>&1 | FileCheck %s --check-prefix=BRANCH
// ELEMENT: uses argument 1, of which boxes are loaded by TMA, in another way
// BOXES: uses argument 1, of which boxes of other sizes are loaded by TMA
// BRANCH: gives 'memref<64x64xf32, #gpu.address_space<private>>', for which kernels have no text

// Each tensor of which boxes are loaded is a map. How many products may be under
// way is counted.
//
// CHECK: using Group = Warps<128, 8>;
// CHECK: const __grid_constant__ TensorMap argument,
// CHECK-NEXT: const __grid_constant__ TensorMap argument1)
// CHECK: Pipeline<SharedTile<128, 64>, 2> pipeline{sharedMemory() + 0, sharedMemory() + 32768, Group::Count};
// CHECK: giveRegisters<24>();
// CHECK: const auto view = boxOf(argument, 0, task, 1, 0);
// CHECK-NEXT: const auto view1 = boxOf(argument1, 0, task, 1, 0);
// CHECK-NEXT: const auto stage = pipeline.producerAcquire();
// CHECK-NEXT: tmaLoad(stage, view);
// CHECK-NEXT: pipeline.producerCommit();
// CHECK-NEXT: const auto stage1 = pipeline.producerAcquire();
// CHECK-NEXT: tmaLoad(stage1, view1);
// CHECK-NEXT: pipeline.producerCommit();
// CHECK: takeRegisters<240>();
// CHECK: const auto stage2 = pipeline.consumerWait();
// CHECK-NEXT: // sums = stage2 stage2^T
// CHECK-NEXT: beginMultiplyTransposed<bf16, false>(sums, stage2, stage2, uniformWarpgroup());
// CHECK-NEXT: // sums1 += stage2 stage2^T
// CHECK-NEXT: beginMultiplyTransposed<bf16, true>(sums1, stage2, stage2, uniformWarpgroup());
// CHECK-NEXT: await<1>(sums);
// CHECK-NEXT: await<0>(sums1);
// CHECK-NEXT: pipeline.consumerRelease();

//--- kernel.mlir
#private = #gpu.address_space<private>
!tile = memref<128x64xbf16, #gpu.address_space<workgroup>>
!pipeline = !cuda.pipeline<2 of !tile>
!k = memref<1x?x2x64xbf16>
!view = memref<?x64xbf16, strided<[128, 1], offset: ?>>
func.func private @kernel(%task: index, %k: !k, %k1: !k)
    attributes {tile.kernel, tile.warps = 8 : i64} {
  %s = memref.alloca() : memref<128x128xf32, #private>
  %o = memref.alloca() : memref<128x128xf32, #private>
  %c = cuda.pipeline : !pipeline
  cuda.synchronize
  cuda.warp_specialize producer warps 4 registers 24 {
    %0 = memref.subview %k[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %1 = memref.subview %k1[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %stage = cuda.producer_acquire %c : !pipeline
    cuda.tma_load %0, %stage : !view, !tile
    cuda.producer_commit %c : !pipeline
    %stage1 = cuda.producer_acquire %c : !pipeline
    cuda.tma_load %1, %stage1 : !view, !tile
    cuda.producer_commit %c : !pipeline
  } consumers registers 240 {
    %stage = cuda.consumer_wait %c : !pipeline
    %t = cuda.multiply_async %stage, %stage, %s by_rows : !tile, !tile, memref<128x128xf32, #private>
    %u = cuda.multiply_async %stage, %stage, %o accumulate by_rows : !tile, !tile, memref<128x128xf32, #private>
    cuda.await %t
    cuda.await %u
    cuda.consumer_release %c : !pipeline
  }
  return
}

//--- element.mlir
!tile = memref<128x64xbf16, #gpu.address_space<workgroup>>
!pipeline = !cuda.pipeline<2 of !tile>
!k = memref<1x?x2x64xbf16>
!view = memref<?x64xbf16, strided<[128, 1], offset: ?>>
func.func private @kernel(%task: index, %k: !k) attributes {tile.kernel, tile.warps = 8 : i64} {
  %s = memref.alloca() : memref<128x128xf32, #gpu.address_space<private>>
  %c = cuda.pipeline : !pipeline
  %element = memref.load %k[%task, %task, %task, %task] : !k
  cuda.warp_specialize producer warps 4 registers 24 {
    %view = memref.subview %k[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %stage = cuda.producer_acquire %c : !pipeline
    cuda.tma_load %view, %stage : !view, !tile
  } consumers registers 240 {
  }
  return
}

//--- boxes.mlir
!tile = memref<128x64xbf16, #gpu.address_space<workgroup>>
!small = memref<64x64xbf16, #gpu.address_space<workgroup>>
!pipeline = !cuda.pipeline<2 of !tile>
!small_pipeline = !cuda.pipeline<2 of !small>
!k = memref<1x?x2x64xbf16>
!view = memref<?x64xbf16, strided<[128, 1], offset: ?>>
func.func private @kernel(%task: index, %k: !k) attributes {tile.kernel, tile.warps = 8 : i64} {
  %s = memref.alloca() : memref<128x128xf32, #gpu.address_space<private>>
  %c = cuda.pipeline : !pipeline
  %d = cuda.pipeline : !small_pipeline
  cuda.warp_specialize producer warps 4 registers 24 {
    %view = memref.subview %k[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %stage = cuda.producer_acquire %c : !pipeline
    cuda.tma_load %view, %stage : !view, !tile
    %other = cuda.producer_acquire %d : !small_pipeline
    cuda.tma_load %view, %other : !view, !small
  } consumers registers 240 {
  }
  return
}

//--- branch.mlir
!sums = memref<64x64xf32, #gpu.address_space<private>>
func.func private @kernel(%task: index, %first: i1) attributes {tile.kernel, tile.warps = 4 : i64} {
  %a = memref.alloca() : !sums
  %b = memref.alloca() : !sums
  %c = scf.if %first -> (!sums) {
    scf.yield %a : !sums
  } else {
    scf.yield %b : !sums
  }
  tile.fill %c with 0.0 : !sums
  return
}
