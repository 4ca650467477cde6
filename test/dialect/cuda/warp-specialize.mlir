// RUN: burst-opt %s | burst-opt | FileCheck %s

#shared = #gpu.address_space<workgroup>
#private = #gpu.address_space<private>
!tile = memref<128x64xbf16, #shared>
!pipeline = !cuda.pipeline<2 of !tile>

// CHECK-LABEL: func.func private @kernel
func.func private @kernel(%task: index, %n: index, %k: memref<1x?x2x64xbf16>, %s: memref<128x128xf32, #private>, %o: memref<128x64xf32, #private>, %w: memref<128x128xbf16, #private>)
    attributes {tile.kernel, tile.warps = 8 : i64} {
  // CHECK: %[[KEYS:.*]] = cuda.pipeline : !cuda.pipeline<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
  %keys = cuda.pipeline : !pipeline
  cuda.synchronize
  // CHECK: cuda.warp_specialize producer warps 4 registers 24 {
  cuda.warp_specialize producer warps 4 registers 24 {
    %view = memref.subview %k[0, %n, 1, 0] [1, %n, 1, 64] [1, 1, 1, 1]
        : memref<1x?x2x64xbf16> to memref<?x64xbf16, strided<[128, 1], offset: ?>>
    // CHECK: %[[STAGE:.*]] = cuda.producer_acquire %[[KEYS]] : !cuda.pipeline<2 of
    %stage = cuda.producer_acquire %keys : !pipeline
    // CHECK: cuda.tma_load %{{.*}}, %[[STAGE]] :
    cuda.tma_load %view, %stage : memref<?x64xbf16, strided<[128, 1], offset: ?>>, !tile
    // CHECK: cuda.producer_commit %[[KEYS]] :
    cuda.producer_commit %keys : !pipeline
  // CHECK: } consumers registers 240 {
  } consumers registers 240 {
    // CHECK: %[[STAGE:.*]] = cuda.consumer_wait %[[KEYS]] :
    %stage = cuda.consumer_wait %keys : !pipeline
    // CHECK: cuda.ping_pong_begin
    cuda.ping_pong_begin
    // CHECK: cuda.clear %[[STAGE]] from %{{.*}} :
    cuda.clear %stage from %n : !tile
    // CHECK: cuda.ping_pong_wait
    cuda.ping_pong_wait
    // CHECK: %[[T:.*]] = cuda.multiply_async %[[STAGE]], %[[STAGE]], %{{.*}} factor 1.800000e-01 by_rows :
    %t = cuda.multiply_async %stage, %stage, %s factor 0.18 by_rows : !tile, !tile, memref<128x128xf32, #private>
    // CHECK: cuda.ping_pong_signal
    cuda.ping_pong_signal
    // CHECK: cuda.await %[[T]]
    cuda.await %t
    // CHECK: cuda.round %{{.*}}, %[[WEIGHTS:.*]] : memref<128x128xf32, #gpu.address_space<private>>, memref<128x128xbf16, #gpu.address_space<private>>
    cuda.round %s, %w : memref<128x128xf32, #private>, memref<128x128xbf16, #private>
    // CHECK: %[[U:.*]] = cuda.multiply_async %[[WEIGHTS]], %[[STAGE]], %{{.*}} accumulate :
    %u = cuda.multiply_async %w, %stage, %o accumulate : memref<128x128xbf16, #private>, !tile, memref<128x64xf32, #private>
    // CHECK: cuda.await %[[U]]
    cuda.await %u
    // CHECK: cuda.ping_pong_end
    cuda.ping_pong_end
    // CHECK: cuda.consumer_release %[[KEYS]] :
    cuda.consumer_release %keys : !pipeline
  }
  return
}

!mask_bits = !cuda.pipeline<4 of memref<128x112xi1, #shared>>

// CHECK-LABEL: func.func private @mask_bits
func.func private @mask_bits(%task: index, %n: index, %table: memref<64xi32>, %s: memref<128x112xf32, #private>, %i: memref<128xindex>, %j: memref<112xindex>)
    attributes {tile.kernel, tile.warps = 8 : i64} {
  // CHECK: %[[MASK_BITS:.*]] = cuda.pipeline : !cuda.pipeline<4 of memref<128x112xi1, #gpu.address_space<workgroup>>>
  %bits = cuda.pipeline : !mask_bits
  cuda.synchronize
  // CHECK: cuda.warp_specialize producer warps 4 registers 56 {
  cuda.warp_specialize producer warps 4 registers 56 {
  // CHECK-NEXT: } mask_warps {
  } mask_warps {
    // CHECK-NEXT: %[[STAGE:.*]] = cuda.producer_acquire %[[MASK_BITS]] :
    %stage = cuda.producer_acquire %bits : !mask_bits
    // CHECK-NEXT: cuda.mask_bits %[[STAGE]] columns %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) of(%{{.*}}, %{{.*}})
    // CHECK-NEXT: mask(%{{.*}}, %[[I:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %[[T:.*]] = %{{.*}} : memref<64xi32>) {
    cuda.mask_bits %stage columns %n at (%n, %n, %i, %j) of (%n, %n)
        mask(%b0, %h0, %i0, %j0, %sq0, %sk0, %t = %table : memref<64xi32>) {
          // CHECK-NEXT: tensor.extract %[[T]][%[[I]]] : tensor<64xi32>
          %mine = tensor.extract %t[%i0] : tensor<64xi32>
          %other = tensor.extract %t[%j0] : tensor<64xi32>
          %keep = arith.cmpi eq, %mine, %other : i32
          burst.yield %keep : i1
        } : memref<128x112xi1, #shared>, memref<128xindex>, memref<112xindex>
    // CHECK: cuda.producer_commit %[[MASK_BITS]] :
    cuda.producer_commit %bits : !mask_bits
  // CHECK-NEXT: } consumers registers 224 {
  } consumers registers 224 {
    // CHECK-NEXT: %[[READ:.*]] = cuda.consumer_wait %[[MASK_BITS]] :
    %stage = cuda.consumer_wait %bits : !mask_bits
    // CHECK-NEXT: cuda.apply_mask_bits %{{.*}}, %[[READ]] : memref<128x112xf32, #gpu.address_space<private>>, memref<128x112xi1, #gpu.address_space<workgroup>>
    cuda.apply_mask_bits %s, %stage : memref<128x112xf32, #private>, memref<128x112xi1, #shared>
    // CHECK-NEXT: cuda.consumer_release %[[MASK_BITS]] :
    cuda.consumer_release %bits : !mask_bits
  }
  return
}
