// RUN: burst-opt %s --burst-lower-to-ring -verify-diagnostics -split-input-file

// Without burst-partition.

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @partition(%q: !q) -> !q {
  // expected-error @below {{is not partitioned; run burst-partition first}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return %o : !q
}

// -----

// Without burst-expand-names.

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @mask(%x: tensor<1x2x1x4xf32>, %n: index) attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> !q
  // expected-error @below {{has named masks or scores; run burst-expand-names first}}
  %o, %lse = burst.attention %q, %q, %q mask causal sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @score(%x: tensor<1x2x1x4xf32>, %n: index) attributes {ring.grid = @cp} {
  %q = burst.unshard %x dim 1 extent %n by <@cp, zigzag> : tensor<1x2x1x4xf32> -> !q
  // expected-error @below {{has named masks or scores; run burst-expand-names first}}
  %o, %lse = burst.attention %q, %q, %q score softcap<1.0> sequence <@cp, zigzag> : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

// Strategies that are not lowered.

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @best(%q: !q) {
  // expected-error @below {{pins the strategy best, which is not known: leave it out, or pin one of ring_kv, ring_q, bi_ring_kv, bi_ring_q, direct_kv, direct_q, all_gather, gather_q, ring_scores, ulysses}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <best> : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @best(%q: !q) {
  // expected-error @below {{pins the strategy best, which is not known}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <best> : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

// Only those that have a backward pass are named.

shard.grid @cp(shape = 4)

!q = tensor<1x8x1x4xf32>
!lse = tensor<1x1x8xf32>

func.func @backward(%q: !q, %lse: !lse) {
  // expected-error @below {{pins the strategy nosuch, which is not known: leave it out, or pin one of ring_kv, ring_q}}
  %0:3 = burst.attention_backward %q, %q, %q, %q, %lse, %q sequence <@cp, zigzag> strategy <nosuch> : (!q, !q, !q, !q, !lse, !q) -> (!q, !q, !q)
  return
}
