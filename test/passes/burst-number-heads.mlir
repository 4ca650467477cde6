// RUN: burst-opt %s --split-input-file --burst-partition --burst-number-heads | FileCheck %s

// Of heads that ranks do not divide each rank has room for as many, and query heads
// go where their key head is: six key heads of four ranks are 2, 2, 2 and none. What
// ranks only have room for is ruled out by the mask, and by its bounds.

shard.grid @mesh(shape = 4)
!q = tensor<1x48x12x16xf32>
!k = tensor<1x48x6x16xf32>
!l = tensor<1x12x48xf32>

// CHECK-LABEL: func @groups
// CHECK: ring.start {{.*}} all_to_all heads over 4 {{.*}} : (tensor<1x12x12x16xf32>) -> !ring.token<tensor<1x48x4x16xf32>>
// CHECK: ring.start {{.*}} all_to_all heads over 4 {{.*}} -> !ring.token<tensor<1x48x2x16xf32>, tensor<1x48x2x16xf32>>
// CHECK: burst.attention
// CHECK: mask(%{{.*}}, %[[H:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: %[[KEPT:.*]] = arith.cmpi sle
// CHECK: %[[ALL:.*]] = arith.constant 12 : index
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[H]], %[[ALL]] : index
// CHECK: arith.andi %[[KEPT]], %[[IS]] : i1
// CHECK: bounds(%{{.*}}, %{{.*}}, %[[H0:.*]], %[[H1:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[H0]], %{{.*}} : index
// CHECK: arith.andi %{{.*}}, %[[ANY]] : i1
// CHECK: %[[EACH:.*]] = arith.cmpi sle, %[[H1]], %{{.*}} : index
// CHECK: arith.andi %{{.*}}, %[[EACH]] : i1
// CHECK: ring.start {{.*}} all_to_all sequence over 4 {{.*}} : (tensor<1x48x4x16xf32>, tensor<1x4x48xf32>) -> !ring.token<tensor<1x12x12x16xf32>, tensor<1x12x12xf32>>
func.func @groups(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %any = arith.cmpi slt, %j0, %i1 : index
        %all = arith.cmpi sle, %j1, %i0 : index
        burst.yield %any, %all : i1, i1
      }
      sequence <@mesh, contiguous> strategy <ulysses> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

// A key head that all share leaves query heads alone: 2, 2, 2 and 1. Without a mask
// there is one then.

shard.grid @mesh(shape = 4)
!q = tensor<1x48x7x16xf32>
!k = tensor<1x48x1x16xf32>
!l = tensor<1x7x48xf32>

// CHECK-LABEL: func @shared
// CHECK: -> !ring.token<tensor<1x48x2x16xf32>>
// CHECK: -> !ring.token<tensor<1x48x1x16xf32>>
// CHECK: mask(%{{.*}}, %[[H:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: arith.constant 7 : index
// CHECK: arith.cmpi slt, %[[H]]
// CHECK: bounds(
func.func @shared(%q: !q, %k: !k) -> !q {
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh, contiguous> strategy <ulysses>
      : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// -----

// A mask without bounds gets some that know of heads alone.

shard.grid @mesh(shape = 2)
!q = tensor<1x48x3x16xf32>

// CHECK-LABEL: func @unbounded
// CHECK: mask(
// CHECK: bounds(%{{.*}}, %{{.*}}, %[[H0:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK-DAG: arith.constant true
// CHECK-DAG: arith.constant false
// CHECK: arith.cmpi slt, %[[H0]]
func.func @unbounded(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi ne, %j, %i : index
        burst.yield %keep : i1
      }
      sequence <@mesh, contiguous> strategy <ulysses> : (!q, !q, !q) -> (!q, tensor<1x3x48xf32>)
  return %o : !q
}

// -----

// Of seven query heads of a key head one rank has four and the other one three: eight
// numbers, of which there are seven heads, so head n mod 8 of key head n / 8.

shard.grid @mesh(shape = 8)
!q = tensor<1x48x28x16xf32>
!k = tensor<1x48x4x16xf32>
!l = tensor<1x28x48xf32>

// CHECK-LABEL: func @key_heads
// CHECK: mask(%{{.*}}, %[[N:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK: %[[IN:.*]] = arith.remui %[[N]], %[[EIGHT]] : index
// CHECK: %[[SEVEN:.*]] = arith.constant 7 : index
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[IN]], %[[SEVEN]] : index
// CHECK: arith.andi %{{.*}}, %[[IS]] : i1
// CHECK: score(%{{.*}}, %{{.*}}, %[[N:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[T:.*]] =
// CHECK: %[[GROUP:.*]] = arith.divui %[[N]], %{{.*}} : index
// CHECK: %[[BEFORE:.*]] = arith.muli %[[GROUP]], %{{.*}} : index
// CHECK: %[[IN:.*]] = arith.minui %{{.*}}, %{{.*}} : index
// CHECK: %[[H:.*]] = arith.addi %[[BEFORE]], %[[IN]] : index
// CHECK: tensor.extract %[[T]][%[[H]]]
// CHECK: bounds(%{{.*}}, %{{.*}}, %[[N0:.*]], %[[N1:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: %[[COUNT:.*]] = arith.subi
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[COUNT]], %{{.*}} : index
// CHECK: arith.andi %{{.*}}, %[[ANY]] : i1
// CHECK: %[[COUNT:.*]] = arith.subi
// CHECK: %[[WIDTH:.*]] = arith.subi %[[N1]], %[[N0]] : index
// CHECK: %[[EACH:.*]] = arith.cmpi eq, %[[COUNT]], %[[WIDTH]] : index
// CHECK: arith.andi %{{.*}}, %[[EACH]] : i1
func.func @key_heads(%q: !q, %k: !k, %t: tensor<28xf32>) -> !q {
  %o, %lse = burst.attention %q, %k, %k
      score(%s: f32, %b, %h, %i, %j, %sq, %sk, %x = %t : tensor<28xf32>) {
        %y = tensor.extract %x[%h] : tensor<28xf32>
        %r = arith.mulf %s, %y : f32
        burst.yield %r : f32
      }
      sequence <@mesh, contiguous> strategy <ulysses> : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// -----

// Each of two parts of four heads has room for six, and in a part of seven ranks there
// is one behind both groups.

shard.grid @mesh(shape = 2x7)
!q = tensor<1x49x8x16xf32>
!k = tensor<1x49x4x16xf32>
!l = tensor<1x8x49xf32>

// CHECK-LABEL: func @parts
// CHECK: mask(%{{.*}}, %[[N:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: %[[WIDTH:.*]] = arith.constant 7 : index
// CHECK: %[[OF:.*]] = arith.remui %[[N]], %[[WIDTH]] : index
// CHECK: %[[ROOM:.*]] = arith.constant 3 : index
// CHECK: %[[IN:.*]] = arith.remui %[[OF]], %[[ROOM]] : index
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[IN]], %{{.*}} : index
// CHECK: %[[SIX:.*]] = arith.constant 6 : index
// CHECK: %[[HAS:.*]] = arith.cmpi slt, %[[OF]], %[[SIX]] : index
// CHECK: %[[BOTH:.*]] = arith.andi %[[IS]], %[[HAS]] : i1
// CHECK: arith.andi %{{.*}}, %[[BOTH]] : i1
func.func @parts(%q: !q, %k: !k) -> !q {
  %o, %lse = burst.attention %q, %k, %k
      sequence <@mesh[1], contiguous> heads <@mesh[0]> strategy <ulysses> : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}
