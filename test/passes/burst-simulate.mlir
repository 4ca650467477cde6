// What the clock says, beside what follows by hand: a tile is 128 x 128 pairs of a head of 64, 4194304
// operations, and a slice of keys and values 64 KiB.
//
// RUN: split-file %s %t
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/hidden.mlir" | FileCheck %s --check-prefix=HIDDEN
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/latency.mlir" | FileCheck %s --check-prefix=LATENCY
// RUN: burst-opt %examples/llama3.mlir --burst-simulate="machine=%burst_source/machines/h100.mlir compare=placements" | FileCheck %s --check-prefix=ONE-NODE
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/slow.mlir" | FileCheck %s --check-prefix=SLOW
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/launch.mlir" | FileCheck %s --check-prefix=LAUNCH
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/busy.mlir" | FileCheck %s --check-prefix=BUSY
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/staged.mlir" | FileCheck %s --check-prefix=STAGED
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/copies.mlir" | FileCheck %s --check-prefix=COPIES
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/devices.mlir" | FileCheck %s --check-prefix=DEVICES
// RUN: burst-opt %t/contiguous.mlir --burst-simulate="machine=%t/devices.mlir" | FileCheck %s --check-prefix=SHARED
// RUN: burst-opt %t/nodes.mlir --burst-simulate="machine=%t/one-card.mlir" | FileCheck %s --check-prefix=ONE-CARD
// RUN: burst-opt %t/nodes.mlir --burst-simulate="machine=%t/two-cards.mlir" | FileCheck %s --check-prefix=TWO-CARDS
// RUN: burst-opt %t/nodes.mlir --burst-simulate="machine=%t/one-card.mlir compare=placements" | FileCheck %s --check-prefix=PLACED
// RUN: burst-opt %t/nodes.mlir --burst-simulate="machine=%t/inside.mlir" | FileCheck %s --check-prefix=INSIDE
// RUN: burst-opt %t/contiguous.mlir --burst-simulate="machine=%t/hidden.mlir" | FileCheck %s --check-prefix=IMBALANCE
// RUN: burst-opt %t/window.mlir --burst-simulate="machine=%t/hidden.mlir format=json" | FileCheck %s --check-prefix=WINDOW
// RUN: burst-opt %t/contiguous.mlir --burst-simulate="machine=%t/hidden.mlir compare=strategies,orders" | FileCheck %s --check-prefix=COMPARE
// RUN: burst-opt %t/ring.mlir --burst-to-ring | burst-opt --burst-simulate="machine=%t/slow.mlir" | FileCheck %s --check-prefix=SLOW
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/hidden.mlir overlap=false" | FileCheck %s --check-prefix=NO-OVERLAP
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/slow.mlir format=json" | FileCheck %s --check-prefix=JSON
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/slow.mlir format=trace" | FileCheck %s --check-prefix=TRACE
// RUN: burst-opt %t/ring.mlir --burst-simulate="machine=%t/slow.mlir format=svg" | FileCheck %s --check-prefix=SVG

// Two attends of a tile, 1 ms each; the slice takes 1 ms behind the first.
// HIDDEN:      program @ring, 2 ranks: 2.00 ms, 100.0 % of the peak
// HIDDEN-NEXT:   the last rank computes for 2.00 ms, all of them for 2.00 ms on average
// HIDDEN-NEXT:   and waits for 0.00 us
// HIDDEN-NEXT:   a rank sends 64.0 KiB on average, and holds at most
// HIDDEN-NEXT:   limited by computation: the last rank computes for 100.0 %, all at 100.0 % of the peak

// Without overlap it travels before or behind the attend.
// NO-OVERLAP: program @ring, 2 ranks: 3.00 ms

// It arrives 0.5 ms later.
// LATENCY: program @ring, 2 ranks: 2.50 ms
// LATENCY: waits for 500.00 us
// LATENCY: limited by latency of transfers: 20.0 % of the time the last rank waits for it

// It takes 4 ms.
// SLOW: program @ring, 2 ranks: 5.00 ms
// SLOW: waits for 3.00 ms
// SLOW: limited by bandwidth of transfers: 60.0 % of the time the last rank waits for it; with
// SLOW-SAME: 0.05945 GB/s it would wait for less than 5 %

// Four kernels: a state begins, meets two slices and ends.
// LAUNCH: program @ring, 2 ranks: 2.40 ms

// While the slice is under way half of the processors compute: 1 ms is half of an attend.
// BUSY: program @ring, 2 ranks: 2.50 ms

// Both attends move 64 KiB of keys and values, 32 of queries and twice 32 of the output, twice, before
// and behind what they compute: 0.31 ms; 33 KiB of a state are begun, read, and become results.
// STAGED: program @ring, 2 ranks: 2.36 ms

// What is received is copied by the rank: 64 KiB in 1 ms, between both attends.
// COPIES: program @ring, 2 ranks: 3.00 ms

// Both ranks share a device; where one has half the work, the other has it alone when that is done.
// DEVICES: program @ring, 2 ranks: 4.00 ms
// SHARED: program @contiguous, 2 ranks: 3.00 ms

// Two rings between two nodes of two ranks share a card, 2 ms, or have one each.
// ONE-CARD: program @nodes, 4 ranks: 3.00 ms
// ONE-CARD: and waits for 1.00 ms, on [0] for 1.00 ms, on [1] for 0.00 us
// TWO-CARDS: program @nodes, 4 ranks: 2.00 ms

// Where the ring's ranks are those of a node, nothing goes between nodes.
// PLACED: program @nodes, 4 ranks
// PLACED-NEXT: | time
// PLACED-NEXT: {{^}}chosen, placed [0, 1] | 3.00 ms | 2.00 ms | 1.00 ms
// PLACED-NEXT: {{^}}chosen, placed [1, 0] | 2.0{{[0-9]}} ms | 2.00 ms |
// PLACED-NOT: placed

// In one node all placements are alike.
// ONE-NODE: program @llama3, 8 ranks
// ONE-NODE-NOT: placed
// ONE-NODE: {{^}}chosen |
// ONE-NODE-NOT: placed
// INSIDE: program @nodes, 4 ranks: 2.0{{[0-9]}} ms
// INSIDE-NEXT: computes for 2.00 ms

// The second rank has a partial tile, and all keys of the first.
// IMBALANCE: program @contiguous, 2 ranks: 2.00 ms
// IMBALANCE: the last rank computes for 2.00 ms, all of them for 1.50 ms on average


// Of a window a tile and the one in front are computed, and 101 pairs of a row kept: 8192 rows of two tiles
// of a head of 64, on one rank.
// WINDOW: "compute_seconds": 0.127
// WINDOW: "flops": {{20[89]......|21[0-6]......}},

// COMPARE:      program @contiguous, 2 ranks
// COMPARE-NEXT: | time
// COMPARE-DAG:  {{^}}ring_kv, contiguous {{ *}}| 2.00 ms | 2.00 ms
// COMPARE-DAG:  {{^}}all_gather, contiguous {{ *}}| 3.00 ms | 2.00 ms | 1.00 ms

// JSON-DAG: "compute_seconds": 0.002
// JSON-DAG: "exposed_seconds": 0.00{{3|299}}
// JSON-DAG: "seconds": 0.00{{5|499}}
// JSON-DAG: "bytes_sent": 65536
// JSON-DAG: "flops": 16777216
// JSON-DAG: "fits": true

// TRACE-DAG: "cat":"compute","dur":1000{{[^}]*}}"name":"attend"
// TRACE-DAG: "name":"to rank 1, 64.0 KiB"
// SVG: <svg
// SVG: <title>attend, 1.00 ms</title>

//--- ring.mlir
shard.grid @cp(shape = 2)
!s = tensor<1x256x1x64xf32>
func.func @ring(%q: !s, %k: !s, %v: !s) -> (!s, tensor<1x1x256xf32>) {
  %o, %l = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <ring_kv>
    : (!s, !s, !s) -> (!s, tensor<1x1x256xf32>)
  return %o, %l : !s, tensor<1x1x256xf32>
}

//--- contiguous.mlir
shard.grid @cp(shape = 2)
!s = tensor<1x256x1x64xf32>
func.func @contiguous(%q: !s, %k: !s, %v: !s) -> (!s, tensor<1x1x256xf32>) {
  %o, %l = burst.attention %q, %k, %v mask causal sequence <@cp, contiguous>
    : (!s, !s, !s) -> (!s, tensor<1x1x256xf32>)
  return %o, %l : !s, tensor<1x1x256xf32>
}

//--- window.mlir
shard.grid @one(shape = 1)
!s = tensor<1x8192x1x64xf32>
func.func @window(%q: !s, %k: !s, %v: !s) -> (!s, tensor<1x1x8192xf32>) {
  %o, %l = burst.attention %q, %k, %v mask window<left = 100, right = 0> sequence <@one, contiguous>
    : (!s, !s, !s) -> (!s, tensor<1x1x8192xf32>)
  return %o, %l : !s, tensor<1x1x8192xf32>
}

//--- nodes.mlir
shard.grid @mesh(shape = 2x2)
!s = tensor<1x256x2x64xf32>
func.func @nodes(%q: !s, %k: !s, %v: !s) -> (!s, tensor<1x2x256xf32>) {
  %o, %l = burst.attention %q, %k, %v sequence <@mesh[0], contiguous> heads <@mesh[1]> strategy <ring_kv>
    : (!s, !s, !s) -> (!s, tensor<1x2x256xf32>)
  return %o, %l : !s, tensor<1x2x256xf32>
}

//--- hidden.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.peak" = 4194304.0e3 : f64,
  "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}

//--- latency.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 5.0e-4 : f64>>} {}

//--- slow.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.bandwidth" = 16384.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}

//--- launch.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.launch" = 1.0e-4 : f64,
  "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}

//--- busy.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.busy" = 0.5 : f64,
  "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}

//--- staged.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.staged" = 2.0 : f64, "burst.memory_bandwidth" = 2097152.0e3 : f64,
  "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}

//--- copies.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.copy_bandwidth" = 65536.0e3 : f64,
  "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}

//--- devices.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.devices" = 1.0 : f64,
  "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64>>} {}

//--- one-card.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64,
  "burst.node" = 2.0 : f64, "burst.links" = 1.0 : f64>>} {}

//--- inside.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64,
  "burst.node" = 2.0 : f64, "burst.links" = 1.0 : f64, "burst.placement" = array<i64: 1, 0>>>} {}

//--- two-cards.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"burst" = #dlti.target_device_spec<
  "burst.flops" = 4194304.0e3 : f64, "burst.bandwidth" = 65536.0e3 : f64, "burst.latency" = 0.0 : f64,
  "burst.node" = 2.0 : f64>>} {}
