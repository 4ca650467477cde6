//===- ScoreOps.td - attention that stores its scores -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RingAttention of Li et al. (Sequence Parallelism, arXiv 2105.13120): what the
// online softmax is compared with. Its backward pass has the probabilities of the
// forward pass; here they are made again, of the lse that is given.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_DIALECT_RING_BASELINES_SCOREOPS_TD
#define BURST_DIALECT_RING_BASELINES_SCOREOPS_TD

def Ring_ScoresOp : Ring_MakingOp<"scores", ["getSizeSource", "getContent"]> {
  let summary = "memory for the scores of queries and all keys";
  let description = [{
    -inf for every head, row of the query shard and key of the whole sequence:
    (batch, heads, queries, keys) in the state type. The keys are in the order of
    the shards, rank by rank. On buffers they are written `into` one.

    **Constraints:** (C1) the result is (batch, heads, sequence) of the query, and
    a dimension of keys, in the query's state type.

    Example:

    ```mlir
    %s = ring.scores %q extent %sk : tensor<1x256x4x64xbf16> -> tensor<1x4x256x1024xf32>
    ```

    Lifespan: made by `burst-lower-to-ring`.
  }];
  let arguments = (ins Ring_ShardTensor:$query, Index:$keyExtent,
                       Optional<AnyMemRef>:$into);
  let results = (outs Optional<Ring_OutTensor>:$scores);
  let assemblyFormat = [{
    $query `extent` $keyExtent (`into` $into^)? attr-dict `:`
    custom<MadeTypes>(type($query), type($into), type($scores))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    std::optional<::mlir::MutableOperandRange> getResultMemory() {
      return getIntoMutable();
    }
  }];
}

def Ring_ScoreOp : Ring_AttendLikeOp<"score"> {
  let summary = "scores of queries and a slice of keys";
  let description = [{
    Writes into `scores`, at the keys of `keyOwner`,

    ```
    score(scale * q k^T, ...) where mask(...), else -inf
    ```

    for all pairs of positions of the query shard and of the slice. The regions
    are those of `burst.attention`. On buffers the scores are updated in place.

    **Constraints:**
    - (C1) query, key and scores have shapes and types as in `ring.attend` and
      `ring.scores`; both layouts have as many parts, and none is gathered.
    - (C2) no `pairs`, or a table, and `offsets`, as in `ring.attend`.
    - (C3) regions are as in `burst.attention`.

    Example:

    ```mlir
    %s1 = ring.score %q at <zigzag over 4>[%r] extent %sq
        slice (%k at %owner) of <zigzag over 4> extent %sk into %s0 scale 0.125
        : (tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>) -> tensor<1x4x256x1024xf32>
    ```

    Lifespan: made by `burst-lower-to-ring`.
  }];
  let arguments = (ins Ring_ShardTensor:$query, Index:$queryOwner, Index:$queryExtent,
      Ring_ShardTensor:$key, Index:$keyOwner, Index:$keyExtent, Ring_OutTensor:$scores,
      Variadic<Index>:$offsets, Optional<Ring_PairTable>:$pairs,
      Variadic<AnyType>:$maskCaptures, Variadic<AnyType>:$scoreCaptures, Ring_LayoutAttr:$queryLayout,
      Ring_LayoutAttr:$keyLayout, F64Attr:$scale);
  let results = (outs Optional<Ring_OutTensor>:$newScores);
  let regions = (region AnyRegion:$mask, AnyRegion:$score, AnyRegion:$bounds);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {7, 8, 9, 10};
    ::mlir::FloatType getStateType();
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getScoresMutable(); }
    /// It is there to be compared with: it stores all scores.
    bool mayDropPairs() { return false; }
  }];
}

def Ring_SoftmaxOp : Ring_UpdatingOp<"softmax", [SameVariadicResultSize]> {
  let summary = "scores become weights, once and for all keys";
  let description = [{
    ```
    m' = max_j s[j]     s'[j] = exp(s[j] - m'), 0 where s[j] = -inf     l' = sum_j s'[j]
    ```

    for every row. The state is that of `ring.init`, of which o stays 0: what
    `ring.weigh` adds to it, `ring.finalize` divides by l. On buffers scores and
    state are updated in place.

    **Constraints:** (C1) scores are of the rows of the state, of one type.

    Example:

    ```mlir
    %p, %o1, %m1, %l1 = ring.softmax %s state %o, %m, %l
        : tensor<1x4x256x1024xf32>, tensor<1x256x4x64xf32>, tensor<1x4x256xf32>
    ```

    Lifespan: made by `burst-lower-to-ring`.
  }];
  let arguments = (ins Ring_OutTensor:$scores, Ring_OutTensor:$o, Ring_RowTensor:$m,
                       Ring_RowTensor:$l);
  let results = (outs Optional<Ring_OutTensor>:$weights, Optional<Ring_OutTensor>:$newO,
                      Optional<Ring_RowTensor>:$newM, Optional<Ring_RowTensor>:$newL);
  let assemblyFormat = [{
    $scores `state` $o `,` $m `,` $l attr-dict `:`
    custom<SoftmaxTypes>(type($scores), type($o), type($m), type($l), type($weights),
                         type($newO), type($newM), type($newL))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {*this, 0, 4}; }
  }];
}

def Ring_WeighOp : Ring_UpdatingOp<"weigh", [SameVariadicResultSize]> {
  let summary = "a slice of values, weighed";
  let description = [{
    o' = o + p v, with p the weights at the keys of `owner`; a weight of 0 rules
    out what it weighs, whatever that is. m and l stay. On buffers o is updated in
    place.

    **Constraints:** (C1) weights are of the rows of the state, the value has the
    batch and head dim of o and a number of heads that divides that of o; the
    layout is not gathered.

    Example:

    ```mlir
    %o1, %m1, %l1 = ring.weigh %p, (%v at %owner) of <zigzag over 4> extent %sk
        state %o, %m, %l
        : tensor<1x4x256x1024xf32>, tensor<1x256x2x64xf32>, tensor<1x256x4x64xf32>,
          tensor<1x4x256xf32>
    ```

    Lifespan: made by `burst-lower-to-ring`.
  }];
  let arguments = (ins Ring_OutTensor:$weights, Ring_ShardTensor:$value, Index:$owner,
      Index:$keyExtent, Ring_OutTensor:$o, Ring_RowTensor:$m, Ring_RowTensor:$l,
      Ring_LayoutAttr:$keyLayout);
  let results = (outs Optional<Ring_OutTensor>:$newO, Optional<Ring_RowTensor>:$newM,
                      Optional<Ring_RowTensor>:$newL);
  let assemblyFormat = [{
    $weights `,` `(` $value `at` $owner `)` `of` $keyLayout `extent` $keyExtent
    `state` $o `,` $m `,` $l attr-dict `:`
    custom<WeighTypes>(type($weights), type($value), type($o), type($m), type($l),
                       type($newO), type($newM), type($newL))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {*this, 4, 3}; }
  }];
}

def Ring_ProbabilitiesOp : Ring_UpdatingOp<"probabilities"> {
  let summary = "scores become probabilities, by an lse that is known";
  let description = [{
    p[j] = exp(s[j] - lse) for every row, 0 where s[j] = -inf or lse = -inf. On
    buffers the scores are updated in place.

    **Constraints:** (C1) lse is of the rows of the scores and of their type.

    Example:

    ```mlir
    %p = ring.probabilities %s, %lse : tensor<1x4x256x1024xf32>, tensor<1x4x256xf32>
    ```

    Lifespan: made by `burst-lower-to-ring`.
  }];
  let arguments = (ins Ring_OutTensor:$scores, Ring_RowTensor:$lse);
  let results = (outs Optional<Ring_OutTensor>:$weights);
  let assemblyFormat = [{
    $scores `,` $lse attr-dict `:`
    custom<ProbabilityTypes>(type($scores), type($lse), type($weights))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getScoresMutable(); }
  }];
}

def Ring_WeighGradOp : Ring_UpdatingOp<"weigh_grad", [SameVariadicResultSize]> {
  let summary = "gradients by a slice of values, and by the scores that weigh it";
  let description = [{
    With p the probabilities at the keys of `owner`,

    ```
    dv' = dv + p^T outGrad       p' = scale * p * (outGrad v^T - delta)
    ```

    so that p' are there what the products of queries and keys are to be multiplied
    with. A probability of 0 rules out what it weighs, whatever that is. On buffers
    both are updated in place.

    **Constraints:** (C1) outGrad and delta are of the rows of the weights; the value
    has its batch and head dim, and a number of heads that divides that of outGrad;
    dv is of the value, in the state type; the layout is not gathered. (C2) the scale
    is finite.

    Example:

    ```mlir
    %p1, %dv1 = ring.weigh_grad (%do, %delta), (%v at %owner) of <zigzag over 4>
        extent %sk into %p0, %dv0 scale 0.125
        : tensor<1x256x4x64xf32>, tensor<1x4x256xf32>, tensor<1x256x2x64xf32>,
          tensor<1x4x256x1024xf32>, tensor<1x256x2x64xf32>
    ```

    Lifespan: made by `burst-lower-to-ring`.
  }];
  let arguments = (ins Ring_ShardTensor:$outGrad, Ring_RowTensor:$delta,
      Ring_ShardTensor:$value, Index:$owner, Index:$keyExtent, Ring_OutTensor:$weights,
      Ring_OutTensor:$valueGrad, Ring_LayoutAttr:$keyLayout, F64Attr:$scale);
  let results = (outs Optional<Ring_OutTensor>:$newWeights,
                      Optional<Ring_OutTensor>:$newValueGrad);
  let assemblyFormat = [{
    `(` $outGrad `,` $delta `)` `,` `(` $value `at` $owner `)` `of` $keyLayout
    `extent` $keyExtent `into` $weights `,` $valueGrad `scale` $scale attr-dict `:`
    custom<StoredGradTypes>(type($outGrad), type($delta), type($value), type($weights),
                            type($valueGrad), type($newWeights), type($newValueGrad))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {*this, 5, 2}; }
  }];
}

def Ring_ScoreGradOp : Ring_UpdatingOp<"score_grad", [SameVariadicResultSize]> {
  let summary = "gradients by queries and by a slice of keys";
  let description = [{
    With u what `ring.weigh_grad` left at the keys of `owner`,

    ```
    dq' = dq + u k       dk' = dk + u^T q
    ```

    Where u is 0, what is multiplied with it counts for nothing, whatever it is. On
    buffers both gradients are updated in place.

    **Constraints:** (C1) the query is of the rows of the weights; the key has its
    batch, head dim and type, and a number of heads that divides that of the query;
    dq and dk are of both, in the state type; the layout is not gathered.

    Example:

    ```mlir
    %dq1, %dk1 = ring.score_grad %u, %q, (%k at %owner) of <zigzag over 4>
        extent %sk into %dq0, %dk0
        : tensor<1x4x256x1024xf32>, tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>,
          tensor<1x256x4x64xf32>, tensor<1x256x2x64xf32>
    ```

    Lifespan: made by `burst-lower-to-ring`.
  }];
  let arguments = (ins Ring_OutTensor:$weights, Ring_ShardTensor:$query,
      Ring_ShardTensor:$key, Index:$owner, Index:$keyExtent, Ring_OutTensor:$queryGrad,
      Ring_OutTensor:$keyGrad, Ring_LayoutAttr:$keyLayout);
  let results = (outs Optional<Ring_OutTensor>:$newQueryGrad,
                      Optional<Ring_OutTensor>:$newKeyGrad);
  let assemblyFormat = [{
    $weights `,` $query `,` `(` $key `at` $owner `)` `of` $keyLayout
    `extent` $keyExtent `into` $queryGrad `,` $keyGrad attr-dict `:`
    custom<StoredGradTypes>(type($weights), type($query), type($key), type($queryGrad),
                            type($keyGrad), type($newQueryGrad), type($newKeyGrad))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {*this, 5, 2}; }
  }];
}

#endif // BURST_DIALECT_RING_BASELINES_SCOREOPS_TD
