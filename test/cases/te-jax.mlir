// Cases of NVIDIA/TransformerEngine, tests/jax/test_distributed_fused_attn.py,
// forward. There on a mesh dp x cp x tp, of which only cp splits the sequence.
// "balanced" is zigzag, or striped in blocks; unbalanced is contiguous.
//
// DEFINE: %{ranks} = 2
// DEFINE: %{size} = 32
// DEFINE: %{keys} = 4
// DEFINE: %{order} = zigzag
// DEFINE: %{sed} = sed -e 's/RANKS/%{ranks}/' -e 's/SIZE/%{size}/g' -e 's/KV/%{keys}/g' -e 's/ORDER/%{order}/' %s
// DEFINE: %{both} = %{sed} | burst-run - --check --entry c30_causal && %{sed} | burst-run - --check --entry c30_full
// DEFINE: %{wide} = %{sed} | burst-run - --check --entry c31
// DEFINE: %{packed} = %{sed} | burst-run - --check --entry c33 && %{sed} | burst-run - --check --entry c33_window
//
// RUN: %{both} && %{wide}
// REDEFINE: %{order} = striped 4
// RUN: %{packed}
// REDEFINE: %{keys} = 1
// RUN: %{packed} && %{wide}
// REDEFINE: %{order} = contiguous
// RUN: %{both}
// REDEFINE: %{ranks} = 4
// REDEFINE: %{size} = 64
// RUN: %{both} && %{wide}
// REDEFINE: %{order} = zigzag
// RUN: %{both}
// REDEFINE: %{keys} = 4
// RUN: %{both} && %{wide}
// REDEFINE: %{order} = striped 8
// RUN: %{packed}
// REDEFINE: %{ranks} = 8
// REDEFINE: %{size} = 128
// RUN: %{packed}
// REDEFINE: %{order} = zigzag
// RUN: %{both}
// REDEFINE: %{keys} = 1
// RUN: %{both} && %{wide}
// REDEFINE: %{order} = contiguous
// RUN: %{both}
// REDEFINE: %{order} = striped 4
// RUN: %{packed}

shard.grid @cp(shape = RANKS)

!q = tensor<2xSIZEx4x16xbf16>
!k = tensor<2xSIZExKVx16xbf16>
!l = tensor<2x4xSIZExf32>

// C30: causal and full, 4 query heads on 4 key heads or 1.
func.func @c30_causal(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, ORDER> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
func.func @c30_full(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask full
      sequence <@cp, ORDER> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// C31: more heads, narrower, batch 4.
!q31 = tensor<4xSIZEx8x8xbf16>
!k31 = tensor<4xSIZExKVx8xbf16>
!l31 = tensor<4x8xSIZExf32>
func.func @c31(%q: !q31, %k: !k31, %v: !k31) -> (!q31, !l31) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, ORDER> : (!q31, !k31, !k31) -> (!q31, !l31)
  return %o, %lse : !q31, !l31
}

// C33: five segments to a row of the batch, of other lengths in each row; the
// last one is padding, whose queries see nothing and are seen by none. A table
// has the segment of every eighth of the sequence.
!ids = tensor<2x8xi32>
func.func @c33(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %ids = arith.constant dense<[[0, 0, 1, 1, 1, 2, 3, 4],
                               [0, 1, 1, 2, 3, 3, 4, 4]]> : !ids
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : !ids) {
        %eight = arith.constant 8 : index
        %n = arith.divui %sk, %eight : index
        %x = arith.divui %i, %n : index
        %y = arith.divui %j, %n : index
        %dx = tensor.extract %id[%b, %x] : !ids
        %dy = tensor.extract %id[%b, %y] : !ids
        %same = arith.cmpi eq, %dx, %dy : i32
        %padding = arith.constant 4 : i32
        %real = arith.cmpi ne, %dx, %padding : i32
        %before = arith.cmpi sle, %j, %i : index
        %0 = arith.andi %same, %real : i1
        %keep = arith.andi %0, %before : i1
        burst.yield %keep : i1
      }
      sequence <@cp, ORDER> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
func.func @c33_window(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %ids = arith.constant dense<[[0, 0, 1, 1, 1, 2, 3, 4],
                               [0, 1, 1, 2, 3, 3, 4, 4]]> : !ids
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : !ids) {
        %eight = arith.constant 8 : index
        %n = arith.divui %sk, %eight : index
        %x = arith.divui %i, %n : index
        %y = arith.divui %j, %n : index
        %dx = tensor.extract %id[%b, %x] : !ids
        %dy = tensor.extract %id[%b, %y] : !ids
        %same = arith.cmpi eq, %dx, %dy : i32
        %padding = arith.constant 4 : i32
        %real = arith.cmpi ne, %dx, %padding : i32
        // 0 <= i - j <= 5, in one unsigned comparison.
        %ago = arith.subi %i, %j : index
        %five = arith.constant 5 : index
        %near = arith.cmpi ule, %ago, %five : index
        %0 = arith.andi %same, %real : i1
        %keep = arith.andi %0, %near : i1
        burst.yield %keep : i1
      }
      sequence <@cp, ORDER> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
