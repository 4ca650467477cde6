// Nodes of 8 A100-SXM4-80GB (DGX A100): 8 cards of HDR InfiniBand. The kernel is FlashAttention-2.
// Entries that begin with reach. are read by bench/reach alone.
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<
    // FlashAttention-2 on one A100, 64K positions, 32 heads of 128, full mask: 324 ms
    // for 4 S^2 H D = 70.4e12 operations (README of github.com/MayDomine/Burst-Attention)
    "burst.flops" = 2.17e14 : f64,
    // the same line: 1236 ms forward and backward, so 912 ms for 10 S^2 H D
    "burst.flops_backward" = 1.93e14 : f64,
    // A100 datasheet: bf16 dense
    "burst.peak" = 3.12e14 : f64,
    // a kernel launched from a stream that is not empty: 3 to 5 us (NVIDIA's blog on CUDA graphs)
    "burst.launch" = 5.0e-6 : f64,
    // A100 datasheet
    "burst.processors" = 108.0 : f64,
    // FlashAttention-2's tile of queries for head dims up to 128 (arXiv 2307.08691)
    "burst.tile" = 128.0 : f64,
    // A100 80GB datasheet
    "burst.memory" = 8.0e10 : f64,
    // the same
    "burst.memory_bandwidth" = 2.039e12 : f64,
    // DGX A100
    "burst.node" = 8.0 : f64,
    // NVLink 3 has 300 GB/s one way; nccl-tests reach 230 to 250 of them
    "burst.node_bandwidth" = 2.4e11 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 3.4 us for NVLink
    "burst.node_latency" = 1.18e-5 : f64,
    // HDR InfiniBand, 200 Gbit/s
    "burst.bandwidth" = 2.5e10 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 14 us for a network
    "burst.latency" = 2.24e-5 : f64,
    // DGX A100: a card for each GPU
    "burst.links" = 8.0 : f64,
    // assumed: 8 of NCCL's channels, a multiprocessor each, of 108
    "burst.busy" = 0.07 : f64,
    // the most that large bf16 matrix products reach: 267.9 TFLOP/s
    // (github.com/stas00/ml-engineering, compute/accelerator, MAMF table)
    "reach.matmul" = 2.68e14 : f64>>} {}
