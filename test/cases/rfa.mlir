// Cases of zhuzilin/ring-flash-attention, forward. 8 ranks, causal.
//
// DEFINE: %{run} = burst-run %s --check --entry
// RUN: %{run} c01
// RUN: %{run} c03
// RUN: %{run} c05
// RUN: %{run} c06

shard.grid @cp(shape = 8)
shard.grid @four(shape = 4)

// C01: ring, contiguous.
!t72 = tensor<1x72x3x16xf32>
!l72 = tensor<1x3x72xf32>
func.func @c01(%q: !t72, %k: !t72, %v: !t72) -> (!t72, !l72) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, contiguous> : (!t72, !t72, !t72) -> (!t72, !l72)
  return %o, %lse : !t72, !l72
}

// C03: ring, striped: token i to rank i mod P.
!t56 = tensor<1x56x5x16xbf16>
!l56 = tensor<1x5x56xf32>
func.func @c03(%q: !t56, %k: !t56, %v: !t56) -> (!t56, !l56) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, striped> : (!t56, !t56, !t56) -> (!t56, !l56)
  return %o, %lse : !t56, !l56
}

// C05: documents [0, 16, 48, 112), causal in each. There each document is sharded
// in zigzag order by itself, here the packed sequence is.
!t112 = tensor<1x112x5x16xbf16>
!l112 = tensor<1x5x112xf32>
func.func @c05(%q: !t112, %k: !t112, %v: !t112) -> (!t112, !l112) {
  %ends = arith.constant dense<[0, 1, 1, 2, 2, 2, 2]> : tensor<7xi32>
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ends : tensor<7xi32>) {
        %c16 = arith.constant 16 : index
        %x = arith.divui %i, %c16 : index
        %y = arith.divui %j, %c16 : index
        %dx = tensor.extract %id[%x] : tensor<7xi32>
        %dy = tensor.extract %id[%y] : tensor<7xi32>
        %same = arith.cmpi eq, %dx, %dy : i32
        %before = arith.cmpi sle, %j, %i : index
        %keep = arith.andi %same, %before : i1
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!t112, !t112, !t112) -> (!t112, !l112)
  return %o, %lse : !t112, !l112
}

// C06: documents [0, 5, 33, 64), contiguous shards that ignore where documents
// end, 4 ranks. There keys and values are gathered, here they travel.
!t64 = tensor<1x64x5x8xbf16>
!l64 = tensor<1x5x64xf32>
func.func @c06(%q: !t64, %k: !t64, %v: !t64) -> (!t64, !l64) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %c5 = arith.constant 5 : index
        %c33 = arith.constant 33 : index
        %x5 = arith.cmpi sge, %i, %c5 : index
        %y5 = arith.cmpi sge, %j, %c5 : index
        %x33 = arith.cmpi sge, %i, %c33 : index
        %y33 = arith.cmpi sge, %j, %c33 : index
        %same5 = arith.cmpi eq, %x5, %y5 : i1
        %same33 = arith.cmpi eq, %x33, %y33 : i1
        %same = arith.andi %same5, %same33 : i1
        %before = arith.cmpi sle, %j, %i : index
        %keep = arith.andi %same, %before : i1
        burst.yield %keep : i1
      }
      sequence <@four, contiguous> : (!t64, !t64, !t64) -> (!t64, !l64)
  return %o, %lse : !t64, !l64
}
