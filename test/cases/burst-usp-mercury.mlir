// Cases of MayDomine/Burst-Attention, feifeibear/long-context-attention (USP)
// and ChandlerGuan/mercury_artifact, forward. Rings over two grid axes and
// Ulysses are not supported yet: all run as a ring over as many ranks.
//
// DEFINE: %{run} = burst-run %s --check --entry
// RUN: %{run} c10
// RUN: %{run} c11_basic
// RUN: %{run} c11_zigzag
// RUN: %{run} c11_stripe
// RUN: %{run} c11_full
// RUN: %{run} c13_four
// RUN: %{run} c13_eight
// RUN: %{run} c13_grouped
// RUN: sed 's/any(shape = 8)/any(shape = 1)/' %s | burst-run - --check --entry c55
// RUN: sed 's/any(shape = 8)/any(shape = 2)/' %s | burst-run - --check --entry c55
// RUN: sed 's/any(shape = 8)/any(shape = 3)/' %s | burst-run - --check --entry c55
// RUN: sed 's/any(shape = 8)/any(shape = 4)/' %s | burst-run - --check --entry c55
// RUN: sed 's/any(shape = 8)/any(shape = 5)/' %s | burst-run - --check --entry c55
// RUN: sed 's/any(shape = 8)/any(shape = 6)/' %s | burst-run - --check --entry c55
// RUN: sed 's/any(shape = 8)/any(shape = 7)/' %s | burst-run - --check --entry c55
// RUN: sed 's/any(shape = 8)/any(shape = 8)/' %s | burst-run - --check --entry c55
// RUN: %{run} c56

shard.grid @four(shape = 4)
shard.grid @eight(shape = 8)
shard.grid @any(shape = 8)

// C10: striped, fp16; there a double ring of 2 x 4.
!t10 = tensor<2x128x4x16xf16>
!l10 = tensor<2x4x128xf32>
func.func @c10(%q: !t10, %k: !t10, %v: !t10) -> (!t10, !l10) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@eight, striped> : (!t10, !t10, !t10) -> (!t10, !l10)
  return %o, %lse : !t10, !l10
}

// C11: there Ulysses x ring in 1 x 4, 2 x 2 and 4 x 1.
!t11 = tensor<1x64x4x16xbf16>
!l11 = tensor<1x4x64xf32>
func.func @c11_basic(%q: !t11, %k: !t11, %v: !t11) -> (!t11, !l11) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@four, contiguous> : (!t11, !t11, !t11) -> (!t11, !l11)
  return %o, %lse : !t11, !l11
}
func.func @c11_zigzag(%q: !t11, %k: !t11, %v: !t11) -> (!t11, !l11) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@four, zigzag> : (!t11, !t11, !t11) -> (!t11, !l11)
  return %o, %lse : !t11, !l11
}
func.func @c11_stripe(%q: !t11, %k: !t11, %v: !t11) -> (!t11, !l11) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@four, striped> : (!t11, !t11, !t11) -> (!t11, !l11)
  return %o, %lse : !t11, !l11
}
func.func @c11_full(%q: !t11, %k: !t11, %v: !t11) -> (!t11, !l11) {
  %o, %lse = burst.attention %q, %k, %v mask full
      sequence <@four, zigzag> : (!t11, !t11, !t11) -> (!t11, !l11)
  return %o, %lse : !t11, !l11
}

// C13: there Ulysses over 4 and 8 ranks; 8 query heads on 2 key heads.
!t13 = tensor<2x72x8x16xbf16>
!g13 = tensor<2x72x2x16xbf16>
!l13 = tensor<2x8x72xf32>
func.func @c13_four(%q: !t13, %k: !t13, %v: !t13) -> (!t13, !l13) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@four, contiguous> : (!t13, !t13, !t13) -> (!t13, !l13)
  return %o, %lse : !t13, !l13
}
func.func @c13_eight(%q: !t13, %k: !t13, %v: !t13) -> (!t13, !l13) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@eight, contiguous> : (!t13, !t13, !t13) -> (!t13, !l13)
  return %o, %lse : !t13, !l13
}
func.func @c13_grouped(%q: !t13, %k: !g13, %v: !g13) -> (!t13, !l13) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@four, contiguous> : (!t13, !g13, !g13) -> (!t13, !l13)
  return %o, %lse : !t13, !l13
}

// C55: every number of ranks from 1 to 8.
!t55 = tensor<4x64x4x16xbf16>
!g55 = tensor<4x64x2x16xbf16>
!l55 = tensor<4x4x64xf32>
func.func @c55(%q: !t55, %k: !g55, %v: !g55) -> (!t55, !l55) {
  %o, %lse = burst.attention %q, %k, %v mask full
      sequence <@any, contiguous> : (!t55, !g55, !g55) -> (!t55, !l55)
  return %o, %lse : !t55, !l55
}

// C56: there double rings of 4 x 2 and 2 x 4.
!t56 = tensor<4x64x5x16xbf16>
!l56 = tensor<4x5x64xf32>
func.func @c56(%q: !t56, %k: !t56, %v: !t56) -> (!t56, !l56) {
  %o, %lse = burst.attention %q, %k, %v mask full
      sequence <@eight, contiguous> : (!t56, !t56, !t56) -> (!t56, !l56)
  return %o, %lse : !t56, !l56
}
