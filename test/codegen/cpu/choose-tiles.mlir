// Tiles by the processor, the type and the head dim, in the IR.
//
// DEFINE: %{choose} = burst-opt %s --burst-to-ring --mlir-print-debuginfo=false
// DEFINE: %{tiles} = | grep -o '@.*tile.shape = .*' | FileCheck %s --check-prefix
//
// An even number of register tiles of 6 or 14 rows. A tile of keys and one of values
// lie in the second level cache: 256 KiB where nothing else is known.
// RUN: %{choose} --burst-choose-tiles='target-triple=x86_64-linux-gnu target-cpu=haswell' %{tiles} HASWELL
// HASWELL: @small{{.*}}array<i64: 96, 128>
// HASWELL: @large{{.*}}array<i64: 96, 64>
// HASWELL: @backward{{.*}}array<i64: 96, 128>
// RUN: %{choose} --burst-choose-tiles='target-triple=x86_64-linux-gnu target-cpu=sapphirerapids' %{tiles} WIDE
// WIDE: @small{{.*}}array<i64: 112, 128>
// WIDE: @large{{.*}}array<i64: 112, 128>
// WIDE: @backward{{.*}}array<i64: 112, 128>
// RUN: %{choose} --burst-choose-tiles='target-triple=aarch64-linux-gnu' %{tiles} ARM
// ARM: @small{{.*}}array<i64: 112, 128>
// ARM: @large{{.*}}array<i64: 112, 64>

// What was measured goes before the rule, where vectors are those it was measured
// with.
// RUN: %{choose} --burst-choose-tiles='target-triple=x86_64-linux-gnu target-cpu=znver3' %{tiles} TUNED
// TUNED: @small{{.*}}array<i64: 96, 256>
// TUNED: @backward{{.*}}array<i64: 96, 96>
// RUN: %{choose} --burst-choose-tiles='target-triple=x86_64-linux-gnu target-cpu=znver3 features=-avx2' %{tiles} NARROW
// NARROW: @backward{{.*}}array<i64: 96, 128>

// What is there stays, and what is asked for is taken.
// RUN: %{choose} --burst-choose-tiles='target-cpu=x86-64 target-triple=x86_64-linux-gnu rows=24 columns=48' --burst-choose-tiles %{tiles} GIVEN
// GIVEN: @small{{.*}}array<i64: 24, 48>
// GIVEN: @large{{.*}}array<i64: 24, 48>

// Kernels have them.
// RUN: burst-opt %s --burst-to-ring --burst-to-tile='target-triple=aarch64-linux-gnu' | FileCheck %s --check-prefix=KERNEL
// KERNEL: func.func private @small_attend
// KERNEL: memref.alloca() {{.*}} : memref<112x64xf32>
// KERNEL: memref.alloca() {{.*}} : memref<14x128xf32>
// KERNEL: func.func @small({{.*}}tile.shape = array<i64: 112, 128>

// Scores of whole slices, where that is asked for.
// RUN: burst-opt %s --burst-to-ring --burst-to-tile='target-triple=aarch64-linux-gnu local-tiling=false' | FileCheck %s --check-prefix=STORED
// STORED: func.func private @small_scores
// STORED: func.func private @small_softmax
// STORED: func.func private @small_sums
// STORED: func.func private @backward_weights
// STORED: func.func private @backward_sums

// RUN: not burst-opt %s --burst-to-ring --burst-choose-tiles='target-triple=x86_64-linux-gnu target-cpu=haswel' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown processor 'haswel' for x86_64-unknown-linux-gnu, similar: haswell
// RUN: not burst-opt %s --burst-to-ring --burst-to-tile='target-triple=riscv64-linux-gnu' 2>&1 | FileCheck %s --check-prefix=TRIPLE
// TRIPLE: triple 'riscv64-linux-gnu', wanted x86_64 or aarch64 on linux

shard.grid @g(shape = 2)
!s = tensor<1x256x1x64xf32>
!b = tensor<1x256x1x256xf64>
!l = tensor<1x1x256xf32>
!m = tensor<1x1x256xf64>
func.func @small(%q: !s) -> !s {
  %o, %lse = burst.attention %q, %q, %q sequence <@g, contiguous> : (!s, !s, !s) -> (!s, !l)
  return %o : !s
}
func.func @large(%q: !b) -> !b {
  %o, %lse = burst.attention %q, %q, %q sequence <@g, contiguous> : (!b, !b, !b) -> (!b, !m)
  return %o : !b
}
func.func @backward(%q: !s, %o: !s, %lse: !l, %do: !s) -> !s {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %o, %lse, %do sequence <@g, contiguous>
      strategy <ring_kv> : (!s, !s, !s, !s, !l, !s) -> (!s, !s, !s)
  return %dq : !s
}
