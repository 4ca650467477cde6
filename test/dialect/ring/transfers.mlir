// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// ring.start and ring.wait: their examples and other forms.

shard.grid @cp(shape = 8)
shard.grid @four(shape = 4)

// CHECK-LABEL: func @example
// CHECK-SAME: (%[[K:[^ ]+]]: tensor<1x256x2x64xf32>, %[[V:[^ ]+]]: tensor<1x256x2x64xf32>, %[[OWNER:[^ ]+]]: index, %[[SK:[^ ]+]]: index, %[[TO:[^ ]+]]: index, %[[NEXT:[^ ]+]]: index, %[[FROM:[^ ]+]]: index, %[[MOVES:[^ ]+]]: tensor<8x8x2xi1>, %[[TURN:[^ ]+]]: index)
// CHECK: %[[TOKEN:.*]] = ring.start %[[K]], %[[V]] dims [1, 1] of <zigzag over 8>[%[[OWNER]]] extent %[[SK]] to %[[TO]] receive[%[[NEXT]]] from %[[FROM]] segments(%[[MOVES]][%[[TURN]]] : tensor<8x8x2xi1>) channel <@cp, 0> :
// CHECK-SAME: (tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>) -> !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>
// CHECK: %[[GOT:.*]]:2 = ring.wait %[[TOKEN]] : !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>
// CHECK: return %[[GOT]]#0, %[[GOT]]#1
func.func @example(%k: tensor<1x256x2x64xf32>, %v: tensor<1x256x2x64xf32>,
                   %owner: index, %sk: index, %to: index, %next: index,
                   %from: index, %moves: tensor<8x8x2xi1>, %turn: index)
    -> (tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>) {
  %token = ring.start %k, %v dims [1, 1] of <zigzag over 8>[%owner]
      extent %sk to %to receive [%next] from %from
      segments(%moves[%turn] : tensor<8x8x2xi1>) channel <@cp, 0>
      : (tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>)
      -> !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>
  %k1, %v1 = ring.wait %token
      : !ring.token<tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>>
  return %k1, %v1 : tensor<1x256x2x64xf32>, tensor<1x256x2x64xf32>
}

// Any type of tensor along any dimension; flags of no segment, of
// each, or of all alike.
//
// CHECK-LABEL: func @starts
func.func @starts(%x: tensor<?x3xi8>, %y: tensor<2x?xf32>, %n: index,
                  %p: tensor<4x3x1xi1>, %alike: tensor<1x9x1xi1>) {
  // CHECK: ring.start %{{.*}} dims [0] of <contiguous over 8>[%[[N:.*]]] extent %[[N]] to %[[N]] receive[%[[N]]] from %[[N]] channel <@cp, 0> : (tensor<?x3xi8>) -> !ring.token<tensor<?x3xi8>>
  %0 = ring.start %x dims [0] of <contiguous over 8>[%n] extent %n to %n
      receive [%n] from %n channel <@cp, 0>
      : (tensor<?x3xi8>) -> !ring.token<tensor<?x3xi8>>
  // CHECK: dims [0, 1] of <striped 4 over 4>[{{.*}}] extent %[[N]] to %[[N]] receive[%[[N]]] from %[[N]] segments(%{{.*}}[%[[N]]] : tensor<4x3x1xi1>) channel <@four, 9223372036854775807> {mine} :
  %1 = ring.start %x, %y dims [0, 1] of <striped 4 over 4>[%n] extent %n to %n
      receive [%n] from %n segments(%p[%n] : tensor<4x3x1xi1>) channel <@four, 9223372036854775807> {mine}
      : (tensor<?x3xi8>, tensor<2x?xf32>) -> !ring.token<tensor<4x3xi8>, tensor<2x?xf32>>
  // CHECK: receive[%[[N]]] from %[[N]] segments(%{{.*}}[%[[N]]] : tensor<1x9x1xi1>) channel <@cp, 1> :
  %2 = ring.start %x dims [0] of <contiguous over 8>[%n] extent %n to %n
      receive [%n] from %n segments(%alike[%n] : tensor<1x9x1xi1>) channel <@cp, 1>
      : (tensor<?x3xi8>) -> !ring.token<tensor<?x3xi8>>
  // CHECK: ring.wait %{{.*}} {mine} : !ring.token<tensor<4x3xi8>, tensor<2x?xf32>>
  %3:2 = ring.wait %1 {mine} : !ring.token<tensor<4x3xi8>, tensor<2x?xf32>>
  return
}

// CHECK-LABEL: func @all_to_all
func.func @all_to_all(%q: tensor<1x128x8x64xf32>, %o: tensor<1x512x2x64xf32>, %l: tensor<1x2x?xf32>, %n: index) {
  // CHECK: ring.start %{{.*}} dims [1] of <zigzag over 4>[%{{.*}}] extent %{{.*}} all_to_all heads over 4 channel <@four, 2>
  // CHECK-SAME: : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  %0 = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 channel <@four, 2>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  // CHECK: ring.start {{.*}} all_to_all heads over 4 groups 2 channel <@four, 2>
  %g = ring.start %q dims [1] of <zigzag over 4>[%n] extent %n all_to_all heads over 4 groups 2 channel <@four, 2>
      : (tensor<1x128x8x64xf32>) -> !ring.token<tensor<1x512x2x64xf32>>
  // CHECK: dims [1, 2] of <striped 2 over 4>[%{{.*}}] extent %{{.*}} all_to_all sequence over 4 channel <@four, 2>
  %1 = ring.start %o, %l dims [1, 2] of <striped 2 over 4>[%n] extent %n all_to_all sequence over 4 channel <@four, 2>
      : (tensor<1x512x2x64xf32>, tensor<1x2x?xf32>) -> !ring.token<tensor<1x128x8x64xf32>, tensor<1x8x?xf32>>
  return
}

// No pass moves a transfer over another one, drops it or makes two of one.
//
// RUN: burst-opt %s --canonicalize --cse --loop-invariant-code-motion | FileCheck %s --check-prefix=OPT
// OPT-LABEL: func @kept
// OPT: scf.for
// OPT-COUNT-2: ring.start
// OPT: return
func.func @kept(%x: tensor<2xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = ring.start %x dims [0] of <contiguous over 8>[%n] extent %n to %n
        receive [%n] from %n channel <@cp, 0> : (tensor<2xf32>) -> !ring.token<tensor<2xf32>>
    %1 = ring.start %x dims [0] of <contiguous over 8>[%n] extent %n to %n
        receive [%n] from %n channel <@cp, 0> : (tensor<2xf32>) -> !ring.token<tensor<2xf32>>
  }
  return
}
