// RUN: not burst-opt %s --split-input-file --ring-lower-to-tile="warps=4 rows=96" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="warps=4 rows=64 columns=64" --split-input-file --verify-diagnostics
// RUN: not burst-opt %s --split-input-file --ring-lower-to-tile="warps=4 rows=64 local-tiling=false" 2>&1 | FileCheck %s --check-prefix=STORED
// RUN: not burst-opt %s --split-input-file --ring-lower-to-tile="warps=4 rows=64 query-gradients=64,32" 2>&1 | FileCheck %s --check-prefix=NUMBERS
// RUN: not burst-opt %s --split-input-file --ring-lower-to-tile="warps=4 rows=64 key-gradients=64,8,4" 2>&1 | FileCheck %s --check-prefix=COLUMNS
// STORED: a CTA keeps no more than tiles of scores: local-tiling=false is for CPUs
// NUMBERS: query-gradients and key-gradients are rows, columns and warps, got: 2 numbers
// COLUMNS: a CTA has up to 32 warps, 16 rows for each or a multiple, and columns in sixteens, got: 4 warps, 64 rows, 8 columns
// ROWS: a CTA has up to 32 warps, 16 rows for each or a multiple, and columns in sixteens, got: 4 warps, 96 rows, 128 columns

shard.grid @cp(shape = 1)
!q = tensor<1x32x2x8xf32>
!l = tensor<1x2x32xf32>
func.func @element(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  // expected-error @below {{has a kernel for GPUs of queries, keys and values in bf16 or f16, got: 'memref<1x32x2x8xf32}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

shard.grid @cp(shape = 1)
!q = tensor<1x32x2x12xf16>
!l = tensor<1x2x32xf32>
func.func @dim(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  // expected-error @below {{has a kernel for GPUs of head dimensions that are multiples of 8, at most 256, got: 12}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

shard.grid @cp(shape = 1)
!q = tensor<1x32x2x16xf32>
!l = tensor<1x2x32xf32>
func.func @element_of_gradients(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q) -> (!q, !q, !q) {
  // expected-error @below {{has a kernel for GPUs of queries, keys and values in bf16 or f16, got: 'memref<1x32x2x16xf32}}
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do sequence <@cp, contiguous>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

shard.grid @cp(shape = 1)
!q = tensor<1x32x2x16xf16>
!l = tensor<1x2x32xf32>
!t = tensor<2xf32>
func.func @slopes(%q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %do: !q, %slopes: !t) -> (!q, !q, !q, !t) {
  // expected-error @below {{has no kernel for GPUs that adds to gradients of captured tables: their order would not be one; leave `gradients` out, or run it on processors}}
  %dq, %dk, %dv, %ds = burst.attention_backward %q, %k, %v, %o, %lse, %do score alibi(%slopes : !t)
      sequence <@cp, contiguous> gradients [0] : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %dq, %dk, %dv, %ds : !q, !q, !q, !t
}

// -----

shard.grid @cp(shape = 1)
!q = tensor<1x1073741825x2x16xf16>
!l = tensor<1x2x1073741825xf32>
func.func @positions(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  // expected-error @below {{has a kernel for GPUs of sequences of at most 1073741824 positions, got: 1073741825}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
