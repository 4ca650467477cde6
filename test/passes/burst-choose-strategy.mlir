// RUN: split-file %s %t
// RUN: burst-opt %t/choose.mlir --burst-expand-names --burst-derive-bounds --burst-choose-strategy | FileCheck %t/choose.mlir
// RUN: burst-opt %t/choose.mlir --burst-to-ring -o /dev/null

// The pipeline predicts what the plan counts.
// RUN: burst-opt %t/plan.mlir --burst-to-ring --ring-plan --remarks-filter=strategy -verify-diagnostics | FileCheck %t/plan.mlir

// RUN: burst-opt %t/baseline.mlir --burst-to-ring --ring-plan --remarks-filter=strategy -verify-diagnostics | FileCheck %t/baseline.mlir --check-prefix=BASELINE
// RUN: burst-opt %t/tensors.mlir --burst-to-ring --ring-plan --remarks-filter=strategy -verify-diagnostics | FileCheck %t/tensors.mlir --check-prefix=TENSORS

// RUN: burst-opt %t/links.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: burst-opt %t/compute.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: burst-opt %t/grid.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: burst-opt %t/decode.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: sed s/4096/65536/ %t/decode.mlir | burst-opt --burst-to-ring | FileCheck %t/decode.mlir --check-prefix=LONG
// RUN: burst-opt %t/free.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: burst-opt %t/assumed.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: burst-opt %t/large.mlir --burst-expand-names --burst-derive-bounds --burst-choose-strategy --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: burst-opt %t/axes.mlir --burst-to-ring --remarks-filter=strategy -verify-diagnostics -o /dev/null
// RUN: burst-opt %t/memory.mlir --burst-expand-names --burst-choose-strategy --remarks-filter=strategy -verify-diagnostics -split-input-file -o /dev/null
// RUN: burst-opt %t/invalid.mlir --burst-choose-strategy -verify-diagnostics -split-input-file

// Without groups of heads queries travel, with them keys do; what is pinned
// stays; what has no sequence has no strategy.
//
//--- choose.mlir
shard.grid @cp(shape = 4)

!q = tensor<1x131072x4x64xbf16>
!k = tensor<1x131072x2x64xbf16>
!l = tensor<1x4x131072xf32>

// CHECK-LABEL: @heads
// CHECK: burst.attention_backward
// CHECK: strategy <ring_q>
func.func @heads(%q: !q, %l: !l) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %q, %l, %q
      mask causal sequence <@cp, zigzag>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// CHECK-LABEL: @groups
// CHECK: burst.attention_backward
// CHECK: strategy <ring_kv>
func.func @groups(%q: !q, %k: !k, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %k, %q, %l, %q
      sequence <@cp, zigzag>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// CHECK-LABEL: @pinned
// CHECK: burst.attention_backward
// CHECK: strategy <ring_kv>
func.func @pinned(%q: !q, %l: !l) -> (!q, !q, !q) {
  %dq, %dk, %dv = burst.attention_backward %q, %q, %q, %q, %l, %q
      sequence <@cp, zigzag> strategy <ring_kv>
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// CHECK-LABEL: @forward
// CHECK: burst.attention
// CHECK: strategy <ring_kv>
func.func @forward(%q: !q) -> !q {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, striped 4>
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

// 3 hops of 16 positions. Keys: 2 heads of (6 + 4) (2 + 4) bytes; queries: 4
// heads of (6 + 4) 2 + 8 + 6 * 4 bytes.
//
//--- plan.mlir
// CHECK: "bytes_sent": 5760,
// CHECK: "peak_bytes": 13056,
// CHECK-COUNT-3: "bytes_sent": 5760,
// CHECK: "program": "plan",
shard.grid @cp(shape = 4)

!q = tensor<1x64x4x6xbf16>
!o = tensor<1x64x4x4xbf16>
!k = tensor<1x64x2x6xbf16>
!v = tensor<1x64x2x4xbf16>
!l = tensor<1x4x64xf32>

func.func @plan(%q: !q, %k: !k, %v: !v, %o: !o, %l: !l) -> (!q, !k, !v) {
  // expected-remark @below {{[Passed] pinned | Category:strategy | Function=plan | bytes=5760, compute_us=0.0, exposed_us=50.1, hidden_us=0.0, peak_bytes=13056, strategy=ring_kv}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=plan | bytes=5760, compute_us=0.0, exposed_us=42.1, hidden_us=0.0, peak_bytes=16896, strategy=all_gather}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=plan | bytes=9984, compute_us=0.0, exposed_us=50.2, hidden_us=0.0, peak_bytes=16384, strategy=ring_q}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{[Analysis] unsupported | Category:strategy | Function=plan | Reason="needs a sequence over two axes, as in `sequence <@grid[0, 1], zigzag>`, not 1", strategy=double_ring_kv}}
  // expected-remark @below {{[Analysis] unsupported | Category:strategy | Function=plan | Reason="needs a sequence over two axes, as in `sequence <@grid[0, 1], zigzag>`, not 1", strategy=double_ring_q}}
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %o
      sequence <@cp, zigzag> strategy <ring_kv> : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)
  return %dq, %dk, %dv : !q, !k, !v
}

// A baseline is costed where it is pinned. It sends what ring_kv does, in twice
// as many hops, of which those of values wait for all scores; and holds
//
//   q and out 2 * 16 * 4 * 6 * 2, k and v 2 * 16 * 2 * 6 * 2, lse 16 * 4 * 4,
//   of the state o and l 16 * 4 * (6 + 1) * 4, scores 16 * 4 * 64 * 4,
//   and two slices of k and two of v, 4 * 16 * 2 * 6 * 2.
//
//--- baseline.mlir
// BASELINE-COUNT-4: "peak_bytes": 22272,
shard.grid @cp(shape = 4)

!q = tensor<1x64x4x6xbf16>
!k = tensor<1x64x2x6xbf16>
!l = tensor<1x4x64xf32>

func.func @baseline(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=baseline | bytes=2304, compute_us=0.0, exposed_us=30.0, hidden_us=0.0, peak_bytes=5888, strategy=ring_kv}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=baseline | bytes=8448, compute_us=0.0, exposed_us=50.2, hidden_us=0.0, peak_bytes=14080, strategy=ring_q}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=baseline | bytes=2304, compute_us=0.0, exposed_us=12.0, hidden_us=0.0, peak_bytes=5632, strategy=all_gather}}
  // expected-remark @below {{[Passed] pinned | Category:strategy | Function=baseline | bytes=2304, compute_us=0.0, exposed_us=60.0, hidden_us=0.0, peak_bytes=22272, strategy=ring_scores}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_scores>
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// A tensor that is several operands is held once, and a table on every rank as a
// whole: in bytes q 64, the result 64, lse and l 16 each, the table 256, and a slice
// of k and v 128. Backward the gradient by a table is a result.
//
//--- tensors.mlir
// TENSORS-COUNT-2: "peak_bytes": 544,
// TENSORS-COUNT-2: "peak_bytes": 1568,
shard.grid @cp(shape = 2)

!q = tensor<1x8x1x4xf32>
!l = tensor<1x1x8xf32>
!t = tensor<8x8xf32>

func.func @tensors(%q: !q, %t: !t) -> !q {
  // expected-remark @below {{peak_bytes=544, strategy=ring_kv}}
  // expected-remark @below {{strategy=ring_q}}
  // expected-remark @below {{strategy=all_gather}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %q, %q score bias(%t : !t) sequence <@cp, contiguous>
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}

func.func @gradients(%q: !q, %l: !l, %t: !t) -> (!q, !q, !q, !t) {
  // expected-remark @below {{peak_bytes=1568, strategy=ring_kv}}
  // expected-remark @below {{strategy=ring_q}}
  // expected-remark @below {{strategy=all_gather}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %q, %q, %q, %l, %q score bias(%t : !t)
      sequence <@cp, contiguous> strategy <ring_kv> gradients [0]
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %dq, %dk, %dv, %dt : !q, !q, !q, !t
}

// 1.7 queries for a key. Where transfers take all the time, the fewest bytes
// win, and where they are hidden, the fewest bytes of the last hop.
//
//--- links.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = 1.0e18 : f64, "burst.latency" = 0.0 : f64>>} {
  shard.grid @cp(shape = 4)
  func.func @links(%q: tensor<1x8704x1x128xbf16>, %k: tensor<1x5120x1x128xbf16>, %l: tensor<1x1x8704xf32>)
      -> (tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>) {
    // expected-remark-re @below {{{{.*}}chosen {{.*}}strategy=ring_kv{{$}}}}
    // expected-remark-re @below {{{{.*}}alternative {{.*}}strategy=ring_q{{$}}}}
    // expected-remark-re @below {{{{.*}}alternative {{.*}}strategy=all_gather{{$}}}}
    // expected-remark @below {{strategy=gather_q}}
    // expected-remark @below {{strategy=direct_kv}}
    // expected-remark @below {{strategy=direct_q}}
    // expected-remark @below {{strategy=double_ring_kv}}
    // expected-remark @below {{strategy=double_ring_q}}
    // expected-remark @below {{[Analysis] unsupported | Category:strategy | Function=links | Reason="shards 1 query heads over 4 ranks, of which 3 would have none", strategy=ulysses}}
    %dq, %dk, %dv = burst.attention_backward %q, %k, %k, %q, %l, %q sequence <@cp, contiguous>
        : (tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>,
           tensor<1x8704x1x128xbf16>, tensor<1x1x8704xf32>, tensor<1x8704x1x128xbf16>)
        -> (tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>)
    return %dq, %dk, %dv : tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>
  }
}
//--- compute.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = 6.0e13 : f64, "burst.latency" = 0.0 : f64>>} {
  shard.grid @cp(shape = 4)
  func.func @compute(%q: tensor<1x8704x1x128xbf16>, %k: tensor<1x5120x1x128xbf16>, %l: tensor<1x1x8704xf32>)
      -> (tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>) {
    // expected-remark-re @below {{{{.*}}chosen {{.*}}strategy=ring_q{{$}}}}
    // expected-remark-re @below {{{{.*}}alternative {{.*}}strategy=ring_kv{{$}}}}
    // expected-remark-re @below {{{{.*}}alternative {{.*}}strategy=all_gather{{$}}}}
    // expected-remark @below {{strategy=gather_q}}
    // expected-remark @below {{strategy=direct_kv}}
    // expected-remark @below {{strategy=direct_q}}
    // expected-remark @below {{strategy=double_ring_kv}}
    // expected-remark @below {{strategy=double_ring_q}}
    // expected-remark @below {{none", strategy=ulysses}}
    %dq, %dk, %dv = burst.attention_backward %q, %k, %k, %q, %l, %q sequence <@cp, contiguous>
        : (tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>,
           tensor<1x8704x1x128xbf16>, tensor<1x1x8704xf32>, tensor<1x8704x1x128xbf16>)
        -> (tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>)
    return %dq, %dk, %dv : tensor<1x8704x1x128xbf16>, tensor<1x5120x1x128xbf16>, tensor<1x5120x1x128xbf16>
  }
}

// The device of the grid's name is the one that counts; it leaves out what the
// device "burst" says. Entries of others are left alone.
//
//--- grid.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.bandwidth" = 1.0e3 : f64, "burst.latency" = 7.0 : f64>,
  "cp" = #dlti.target_device_spec<"burst.bandwidth" = 1.0e30 : f64, "L1_cache_size_in_bytes" = 4096 : i32>,
  "other" = #dlti.target_device_spec<"burst.latency" = 9.0 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @grid(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    // expected-remark @below {{[Passed] pinned | Category:strategy | Function=grid | bytes=128, compute_us=0.0, exposed_us=7000000.0, hidden_us=0.0, peak_bytes=288, strategy=ring_kv}}
    // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=grid | bytes=160, compute_us=0.0, exposed_us=14000000.0, hidden_us=0.0, peak_bytes=672, strategy=ring_q}}
    // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=grid | bytes=128, compute_us=0.0, exposed_us=7000000.0, hidden_us=0.0, peak_bytes=400, strategy=all_gather}}
    // expected-remark @below {{strategy=gather_q}}
    // expected-remark @below {{strategy=direct_kv}}
    // expected-remark @below {{strategy=direct_q}}
    // expected-remark @below {{strategy=double_ring_kv}}
    // expected-remark @below {{strategy=double_ring_q}}
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <ring_kv>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// A query of each rank meets a cache. That a state returns to its owner takes time too, so
// the cache stays only where it is long: 3 hops of 4096 / 4 keys of 2 * 64 * 2
// bytes, or of a query of 4 (64 * 2 + (64 + 2) 4).
//
//--- decode.mlir
// LONG: ring.merge
shard.grid @cp(shape = 4)

!q = tensor<1x4x4x64xbf16>
!k = tensor<1x4096x1x64xbf16>

func.func @decode(%q: !q, %k: !k) -> !q {
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=decode | bytes=786432, compute_us=0.0, exposed_us=45.7, hidden_us=0.0, peak_bytes=657440, strategy=ring_kv}}
  // expected-remark @below {{[Passed] chosen | Category:strategy | Function=decode | bytes=786432, compute_us=0.0, exposed_us=27.7, hidden_us=0.0, peak_bytes=1180688, strategy=all_gather}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=decode | bytes=4704, compute_us=0.0, exposed_us=50.1, hidden_us=0.0, peak_bytes=138400, strategy=ring_q}}
  // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=decode | bytes=787212, compute_us=0.0, exposed_us=39.7, hidden_us=0.0, peak_bytes=1181728, strategy=ulysses}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  %o, %lse = burst.attention %q, %k, %k sequence <@cp, contiguous>
      : (!q, !k, !k) -> (!q, tensor<1x4x4xf32>)
  return %o : !q
}

// Where a hop costs its bytes only, 6.1 keys are as dear as a query.
//
//--- free.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.latency" = 0.0 : f64>>} {
  shard.grid @cp(shape = 4)
  func.func @below(%q: tensor<1x4x4x64xbf16>, %k: tensor<1x24x1x64xbf16>) -> tensor<1x4x4x64xbf16> {
    // expected-remark @below {{chosen | Category:strategy | Function=below | bytes=4608,}}
    // expected-remark @below {{strategy=ring_q}}
    // expected-remark @below {{strategy=all_gather}}
    // expected-remark @below {{strategy=ulysses}}
    // expected-remark @below {{strategy=gather_q}}
    // expected-remark @below {{strategy=direct_kv}}
    // expected-remark @below {{strategy=direct_q}}
    // expected-remark @below {{strategy=double_ring_kv}}
    // expected-remark @below {{strategy=double_ring_q}}
    %o, %lse = burst.attention %q, %k, %k sequence <@cp, contiguous>
        : (tensor<1x4x4x64xbf16>, tensor<1x24x1x64xbf16>, tensor<1x24x1x64xbf16>)
        -> (tensor<1x4x4x64xbf16>, tensor<1x4x4xf32>)
    return %o : tensor<1x4x4x64xbf16>
  }
  func.func @above(%q: tensor<1x4x4x64xbf16>, %k: tensor<1x48x1x64xbf16>) -> tensor<1x4x4x64xbf16> {
    // expected-remark @below {{bytes=9216, compute_us=0.0, exposed_us=0.2, hidden_us=0.0, peak_bytes=9760, strategy=ring_kv}}
    // expected-remark @below {{chosen | Category:strategy | Function=above | bytes=4704,}}
    // expected-remark @below {{strategy=all_gather}}
    // expected-remark @below {{strategy=ulysses}}
    // expected-remark @below {{strategy=gather_q}}
    // expected-remark @below {{strategy=direct_kv}}
    // expected-remark @below {{strategy=direct_q}}
    // expected-remark @below {{strategy=double_ring_kv}}
    // expected-remark @below {{strategy=double_ring_q}}
    %o, %lse = burst.attention %q, %k, %k sequence <@cp, contiguous>
        : (tensor<1x4x4x64xbf16>, tensor<1x48x1x64xbf16>, tensor<1x48x1x64xbf16>)
        -> (tensor<1x4x4x64xbf16>, tensor<1x4x4xf32>)
    return %o : tensor<1x4x4x64xbf16>
  }
}

// What is not known when it is chosen.
//
//--- assumed.mlir
shard.grid @cp(shape = 2)

func.func @sizes(%q: tensor<?x?x1x4xf32>, %k: tensor<?x6x1x4xf32>) -> tensor<?x?x1x4xf32> {
  // expected-remark @below {{Reason="assuming Sq = Sk = 6, B = 1", bytes=96, compute_us=0.0, exposed_us=10.0, hidden_us=0.0, peak_bytes=264, strategy=ring_kv}}
  // expected-remark @below {{strategy=ring_q}}
  // expected-remark @below {{strategy=all_gather}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %k, %k sequence <@cp, contiguous>
      : (tensor<?x?x1x4xf32>, tensor<?x6x1x4xf32>, tensor<?x6x1x4xf32>)
      -> (tensor<?x?x1x4xf32>, tensor<?x1x?xf32>)
  return %o : tensor<?x?x1x4xf32>
}

func.func @lengths(%q: tensor<1x?x1x4xf32>) -> tensor<1x?x1x4xf32> {
  // expected-remark @below {{assuming Sq = Sk = 8192", bytes=131072, compute_us=0.9, exposed_us=12.2, hidden_us=0.4, peak_bytes=294912, strategy=ring_kv}}
  // expected-remark @below {{strategy=ring_q}}
  // expected-remark @below {{strategy=all_gather}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
      : (tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>)
      -> (tensor<1x?x1x4xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x?x1x4xf32>
}

// Of a few queries the keys are those of a cache.
func.func @decode(%q: tensor<1x1x1x4xf32>, %k: tensor<1x?x1x4xf32>) -> tensor<1x1x1x4xf32> {
  // expected-remark @below {{chosen | Category:strategy | Function=decode | Reason="assuming Sk = 8192", bytes=20,}}
  // expected-remark @below {{strategy=ring_kv}}
  // expected-remark @below {{strategy=all_gather}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %k, %k sequence <@cp, contiguous>
      : (tensor<1x1x1x4xf32>, tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>)
      -> (tensor<1x1x1x4xf32>, tensor<1x1x1xf32>)
  return %o : tensor<1x1x1x4xf32>
}

func.func @tables(%q: tensor<1x8x1x4xf32>, %ids: tensor<8xi32>) -> tensor<1x8x1x4xf32> {
  // expected-remark @below {{assuming the mask keeps everything", bytes=128, compute_us=0.0, exposed_us=10.0, hidden_us=0.0, peak_bytes=320, strategy=ring_kv}}
  // expected-remark @below {{strategy=ring_q}}
  // expected-remark @below {{strategy=all_gather}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %q, %q mask [causal, documents](%ids : tensor<8xi32>)
      sequence <@cp, contiguous>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}

// A large grid: both strategies are costed on fewer ranks.
//
//--- large.mlir
shard.grid @cp(shape = 65)
shard.grid @most(shape = 64)

func.func @known(%q: tensor<1x130x1x4xf32>) -> tensor<1x130x1x4xf32> {
  // expected-remark @below {{chosen | Category:strategy | Function=known | Reason="costed as 64 ranks", bytes=}}
  // expected-remark @below {{strategy=ring_kv}}
  // expected-remark @below {{strategy=ring_q}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=bi_ring_kv}}
  // expected-remark @below {{strategy=bi_ring_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
      : (tensor<1x130x1x4xf32>, tensor<1x130x1x4xf32>, tensor<1x130x1x4xf32>)
      -> (tensor<1x130x1x4xf32>, tensor<1x1x130xf32>)
  return %o : tensor<1x130x1x4xf32>
}

func.func @assumed(%q: tensor<1x?x1x4xf32>) -> tensor<1x?x1x4xf32> {
  // expected-remark @below {{strategy=bi_ring_q}}
  // expected-remark @below {{strategy=ring_kv}}
  // expected-remark @below {{Reason="assuming Sq = Sk = 266240, costed as 64 ranks", bytes=10483200, }}
  // expected-remark @below {{strategy=all_gather}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=bi_ring_kv}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
      : (tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>, tensor<1x?x1x4xf32>)
      -> (tensor<1x?x1x4xf32>, tensor<1x1x?xf32>)
  return %o : tensor<1x?x1x4xf32>
}

func.func @exact(%q: tensor<1x128x1x4xf32>) -> tensor<1x128x1x4xf32> {
  // expected-remark @below {{chosen | Category:strategy | Function=exact | bytes=}}
  // expected-remark @below {{strategy=ring_kv}}
  // expected-remark @below {{strategy=ring_q}}
  // expected-remark @below {{strategy=gather_q}}
  // expected-remark @below {{strategy=direct_kv}}
  // expected-remark @below {{strategy=direct_q}}
  // expected-remark @below {{strategy=bi_ring_kv}}
  // expected-remark @below {{strategy=bi_ring_q}}
  // expected-remark @below {{strategy=double_ring_kv}}
  // expected-remark @below {{strategy=double_ring_q}}
  // expected-remark @below {{none", strategy=ulysses}}
  %o, %lse = burst.attention %q, %q, %q sequence <@most, contiguous>
      : (tensor<1x128x1x4xf32>, tensor<1x128x1x4xf32>, tensor<1x128x1x4xf32>)
      -> (tensor<1x128x1x4xf32>, tensor<1x1x128xf32>)
  return %o : tensor<1x128x1x4xf32>
}

// Axes with links of their own. A hop within a node takes 4e-6 s + 67108864 B / 4.5e11
// B/s, 153.1 us, one between nodes 1e-5 s + 67108864 B / 5e10 B/s, 1352.2 us, and an
// attend 1.1 us. One ring has 63 hops of the slower kind. Of a double ring 56 hops are of
// the faster kind, and seven between nodes have seven of these and an attend to hide
// behind. With heads exchanged within nodes, in two all-to-alls of 4e-6 s x 1.6 each and
// 117899264 B in both, seven hops are left, of as many bytes between nodes. Bytes are told
// by axis: of the hops of one ring every eighth leaves a node.
//
//--- axes.mlir
!q = tensor<1x1048576x8x128xbf16>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "mesh" = #dlti.target_device_spec<"burst.flops" = 1.0e18 : f64, "burst.latency" = 4.0e-6 : f64>,
  "mesh.0" = #dlti.target_device_spec<"burst.latency" = 1.0e-5 : f64>,
  "mesh.1" = #dlti.target_device_spec<"burst.bandwidth" = 4.5e11 : f64>>} {
  shard.grid @mesh(shape = 8x8)
  func.func @axes(%q: !q) -> !q {
    // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=axes | bytes=4227858432, bytes_axis_0=528482304, bytes_axis_1=3699376128, compute_us=70.4, exposed_us=85117.9, hidden_us=69.3, peak_bytes=269484032, strategy=ring_kv}}
    // expected-remark @below {{strategy=ring_q}}
    // expected-remark @below {{[Analysis] alternative | Category:strategy | Function=axes | bytes=4227858432, bytes_axis_0=469762048, bytes_axis_1=3758096384, compute_us=70.4, exposed_us=10467.9, hidden_us=7572.7, peak_bytes=403701760, strategy=double_ring_kv}}
    // expected-remark @below {{[Passed] chosen | Category:strategy | Function=axes | bytes=587661312, bytes_axis_0=469762048, bytes_axis_1=117899264, compute_us=70.4, exposed_us=9678.5, hidden_us=61.6, peak_bytes=404226048, strategy="ulysses on [1], ring_kv on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], ring_q on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], direct_kv on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], direct_q on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], all_gather on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], gather_q on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], bi_ring_kv on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], bi_ring_q on [0]"}}
    // expected-remark @below {{strategy=double_ring_q}}
    // expected-remark @below {{strategy=all_gather}}
    // expected-remark @below {{strategy=gather_q}}
    // expected-remark @below {{strategy=direct_kv}}
    // expected-remark @below {{strategy=direct_q}}
    // expected-remark @below {{strategy=bi_ring_kv}}
    // expected-remark @below {{strategy=bi_ring_q}}
    // expected-remark @below {{strategy="ulysses on [1], double_ring_kv on [0]"}}
    // expected-remark @below {{strategy="ulysses on [1], double_ring_q on [0]"}}
    // expected-remark @below {{none", strategy=ulysses}}
    %o, %lse = burst.attention %q, %q, %q sequence <@mesh, contiguous>
        : (!q, !q, !q) -> (!q, tensor<1x8x1048576xf32>)
    return %o : !q
  }
}

// What does not fit a rank's memory is not chosen.
//
//--- memory.mlir
!q = tensor<1x1024x1x4xf32>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.memory" = 4.0e4 : f64>>} {
  shard.grid @cp(shape = 4)
  func.func @memory(%q: !q) -> !q {
    // expected-remark @below {{[Passed] chosen | Category:strategy | Function=memory | bytes=24576, compute_us=0.0, exposed_us=30.5, hidden_us=0.0, peak_bytes=26624, strategy=ring_kv}}
    // expected-remark @below {{strategy=ring_q}}
    // expected-remark @below {{[Analysis] ruled-out | Category:strategy | Function=memory | Reason="a rank has 40000 bytes", bytes=24576, compute_us=0.0, exposed_us=12.5, hidden_us=0.0, peak_bytes=41984, strategy=all_gather}}
    // expected-remark @below {{strategy=gather_q}}
    // expected-remark @below {{strategy=direct_kv}}
    // expected-remark @below {{strategy=direct_q}}
    // expected-remark @below {{strategy=double_ring_kv}}
    // expected-remark @below {{strategy=double_ring_q}}
    // expected-remark @below {{none", strategy=ulysses}}
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
        : (!q, !q, !q) -> (!q, tensor<1x1x1024xf32>)
    return %o : !q
  }
}

// -----

!q = tensor<1x1024x1x4xf32>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.memory" = 4.0e3 : f64>>} {
  shard.grid @cp(shape = 4)
  func.func @none(%q: !q) -> !q {
    // expected-error @below {{needs 26624 bytes on a rank with the strategy ring_kv, more with others, and 'burst.memory' is 4000; shard it over more ranks, or pin one}}
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
        : (!q, !q, !q) -> (!q, tensor<1x1x1024xf32>)
    return %o : !q
  }
  func.func @pinned(%q: !q) -> !q {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous> strategy <ring_kv>
        : (!q, !q, !q) -> (!q, tensor<1x1x1024xf32>)
    return %o : !q
  }
}

// -----

// What others of the function pin is what must fit.
!q = tensor<1x16x2x4xf32>
!l = tensor<1x2x16xf32>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.memory" = 1.2e3 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @together(%q: !q) -> (!q, !q) {
    // expected-error @below {{bytes on a rank with the strategy ulysses, more with others, and 'burst.memory' is 1200; shard it over more ranks, or pin one}}
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, contiguous>
        : (!q, !q, !q) -> (!q, !l)
    %p, %lsep = burst.attention %q, %q, %q mask causal sequence <@cp, contiguous> strategy <ulysses>
        : (!q, !q, !q) -> (!q, !l)
    return %o, %p : !q, !q
  }
}

//--- invalid.mlir
// expected-error @below {{describes "burst.bandwidth" of the device "burst" as 5 : i64, but it must be a finite f64 above 0}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.bandwidth" = 5 : i64>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// -----

// expected-error @below {{describes "burst.bandwidth" of the device "burst" as 0.000000e+00 : f64, but it must be a finite f64 above 0}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.bandwidth" = 0.0 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// -----

// expected-error @below {{describes "burst.flops" of the device "burst" as -1.000000e+00 : f64, but it must be a finite f64 above 0}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = -1.0 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// -----

// expected-error @below {{describes "burst.flops" of the device "burst" as 1.000000e+00 : f32, but it must be a finite f64 above 0}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = 1.0 : f32>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// -----

// expected-error @below {{describes "burst.latency" of the device "burst" as 0x7FF0000000000000 : f64, but it must be a finite f64 that is not negative}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.latency" = 0x7FF0000000000000 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// -----

// expected-error @below {{describes "burst.bandwith" of the device "cp", which is not known; known are: burst.bandwidth, burst.latency, burst.flops, burst.memory}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "cp" = #dlti.target_device_spec<"burst.bandwith" = 1.0 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// -----

// expected-error @below {{describes "burst.flops" of the device "cp.0", an axis, which has burst.bandwidth and burst.latency; say it of the grid}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "cp.0" = #dlti.target_device_spec<"burst.flops" = 1.0 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}

// -----

// expected-error @below {{describes the device "cp.1", but the axes of @cp are "cp.0" to "cp.0"}}
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "cp.1" = #dlti.target_device_spec<"burst.latency" = 1.0 : f64>>} {
  shard.grid @cp(shape = 2)
  func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
    %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
        : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
        -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
    return %o : tensor<1x8x1x4xf32>
  }
}
