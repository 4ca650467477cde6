// RUN: burst-opt %s --burst-partition --burst-split-heads --split-input-file | FileCheck %s

// Twice the same of half the heads: what regions know of heads are their numbers
// among all of them.

shard.grid @cp(shape = 2)
!q = tensor<1x16x8x4xf32>
!l = tensor<1x8x16xf32>

// CHECK-LABEL: func @own_keys
// CHECK-SAME: (%[[Q:.*]]: tensor<1x8x8x4xf32> {{.*}}, %[[K:.*]]: tensor<1x8x8x4xf32>
// CHECK-NOT: ring.head_chunks
// CHECK: %[[CQ:.*]] = ring.take_heads %[[Q]] chunk 0 of 2 : tensor<1x8x8x4xf32> -> tensor<1x8x4x4xf32>
// CHECK: %[[TQ:.*]] = ring.start %[[CQ]] dims [1] {{.*}} all_to_all heads over 2 {{.*}} : (tensor<1x8x4x4xf32>) -> !ring.token<tensor<1x16x2x4xf32>>
// CHECK: %[[CK:.*]] = ring.take_heads %[[K]] chunk 0 of 2
// CHECK: %[[TK:.*]] = ring.start %[[CK]]
// CHECK: %[[LQ:.*]] = ring.wait %[[TQ]]
// CHECK: %[[GQ:.*]] = burst.unshard %[[LQ]] {{.*}} : tensor<1x16x2x4xf32> -> tensor<1x16x2x4xf32>
// CHECK: %[[LK:.*]] = ring.wait %[[TK]]
// CHECK: %[[GK:.*]] = burst.unshard %[[LK]]
// CHECK: %[[O:.*]], %{{.*}} = burst.attention %[[GQ]], %[[GK]], %[[GK]]
// CHECK: mask(%{{[^,]*}}, %[[H:[^,]*]],
// CHECK: %[[C2:.*]] = arith.constant 2
// CHECK: %[[N:.*]] = arith.muli %[[H]], %[[C2]]
// CHECK: %[[C0:.*]] = arith.constant 0
// CHECK: %[[G:.*]] = arith.addi %[[N]], %[[C0]]
// CHECK: arith.muli %[[G]]
// CHECK: bounds(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[H1:[^,]*]],
// CHECK: %[[N1:.*]] = arith.muli %[[H1]], %{{.*}}
// CHECK: %[[CM1:.*]] = arith.constant -1
// CHECK: arith.addi %[[N1]], %[[CM1]]
// CHECK: sequence <@cp[], contiguous> heads <@cp[0]> : (tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>) -> (tensor<1x16x2x4xf32>, tensor<1x2x16xf32>)
// CHECK: %[[S:.*]] = burst.shard %[[O]] dim 1
// CHECK: %[[TO:.*]] = ring.start %[[S]] {{.*}} all_to_all sequence over 2 {{.*}} -> !ring.token<tensor<1x8x4x4xf32>>
// CHECK: %[[O0:.*]] = ring.wait %[[TO]]
// CHECK: ring.take_heads %[[Q]] chunk 1 of 2
// CHECK: ring.take_heads %[[K]] chunk 1 of 2
// CHECK: burst.attention
// CHECK: %[[C1:.*]] = arith.constant 1
// CHECK: arith.addi %{{.*}}, %[[C1]]
// CHECK: %[[O1:.*]] = ring.wait
// CHECK: %[[J:.*]] = ring.join_heads %[[O0]], %[[O1]] : tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32> -> tensor<1x8x8x4xf32>
// CHECK: return %[[J]], %[[J]]
func.func @own_keys(%q: !q, %k: !q) -> (!q, !q) {
  %o, %lse = burst.attention %q, %k, %k
      mask(%b, %h, %i, %j, %sq, %sk) {
        %c = arith.constant 3 : index
        %w = arith.muli %h, %c : index
        %r = arith.addi %j, %w : index
        %keep = arith.cmpi sle, %i, %r : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %c0 = arith.constant 0 : index
        %any = arith.cmpi sgt, %h1, %c0 : index
        %all = arith.cmpi slt, %h1, %c0 : index
        burst.yield %any, %all : i1, i1
      }
      sequence <@cp, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q) -> (!q, !l)
  return %o, %o : !q, !q
}

// -----

// Keys of several query heads come whole, once, in front of all chunks. What
// knows nothing of heads stays as it is.

shard.grid @cp(shape = 2)
!q = tensor<1x16x8x4xf32>
!k = tensor<1x16x2x4xf32>
!l = tensor<1x8x16xf32>

// CHECK-LABEL: func @shared_keys
// CHECK-SAME: %[[K:[^ ]*]]: tensor<1x8x2x4xf32>
// CHECK: %[[TK:.*]] = ring.start %[[K]] {{.*}} -> !ring.token<tensor<1x16x1x4xf32>>
// CHECK: %[[LK:.*]] = ring.wait %[[TK]]
// CHECK: %[[GK:.*]] = burst.unshard %[[LK]]
// CHECK: ring.take_heads %{{.*}} chunk 0 of 4
// CHECK-NOT: muli
// CHECK: burst.attention %{{.*}}, %[[GK]], %[[GK]] mask causal
// CHECK-SAME: (tensor<1x16x1x4xf32>, tensor<1x16x1x4xf32>, tensor<1x16x1x4xf32>)
// CHECK: ring.take_heads %{{.*}} chunk 1 of 4
// CHECK: burst.attention %{{.*}}, %[[GK]], %[[GK]] mask causal
// CHECK: ring.take_heads %{{.*}} chunk 3 of 4
// CHECK: ring.join_heads
// CHECK: ring.join_heads {{.*}} -> tensor<1x8x8xf32>
func.func @shared_keys(%q: !q, %k: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %k mask causal
      sequence <@cp, zigzag> strategy <ulysses in 4 chunks>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

// The backward pass of a chunk follows its forward pass.

shard.grid @cp(shape = 2)
!q = tensor<1x16x4x4xf32>
!l = tensor<1x4x16xf32>

// CHECK-LABEL: func @both
// CHECK: %[[O:.*]], %[[L:.*]] = burst.attention
// CHECK: ring.start {{.*}} all_to_all sequence
// CHECK: %[[SO:.*]] = burst.shard %[[O]]
// CHECK: %[[UO:.*]] = burst.unshard %[[SO]]
// CHECK: %{{.*}} = burst.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %[[UO]]
// CHECK: ring.take_heads %{{.*}} chunk 1 of 2
// CHECK: burst.attention
// CHECK: burst.attention_backward
// CHECK-COUNT-4: ring.join_heads
func.func @both(%q: !q, %k: !q, %v: !q, %do: !q) -> (!q, !q, !q, !q) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q) -> (!q, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      sequence <@cp, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %o, %dq, %dk, %dv : !q, !q, !q, !q
}

// -----

// Gradients by keys and by tables that chunks share are summed in the state type,
// and go back once.

shard.grid @cp(shape = 2)
!q = tensor<1x16x8x4xbf16>
!k = tensor<1x16x2x4xbf16>
!l = tensor<1x8x16xf32>

// CHECK-LABEL: func @sums
// CHECK: %{{.*}}, %[[DK0:.*]], %{{.*}}, %[[DT0:.*]] = burst.attention_backward
// CHECK: -> (tensor<1x16x2x4xbf16>, tensor<1x16x1x4xf32>, tensor<1x16x1x4xf32>, tensor<16x16xf32>)
// CHECK: %[[S0:.*]] = burst.shard %[[DK0]] {{.*}} : tensor<1x16x1x4xf32> -> tensor<1x16x1x4xf32>
// CHECK: %{{.*}}, %[[DK1:.*]], %{{.*}}, %[[DT1:.*]] = burst.attention_backward
// CHECK: %[[S1:.*]] = burst.shard %[[DK1]]
// CHECK-DAG: %[[DT:.*]] = ring.sum_chunks %[[DT0]], %[[DT1]] : tensor<16x16xf32>
// CHECK-DAG: %[[SUM:.*]] = ring.sum_chunks %[[S0]], %[[S1]] : tensor<1x16x1x4xf32>
// CHECK: %[[R:.*]] = ring.round %[[SUM]] : tensor<1x16x1x4xf32> -> tensor<1x16x1x4xbf16>
// CHECK: %[[T:.*]] = ring.start %[[R]] {{.*}} all_to_all sequence
// CHECK: %[[DK:.*]] = ring.wait %[[T]]
// CHECK: %[[DQ:.*]] = ring.join_heads
// CHECK: return %[[DQ]], %[[DK]], %[[DT]]
func.func @sums(%q: !q, %k: !k, %lse: !l, %t: tensor<16x16xf32>) -> (!q, !k, tensor<16x16xf32>) {
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %k, %q, %lse, %q
      score bias(%t : tensor<16x16xf32>) sequence <@cp, zigzag>
      strategy <ulysses in 2 chunks> gradients [0]
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<16x16xf32>)
  return %dq, %dk, %dt : !q, !k, tensor<16x16xf32>
}

// -----

// One rank exchanges with nobody.

shard.grid @cp(shape = 1)
!q = tensor<1x16x4x4xf32>
!l = tensor<1x4x16xf32>

// CHECK-LABEL: func @one
// CHECK-NOT: take_heads
// CHECK: burst.attention
func.func @one(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <ulysses in 2 chunks>
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
