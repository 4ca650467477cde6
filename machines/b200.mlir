// Nodes of 8 B200-SXM-180GB, a card of NDR InfiniBand for each. The kernel is FlashAttention-4.
// Entries that begin with reach. are read by bench/reach alone.
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<
    // FlashAttention-4 on one B200, bf16 (together.ai/blog/flashattention-4; arXiv 2603.05451)
    "burst.flops" = 1.605e15 : f64,
    // assumed: the share of the forward rate that FlashAttention-3 has on H100, 561 of 648
    "burst.flops_backward" = 1.39e15 : f64,
    // B200 datasheet: bf16 dense
    "burst.peak" = 2.25e15 : f64,
    // a kernel launched from a stream that is not empty: 3 to 5 us (NVIDIA's blog on CUDA graphs)
    "burst.launch" = 5.0e-6 : f64,
    // B200
    "burst.processors" = 148.0 : f64,
    // FlashAttention-4's tile of queries at head dim 128
    "burst.tile" = 128.0 : f64,
    // HGX B200 datasheet
    "burst.memory" = 1.8e11 : f64,
    // the same
    "burst.memory_bandwidth" = 7.7e12 : f64,
    // HGX
    "burst.node" = 8.0 : f64,
    // NVLink 5 has 900 GB/s one way; the share of them that nccl-tests reach on A100, 240 of 300
    "burst.node_bandwidth" = 7.2e11 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 3.4 us for NVLink
    "burst.node_latency" = 1.18e-5 : f64,
    // NDR InfiniBand, 400 Gbit/s
    "burst.bandwidth" = 5.0e10 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 14 us for a network
    "burst.latency" = 2.24e-5 : f64,
    // DGX B200: a card for each GPU
    "burst.links" = 8.0 : f64,
    // assumed: 8 of NCCL's channels, a multiprocessor each, of 148
    "burst.busy" = 0.05 : f64,
    // the most that large bf16 matrix products reach: 1745 TFLOP/s
    // (github.com/stas00/ml-engineering, MAMF table)
    "reach.matmul" = 1.745e15 : f64,
    // the same of fp8
    "reach.matmul_fp8" = 3.4325e15 : f64>>} {}
