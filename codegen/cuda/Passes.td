//===- Passes.td - from tiles to CUDA C++ -------------------*- tablegen -*-===//
#ifndef BURST_CODEGEN_CUDA_PASSES_TD
#define BURST_CODEGEN_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def StageCopiesPass : Pass<"cuda-stage-copies", "::mlir::func::FuncOp"> {
  let summary = "makes loads to shared memory copies that run beside the warps";
  let description = [{
    A `tile.load` to shared memory becomes a `cuda.copy`, begun as early as memory
    allows, with a `cuda.wait` and a `cuda.synchronize` in front of what reads it.
    There is one block per operand, and no second one to copy into meanwhile. In a
    loop over tiles with blocks b1 to bn, in the order in which they are first read,

    ```
    synchronize; copy b1 of the first turn
    for each turn:
      wait; synchronize        b1 is here, and all warps have read b2 to bn
      copy b2 to bn
      ... what reads b1 ...
      wait; synchronize        b2 to bn are here, and all warps have read b1
      copy b1 of the next turn
      ... what reads b2 to bn ...
    ```

    so that values come while scores are computed, and the next keys while weights
    are. Where b1 is also read behind the second wait, the next one is copied at the
    end of a turn, behind another `cuda.synchronize`.

    Loads in front of all loops are copied where they stand; the first wait covers
    them.

    Needs `ring-lower-to-tile` with `warps`. Leaves no `tile.load` to shared
    memory.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::scf::SCFDialect"];
}

def UploadTablesPass : Pass<"cuda-upload-tables", "::mlir::ModuleOp"> {
  let summary = "gives kernels of GPUs copies of what lies in the host's memory";
  let description = [{
    In a program that launches kernels of GPUs, what is allocated for the schedule
    is the host's, and so are the arguments that host code reads, such as tables
    that masks read: these get `cuda.host`. All other memory is the GPU's. Where a
    kernel of a GPU reads memory of the host, it gets a `cuda.upload` of it: of
    arguments at the program's begin, of allocations in front of the first launch
    that reads them, deallocated behind the last one.

    Needs `ring-lower-to-tile` with `warps`. An op of host code that reads memory
    of the GPU is an error, as is a kernel of a GPU that writes memory of the host.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::memref::MemRefDialect"];
}

#endif // BURST_CODEGEN_CUDA_PASSES_TD
