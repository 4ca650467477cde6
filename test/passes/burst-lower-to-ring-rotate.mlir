// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring | FileCheck %s --implicit-check-not=scf.for --implicit-check-not=ring.start

// What goes round, what is carried, and what returns to the owner.

shard.grid @cp(shape = 4)

// CHECK-LABEL: func @kv
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x2x4x16xbf16> {{.*}}, %[[K:[^ ]+]]: tensor<1x4x2x16xbf16> {{.*}}, %[[V:[^ ]+]]: tensor<1x4x2x8xbf16> {{.*}})
// CHECK: %[[R:.*]] = shard.process_multi_index
// CHECK: %[[O:.*]], %[[M:.*]], %[[L:.*]] = ring.init %[[Q]]
// CHECK: %[[END:.*]]:3 = ring.rotate(%[[K]], %[[V]] dims [1, 1]) of <contiguous over 4>[%[[R]]] extent %[[N:.*]] channel <@cp, 0> carry(%[[O]], %[[M]], %[[L]] :
// CHECK-NEXT: ^bb0(%owner: index, %[[KT:.*]]: tensor<1x4x2x16xbf16>, %[[VT:.*]]: tensor<1x4x2x8xbf16>, %[[OT:.*]]: tensor<1x2x4x8xf32>, %[[MT:.*]]: tensor<1x4x2xf32>, %[[LT:.*]]: tensor<1x4x2xf32>):
// CHECK-NEXT: %[[O1:.*]], %[[M1:.*]], %[[L1:.*]] = ring.attend %[[Q]] at <contiguous over 4>[%[[R]]]
// CHECK-NEXT: slice (%[[KT]], %[[VT]] at %owner) of <contiguous over 4> extent %[[N]]
// CHECK-NEXT: state %[[OT]], %[[MT]], %[[LT]]
// CHECK: ring.yield %[[O1]], %[[M1]], %[[L1]]
// CHECK: ring.finalize %[[END]]#0, %[[END]]#1, %[[END]]#2
func.func @kv(%q: tensor<1x8x4x16xbf16>, %k: tensor<1x16x2x16xbf16>, %v: tensor<1x16x2x8xbf16>)
    -> tensor<1x8x4x8xbf16> {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x8x4x16xbf16>, tensor<1x16x2x16xbf16>, tensor<1x16x2x8xbf16>)
      -> (tensor<1x8x4x8xbf16>, tensor<1x4x8xf32>)
  return %o : tensor<1x8x4x8xbf16>
}

// CHECK-LABEL: func @q
// CHECK: ring.rotate(%{{.*}} dims [1]) of <contiguous over 4>[%[[R:.*]]] extent %{{.*}} channel <@cp, 0> partial merge dims [1, 2, 2]
// CHECK: ring.attend %{{.*}} at <contiguous over 4>[%owner]
// CHECK-NEXT: slice ({{.*}} at %[[R]])
func.func @q(%q: tensor<1x8x4x16xbf16>, %k: tensor<1x16x2x16xbf16>, %v: tensor<1x16x2x8xbf16>)
    -> tensor<1x8x4x8xbf16> {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <ring_q>
      : (tensor<1x8x4x16xbf16>, tensor<1x16x2x16xbf16>, tensor<1x16x2x8xbf16>)
      -> (tensor<1x8x4x8xbf16>, tensor<1x4x8xf32>)
  return %o : tensor<1x8x4x8xbf16>
}

!x = tensor<1x8x1x4xf32>
!s = tensor<1x1x8xf32>

// CHECK-LABEL: func @backward_kv
// CHECK: %[[DQ:.*]] = ring.zero
// CHECK: ring.rotate(%{{.*}}, %{{.*}} dims [1, 1]) of {{.*}} carry(%[[DQ]] : tensor<1x2x1x4xf32>) partial add dims [1, 1]
// CHECK: ring.attend_grad
func.func @backward_kv(%q: !x, %o: !x, %lse: !s, %do: !x) -> (!x, !x, !x) {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %o, %lse, %do
      sequence <@cp, contiguous> strategy <ring_kv> : (!x, !x, !x, !x, !s, !x) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}

// Queries, gradients of o, lse and delta travel.
//
// CHECK-LABEL: func @backward_q
// CHECK: ring.rotate(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} dims [1, 1, 2, 2]) of {{.*}} carry(%{{.*}}, %{{.*}} : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) partial add dims [1]
// CHECK: ring.attend_grad
func.func @backward_q(%q: !x, %o: !x, %lse: !s, %do: !x) -> (!x, !x, !x) {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %o, %lse, %do
      sequence <@cp, contiguous> strategy <ring_q> : (!x, !x, !x, !x, !s, !x) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}

// CHECK-LABEL: func @scores
// CHECK: ring.rotate(%{{.*}} dims [1])
// CHECK: ring.score
// CHECK: ring.rotate(%{{.*}} dims [1])
func.func @scores(%q: !x) -> !x {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous> strategy <ring_scores>
      : (!x, !x, !x) -> (!x, !s)
  return %o : !x
}
