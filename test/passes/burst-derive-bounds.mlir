// RUN: burst-opt %s --burst-derive-bounds | FileCheck %s
// RUN: burst-opt %s --burst-derive-bounds | burst-opt --burst-derive-bounds | FileCheck %s

// What is emitted and where; that it is right is tested by test/unit/bounds.

!q = tensor<1x8x4x16xf32>
!lse = tensor<1x4x8xf32>

// Causal, with Sq = Sk: two compares, of the box's corners.
//
// CHECK-LABEL: func @causal
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[I:.*]] = arith.subi %i1, %[[ONE]] : index
// CHECK-DAG: %[[J:.*]] = arith.subi %j1, %[[ONE]] : index
// CHECK-DAG: %[[MAY:.*]] = arith.cmpi sle, %j0, %[[I]] : index
// CHECK-DAG: %[[MUST:.*]] = arith.cmpi sle, %[[J]], %i0 : index
// CHECK-NEXT: burst.yield %[[MAY]], %[[MUST]] : i1, i1
func.func @causal(%q: !q) {
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %shift = arith.subi %sk, %sq : index
        %last = arith.addi %i, %shift : index
        %keep = arith.cmpi sle, %j, %last : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}

// Sizes that are not known are the region's arguments.
//
// CHECK-LABEL: func @dynamic
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
// CHECK: %[[SHIFT:.*]] = arith.subi %sk, %sq : index
// CHECK-DAG: %[[FIRST:.*]] = arith.addi %i0, %[[SHIFT]] : index
// CHECK-DAG: %[[LAST:.*]] = arith.addi %{{.*}}, %[[SHIFT]] : index
// CHECK-DAG: %[[MAY:.*]] = arith.cmpi sle, %j0, %[[LAST]] : index
// CHECK-DAG: %[[MUST:.*]] = arith.cmpi sle, %{{.*}}, %[[FIRST]] : index
// CHECK-NEXT: burst.yield %[[MAY]], %[[MUST]] : i1, i1
func.func @dynamic(%q: tensor<?x?x4x16xf32>, %k: tensor<?x?x4x16xf32>) {
  %0:2 = burst.attention %q, %k, %k
      mask(%b, %h, %i, %j, %sq, %sk) {
        %shift = arith.subi %sk, %sq : index
        %last = arith.addi %i, %shift : index
        %keep = arith.cmpi sle, %j, %last : index
        burst.yield %keep : i1
      } : (tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>, tensor<?x?x4x16xf32>)
      -> (tensor<?x?x4x16xf32>, tensor<?x4x?xf32>)
  return
}

// What static sizes decide is decided: every j is below 8, no i is 8 or more.
//
// CHECK-LABEL: func @folds
// CHECK: bounds({{.*}}) {
// CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT: burst.yield %[[TRUE]], %[[TRUE]] : i1, i1
// CHECK: bounds({{.*}}) {
// CHECK-NEXT: %[[FALSE:.*]] = arith.constant false
// CHECK-NEXT: burst.yield %[[FALSE]], %[[FALSE]] : i1, i1
func.func @folds(%q: !q) {
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi slt, %j, %sk : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  %1:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %8 = arith.constant 8 : index
        %keep = arith.cmpi sge, %i, %8 : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}

// What masks do with floats is not analysed: everything may be kept.
//
// CHECK-LABEL: func @floats
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %{{.*}} : tensor<8xf32>) {
// CHECK-DAG: %[[TRUE:.*]] = arith.constant true
// CHECK-DAG: %[[FALSE:.*]] = arith.constant false
// CHECK-NEXT: burst.yield %[[TRUE]], %[[FALSE]] : i1, i1
func.func @floats(%q: !q, %t: tensor<8xf32>) {
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<8xf32>) {
        %x = tensor.extract %c[%i] : tensor<8xf32>
        %y = tensor.extract %c[%j] : tensor<8xf32>
        %keep = arith.cmpf oge, %x, %y : f32
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}

// Tables of integers are bounded by their range in the box.
//
// CHECK-LABEL: func @documents
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %[[IDS:.*]] : tensor<8xi64>) {
// CHECK-DAG: %[[I:.*]] = arith.subi %i1, %{{.*}} : index
// CHECK-DAG: %[[J:.*]] = arith.subi %j1, %{{.*}} : index
// CHECK-DAG: %{{.*}}, %{{.*}} = burst.table_range %[[IDS]][%i0 to %[[I]]] : tensor<8xi64>
// CHECK-DAG: %{{.*}}, %{{.*}} = burst.table_range %[[IDS]][%j0 to %[[J]]] : tensor<8xi64>
// CHECK: burst.yield
func.func @documents(%q: !q, %ids: tensor<8xi64>) {
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %ids : tensor<8xi64>) {
        %x = tensor.extract %c[%i] : tensor<8xi64>
        %y = tensor.extract %c[%j] : tensor<8xi64>
        %keep = arith.cmpi eq, %x, %y : i64
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}

// The elements of tables have their own type.
//
// CHECK-LABEL: func @elements
// CHECK: burst.table_range %{{.*}}[%{{.*}}, %i0 to %{{.*}}, %{{.*}}] : tensor<1x8xi8>
// CHECK: arith.trunci %{{.*}} : i64 to i8
// CHECK: burst.table_range %{{.*}} : tensor<?xindex>
// CHECK: arith.index_cast %{{.*}} : i64 to index
func.func @elements(%q: !q, %t: tensor<1x8xi8>, %u: tensor<?xindex>) {
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : tensor<1x8xi8>) {
        %x = tensor.extract %c[%b, %i] : tensor<1x8xi8>
        %3 = arith.constant 3 : i8
        %keep = arith.cmpi slt, %x, %3 : i8
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  %1:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %u : tensor<?xindex>) {
        %x = tensor.extract %c[%h] : tensor<?xindex>
        %keep = arith.cmpi slt, %j, %x : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}

// Scalars that are captured are bounds themselves.
//
// CHECK-LABEL: func @scalars
// CHECK: bounds({{.*}}, %[[N:.*]] : index) {
// CHECK-DAG: %[[LAST:.*]] = arith.subi %j1,
// CHECK-DAG: %[[MAY:.*]] = arith.cmpi slt, %j0, %[[N]] : index
// CHECK-DAG: %[[MUST:.*]] = arith.cmpi slt, %[[LAST]], %[[N]] : index
// CHECK: burst.yield %[[MAY]], %[[MUST]] : i1, i1
func.func @scalars(%q: !q, %n: index) {
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %c = %n : index) {
        %keep = arith.cmpi slt, %j, %c : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}

// No queries, no keys.
//
// CHECK-LABEL: func @nothing
// CHECK: bounds(
func.func @nothing(%q: tensor<0x0x1x4xf32>) {
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      } : (tensor<0x0x1x4xf32>, tensor<0x0x1x4xf32>, tensor<0x0x1x4xf32>)
      -> (tensor<0x0x1x4xf32>, tensor<0x1x0xf32>)
  return
}

// Names and scores are left alone. Bounds that are there already, wrong ones here,
// are not trusted: proofs rest on them.
//
// CHECK-LABEL: func @left
// CHECK: burst.attention {{.*}} mask causal : (
// CHECK: bounds(
// CHECK-NOT: false
// CHECK: burst.yield %{{.*}}, %{{.*}} : i1, i1
// CHECK: score(
// CHECK-NOT: bounds
func.func @left(%q: !q) {
  %0:2 = burst.attention %q, %q, %q mask causal : (!q, !q, !q) -> (!q, !lse)
  %1:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi slt, %j, %sk : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %false = arith.constant false
        burst.yield %false, %false : i1, i1
      } : (!q, !q, !q) -> (!q, !lse)
  %2:2 = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        burst.yield %s : f32
      } : (!q, !q, !q) -> (!q, !lse)
  return
}
