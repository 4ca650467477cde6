//===- Passes.td - from tiles to CUDA C++ -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_PASSES_TD
#define BURST_CODEGEN_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def StageCopiesPass : Pass<"cuda-stage-copies", "::mlir::func::FuncOp"> {
  let summary = "makes loads to shared memory asynchronous copies";
  let description = [{
    A `tile.load` to shared memory becomes a `cuda.copy`, begun as early as memory
    allows, with a `cuda.wait` and a `cuda.synchronize` in front of what reads it.
    There is one block per operand, and no second one to copy into meanwhile. In a
    loop over tiles with blocks b1 to bn, in the order in which they are first read,

    ```
    synchronize; copy b1 of the first iteration
    for each iteration:
      wait; synchronize        b1 is here, and all warps have read b2 to bn
      copy b2 to bn
      ... what reads b1 ...
      wait; synchronize        b2 to bn are here, and all warps have read b1
      copy b1 of the next iteration
      ... what reads b2 to bn ...
    ```

    so that values come while scores are computed, and the next keys while weights
    are. Where b1 is also read behind the second wait, the next one is copied at the
    end of an iteration, behind another `cuda.synchronize`.

    Loads in front of all loops are copied where they stand; the first wait covers
    them.

    Needs `ring-lower-to-tile` with `warps`. Leaves no `tile.load` to shared
    memory.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::scf::SCFDialect"];
}

def SpecializeWarpsPass : Pass<"cuda-specialize-warps", "::mlir::func::FuncOp"> {
  let summary = "warp specialization: a producer loads tiles by TMA, consumers compute";
  let description = [{
    For GPUs of sm_90a. What a kernel loads to shared memory comes through pipelines:
    a producer loads boxes of tensors by TMA, ahead of the consumers by as many tiles
    as a pipeline has stages, and consumers begin asynchronous products (wgmma) of
    what was loaded. The body of the kernel becomes two,

    ```
    pipelines; synchronize
    warp_specialize producer {               consumers {
      producer_acquire queries                 load the state
      tma_load; producer_commit                consumer_wait queries
      for each tile:                           for each tile:
        producer_acquire keys                    consumer_wait keys
        tma_load; producer_commit                multiply_async; await
                                                 consumer_release keys
                                                 ... scores become weights; round ...
        producer_acquire values                  consumer_wait values
        tma_load; producer_commit                multiply_async; await
                                                 consumer_release values
    }                                          store the state }
    ```

    of which the producer's is what loads need of the kernel's body. What a loop loads
    has `stages` stages, or fewer where `shared-bytes` do not suffice. Where columns
    end inside a tile, consumers clear the values behind them: there the tensor may
    have anything, NaN too. What consumers read for a mask alone,
    they read in the branch that has it.

    A kernel that loads nothing to shared memory stays as it is. So does one that
    asynchronous products do not fit, with a remark that says why. They need 4, 8
    or 12 consumer warps with 16 rows each, head dimensions that are multiples of 16,
    tiles that fit into shared memory, and weights of a softmax: kernels of gradients
    keep their shape.

    Needs `ring-lower-to-tile` with `warps`. Leaves warp-specialized kernels
    (`cuda.warp_specialize`), for sm_90a only; `cuda-stage-copies` lowers the others.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "2", "stages for what a loop loads">,
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448",
           "shared memory of a block of threads">];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::scf::SCFDialect"];
}

def DelegateMasksPass : Pass<"cuda-delegate-masks", "::mlir::func::FuncOp"> {
  let summary = "lets idle warps (mask warps) evaluate masks that read tables";
  let description = [{
    Of the producer's warps in a warp-specialized kernel only one has work. A mask that
    reads a table, evaluated by consumers between two products, takes time and
    registers of them. The other warps can do it ahead of them, as they need no
    scores for it:

    ```
    mask_warps {                          consumers {
      for each partly masked tile:          for each partly masked tile:
        producer_acquire bits                 ... await scores ...
        mask_bits                             consumer_wait bits
        producer_commit bits                  apply_mask_bits; consumer_release bits
    }                                         ... weights ... }
    ```

    Their body is a copy of the consumers', of which masks and what they need are
    left. There is one bit for each pair, so a stage is a small part of a tile of
    keys, and there are `stages` of them, or fewer where `shared-bytes` do not
    suffice. Registers are distributed anew between the roles. A score function stays
    with consumers.

    A mask of arithmetic alone stays where it is, as to read mask bits would cost
    as much, and so does, with a remark, one for whose mask bits there is no shared
    memory.

    Needs `cuda-specialize-warps`, in front of `cuda-software-pipeline`; a
    kernel that is not warp-specialized stays as it is.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "4", "stages for mask bits">,
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448",
           "shared memory of a block of threads">];
  let dependentDialects = ["::burst::cuda::CudaDialect"];
}

def SoftwarePipelinePass : Pass<"cuda-software-pipeline", "::mlir::func::FuncOp"> {
  let summary = "software pipelining: weights of a tile over products of its neighbours";
  let description = [{
    In a warp-specialized kernel, an iteration of the consumers' loop multiplies,
    computes weights and multiplies again, one after the other. Software-pipelined, as
    in FlashAttention-3 (intra-warpgroup overlap), an iteration begins the scores of
    its tile and the outputs of the tile before, and computes weights while the latter
    are under way:

    ```
    the first tile (prologue):
      consumer_wait keys; multiply_async scores; await; consumer_release keys
      ... weights; rescale outputs; round weights ...
    each further tile:
      consumer_wait keys; multiply_async scores
      consumer_wait values of the tile before; multiply_async outputs
      await scores; consumer_release keys
      ... weights ...
      await outputs; consumer_release values of the tile before
      rescale outputs; round weights
      if partly masked: consumer_wait values; clear those behind the end
    behind the last tile (epilogue):
      consumer_wait values; multiply_async outputs; await; consumer_release values
    ```

    Without a tile neither is executed, with one tile the prologue and the epilogue.

    What is awaited between the two products waits for the older one only: how
    many may be under way is counted when `cuda.await` is printed. Values are held
    for longer than keys, so a pipeline with two stages loads one tile ahead.

    Needs `cuda-specialize-warps`; leaves consumers of another form, or with
    several such loops, as they are, with a remark. A kernel that is not
    warp-specialized stays as it is.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::scf::SCFDialect"];
}

def PingPongPass : Pass<"cuda-ping-pong", "::mlir::func::FuncOp"> {
  let summary = "ping-pong scheduling: warpgroups multiply one after the other";
  let description = [{
    Of several warpgroups of consumers, one begins the products of its iteration of a
    loop and signals the next, which then begins its own: while the products of one are
    done, others compute weights (ping-pong scheduling of FlashAttention-3).

    ```
    ping_pong_begin
    for each tile:
      ping_pong_wait
      multiply_async; multiply_async
      ping_pong_signal
      await ...
    ping_pong_end
    ```

    In loops that begin several products before they await one: those that
    `cuda-software-pipeline` has made. A warp-specialized kernel without such a
    loop stays as it is, with a remark; one with one warpgroup of consumers, or that is
    not warp-specialized, without.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect"];
}

def UploadTablesPass : Pass<"cuda-upload-tables", "::mlir::ModuleOp"> {
  let summary = "gives kernels of GPUs copies of what lies in the host's memory";
  let description = [{
    In a program that launches kernels of GPUs, what is allocated for the schedule
    is the host's, and so are constants, and the arguments that host code reads, such
    as tables that masks read: these get `tile.host`. All other memory is the GPU's.
    Where a kernel of a GPU reads memory of the host, it gets a `tile.upload` of it:
    of arguments and constants at the program's begin, of allocations in front of the
    first launch that reads them, deallocated behind the last one.

    Needs `ring-lower-to-tile` with `warps`. An op of host code that reads memory
    of the GPU is an error, as is a kernel of a GPU that writes memory of the host.
  }];
  let dependentDialects = ["::burst::tile::TileDialect", "::mlir::memref::MemRefDialect"];
}

def NarrowPositionsPass : Pass<"cuda-narrow-positions", "::mlir::func::FuncOp"> {
  let summary = "computes in 32 bits what masks and scores make of positions";
  let description = [{
    In regions of `tile.map`, `tile.map_gradient` and `cuda.mask_bits` integers become
    i32 where their ranges allow it, as upstream's `arith-int-range-narrowing` does: 64 bits cost a
    GPU two registers and several instructions. Positions and sizes are at most 2^30,
    which `ring-lower-to-tile` and the runtime see to: sums and differences of two of
    them and of a third fit. A product of positions, or what is made of a captured i64,
    keeps its 64 bits.

    ```mlir
    mask(%b, %h, %i, %j, %sq, %sk) {
      %0 = arith.subi %sk, %sq : index           %0 = arith.index_castui %sk : index to i32
      %1 = arith.addi %i, %0 : index             %1 = arith.index_castui %sq : index to i32
      %2 = arith.cmpi sle, %j, %1 : index        %2 = arith.subi %0, %1 : i32
      burst.yield %2 : i1                        ...
    }
    ```

    Needs `ring-lower-to-tile` with `warps`; does nothing to other functions.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // BURST_CODEGEN_CUDA_PASSES_TD
