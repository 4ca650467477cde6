// RUN: split-file %s %t
// RUN: burst-opt %t/causal.mlir --burst-to-ring=fuse=false --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=128 columns=64 warps=8" --canonicalize --cse --cuda-specialize-warps --canonicalize --cse -mlir-print-debuginfo -o %t/specialized.mlir
// RUN: burst-opt %t/specialized.mlir --cuda-software-pipeline --canonicalize --cse -mlir-print-debuginfo -o %t/pipelined.mlir
// RUN: FileCheck %s <%t/pipelined.mlir
// RUN: burst-translate --burst-to-cuda %t/pipelined.mlir | FileCheck %s --check-prefix=TEXT
// What is pipelined is not pipelined again, and what is not warp-specialized stays as it is.
// RUN: burst-opt %t/pipelined.mlir --cuda-software-pipeline -mlir-print-debuginfo 2>%t/remark | diff %t/pipelined.mlir -
// RUN: FileCheck %s --check-prefix=AGAIN <%t/remark
// RUN: burst-opt %t/other.mlir --cuda-software-pipeline --verify-diagnostics -split-input-file | FileCheck %s --check-prefix=OTHER
// AGAIN: remark: is not software-pipelined:

// The first tile; a partly masked one clears the values behind its end.
//
// CHECK-LABEL: func.func private @causal_attend(
// CHECK: } consumers registers 240 {
// CHECK: %[[Q:.*]] = cuda.consumer_wait %[[QUERIES:[^ ]*]]
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[COUNT:.*]], %c0
// CHECK-NEXT: scf.if %[[ANY]] {
// CHECK-NEXT: %[[MASKED:.*]] = arith.cmpi sle, %[[FULL:.*]], %c0
// CHECK-NEXT: %[[K:.*]] = cuda.consumer_wait %[[KEYS:[^ ]*]]
// CHECK-NEXT: %[[T:.*]] = cuda.multiply_async %[[Q]], %[[K]], %[[S:[^ ]*]] factor {{.*}} by_rows
// CHECK-NEXT: cuda.await %[[T]]
// CHECK-NEXT: cuda.consumer_release %[[KEYS]]
// CHECK-NEXT: %[[END:.*]] = scf.if %[[MASKED]] -> (index) {
// CHECK: tile.map %[[S]]
// CHECK: }
// CHECK: tile.row_max %[[S]]
// CHECK-NEXT: tile.exponentials %[[S]]
// CHECK-NEXT: tile.rescale %[[O:[^,]*]],
// CHECK-NEXT: cuda.round %[[S]], %[[W:[^ ]*]] :
// CHECK-NEXT: scf.if %[[MASKED]] {
// CHECK-NEXT: %[[V:.*]] = cuda.consumer_wait %[[VALUES:[^ ]*]]
// CHECK-NEXT: cuda.clear %[[V]] from %[[END]]
// CHECK-NEXT: }
// CHECK-NEXT: }
// The others: outputs of the tile before are awaited as late as can be.
// CHECK-NEXT: scf.for %[[ITERATION:.*]] = %c1 to %[[COUNT]]
// CHECK-NEXT: %[[MASKED:.*]] = arith.cmpi sge, %[[ITERATION]], %[[FULL]]
// CHECK-NEXT: %[[K:.*]] = cuda.consumer_wait %[[KEYS]]
// CHECK-NEXT: %[[T:.*]] = cuda.multiply_async %[[Q]], %[[K]], %[[S]] factor {{.*}} by_rows
// CHECK-NEXT: %[[V:.*]] = cuda.consumer_wait %[[VALUES]]
// CHECK-NEXT: %[[U:.*]] = cuda.multiply_async %[[W]], %[[V]], %[[O]] accumulate
// CHECK-NEXT: cuda.await %[[T]]
// CHECK-NEXT: cuda.consumer_release %[[KEYS]]
// CHECK-NEXT: %[[END:.*]] = scf.if %[[MASKED]] -> (index) {
// CHECK: tile.map %[[S]] rows %{{.*}} columns %[[COLUMNS:[^ ]*]] at
// CHECK: scf.yield %[[COLUMNS]]
// CHECK: scf.yield %c64
// CHECK: tile.row_max %[[S]]
// CHECK-NEXT: tile.exponentials %[[S]]
// CHECK-NEXT: cuda.await %[[U]]
// CHECK-NEXT: cuda.consumer_release %[[VALUES]]
// CHECK-NEXT: tile.rescale %[[O]],
// CHECK-NEXT: cuda.round %[[S]], %[[W]] :
// CHECK-NEXT: scf.if %[[MASKED]] {
// CHECK-NEXT: %[[V:.*]] = cuda.consumer_wait %[[VALUES]]
// CHECK-NEXT: cuda.clear %[[V]] from %[[END]]
// CHECK-NEXT: }
// CHECK-NEXT: }
// The last outputs.
// CHECK-NEXT: scf.if %[[ANY]] {
// CHECK-NEXT: %[[V:.*]] = cuda.consumer_wait %[[VALUES]]
// CHECK-NEXT: %[[U:.*]] = cuda.multiply_async %[[W]], %[[V]], %[[O]] accumulate
// CHECK-NEXT: cuda.await %[[U]]
// CHECK-NEXT: cuda.consumer_release %[[VALUES]]
// CHECK-NEXT: }
// CHECK-NEXT: tile.store %[[O]]

// One product may be under way where scores are read.
//
// TEXT: for (int iteration{{[0-9]*}} = 1; iteration
// TEXT: beginMultiplyTransposed<bf16, false>(scores,
// TEXT: beginMultiply<bf16, true>(o, weights,
// TEXT-NEXT: await<1>(scores);
// TEXT-NEXT: keyTilePipeline.consumerRelease();
// TEXT-NEXT: int [[END:count[0-9]*]];
// TEXT-NEXT: if (x{{[0-9]*}}) {
// TEXT: [[END]] = count{{[0-9]*}};
// TEXT-NEXT: } else {
// TEXT-NEXT: [[END]] = 64;
// TEXT-NEXT: }
// TEXT: exponentials(scores,
// TEXT-NEXT: await<0>(o);

// OTHER-LABEL: @one
// OTHER: %[[ANY:.*]] = arith.cmpi slt, %c0{{[_0-9]*}}, %arg1
// OTHER: scf.if %[[ANY]] {
// OTHER: scf.for
// OTHER: scf.if %[[ANY]] {
// OTHER-LABEL: @several
// OTHER-NOT: scf.if

//--- causal.mlir
shard.grid @cp(shape = 1)
!q = tensor<1x200x4x64xbf16>
!k = tensor<1x200x2x64xbf16>
!l = tensor<1x4x200xf32>
func.func @causal(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

//--- other.mlir
!pipeline = !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!sums = memref<64x64xf32, #gpu.address_space<private>>
!weights = memref<64x64xbf16, #gpu.address_space<private>>
func.func private @one(%task: index, %n: index, %q: !tile, %s: !sums, %w: !weights, %o: !sums) attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %keys = cuda.pipeline : !pipeline
  %values = cuda.pipeline : !pipeline
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    scf.for %i = %c0 to %n step %c1 {
      %k = cuda.consumer_wait %keys : !pipeline
      %t = cuda.multiply_async %q, %k, %s by_rows : !tile, !tile, !sums
      cuda.await %t
      cuda.consumer_release %keys : !pipeline
      cuda.round %s, %w : !sums, !weights
      %v = cuda.consumer_wait %values : !pipeline
      %u = cuda.multiply_async %w, %v, %o accumulate : !weights, !tile, !sums
      cuda.await %u
      cuda.consumer_release %values : !pipeline
    }
  }
  return
}

// -----

!pipeline = !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!sums = memref<64x64xf32, #gpu.address_space<private>>
!weights = memref<64x64xbf16, #gpu.address_space<private>>
func.func private @several(%task: index, %n: index, %q: !tile, %s: !sums, %w: !weights, %o: !sums) attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %keys = cuda.pipeline : !pipeline
  %values = cuda.pipeline : !pipeline
  // expected-remark @below {{is not software-pipelined: 2 loops have products, wanted one}}
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    scf.for %i = %c0 to %n step %c1 {
      %k = cuda.consumer_wait %keys : !pipeline
      %t = cuda.multiply_async %q, %k, %s by_rows : !tile, !tile, !sums
      cuda.await %t
      cuda.consumer_release %keys : !pipeline
      cuda.round %s, %w : !sums, !weights
      %v = cuda.consumer_wait %values : !pipeline
      %u = cuda.multiply_async %w, %v, %o accumulate : !weights, !tile, !sums
      cuda.await %u
      cuda.consumer_release %values : !pipeline
    }
    scf.for %i = %c0 to %n step %c1 {
      %k = cuda.consumer_wait %keys : !pipeline
      %t = cuda.multiply_async %q, %k, %s by_rows : !tile, !tile, !sums
      cuda.await %t
      cuda.consumer_release %keys : !pipeline
      cuda.round %s, %w : !sums, !weights
      %v = cuda.consumer_wait %values : !pipeline
      %u = cuda.multiply_async %w, %v, %o accumulate : !weights, !tile, !sums
      cuda.await %u
      cuda.consumer_release %values : !pipeline
    }
  }
  return
}

// -----

// A product outside all loops.
!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!sums = memref<64x64xf32, #gpu.address_space<private>>
func.func private @product(%task: index, %q: !tile, %s: !sums) attributes {tile.kernel, tile.warps = 4 : i64} {
  // expected-remark @below {{is not software-pipelined: a loop does not make scores, weights of them and outputs in this order}}
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    %t = cuda.multiply_async %q, %q, %s by_rows : !tile, !tile, !sums
    cuda.await %t
  }
  return
}
