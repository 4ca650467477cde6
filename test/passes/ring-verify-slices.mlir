// RUN: burst-opt %s --ring-verify=allow-needless --ring-plan -o - | FileCheck %s
// RUN: burst-opt %s --burst-explain | FileCheck %s --check-prefix=EXPLAIN
// RUN: burst-opt %s --burst-explain | FileCheck %s --check-prefix=TWO

// A program may state that its ranks hold more received slices than two.
//
// CHECK: "peak_slices": 4,
// CHECK: func.func @four(
// CHECK-SAME: ring.max_slices = array<i64: 3, 1>
// EXPLAIN: program @four, 2 ranks
// EXPLAIN: sends match receives, no deadlock, at most 3 received slices at a time on channel 0, 1 on 1;
// EXPLAIN-NEXT: as many states
// TWO: program @two, 2 ranks
// TWO: sends match receives, no deadlock, at most 2 received slices at a time{{$}}
shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>

func.func @four(%k: !q {ring.shard = #s})
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
  %tk = ring.wait %t : !ring.token<!q>
  %uk = ring.wait %u : !ring.token<!q>
  %vk = ring.wait %v : !ring.token<!q>
  %ak = ring.wait %a : !ring.token<!q>
  return
}

func.func @two(%k: !q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %next = arith.addi %r, %c1 : index
  %p = arith.remui %next, %c2 : index
  %t = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 0> : (!q) -> !ring.token<!q>
  %u = ring.start %k dims [1] of <contiguous over 2>[%r] extent %n to %p
      receive [%p] from %p channel <@cp, 1> : (!q) -> !ring.token<!q>
  %tk = ring.wait %t : !ring.token<!q>
  %uk = ring.wait %u : !ring.token<!q>
  return
}
