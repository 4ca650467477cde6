//===- GradientOps.td - steps of the backward pass ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_GRADIENTOPS_TD
#define BURST_DIALECT_RING_GRADIENTOPS_TD

def Ring_ZeroOp : Ring_MakingOp<"zero", ["getContent"]> {
  let summary = "a gradient to which nothing was added yet";
  let description = [{
    Zeros in the shape of the operand. On buffers they are written `into` one.

    **Constraints:** (C1) both have one shape, of 1 to 4 dimensions; the result
    is of f32 or f64.

    Example:

    ```mlir
    %dk = ring.zero %k : tensor<1x256x2x64xbf16> -> tensor<1x256x2x64xf32>
    ring.zero %kb into %dkb : memref<1x256x2x64xbf16>, memref<1x256x2x64xf32>
    ```
  }];
  let arguments = (ins Ring_Tensor:$like, Optional<AnyMemRef>:$into);
  let results = (outs Optional<Ring_Gradient>:$zero);
  let assemblyFormat = [{
    $like (`into` $into^)? attr-dict `:`
    custom<MadeTypes>(type($like), type($into), type($zero))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    std::optional<::mlir::MutableOperandRange> getResultMemory() {
      return getIntoMutable();
    }
  }];
}

def Ring_DeltaOp : Ring_MakingOp<"delta", ["getSizeSource"],
                                 [AttrSizedOperandSegments, Burst_FixedSegments]> {
  let summary = "what a row's gradients have in common";
  let description = [{
    delta[b,h,i] = sum_d out[b,i,h,d] * outGrad[b,i,h,d] - lseGrad[b,h,i], the
    last where it is given. On buffers it is written `into` one.

    **Constraints:** (C1) out and outGrad have one shape and element type; delta
    and lseGrad are (batch, heads, sequence) of them in the state type.

    Example:

    ```mlir
    %d = ring.delta %out, %do less %dlse : tensor<1x256x4x64xbf16>,
        tensor<1x256x4x64xbf16>, tensor<1x4x256xf32> -> tensor<1x4x256xf32>
    ```
  }];
  let arguments = (ins Ring_ShardTensor:$out, Ring_ShardTensor:$outGrad,
      Optional<Ring_RowTensor>:$lseGrad, Optional<AnyMemRef>:$into);
  let results = (outs Optional<Ring_RowTensor>:$delta);
  let assemblyFormat = [{
    $out `,` $outGrad (`less` $lseGrad^)? (`into` $into^)? attr-dict `:`
    type($out) `,`
    custom<DeltaTypes>(type($outGrad), type($lseGrad), type($into), type($delta))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {2, 3};
    std::optional<::mlir::MutableOperandRange> getResultMemory() {
      return getIntoMutable();
    }
  }];
}

def Ring_AttendGradOp : Ring_AttendLikeOp<"attend_grad"> {
  let summary = "gradients of queries that attended a slice of keys and values";
  let description = [{
    Adds to the gradients what all pairs of positions of the query shard and of
    the slice give, for which the mask holds:

    ```
    t = scale * q k^T                     p = exp(score(t, ...) - lse)
    w = p * (outGrad v^T - delta)         u = gradient(t, ..., w)
    dq += scale * u k      dk += scale * u^T q      dv += p^T outGrad
    ```

    p = 0 where lse = -inf. Without a score region u = w. The query shard, that
    is query, outGrad, lse and delta, is that of `queryOwner` in `queryLayout`;
    the slice is that of `keyOwner` in `keyLayout`. Whichever of both travels,
    the gradients are those of what stands here.

    `grads` are the gradients by query, key and value, and by the captured tables
    of the score that `captures` names. They are in the state type. On buffers
    they are updated in place.

    `offsets`, where given, say from where batches and heads are counted, as in
    `ring.attend`.

    `pairs`, where given, is a table of flags as in `ring.attend`: a pair whose flag
    is false is not computed, and a segment that occurs in no computed pair is not
    read.

    **Constraints:**
    - (C1) query, outGrad, key and value have shapes and types as in
      `burst.attention_backward`; lse and delta are (batch, heads, sequence) of
      the query; both layouts have as many parts.
    - (C2) gradients have the shapes of query, key, value and the named captures,
      in the state type.
    - (C3) no `pairs`, or a table, and `offsets`, as in `ring.attend`.
    - (C4) regions are as in `burst.attention_backward`; with a score there is a
      gradient.

    Example:

    ```mlir
    %dq1, %dk1, %dv1 = ring.attend_grad (%q, %do, %lse, %delta at %o)
        of <zigzag over 8> extent %sq slice (%k, %v at %r) of <zigzag over 8>
        extent %sk into %dq0, %dk0, %dv0 scale 0.125
        : (tensor<1x256x4x64xf32>, tensor<1x256x4x64xf32>, tensor<1x4x256xf32>,
           tensor<1x4x256xf32>, tensor<1x256x4x64xf32>, tensor<1x256x4x64xf32>)
        -> (tensor<1x256x4x64xf32>, tensor<1x256x4x64xf32>, tensor<1x256x4x64xf32>)
    ```
  }];
  let arguments = (ins Ring_ShardTensor:$query, Ring_ShardTensor:$outGrad,
      Ring_RowTensor:$lse, Ring_RowTensor:$delta, Index:$queryOwner,
      Index:$queryExtent, Ring_ShardTensor:$key, Ring_ShardTensor:$value,
      Index:$keyOwner, Index:$keyExtent, Variadic<Ring_Gradient>:$grads,
      Variadic<Index>:$offsets, Optional<Ring_PairTable>:$pairs,
      Variadic<AnyType>:$maskCaptures, Variadic<AnyType>:$scoreCaptures,
      Ring_LayoutAttr:$queryLayout, Ring_LayoutAttr:$keyLayout, F64Attr:$scale,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$captures);
  let results = (outs Variadic<Ring_Gradient>:$newGrads);
  let regions = (region AnyRegion:$mask, AnyRegion:$score, AnyRegion:$bounds,
                        AnyRegion:$gradient);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {10, 11, 12, 13, 14};
    ::mlir::FloatType getStateType();
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getGradsMutable(); }
  }];
}

def Ring_AddOp : Ring_UpdatingOp<"add", [SameVariadicOperandSize]> {
  let summary = "adds one rank's partial gradient to another's";
  let description = [{
    sum = a + b along dimension 1 in the segments that are flagged, else a. Both
    are gradients by the shard of `owner`. `segments` and `turn` are as in
    `ring.merge`. On buffers a becomes the sum.

    **Constraints:** (C1) a and b have one shape and type. (C2) no `segments`, or
    a `turn` and a table as in `ring.start`; the layout is not gathered.

    Example:

    ```mlir
    %c = ring.add %a, %b of <zigzag over 8>[%o] extent %s
        segments(%arrived[%turn] : tensor<8x9x2xi1>) : tensor<1x256x2x64xf32>
    ```
  }];
  let arguments = (ins Ring_OutTensor:$a, Ring_OutTensor:$b, Index:$owner, Index:$extent,
      Optional<Ring_SegmentTable>:$segments, Optional<Index>:$turn,
      Ring_LayoutAttr:$layout);
  let results = (outs Optional<Ring_OutTensor>:$sum);
  let assemblyFormat = [{
    $a `,` $b `of` $layout `` `[` $owner `]` `extent` $extent
    `` custom<Segments>($segments, type($segments), $turn) attr-dict `:`
    custom<AddTypes>(type($a), type($b), type($sum))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getAMutable(); }
  }];
}

def Ring_RoundOp : Ring_MakingOp<"round"> {
  let summary = "a gradient in the type, and with the heads, of what it is by";
  let description = [{
    Rounds to nearest, ties to even. A result of h in place of n heads is first the
    sum of the n / h parts that lie side by side for each, in their order: what an
    all-to-all brings of heads that ranks share. On buffers the result is written
    `into` one.

    **Constraints:** (C1) both have one shape, but for heads, of which those of the
    result divide those of the gradient. (C2) the result is narrower, or has fewer
    heads and no wider type.

    Example:

    ```mlir
    %r = ring.round %dk : tensor<1x256x2x64xf32> -> tensor<1x256x2x64xbf16>
    %s = ring.round %parts : tensor<1x256x8x64xf32> -> tensor<1x256x2x64xf32>
    ```
  }];
  let arguments = (ins Ring_OutTensor:$gradient, Optional<AnyMemRef>:$into);
  let results = (outs Optional<Ring_ShardTensor>:$rounded);
  let assemblyFormat = [{
    $gradient (`into` $into^)? attr-dict `:`
    custom<MadeTypes>(type($gradient), type($into), type($rounded))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the result has fewer heads.
    bool addsHeads();
    std::optional<::mlir::MutableOperandRange> getResultMemory() {
      return getIntoMutable();
    }
  }];
}

#endif // BURST_DIALECT_RING_GRADIENTOPS_TD
