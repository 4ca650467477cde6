// RUN: burst-opt %s --split-input-file --verify-diagnostics

func.func @copy_c1(%view: memref<?x64xbf16>, %block: memref<64x64xbf16>) {
  // expected-error @below {{needs a block in shared memory of the view's type of element, got: 'memref<?x64xbf16>' and 'memref<64x64xbf16>'}}
  cuda.copy %view, %block : memref<?x64xbf16>, memref<64x64xbf16>
  return
}

// -----

func.func @copy_c1(%view: memref<?x64xf16>, %block: memref<64x64xbf16, #gpu.address_space<workgroup>>) {
  // expected-error @below {{needs a block in shared memory of the view's type of element}}
  cuda.copy %view, %block : memref<?x64xf16>, memref<64x64xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c2(%view: memref<?x12xbf16>, %block: memref<64x16xbf16, #gpu.address_space<workgroup>>) {
  // expected-error @below {{needs a view with a contiguous last dimension, a multiple of 8 and at most 16, got: 'memref<?x12xbf16>'}}
  cuda.copy %view, %block : memref<?x12xbf16>, memref<64x16xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c2(%view: memref<?x24xbf16>, %block: memref<64x16xbf16, #gpu.address_space<workgroup>>) {
  // expected-error @below {{a multiple of 8 and at most 16, got: 'memref<?x24xbf16>'}}
  cuda.copy %view, %block : memref<?x24xbf16>, memref<64x16xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @copy_c2(%view: memref<?x16xbf16, strided<[?, 2]>>, %block: memref<64x16xbf16, #gpu.address_space<workgroup>>) {
  // expected-error @below {{needs a view with a contiguous last dimension}}
  cuda.copy %view, %block : memref<?x16xbf16, strided<[?, 2]>>, memref<64x16xbf16, #gpu.address_space<workgroup>>
  return
}

// -----

func.func @wait() {
  // expected-error @below {{attribute 'pending' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  cuda.wait -1
  return
}

// -----

// expected-error @below {{has an attribute that the cuda dialect does not have: "cuda.crew"}}
func.func private @warps(%task: index) attributes {tile.kernel, cuda.crew = 4} {
  return
}

// -----

// expected-error @below {{with cuda.shape needs a string}}
func.func private @shape() attributes {cuda.shape = 4}

// -----

// expected-error @below {{with cuda.refused needs strings}}
func.func private @refused() attributes {cuda.refused = [4]}
