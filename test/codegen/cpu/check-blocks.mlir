// RUN: burst-opt %s --burst-check-blocks --split-input-file --verify-diagnostics

// 3 MiB, and what is not counted.
func.func @fits(%task: index) attributes {tile.kernel} {
  %a = memref.alloca() : memref<512x1024xf32>
  %b = memref.alloca() : memref<512x1024xbf16>
  %c = memref.alloca(%task) : memref<?xf32>
  %d = memref.alloca() : memref<4xmemref<4xf32>>
  %e = memref.alloca() : memref<4xvector<[4]xf32>>
  return
}

func.func @host() {
  %a = memref.alloca() : memref<1024x1024x1024xf32>
  return
}

// -----

// expected-error @below {{kernel 'attend': its blocks take 3145732 bytes of a stack, wanted at most 3145728: 'tile.shape' of the program gives smaller tiles}}
func.func @attend(%task: index) attributes {tile.kernel} {
  %a = memref.alloca() : memref<512x1024xf32>
  %b = memref.alloca() : memref<512x256xvector<2xbf16>>
  %c = memref.alloca() : memref<512x512xbf16>
  %d = memref.alloca() : memref<1xf32>
  return
}

// -----

// expected-error @below {{its blocks take 18446744073709551615 bytes}}
func.func @attend(%task: index) attributes {tile.kernel} {
  %a = memref.alloca() : memref<16777216x16777216x16777216xf32>
  return
}
