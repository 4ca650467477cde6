// RUN: burst-opt %s --split-input-file --burst-expand-names --burst-partition --burst-check-tables | FileCheck %s

// Both positions of documents need all of the table, asked once and in front of
// all else.
//
// CHECK-LABEL: func @documents
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[SIZE:.*]] = tensor.dim %{{.*}}, %[[ZERO]] : tensor<?xi32>
// CHECK-NEXT: %[[ALL:.*]] = arith.constant 64 : index
// CHECK-NEXT: ring.require %[[SIZE]] at least %[[ALL]], "size of dimension 0 of ids"
// CHECK-NOT: ring.require
// CHECK: burst.attention
shard.grid @cp(shape = 4)
!q = tensor<1x64x2x16xf32>
!l = tensor<1x2x64xf32>
func.func @documents(%q: !q, %ids: tensor<?xi32> {burst.name = "ids"}) -> !q {
  %o, %lse = burst.attention %q, %q, %q mask documents(%ids : tensor<?xi32>)
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// Sizes that are arguments: a static table is checked against them, and so is a
// batch.
//
// CHECK-LABEL: func @open
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x2x16xf32>
// CHECK-SAME: %[[SK:arg[0-9]+]]: index {ring.extent = array<i64: 1, 1>}
// CHECK-DAG: %[[BATCH:.*]] = tensor.dim %[[Q]]
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[MANY:.*]] = arith.constant 4096 : index
// CHECK-DAG: ring.require %[[THREE]] at least %[[BATCH]], "size of dimension 0 of arg2"
// CHECK-DAG: ring.require %[[MANY]] at least %[[SK]], "size of dimension 1 of arg2"
// CHECK: burst.attention
shard.grid @cp(shape = 4)
!q = tensor<?x?x2x16xf32>
!l = tensor<?x2x?xf32>
func.func @open(%q: !q, %k: !q, %t: tensor<3x4096xi1>) -> !q {
  %o, %lse = burst.attention %q, %k, %k
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<3x4096xi1>) {
        %keep = tensor.extract %a[%b, %j] : tensor<3x4096xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, striped 8> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// Positions aligned with the last key begin below 0 where there are fewer keys;
// where there are no pairs nothing is read.
//
// CHECK-LABEL: func @aligned
// CHECK-SAME: %[[SQ:arg[0-9]+]]: index {ring.extent = array<i64: 0, 1>}
// CHECK-SAME: %[[SK:arg[0-9]+]]: index {ring.extent = array<i64: 1, 1>}
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[SHIFT:.*]] = arith.subi %[[SK]], %[[SQ]]
// CHECK-DAG: %[[LEAST:.*]] = arith.select %{{.*}}, %[[ZERO]], %[[SHIFT]]
// CHECK-DAG: ring.require %[[LEAST]] at least %[[ZERO]], "least index into dimension 0 of arg2"
// CHECK-DAG: ring.require %{{.*}} at least %{{.*}}, "size of dimension 0 of arg2"
shard.grid @cp(shape = 4)
!q = tensor<1x?x2x16xf32>
!l = tensor<1x2x?xf32>
func.func @aligned(%q: !q, %k: !q, %t: tensor<?xf32>) -> !q {
  %o, %lse = burst.attention %q, %k, %k
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %a = %t : tensor<?xf32>) {
        %shift = arith.subi %sk, %sq : index
        %at = arith.addi %i, %shift : index
        %bias = tensor.extract %a[%at] : tensor<?xf32>
        %sum = arith.addf %s, %bias : f32
        burst.yield %sum : f32
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// What is large enough, or clamped, needs nothing. An index of which no range is
// known exactly, as a remainder, a select, or what a table holds, needs a table that
// is not empty.
//
// CHECK-LABEL: func @enough
// CHECK-NOT: ring.require
// CHECK-DAG: %[[SIZE:.*]] = tensor.dim %{{.*}} : tensor<?xi1>
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: ring.require %[[SIZE]] at least %[[ONE]], "size of dimension 0 of arg5"
// CHECK-NOT: ring.require
// CHECK: burst.attention
shard.grid @cp(shape = 4)
!q = tensor<2x64x8x16xf32>
!l = tensor<2x8x64xf32>
func.func @enough(%q: !q, %batch: tensor<2xi1>, %ids: tensor<65xindex>, %blocks: tensor<4x4xi1>,
                  %few: tensor<4xi1>, %open: tensor<?xi1>, %heads: tensor<2xf32>,
                  %offsets: tensor<127xf32>) -> !q {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk, %tb = %batch : tensor<2xi1>, %ti = %ids : tensor<65xindex>,
           %tt = %blocks : tensor<4x4xi1>, %tf = %few : tensor<4xi1>, %to = %open : tensor<?xi1>) {
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %c4 = arith.constant 4 : index
        %c16 = arith.constant 16 : index
        %0 = tensor.extract %tb[%b] : tensor<2xi1>
        %next = arith.addi %i, %c1 : index
        %id = tensor.extract %ti[%next] : tensor<65xindex>
        %bi = arith.divui %i, %c16 : index
        %bj = arith.floordivsi %j, %c16 : index
        %1 = tensor.extract %tt[%bi, %bj] : tensor<4x4xi1>
        %clamped = arith.minui %j, %c3 : index
        %2 = tensor.extract %tf[%clamped] : tensor<4xi1>
        %rest = arith.remui %i, %c4 : index
        %3 = tensor.extract %to[%rest] : tensor<?xi1>
        %isFirst = arith.cmpi ult, %i, %c4 : index
        %guarded = arith.select %isFirst, %i, %c3 : index
        %4 = tensor.extract %tf[%guarded] : tensor<4xi1>
        %5 = tensor.extract %to[%id] : tensor<?xi1>
        %6 = arith.andi %0, %1 : i1
        %7 = arith.andi %2, %3 : i1
        %8 = arith.andi %4, %5 : i1
        %9 = arith.andi %6, %7 : i1
        %10 = arith.andi %8, %9 : i1
        burst.yield %10 : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %th = %heads : tensor<2xf32>,
            %td = %offsets : tensor<127xf32>) {
        %c4 = arith.constant 4 : index
        %c63 = arith.constant 63 : index
        %group = arith.divui %h, %c4 : index
        %0 = tensor.extract %th[%group] : tensor<2xf32>
        %back = arith.subi %i, %j : index
        %at = arith.addi %back, %c63 : index
        %1 = tensor.extract %td[%at] : tensor<127xf32>
        %2 = arith.addf %0, %1 : f32
        %3 = arith.addf %s, %2 : f32
        burst.yield %3 : f32
      }
      sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// -----

// Without pairs it may be empty.
//
// CHECK-LABEL: func @remainder
// CHECK-SAME: %[[SK:arg[0-9]+]]: index {ring.extent = array<i64: 1, 1>}
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[NONE:.*]] = arith.cmpi eq, %[[SK]], %[[ZERO]]
// CHECK-DAG: %[[LEAST:.*]] = arith.select %[[NONE]], %[[ZERO]], %[[ONE]]
// CHECK: ring.require %{{.*}} at least %[[LEAST]], "size of dimension 0 of arg2"
shard.grid @cp(shape = 4)
!q = tensor<1x64x2x16xf32>
!k = tensor<1x?x2x16xf32>
!l = tensor<1x2x64xf32>
func.func @remainder(%q: !q, %k: !k, %t: tensor<?xi1>) -> !q {
  %o, %lse = burst.attention %q, %k, %k
      mask(%b, %h, %i, %j, %sq, %sk, %a = %t : tensor<?xi1>) {
        %c4 = arith.constant 4 : index
        %rest = arith.remui %j, %c4 : index
        %keep = tensor.extract %a[%rest] : tensor<?xi1>
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// -----

// CHECK-LABEL: func private @declared
func.func private @declared(index)
