// RUN: split-file %s %t
// RUN: burst-opt %t/zigzag.mlir --burst-explain | FileCheck %t/zigzag.mlir --match-full-lines --strict-whitespace
// RUN: burst-opt %t/window.mlir --burst-explain | FileCheck %t/window.mlir --match-full-lines --strict-whitespace
// RUN: burst-opt %t/striped.mlir --burst-explain | FileCheck %t/striped.mlir --match-full-lines --strict-whitespace
// RUN: burst-opt %t/alone.mlir --burst-explain | FileCheck %t/alone.mlir --match-full-lines --strict-whitespace
// RUN: burst-opt %t/uneven.mlir --burst-explain | FileCheck %t/uneven.mlir --match-full-lines --strict-whitespace

// A module that is lowered gives the same table.
//
// RUN: burst-opt %t/zigzag.mlir --burst-to-ring --burst-explain | FileCheck %t/zigzag.mlir --match-full-lines --strict-whitespace

// One that is not lowered has strategies to choose from, which are shown first.
// What is sent is the average of the ranks.
//
// RUN: sed 's/ strategy <ring_kv>//' %t/zigzag.mlir | burst-opt --burst-explain | FileCheck %s --check-prefix=STRATEGIES --match-full-lines --strict-whitespace
//      STRATEGIES:strategies for burst.attention of @zigzag, per rank; * is chosen
// STRATEGIES-NEXT:x cannot compute it
//STRATEGIES-EMPTY:
// STRATEGIES-NEXT:  strategy   | sent  | peak memory | compute | hidden | exposed
// STRATEGIES-NEXT:  ring_kv    | 192 B | 416 B       | 0.0 us  | 0.0 us | 20.0 us
// STRATEGIES-NEXT:  ring_q     | 240 B | 672 B       | 0.0 us  | 0.0 us | 40.0 us
// STRATEGIES-NEXT:  direct_kv  | 192 B | 416 B       | 0.0 us  | 0.0 us | 20.0 us
// STRATEGIES-NEXT:  direct_q   | 240 B | 576 B       | 0.0 us  | 0.0 us | 40.0 us
// STRATEGIES-NEXT:* all_gather | 192 B | 528 B       | 0.0 us  | 0.0 us | 11.0 us
// STRATEGIES-NEXT:  gather_q   | 240 B | 832 B       | 0.0 us  | 0.0 us | 31.0 us
// STRATEGIES-NEXT:x double_ring_kv; double_ring_q: needs a sequence over two axes, as in `sequence <@grid[0, 1], zigzag>`, not 1
// STRATEGIES-NEXT:x ulysses: shards 1 query heads over 3 ranks, of which 2 would have none
//STRATEGIES-EMPTY:
// STRATEGIES-NEXT:program @zigzag, 3 ranks
// RUN: sed 's/ring_kv/ring_q/; s/12x/?x/g' %t/zigzag.mlir | not burst-opt --burst-explain 2>/dev/null | FileCheck %s --check-prefix=ASSUMED
// ASSUMED: strategies for burst.attention of @zigzag, per rank; * is pinned
// ASSUMED-NEXT: assuming Sq = Sk = 12288
// ASSUMED: * ring_q
// RUN: burst-opt %t/zigzag.mlir --burst-to-ring --burst-explain | FileCheck %s --check-prefix=LOWERED
// LOWERED-NOT: strategies

// Of a large grid the first ranks are shown.
//
// RUN: burst-opt %t/window.mlir --burst-explain=max-ranks=2 | FileCheck %s --check-prefix=FIRST
// FIRST: program @window, 3 ranks (the first 2 shown)
// FIRST: hop | rank 0 | rank 1
// FIRST-NOT: rank 2
// FIRST: sent by all ranks: 256 B

// What cannot be shown.
//
// RUN: not burst-opt %t/dynamic.mlir --burst-explain 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// DYNAMIC: error: has sizes or tables that are known at run time only, so its schedule cannot be shown; make them static
// RUN: not burst-opt %t/pinned.mlir --burst-explain 2>&1 | FileCheck %s --check-prefix=PINNED
// PINNED: error: 'burst.attention' op pins the strategy best, which is not known

// Chunks 0 and 5 go to rank 0, 1 and 4 to rank 1, 2 and 3 to rank 2: each computes
// as much. Going down, chunk 5 need not travel.
//
//--- zigzag.mlir
//      CHECK:program @zigzag, 3 ranks
//CHECK-EMPTY:
// CHECK-NEXT:computes: owner of the slice, then per query segment its key segments,
// CHECK-NEXT:          # full, + partly masked, . empty or dropped
// CHECK-NEXT:sends:    >receiver owner of the slice, and which of its segments, a or b
//CHECK-EMPTY:
// CHECK-NEXT:hop         | rank 0  | rank 1  | rank 2
// CHECK-NEXT:0 computes  | 0 +./#+ | 1 +./#+ | 2 +./#+
// CHECK-NEXT:  sends     | >2 0a   | >0 1ab  | >1 2ab
// CHECK-NEXT:1 computes  | 1 ../## | 2 ../## | 0 #./#.
// CHECK-NEXT:  sends     | >2 1a   | >0 2ab  | >1 0a
// CHECK-NEXT:2 computes  | 2 ../## | 0 #./#. | 1 #./#.
//CHECK-EMPTY:
// CHECK-NEXT:sent        | 128 B   | 256 B   | 192 B
// CHECK-NEXT:peak memory | 416 B   | 416 B   | 416 B
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 576 B
// CHECK-NEXT:proved for {{.*}}:
// CHECK-NEXT:        each of 21 pairs of segments that the mask needs is computed once, 15 are dropped;
// CHECK-NEXT:        sends match receives, no deadlock, at most 2 received slices at a time
shard.grid @cp(shape = 3)

func.func @zigzag(%q: tensor<1x12x1x4xf32>) -> tensor<1x12x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) -> (tensor<1x12x1x4xf32>, tensor<1x1x12xf32>)
  return %o : tensor<1x12x1x4xf32>
}

// A window reaches one rank back: what is not needed is neither computed nor sent.
//
//--- window.mlir
//      CHECK:program @window, 3 ranks
//CHECK-EMPTY:
// CHECK-NEXT:computes: owner of the slice, then per query segment its key segments,
// CHECK-NEXT:          # full, + partly masked, . empty or dropped
// CHECK-NEXT:sends:    >receiver owner of the slice, and which of its segments, a or b
//CHECK-EMPTY:
// CHECK-NEXT:hop         | rank 0 | rank 1 | rank 2
// CHECK-NEXT:0 computes  | 0 +    | 1 +    | 2 +
// CHECK-NEXT:  sends     | >1 0   | >2 1   |
// CHECK-NEXT:1 computes  | 2 .    | 0 +    | 1 +
// CHECK-NEXT:2 computes  | 1 .    | 2 .    | 0 .
//CHECK-EMPTY:
// CHECK-NEXT:sent        | 128 B  | 128 B  | 0 B
// CHECK-NEXT:peak memory | 416 B  | 416 B  | 416 B
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 256 B
// CHECK-NEXT:proved for {{.*}}:
// CHECK-NEXT:        each of 5 pairs of segments that the mask needs is computed once, 4 are dropped;
// CHECK-NEXT:        sends match receives, no deadlock, at most 2 received slices at a time
shard.grid @cp(shape = 3)

func.func @window(%q: tensor<1x12x1x4xf32>) -> tensor<1x12x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask window<left = 3, right = 0> sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>, tensor<1x12x1x4xf32>) -> (tensor<1x12x1x4xf32>, tensor<1x1x12xf32>)
  return %o : tensor<1x12x1x4xf32>
}

// Every block of a striped sequence is partly masked.
//
//--- striped.mlir
//      CHECK:program @striped, 2 ranks
//CHECK-EMPTY:
// CHECK-NEXT:computes: owner of the slice, then per query segment its key segments,
// CHECK-NEXT:          # full, + partly masked, . empty or dropped
// CHECK-NEXT:sends:    >receiver owner of the slice, and which of its segments, a or b
//CHECK-EMPTY:
// CHECK-NEXT:hop         | rank 0 | rank 1
// CHECK-NEXT:0 computes  | 0 +    | 1 +
// CHECK-NEXT:  sends     | >1 0   | >0 1
// CHECK-NEXT:1 computes  | 1 +    | 0 +
//CHECK-EMPTY:
// CHECK-NEXT:sent        | 128 B  | 128 B
// CHECK-NEXT:peak memory | 288 B  | 288 B
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 256 B
// CHECK-NEXT:proved for {{.*}}:
// CHECK-NEXT:        each of 4 pairs of segments that the mask needs is computed once, 0 are dropped;
// CHECK-NEXT:        sends match receives, no deadlock, at most 2 received slices at a time
shard.grid @cp(shape = 2)

func.func @striped(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, striped 2> strategy <ring_kv>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}

// One rank sends nothing.
//
//--- alone.mlir
//      CHECK:program @alone, 1 ranks
//CHECK-EMPTY:
// CHECK-NEXT:computes: owner of the slice, then per query segment its key segments,
// CHECK-NEXT:          # full, + partly masked, . empty or dropped
// CHECK-NEXT:sends:    >receiver owner of the slice, and which of its segments, a or b
//CHECK-EMPTY:
// CHECK-NEXT:hop         | rank 0
// CHECK-NEXT:0 computes  | 0 #
//CHECK-EMPTY:
// CHECK-NEXT:sent        | 0 B
// CHECK-NEXT:peak memory | 288 B
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 0 B
// CHECK-NEXT:proved for {{.*}}:
// CHECK-NEXT:        each of 1 pairs of segments that the mask needs is computed once, 0 are dropped;
// CHECK-NEXT:        sends match receives, no deadlock, at most 2 received slices at a time
shard.grid @cp(shape = 1)

func.func @alone(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}

// Of 3 positions, rank 0 holds none.
//
//--- uneven.mlir
//      CHECK:program @uneven, 4 ranks
//CHECK-EMPTY:
// CHECK-NEXT:computes: owner of the slice, then per query segment its key segments,
// CHECK-NEXT:          # full, + partly masked, . empty or dropped
// CHECK-NEXT:sends:    >receiver owner of the slice, and which of its segments, a or b
//CHECK-EMPTY:
// CHECK-NEXT:hop         | rank 0 | rank 1 | rank 2 | rank 3
// CHECK-NEXT:0 computes  | 0 .    | 1 #    | 2 #    | 3 #
// CHECK-NEXT:  sends     |        | >2 1   | >3 2   | >0 3
// CHECK-NEXT:1 computes  | 3 .    | 0 .    | 1 #    | 2 #
// CHECK-NEXT:  sends     | >1 3   |        | >3 1   | >0 2
// CHECK-NEXT:2 computes  | 2 .    | 3 #    | 0 .    | 1 #
// CHECK-NEXT:  sends     | >1 2   | >2 3   |        | >0 1
// CHECK-NEXT:3 computes  | 1 .    | 2 #    | 3 #    | 0 .
//CHECK-EMPTY:
// CHECK-NEXT:sent        | 64 B   | 64 B   | 64 B   | 96 B
// CHECK-NEXT:peak memory | 64 B   | 104 B  | 104 B  | 104 B
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 288 B
// CHECK-NEXT:proved for {{.*}}:
// CHECK-NEXT:        each of 9 pairs of segments that the mask needs is computed once, 7 are dropped;
// CHECK-NEXT:        sends match receives, no deadlock, at most 2 received slices at a time
shard.grid @cp(shape = 4)

func.func @uneven(%q: tensor<1x3x1x4xf32>) -> tensor<1x3x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>, tensor<1x3x1x4xf32>) -> (tensor<1x3x1x4xf32>, tensor<1x1x3xf32>)
  return %o : tensor<1x3x1x4xf32>
}

//--- dynamic.mlir
shard.grid @cp(shape = 2)

func.func @dynamic(%q: tensor<1x?x1x4xf32>) -> tensor<1x?x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>)
      -> (tensor<1x?x1x4xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x?x1x4xf32>
}

//--- pinned.mlir
shard.grid @cp(shape = 2)

func.func @pinned(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <best>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}
