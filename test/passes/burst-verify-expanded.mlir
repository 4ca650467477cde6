// RUN: burst-opt %s --burst-verify-expanded -verify-diagnostics -split-input-file

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @expanded(%q: !q) {
  %0:2 = burst.attention %q, %q, %q : (!q, !q, !q) -> (!q, !lse)
  %1:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi slt, %j, %sk : index
        burst.yield %keep : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        burst.yield %s : f32
      }
      bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
        %true = arith.constant true
        burst.yield %true, %true : i1, i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @names(%q: !q) {
  // expected-error @below {{still has named masks or scores behind burst-expand-names}}
  %0:2 = burst.attention %q, %q, %q mask full : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @names(%q: !q) {
  // expected-error @below {{still has named masks or scores behind burst-expand-names}}
  %0:2 = burst.attention %q, %q, %q score softcap<1.0> : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @bounds(%q: !q) {
  // expected-error @below {{has a mask without bounds behind burst-derive-bounds}}
  %0:2 = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi slt, %j, %sk : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !lse)
  return
}
