// RUN: burst-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{a pipeline has at least one stage, got: 0}}
func.func private @pipeline(!cuda.pipeline<0 of memref<64x64xbf16, #gpu.address_space<workgroup>>>)

// -----

// expected-error @below {{a stage is a tile of 16 bits in shared memory with up to 256 rows in eights and columns in sixteens, got: 'memref<64x64xbf16>'}}
func.func private @pipeline(!cuda.pipeline<2 of memref<64x64xbf16>>)

// -----

// expected-error @below {{a stage is a tile of 16 bits}}
func.func private @pipeline(!cuda.pipeline<2 of memref<64x40xbf16, #gpu.address_space<workgroup>>>)

// -----

func.func private @warp_specialize_c1() {
  // expected-error @below {{stands in no kernel with tile.warps}}
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
  }
  return
}

// -----

func.func private @warp_specialize_c2(%task: index) attributes {tile.kernel, tile.warps = 6 : i64} {
  // expected-error @below {{needs whole warpgroups of 4 warps, got: 6 warps of consumers and 4 of the producer}}
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
  }
  return
}

// -----

func.func private @warp_specialize_c3(%task: index) attributes {tile.kernel, tile.warps = 8 : i64} {
  // expected-error @below {{needs registers in eights from 24 to 256, got: 20}}
  cuda.warp_specialize producer warps 4 registers 20 {
  } consumers registers 240 {
  }
  return
}

// -----

func.func private @warp_specialize_c3(%task: index) attributes {tile.kernel, tile.warps = 8 : i64} {
  // expected-error @below {{needs at most 65536 registers of a block, got: 68608}}
  cuda.warp_specialize producer warps 4 registers 56 {
  } consumers registers 240 {
  }
  return
}

// -----

!pipeline = !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @producer_acquire_c1(%task: index, %c: !pipeline) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{stands outside what the producer does}}
    cuda.producer_acquire %c : !pipeline
  }
  return
}

// -----

!pipeline = !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @producer_commit_c1(%c: !pipeline) {
  // expected-error @below {{stands outside what the producer does}}
  cuda.producer_commit %c : !pipeline
  return
}

// -----

!pipeline = !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @consumer_wait_c1(%task: index, %c: !pipeline) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
    // expected-error @below {{stands outside what consumers do}}
    cuda.consumer_wait %c : !pipeline
  } consumers registers 240 {
  }
  return
}

// -----

!pipeline = !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @consumer_release_c1(%c: !pipeline) {
  // expected-error @below {{stands outside what consumers do}}
  cuda.consumer_release %c : !pipeline
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!pipeline = !cuda.pipeline<2 of !tile>
func.func private @tma_load_c1(%task: index, %view: memref<?x64xbf16>, %stage: !tile) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
    // expected-error @below {{needs a stage of cuda.producer_acquire}}
    cuda.tma_load %view, %stage : memref<?x64xbf16>, !tile
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!pipeline = !cuda.pipeline<2 of !tile>
func.func private @tma_load_c2(%task: index, %view: memref<?x48xbf16>, %c: !pipeline) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
    %stage = cuda.producer_acquire %c : !pipeline
    // expected-error @below {{needs a view with the stage's columns and elements, got: 'memref<?x48xbf16>' and}}
    cuda.tma_load %view, %stage : memref<?x48xbf16>, !tile
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!pipeline = !cuda.pipeline<2 of !tile>
func.func private @tma_load_c2(%task: index, %view: memref<?x64xbf16>, %c: !pipeline) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
    %stage = cuda.producer_acquire %c : !pipeline
    // expected-error @below {{needs a view of rows of a kernel's parameter}}
    cuda.tma_load %view, %stage : memref<?x64xbf16>, !tile
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
func.func private @clear_c1(%task: index, %stage: !tile) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{needs a stage of cuda.consumer_wait}}
    cuda.clear %stage from %task : !tile
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!sums = memref<64x64xf32, #gpu.address_space<private>>
!weights = memref<64x64xbf16, #gpu.address_space<private>>
func.func private @multiply_async_c2(%task: index, %a: !weights, %b: !tile, %c: !sums) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{has operands that asynchronous products do not take}}
    %t = cuda.multiply_async %a, %b, %c by_rows : !weights, !tile, !sums
    cuda.await %t
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!sums = memref<64x64xf32, #gpu.address_space<private>>
!weights = memref<64x64xbf16, #gpu.address_space<private>>
func.func private @multiply_async_c3(%task: index, %a: !weights, %b: !tile, %c: !sums) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{must be awaited once, in its block}}
    %t = cuda.multiply_async %a, %b, %c : !weights, !tile, !sums
  }
  return
}

// -----

func.func private @await_c1(%t: !gpu.async.token) {
  // expected-error @below {{needs a token of cuda.multiply_async}}
  cuda.await %t
  return
}

// -----

!sums = memref<64x64xf32, #gpu.address_space<private>>
!weights = memref<64x64xbf16, #gpu.address_space<private>>
func.func private @round_c1(%s: !sums, %weights: !weights) {
  // expected-error @below {{stands outside what consumers do}}
  cuda.round %s, %weights : !sums, !weights
  return
}

// -----

!sums = memref<64x64xf32, #gpu.address_space<private>>
!weights = memref<64x32xbf16, #gpu.address_space<private>>
func.func private @round_c2(%task: index, %s: !sums, %weights: !weights) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{needs blocks of one shape in registers, got:}}
    cuda.round %s, %weights : !sums, !weights
  }
  return
}

// -----

func.func private @ping_pong_wait_c1(%task: index) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{needs several warpgroups of consumers, got: 4 warps}}
    cuda.ping_pong_wait
  }
  return
}

// -----

func.func private @ping_pong_signal_c1(%task: index) attributes {tile.kernel, tile.warps = 8 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
    // expected-error @below {{stands outside what consumers do}}
    cuda.ping_pong_signal
  } consumers registers 240 {
  }
  return
}

// -----

// expected-error @below {{mask bits have rows in thirty-twos and columns in eights, got: 'memref<48x64xi1, #gpu.address_space<workgroup>>'}}
func.func private @pipeline(!cuda.pipeline<2 of memref<48x64xi1, #gpu.address_space<workgroup>>>)

// -----

!mask_bits = !cuda.pipeline<2 of memref<64x64xi1, #gpu.address_space<workgroup>>>
func.func private @producer_acquire_c1(%task: index, %c: !mask_bits) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
    // expected-error @below {{stands outside what mask warps do}}
    %stage = cuda.producer_acquire %c : !mask_bits
  } consumers registers 240 {
  }
  return
}

// -----

!pipeline = !cuda.pipeline<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @producer_commit_c1(%task: index, %c: !pipeline) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } mask_warps {
    // expected-error @below {{stands outside what the producer does}}
    cuda.producer_commit %c : !pipeline
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xi1, #gpu.address_space<workgroup>>
func.func private @mask_bits_c1(%task: index, %stage: !tile, %i: memref<64xindex>) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } mask_warps {
    // expected-error @below {{needs a stage of cuda.producer_acquire}}
    cuda.mask_bits %stage columns %task at (%task, %task, %i, %i) of (%task, %task)
        mask(%b, %h, %i0, %j0, %sq, %sk) {
          %keep = arith.cmpi sle, %j0, %i0 : index
          burst.yield %keep : i1
        } : !tile, memref<64xindex>, memref<64xindex>
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xi1, #gpu.address_space<workgroup>>
!mask_bits = !cuda.pipeline<2 of !tile>
func.func private @mask_bits_c2(%task: index, %c: !mask_bits, %i: memref<64xindex>, %j: memref<32xindex>) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } mask_warps {
    %stage = cuda.producer_acquire %c : !mask_bits
    // expected-error @below {{needs a position for each row and column of 'memref<64x64xi1, #gpu.address_space<workgroup>>', got: 'memref<64xindex>' and 'memref<32xindex>'}}
    cuda.mask_bits %stage columns %task at (%task, %task, %i, %j) of (%task, %task)
        mask(%b, %h, %i0, %j0, %sq, %sk) {
          %keep = arith.cmpi sle, %j0, %i0 : index
          burst.yield %keep : i1
        } : !tile, memref<64xindex>, memref<32xindex>
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xi1, #gpu.address_space<workgroup>>
!mask_bits = !cuda.pipeline<2 of !tile>
func.func private @mask_bits_c3(%task: index, %c: !mask_bits, %i: memref<64xindex>) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } mask_warps {
    %stage = cuda.producer_acquire %c : !mask_bits
    cuda.mask_bits %stage columns %task at (%task, %task, %i, %i) of (%task, %task)
        mask(%b, %h, %i0, %j0, %sq, %sk) {
          // expected-error @below {{must yield ('i1') from a mask region, got: ('index')}}
          burst.yield %j0 : index
        } : !tile, memref<64xindex>, memref<64xindex>
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xi1, #gpu.address_space<workgroup>>
func.func private @apply_mask_bits_c1(%s: memref<64x64xf32, #gpu.address_space<private>>, %stage: !tile) {
  // expected-error @below {{stands outside what consumers do}}
  cuda.apply_mask_bits %s, %stage : memref<64x64xf32, #gpu.address_space<private>>, !tile
  return
}

// -----

!tile = memref<64x64xi1, #gpu.address_space<workgroup>>
!mask_bits = !cuda.pipeline<2 of !tile>
!sums = memref<64x32xf32, #gpu.address_space<private>>
func.func private @apply_mask_bits_c2(%task: index, %c: !mask_bits, %s: !sums) attributes {tile.kernel, tile.warps = 4 : i64} {
  cuda.warp_specialize producer warps 4 registers 24 {
  } consumers registers 240 {
    %stage = cuda.consumer_wait %c : !mask_bits
    // expected-error @below {{needs a block in registers of the stage's shape, got: 'memref<64x32xf32,}}
    cuda.apply_mask_bits %s, %stage : !sums, !tile
  }
  return
}
