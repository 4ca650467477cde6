// Ranks take as long as the heads that they have: of 28 over 8 ranks four and three, in
// turns, and not as long as what they have room for.

// RUN: burst-opt %s --burst-to-ring --burst-simulate=machine=%burst_source/machines/h100.mlir -o /dev/null | FileCheck %s
// RUN: sed 's/x28x/x32x/; s/x28x131072/x32x131072/' %s | burst-opt --burst-to-ring --burst-simulate=machine=%burst_source/machines/h100.mlir -o /dev/null | FileCheck %s --check-prefix=EVEN
// RUN: sed 's/mask causal//' %s | burst-opt --burst-to-ring --burst-simulate=machine=%burst_source/machines/h100.mlir -o /dev/null | FileCheck %s --check-prefix=FULL

// CHECK: program @f, 8 ranks: 27.94 ms
// CHECK: the last rank computes for 20.39 ms, all of them for 23.78 ms on average
// CHECK: limited by imbalance: 27.18 ms of computation
// EVEN: program @f, 8 ranks: 27.94 ms
// EVEN: the last rank computes for 27.18 ms, all of them for 27.18 ms on average
// FULL: the last rank computes for 42.{{..}} ms, all of them for 49.{{..}} ms on average
// FULL: limited by imbalance: 5{{[56]}}.{{..}} ms of computation

shard.grid @g(shape = 8)
!q = tensor<1x131072x28x128xbf16>
!k = tensor<1x131072x4x128xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  %o, %lse = burst.attention %q, %k, %k mask causal sequence <@g, zigzag> strategy <ulysses>
      : (!q, !k, !k) -> (!q, tensor<1x28x131072xf32>)
  return %o : !q
}
