// Nodes of 8 A800-SXM4-80GB: an A100 whose NVLink has 400 GB/s in place of 600. 4 cards a node, as in
// BurstEngine's README (NCCL_IB_HCA names four). The kernel is FlashAttention-2.
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
    // A800 80GB datasheet
    "burst.memory" = 8.0e10 : f64,
    // the same
    "burst.memory_bandwidth" = 2.039e12 : f64,
    // BurstEngine, arXiv 2509.19836
    "burst.node" = 8.0 : f64,
    // 200 GB/s one way, and the share of them that nccl-tests reach on A100, 240 of 300
    "burst.node_bandwidth" = 1.6e11 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 3.4 us for NVLink
    "burst.node_latency" = 1.18e-5 : f64,
    // HDR InfiniBand, 200 Gbit/s
    "burst.bandwidth" = 2.5e10 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 14 us for a network
    "burst.latency" = 2.24e-5 : f64,
    // README of github.com/thunlp/BurstEngine: mlx5_2, 3, 5 and 6
    "burst.links" = 4.0 : f64,
    // assumed: 8 of NCCL's channels, a multiprocessor each, of 108
    "burst.busy" = 0.07 : f64,
    // the most that large bf16 matrix products reach: 267.9 TFLOP/s
    // (github.com/stas00/ml-engineering, compute/accelerator, MAMF table)
    "reach.matmul" = 2.68e14 : f64>>} {}
