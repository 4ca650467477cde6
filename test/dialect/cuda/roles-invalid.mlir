// RUN: burst-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{a channel has at least one slot, got: 0}}
func.func private @channel(!cuda.channel<0 of memref<64x64xbf16, #gpu.address_space<workgroup>>>)

// -----

// expected-error @below {{a slot is a tile of 16 bits in shared memory with up to 256 rows in eights and columns in sixteens, got: 'memref<64x64xbf16>'}}
func.func private @channel(!cuda.channel<2 of memref<64x64xbf16>>)

// -----

// expected-error @below {{a slot is a tile of 16 bits}}
func.func private @channel(!cuda.channel<2 of memref<64x40xbf16, #gpu.address_space<workgroup>>>)

// -----

func.func private @roles_c1() {
  // expected-error @below {{stands in no kernel with cuda.team}}
  cuda.roles producer warps 4 registers 24 {
  } consumers registers 240 {
  }
  return
}

// -----

func.func private @roles_c2(%task: index) attributes {tile.kernel, cuda.team = 6 : i64} {
  // expected-error @below {{needs whole warpgroups of 4 warps, got: 6 warps of consumers and 4 of the producer}}
  cuda.roles producer warps 4 registers 24 {
  } consumers registers 240 {
  }
  return
}

// -----

func.func private @roles_c3(%task: index) attributes {tile.kernel, cuda.team = 8 : i64} {
  // expected-error @below {{needs registers in eights from 24 to 256, got: 20}}
  cuda.roles producer warps 4 registers 20 {
  } consumers registers 240 {
  }
  return
}

// -----

func.func private @roles_c3(%task: index) attributes {tile.kernel, cuda.team = 8 : i64} {
  // expected-error @below {{needs at most 65536 registers of a block, got: 68608}}
  cuda.roles producer warps 4 registers 56 {
  } consumers registers 240 {
  }
  return
}

// -----

!channel = !cuda.channel<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @acquire_c1(%task: index, %c: !channel) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{stands outside what the producer does}}
    cuda.acquire %c : !channel
  }
  return
}

// -----

!channel = !cuda.channel<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @publish_c1(%c: !channel) {
  // expected-error @below {{stands outside what the producer does}}
  cuda.publish %c : !channel
  return
}

// -----

!channel = !cuda.channel<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @receive_c1(%task: index, %c: !channel) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
    // expected-error @below {{stands outside what consumers do}}
    cuda.receive %c : !channel
  } consumers registers 240 {
  }
  return
}

// -----

!channel = !cuda.channel<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @release_c1(%c: !channel) {
  // expected-error @below {{stands outside what consumers do}}
  cuda.release %c : !channel
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!channel = !cuda.channel<2 of !tile>
func.func private @bring_c1(%task: index, %view: memref<?x64xbf16>, %slot: !tile) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
    // expected-error @below {{needs a slot of cuda.acquire}}
    cuda.bring %view, %slot : memref<?x64xbf16>, !tile
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!channel = !cuda.channel<2 of !tile>
func.func private @bring_c2(%task: index, %view: memref<?x48xbf16>, %c: !channel) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
    %slot = cuda.acquire %c : !channel
    // expected-error @below {{needs a view with the slot's columns and elements, got: 'memref<?x48xbf16>' and}}
    cuda.bring %view, %slot : memref<?x48xbf16>, !tile
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!channel = !cuda.channel<2 of !tile>
func.func private @bring_c2(%task: index, %view: memref<?x64xbf16>, %c: !channel) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
    %slot = cuda.acquire %c : !channel
    // expected-error @below {{needs a view of rows of a kernel's parameter}}
    cuda.bring %view, %slot : memref<?x64xbf16>, !tile
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
func.func private @clear_c1(%task: index, %slot: !tile) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{needs a slot of cuda.receive}}
    cuda.clear %slot from %task : !tile
  }
  return
}

// -----

!tile = memref<64x64xbf16, #gpu.address_space<workgroup>>
!sums = memref<64x64xf32, #gpu.address_space<private>>
!weights = memref<64x64xbf16, #gpu.address_space<private>>
func.func private @multiply_async_c2(%task: index, %a: !weights, %b: !tile, %c: !sums) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
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
func.func private @multiply_async_c3(%task: index, %a: !weights, %b: !tile, %c: !sums) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
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
func.func private @round_c2(%task: index, %s: !sums, %weights: !weights) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{needs blocks of one shape in registers, got:}}
    cuda.round %s, %weights : !sums, !weights
  }
  return
}

// -----

func.func private @take_turn_c1(%task: index) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } consumers registers 240 {
    // expected-error @below {{needs several warpgroups of consumers, got: 4 warps}}
    cuda.take_turn
  }
  return
}

// -----

func.func private @pass_turn_c1(%task: index) attributes {tile.kernel, cuda.team = 8 : i64} {
  cuda.roles producer warps 4 registers 24 {
    // expected-error @below {{stands outside what consumers do}}
    cuda.pass_turn
  } consumers registers 240 {
  }
  return
}

// -----

// expected-error @below {{marks have rows in thirty-twos and columns in eights, got: 'memref<48x64xi1, #gpu.address_space<workgroup>>'}}
func.func private @channel(!cuda.channel<2 of memref<48x64xi1, #gpu.address_space<workgroup>>>)

// -----

!marks = !cuda.channel<2 of memref<64x64xi1, #gpu.address_space<workgroup>>>
func.func private @acquire_c1(%task: index, %c: !marks) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
    // expected-error @below {{stands outside what markers do}}
    %slot = cuda.acquire %c : !marks
  } consumers registers 240 {
  }
  return
}

// -----

!channel = !cuda.channel<2 of memref<64x64xbf16, #gpu.address_space<workgroup>>>
func.func private @publish_c1(%task: index, %c: !channel) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } markers {
    // expected-error @below {{stands outside what the producer does}}
    cuda.publish %c : !channel
  } consumers registers 240 {
  }
  return
}

// -----

!tile = memref<64x64xi1, #gpu.address_space<workgroup>>
func.func private @mark_c1(%task: index, %slot: !tile, %i: memref<64xindex>) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } markers {
    // expected-error @below {{needs a slot of cuda.acquire}}
    cuda.mark %slot columns %task at (%task, %task, %i, %i) of (%task, %task)
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
!marks = !cuda.channel<2 of !tile>
func.func private @mark_c2(%task: index, %c: !marks, %i: memref<64xindex>, %j: memref<32xindex>) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } markers {
    %slot = cuda.acquire %c : !marks
    // expected-error @below {{needs a position for each row and column of 'memref<64x64xi1, #gpu.address_space<workgroup>>', got: 'memref<64xindex>' and 'memref<32xindex>'}}
    cuda.mark %slot columns %task at (%task, %task, %i, %j) of (%task, %task)
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
!marks = !cuda.channel<2 of !tile>
func.func private @mark_c3(%task: index, %c: !marks, %i: memref<64xindex>) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } markers {
    %slot = cuda.acquire %c : !marks
    cuda.mark %slot columns %task at (%task, %task, %i, %i) of (%task, %task)
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
func.func private @hide_c1(%s: memref<64x64xf32, #gpu.address_space<private>>, %slot: !tile) {
  // expected-error @below {{stands outside what consumers do}}
  cuda.hide %s, %slot : memref<64x64xf32, #gpu.address_space<private>>, !tile
  return
}

// -----

!tile = memref<64x64xi1, #gpu.address_space<workgroup>>
!marks = !cuda.channel<2 of !tile>
!sums = memref<64x32xf32, #gpu.address_space<private>>
func.func private @hide_c2(%task: index, %c: !marks, %s: !sums) attributes {tile.kernel, cuda.team = 4 : i64} {
  cuda.roles producer warps 4 registers 24 {
  } consumers registers 240 {
    %slot = cuda.receive %c : !marks
    // expected-error @below {{needs a block in registers of the slot's shape, got: 'memref<64x32xf32,}}
    cuda.hide %s, %slot : !sums, !tile
  }
  return
}
