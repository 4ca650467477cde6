// RUN: burst-opt %s --burst-expand-names | FileCheck %s
// RUN: burst-opt %s --burst-expand-names | burst-opt --burst-expand-names | FileCheck %s

!q = tensor<2x8x4x16xf32>
!k = tensor<2x6x4x16xf32>
!lse = tensor<2x4x8xf32>

// CHECK-LABEL: func @causal
// CHECK: burst.attention
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk) {
// CHECK-NEXT: %[[SHIFT:.*]] = arith.subi %sk, %sq : index
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %i, %[[SHIFT]] : index
// CHECK-NEXT: %[[KEEP:.*]] = arith.cmpi sle, %j, %[[LAST]] : index
// CHECK-NEXT: burst.yield %[[KEEP]] : i1
// CHECK-NEXT: } : (
func.func @causal(%q: !q, %k: !k) {
  %0:2 = burst.attention %q, %k, %k mask causal : (!q, !k, !k) -> (!q, !lse)
  return
}

// Nothing is masked by full, alone or twice: no region is left.
//
// CHECK-LABEL: func @full
// CHECK-COUNT-2: burst.attention %{{.*}}, %{{.*}}, %{{.*}} : (
// CHECK-NOT: mask
// CHECK: return
func.func @full(%q: !q, %k: !k) {
  %0:2 = burst.attention %q, %k, %k mask full : (!q, !k, !k) -> (!q, !lse)
  %1:2 = burst.attention %q, %k, %k mask [full, full] : (!q, !k, !k) -> (!q, !lse)
  return
}

// CHECK-LABEL: func @window
// CHECK: mask(%b, %h, %i, %j, %sq, %sk) {
// CHECK-NEXT: %[[SHIFT:.*]] = arith.subi %sk, %sq : index
// CHECK-NEXT: %[[CENTER:.*]] = arith.addi %i, %[[SHIFT]] : index
// CHECK-NEXT: %[[LEFT:.*]] = arith.constant 3 : index
// CHECK-NEXT: %[[FIRST:.*]] = arith.subi %[[CENTER]], %[[LEFT]] : index
// CHECK-NEXT: %[[A:.*]] = arith.cmpi sge, %j, %[[FIRST]] : index
// CHECK-NEXT: %[[RIGHT:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %[[CENTER]], %[[RIGHT]] : index
// CHECK-NEXT: %[[B:.*]] = arith.cmpi sle, %j, %[[LAST]] : index
// CHECK-NEXT: %[[KEEP:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT: burst.yield %[[KEEP]] : i1
func.func @window(%q: !q, %k: !k) {
  %0:2 = burst.attention %q, %k, %k mask window<left = 3, right = 1> : (!q, !k, !k) -> (!q, !lse)
  return
}

// A side that is left out is not bounded.
//
// CHECK-LABEL: func @half_windows
// CHECK: mask(
// CHECK: %[[A:.*]] = arith.cmpi sge, %j,
// CHECK-NEXT: burst.yield %[[A]] : i1
// CHECK: mask(
// CHECK: %[[B:.*]] = arith.cmpi sle, %j,
// CHECK-NEXT: burst.yield %[[B]] : i1
// CHECK: mask(
// CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT: burst.yield %[[TRUE]] : i1
func.func @half_windows(%q: !q, %k: !k) {
  %0:2 = burst.attention %q, %k, %k mask window<left = 3> : (!q, !k, !k) -> (!q, !lse)
  %1:2 = burst.attention %q, %k, %k mask window<right = 3> : (!q, !k, !k) -> (!q, !lse)
  %2:2 = burst.attention %q, %k, %k mask window<> : (!q, !k, !k) -> (!q, !lse)
  return
}

// CHECK-LABEL: func @prefix
// CHECK: mask(
// CHECK-NEXT: %[[LENGTH:.*]] = arith.constant 2 : index
// CHECK-NEXT: %[[A:.*]] = arith.cmpi slt, %j, %[[LENGTH]] : index
// CHECK-NEXT: %[[SHIFT:.*]] = arith.subi %sk, %sq : index
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %i, %[[SHIFT]] : index
// CHECK-NEXT: %[[B:.*]] = arith.cmpi sle, %j, %[[LAST]] : index
// CHECK-NEXT: %[[KEEP:.*]] = arith.ori %[[A]], %[[B]] : i1
// CHECK-NEXT: burst.yield %[[KEEP]] : i1
func.func @prefix(%q: !q, %k: !k) {
  %0:2 = burst.attention %q, %k, %k mask prefix<2> : (!q, !k, !k) -> (!q, !lse)
  return
}

// One table for queries and keys.
//
// CHECK-LABEL: func @documents
// CHECK-SAME: %[[IDS:[^ ]+]]: tensor<8xi32>)
// CHECK: mask(%b, %h, %i, %j, %sq, %sk, %[[ID:.*]] = %[[IDS]] : tensor<8xi32>) {
// CHECK-NEXT: %[[X:.*]] = tensor.extract %[[ID]][%i] : tensor<8xi32>
// CHECK-NEXT: %[[Y:.*]] = tensor.extract %[[ID]][%j] : tensor<8xi32>
// CHECK-NEXT: %[[SAME:.*]] = arith.cmpi eq, %[[X]], %[[Y]] : i32
// CHECK-NEXT: burst.yield %[[SAME]] : i1
func.func @documents(%q: !q, %ids: tensor<8xi32>) {
  %0:2 = burst.attention %q, %q, %q mask documents(%ids : tensor<8xi32>) : (!q, !q, !q) -> (!q, !lse)
  return
}

// One for each, by batch.
//
// CHECK-LABEL: func @batched_documents
// CHECK: mask(%b, %h, %i, %j, %sq, %sk, %[[TQ:.*]] = %{{.*}} : tensor<2x8xindex>, %[[TK:.*]] = %{{.*}} : tensor<?xindex>) {
// CHECK-NEXT: tensor.extract %[[TQ]][%b, %i] : tensor<2x8xindex>
// CHECK-NEXT: tensor.extract %[[TK]][%j] : tensor<?xindex>
func.func @batched_documents(%q: !q, %k: !k, %tq: tensor<2x8xindex>, %tk: tensor<?xindex>) {
  %0:2 = burst.attention %q, %k, %k mask documents(%tq, %tk : tensor<2x8xindex>, tensor<?xindex>)
      : (!q, !k, !k) -> (!q, !lse)
  return
}

// A list keeps what all of it keep. Tables are handed out in order, the last name
// gets what is left.
//
// CHECK-LABEL: func @lists
// CHECK-SAME: %[[T:[^ ]+]]: tensor<?xi32>, %[[U:[^ ]+]]: tensor<2x8xi1>, %[[V:[^ ]+]]: tensor<6xi1>)
// CHECK: mask(%b, %h, %i, %j, %sq, %sk, %[[A:.*]] = %[[T]] : tensor<?xi32>, %[[B:.*]] = %[[U]] : tensor<2x8xi1>, %[[C:.*]] = %[[V]] : tensor<6xi1>) {
// CHECK-DAG: %[[AI:.*]] = tensor.extract %[[A]][%i] : tensor<?xi32>
// CHECK-DAG: %[[AJ:.*]] = tensor.extract %[[A]][%j] : tensor<?xi32>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[AI]], %[[AJ]] : i32
// CHECK: %[[CAUSAL:.*]] = arith.cmpi sle, %j,
// CHECK-NEXT: %[[TWO:.*]] = arith.andi %[[FIRST]], %[[CAUSAL]] : i1
// CHECK-NEXT: %[[FULL:.*]] = arith.constant true
// CHECK-NEXT: %[[THREE:.*]] = arith.andi %[[TWO]], %[[FULL]] : i1
// CHECK-DAG: %[[BI:.*]] = tensor.extract %[[B]][%b, %i] : tensor<2x8xi1>
// CHECK-DAG: %[[CJ:.*]] = tensor.extract %[[C]][%j] : tensor<6xi1>
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[BI]], %[[CJ]] : i1
// CHECK-NEXT: %[[ALL:.*]] = arith.andi %[[THREE]], %[[LAST]] : i1
// CHECK-NEXT: burst.yield %[[ALL]] : i1
func.func @lists(%q: !q, %k: !k, %t: tensor<?xi32>, %u: tensor<2x8xi1>, %v: tensor<6xi1>) {
  %0:2 = burst.attention %q, %k, %k
      mask [documents, causal, full, documents](%t, %u, %v : tensor<?xi32>, tensor<2x8xi1>, tensor<6xi1>)
      : (!q, !k, !k) -> (!q, !lse)
  return
}

// CHECK-LABEL: func @alibi
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %[[SLOPES:.*]] = %{{.*}} : tensor<4xf32>) {
// CHECK-NEXT: %[[SLOPE:.*]] = tensor.extract %[[SLOPES]][%h] : tensor<4xf32>
// CHECK-NEXT: %[[SHIFT:.*]] = arith.subi %sk, %sq : index
// CHECK-NEXT: %[[CENTER:.*]] = arith.addi %i, %[[SHIFT]] : index
// CHECK-NEXT: %[[OFFSET:.*]] = arith.subi %[[CENTER]], %j : index
// CHECK-NEXT: %[[WIDE:.*]] = arith.index_cast %[[OFFSET]] : index to i64
// CHECK-NEXT: %[[SIGNED:.*]] = arith.sitofp %[[WIDE]] : i64 to f32
// CHECK-NEXT: %[[DISTANCE:.*]] = math.absf %[[SIGNED]] : f32
// CHECK-NEXT: %[[PENALTY:.*]] = arith.mulf %[[SLOPE]], %[[DISTANCE]] : f32
// CHECK-NEXT: %[[NEW:.*]] = arith.subf %s, %[[PENALTY]] : f32
// CHECK-NEXT: burst.yield %[[NEW]] : f32
func.func @alibi(%q: !q, %k: !k, %slopes: tensor<4xf32>) {
  %0:2 = burst.attention %q, %k, %k score alibi(%slopes : tensor<4xf32>) : (!q, !k, !k) -> (!q, !lse)
  return
}

// Tables of other floats are converted to the state type.
//
// CHECK-LABEL: func @convert
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %[[A:.*]] = %{{.*}} : tensor<2x4xf16>) {
// CHECK-NEXT: %[[X:.*]] = tensor.extract %[[A]][%b, %h] : tensor<2x4xf16>
// CHECK-NEXT: arith.extf %[[X]] : f16 to f32
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %[[B:.*]] = %{{.*}} : tensor<8x6xf64>) {
// CHECK-NEXT: %[[Y:.*]] = tensor.extract %[[B]][%i, %j] : tensor<8x6xf64>
// CHECK-NEXT: arith.truncf %[[Y]] : f64 to f32
func.func @convert(%q: !q, %k: !k, %a: tensor<2x4xf16>, %b: tensor<8x6xf64>) {
  %0:2 = burst.attention %q, %k, %k score alibi(%a : tensor<2x4xf16>) : (!q, !k, !k) -> (!q, !lse)
  %1:2 = burst.attention %q, %k, %k score bias(%b : tensor<8x6xf64>) : (!q, !k, !k) -> (!q, !lse)
  return
}

// The state type of f64 attention is f64.
//
// CHECK-LABEL: func @softcap
// CHECK: score(%s : f64, %b, %h, %i, %j, %sq, %sk) {
// CHECK-NEXT: %[[CAP:.*]] = arith.constant 3.000000e+01 : f64
// CHECK-NEXT: %[[RATIO:.*]] = arith.divf %s, %[[CAP]] : f64
// CHECK-NEXT: %[[BOUNDED:.*]] = math.tanh %[[RATIO]] : f64
// CHECK-NEXT: %[[NEW:.*]] = arith.mulf %[[CAP]], %[[BOUNDED]] : f64
// CHECK-NEXT: burst.yield %[[NEW]] : f64
func.func @softcap(%q: tensor<1x2x1x4xf64>) {
  %0:2 = burst.attention %q, %q, %q score softcap<30.0>
      : (tensor<1x2x1x4xf64>, tensor<1x2x1x4xf64>, tensor<1x2x1x4xf64>)
      -> (tensor<1x2x1x4xf64>, tensor<1x1x2xf64>)
  return
}

// A dimension of size 1 is read at 0.
//
// CHECK-LABEL: func @bias
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %[[T:.*]] = %{{.*}} : tensor<1x4x8x1xf32>) {
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[ZERO2:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[BIAS:.*]] = tensor.extract %[[T]][%[[ZERO]], %h, %i, %[[ZERO2]]] : tensor<1x4x8x1xf32>
// CHECK-NEXT: %[[NEW:.*]] = arith.addf %s, %[[BIAS]] : f32
// CHECK-NEXT: burst.yield %[[NEW]] : f32
func.func @bias(%q: !q, %k: !k, %t: tensor<1x4x8x1xf32>) {
  %0:2 = burst.attention %q, %k, %k score bias(%t : tensor<1x4x8x1xf32>) : (!q, !k, !k) -> (!q, !lse)
  return
}

// Scores are applied in order, the same name may come twice.
//
// CHECK-LABEL: func @scores
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %[[A:.*]] = %{{.*}} : tensor<4xf32>, %[[B:.*]] = %{{.*}} : tensor<2x4xf32>) {
// CHECK: tensor.extract %[[A]][%h]
// CHECK: %[[FIRST:.*]] = arith.subf %s, %{{.*}} : f32
// CHECK: arith.divf %[[FIRST]], %{{.*}} : f32
// CHECK: %[[SECOND:.*]] = arith.mulf
// CHECK: tensor.extract %[[B]][%b, %h]
// CHECK: %[[THIRD:.*]] = arith.subf %[[SECOND]], %{{.*}} : f32
// CHECK-NEXT: burst.yield %[[THIRD]] : f32
func.func @scores(%q: !q, %k: !k, %a: tensor<4xf32>, %b: tensor<2x4xf32>) {
  %0:2 = burst.attention %q, %k, %k
      score [alibi, softcap<5.0>, alibi](%a, %b : tensor<4xf32>, tensor<2x4xf32>)
      : (!q, !k, !k) -> (!q, !lse)
  return
}

// A mask and a score; what else the op says is kept.
//
// CHECK-LABEL: func @both
// CHECK: mask(
// CHECK: score(
// CHECK: } scale 5.000000e-01 sequence <@cp, zigzag> strategy <ring_kv> {mine} : (
shard.grid @cp(shape = 2)
func.func @both(%q: !q, %k: !k) {
  %0:2 = burst.attention %q, %k, %k mask causal score softcap<5.0> scale 0.5
      sequence <@cp, zigzag> strategy <ring_kv> {mine} : (!q, !k, !k) -> (!q, !lse)
  return
}

// A region is left as it is.
//
// CHECK-LABEL: func @region
// CHECK: mask(
// CHECK-NEXT: %[[FALSE:.*]] = arith.constant false
// CHECK-NEXT: burst.yield %[[FALSE]] : i1
func.func @region(%q: !q, %k: !k) {
  %0:2 = burst.attention %q, %k, %k
      mask(%b, %h, %i, %j, %sq, %sk) {
        %false = arith.constant false
        burst.yield %false : i1
      } : (!q, !k, !k) -> (!q, !lse)
  return
}
