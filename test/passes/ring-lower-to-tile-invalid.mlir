// RUN: not burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile 2>&1 | FileCheck %s
// RUN: not burst-run %s --check 2>&1 | FileCheck %s
// RUN: burst-run %s --interpret --check

// CHECK: error: 'ring.attend_grad' op has gradients of captured tables, which kernels do not compute yet; interpret the program, or leave `gradients` out
shard.grid @g(shape = 2)
!x = tensor<1x8x2x4xf32>
!l = tensor<1x2x8xf32>
!t = tensor<8x8xf32>
func.func @tables(%q: !x, %k: !x, %v: !x, %o: !x, %l: !l, %do: !x, %bias: !t) -> (!x, !x, !x, !t) {
  %dq, %dk, %dv, %db = burst.attention_backward %q, %k, %v, %o, %l, %do
      score bias(%bias : !t) sequence <@g, contiguous> gradients [0]
      : (!x, !x, !x, !x, !l, !x) -> (!x, !x, !x, !t)
  return %dq, %dk, %dv, %db : !x, !x, !x, !t
}
