// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

// ring.rotate and ring.yield: every clause.

shard.grid @cp(shape = 8)

!kv = tensor<1x32x2x16xf32>
!m = tensor<1x2x32xf32>

// CHECK-LABEL: func @carry
// CHECK: %[[DONE:.*]] = ring.rotate(%[[K:.*]], %[[V:.*]] dims [1, 1]) of <zigzag over 8>[%{{.*}}] extent %{{.*}} channel <@cp, 0> carry(%{{.*}} : tensor<1x32x2x16xf32>) : (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>) -> tensor<1x32x2x16xf32> {
// CHECK-NEXT: ^bb0(%owner: index, %[[KT:.*]]: tensor<1x32x2x16xf32>, %{{.*}}: tensor<1x32x2x16xf32>, %{{.*}}: tensor<1x32x2x16xf32>):
// CHECK-NEXT: ring.yield %[[KT]] : tensor<1x32x2x16xf32>
// CHECK: return %[[DONE]]
func.func @carry(%k: !kv, %v: !kv, %r: index, %n: index) -> !kv {
  %0 = ring.rotate (%k, %v dims [1, 1]) of <zigzag over 8>[%r] extent %n
      channel <@cp, 0> carry(%k : !kv) : (!kv, !kv) -> !kv {
  ^bb0(%owner: index, %kt: !kv, %vt: !kv, %c: !kv):
    ring.yield %kt : !kv
  }
  return %0 : !kv
}

// CHECK-LABEL: func @add
// CHECK: ring.rotate(%{{.*}}, %{{.*}} dims [1, 1]) of <zigzag over 8>[%{{.*}}] extent %{{.*}} channel <@cp, 2> reach %{{.*}} by %{{.*}} : tensor<8x2xindex> partial add dims [1, 1] : (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>) -> (tensor<1x32x2x16xf32>, tensor<1x32x2x16xf32>) {
func.func @add(%k: !kv, %v: !kv, %r: index, %n: index, %reach: tensor<8x2xindex>) -> !kv {
  %0:2 = ring.rotate (%k, %v dims [1, 1]) of <zigzag over 8>[%r] extent %n
      channel <@cp, 2> reach %reach by %n : tensor<8x2xindex>
      partial add dims [1, 1] : (!kv, !kv) -> (!kv, !kv) {
  ^bb0(%owner: index, %kt: !kv, %vt: !kv, %dk: !kv, %dv: !kv):
    ring.yield %dk, %dv : !kv, !kv
  }
  return %0#0 : !kv
}

// CHECK-LABEL: func @merge
// CHECK: ring.rotate(%{{.*}} dims [1]) of <striped over 8>[%{{.*}}] extent %{{.*}} channel <@cp, 0> carry(%{{.*}} : index) partial merge dims [1, 2, 2] : (tensor<1x32x2x16xf32>) -> (index, tensor<1x32x2x16xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>) {
func.func @merge(%q: !kv, %r: index, %n: index) {
  %0:4 = ring.rotate (%q dims [1]) of <striped over 8>[%r] extent %n
      channel <@cp, 0> carry(%n : index) partial merge dims [1, 2, 2]
      : (!kv) -> (index, !kv, !m, !m) {
  ^bb0(%owner: index, %qt: !kv, %c: index, %o: !kv, %m: !m, %l: !m):
    ring.yield %owner, %o, %m, %l : index, !kv, !m, !m
  }
  return
}

// Nothing is kept.
//
// CHECK-LABEL: func @nothing
// CHECK: ring.rotate(%{{.*}} dims [1]) of <zigzag over 8>[%{{.*}}] extent %{{.*}} channel <@cp, 0> : (tensor<1x32x2x16xf32>) -> () {
// CHECK: ring.yield{{$}}
func.func @nothing(%q: !kv, %r: index, %n: index) {
  ring.rotate (%q dims [1]) of <zigzag over 8>[%r] extent %n channel <@cp, 0>
      : (!kv) -> () {
  ^bb0(%owner: index, %qt: !kv):
    ring.yield
  }
  return
}

// In both directions at once.
//
// CHECK-LABEL: func @both
// CHECK: ring.rotate(%{{.*}} dims [1]) of <zigzag over 8>[%{{.*}}] extent %{{.*}} channel <@cp, 0> bidirectional reach %{{.*}} : tensor<8x2x2xindex> : (tensor<1x32x2x16xf32>) -> () {
func.func @both(%q: !kv, %r: index, %n: index, %reach: tensor<8x2x2xindex>) {
  ring.rotate (%q dims [1]) of <zigzag over 8>[%r] extent %n channel <@cp, 0> bidirectional
      reach %reach : tensor<8x2x2xindex> : (!kv) -> () {
  ^bb0(%owner: index, %qt: !kv):
    ring.yield
  }
  return
}
