// Objects for other processors, from any machine. Exponentials are instructions,
// not calls; the registers are those of the processor. From the first product to
// the end of each loop over the depth nothing goes through the stack.
//
// DEFINE: %{element} = f32
// DEFINE: %{target} =
// DEFINE: %{product} = vfmadd
// DEFINE: %{compile} = sed s/TYPE/%{element}/ %s | burst-compile - --emit=object -o %t.o %{target}
// DEFINE: %{undefined} = llvm-nm -u %t.o | FileCheck %s --check-prefix=CALLS --allow-empty --implicit-check-not=' U '
// DEFINE: %{code} = llvm-objdump -d --no-show-raw-insn %t.o | FileCheck %s --check-prefix
// DEFINE: %{loops} = llvm-objdump -d --no-show-raw-insn %t.o | sed -n '/<multiply/,/^$/p' | sed -n '/%{product}/,/\t[jb]/p' | FileCheck %s --implicit-check-not=%rsp --implicit-check-not='[sp' --check-prefix
// DEFINE: %{narrow} = not burst-compile %s -o %t.o --target-triple=x86_64-linux-gnu --target-cpu=i386
// DEFINE: %{unknown} = not burst-compile %s -o %t.o

// What remains: log2 of each row's sum.
// CALLS: U log2f{{$}}

// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=x86-64
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{code} SSE --implicit-check-not=ymm --implicit-check-not=zmm
// SSE: mulps {{.*}}%xmm
// SSE: addps {{.*}}%xmm
// REDEFINE: %{product} = mulps
// RUN: %{loops} XMM
// Two steps of 2 x 4 vectors.
// XMM-COUNT-32: mulps {{.*}}%xmm
// REDEFINE: %{product} = vfmadd
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=haswell
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{code} AVX2 --implicit-check-not=zmm
// RUN: %{loops} YMM
// AVX2: vfmadd{{.*}}ps {{.*}}%ymm
// Two steps of 6 x 2 vectors in both loops.
// YMM-COUNT-48: vfmadd{{.*}}ps {{.*}}%ymm
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=skylake-avx512
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} ZMM
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=znver4
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} ZMM
// 14 x 2 vectors.
// ZMM-COUNT-56: vfmadd{{.*}}ps {{.*}}%zmm
// AVX512: vfmadd{{.*}}ps {{.*}}%zmm
// REDEFINE: %{product} = fmla
// REDEFINE: %{target} = --target-triple=aarch64-linux-gnu
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} NEON
// REDEFINE: %{target} = --target-triple=aarch64-linux-gnu --target-cpu=neoverse-v1
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} NEON
// NEON-COUNT-56: fmla v{{[0-9]+}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}

// A processor of 32 bits has no code for addresses of 64.
// RUN: %{narrow} 2>&1 | FileCheck %s --check-prefix=NARROW
// NARROW: burst-compile: processor 'i386' without feature '64bit', wanted one for x86_64{{.*}}

// Numbers of 16 bits: bf16 needs no call on any processor.
// REDEFINE: %{element} = bf16
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=x86-64
// RUN: %{compile}
// RUN: %{undefined}
// REDEFINE: %{target} = --target-triple=aarch64-linux-gnu --target-cpu=neoverse-n1
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} ROWS13
// A row less: see Tuned.inc.
// ROWS13-COUNT-52: fmla v{{[0-9]+}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=haswell
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{code} AVX2
// REDEFINE: %{product} = vdpbf16ps
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=znver4
// RUN: %{compile}
// RUN: %{undefined}
// RUN: %{loops} LOOP
// RUN: %{code} DOT
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=cooperlake
// RUN: %{compile}
// RUN: %{loops} LOOP
// RUN: %{code} DOT
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=sapphirerapids
// RUN: %{compile}
// RUN: %{loops} LOOP
// RUN: %{code} DOT
// Weights are rounded, and left operands copied to all lanes from memory.
// DOT-LABEL: <multiply>:
// DOT: vbroadcastss {{.*\(%r.*}}%zmm
// DOT: vdpbf16ps %zmm{{.*}}%zmm{{.*}}%zmm
// DOT: vcvtneps2bf16 %zmm
// LOOP-COUNT-56: vdpbf16ps
// Without the instructions it is f32.
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=znver4 --features=-avx512bf16
// RUN: %{compile}
// RUN: %{code} AVX512 --implicit-check-not=bf16

// REDEFINE: %{element} = f16
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=haswell
// RUN: %{compile}
// RUN: %{undefined}
// REDEFINE: %{target} = --target-triple=x86_64-linux-gnu --target-cpu=znver4
// RUN: %{compile}
// RUN: %{undefined}
// REDEFINE: %{target} = --target-triple=aarch64-linux-gnu
// RUN: %{compile}
// RUN: %{undefined}

// Names that are not there, and where those are that are.
// RUN: %{unknown} --target-triple=x86_64-linux-gnu --target-cpu=skylake-avx521 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: burst-compile: unknown processor 'skylake-avx521' for x86_64-unknown-linux-gnu, similar: skylake-avx512
// RUN: %{unknown} --target-triple=aarch64-linux-gnu --target-cpu=haswell 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: burst-compile: unknown processor 'haswell' for aarch64-unknown-linux-gnu
// RUN: %{unknown} --target-triple=x86_64-linux-gnu --features=+avx512b16 2>&1 | FileCheck %s --check-prefix=FEATURE
// FEATURE: burst-compile: unknown feature 'avx512b16' for x86_64-unknown-linux-gnu, similar: avx512bf16
// RUN: %{unknown} --target-triple=riscv64-linux-gnu 2>&1 | FileCheck %s --check-prefix=TRIPLE
// TRIPLE: burst-compile: triple 'riscv64-linux-gnu', wanted x86_64 or aarch64 on linux
// RUN: %{unknown} --target-triple=x86_64-apple-darwin 2>&1 | FileCheck %s --check-prefix=SYSTEM
// SYSTEM: burst-compile: triple 'x86_64-apple-darwin', wanted x86_64 or aarch64 on linux
// RUN: burst-compile --target-triple=x86_64-linux-gnu --target-cpu=help | FileCheck %s --check-prefix=LIST --implicit-check-not=i386
// LIST: {{^}}haswell
// LIST: {{^}}sapphirerapids
// RUN: burst-compile --target-triple=aarch64-linux-gnu --target-cpu=help | FileCheck %s --check-prefix=ARM
// ARM: {{^}}neoverse-v1

shard.grid @g(shape = 2)
!q = tensor<1x256x4x64xTYPE>
!k = tensor<1x256x2x64xTYPE>
!l = tensor<1x4x256xf32>
func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@g, zigzag> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
