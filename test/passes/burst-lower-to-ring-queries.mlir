// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-lower-rotate | FileCheck %s
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-lower-rotate --ring-verify=allow-empty
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-lower-rotate --ring-overlap | FileCheck %s --check-prefix=OVERLAP

shard.grid @cp(shape = 3)
shard.grid @one(shape = 1)

// Queries travel, and their state one hop behind; keys and values stay. What the
// owner attends itself never leaves, and the last rank sends the rest to its owner.
//
// CHECK-LABEL: func @q
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x4x2x4xbf16> {{.*}}, %[[K:[^ ]+]]: tensor<1x8x1x4xbf16> {{.*}}, %[[V:[^ ]+]]: tensor<1x8x1x6xbf16> {{.*}})
// CHECK: %[[R:.*]] = shard.process_multi_index
// CHECK: %[[O0:.*]], %[[M0:.*]], %[[L0:.*]] = ring.init %[[Q]] : tensor<1x4x2x4xbf16> -> tensor<1x4x2x6xf32>, tensor<1x2x4xf32>
// CHECK: ring.start %[[O0]], %[[M0]], %[[L0]] dims [1, 2, 2]
// CHECK: ring.start %[[O0]], %[[M0]], %[[L0]] dims [1, 2, 2]
// CHECK: %[[END:.*]]:11 = scf.for %[[T:.*]] = {{.*}} iter_args(%[[QT:.*]] = %[[Q]], %[[OWNER:.*]] = %[[R]], %[[O:.*]] = %[[O0]], %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[OON:.*]] = %{{.*}}, %[[MON:.*]] = %{{.*}}, %[[LON:.*]] = %{{.*}}, %[[OHOME:.*]] = %{{.*}}, %[[MHOME:.*]] = %{{.*}}, %[[LHOME:.*]] = %{{[^ ]*}})
// CHECK: %[[O1:.*]], %[[M1:.*]], %[[L1:.*]] = ring.init %[[QT]]
// CHECK: %[[O2:.*]], %[[M2:.*]], %[[L2:.*]] = ring.attend %[[QT]] at <zigzag over 3>[%[[OWNER]]]
// CHECK-NEXT: slice (%[[K]], %[[V]] at %[[R]]) of <zigzag over 3>
// CHECK-NEXT: state %[[O1]], %[[M1]], %[[L1]]
// CHECK: ring.start %[[QT]] dims [1] of <zigzag over 3>[%[[OWNER]]] {{.*}} channel <@cp, 0>
// CHECK: %[[O3:.*]], %[[M3:.*]], %[[L3:.*]] = ring.merge(%[[O]], %[[M]], %[[L]]) with(%[[OHOME]], %[[MHOME]], %[[LHOME]]) of <zigzag over 3>[%[[R]]]
// CHECK: %[[O4:.*]], %[[M4:.*]], %[[L4:.*]] = ring.merge(%[[O3]], %[[M3]], %[[L3]]) with(%[[O2]], %[[M2]], %[[L2]]) of <zigzag over 3>[%[[R]]]
// CHECK: %[[O5:.*]], %[[M5:.*]], %[[L5:.*]] = ring.merge(%[[O2]], %[[M2]], %[[L2]]) with(%[[OON]], %[[MON]], %[[LON]]) of <zigzag over 3>[%[[OWNER]]]
// CHECK: ring.start %[[O5]], %[[M5]], %[[L5]] dims [1, 2, 2] of <zigzag over 3>[%[[OWNER]]]
// CHECK: ring.start %[[O5]], %[[M5]], %[[L5]] dims [1, 2, 2] of <zigzag over 3>[%[[OWNER]]] {{.*}} to %[[OWNER]] receive[%[[R]]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[O4]], %[[M4]], %[[L4]],
// CHECK: %[[O6:.*]], %[[M6:.*]], %[[L6:.*]] = ring.merge(%[[END]]#2, %[[END]]#3, %[[END]]#4) with(%[[END]]#8, %[[END]]#9, %[[END]]#10) of <zigzag over 3>[%[[R]]]
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = ring.finalize %[[O6]], %[[M6]], %[[L6]]
// CHECK: return %[[OUT]], %[[LSE]]
//
// The queries go on in front of the attend. States are waited for behind the
// next one: their tokens are carried.
//
// OVERLAP-LABEL: func @q
// OVERLAP: scf.for {{.*}} iter_args(%[[QT:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[ON:[^ ]*]] = %{{.*}}, %[[RETURNED:[^ ]*]] = %{{[^ ]*}})
// OVERLAP: %[[NEXT:.*]] = ring.start %[[QT]]
// OVERLAP: ring.attend
// OVERLAP: ring.wait %[[NEXT]]
// OVERLAP: ring.wait %[[RETURNED]]
// OVERLAP: ring.wait %[[ON]]
// OVERLAP: %[[ON1:.*]] = ring.start
// OVERLAP: %[[HOME1:.*]] = ring.start
// OVERLAP: scf.yield {{.*}}, %[[ON1]], %[[HOME1]] :
// OVERLAP: ring.wait
// OVERLAP: ring.wait
// OVERLAP: ring.finalize
func.func @q(%q: tensor<1x12x2x4xbf16>, %k: tensor<1x24x1x4xbf16>, %v: tensor<1x24x1x6xbf16>)
    -> (tensor<1x12x2x6xbf16>, tensor<1x2x12xf32>) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag>
      strategy <ring_q>
      : (tensor<1x12x2x4xbf16>, tensor<1x24x1x4xbf16>, tensor<1x24x1x6xbf16>)
      -> (tensor<1x12x2x6xbf16>, tensor<1x2x12xf32>)
  return %o, %lse : tensor<1x12x2x6xbf16>, tensor<1x2x12xf32>
}

// One rank has nobody to send to.
//
// CHECK-LABEL: func @alone
// CHECK-NOT: ring.start
// CHECK: ring.attend
// CHECK-NOT: ring.merge
// CHECK: ring.finalize
func.func @alone(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@one, contiguous>
      strategy <ring_q>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}
