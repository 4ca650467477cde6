// Cases of NVIDIA/TransformerEngine, tests/pytorch/attention, forward, on 4
// ranks and (sed) on 2, in bf16 and (sed) in fp16. There also schedules with
// all-to-all and all-gather, which are not supported yet: a ring here.
//
// DEFINE: %{four} = burst-run %s --check --entry
// DEFINE: %{two} = sed -e 's/shape = 4/shape = 2/' -e 's/xbf16>/xf16>/g' %s | burst-run - --check --entry
// RUN: %{four} c15
// RUN: %{four} c16
// RUN: %{four} c16_below
// RUN: %{four} c16_shard
// RUN: %{four} c16_above
// RUN: %{four} c16_all
// RUN: %{four} c18
// RUN: %{four} c20
// RUN: %{four} c21
// RUN: %{four} c23_1hss
// RUN: %{four} c23_bhss
// RUN: %{four} c23_11ss
// RUN: %{four} c23_111s
// RUN: %{four} c23_b1ss
// RUN: %{four} c25
// RUN: %{four} c28
// RUN: %{four} c28_window
// RUN: %{four} c28_d256
// RUN: %{two} c15
// RUN: %{two} c16
// RUN: %{two} c16_shard
// RUN: %{two} c18
// RUN: %{two} c20
// RUN: %{two} c21
// RUN: %{two} c23_1hss
// RUN: %{two} c25
// RUN: %{two} c28_window

shard.grid @cp(shape = 4)

// C15: full.
!t15 = tensor<2x128x4x16xbf16>
!l15 = tensor<2x4x128xf32>
func.func @c15(%q: !t15, %k: !t15, %v: !t15) -> (!t15, !l15) {
  %o, %lse = burst.attention %q, %k, %v mask full
      sequence <@cp, zigzag> : (!t15, !t15, !t15) -> (!t15, !l15)
  return %o, %lse : !t15, !l15
}

// C16: causal windows: (16, 0), of a shard's length n = 32 and one less and one
// more, and of more than the sequence.
func.func @c16(%q: !t15, %k: !t15, %v: !t15) -> (!t15, !l15) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 16, right = 0>
      sequence <@cp, contiguous> : (!t15, !t15, !t15) -> (!t15, !l15)
  return %o, %lse : !t15, !l15
}
func.func @c16_below(%q: !t15, %k: !t15, %v: !t15) -> (!t15, !l15) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 31, right = 0>
      sequence <@cp, contiguous> : (!t15, !t15, !t15) -> (!t15, !l15)
  return %o, %lse : !t15, !l15
}
func.func @c16_shard(%q: !t15, %k: !t15, %v: !t15) -> (!t15, !l15) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 32, right = 0>
      sequence <@cp, contiguous> : (!t15, !t15, !t15) -> (!t15, !l15)
  return %o, %lse : !t15, !l15
}
func.func @c16_above(%q: !t15, %k: !t15, %v: !t15) -> (!t15, !l15) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 33, right = 0>
      sequence <@cp, contiguous> : (!t15, !t15, !t15) -> (!t15, !l15)
  return %o, %lse : !t15, !l15
}
func.func @c16_all(%q: !t15, %k: !t15, %v: !t15) -> (!t15, !l15) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 200, right = 0>
      sequence <@cp, zigzag> : (!t15, !t15, !t15) -> (!t15, !l15)
  return %o, %lse : !t15, !l15
}

// C18: causal, 8 query heads on 2 key heads.
!t18 = tensor<2x128x8x16xbf16>
!g18 = tensor<2x128x2x16xbf16>
!l18 = tensor<2x8x128xf32>
func.func @c18(%q: !t18, %k: !g18, %v: !g18) -> (!t18, !l18) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> : (!t18, !g18, !g18) -> (!t18, !l18)
  return %o, %lse : !t18, !l18
}

// C20: a window to both sides, 6 query heads on 2 key heads.
!t20 = tensor<2x128x6x16xbf16>
!l20 = tensor<2x6x128xf32>
func.func @c20(%q: !t20, %k: !g18, %v: !g18) -> (!t20, !l20) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 16, right = 16>
      sequence <@cp, zigzag> : (!t20, !g18, !g18) -> (!t20, !l20)
  return %o, %lse : !t20, !l20
}

// C21: values narrower than keys (MLA).
!t21 = tensor<2x64x4x24xbf16>
!v21 = tensor<2x64x4x16xbf16>
!l21 = tensor<2x4x64xf32>
func.func @c21(%q: !t21, %k: !t21, %v: !v21) -> (!v21, !l21) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> : (!t21, !t21, !v21) -> (!v21, !l21)
  return %o, %lse : !v21, !l21
}

// C23: causal, with a bias after scaling, broadcast in every way.
!t23 = tensor<2x64x3x16xbf16>
!l23 = tensor<2x3x64xf32>
!b1hss = tensor<1x3x64x64xbf16>
!bbhss = tensor<2x3x64x64xbf16>
!b11ss = tensor<1x1x64x64xbf16>
!b111s = tensor<1x1x1x64xbf16>
!bb1ss = tensor<2x1x64x64xbf16>
func.func @c23_1hss(%q: !t23, %k: !t23, %v: !t23, %bias: !b1hss) -> (!t23, !l23) {
  %o, %lse = burst.attention %q, %k, %v mask causal score bias(%bias : !b1hss)
      sequence <@cp, zigzag> : (!t23, !t23, !t23) -> (!t23, !l23)
  return %o, %lse : !t23, !l23
}
func.func @c23_bhss(%q: !t23, %k: !t23, %v: !t23, %bias: !bbhss) -> (!t23, !l23) {
  %o, %lse = burst.attention %q, %k, %v mask causal score bias(%bias : !bbhss)
      sequence <@cp, zigzag> : (!t23, !t23, !t23) -> (!t23, !l23)
  return %o, %lse : !t23, !l23
}
func.func @c23_11ss(%q: !t23, %k: !t23, %v: !t23, %bias: !b11ss) -> (!t23, !l23) {
  %o, %lse = burst.attention %q, %k, %v mask causal score bias(%bias : !b11ss)
      sequence <@cp, zigzag> : (!t23, !t23, !t23) -> (!t23, !l23)
  return %o, %lse : !t23, !l23
}
func.func @c23_111s(%q: !t23, %k: !t23, %v: !t23, %bias: !b111s) -> (!t23, !l23) {
  %o, %lse = burst.attention %q, %k, %v mask causal score bias(%bias : !b111s)
      sequence <@cp, zigzag> : (!t23, !t23, !t23) -> (!t23, !l23)
  return %o, %lse : !t23, !l23
}
func.func @c23_b1ss(%q: !t23, %k: !t23, %v: !t23, %bias: !bb1ss) -> (!t23, !l23) {
  %o, %lse = burst.attention %q, %k, %v mask causal score bias(%bias : !bb1ss)
      sequence <@cp, zigzag> : (!t23, !t23, !t23) -> (!t23, !l23)
  return %o, %lse : !t23, !l23
}

// C25: values of half the width.
!t25 = tensor<2x64x4x16xbf16>
!v25 = tensor<2x64x4x8xbf16>
!l25 = tensor<2x4x64xf32>
func.func @c25(%q: !t25, %k: !t25, %v: !v25) -> (!v25, !l25) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> : (!t25, !t25, !v25) -> (!v25, !l25)
  return %o, %lse : !v25, !l25
}

// C28: wide heads, causal and in a window.
!t28 = tensor<2x64x2x32xbf16>
!l28 = tensor<2x2x64xf32>
func.func @c28(%q: !t28, %k: !t28, %v: !t28) -> (!t28, !l28) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> : (!t28, !t28, !t28) -> (!t28, !l28)
  return %o, %lse : !t28, !l28
}
func.func @c28_window(%q: !t28, %k: !t28, %v: !t28) -> (!t28, !l28) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 8, right = 0>
      sequence <@cp, zigzag> : (!t28, !t28, !t28) -> (!t28, !l28)
  return %o, %lse : !t28, !l28
}
!t28d = tensor<1x32x1x256xbf16>
!l28d = tensor<1x1x32xf32>
func.func @c28_d256(%q: !t28d, %k: !t28d, %v: !t28d) -> (!t28d, !l28d) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> : (!t28d, !t28d, !t28d) -> (!t28d, !l28d)
  return %o, %lse : !t28d, !l28d
}
