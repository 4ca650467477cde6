// RUN: burst-opt %s --burst-to-ring --ring-plan | FileCheck %s

// Each of P = 2 ranks sends its slice and gradients P - 1 times. A slice of 4
// rows has q and do, 2 * 64 bytes, and lse and delta, 2 * 16 bytes; gradients by
// it have 64.

shard.grid @cp(shape = 2)

// CHECK: "bytes_sent": 224,
// CHECK-NEXT: "bytes_sent_by_tensor": {
// CHECK-NEXT:   "delta": 16,
// CHECK-NEXT:   "do": 64,
// CHECK-NEXT:   "dq": 64,
// CHECK-NEXT:   "lse": 16,
// CHECK-NEXT:   "q": 64
// CHECK-NEXT: },
// CHECK: "messages": 2,
// CHECK: "peak_slices": 1,
func.func @plan(%q: tensor<1x8x1x4xf32> {burst.name = "q"}, %k: tensor<1x8x1x4xf32>,
    %v: tensor<1x8x1x4xf32>, %o: tensor<1x8x1x4xf32>,
    %lse: tensor<1x1x8xf32> {burst.name = "lse"},
    %do: tensor<1x8x1x4xf32> {burst.name = "do"})
    -> (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>,
         tensor<1x8x1x4xf32>, tensor<1x1x8xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>
}
