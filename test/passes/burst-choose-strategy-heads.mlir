// RUN: burst-opt %s --split-input-file --burst-choose-strategy | FileCheck %s

// What ranks do not divide is exchanged where that still wins: three ranks have three,
// three and two heads of the one attention, two, two and one of the other.

shard.grid @cp(shape = 3)
!q = tensor<1x4096x8x64xf32>
!p = tensor<1x4096x5x64xf32>

// CHECK-LABEL: @apart
// CHECK: strategy <ulysses>
// CHECK: strategy <ulysses>
func.func @apart(%q: !q, %p: !p) -> (!q, !p) {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
      : (!q, !q, !q) -> (!q, tensor<1x8x4096xf32>)
  %x, %y = burst.attention %p, %p, %p sequence <@cp, contiguous>
      : (!p, !p, !p) -> (!p, tensor<1x5x4096xf32>)
  return %o, %x : !q, !p
}

// -----

// Of one tensor a rank would have three heads for the one, four for the other.

shard.grid @cp(shape = 3)
!q = tensor<1x4096x8x64xf32>
!k = tensor<1x4096x4x64xf32>

// CHECK-LABEL: @together
// CHECK-NOT: ulysses
// CHECK-COUNT-2: strategy <ring_kv>
func.func @together(%q: !q, %k: !k) -> (!q, !q) {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
      : (!q, !q, !q) -> (!q, tensor<1x8x4096xf32>)
  %x, %y = burst.attention %q, %k, %k sequence <@cp, contiguous>
      : (!q, !k, !k) -> (!q, tensor<1x8x4096xf32>)
  return %o, %x : !q, !q
}

// -----

// That the clause does not divide its heads burst-partition says.

shard.grid @mesh(shape = 2x2)
!q = tensor<1x48x4x16xf32>
!k = tensor<1x48x1x16xf32>

// CHECK-LABEL: @few
// CHECK: strategy <
func.func @few(%q: !q, %k: !k) -> !q {
  %o, %lse = burst.attention %q, %k, %k sequence <@mesh[1], zigzag> heads <@mesh[0]>
      : (!q, !k, !k) -> (!q, tensor<1x4x48xf32>)
  return %o : !q
}
