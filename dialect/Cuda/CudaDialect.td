//===- CudaDialect.td - what a GPU's kernel has beside tile -*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_CUDA_CUDADIALECT_TD
#define BURST_DIALECT_CUDA_CUDADIALECT_TD

include "mlir/IR/OpBase.td"

def Cuda_Dialect : Dialect {
  let name = "cuda";
  let cppNamespace = "::burst::cuda";
  let summary = "What kernels of GPUs say beside the recurrence: copies under way.";
  let description = [{
    A kernel of a GPU is a function with `tile.kernel` and `tile.warps`, the number
    of warps of a CTA (cooperative thread array) that do a task together. Its blocks
    say where they lie, by upstream's memory spaces:

    | block | memory space | what it is |
    |---|---|---|
    | operands of products, of 16 bits | `#gpu.address_space<workgroup>` | a tile in shared memory |
    | scores, sums, rows | `#gpu.address_space<private>` | registers of these warps |

    `tile` ops on such blocks are functions of the device library
    (`codegen/cuda/device`), one to one. What they do not say is when data comes:
    shared memory is written by asynchronous copies, and each warp reads what any of
    them copied. The ops here say that. `cuda-stage-copies` makes
    them of `tile.load`.

    Upstream's `nvgpu` has the same copies, on memrefs whose element is one
    thread's; its products are of fragments that the IR carries as vectors. A tile
    of a CTA is neither, and text that a person reads wants whole tiles.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::burst::tile::TileDialect", "::mlir::gpu::GPUDialect"];
}

#endif // BURST_DIALECT_CUDA_CUDADIALECT_TD
