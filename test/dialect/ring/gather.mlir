// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// What is gathered: its layout, ring.start of its route, and ring.gather.

shard.grid @cp(shape = 4)

!kv = tensor<1x32x2x16xf32>
!all = tensor<1x128x2x16xf32>
!m = tensor<1x2x32xf32>
!ms = tensor<1x2x128xf32>

// One owner has the segments of all parts.
//
// CHECK-LABEL: func @segments
// CHECK: ring.segment %{{.*}} of <zigzag over 4, all>[%{{.*}}] extent
// CHECK: ring.segment %{{.*}} of <striped 2 over 4, all>[%{{.*}}] extent
func.func @segments(%n: index) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %0:5 = ring.segment %c7 of <zigzag over 4, all>[%c0] extent %n
  %1:5 = ring.segment %n of <striped 2 over 4, all>[%c0] extent %n
  return
}

// CHECK-LABEL: func @start
// CHECK: %[[T:.*]] = ring.start %{{.*}}, %{{.*}} dims [1, 2] of <zigzag over 4>[%{{.*}}] extent %{{.*}} all_gather segments(%{{.*}} : tensor<4x4x2xi1>) channel <@cp, 0> : (tensor<1x32x2x16xf32>, tensor<1x2x32xf32>) -> !ring.token<tensor<1x128x2x16xf32>, tensor<1x2x128xf32>>
// CHECK: ring.wait %[[T]] : !ring.token<tensor<1x128x2x16xf32>, tensor<1x2x128xf32>>
// CHECK: ring.start %{{.*}} dims [0] of <striped over 4>[%{{.*}}] extent %{{.*}} all_gather channel <@cp, 1> : (tensor<?x3xi8>) -> !ring.token<tensor<?x3xi8>>
// CHECK: ring.start %{{.*}} dims [1] of <zigzag over 4, all>[%{{.*}}] extent %{{.*}} to %{{.*}} receive[%{{.*}}] from %{{.*}} segments(%{{.*}}[%{{.*}}] : tensor<4x4x2xi1>) channel <@cp, 1> : (tensor<1x128x2x16xf32>) -> !ring.token<tensor<1x32x2x16xf32>>
func.func @start(%k: !kv, %m: !m, %x: tensor<?x3xi8>, %r: index, %n: index,
                 %moves: tensor<4x4x2xi1>) {
  %0 = ring.start %k, %m dims [1, 2] of <zigzag over 4>[%r] extent %n all_gather
      segments(%moves : tensor<4x4x2xi1>) channel <@cp, 0>
      : (!kv, !m) -> !ring.token<!all, !ms>
  %1:2 = ring.wait %0 : !ring.token<!all, !ms>
  %2 = ring.start %x dims [0] of <striped over 4>[%r] extent %n all_gather
      channel <@cp, 1> : (tensor<?x3xi8>) -> !ring.token<tensor<?x3xi8>>
  %3 = ring.start %1#0 dims [1] of <zigzag over 4, all>[%r] extent %n
      to %r receive [%r] from %r segments(%moves[%n] : tensor<4x4x2xi1>)
      channel <@cp, 1> : (!all) -> !ring.token<!kv>
  return
}

// CHECK-LABEL: func @values
// CHECK: %[[G:.*]] = ring.gather(%[[K:.*]], %[[V:.*]] dims [1, 1]) of <zigzag over 4>[%{{.*}}] extent %{{.*}} channel <@cp, 0> : (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>) -> tensor<1x128x2x16xf32> {
// CHECK-NEXT: ^bb0(%[[KA:.*]]: tensor<1x128x2x16xf32>, %{{.*}}: tensor<1x128x2x16xf32>):
// CHECK-NEXT: ring.yield %[[KA]] : tensor<1x128x2x16xf32>
func.func @values(%k: !kv, %v: !kv, %r: index, %n: index) -> !all {
  %0 = ring.gather (%k, %v dims [1, 1]) of <zigzag over 4>[%r] extent %n
      channel <@cp, 0> : (!kv, !kv) -> !all {
  ^bb0(%ka: !all, %va: !all):
    ring.yield %ka : !all
  }
  return %0 : !all
}

// CHECK-LABEL: func @partials
// CHECK: ring.gather(%{{.*}}, %{{.*}} dims [1, 1]) of <zigzag over 4>[%{{.*}}] extent %{{.*}} channel <@cp, 2> segments(%{{.*}} : tensor<4x4x2xi1>) partial add dims [1, 1] : (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>) -> (index, tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>) {
// CHECK: ring.gather(%{{.*}} dims [1]) of <striped over 4>[%{{.*}}] extent %{{.*}} channel <@cp, 0> partial merge dims [1, 2, 2] : (tensor<1x32x2x16xf32>) -> (tensor<1x32x2x16xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>) {
func.func @partials(%k: !kv, %r: index, %n: index, %moves: tensor<4x4x2xi1>) {
  %0:3 = ring.gather (%k, %k dims [1, 1]) of <zigzag over 4>[%r] extent %n
      channel <@cp, 2> segments(%moves : tensor<4x4x2xi1>)
      partial add dims [1, 1] : (!kv, !kv) -> (index, !kv, !kv) {
  ^bb0(%ka: !all, %va: !all, %dk: !all, %dv: !all):
    ring.yield %n, %dk, %dv : index, !all, !all
  }
  %1:3 = ring.gather (%k dims [1]) of <striped over 4>[%r] extent %n
      channel <@cp, 0> partial merge dims [1, 2, 2] : (!kv) -> (!kv, !m, !m) {
  ^bb0(%qa: !all, %o: !all, %m: !ms, %l: !ms):
    ring.yield %o, %m, %l : !all, !ms, !ms
  }
  return
}
