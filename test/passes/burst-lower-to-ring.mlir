// RUN: burst-opt %s --burst-lower-to-ring --ring-lower-rotate | FileCheck %s
// RUN: burst-opt %s --burst-lower-to-ring --ring-lower-rotate --ring-verify | FileCheck %s

shard.grid @cp(shape = 4)
shard.grid @one(shape = 1)

// P - 1 = 3 hops, in each of which a slice is attended and goes on; then the last
// slice is attended.
//
// CHECK-LABEL: func @ring
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x2x4x16xbf16> {{.*}}, %[[K:[^ ]+]]: tensor<1x4x2x16xbf16> {{.*}}, %[[V:[^ ]+]]: tensor<1x4x2x8xbf16> {{.*}})
// CHECK-NOT: burst.unshard
// CHECK-DAG: %[[SQ:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[SK:.*]] = arith.constant 16 : index
// CHECK: %[[R:.*]] = shard.process_multi_index on @cp axes = [0] : index
// CHECK: %[[O0:.*]], %[[M0:.*]], %[[L0:.*]] = ring.init %[[Q]] : tensor<1x2x4x16xbf16> -> tensor<1x2x4x8xf32>, tensor<1x4x2xf32>
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[UP:.*]] = arith.addi %[[R]], %[[ONE]] : index
// CHECK: %[[P:.*]] = arith.constant 4 : index
// CHECK: %[[TO:.*]] = arith.remui %[[UP]], %[[P]] : index
// CHECK: %[[THREE:.*]] = arith.constant 3 : index
// CHECK: %[[DOWN:.*]] = arith.addi %[[R]], %[[THREE]] : index
// CHECK: %[[FROM:.*]] = arith.remui %[[DOWN]], %{{.*}} : index
// CHECK-DAG: %[[FIRST:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[STEP:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[HOPS:.*]] = arith.constant 3 : index
// CHECK: %[[END:.*]]:6 = scf.for %{{.*}} = %[[FIRST]] to %[[HOPS]] step %[[STEP]]
// CHECK-SAME: iter_args(%[[KT:.*]] = %[[K]], %[[VT:.*]] = %[[V]], %[[OWNER:.*]] = %[[R]], %[[O:.*]] = %[[O0]], %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]])
// CHECK-NEXT: %[[O1:.*]], %[[M1:.*]], %[[L1:.*]] = ring.attend %[[Q]] at <contiguous over 4>[%[[R]]] extent %[[SQ]]
// CHECK-NEXT: slice (%[[KT]], %[[VT]] at %[[OWNER]]) of <contiguous over 4> extent %[[SK]]
// CHECK-NEXT: state %[[O]], %[[M]], %[[L]] scale 2.500000e-01
// CHECK: %[[BEHIND:.*]] = arith.addi %[[OWNER]], %{{.*}} : index
// CHECK: %[[NEXT:.*]] = arith.remui %[[BEHIND]], %{{.*}} : index
// CHECK: %[[T:.*]] = ring.start %[[KT]], %[[VT]] dims [1, 1] of <contiguous over 4>[%[[OWNER]]] extent %[[SK]] to %[[TO]] receive[%[[NEXT]]] from %[[FROM]] channel <@cp, 0>
// CHECK: %[[GOT:.*]]:2 = ring.wait %[[T]]
// CHECK: scf.yield %[[GOT]]#0, %[[GOT]]#1, %[[NEXT]], %[[O1]], %[[M1]], %[[L1]]
// CHECK: %[[O2:.*]], %[[M2:.*]], %[[L2:.*]] = ring.attend %[[Q]] at <contiguous over 4>[%[[R]]] extent %[[SQ]]
// CHECK-NEXT: slice (%[[END]]#0, %[[END]]#1 at %[[END]]#2) of <contiguous over 4> extent %[[SK]]
// CHECK-NEXT: state %[[END]]#3, %[[END]]#4, %[[END]]#5 scale 2.500000e-01
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = ring.finalize %[[O2]], %[[M2]], %[[L2]] : tensor<1x2x4x8xf32>, tensor<1x4x2xf32> -> tensor<1x2x4x8xbf16>
// CHECK-NOT: burst.shard
// CHECK: return %[[OUT]], %[[LSE]]
#q = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 8>
#k = #ring.shard<#ring.layout<contiguous over 4>, dim 1 extent 16>
#lse = #ring.shard<#ring.layout<contiguous over 4>, dim 2 extent 8>
func.func @ring(%lq: tensor<1x2x4x16xbf16> {ring.shard = #q},
                %lk: tensor<1x4x2x16xbf16> {ring.shard = #k},
                %lv: tensor<1x4x2x8xbf16> {ring.shard = #k})
    -> (tensor<1x2x4x8xbf16> {ring.shard = #q}, tensor<1x4x2xf32> {ring.shard = #lse})
    attributes {ring.grid = @cp} {
  %sq = arith.constant 8 : index
  %sk = arith.constant 16 : index
  %q = burst.unshard %lq dim 1 extent %sq by <@cp, contiguous> : tensor<1x2x4x16xbf16> -> tensor<1x8x4x16xbf16>
  %k = burst.unshard %lk dim 1 extent %sk by <@cp, contiguous> : tensor<1x4x2x16xbf16> -> tensor<1x16x2x16xbf16>
  %v = burst.unshard %lv dim 1 extent %sk by <@cp, contiguous> : tensor<1x4x2x8xbf16> -> tensor<1x16x2x8xbf16>
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x8x4x16xbf16>, tensor<1x16x2x16xbf16>, tensor<1x16x2x8xbf16>)
      -> (tensor<1x8x4x8xbf16>, tensor<1x4x8xf32>)
  %lo = burst.shard %o dim 1 by <@cp, contiguous> : tensor<1x8x4x8xbf16> -> tensor<1x2x4x8xbf16>
  %llse = burst.shard %lse dim 2 by <@cp, contiguous> : tensor<1x4x8xf32> -> tensor<1x4x2xf32>
  return %lo, %llse : tensor<1x2x4x8xbf16>, tensor<1x4x2xf32>
}

// One rank: no loop, no transfer.
//
// CHECK-LABEL: func @alone
// CHECK-NOT: scf.for
// CHECK-NOT: ring.start
// CHECK: %[[R:.*]] = shard.process_multi_index on @one axes = [0] : index
// CHECK: ring.attend %{{.*}} at <zigzag over 1>[%[[R]]]
// CHECK-NEXT: slice (%[[X:.*]], %[[X]] at %[[R]]) of <zigzag over 1>
// CHECK-NOT: ring.attend
// CHECK: %[[OUT:.*]], %{{.*}} = ring.finalize
// CHECK: return %[[OUT]]
#one = #ring.shard<#ring.layout<zigzag over 1>, dim 1 extent 8>
func.func @alone(%x: tensor<1x8x1x4xf64> {ring.shard = #one})
    -> (tensor<1x8x1x4xf64> {ring.shard = #one}) attributes {ring.grid = @one} {
  %n = arith.constant 8 : index
  %g = burst.unshard %x dim 1 extent %n by <@one, zigzag> : tensor<1x8x1x4xf64> -> tensor<1x8x1x4xf64>
  %o, %lse = burst.attention %g, %g, %g sequence <@one, zigzag>
      : (tensor<1x8x1x4xf64>, tensor<1x8x1x4xf64>, tensor<1x8x1x4xf64>)
      -> (tensor<1x8x1x4xf64>, tensor<1x1x8xf64>)
  %l = burst.shard %o dim 1 by <@one, zigzag> : tensor<1x8x1x4xf64> -> tensor<1x8x1x4xf64>
  return %l : tensor<1x8x1x4xf64>
}

// Regions, captures, scale and a layout with a block go to both attends. Where
// ranks hold different numbers, the state is dynamic.
//
// CHECK-LABEL: func @regions
// CHECK-SAME: %[[T:[^ ]+]]: tensor<9xi32>, %[[C:[^ ]+]]: f32)
// CHECK: ring.init %{{.*}} : tensor<1x?x1x4xf32> -> tensor<1x?x1x4xf32>, tensor<1x1x?xf32>
// CHECK: scf.for
// CHECK: ring.attend {{.*}} at <striped 2 over 4>
// CHECK: scale 3.000000e+00
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk, %[[A:.*]] = %[[T]] : tensor<9xi32>) {
// CHECK-NEXT: tensor.extract %[[A]][%i]
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %{{.*}} = %[[C]] : f32) {
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %{{.*}} : tensor<9xi32>) {
// CHECK: scf.yield
// CHECK: ring.attend {{.*}} at <striped 2 over 4>
// CHECK: scale 3.000000e+00
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk, %{{.*}} = %[[T]] : tensor<9xi32>) {
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %{{.*}} = %[[C]] : f32) {
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %{{.*}} : tensor<9xi32>) {
#nine = #ring.shard<#ring.layout<striped 2 over 4>, dim 1 extent 9>
func.func @regions(%x: tensor<1x?x1x4xf32> {ring.shard = #nine}, %t: tensor<9xi32>, %f: f32)
    -> (tensor<1x?x1x4xf32> {ring.shard = #nine}) attributes {ring.grid = @cp} {
  %n = arith.constant 9 : index
  %g = burst.unshard %x dim 1 extent %n by <@cp, striped 2> : tensor<1x?x1x4xf32> -> tensor<1x9x1x4xf32>
  %o, %lse = burst.attention %g, %g, %g
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xi32>) {
        %0 = tensor.extract %c[%i] : tensor<9xi32>
        %1 = tensor.extract %c[%j] : tensor<9xi32>
        %keep = arith.cmpi sge, %0, %1 : i32
        burst.yield %keep : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %f : f32) {
        %0 = arith.mulf %s, %c : f32
        burst.yield %0 : f32
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %c : tensor<9xi32>) {
        %true = arith.constant true
        burst.yield %true, %true : i1, i1
      }
      scale 3.0 sequence <@cp, striped 2>
      : (tensor<1x9x1x4xf32>, tensor<1x9x1x4xf32>, tensor<1x9x1x4xf32>)
      -> (tensor<1x9x1x4xf32>, tensor<1x1x9xf32>)
  %l = burst.shard %o dim 1 by <@cp, striped 2> : tensor<1x9x1x4xf32> -> tensor<1x?x1x4xf32>
  return %l : tensor<1x?x1x4xf32>
}

// Of an attention that nobody uses nothing is left.
//
// CHECK-LABEL: func @unused
// CHECK-NOT: = ring.
// CHECK-NOT: = burst.
// CHECK: return
#eight = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 8>
func.func @unused(%x: tensor<1x2x1x4xf64> {ring.shard = #eight}) attributes {ring.grid = @cp} {
  %n = arith.constant 8 : index
  %g = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf64> -> tensor<1x8x1x4xf64>
  %o, %lse = burst.attention %g, %g, %g sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf64>, tensor<1x8x1x4xf64>, tensor<1x8x1x4xf64>)
      -> (tensor<1x8x1x4xf64>, tensor<1x1x8xf64>)
  return
}

// CHECK-LABEL: func @untouched
// CHECK-NEXT: return
func.func @untouched(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
