//===- BurstAttrs.td - sequences, named masks and scores ----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_BURST_BURSTATTRS_TD
#define BURST_DIALECT_BURST_BURSTATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "dialect/Burst/BurstDialect.td"
include "dialect/Burst/BurstInterfaces.td"

class Burst_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Burst_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Sequence and strategy
//===----------------------------------------------------------------------===//

def Burst_SequenceAttr : Burst_Attr<"Sequence", "sequence"> {
  let summary = "over which grid axes a sequence is split, and in which order";
  let description = [{
    Names a `shard.grid`, the axes over which the sequence is split (all of them
    when left out, none in `@mesh[]`; several count as one, the last of them the
    fastest) and the order in which positions are assigned to the ranks:

    | order | rank r of P holds | segments |
    |---|---|---|
    | `contiguous` | chunk r of P | 1 |
    | `zigzag` | chunks r and 2P-1-r of 2P | 2 |
    | `striped` k | blocks r, r+P, r+2P, ... of k positions each (k = 1 when left out) | 1 |

    Chunk c of n holds the positions [c S / n, (c+1) S / n), rounded down: S need
    not divide, and where n > S some chunks are empty. The same attribute shards
    queries (S = Sq) and keys (S = Sk).

    The segments that a rank holds are answered by `getLayout(parts).segments(rank,
    extent)`, see `Sequence.h`.

    **Constraints:**
    - (C1) axes are not negative, and each follows the one before it in the grid.
    - (C2) the block is at least 1, and given for `striped` only.

    Examples: `#burst.sequence<@cp, zigzag>`, `#burst.sequence<@cp[0], striped 64>`,
    `#burst.sequence<@tp[], contiguous>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$grid,
                        OptionalArrayRefParameter<"int64_t">:$axes,
                        "::burst::Order":$order,
                        DefaultValuedParameter<"int64_t", "1">:$block);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// How this order lays out a sequence over `parts` ranks.
    Layout getLayout(int64_t parts) const { return {getOrder(), getBlock(), parts}; }
  }];
}

def Burst_AxesAttr : Burst_Attr<"Axes", "axes"> {
  let summary = "over which grid axes heads, or batches, are sharded";
  let description = [{
    Names a `shard.grid` and axes of it, all of them when left out. Over n ranks
    in these axes, the one at place c holds part c of n equal parts: heads
    [c H / n, (c + 1) H / n), of queries and of keys alike, or as many batches.
    Several axes count as one, the last of the list the fastest. Those of arguments
    follow each other in the grid (`burst-partition`). Those of heads between
    all-to-alls are the ones of arguments, and then the ones of the all-to-alls,
    wherever they are.

    **Constraints:**
    - (C1) axes are not negative, and none occurs twice.

    Example: `#burst.axes<@mesh[0]>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$grid,
                        OptionalArrayRefParameter<"int64_t">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Burst_StrategyAttr : Burst_Attr<"Strategy", "strategy"> {
  let summary = "how ranks compute an attention together, where the user pins it";
  let description = [{
    Names that strategies of the compiler go by:

    - `ring_kv`: queries stay, keys and values travel round a ring.
    - `ring_q`: keys and values stay, queries and their state travel.
    - `bi_ring_kv`, `bi_ring_q`: the same in both directions of a ring at once.
    - `double_ring_kv`, `double_ring_q`: of a sequence over two axes, the same round the
      ranks of the last axis while shards of the others are on their way.
    - `direct_kv`, `direct_q`: the same, but straight from their owners to the ranks that
      need them.
    - `all_gather`: each rank gathers the keys and values that its queries need, and
      computes once.
    - `gather_q`: each rank gathers queries and attends its own keys; partial results
      return to the owners of the queries.
    - `ulysses`: an all-to-all shards heads in place of the sequence, and another
      one the sequence again (Jacobs et al., arXiv 2309.14509).
    - `ring_scores`: keys travel round a ring, all scores are stored, then values
      travel round it (Li et al., arXiv 2105.13120): what the online softmax is
      compared with. Backward, scores are stored again, then values and keys travel
      with their gradients. Never chosen, but where it is pinned.

    Each may say on which axes of the sequence's grid it works, all that the others
    leave where it does not: `ulysses on [1], ring_kv` exchanges sequence for heads
    along axis 1 and rotates keys along the other ones (Fang and Zhao, arXiv
    2405.07719). `ulysses` works on the last axes of the sequence. Where only
    `ulysses` is pinned, and not on all axes, what goes along the others is chosen.

    `ulysses in 4 chunks` exchanges a fourth of the heads at a time, while the fourth
    before it is computed, so that a rank holds two fourths of what the all-to-alls
    bring (UPipe, arXiv 2602.21196). Chunk c of n has the heads
    c, c + n, c + 2n and so on: each as many of each rank. Where each key head
    has one query head, n divides the heads, and chunks take their keys along; else n
    divides the query heads of a key head, keys come whole, and chunks add to one
    gradient by them. And n divides the most query heads that a rank has.

    An op without a strategy gets one from `burst-choose-strategy`. A name that no
    strategy goes by is refused by `burst-lower-to-ring`, at the op.

    **Constraints:**
    - (C1) at least one name, each once.
    - (C2) axes are as in `#burst.sequence`, no axis twice; at most one name has
      none.
    - (C3) chunks are 1, where nothing is said, or more.

    Examples: `#burst.strategy<ring_kv>`,
    `#burst.strategy<ulysses on [1], ring_kv on [0]>`,
    `#burst.strategy<ulysses in 4 chunks>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"::mlir::DenseI64ArrayAttr">:$axes,
                        ArrayRefParameter<"int64_t">:$chunks);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<::burst::StrategyPart>":$parts)>];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<StrategyPart> getParts() const;
    /// As it stands between `<` and `>`.
    std::string getText() const;
  }];
}

//===----------------------------------------------------------------------===//
// Named masks
//===----------------------------------------------------------------------===//

class Burst_MaskAttr<string name, string attrMnemonic>
    : Burst_Attr<name, attrMnemonic,
        [DeclareAttrInterfaceMethods<Burst_NamedRegionInterface,
                                     ["numTables", "verifyTables", "emit"]>]>;

def Burst_FullAttr : Burst_MaskAttr<"Full", "full"> {
  let summary = "mask: every pair is kept";
  let description = "Example: `mask full`, the same as no mask.";
}

def Burst_CausalAttr : Burst_MaskAttr<"Causal", "causal"> {
  let summary = "mask: a query sees keys up to its own position";
  let description = [{
    Keeps (i, j) where `j <= i + Sk - Sq`: the last query sees the last key
    (bottom-right alignment). Example: `mask causal`
  }];
}

def Burst_WindowAttr : Burst_MaskAttr<"Window", "window"> {
  let summary = "mask: a query sees keys near its own position";
  let description = [{
    Keeps (i, j) where `i + Sk - Sq - left <= j <= i + Sk - Sq + right`. A side
    that is left out is not bounded; `right = 0` is causal.

    **Constraints:** (C1) `left` and `right` are in [0, 2^40].

    Examples: `mask window<left = 1023, right = 0>`, `#burst.window<left = 512>`
  }];
  let parameters = (ins OptionalParameter<"std::optional<int64_t>">:$left,
                        OptionalParameter<"std::optional<int64_t>">:$right);
  let assemblyFormat = [{
    `` custom<Opening>("\"mask 'window' takes <left = N, right = N>, e.g. window<left = 1023, right = 0>\"")
    `` struct(params) `>`
  }];
  let genVerifyDecl = 1;
}

def Burst_PrefixAttr : Burst_MaskAttr<"Prefix", "prefix"> {
  let summary = "mask: causal, with a prefix that every query sees";
  let description = [{
    Keeps (i, j) where `j < length` or `j <= i + Sk - Sq` (a prefix language
    model). **Constraints:** (C1) `length` is in [0, 2^40].

    Example: `mask prefix<128>`
  }];
  let parameters = (ins "int64_t":$length);
  let assemblyFormat = [{
    `` custom<Opening>("\"mask 'prefix' takes <N>, the length of the prefix, e.g. prefix<128>\"")
    `` $length `>`
  }];
  let genVerifyDecl = 1;
}

def Burst_DocumentsAttr : Burst_MaskAttr<"Documents", "documents"> {
  let summary = "mask: a query sees the keys of its own document";
  let description = [{
    Keeps (i, j) where the ids of query i and key j are equal. Takes one table
    of integer ids for queries and keys, or one for each; a table is indexed by
    position, `tensor<Sxi32>`, or by batch and position, `tensor<BxSxi32>`.

    Ids in rising order are analysed exactly, any others soundly.

    Example: `mask [causal, documents](%ids : tensor<4096xi32>)`
  }];
}

//===----------------------------------------------------------------------===//
// Named scores
//===----------------------------------------------------------------------===//

class Burst_ScoreAttr<string name, string attrMnemonic>
    : Burst_Attr<name, attrMnemonic,
        [DeclareAttrInterfaceMethods<Burst_NamedRegionInterface,
                                     ["numTables", "verifyTables", "emit", "isScore"]>]>;

def Burst_AlibiAttr : Burst_ScoreAttr<"Alibi", "alibi"> {
  let summary = "score: a penalty that grows with distance, a slope per head";
  let description = [{
    `s - slope[h] * |i + Sk - Sq - j|`, with one table of float slopes:
    `tensor<Hqxf32>`, or `tensor<BxHqxf32>`.

    Example: `score alibi(%slopes : tensor<32xf32>)`
  }];
}

def Burst_SoftcapAttr : Burst_ScoreAttr<"Softcap", "softcap"> {
  let summary = "score: bounded by a hyperbolic tangent";
  let description = [{
    `cap * tanh(s / cap)`. **Constraints:** (C1) `cap` is in [2^-126, 2^127],
    which every state type holds.

    Example: `score softcap<30.0>`
  }];
  let parameters = (ins APFloatParameter<"the bound">:$cap);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Burst_BiasAttr : Burst_ScoreAttr<"Bias", "bias"> {
  let summary = "score: an additive table";
  let description = [{
    `s + bias[i, j]` for `tensor<SqxSkxf32>`, or `s + bias[b, h, i, j]` for a
    table of rank 4, of which a dimension of size 1 is broadcast.

    Example: `score bias(%bias : tensor<1x32x512x512xf32>)`
  }];
}

#endif // BURST_DIALECT_BURST_BURSTATTRS_TD
