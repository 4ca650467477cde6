// RUN: split-file %s %t
// RUN: burst-translate --burst-to-cuda %t/kernel.mlir | FileCheck %s
// RUN: not burst-translate --burst-to-cuda %t/element.mlir 2>&1 | FileCheck %s --check-prefix=ELEMENT
// RUN: not burst-translate --burst-to-cuda %t/boxes.mlir 2>&1 | FileCheck %s --check-prefix=BOXES
// RUN: not burst-translate --burst-to-cuda %t/branch.mlir 2>&1 | FileCheck %s --check-prefix=BRANCH
// ELEMENT: uses argument 1, of which boxes are brought, in another way
// BOXES: uses argument 1, of which boxes of other sizes are brought
// BRANCH: gives 'memref<64x64xf32, #gpu.address_space<private>>', for which kernels have no text

// Two slices are two maps, and views select between them. How many products may
// be under way is counted.
//
// CHECK: using Group = Team<128, 8>;
// CHECK: const __grid_constant__ TensorMap argument,
// CHECK-NEXT: const __grid_constant__ TensorMap argument1,
// CHECK-NEXT: bool argument2)
// CHECK: Channel<SharedTile<128, 64>, 2> channel{sharedMemory() + 0, sharedMemory() + 32768, Group::Warps};
// CHECK: giveRegisters<24>();
// CHECK: const auto view = boxOf(argument, 0, task, 1, 0);
// CHECK-NEXT: const auto view1 = boxOf(argument1, 0, task, 1, 0);
// CHECK-NEXT: const auto view2 = argument2 ? view : view1;
// CHECK-NEXT: const auto slot = channel.acquire();
// CHECK-NEXT: bring(slot, view2);
// CHECK-NEXT: channel.publish();
// CHECK: takeRegisters<240>();
// CHECK: const auto slot1 = channel.receive();
// CHECK-NEXT: // sums = slot1 slot1^T
// CHECK-NEXT: beginMultiplyTransposed<bf16, false>(sums, slot1, slot1, uniformWarpgroup());
// CHECK-NEXT: // sums1 += slot1 slot1^T
// CHECK-NEXT: beginMultiplyTransposed<bf16, true>(sums1, slot1, slot1, uniformWarpgroup());
// CHECK-NEXT: await<1>(sums);
// CHECK-NEXT: await<0>(sums1);
// CHECK-NEXT: channel.release();

//--- kernel.mlir
#private = #gpu.address_space<private>
!tile = memref<128x64xbf16, #gpu.address_space<workgroup>>
!channel = !cuda.channel<2 of !tile>
!k = memref<1x?x2x64xbf16>
!view = memref<?x64xbf16, strided<[128, 1], offset: ?>>
func.func private @kernel(%task: index, %k: !k, %k1: !k, %first: i1)
    attributes {tile.kernel, cuda.team = 8 : i64} {
  %s = memref.alloca() : memref<128x128xf32, #private>
  %o = memref.alloca() : memref<128x128xf32, #private>
  %c = cuda.channel : !channel
  cuda.synchronize
  cuda.roles producer warps 4 registers 24 {
    %0 = memref.subview %k[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %1 = memref.subview %k1[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %view = arith.select %first, %0, %1 : !view
    %slot = cuda.acquire %c : !channel
    cuda.bring %view, %slot : !view, !tile
    cuda.publish %c : !channel
  } consumers registers 240 {
    %slot = cuda.receive %c : !channel
    %t = cuda.multiply_async %slot, %slot, %s by_rows : !tile, !tile, memref<128x128xf32, #private>
    %u = cuda.multiply_async %slot, %slot, %o accumulate by_rows : !tile, !tile, memref<128x128xf32, #private>
    cuda.await %t
    cuda.await %u
    cuda.release %c : !channel
  }
  return
}

//--- element.mlir
!tile = memref<128x64xbf16, #gpu.address_space<workgroup>>
!channel = !cuda.channel<2 of !tile>
!k = memref<1x?x2x64xbf16>
!view = memref<?x64xbf16, strided<[128, 1], offset: ?>>
func.func private @kernel(%task: index, %k: !k) attributes {tile.kernel, cuda.team = 8 : i64} {
  %s = memref.alloca() : memref<128x128xf32, #gpu.address_space<private>>
  %c = cuda.channel : !channel
  %element = memref.load %k[%task, %task, %task, %task] : !k
  cuda.roles producer warps 4 registers 24 {
    %view = memref.subview %k[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %slot = cuda.acquire %c : !channel
    cuda.bring %view, %slot : !view, !tile
  } consumers registers 240 {
  }
  return
}

//--- boxes.mlir
!tile = memref<128x64xbf16, #gpu.address_space<workgroup>>
!small = memref<64x64xbf16, #gpu.address_space<workgroup>>
!channel = !cuda.channel<2 of !tile>
!small_channel = !cuda.channel<2 of !small>
!k = memref<1x?x2x64xbf16>
!view = memref<?x64xbf16, strided<[128, 1], offset: ?>>
func.func private @kernel(%task: index, %k: !k) attributes {tile.kernel, cuda.team = 8 : i64} {
  %s = memref.alloca() : memref<128x128xf32, #gpu.address_space<private>>
  %c = cuda.channel : !channel
  %d = cuda.channel : !small_channel
  cuda.roles producer warps 4 registers 24 {
    %view = memref.subview %k[0, %task, 1, 0] [1, %task, 1, 64] [1, 1, 1, 1] : !k to !view
    %slot = cuda.acquire %c : !channel
    cuda.bring %view, %slot : !view, !tile
    %other = cuda.acquire %d : !small_channel
    cuda.bring %view, %other : !view, !small
  } consumers registers 240 {
  }
  return
}

//--- branch.mlir
!sums = memref<64x64xf32, #gpu.address_space<private>>
func.func private @kernel(%task: index, %first: i1) attributes {tile.kernel, cuda.team = 4 : i64} {
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
