// RUN: split-file %s %t
// RUN: burst-opt %t/q.mlir --burst-explain=svg=%t/q.svg | FileCheck %t/q.mlir --match-full-lines --strict-whitespace
// RUN: burst-opt %t/kv.mlir --burst-explain | FileCheck %t/kv.mlir --match-full-lines --strict-whitespace

// The same as a picture: well-formed, with a block for each of 36 pairs of segments
// and an arrow for each of 13 messages, and one of each kind in its legend.
//
// RUN: %python %S/Inputs/svg.py %t/q.svg full=16 partial=7 empty=16 slice=7 gradient=8
// RUN: FileCheck %s --check-prefix=SVG --input-file=%t/q.svg
// SVG: <svg xmlns="http://www.w3.org/2000/svg" width="{{[0-9]+}}" height="{{[0-9]+}}">
// SVG: class="title">program @q, 3 ranks</text>
// SVG: >rank 0</text>
// SVG: >of 0</text>
// SVG: >0b to 2, 80 B</text>
// SVG: class="slice"><title>rank 0 to 2: 0b to 2, 80 B</title></path>
// SVG: >d1b to 2, 32 B</text>
// SVG: class="gradient"><title>rank 0 to 2: d1b to 2, 32 B</title></path>
// SVG: >rank 2</text>

// Several programs are drawn below each other, forward ones too; of a large grid
// the first ranks, without arrows to others.
//
// RUN: cat %t/q.mlir %t/forward.mlir > %t/two.mlir
// RUN: burst-opt %t/two.mlir --burst-explain="max-ranks=2 svg=%t/two.svg"
// RUN: FileCheck %s --check-prefix=TWO --input-file=%t/two.svg
// TWO: program @q, 3 ranks (the first 2 shown)
// TWO-NOT: >rank 2</text>
// TWO-NOT: <title>rank 0 to 2
// TWO: program @forward, 3 ranks (the first 2 shown)
// TWO-NOT: >rank 2</text>

// Where one pass follows the other, a rank may compute for both between two
// transfers.
//
// RUN: burst-opt %t/both.mlir --burst-explain | FileCheck %t/both.mlir --match-full-lines --strict-whitespace

// A file that cannot be written is an error.
//
// RUN: not burst-opt %t/q.mlir --burst-explain=svg=%t/no/such.svg 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: burst-explain: {{.*}}such.svg: cannot write:

// Queries travel, with all that belongs to their rows. The part of a gradient
// that its owner computes is not sent; the rest returns to its owner where its slice ends.
//
//--- q.mlir
//      CHECK:program @q, 3 ranks
//CHECK-EMPTY:
// CHECK-NEXT:computes: owner of the slice, then per query segment its key segments,
// CHECK-NEXT:          # full, + partly masked, . empty or dropped
// CHECK-NEXT:          by a forward or a backward pass
// CHECK-NEXT:sends:    >receiver owner of the slice, and which of its segments, a or b
// CHECK-NEXT:          d gradients by it, and not the slice
//CHECK-EMPTY:
// CHECK-NEXT:hop         | rank 0              | rank 1              | rank 2
// CHECK-NEXT:0 backward  | 0 +./#+             | 1 +./#+             | 2 +./#+
// CHECK-NEXT:  sends     | >2 0b               | >0 1ab              | >1 2ab
// CHECK-NEXT:1 backward  | 1 #./#.             | 2 #./#.             | 0 ../##
// CHECK-NEXT:  sends     | >2 1b >2 d1b >1 d1a | >0 2ab >0 d2ab      | >1 0b >1 d0b
// CHECK-NEXT:2 backward  | 2 #./#.             | 0 ../##             | 1 ../##
// CHECK-NEXT:  sends     | >2 d2ab             | >0 d0b              | >1 d1b
//CHECK-EMPTY:
// CHECK-NEXT:sent        | 288 B               | 416 B               | 304 B
// CHECK-NEXT:peak memory | 1.1 KiB             | 1.1 KiB             | 1.1 KiB
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 1008 B
// CHECK-NEXT:proved for {{.*}}:
// CHECK-NEXT:        each of 21 pairs of segments that the mask needs is computed once, 15 are dropped;
// CHECK-NEXT:        sends match receives, no deadlock, at most 2 received slices at a time
// CHECK-NEXT:        and 2 gradients by slices, and 2 by the rank's own
shard.grid @cp(shape = 3)

func.func @q(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>,
    %v: tensor<1x12x1x4xf32>, %o: tensor<1x12x1x4xf32>, %lse: tensor<1x1x12xf32>,
    %do: tensor<1x12x1x4xf32>)
    -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_q>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>,
         tensor<1x12x1x4xf32>, tensor<1x1x12xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>
}

//--- both.mlir
//      CHECK:hop         | rank 0 | rank 1
// CHECK-NEXT:0 forward   | 0 +    | 1 +
// CHECK-NEXT:  sends     | >1 0   |
// CHECK-NEXT:1 forward   | 1 .    | 0 #
// CHECK-NEXT:1 backward  | 0 +    | 1 +
// CHECK-NEXT:  sends     |        | >0 1
// CHECK-NEXT:2 backward  | 1 #    | 0 .
// CHECK-NEXT:  sends     | >1 d1  |
shard.grid @cp(shape = 2)

!t = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
func.func @both(%q: !t, %do: !t) -> (!t, !t, !t) {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, contiguous>
      : (!t, !t, !t) -> (!t, !l)
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %o, %lse, %do
      mask causal sequence <@cp, contiguous>
      : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// Keys and values travel.
//
//--- kv.mlir
//      CHECK:program @kv, 3 ranks
//CHECK-EMPTY:
// CHECK-NEXT:computes: owner of the slice, then per query segment its key segments,
// CHECK-NEXT:          # full, + partly masked, . empty or dropped
// CHECK-NEXT:          by a forward or a backward pass
// CHECK-NEXT:sends:    >receiver owner of the slice, and which of its segments, a or b
// CHECK-NEXT:          d gradients by it, and not the slice
//CHECK-EMPTY:
// CHECK-NEXT:hop         | rank 0              | rank 1              | rank 2
// CHECK-NEXT:0 backward  | 0 +./#+             | 1 +./#+             | 2 +./#+
// CHECK-NEXT:  sends     | >2 0a               | >0 1ab              | >1 2ab
// CHECK-NEXT:1 backward  | 1 ../##             | 2 ../##             | 0 #./#.
// CHECK-NEXT:  sends     | >2 1a >2 d1a >1 d1b | >0 2ab >0 d2ab      | >1 0a >1 d0a
// CHECK-NEXT:2 backward  | 2 ../##             | 0 #./#.             | 1 #./#.
// CHECK-NEXT:  sends     | >2 d2ab             | >0 d0a              | >1 d1a
//CHECK-EMPTY:
// CHECK-NEXT:sent        | 384 B               | 448 B               | 320 B
// CHECK-NEXT:peak memory | 1.3 KiB             | 1.3 KiB             | 1.3 KiB
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 1.1 KiB
// CHECK-NEXT:proved for {{.*}}:
// CHECK-NEXT:        each of 21 pairs of segments that the mask needs is computed once, 15 are dropped;
// CHECK-NEXT:        sends match receives, no deadlock, at most 2 received slices at a time
// CHECK-NEXT:        and 2 gradients by slices, and 2 by the rank's own
shard.grid @cp(shape = 3)

func.func @kv(%q: tensor<1x12x1x4xf32>, %k: tensor<1x12x1x4xf32>,
    %v: tensor<1x12x1x4xf32>, %o: tensor<1x12x1x4xf32>, %lse: tensor<1x1x12xf32>,
    %do: tensor<1x12x1x4xf32>)
    -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>,
         tensor<1x12x1x4xf32>, tensor<1x1x12xf32>, tensor<1x12x1x4xf32>)
      -> (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>
}

//--- forward.mlir

func.func @forward(%q: tensor<1x12x1x4xf32>) -> tensor<1x12x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, zigzag>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) -> (tensor<1x12x1x4xf32>, tensor<1x1x12xf32>)
  return %o : tensor<1x12x1x4xf32>
}
