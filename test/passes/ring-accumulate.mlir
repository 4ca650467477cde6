// RUN: burst-opt %s --ring-accumulate --split-input-file -verify-diagnostics | FileCheck %s

!q = tensor<1x8x2x4xf32>
!k = tensor<1x8x1x4xf32>
!m = tensor<1x2x8xf32>

// CHECK-LABEL: func @chain
// CHECK: %[[Z:.*]] = ring.zero %{{.*}} : tensor<1x8x1x4xf32>
// CHECK: %{{.*}}, %[[DK0:.*]], %[[DV0:.*]] = ring.attend_grad
// CHECK: into %{{.*}}, %[[Z]], %[[Z]]
// CHECK: %{{.*}}, %[[DK1:.*]], %[[DV1:.*]] = ring.attend_grad
// CHECK: into %{{.*}}, %[[DK0]], %[[DV0]]
// CHECK: return %[[DK1]], %[[DV1]]
func.func @chain(%q: !q, %k: !k, %m: !m, %n: index) -> (!k, !k) {
  %c0 = arith.constant 0 : index
  %zq = ring.zero %q : !q -> !q
  %z = ring.zero %k : !k -> !k
  %dq0, %dk0, %dv0 = ring.attend_grad (%q, %q, %m, %m at %c0) of <contiguous over 1> extent %n
      slice (%k, %k at %c0) of <contiguous over 1> extent %n
      into %zq, %z, %z scale 0.5 : (!q, !q, !m, !m, !k, !k) -> (!q, !k, !k)
  %dq1, %dk1, %dv1 = ring.attend_grad (%q, %q, %m, %m at %c0) of <contiguous over 1> extent %n
      slice (%k, %k at %c0) of <contiguous over 1> extent %n
      into %zq, %z, %z scale 0.5 : (!q, !q, !m, !m, !k, !k) -> (!q, !k, !k)
  %dk = ring.sum_chunks %dk0, %dk1 : !k
  %dv = ring.sum_chunks %dv0, %dv1 : !k
  return %dk, %dv : !k, !k
}

// -----

func.func @no_attend(%a: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %z = ring.zero %a : tensor<1x8x1x4xf32> -> tensor<1x8x1x4xf32>
  // expected-error @below {{adds what no ring.attend_grad gives that begins with zeros behind the chunk before}}
  %s = ring.sum_chunks %z, %z : tensor<1x8x1x4xf32>
  return %s : tensor<1x8x1x4xf32>
}
