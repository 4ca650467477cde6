// Gradients for other processors: the instructions of each, and no product through
// the stack. (Without an instruction that multiplies and adds, one of the sums of
// transposed products is there at times.)
//
// DEFINE: %{target} =
// DEFINE: %{product} = vfmadd
// DEFINE: %{compile} = burst-compile %s --emit=object -o %t.o %{target}
// DEFINE: %{undefined} = llvm-nm -u %t.o | FileCheck %s --check-prefix=UNDEFINED --implicit-check-not=' U '
// DEFINE: %{code} = llvm-objdump -d --no-show-raw-insn %t.o | FileCheck %s --check-prefix
// DEFINE: %{loops} = llvm-objdump -d --no-show-raw-insn %t.o | sed -n '/<multiply/,/^$/p' | sed -n '/%{product}/,/\t[jb]/p' | FileCheck %s --implicit-check-not=%rsp --implicit-check-not='[sp' --check-prefix

// Who waits for another task gives the processor away, and sleeps. Nothing else
// is called.
// UNDEFINED: U sched_yield
// UNDEFINED: U usleep

// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=x86-64
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{code} SSE --implicit-check-not=ymm --implicit-check-not=zmm
// SSE: mulps {{.*}}%xmm
// SSE: addps {{.*}}%xmm
// SSE-COUNT-32: mulps {{.*}}%xmm
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=haswell
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} YMM --implicit-check-not=zmm
// YMM-COUNT-48: vfmadd{{.*}}ps {{.*}}%ymm
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=skylake-avx512
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} ZMM
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=sapphirerapids
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} ZMM
// ZMM-COUNT-56: vfmadd{{.*}}ps {{.*}}%zmm
// REDEFINE: %{product} = fmla
// REDEFINE: %{target} = --target-triple=aarch64-linux-gnu --target-cpu=neoverse-v1
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} NEON
// NEON-COUNT-56: fmla v{{[0-9]+}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}

shard.grid @g(shape = 2)
!q = tensor<1x256x4x64xf32>
!k = tensor<1x256x2x64xf32>
!l = tensor<1x4x256xf32>
func.func @f(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      sequence <@g, zigzag> strategy <ring_kv>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
