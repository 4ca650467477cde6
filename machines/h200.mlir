// Nodes of 8 H200-SXM-141GB, a card of NDR InfiniBand for each. H200 computes as H100 does; the kernel
// is FlashAttention-3.
// Entries that begin with reach. are read by bench/reach alone.
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<
    // FlashAttention-3 on one H100, head dim 128, full mask, 16K (arXiv 2407.08608, figure 5)
    "burst.flops" = 6.48e14 : f64,
    // the same, backward (figure 6)
    "burst.flops_backward" = 5.61e14 : f64,
    // H100 SXM datasheet: bf16 dense
    "burst.peak" = 9.89e14 : f64,
    // a kernel launched from a stream that is not empty: 3 to 5 us (NVIDIA's blog on CUDA graphs)
    "burst.launch" = 5.0e-6 : f64,
    // H100 SXM datasheet
    "burst.processors" = 132.0 : f64,
    // FlashAttention-3's tile of queries at head dim 128
    "burst.tile" = 128.0 : f64,
    // H200 datasheet
    "burst.memory" = 1.41e11 : f64,
    // the same
    "burst.memory_bandwidth" = 4.8e12 : f64,
    // HGX
    "burst.node" = 8.0 : f64,
    // NVLink 4 has 450 GB/s one way; the share of them that nccl-tests reach on A100, 240 of 300
    "burst.node_bandwidth" = 3.6e11 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 3.4 us for NVLink
    "burst.node_latency" = 1.18e-5 : f64,
    // NDR InfiniBand, 400 Gbit/s
    "burst.bandwidth" = 5.0e10 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 14 us for a network
    "burst.latency" = 2.24e-5 : f64,
    // DGX H100: a card for each GPU
    "burst.links" = 8.0 : f64,
    // assumed: 8 of NCCL's channels, a multiprocessor each, of 132
    "burst.busy" = 0.06 : f64,
    // the most that large bf16 matrix products reach: 794.5 TFLOP/s, H100 and H200
    // (github.com/stas00/ml-engineering, MAMF table)
    "reach.matmul" = 7.945e14 : f64,
    // the same of fp8, measured on H200
    "reach.matmul_fp8" = 1.4534e15 : f64,
    // a block of queries beside its tiles: FlashAttention-3, causal, 512 positions reach 292 TFLOP/s
    // (figure 5), which is 3.3 us for each block of 128 beside 2.5 tiles of 1.7 us
    "reach.block" = 3.3e-6 : f64,
    // a block of keys backward: full mask, 1K positions reach 424 TFLOP/s (figure 6), so 12.8 us
    // beside 8 tiles of 4.9 us
    "reach.block_backward" = 1.28e-5 : f64>>} {}
