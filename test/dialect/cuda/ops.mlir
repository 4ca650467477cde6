// RUN: burst-opt %s | burst-opt | FileCheck %s

#shared = #gpu.address_space<workgroup>

// CHECK-LABEL: func.func private @kernel
// CHECK-SAME: tile.warps = 4 : i64
func.func private @kernel(%task: index, %n: index, %q: memref<?x128xbf16>)
    attributes {tile.kernel, tile.warps = 4 : i64} {
  %keys = memref.alloca() : memref<64x128xbf16, #shared>
  // CHECK: cuda.copy %{{.*}}, %{{.*}} : memref<?x128xbf16>, memref<64x128xbf16, #gpu.address_space<workgroup>>
  cuda.copy %q, %keys : memref<?x128xbf16>, memref<64x128xbf16, #shared>
  // CHECK-NEXT: cuda.commit
  cuda.commit
  // CHECK-NEXT: cuda.wait 0
  cuda.wait 0
  // CHECK-NEXT: cuda.synchronize
  cuda.synchronize
  return
}

// CHECK-LABEL: func.func private @program
// CHECK-SAME: cuda.refused = ["128x64 by 8 warps: spills"], cuda.shape = "64x64 by 4 warps"
func.func private @program()
    attributes {cuda.refused = ["128x64 by 8 warps: spills"], cuda.shape = "64x64 by 4 warps"}
