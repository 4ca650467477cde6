// RUN: burst-opt %s | burst-opt | FileCheck %s

#shared = #gpu.address_space<workgroup>
#private = #gpu.address_space<private>
!tile = memref<128x64xbf16, #shared>
!channel = !cuda.channel<2 of !tile>

// CHECK-LABEL: func.func private @kernel
func.func private @kernel(%task: index, %n: index, %k: memref<1x?x2x64xbf16>, %s: memref<128x128xf32, #private>, %o: memref<128x64xf32, #private>, %w: memref<128x128xbf16, #private>)
    attributes {tile.kernel, cuda.team = 8 : i64} {
  // CHECK: %[[KEYS:.*]] = cuda.channel : !cuda.channel<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
  %keys = cuda.channel : !channel
  cuda.synchronize
  // CHECK: cuda.roles producer warps 4 registers 24 {
  cuda.roles producer warps 4 registers 24 {
    %view = memref.subview %k[0, %n, 1, 0] [1, %n, 1, 64] [1, 1, 1, 1]
        : memref<1x?x2x64xbf16> to memref<?x64xbf16, strided<[128, 1], offset: ?>>
    // CHECK: %[[SLOT:.*]] = cuda.acquire %[[KEYS]] : !cuda.channel<2 of
    %slot = cuda.acquire %keys : !channel
    // CHECK: cuda.bring %{{.*}}, %[[SLOT]] :
    cuda.bring %view, %slot : memref<?x64xbf16, strided<[128, 1], offset: ?>>, !tile
    // CHECK: cuda.publish %[[KEYS]] :
    cuda.publish %keys : !channel
  // CHECK: } consumers registers 240 {
  } consumers registers 240 {
    // CHECK: %[[SLOT:.*]] = cuda.receive %[[KEYS]] :
    %slot = cuda.receive %keys : !channel
    // CHECK: cuda.begin_turns
    cuda.begin_turns
    // CHECK: cuda.clear %[[SLOT]] from %{{.*}} :
    cuda.clear %slot from %n : !tile
    // CHECK: cuda.take_turn
    cuda.take_turn
    // CHECK: %[[T:.*]] = cuda.multiply_async %[[SLOT]], %[[SLOT]], %{{.*}} factor 1.800000e-01 by_rows :
    %t = cuda.multiply_async %slot, %slot, %s factor 0.18 by_rows : !tile, !tile, memref<128x128xf32, #private>
    // CHECK: cuda.pass_turn
    cuda.pass_turn
    // CHECK: cuda.await %[[T]]
    cuda.await %t
    // CHECK: cuda.round %{{.*}}, %[[WEIGHTS:.*]] : memref<128x128xf32, #gpu.address_space<private>>, memref<128x128xbf16, #gpu.address_space<private>>
    cuda.round %s, %w : memref<128x128xf32, #private>, memref<128x128xbf16, #private>
    // CHECK: %[[U:.*]] = cuda.multiply_async %[[WEIGHTS]], %[[SLOT]], %{{.*}} accumulate :
    %u = cuda.multiply_async %w, %slot, %o accumulate : memref<128x128xbf16, #private>, !tile, memref<128x64xf32, #private>
    // CHECK: cuda.await %[[U]]
    cuda.await %u
    // CHECK: cuda.end_turns
    cuda.end_turns
    // CHECK: cuda.release %[[KEYS]] :
    cuda.release %keys : !channel
  }
  return
}

!marks = !cuda.channel<4 of memref<128x112xi1, #shared>>

// CHECK-LABEL: func.func private @marked
func.func private @marked(%task: index, %n: index, %table: memref<64xi32>, %s: memref<128x112xf32, #private>, %i: memref<128xindex>, %j: memref<112xindex>)
    attributes {tile.kernel, cuda.team = 8 : i64} {
  // CHECK: %[[MARKS:.*]] = cuda.channel : !cuda.channel<4 of memref<128x112xi1, #gpu.address_space<workgroup>>>
  %marks = cuda.channel : !marks
  cuda.synchronize
  // CHECK: cuda.roles producer warps 4 registers 56 {
  cuda.roles producer warps 4 registers 56 {
  // CHECK-NEXT: } markers {
  } markers {
    // CHECK-NEXT: %[[SLOT:.*]] = cuda.acquire %[[MARKS]] :
    %slot = cuda.acquire %marks : !marks
    // CHECK-NEXT: cuda.mark %[[SLOT]] columns %{{.*}} at(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) of(%{{.*}}, %{{.*}})
    // CHECK-NEXT: mask(%{{.*}}, %[[I:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %[[T:.*]] = %{{.*}} : memref<64xi32>) {
    cuda.mark %slot columns %n at (%n, %n, %i, %j) of (%n, %n)
        mask(%b0, %h0, %i0, %j0, %sq0, %sk0, %t = %table : memref<64xi32>) {
          // CHECK-NEXT: tensor.extract %[[T]][%[[I]]] : tensor<64xi32>
          %mine = tensor.extract %t[%i0] : tensor<64xi32>
          %other = tensor.extract %t[%j0] : tensor<64xi32>
          %keep = arith.cmpi eq, %mine, %other : i32
          burst.yield %keep : i1
        } : memref<128x112xi1, #shared>, memref<128xindex>, memref<112xindex>
    // CHECK: cuda.publish %[[MARKS]] :
    cuda.publish %marks : !marks
  // CHECK-NEXT: } consumers registers 224 {
  } consumers registers 224 {
    // CHECK-NEXT: %[[READ:.*]] = cuda.receive %[[MARKS]] :
    %slot = cuda.receive %marks : !marks
    // CHECK-NEXT: cuda.hide %{{.*}}, %[[READ]] : memref<128x112xf32, #gpu.address_space<private>>, memref<128x112xi1, #gpu.address_space<workgroup>>
    cuda.hide %s, %slot : memref<128x112xf32, #private>, memref<128x112xi1, #shared>
    // CHECK-NEXT: cuda.release %[[MARKS]] :
    cuda.release %marks : !marks
  }
  return
}
