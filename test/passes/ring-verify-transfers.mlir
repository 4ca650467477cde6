// RUN: burst-opt %s --ring-verify -verify-diagnostics -split-input-file

// Transfers that ring-verify refuses.

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @never_waited}}
func.func @never_waited(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: is never waited for}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @waited_twice}}
func.func @waited_twice(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  // expected-error @below {{schedule refused: rank 1, hop 1: waits again for a transfer that it has waited for}}
  %k2, %v2 = ring.wait %t : !ring.token<!q, !q>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @target}}
func.func @target(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: names rank 2 as target, of 2 ranks}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %c2
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @source}}
func.func @source(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: names rank 8 as source, of 2 ranks}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %n channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  return
}

// -----

// Every rank sends to itself.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @self}}
func.func @self(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: deadlock: it sends to rank 0 and receives from rank 1; rank 0, at hop 0, sends to rank 0 and receives from rank 1; rank 1, at hop 0, sends to rank 1 and receives from rank 0}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %r
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @sent_owner}}
func.func @sent_owner(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: sends the shard of rank 0 as that of 1}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%p] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  return
}

// -----

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @received_owner}}
func.func @received_owner(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  // expected-error @below {{schedule refused: rank 0, hop 0: receives segments 0x1 of the shard of 0 from rank 1, which sends 0x1 of 1}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%r] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  return
}

// -----

// Nobody sends what everybody waits for.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @not_sent}}
func.func @not_sent(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  %moves = tensor.generate {
  ^bb0(%owner: index, %turn: index, %segment: index):
    %isOther = arith.cmpi ne, %owner, %r : index
    tensor.yield %isOther : i1
  } : tensor<2x1x1xi1>
  // expected-error @below {{schedule refused: rank 0, hop 0: deadlock: it receives from rank 1; rank 1, at hop 0, receives from rank 0}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p segments(%moves[%c0] : tensor<2x1x1xi1>) channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  return
}

// -----

// Rank 0 sends, rank 1 does not.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @one_sends}}
func.func @one_sends(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %c0 : index
  %moves = tensor.generate {
  ^bb0(%owner: index, %turn: index, %segment: index):
    %isOther = arith.cmpi ne, %owner, %r : index
    %moves = arith.ori %first, %isOther : i1
    tensor.yield %moves : i1
  } : tensor<2x1x1xi1>
  // expected-error @below {{schedule refused: rank 0, hop 0: deadlock: it receives from rank 1; rank 1 has ended}}
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p segments(%moves[%c0] : tensor<2x1x1xi1>) channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  return
}

// -----

// Nothing travels, but it is read.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @not_received}}
func.func @not_received(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %o, %m, %l = ring.init %q : !q -> !q, !m
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<false> : tensor<1x1x1xi1>
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p segments(%none[%c0] : tensor<1x1x1xi1>) channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %v at %r) of <contiguous over 2> extent %n
      state %o, %m, %l scale 0.5 : (!q, !q, !q) -> (!q, !m)
  // expected-error @below {{schedule refused: rank 0, hop 1: reads segment 0 of rank 1, which was not received}}
  %o2, %m2, %l2 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k1, %v1 at %p) of <contiguous over 2> extent %n
      state %o1, %m1, %l1 scale 0.5 : (!q, !q, !q) -> (!q, !m)
  return
}

// -----

// What was not received cannot be passed on.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @passes_nothing_on}}
func.func @passes_nothing_on(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<false> : tensor<1x1x1xi1>
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p segments(%none[%c0] : tensor<1x1x1xi1>) channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  // expected-error @below {{schedule refused: rank 0, hop 1: sends segments 0x1 of rank 1, of which it has 0x0}}
  %u = ring.start %k1, %v1 dims [1, 1] of <contiguous over 2>[%p] extent %n to %p
      receive [%r] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %k2, %v2 = ring.wait %u : !ring.token<!q, !q>
  return
}

// -----

// The double buffer.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @three_slices}}
func.func @three_slices(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
  %u = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 1> : (!q, !q) -> !ring.token<!q, !q>
  // expected-error @below {{schedule refused: rank 0, hop 0: receives a slice while 2 are still needed, and there are buffers for 2}}
  %w = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 2> : (!q, !q) -> !ring.token<!q, !q>
  %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  %0:2 = ring.wait %u : !ring.token<!q, !q>
  %1:2 = ring.wait %w : !ring.token<!q, !q>
  return
}

// -----

// Rank 1 takes no part.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @alone}}
func.func @alone(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %c0 : index
  scf.if %first {
    // expected-error @below {{schedule refused: rank 0, hop 0: deadlock: it sends to rank 1 and receives from rank 1; rank 1 has ended}}
    %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
        receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
    %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  }
  return
}

// -----

// Both wait, on different channels.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @channels}}
func.func @channels(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %c0 : index
  scf.if %first {
    // expected-error @below {{schedule refused: rank 0, hop 0: deadlock: it sends to rank 1 and receives from rank 1; rank 1, at hop 0, sends to rank 0 and receives from rank 0 on channel 1}}
    %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
        receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
    %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  } else {
    %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
        receive [%p] from %p channel <@cp, 1> : (!q, !q) -> !ring.token<!q, !q>
    %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  }
  return
}

// -----

// Two tensors meet one.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @numbers}}
func.func @numbers(%q: !q {ring.shard = #s}, %k: !q {ring.shard = #s}, %v: !q {ring.shard = #s})
    attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %c0 : index
  scf.if %first {
    // expected-error @below {{schedule refused: rank 0, hop 0: receives 2 tensors from rank 1, which sends 1}}
    %t = ring.start %k, %v dims [1, 1] of <contiguous over 2>[%r] extent %n to %p
        receive [%p] from %p channel <@cp, 0> : (!q, !q) -> !ring.token<!q, !q>
    %k1, %v1 = ring.wait %t : !ring.token<!q, !q>
  } else {
    %t = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
        receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
    %k1 = ring.wait %t : !ring.token<!q>
  }
  return
}

// -----

// There is no such row of flags.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @no_such_turn}}
func.func @no_such_turn(%k: !q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %p = arith.subi %c1, %r : index
  %moves = arith.constant dense<true> : tensor<2x1x1xi1>
  // expected-error @below {{schedule refused: rank 0, hop 0: reads flags of segments of owner 0 for turn 1, of 2 owners and 1 turns}}
  %t = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p segments(%moves[%c1] : tensor<2x1x1xi1>) channel <@cp, 0> : (!q) -> !ring.token<!q>
  %k1 = ring.wait %t : !ring.token<!q>
  return
}

// -----

// As many as the program states, by channel: on one channel three, and here a
// fourth.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @four_slices}}
func.func @four_slices(%k: !q {ring.shard = #s})
    attributes {ring.grid = @cp, ring.max_slices = array<i64: 3>} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %t = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %u = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %v = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  // expected-error @below {{schedule refused: rank 0, hop 0: receives a slice while 3 of channel 0 are still needed, and 'ring.max_slices' states buffers for 3}}
  %w = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %tk = ring.wait %t : !ring.token<!q>
  %uk = ring.wait %u : !ring.token<!q>
  %vk = ring.wait %v : !ring.token<!q>
  %wk = ring.wait %w : !ring.token<!q>
  return
}

// -----

// Each channel has buffers of its own, and one that is not named has two.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @channels}}
func.func @channels(%k: !q {ring.shard = #s})
    attributes {ring.grid = @cp, ring.max_slices = array<i64: 3, 1>} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %t = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %u = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %v = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %a = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 1> : (!q) -> !ring.token<!q>
  %b = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 2> : (!q) -> !ring.token<!q>
  %c = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 2> : (!q) -> !ring.token<!q>
  // expected-error @below {{schedule refused: rank 0, hop 0: receives a slice while 2 of channel 2 are still needed, and 'ring.max_slices' states buffers for 2}}
  %d = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 2> : (!q) -> !ring.token<!q>
  %tk = ring.wait %t : !ring.token<!q>
  %uk = ring.wait %u : !ring.token<!q>
  %vk = ring.wait %v : !ring.token<!q>
  %ak = ring.wait %a : !ring.token<!q>
  %bk = ring.wait %b : !ring.token<!q>
  %ck = ring.wait %c : !ring.token<!q>
  %dk = ring.wait %d : !ring.token<!q>
  return
}

// -----

// Fewer than the double buffer.
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

// expected-note @below {{in the program of a rank of @single}}
func.func @single(%k: !q {ring.shard = #s})
    attributes {ring.grid = @cp, ring.max_slices = array<i64: 1>} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %t = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  // expected-error @below {{schedule refused: rank 0, hop 0: receives a slice while 1 of channel 0 are still needed, and 'ring.max_slices' states buffers for 1}}
  %u = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %tk = ring.wait %t : !ring.token<!q>
  %uk = ring.wait %u : !ring.token<!q>
  return
}
