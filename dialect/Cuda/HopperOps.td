//===- HopperOps.td - warp-specialized kernels --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_CUDA_HOPPEROPS_TD
#define BURST_DIALECT_CUDA_HOPPEROPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "dialect/Cuda/CudaDialect.td"

def Cuda_Positions : ConfinedType<StaticShapeMemRefOf<[Index]>, [HasAnyRankOfPred<[1]>],
                                  "positions">;

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

def Cuda_PipelineType : TypeDef<Cuda_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "stages in shared memory between a producer and consumers";
  let description = [{
    `stages` stages, each a tile in shared memory: of 16 bits, which the producer
    loads by TMA, or of mask bits, a bit for each pair of a query and a key, which
    mask warps compute. Stages are a circular buffer, filled and read in order, as in
    CUTLASS's `PipelineTmaAsync`. Each stage has two barriers (`mbarrier`): the full
    barrier completes when a tile's bytes have been copied, or all mask warps have
    arrived; the empty barrier when all consumer warps have released the stage.

    ```mlir
    !cuda.pipeline<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    !cuda.pipeline<4 of memref<128x128xi1, #gpu.address_space<workgroup>>>
    ```
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::MemRefType":$tile);
  let assemblyFormat = "`<` $stages `of` $tile `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether stages are mask bits, which mask warps compute.
    bool isOfMaskBits() { return getTile().getElementType().isInteger(1); }
    /// How much of shared memory a stage is; of mask bits 32 columns are a word.
    int64_t getStageBytes();
  }];
}

def Cuda_Tile : ConfinedType<StaticShapeMemRefOf<[BF16, F16]>, [HasAnyRankOfPred<[2]>],
                             "a tile of 16 bits">;
def Cuda_MaskBits : ConfinedType<StaticShapeMemRefOf<[I1]>, [HasAnyRankOfPred<[2]>],
                              "mask bits of pairs">;
def Cuda_Sums : ConfinedType<StaticShapeMemRefOf<[F32]>, [HasAnyRankOfPred<[2]>],
                             "sums in f32">;
def Cuda_Token : Type<CPred<"::llvm::isa<::mlir::gpu::AsyncTokenType>($_self)">,
                      "a token", "::mlir::gpu::AsyncTokenType">,
                 BuildableType<"$_builder.getType<::mlir::gpu::AsyncTokenType>()">;

class Cuda_HopperOp<string mnemonic, list<Trait> traits = []>
    : Op<Cuda_Dialect, mnemonic, traits>;

def Cuda_PipelineOp : Cuda_HopperOp<"pipeline"> {
  let summary = "shared memory of a pipeline, and its barriers";
  let description = [{
    All stages are empty. Warps may use the pipeline behind a `cuda.synchronize`.

    **Constraints:** (C1) it stands in a kernel, in front of `cuda.warp_specialize`.

    Example:

    ```mlir
    %keys = cuda.pipeline : !cuda.pipeline<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    ```
  }];
  let results = (outs Res<Cuda_PipelineType, "", [MemAlloc]>:$pipeline);
  let assemblyFormat = "attr-dict `:` qualified(type($pipeline))";
}

def Cuda_WarpSpecializeOp : Cuda_HopperOp<"warp_specialize", [
    RecursiveMemoryEffects, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "what the producer, mask warps and consumers do";
  let description = [{
    Warp specialization: the first `tile.warps` warps of the CTA are the consumers,
    and compute a task together. Behind them come the producer's `warps`, of which one
    thread of the first warp does what the first region says. The others are idle, or
    are mask warps, which evaluate masks for consumers. The producer and mask warps
    give up registers, and consumers take them (`setmaxnreg`). Between the roles only
    pipelines synchronize.

    **Constraints:** (C1) it stands in a kernel. (C2) producer and consumers are
    whole warpgroups: multiples of 4 warps. (C3) registers of a thread are a
    multiple of 8 from 24 to 256, those of a block at most 65536.

    Example:

    ```mlir
    cuda.warp_specialize producer warps 4 registers 56 {
      %stage = cuda.producer_acquire %keys : ...
    } mask_warps {
      %stage = cuda.producer_acquire %bits : ...
    } consumers registers 224 {
      %stage = cuda.consumer_wait %keys : ...
    }
    ```
  }];
  let arguments = (ins I64Attr:$warps, I64Attr:$producerRegisters,
                       I64Attr:$consumerRegisters);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumers,
                        MaxSizedRegion<1>:$maskWarps);
  let assemblyFormat = [{
    `producer` `warps` $warps `registers` $producerRegisters $producer
    (`mask_warps` $maskWarps^)? `consumers` `registers` $consumerRegisters $consumers attr-dict
  }];
  let hasVerifier = 1;
}

class Cuda_StageOp<string mnemonic>
    : Cuda_HopperOp<mnemonic, [
          MemoryEffects<[MemRead, MemWrite]>,
          TypesMatchWith<"the stage is a tile of the pipeline", "pipeline", "stage",
                         "::llvm::cast<::burst::cuda::PipelineType>($_self).getTile()">]> {
  let arguments = (ins Cuda_PipelineType:$pipeline);
  let results = (outs AnyTypeOf<[Cuda_Tile, Cuda_MaskBits]>:$stage);
  let assemblyFormat = "$pipeline attr-dict `:` qualified(type($pipeline))";
  let hasVerifier = 1;
}
class Cuda_PipelineStateOp<string mnemonic>
    : Cuda_HopperOp<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Cuda_PipelineType:$pipeline);
  let assemblyFormat = "$pipeline attr-dict `:` qualified(type($pipeline))";
  let hasVerifier = 1;
}

def Cuda_ProducerAcquireOp : Cuda_StageOp<"producer_acquire"> {
  let summary = "the producer, or mask warps, wait until their next stage is empty";
  let description = [{
    The producer also says how many bytes will be copied (`expect_tx`). A stage that
    was never used is empty.

    **Constraints:** (C1) it is the producer's, or of mask bits the mask warps'.

    Example:

    ```mlir
    %stage = cuda.producer_acquire %keys : !cuda.pipeline<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    ```
  }];
}

def Cuda_TmaLoadOp : Cuda_HopperOp<"tma_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins a TMA load of a box of memory into a stage";
  let description = [{
    The whole tile is written: stage[r, c] = what the tensor of the view has c numbers
    and r rows behind the view's first, 0 behind the tensor's end. So rows behind the
    view's last are whatever the tensor has there. A tensor map of the tensor, a
    parameter of the kernel, says where it lies.

    **Constraints:** (C1) it is the producer's, and the stage that of a
    `cuda.producer_acquire`. (C2) the view has the stage's columns and type of element;
    it is a `memref.subview` of rows of a parameter of the kernel, or selects between
    such.

    Example:

    ```mlir
    cuda.tma_load %view, %stage : memref<?x64xbf16, strided<[?, 1], offset: ?>>,
                              memref<128x64xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins MemRefRankOf<[BF16, F16], [2]>:$view, Cuda_Tile:$stage);
  let assemblyFormat = "$view `,` $stage attr-dict `:` type($view) `,` type($stage)";
  let hasVerifier = 1;
}

def Cuda_ProducerCommitOp : Cuda_PipelineStateOp<"producer_commit"> {
  let summary = "the producer, or mask warps, go on to their next stage";
  let description = [{
    Consumers may wait for what was loaded since the `cuda.producer_acquire`, or for
    what all mask warps have written.

    **Constraints:** (C1) it is the producer's, or of mask bits the mask warps'.

    Example: `cuda.producer_commit %keys : !cuda.pipeline<...>`
  }];
}

def Cuda_ConsumerWaitOp : Cuda_StageOp<"consumer_wait"> {
  let summary = "consumers wait until their next stage is full";
  let description = [{
    **Constraints:** (C1) it is the consumers'.

    Example:

    ```mlir
    %stage = cuda.consumer_wait %keys : !cuda.pipeline<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    ```
  }];
}

def Cuda_ConsumerReleaseOp : Cuda_PipelineStateOp<"consumer_release"> {
  let summary = "consumers release a stage and go on to the next one";
  let description = [{
    Each consumer warp arrives at the empty barrier; the stage is empty when all have.
    Products that read the stage must have been awaited.

    **Constraints:** (C1) it is the consumers'.

    Example: `cuda.consumer_release %keys : !cuda.pipeline<...>`
  }];
}

def Cuda_ClearOp : Cuda_HopperOp<"clear", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "rows of a stage become 0";
  let description = [{
    From row `count` on. What a tensor has behind the rows that are meant may be
    anything, and 0 times that is not always 0 (0 times NaN is NaN). Where there is
    something to clear, the consumer warps synchronize behind it.

    **Constraints:** (C1) it is the consumers', and the stage that of a
    `cuda.consumer_wait`.

    Example:

    ```mlir
    cuda.clear %stage from %count : memref<128x64xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Cuda_Tile:$stage, Index:$count);
  let assemblyFormat = "$stage `from` $count attr-dict `:` type($stage)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Mask bits
//===----------------------------------------------------------------------===//

def Cuda_MaskBitsOp : Cuda_HopperOp<"mask_bits", [
    IsolatedFromAbove, MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "computes the mask bits of a tile";
  let description = [{
    stage[r, c] = c < columns and mask(b, h, i[r], j[c], sq, sk), as `tile.map` does
    it to scores.

    **Constraints:** (C1) it is the mask warps', and the stage that of a
    `cuda.producer_acquire`. (C2) i has a position for each row and j for each column of
    the stage. (C3) the region has the arguments that `burst.attention` says.

    Example:

    ```mlir
    cuda.mask_bits %stage columns %c at (%b, %h, %i, %j) of (%sq, %sk)
        mask(%b0, %h0, %i0, %j0, %sq0, %sk0, %t = %table : memref<64xi32>) {
          %mine = tensor.extract %t[%i0] : tensor<64xi32>
          %other = tensor.extract %t[%j0] : tensor<64xi32>
          %keep = arith.cmpi eq, %mine, %other : i32
          burst.yield %keep : i1
        }
        : memref<128x128xi1, #gpu.address_space<workgroup>>, memref<128xindex>,
          memref<128xindex>
    ```
  }];
  let arguments = (ins Cuda_MaskBits:$stage, Index:$columns, Index:$batch, Index:$head,
      Cuda_Positions:$i, Cuda_Positions:$j, Index:$queries, Index:$keys,
      Variadic<AnyType>:$captures);
  let regions = (region SizedRegion<1>:$mask);
  let assemblyFormat = [{
    $stage `columns` $columns `at` `(` $batch `,` $head `,` $i `,` $j `)`
    `of` `(` $queries `,` $keys `)` custom<Mask>($mask, $captures, type($captures))
    attr-dict
    `:` type($stage) `,` type($i) `,` type($j)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Cuda_ApplyMaskBitsOp : Cuda_HopperOp<"apply_mask_bits", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "masks scores by the bits of a tile";
  let description = [{
    s[r, c] = -inf where stage[r, c] is not set.

    **Constraints:** (C1) it is the consumers', and the stage that of a
    `cuda.consumer_wait`. (C2) s is a block in registers of the stage's shape.

    Example:

    ```mlir
    cuda.apply_mask_bits %s, %stage : memref<128x128xf32, #gpu.address_space<private>>,
                          memref<128x128xi1, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Cuda_Sums:$s, Cuda_MaskBits:$stage);
  let assemblyFormat = "$s `,` $stage attr-dict `:` type($s) `,` type($stage)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Asynchronous products
//===----------------------------------------------------------------------===//

def Cuda_RoundOp : Cuda_HopperOp<"round", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "rounds weights to what a product takes";
  let description = [{
    weights = s, rounded to 16 bits. Each thread keeps the numbers that it has.

    **Constraints:** (C1) it is the consumers'. (C2) both are blocks of one shape in
    registers.

    Example:

    ```mlir
    cuda.round %s, %weights : memref<128x128xf32, #gpu.address_space<private>>,
                              memref<128x128xbf16, #gpu.address_space<private>>
    ```
  }];
  let arguments = (ins Cuda_Sums:$s, Cuda_Tile:$weights);
  let assemblyFormat = "$s `,` $weights attr-dict `:` type($s) `,` type($weights)";
  let hasVerifier = 1;
}

def Cuda_MultiplyAsyncOp : Cuda_HopperOp<"multiply_async", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins a product";
  let description = [{
    c = factor * a b, or with `accumulate` c = c + factor * a b, at some time before
    the `cuda.await` of its token ends; until then c must not be read or written, nor
    a or b be written. With `by_rows` b is N x K. Products of a warpgroup are done in
    the order in which they are begun.

    a is a tile in shared memory, or weights in registers.

    **Constraints:** (C1) it is the consumers'. (C2) b is a tile in shared memory, K x
    N or with `by_rows` N x K; a is M x K of b's type, in shared memory with
    `by_rows`, else in registers; c is M x N in registers, 16 rows for each warp
    of `tile.warps`; K and N are multiples of 16, N is at most 256. (C3) its token is
    awaited once, in the same block.

    Example:

    ```mlir
    %t = cuda.multiply_async %q, %keys, %s factor 0.18 by_rows
        : memref<128x64xbf16, #gpu.address_space<workgroup>>,
          memref<128x64xbf16, #gpu.address_space<workgroup>>,
          memref<128x128xf32, #gpu.address_space<private>>
    ```
  }];
  let arguments = (ins Cuda_Tile:$a, Cuda_Tile:$b, Cuda_Sums:$c,
                       DefaultValuedAttr<F64Attr, "1.0">:$factor,
                       UnitAttr:$accumulate, UnitAttr:$byRows);
  let results = (outs Cuda_Token:$token);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`factor` $factor^)? (`accumulate` $accumulate^)?
    (`by_rows` $byRows^)? attr-dict `:` type($a) `,` type($b) `,` type($c)
  }];
  let hasVerifier = 1;
}

def Cuda_AwaitOp : Cuda_HopperOp<"await", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for a product and all that were begun before it";
  let description = [{
    How many may be under way behind it is counted in the block.

    **Constraints:** (C1) the token is that of a `cuda.multiply_async`.

    Example: `cuda.await %t`
  }];
  let arguments = (ins Cuda_Token:$token);
  let assemblyFormat = "$token attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Ping-pong scheduling
//===----------------------------------------------------------------------===//

class Cuda_PingPongOp<string mnemonic>
    : Cuda_HopperOp<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Cuda_PingPongBeginOp : Cuda_PingPongOp<"ping_pong_begin"> {
  let summary = "begins ping-pong scheduling with the first warpgroup of consumers";
  let description = [{
    Warpgroups of consumers begin products one after the other: those of one are done
    while others compute weights. Each warpgroup waits for the signal of the one
    before it, and the first for that of the last. All wait and signal as often.

    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example:

    ```mlir
    cuda.ping_pong_begin
    scf.for ... {
      cuda.ping_pong_wait
      %t = cuda.multiply_async ...
      cuda.ping_pong_signal
      cuda.await %t
    }
    cuda.ping_pong_end
    ```
  }];
}

def Cuda_PingPongWaitOp : Cuda_PingPongOp<"ping_pong_wait"> {
  let summary = "a warpgroup of consumers waits for the signal of the one before it";
  let description = [{
    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example: `cuda.ping_pong_wait`
  }];
}

def Cuda_PingPongSignalOp : Cuda_PingPongOp<"ping_pong_signal"> {
  let summary = "a warpgroup of consumers signals the next one";
  let description = [{
    It does not wait, nor do its products have to be done.

    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example: `cuda.ping_pong_signal`
  }];
}

def Cuda_PingPongEndOp : Cuda_PingPongOp<"ping_pong_end"> {
  let summary = "ends ping-pong scheduling: the first warpgroup takes the last signal";
  let description = [{
    Behind it `cuda.ping_pong_begin` may stand again.

    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example: `cuda.ping_pong_end`
  }];
}

#endif // BURST_DIALECT_CUDA_HOPPEROPS_TD
