//===- HopperOps.td - warps with roles, and what is between -*- tablegen -*-===//
#ifndef BURST_DIALECT_CUDA_HOPPEROPS_TD
#define BURST_DIALECT_CUDA_HOPPEROPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "dialect/Cuda/CudaDialect.td"

def Cuda_Positions : ConfinedType<StaticShapeMemRefOf<[Index]>, [HasAnyRankOfPred<[1]>],
                                  "positions">;

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

def Cuda_ChannelType : TypeDef<Cuda_Dialect, "Channel"> {
  let mnemonic = "channel";
  let summary = "slots in shared memory through which tiles are handed on";
  let description = [{
    `stages` slots, each a tile in shared memory: of 16 bits, which the producer
    brings, or of marks, a bit for each pair of a query and a key, which markers
    make. They fill slots in turn and consumers read them in the same order. Each
    slot has two barriers (`mbarrier`): one completes when a tile's bytes have come,
    or all warps of markers have given it, the other when all warps of consumers
    have given the slot back.

    ```mlir
    !cuda.channel<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    !cuda.channel<4 of memref<128x128xi1, #gpu.address_space<workgroup>>>
    ```
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::MemRefType":$tile);
  let assemblyFormat = "`<` $stages `of` $tile `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether slots are marks, which markers make.
    bool isOfMarks() { return getTile().getElementType().isInteger(1); }
    /// How much of shared memory a slot is; of marks 32 columns are a word.
    int64_t getSlotBytes();
  }];
}

def Cuda_Tile : ConfinedType<StaticShapeMemRefOf<[BF16, F16]>, [HasAnyRankOfPred<[2]>],
                             "a tile of 16 bits">;
def Cuda_Marks : ConfinedType<StaticShapeMemRefOf<[I1]>, [HasAnyRankOfPred<[2]>],
                              "marks of pairs">;
def Cuda_Sums : ConfinedType<StaticShapeMemRefOf<[F32]>, [HasAnyRankOfPred<[2]>],
                             "sums in f32">;
def Cuda_Token : Type<CPred<"::llvm::isa<::mlir::gpu::AsyncTokenType>($_self)">,
                      "a token", "::mlir::gpu::AsyncTokenType">,
                 BuildableType<"$_builder.getType<::mlir::gpu::AsyncTokenType>()">;

class Cuda_HopperOp<string mnemonic, list<Trait> traits = []>
    : Op<Cuda_Dialect, mnemonic, traits>;

def Cuda_ChannelOp : Cuda_HopperOp<"channel"> {
  let summary = "shared memory for a channel, and its barriers";
  let description = [{
    All slots are free. Roles may use the channel behind a `cuda.synchronize`.

    **Constraints:** (C1) it stands in a kernel, in front of `cuda.roles`.

    Example:

    ```mlir
    %keys = cuda.channel : !cuda.channel<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    ```
  }];
  let results = (outs Res<Cuda_ChannelType, "", [MemAlloc]>:$channel);
  let assemblyFormat = "attr-dict `:` qualified(type($channel))";
}

def Cuda_RolesOp : Cuda_HopperOp<"roles", [
    RecursiveMemoryEffects, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "what the producer does, what markers do, and what consumers do";
  let description = [{
    The warps of `cuda.team` are the consumers, and compute a task together. Behind
    them in the block of threads come the producer's, of which one thread of the
    first warp does what the first region says. The other warps have nothing to do,
    or are markers, who evaluate masks for consumers. Registers of a thread are given
    up by the producer and markers, and taken by consumers. The roles meet through
    channels only.

    **Constraints:** (C1) it stands in a kernel. (C2) producer and consumers are
    whole warpgroups: multiples of 4 warps. (C3) registers of a thread are a
    multiple of 8 from 24 to 256, those of a block at most 65536.

    Example:

    ```mlir
    cuda.roles producer warps 4 registers 56 {
      %slot = cuda.acquire %keys : ...
    } markers {
      %slot = cuda.acquire %marks : ...
    } consumers registers 224 {
      %slot = cuda.receive %keys : ...
    }
    ```
  }];
  let arguments = (ins I64Attr:$warps, I64Attr:$producerRegisters,
                       I64Attr:$consumerRegisters);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumers,
                        MaxSizedRegion<1>:$markers);
  let assemblyFormat = [{
    `producer` `warps` $warps `registers` $producerRegisters $producer
    (`markers` $markers^)? `consumers` `registers` $consumerRegisters $consumers attr-dict
  }];
  let hasVerifier = 1;
}

class Cuda_SlotOp<string mnemonic>
    : Cuda_HopperOp<mnemonic, [
          MemoryEffects<[MemRead, MemWrite]>,
          TypesMatchWith<"the slot is a tile of the channel", "channel", "slot",
                         "::llvm::cast<::burst::cuda::ChannelType>($_self).getTile()">]> {
  let arguments = (ins Cuda_ChannelType:$channel);
  let results = (outs AnyTypeOf<[Cuda_Tile, Cuda_Marks]>:$slot);
  let assemblyFormat = "$channel attr-dict `:` qualified(type($channel))";
  let hasVerifier = 1;
}
class Cuda_StepOp<string mnemonic>
    : Cuda_HopperOp<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Cuda_ChannelType:$channel);
  let assemblyFormat = "$channel attr-dict `:` qualified(type($channel))";
  let hasVerifier = 1;
}

def Cuda_AcquireOp : Cuda_SlotOp<"acquire"> {
  let summary = "the producer, or markers, wait until their next slot is free";
  let description = [{
    The producer also says that a tile's bytes will come. A slot that was never used
    is free.

    **Constraints:** (C1) it is the producer's, or of marks the markers'.

    Example:

    ```mlir
    %slot = cuda.acquire %keys : !cuda.channel<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    ```
  }];
}

def Cuda_BringOp : Cuda_HopperOp<"bring", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins to bring a box of memory into a slot";
  let description = [{
    The whole tile is written: slot[r, c] = what the tensor of the view has c numbers
    and r rows behind the view's first, 0 behind the tensor's end. So rows behind the
    view's last are whatever the tensor has there. A tensor map of the tensor, a
    parameter of the kernel, says where it lies.

    **Constraints:** (C1) it is the producer's, and the slot that of a
    `cuda.acquire`. (C2) the view has the slot's columns and type of element; it is
    a `memref.subview` of rows of a parameter of the kernel, or selects between
    such.

    Example:

    ```mlir
    cuda.bring %view, %slot : memref<?x64xbf16, strided<[?, 1], offset: ?>>,
                              memref<128x64xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins MemRefRankOf<[BF16, F16], [2]>:$view, Cuda_Tile:$slot);
  let assemblyFormat = "$view `,` $slot attr-dict `:` type($view) `,` type($slot)";
  let hasVerifier = 1;
}

def Cuda_PublishOp : Cuda_StepOp<"publish"> {
  let summary = "the producer, or markers, go on to their next slot";
  let description = [{
    Consumers may wait for what was brought since the `cuda.acquire`, or for what
    all warps of markers have marked.

    **Constraints:** (C1) it is the producer's, or of marks the markers'.

    Example: `cuda.publish %keys : !cuda.channel<...>`
  }];
}

def Cuda_ReceiveOp : Cuda_SlotOp<"receive"> {
  let summary = "consumers wait until the tile of their next slot has come";
  let description = [{
    **Constraints:** (C1) it is the consumers'.

    Example:

    ```mlir
    %slot = cuda.receive %keys : !cuda.channel<2 of memref<128x64xbf16, #gpu.address_space<workgroup>>>
    ```
  }];
}

def Cuda_ReleaseOp : Cuda_StepOp<"release"> {
  let summary = "consumers give a slot back and go on to the next one";
  let description = [{
    Each warp of consumers gives its share back; the slot is free when all have. What
    reads the slot must have been awaited.

    **Constraints:** (C1) it is the consumers'.

    Example: `cuda.release %keys : !cuda.channel<...>`
  }];
}

def Cuda_ClearOp : Cuda_HopperOp<"clear", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "rows of a slot become 0";
  let description = [{
    From row `count` on. What a tensor has behind the rows that are meant may be
    anything, and 0 times that is not always 0. Consumers meet, where there is
    something to do, before any of them goes on.

    **Constraints:** (C1) it is the consumers', and the slot that of a
    `cuda.receive`.

    Example:

    ```mlir
    cuda.clear %slot from %count : memref<128x64xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Cuda_Tile:$slot, Index:$count);
  let assemblyFormat = "$slot `from` $count attr-dict `:` type($slot)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Marks
//===----------------------------------------------------------------------===//

def Cuda_MarkOp : Cuda_HopperOp<"mark", [
    IsolatedFromAbove, MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "evaluates a mask for the pairs of a tile";
  let description = [{
    slot[r, c] = c < columns and mask(b, h, i[r], j[c], sq, sk), as `tile.map` does
    it to scores.

    **Constraints:** (C1) it is the markers', and the slot that of a
    `cuda.acquire`. (C2) i has a position for each row and j for each column of the
    slot. (C3) the region has the arguments that `burst.attention` says.

    Example:

    ```mlir
    cuda.mark %slot columns %c at (%b, %h, %i, %j) of (%sq, %sk)
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
  let arguments = (ins Cuda_Marks:$slot, Index:$columns, Index:$batch, Index:$head,
      Cuda_Positions:$i, Cuda_Positions:$j, Index:$queries, Index:$keys,
      Variadic<AnyType>:$captures);
  let regions = (region SizedRegion<1>:$mask);
  let assemblyFormat = [{
    $slot `columns` $columns `at` `(` $batch `,` $head `,` $i `,` $j `)`
    `of` `(` $queries `,` $keys `)` custom<Mask>($mask, $captures, type($captures))
    attr-dict
    `:` type($slot) `,` type($i) `,` type($j)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Cuda_HideOp : Cuda_HopperOp<"hide", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "rules out what is not marked";
  let description = [{
    s[r, c] = -inf where slot[r, c] is not set.

    **Constraints:** (C1) it is the consumers', and the slot that of a
    `cuda.receive`. (C2) s is a block in registers of the slot's shape.

    Example:

    ```mlir
    cuda.hide %s, %slot : memref<128x128xf32, #gpu.address_space<private>>,
                          memref<128x128xi1, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Cuda_Sums:$s, Cuda_Marks:$slot);
  let assemblyFormat = "$s `,` $slot attr-dict `:` type($s) `,` type($slot)";
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
    of the team; K and N are multiples of 16, N is at most 256. (C3) its token is
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
// Turns
//===----------------------------------------------------------------------===//

class Cuda_TurnOp<string mnemonic>
    : Cuda_HopperOp<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Cuda_BeginTurnsOp : Cuda_TurnOp<"begin_turns"> {
  let summary = "the first warpgroup of consumers gets the first turn";
  let description = [{
    Warpgroups of consumers may take turns with what only one of them should do at
    a time, such as to begin products: those of one are done while others compute
    weights. A turn goes from warpgroup to warpgroup, and from the last to the
    first. Each takes as many.

    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example:

    ```mlir
    cuda.begin_turns
    scf.for ... {
      cuda.take_turn
      %t = cuda.multiply_async ...
      cuda.pass_turn
      cuda.await %t
    }
    cuda.end_turns
    ```
  }];
}

def Cuda_TakeTurnOp : Cuda_TurnOp<"take_turn"> {
  let summary = "a warpgroup of consumers waits for its turn";
  let description = [{
    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example: `cuda.take_turn`
  }];
}

def Cuda_PassTurnOp : Cuda_TurnOp<"pass_turn"> {
  let summary = "a warpgroup of consumers passes its turn on to the next one";
  let description = [{
    It does not wait, nor do its products have to be done.

    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example: `cuda.pass_turn`
  }];
}

def Cuda_EndTurnsOp : Cuda_TurnOp<"end_turns"> {
  let summary = "the turn that came back to the first warpgroup is the last";
  let description = [{
    Behind it turns may begin anew.

    **Constraints:** (C1) it is the consumers', who are several warpgroups.

    Example: `cuda.end_turns`
  }];
}

#endif // BURST_DIALECT_CUDA_HOPPEROPS_TD
