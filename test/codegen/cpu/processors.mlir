// Objects for other processors. Exponentials are instructions, not calls; the
// registers are those of the processor.
//
// REQUIRES: x86
// DEFINE: %{element} = f32
// DEFINE: %{compile} = sed s/TYPE/%{element}/ %s | burst-compile - --emit=object -o %t.o --target-cpu
// DEFINE: %{narrow} = not burst-compile %s -o %t.o --target-cpu=i386
// DEFINE: %{undefined} = llvm-nm -u %t.o | FileCheck %s --check-prefix=CALLS --allow-empty --implicit-check-not=' U '
// DEFINE: %{loops} = llvm-objdump -d --no-show-raw-insn %t.o | sed -n '/vdpbf16ps/,/\tj/p' | FileCheck %s --check-prefix=LOOP --implicit-check-not=%rsp
// DEFINE: %{code} = llvm-objdump -d --no-show-raw-insn %t.o | FileCheck %s --check-prefix

// What remains: log2 of each row's sum.
// CALLS: U log2f{{$}}

// RUN: %{compile}=x86-64
// RUN: %{undefined}
// RUN: %{code} SSE --implicit-check-not=ymm --implicit-check-not=zmm
// SSE: mulps
// RUN: %{compile}=haswell
// RUN: %{undefined}
// RUN: %{code} AVX2 --implicit-check-not=zmm
// AVX2: vfmadd{{.*}}ps {{.*}}%ymm
// RUN: %{compile}=skylake-avx512
// RUN: %{undefined}
// RUN: %{code} AVX512
// RUN: %{compile}=znver4
// RUN: %{undefined}
// RUN: %{code} AVX512
// AVX512: vfmadd{{.*}}ps {{.*}}%zmm

// A processor of 32 bits has no code for addresses of 64.
// RUN: %{narrow} 2>&1 | FileCheck %s --check-prefix=NARROW
// NARROW: burst-compile: processor 'i386' without feature '64bit', wanted one for x86_64{{.*}}

// Numbers of 16 bits: bf16 needs no call on any processor.
// REDEFINE: %{element} = bf16
// RUN: %{compile}=x86-64
// RUN: %{undefined}
// RUN: %{compile}=haswell
// RUN: %{undefined}
// RUN: %{code} AVX2
// RUN: %{compile}=znver4
// RUN: %{undefined}
// RUN: %{loops}
// RUN: %{code} DOT
// RUN: %{compile}=cooperlake
// RUN: %{loops}
// RUN: %{code} DOT
// RUN: %{compile}=sapphirerapids
// RUN: %{loops}
// RUN: %{code} DOT
// Weights are rounded, and left operands copied to all lanes from memory. From the
// first product to the end of each loop, with two steps of 14 x 2 vectors in both,
// nothing goes through the stack.
// DOT-LABEL: <multiply>:
// DOT: vbroadcastss {{.*\(%r.*}}%zmm
// DOT: vdpbf16ps %zmm{{.*}}%zmm{{.*}}%zmm
// DOT: vcvtneps2bf16 %zmm
// LOOP-COUNT-56: vdpbf16ps
// Without the instructions it is f32.
// RUN: %{compile}=znver4 --features=-avx512bf16
// RUN: %{code} AVX512 --implicit-check-not=bf16

// REDEFINE: %{element} = f16
// RUN: %{compile}=haswell
// RUN: %{undefined}
// RUN: %{compile}=znver4
// RUN: %{undefined}

// RUN: not burst-compile %s --emit=object -o %t.o --target-cpu=i486-dx-99 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: unknown processor 'i486-dx-99'

shard.grid @g(shape = 2)
!q = tensor<1x256x4x64xTYPE>
!k = tensor<1x256x2x64xTYPE>
!l = tensor<1x4x256xf32>
func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@g, zigzag> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
