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

def SpecializeWarpsPass : Pass<"cuda-specialize-warps", "::mlir::func::FuncOp"> {
  let summary = "gives warps roles: a producer brings tiles, consumers compute";
  let description = [{
    For GPUs of sm_90a. What a kernel loads to shared memory comes through channels:
    a producer copies boxes of tensors, ahead of the consumers by as many tiles as
    a channel has slots, and consumers begin asynchronous products of what has
    come. The body of the kernel becomes two,

    ```
    channels; synchronize
    roles producer {                       consumers {
      acquire queries; bring; publish        load the state; receive queries
      for each turn:                         for each turn:
        acquire keys; bring; publish           receive keys
                                               multiply_async; await; release keys
                                               ... scores become weights; round ...
        acquire values; bring; publish         receive values
                                               multiply_async; await; release values
    }                                        store the state }
    ```

    of which the producer's is what loads need of the kernel's. What a loop loads
    has `stages` slots, or fewer where `shared-bytes` do not suffice. Where columns
    end inside a tile, consumers clear the values behind them: there the tensor may
    have anything, even what is no number. What consumers read for a mask alone,
    they read in the branch that has it.

    A kernel that loads nothing to shared memory stays as it is. So does one that
    asynchronous products do not fit, with a remark that says why. They need teams
    of 4, 8 or 12 warps with 16 rows each, head dimensions that are multiples of 16,
    tiles that fit into shared memory, and weights of a softmax: kernels of gradients
    keep their shape.

    Needs `ring-lower-to-tile` with `warps`. Leaves kernels with `cuda.roles`, for
    sm_90a only; `cuda-stage-copies` does what was left as it was.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "2", "slots for what a loop loads">,
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448",
           "shared memory of a block of threads">];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::scf::SCFDialect"];
}

def DelegateMasksPass : Pass<"cuda-delegate-masks", "::mlir::func::FuncOp"> {
  let summary = "lets idle warps evaluate masks that read tables";
  let description = [{
    Of the producer's warps with roles only one has something to do. A mask that
    reads a table, evaluated by consumers between two products, takes time and
    registers of them. The other warps can do it ahead of them, as they need no
    scores for it:

    ```
    markers {                             consumers {
      for each partly masked tile:          for each partly masked tile:
        acquire marks; mark; publish          ... await scores ...
    }                                         receive marks; hide; release
                                              ... weights ... }
    ```

    Their body is a copy of the consumers', of which masks and what they need are
    left. A mark is a bit for each pair, so a slot is a hundredth of a tile of
    keys, and there are `stages` of them, or fewer where `shared-bytes` do not
    suffice. Registers are shared out anew. A score function stays with consumers.

    A mask of arithmetic alone stays where it is, as to read marks would cost as
    much, and so does, with a remark, one for whose marks there is no shared memory.

    Needs `cuda-specialize-warps`, in front of `cuda-skew`; a kernel without roles
    stays as it is.
  }];
  let options = [
    Option<"stages", "stages", "int64_t", "4", "slots for marks">,
    Option<"sharedBytes", "shared-bytes", "int64_t", "232448",
           "shared memory of a block of threads">];
  let dependentDialects = ["::burst::cuda::CudaDialect"];
}

def SkewPass : Pass<"cuda-skew", "::mlir::func::FuncOp"> {
  let summary = "computes weights of a tile while products of its neighbours are done";
  let description = [{
    With roles, a turn of the consumers' loop multiplies, computes weights and
    multiplies again, one after the other. Skewed, as in FlashAttention-3, a turn
    makes the scores of its tile and the outputs of the tile before, and goes on to
    weights while the latter are under way:

    ```
    the first tile: receive keys; multiply_async scores; await; release keys
                    ... weights; rescale outputs; round weights ...
    each further tile:
      receive keys; multiply_async scores
      receive values of the tile before; multiply_async outputs
      await scores; release keys
      ... weights ...
      await outputs; release values of the tile before
      rescale outputs; round weights
      if partly masked: receive values; clear those behind the end
    behind the last tile: receive values; multiply_async outputs; await; release
    ```

    Of no tile there is nothing, of one tile what is taken out and the end.

    What is awaited between the two products waits for the older one only: how
    many may be under way is counted by whoever prints `cuda.await`. Values are held
    for longer than keys, so a channel with two slots brings one tile ahead.

    Needs `cuda-specialize-warps`; leaves roles of another form, or with several
    such loops, as they are, with a remark. A kernel without roles stays as it is.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::scf::SCFDialect"];
}

def TakeTurnsPass : Pass<"cuda-take-turns", "::mlir::func::FuncOp"> {
  let summary = "lets warpgroups multiply one after the other";
  let description = [{
    Of several warpgroups of consumers, one begins the products of its turn of a
    loop, and then the next may: while the products of one are done, others compute
    weights ("ping-pong" of FlashAttention-3).

    ```
    begin_turns
    for each tile:
      take_turn
      multiply_async; multiply_async
      pass_turn
      await ...
    end_turns
    ```

    In loops that begin several products before they await one: those that
    `cuda-skew` has made. A kernel with roles but no such loop stays as it is, with a
    remark; so does, without one, what has one warpgroup of consumers or no roles.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect"];
}

def UploadTablesPass : Pass<"cuda-upload-tables", "::mlir::ModuleOp"> {
  let summary = "gives kernels of GPUs copies of what lies in the host's memory";
  let description = [{
    In a program that launches kernels of GPUs, what is allocated for the schedule
    is the host's, and so are constants, and the arguments that host code reads, such
    as tables that masks read: these get `cuda.host`. All other memory is the GPU's.
    Where a kernel of a GPU reads memory of the host, it gets a `cuda.upload` of it:
    of arguments and constants at the program's begin, of allocations in front of the
    first launch that reads them, deallocated behind the last one.

    Needs `ring-lower-to-tile` with `warps`. An op of host code that reads memory
    of the GPU is an error, as is a kernel of a GPU that writes memory of the host.
  }];
  let dependentDialects = ["::burst::cuda::CudaDialect", "::mlir::memref::MemRefDialect"];
}

def NarrowPositionsPass : Pass<"cuda-narrow-positions", "::mlir::func::FuncOp"> {
  let summary = "computes in 32 bits what masks and scores make of positions";
  let description = [{
    In regions of `tile.map`, `tile.map_gradient` and `cuda.mark` integers become i32 where their
    ranges allow it, as upstream's `arith-int-range-narrowing` does: 64 bits cost a
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
