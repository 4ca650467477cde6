// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty | FileCheck %s
// RUN: burst-opt %s --burst-expand-names --burst-derive-bounds --burst-partition --burst-lower-to-ring --ring-drop-empty --ring-drop-empty --ring-lower-rotate --ring-verify

// What is dropped is shown by burst-explain.mlir; that nothing is missing, by
// ring-verify here.

shard.grid @cp(shape = 3)
shard.grid @one(shape = 1)

// What a causal mask needs, for every rank and owner: the bounds, in the boxes of
// their segments. How far each segment travels up and down the ring, and which of
// both moves less.
//
// CHECK-LABEL: func private @causal_needs
// CHECK-SAME: (%[[SQ:[^ ]+]]: index, %[[SK:[^ ]+]]: index, %{{[^ ]+}}: index) -> (tensor<3x3x1x1xi1>, tensor<3x1xindex>, index)
// CHECK: %[[NEED:.*]] = tensor.generate {
// CHECK-NEXT: ^bb0(%[[RANK:.*]]: index, %[[OWNER:.*]]: index, %[[A:.*]]: index, %[[B:.*]]: index):
// CHECK: %[[I0:.*]], %[[I1:.*]], %[[ROWS:.*]], %{{.*}}, %{{.*}} = ring.segment %[[A]] of <contiguous over 3>[%[[RANK]]] extent %[[SQ]]
// CHECK: %[[END:.*]] = arith.select %{{.*}}, %{{.*}}, %[[I1]] : index
// CHECK: %[[J0:.*]], %[[J1:.*]], %[[COLUMNS:.*]], %{{.*}}, %{{.*}} = ring.segment %[[B]] of <contiguous over 3>[%[[OWNER]]] extent %[[SK]]
// CHECK: %[[BEGIN:.*]] = arith.select %{{.*}}, %{{.*}}, %[[J0]] : index
// CHECK: %[[LAST:.*]] = arith.subi %[[END]], %{{.*}} : index
// CHECK: %[[MAY:.*]] = arith.cmpi sle, %[[BEGIN]], %[[LAST]] : index
// CHECK: %[[SOME:.*]] = arith.andi %{{.*}}, %[[MAY]] : i1
// CHECK: tensor.yield %[[SOME]] : i1
// CHECK: %[[UP:.*]] = tensor.generate {
// CHECK: scf.for
// CHECK: tensor.extract %[[NEED]]
// CHECK: %[[DOWN:.*]] = tensor.generate {
// CHECK: scf.for
// CHECK: tensor.extract %[[NEED]]
// CHECK: %[[BACK:.*]] = arith.cmpi ult
// CHECK: %[[REACH:.*]] = tensor.generate {
// CHECK-DAG: tensor.extract %[[DOWN]]
// CHECK-DAG: tensor.extract %[[UP]]
// CHECK: arith.select %[[BACK]]
// CHECK: %[[STEP:.*]] = arith.select %[[BACK]], %{{.*}}, %{{.*}} : index
// CHECK: return %[[NEED]], %[[REACH]], %[[STEP]]

// It is asked once, in front of what goes round; the attend reads the table of
// pairs of segments, and shards go as far, and in the direction, that it says.
//
// CHECK-LABEL: func @causal
// CHECK: %[[NEEDS:.*]]:3 = call @causal_needs(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: ring.rotate{{.*}} reach %[[NEEDS]]#1 by %[[NEEDS]]#2 : tensor<3x1xindex>
// CHECK: ring.attend
// CHECK: pairs(%[[NEEDS]]#0 : tensor<3x3x1x1xi1>) scale
// CHECK-NOT: @causal_needs
func.func @causal(%q: tensor<1x12x2x4xf32>) -> tensor<1x12x2x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, contiguous>
      : (tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>)
      -> (tensor<1x12x2x4xf32>, tensor<1x2x12xf32>)
  return %o : tensor<1x12x2x4xf32>
}

// Zigzag: flags of four pairs of segments. Captured tables and sizes
// are passed on.
//
// CHECK-LABEL: func private @zigzag_needs
// CHECK-SAME: (%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[IDS:[^ ]+]]: tensor<?xi32>) -> (tensor<3x3x2x2xi1>, tensor<3x2xindex>, index)
// CHECK: burst.table_range %[[IDS]]
//
// A range is found for every segment of a side, and is read for every pair.
//
// CHECK: } : tensor<3x2xi64>
// CHECK: } : tensor<3x2xi64>
// CHECK: } : tensor<3x2xi64>
// CHECK: } : tensor<3x2xi64>
// CHECK: %[[NEED:.*]] = tensor.generate {
// CHECK-NOT: burst.table_range
// CHECK: tensor.extract %{{.*}} : tensor<3x2xi64>
// CHECK: } : tensor<3x3x2x2xi1>
// CHECK: return %[[NEED]],
// CHECK-LABEL: func @zigzag
// CHECK-SAME: %[[IDS:[^ ]+]]: tensor<?xi32>, %[[SQ:[^ ]+]]: index {ring.extent = {{[^}]*}}}, %[[SK:[^ ]+]]: index {
// CHECK: %[[B:.*]] = tensor.dim
// CHECK: %[[NEEDS:.*]]:3 = call @zigzag_needs(%[[SQ]], %[[SK]], %[[B]], %[[IDS]])
// CHECK: ring.rotate{{.*}} reach %[[NEEDS]]#1 by %[[NEEDS]]#2 : tensor<3x2xindex>
// CHECK: ring.attend
// CHECK: pairs(%[[NEEDS]]#0 : tensor<3x3x2x2xi1>) scale
func.func @zigzag(%q: tensor<?x?x1x4xf32>, %k: tensor<?x?x1x4xf32>, %ids: tensor<?xi32>)
    -> tensor<?x?x1x4xf32> {
  %o, %lse = burst.attention %q, %k, %k mask documents(%ids : tensor<?xi32>)
      sequence <@cp, zigzag>
      : (tensor<?x?x1x4xf32>, tensor<?x?x1x4xf32>, tensor<?x?x1x4xf32>)
      -> (tensor<?x?x1x4xf32>, tensor<?x1x?xf32>)
  return %o : tensor<?x?x1x4xf32>
}

// Attentions that ask different questions ask them apart.
//
// CHECK-LABEL: func private @two_needs
// CHECK-LABEL: func private @two_needs_0
// CHECK-LABEL: func @two(
// CHECK-DAG: call @two_needs(
// CHECK-DAG: call @two_needs_0(
// CHECK: return
func.func @two(%q: tensor<1x12x2x4xf32>) -> (tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>) {
  %0:2 = burst.attention %q, %q, %q mask causal sequence <@cp, contiguous>
      : (tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>)
      -> (tensor<1x12x2x4xf32>, tensor<1x2x12xf32>)
  %1:2 = burst.attention %q, %q, %q mask prefix<3> sequence <@cp, contiguous>
      : (tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>)
      -> (tensor<1x12x2x4xf32>, tensor<1x2x12xf32>)
  return %0#0, %1#0 : tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>
}

// One rank: its attend gets a table, nothing travels.
//
// CHECK-LABEL: func @alone
// CHECK-NOT: ring.start
// CHECK: pairs(%{{.*}} : tensor<1x1x1x1xi1>) scale
func.func @alone(%q: tensor<1x12x2x4xf32>) -> tensor<1x12x2x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@one, contiguous>
      : (tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>)
      -> (tensor<1x12x2x4xf32>, tensor<1x2x12xf32>)
  return %o : tensor<1x12x2x4xf32>
}

// Without a mask everything is needed.
//
// CHECK-NOT: @full_needs
// CHECK-LABEL: func @full
// CHECK-NOT: call
// CHECK-NOT: pairs
// CHECK-NOT: segments
// CHECK: return
func.func @full(%q: tensor<1x12x2x4xf32>) -> tensor<1x12x2x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask full sequence <@cp, contiguous>
      : (tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>, tensor<1x12x2x4xf32>)
      -> (tensor<1x12x2x4xf32>, tensor<1x2x12xf32>)
  return %o : tensor<1x12x2x4xf32>
}
