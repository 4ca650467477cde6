// On a grid of several axes what is sent is told by axis. What was considered and
// cannot be had is listed, with the reason.

// RUN: burst-opt %s --burst-explain=max-ranks=2 | FileCheck %s --match-full-lines --strict-whitespace
// RUN: sed 's/= 2x4/= 1x8/' %s | burst-opt --burst-explain | FileCheck %s --check-prefix=ONE --implicit-check-not='on ['
// RUN: sed 's/= 2x4/= 32x4/; s/x64x/x1024x/g' %s | burst-opt --burst-explain | FileCheck %s --check-prefix=LARGE

//      CHECK:strategies for burst.attention of @f, per rank; * is chosen
// CHECK-NEXT:x cannot compute it
// CHECK-NEXT:on [i] is sent along axis i of the grid, the first in which sender and receiver differ
//CHECK-EMPTY:
// CHECK-NEXT:  strategy                          | sent    | on [0]  | on [1]  | peak memory | compute | hidden | exposed
// CHECK-NEXT:  ring_kv                           | 3.5 KiB | 896 B   | 2.6 KiB | 2.8 KiB     | 0.0 us  | 0.0 us | 70.1 us
// CHECK-NEXT:  ring_q                            | 8.8 KiB | 2.2 KiB | 6.6 KiB | 5.8 KiB     | 0.0 us  | 0.0 us | 90.2 us
// CHECK-NEXT:  double_ring_kv                    | 3.5 KiB | 512 B   | 3.0 KiB | 3.8 KiB     | 0.0 us  | 0.0 us | 70.1 us
// CHECK-NEXT:  double_ring_q                     | 8.8 KiB | 1.2 KiB | 7.5 KiB | 9.8 KiB     | 0.0 us  | 0.0 us | 120.2 us
// CHECK-NEXT:  bi_ring_kv                        | 3.5 KiB | 896 B   | 2.6 KiB | 3.8 KiB     | 0.0 us  | 0.0 us | 40.0 us
// CHECK-NEXT:  bi_ring_q                         | 8.8 KiB | 3.1 KiB | 5.6 KiB | 9.8 KiB     | 0.0 us  | 0.0 us | 60.1 us
// CHECK-NEXT:  direct_kv                         | 3.5 KiB | 2.0 KiB | 1.5 KiB | 2.8 KiB     | 0.0 us  | 0.0 us | 70.1 us
// CHECK-NEXT:  direct_q                          | 8.8 KiB | 5.0 KiB | 3.8 KiB | 5.0 KiB     | 0.0 us  | 0.0 us | 90.2 us
// CHECK-NEXT:* all_gather                        | 3.5 KiB | 2.0 KiB | 1.5 KiB | 5.6 KiB     | 0.0 us  | 0.0 us | 16.1 us
// CHECK-NEXT:  gather_q                          | 8.8 KiB | 5.0 KiB | 3.8 KiB | 13.2 KiB    | 0.0 us  | 0.0 us | 86.2 us
// CHECK-NEXT:  ulysses on [1], ring_kv on [0]    | 2.6 KiB | 1.0 KiB | 1.6 KiB | 4.9 KiB     | 0.0 us  | 0.0 us | 34.1 us
// CHECK-NEXT:  ulysses on [1], ring_q on [0]     | 2.8 KiB | 1.2 KiB | 1.6 KiB | 7.9 KiB     | 0.0 us  | 0.0 us | 44.1 us
// CHECK-NEXT:  ulysses on [1], direct_kv on [0]  | 2.6 KiB | 1.0 KiB | 1.6 KiB | 4.9 KiB     | 0.0 us  | 0.0 us | 34.1 us
// CHECK-NEXT:  ulysses on [1], direct_q on [0]   | 2.8 KiB | 1.2 KiB | 1.6 KiB | 7.1 KiB     | 0.0 us  | 0.0 us | 44.1 us
// CHECK-NEXT:  ulysses on [1], all_gather on [0] | 2.6 KiB | 1.0 KiB | 1.6 KiB | 5.8 KiB     | 0.0 us  | 0.0 us | 34.1 us
// CHECK-NEXT:  ulysses on [1], gather_q on [0]   | 2.8 KiB | 1.2 KiB | 1.6 KiB | 7.9 KiB     | 0.0 us  | 0.0 us | 44.1 us
// CHECK-NEXT:x ulysses on [1], double_ring_kv on [0]; ulysses on [1], double_ring_q on [0]: needs a sequence over two axes, as in `sequence <@grid[0, 1], zigzag>`, not 1
// CHECK-NEXT:x ulysses: shards 4 query heads over 8 ranks, of which 4 would have none
//CHECK-EMPTY:
//      CHECK:sent        | 3.5 KiB                            | 3.5 KiB
// CHECK-NEXT:  on [0]    | 2.0 KiB                            | 2.0 KiB
// CHECK-NEXT:  on [1]    | 1.5 KiB                            | 1.5 KiB
// CHECK-NEXT:peak memory | 5.6 KiB                            | 5.6 KiB
//CHECK-EMPTY:
// CHECK-NEXT:sent by all ranks: 28.0 KiB; 16.0 KiB on [0], 12.0 KiB on [1]

// One axis of several ranks is nothing to tell.
//
// ONE: * all_gather
// ONE: x ulysses: shards 4 query heads over 8 ranks, of which 4 would have none
// ONE: sent by all ranks: {{.* .*}}iB{{$}}

// Of many ranks the least and the most.
//
// LARGE: costed as 64 ranks
// LARGE: sent        | 32.6 KiB (rank 0) to 32.6 KiB (rank 127)
// LARGE-NEXT:   on [0]    | 31.0 KiB (rank 0) to 31.0 KiB (rank 127)
// LARGE-NEXT:   on [1]    | 1.6 KiB (rank 0) to 1.6 KiB (rank 127)
// LARGE-NEXT: peak memory | 35.8 KiB (rank 0) to 35.8 KiB (rank 127)
// LARGE: sent by all ranks: 4.1 MiB; 3.9 MiB on [0], 204.0 KiB on [1]

shard.grid @mesh(shape = 2x4)
!q = tensor<1x64x4x4xf32>
!k = tensor<1x64x2x4xf32>
!l = tensor<1x4x64xf32>
func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@mesh, contiguous>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
