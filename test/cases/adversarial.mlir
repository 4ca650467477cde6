// What some peer had or has wrong: see section D of the table in README.md.
//
// DEFINE: %{ranks} = 4
// DEFINE: %{element} = bf16
// DEFINE: %{run} = sed -e 's/RANKS/%{ranks}/' -e 's/ELEMENT/%{element}/g' %s | burst-run - --check --entry
//
// RUN: %{run} x1
// RUN: %{run} x3_documents
// RUN: %{run} x3_queries
// RUN: %{run} x6
// RUN: %{run} x10_64
// RUN: %{run} x10_96
// RUN: %{run} x13
// REDEFINE: %{element} = f32
// REDEFINE: %{ranks} = 1
// RUN: %{run} x1 && %{run} x13
// REDEFINE: %{ranks} = 2
// RUN: %{run} x1 && %{run} x13
// REDEFINE: %{ranks} = 3
// RUN: %{run} x1 && %{run} x3_documents && %{run} x3_queries && %{run} x13
// REDEFINE: %{ranks} = 5
// RUN: %{run} x1 && %{run} x6 && %{run} x13
// REDEFINE: %{element} = f16
// REDEFINE: %{ranks} = 7
// RUN: %{run} x1 && %{run} x3_documents && %{run} x3_queries && %{run} x13

shard.grid @g(shape = RANKS)

!q = tensor<1x48x4x16xELEMENT>
!k = tensor<1x48x2x16xELEMENT>
!l = tensor<1x4x48xf32>

// X1: scores of about +-200 in every step of the ring: exp of their differences
// overflows.
func.func @x1(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal scale 50.0
      sequence <@g, contiguous> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// X3: rows without keys. Documents whose queries are on other ranks than their
// keys, and whose first queries see nothing yet.
func.func @x3_documents(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %c12 = arith.constant 12 : index
        %x = arith.divui %i, %c12 : index
        %y = arith.divui %j, %c12 : index
        %same = arith.cmpi eq, %x, %y : index
        %c3 = arith.constant 3 : index
        %from = arith.addi %j, %c3 : index
        %later = arith.cmpi sle, %from, %i : index
        %keep = arith.andi %same, %later : i1
        burst.yield %keep : i1
      }
      sequence <@g, striped> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
// More queries than keys, causal: the first 28 see nothing.
!few = tensor<1x20x2x16xELEMENT>
func.func @x3_queries(%q: !q, %k: !few, %v: !few) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@g, zigzag> : (!q, !few, !few) -> (!q, !l)
  return %o, %lse : !q, !l
}

// X6: causal from both ends with as many queries as keys: the diagonal.
func.func @x6(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 0, right = 0>
      sequence <@g, zigzag> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// X10: shards of 64 and 96 positions.
!t256 = tensor<1x256x1x16xELEMENT>
!l256 = tensor<1x1x256xf32>
func.func @x10_64(%q: !t256, %k: !t256, %v: !t256) -> (!t256, !l256) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@g, zigzag> : (!t256, !t256, !t256) -> (!t256, !l256)
  return %o, %lse : !t256, !l256
}
!t384 = tensor<1x384x1x16xELEMENT>
!l384 = tensor<1x1x384xf32>
func.func @x10_96(%q: !t384, %k: !t384, %v: !t384) -> (!t384, !l384) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@g, zigzag> : (!t384, !t384, !t384) -> (!t384, !l384)
  return %o, %lse : !t384, !l384
}

// X13: any number of ranks; it divides nothing.
!q13 = tensor<2x47x4x16xELEMENT>
!k13 = tensor<2x43x2x16xELEMENT>
!l13 = tensor<2x4x47xf32>
func.func @x13(%q: !q13, %k: !k13, %v: !k13) -> (!q13, !l13) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@g, zigzag> : (!q13, !k13, !k13) -> (!q13, !l13)
  return %o, %lse : !q13, !l13
}
