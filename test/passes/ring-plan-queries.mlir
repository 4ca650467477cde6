// RUN: burst-opt %s --burst-to-ring --ring-plan | FileCheck %s

// Each of P = 2 ranks sends its queries and a state P - 1 times. A slice of 4
// rows of 2 heads has 4 * 2 * 4 numbers, its state 4 * 2 (6 + 2) of f32. Of
// memory there are q, k, v and out, m in that of lse, l and the f32 state of o;
// then two slices and four states.

shard.grid @cp(shape = 2)

// CHECK: "bytes_sent": 320,
// CHECK-NEXT: "bytes_sent_by_tensor": {
// CHECK-NEXT:   "l": 32,
// CHECK-NEXT:   "m": 32,
// CHECK-NEXT:   "o": 192,
// CHECK-NEXT:   "q": 64
// CHECK-NEXT: },
// CHECK: "messages": 2,
// CHECK-NEXT: "peak_bytes": 1648,
// CHECK-NEXT: "peak_slices": 1,
func.func @plan(%q: tensor<1x8x2x4xbf16> {burst.name = "q"}, %k: tensor<1x8x1x4xbf16>,
    %v: tensor<1x8x1x6xbf16>) -> (tensor<1x8x2x6xbf16>, tensor<1x2x8xf32>) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x8x2x4xbf16>, tensor<1x8x1x4xbf16>, tensor<1x8x1x6xbf16>)
      -> (tensor<1x8x2x6xbf16>, tensor<1x2x8xf32>)
  return %o, %lse : tensor<1x8x2x6xbf16>, tensor<1x2x8xf32>
}
