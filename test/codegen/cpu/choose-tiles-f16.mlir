// Programs of f16 are for processors that have instructions for it.
//
// RUN: burst-opt %s --burst-to-ring --burst-choose-tiles='target-triple=x86_64-linux-gnu target-cpu=sandybridge' --verify-diagnostics
// RUN: burst-opt %s --burst-to-ring --burst-choose-tiles='target-triple=x86_64-linux-gnu target-cpu=ivybridge' | FileCheck %s
// RUN: burst-opt %s --burst-to-ring --burst-choose-tiles='target-triple=aarch64-linux-gnu' | FileCheck %s
// RUN: not burst-compile %s --target-triple=x86_64-linux-gnu --target-cpu=x86-64 -o %t.so 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not ls %t.so
// ERROR: argument 0 is of f16, which processor 'x86-64' has no instructions for: wanted one with feature 'f16c' (x86-64-v3 has it), or bf16

shard.grid @g(shape = 2)
!t = tensor<1x64x1x64xf16>
!l = tensor<1x1x64xf32>
// CHECK: @half{{.*}}tile.shape
// expected-error@+1 {{argument 0 is of f16, which processor 'sandybridge' has no instructions for: wanted one with feature 'f16c' (x86-64-v3 has it), or bf16}}
func.func @half(%q: !t) -> (!t, !l) {
  %o, %lse = burst.attention %q, %q, %q sequence <@g, contiguous> : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
