// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-lower-rotate | FileCheck %s
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-lower-rotate --ring-verify=allow-empty

shard.grid @cp(shape = 3)
shard.grid @one(shape = 1)

// Keys and values travel, and their gradients one hop behind; those by queries
// stay. What the owner computes itself never leaves, and the last rank sends the
// rest to its owner.
//
// CHECK-LABEL: func @kv
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[K:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[V:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[O:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[LSE:[^ ]+]]: tensor<1x1x4xf32> {{.*}}, %[[DO:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}})
// CHECK: %[[R:.*]] = shard.process_multi_index
// CHECK: %[[DELTA:.*]] = ring.delta %[[O]], %[[DO]]
// CHECK-DAG: %[[DQ0:.*]] = ring.zero %[[Q]]
// CHECK-DAG: %[[DK0:.*]] = ring.zero %[[K]]
// CHECK-DAG: %[[DV0:.*]] = ring.zero %[[V]]
// CHECK: %[[END:.*]]:10 = scf.for %[[T:.*]] = {{.*}} iter_args(%[[KT:.*]] = %[[K]], %[[VT:.*]] = %[[V]], %[[OWNER:.*]] = %[[R]], %[[DQ:.*]] = %[[DQ0]], %[[DK:.*]] = %[[DK0]], %[[DV:.*]] = %[[DV0]], %[[KON:.*]] = %{{.*}}, %[[VON:.*]] = %{{.*}}, %[[KHOME:.*]] = %{{.*}}, %[[VHOME:.*]] = %{{.*}})
// CHECK: %[[KPART:.*]] = ring.zero %[[KT]]
// CHECK: %[[VPART:.*]] = ring.zero %[[VT]]
// CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = ring.attend_grad (%[[Q]], %[[DO]], %[[LSE]], %[[DELTA]] at %[[R]])
// CHECK-NEXT: slice (%[[KT]], %[[VT]] at %[[OWNER]])
// CHECK-NEXT: into %[[DQ]], %[[KPART]], %[[VPART]] scale
// CHECK: ring.start %[[KT]], %[[VT]] dims [1, 1] of <zigzag over 3>[%[[OWNER]]] {{.*}} channel <@cp, 0>
// CHECK: %[[K1:.*]] = ring.add %[[DK]], %[[KHOME]] of <zigzag over 3>[%[[R]]]
// CHECK: %[[V1:.*]] = ring.add %[[DV]], %[[VHOME]] of <zigzag over 3>[%[[R]]]
// CHECK: %[[K2:.*]] = ring.add %[[K1]], %[[DK1]] of <zigzag over 3>[%[[R]]]
// CHECK: %[[V2:.*]] = ring.add %[[V1]], %[[DV1]] of <zigzag over 3>[%[[R]]]
// CHECK: %[[KSUM:.*]] = ring.add %[[DK1]], %[[KON]] of <zigzag over 3>[%[[OWNER]]]
// CHECK: %[[VSUM:.*]] = ring.add %[[DV1]], %[[VON]] of <zigzag over 3>[%[[OWNER]]]
// CHECK: ring.start %[[KSUM]], %[[VSUM]] dims [1, 1] of <zigzag over 3>[%[[OWNER]]]
// CHECK: ring.start %[[KSUM]], %[[VSUM]] dims [1, 1] of <zigzag over 3>[%[[OWNER]]] {{.*}} to %[[OWNER]] receive[%[[R]]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[DQ1]], %[[K2]], %[[V2]],
// CHECK: %[[K3:.*]] = ring.add %[[END]]#4, %[[END]]#8 of <zigzag over 3>[%[[R]]]
// CHECK: %[[V3:.*]] = ring.add %[[END]]#5, %[[END]]#9 of <zigzag over 3>[%[[R]]]
// CHECK: return %[[END]]#3, %[[K3]], %[[V3]]
func.func @kv(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>,
    %v: tensor<1x12x1x4xf32>, %o: tensor<1x12x1x4xf32>, %lse: tensor<1x1x12xf32>,
    %do: tensor<1x12x1x4xf32>)
    -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>,
         tensor<1x12x1x4xf32>, tensor<1x1x12xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>
}

// Queries travel with all that belongs to their rows, and gradients by them; the
// gradients by keys and values stay.
//
// CHECK-LABEL: func @q
// CHECK-SAME: (%[[Q:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[K:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[V:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[O:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}}, %[[LSE:[^ ]+]]: tensor<1x1x4xf32> {{.*}}, %[[DO:[^ ]+]]: tensor<1x4x1x4xf32> {{.*}})
// CHECK: %[[R:.*]] = shard.process_multi_index
// CHECK: %[[DELTA:.*]] = ring.delta %[[O]], %[[DO]]
// CHECK: scf.for {{.*}} iter_args(%[[QT:.*]] = %[[Q]], %[[DOT:.*]] = %[[DO]], %[[LT:.*]] = %[[LSE]], %[[DT:.*]] = %[[DELTA]], %[[OWNER:.*]] = %[[R]], %[[DK:.*]] = %{{.*}}, %[[DV:.*]] = %{{.*}}, %[[DQ:.*]] = %{{.*}}, %[[ON:.*]] = %{{.*}}, %[[RETURNED:.*]] = %{{.*}})
// CHECK: %[[PART:.*]] = ring.zero %[[QT]]
// CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = ring.attend_grad (%[[QT]], %[[DOT]], %[[LT]], %[[DT]] at %[[OWNER]])
// CHECK-NEXT: slice (%[[K]], %[[V]] at %[[R]])
// CHECK-NEXT: into %[[PART]], %[[DK]], %[[DV]] scale
// CHECK: ring.start %[[QT]], %[[DOT]], %[[LT]], %[[DT]] dims [1, 1, 2, 2] of <zigzag over 3>[%[[OWNER]]]
// CHECK: ring.add %[[DQ]], %[[RETURNED]]
// CHECK: ring.add %{{.*}}, %[[DQ1]]
// CHECK: %[[SUM:.*]] = ring.add %[[DQ1]], %[[ON]]
// CHECK: ring.start %[[SUM]] dims [1]
// CHECK: ring.start %[[SUM]] dims [1] {{.*}} to %[[OWNER]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[DK1]], %[[DV1]],
func.func @q(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>,
    %v: tensor<1x12x1x4xf32>, %o: tensor<1x12x1x4xf32>, %lse: tensor<1x1x12xf32>,
    %do: tensor<1x12x1x4xf32>)
    -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>,
         tensor<1x12x1x4xf32>, tensor<1x1x12xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>
}

// One rank has nobody to send to. Gradients are rounded once, at the end.
//
// CHECK-LABEL: func @alone
// CHECK-NOT: ring.start
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = ring.attend_grad
// CHECK-NOT: ring.add
// CHECK: ring.round %[[DQ]] : tensor<1x8x1x4xf32> -> tensor<1x8x1x4xbf16>
// CHECK: ring.round %[[DK]]
// CHECK: ring.round %[[DV]]
func.func @alone(%q: tensor<1x8x1x4xbf16>, %lse: tensor<1x1x8xf32>)
    -> (tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>) {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %q, %lse, %q
      sequence <@one, contiguous> strategy <ring_q>
      : (tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>,
         tensor<1x8x1x4xbf16>, tensor<1x1x8xf32>, tensor<1x8x1x4xbf16>)
      -> (tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>)
  return %dq, %dk, %dv : tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>, tensor<1x8x1x4xbf16>
}
