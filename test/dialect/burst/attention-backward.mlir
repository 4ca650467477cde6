// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

shard.grid @cp(shape = 4)

// The example of the op.
//
// CHECK-LABEL: func @example
// CHECK-SAME: (%[[Q:.*]]: tensor<1x512x4x64xf32>, %[[K:.*]]: tensor<1x512x4x64xf32>, %[[V:.*]]: tensor<1x512x4x64xf32>, %[[O:.*]]: tensor<1x512x4x64xf32>, %[[LSE:.*]]: tensor<1x4x512xf32>, %[[DO:.*]]: tensor<1x512x4x64xf32>)
// CHECK: %dq, %dk, %dv = burst.attention_backward %[[Q]], %[[K]], %[[V]], %[[O]], %[[LSE]], %[[DO]] mask causal sequence <@cp, zigzag> strategy <ring_q> : (tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x4x512xf32>, tensor<1x512x4x64xf32>) -> (tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>)
func.func @example(%q: tensor<1x512x4x64xf32>, %k: tensor<1x512x4x64xf32>,
                   %v: tensor<1x512x4x64xf32>, %o: tensor<1x512x4x64xf32>,
                   %lse: tensor<1x4x512xf32>, %do: tensor<1x512x4x64xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal
      sequence <@cp, zigzag>
      strategy <ring_q>
      : (tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>,
         tensor<1x512x4x64xf32>, tensor<1x4x512xf32>, tensor<1x512x4x64xf32>)
      -> (tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>, tensor<1x512x4x64xf32>)
  return
}

// A gradient of lse, dynamic sizes, heads and head dims that differ, all
// regions, and the gradient of a captured table.
//
// CHECK-LABEL: func @all
// CHECK: %dq, %dk, %dv, %dt = burst.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[DLSE:[a-z0-9]+]]
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk) {
// CHECK: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %{{.*}} = %{{.*}} : i32, %{{.*}} = %{{.*}} : tensor<9xbf16>) {
// CHECK: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
// CHECK: scale 5.000000e-01
// CHECK: gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %{{.*}} : f32, %{{.*}} : i32, %{{.*}} : tensor<9xbf16>) {
// CHECK: gradients [1] {mine}
// CHECK-SAME: -> (tensor<?x?x4x8xbf16>, tensor<?x?x2x8xbf16>, tensor<?x?x2x6xbf16>, tensor<9xf32>)
func.func @all(%q: tensor<?x?x4x8xbf16>, %k: tensor<?x?x2x8xbf16>,
               %v: tensor<?x?x2x6xbf16>, %o: tensor<?x?x4x6xbf16>,
               %rows: tensor<?x4x?xf32>, %x: i32, %t: tensor<9xbf16>) {
  %0:4 = burst.attention_backward %q, %k, %v, %o, %rows, %o, %rows
      mask(%b, %h, %i, %j, %sq, %sk) {
        %true = arith.constant true
        burst.yield %true : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %x : i32, %e = %t : tensor<9xbf16>) {
        burst.yield %s : f32
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %true = arith.constant true
        burst.yield %true, %true : i1, i1
      }
      scale 0.5
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : i32, %e : tensor<9xbf16>) {
        burst.yield %w : f32
      }
      gradients [1] {mine}
      : (tensor<?x?x4x8xbf16>, tensor<?x?x2x8xbf16>, tensor<?x?x2x6xbf16>,
         tensor<?x?x4x6xbf16>, tensor<?x4x?xf32>, tensor<?x?x4x6xbf16>, tensor<?x4x?xf32>)
      -> (tensor<?x?x4x8xbf16>, tensor<?x?x2x8xbf16>, tensor<?x?x2x6xbf16>, tensor<9xf32>)
  return
}
