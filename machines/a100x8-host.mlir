// 8 A100-SXM4-80GB whose transfers go through the memory of the host: runs marked "low" in the logs of
// BurstAttention set NCCL_P2P_DISABLE=1 (github.com/thunlp/BurstEngine, BurstEngine/apps/llama/exp.py).
// Several nodes are taken to have one path of that speed each way, too: what leaves a node takes the
// same way through the host. Two figures are calibrated (bench/reach/calibration.json).
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
    // 8 GPUs a node (the logs)
    "burst.node" = 8.0 : f64,
    // calibrated: what a GPU sends to another through the host while all 8 do
    "burst.node_bandwidth" = 4.87e9 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 5.7 us for PCI
    "burst.node_latency" = 1.41e-5 : f64,
    // as within a node
    "burst.bandwidth" = 4.87e9 : f64,
    // NCCL's cost model, src/graph/tuning.cc, ring with protocol Simple: 8.4 us base and 14 us for a network
    "burst.latency" = 2.24e-5 : f64,
    // assumed: no narrower than the way through the host
    "burst.links" = 8.0 : f64,
    // assumed: 8 of NCCL's channels, a multiprocessor each, of 108
    "burst.busy" = 0.07 : f64,
    // the most that large bf16 matrix products reach: 267.9 TFLOP/s
    // (github.com/stas00/ml-engineering, compute/accelerator, MAMF table)
    "reach.matmul" = 2.68e14 : f64,
    // calibrated: what a GPU sends in a collective of NCCL, through the host
    "reach.collective_bandwidth" = 6.43e9 : f64>>} {}
