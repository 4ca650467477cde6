//===- CudaOps.td - operations of the cuda dialect ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_CUDA_CUDAOPS_TD
#define BURST_DIALECT_CUDA_CUDAOPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/Cuda/CudaDialect.td"

class Cuda_Op<string mnemonic, list<Trait> traits = []>
    : Op<Cuda_Dialect, mnemonic, traits>;

def Cuda_View : MemRefRankOf<[BF16, F16], [2]>;
def Cuda_Shared : ConfinedType<StaticShapeMemRefOf<[BF16, F16]>, [HasAnyRankOfPred<[2]>],
                               "a tile of 16 bits">;

def Cuda_CopyOp : Cuda_Op<"copy", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins to copy rows of memory into shared memory (cp.async)";
  let description = [{
    block[r, c] = view[r, c], 0 where the view has no such row or column, at some
    time before a `cuda.wait` that covers the copy ends. All threads of the CTA
    take part, each with a part of the rows.

    **Constraints:** (C1) the block lies in `#gpu.address_space<workgroup>` and has
    the view's type of element. (C2) the last dimension of the view is contiguous,
    static, a multiple of 8 and not larger than the block's.

    Example:

    ```mlir
    cuda.copy %view, %keys : memref<?x128xbf16, strided<[?, 1], offset: ?>>,
                             memref<64x128xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Cuda_View:$view, Cuda_Shared:$block);
  let assemblyFormat = "$view `,` $block attr-dict `:` type($view) `,` type($block)";
  let hasVerifier = 1;
}

def Cuda_CommitOp : Cuda_Op<"commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "makes a group of the copies since the last one";
  let description = [{
    A group may be empty.

    Example: `cuda.commit`
  }];
  let assemblyFormat = "attr-dict";
}

def Cuda_WaitOp : Cuda_Op<"wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for copies";
  let description = [{
    Waits until of this thread's groups at most the `pending` newest are under way.
    What other threads copied is seen only behind `cuda.synchronize`.

    Example: `cuda.wait 0`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Cuda_SynchronizeOp : Cuda_Op<"synchronize", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all warps synchronize (a CTA-wide barrier)";
  let description = [{
    Behind it each thread sees what any of them wrote to shared memory before, and
    what copies wrote that any of them has waited for; and whatever was read
    before may be written.

    Example: `cuda.synchronize`
  }];
  let assemblyFormat = "attr-dict";
}

include "dialect/Cuda/HopperOps.td"

#endif // BURST_DIALECT_CUDA_CUDAOPS_TD
