// C60: PyTorch's FlexAttention with context parallelism: mask functions as
// regions, causal and by document, on sequences that are CP x 128 there.
//
// RUN: burst-run %s --check --entry causal
// RUN: burst-run %s --check --entry documents
// RUN: sed s/xbf16/xf32/g %s | burst-run - --check --entry causal
// RUN: sed s/xbf16/xf32/g %s | burst-run - --check --entry documents

shard.grid @cp(shape = 2)

!t = tensor<1x64x4x16xbf16>
!k = tensor<1x64x2x16xbf16>
!l = tensor<1x4x64xf32>
!ids = tensor<1x64xi32>

func.func @causal(%q: !t, %k: !k, %v: !k) -> (!t, !l) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %keep = arith.cmpi sge, %i, %j : index
        burst.yield %keep : i1
      }
      sequence <@cp, contiguous> : (!t, !k, !k) -> (!t, !l)
  return %o, %lse : !t, !l
}

func.func @documents(%q: !t, %k: !k, %v: !k, %ids: !ids) -> (!t, !l) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : !ids) {
        %x = tensor.extract %id[%b, %i] : !ids
        %y = tensor.extract %id[%b, %j] : !ids
        %same = arith.cmpi eq, %x, %y : i32
        %before = arith.cmpi sge, %i, %j : index
        %keep = arith.andi %same, %before : i1
        burst.yield %keep : i1
      }
      sequence <@cp, zigzag> : (!t, !k, !k) -> (!t, !l)
  return %o, %lse : !t, !l
}
