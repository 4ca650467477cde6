//===- HeadsOps.td - chunks of heads ------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_HEADSOPS_TD
#define BURST_DIALECT_RING_HEADSOPS_TD

def Ring_HeadsTensor : AnyTypeOf<[TensorRankOf<[F64, F32, BF16, F16], [3, 4]>]>;

def Ring_TakeHeadsOp : Ring_Op<"take_heads", [Pure]> {
  let summary = "a chunk of the heads of a tensor";
  let description = [{
    Chunk c of n has the heads c, c + n, c + 2n and so on: where several ranks share
    the heads of the tensor in order, as many of each rank. `ring-bufferize` makes a
    view of it.

    **Constraints:** (C1) 0 <= c < n, and n is in [2, 64]. (C2) the tensor has a
    static number of heads, which n divides, along dimension 2 of 4 or 1 of 3; the
    result is like it, with an n-th of them.

    Example:

    ```mlir
    %c = ring.take_heads %q chunk 1 of 4
        : tensor<1x64x32x128xbf16> -> tensor<1x64x8x128xbf16>
    ```
  }];
  let arguments = (ins Ring_HeadsTensor:$tensor, I64Attr:$chunk, I64Attr:$numChunks);
  let results = (outs Ring_HeadsTensor:$taken);
  let assemblyFormat = [{
    $tensor `chunk` $chunk `of` $numChunks attr-dict `:` type($tensor) `->` type($taken)
  }];
  let hasVerifier = 1;
}

def Ring_JoinHeadsOp : Ring_Op<"join_heads", [Pure]> {
  let summary = "the tensor of which there are all chunks of heads";
  let description = [{
    The way back from `ring.take_heads`: operand c of n has the heads c, c + n, c + 2n
    and so on of the result. On buffers all-to-alls bring them to where they belong,
    so that nothing is left to do.

    **Constraints:** (C1) 2 to 64 operands of one type, with a static number of
    heads; the result is like them, with the heads of all.

    Example:

    ```mlir
    %o = ring.join_heads %o0, %o1
        : tensor<1x64x16x128xbf16>, tensor<1x64x16x128xbf16> -> tensor<1x64x32x128xbf16>
    ```
  }];
  let arguments = (ins Variadic<Ring_HeadsTensor>:$chunks);
  let results = (outs Ring_HeadsTensor:$joined);
  let assemblyFormat = [{
    $chunks attr-dict `:` type($chunks) `->` type($joined)
  }];
  let hasVerifier = 1;
}

def Ring_SumChunksOp : Ring_Op<"sum_chunks", [Pure, SameOperandsAndResultType]> {
  let summary = "a gradient to which all chunks of heads add";
  let description = [{
    The sum of the gradients that the backward passes of all chunks give by keys,
    values or a table that they share, in their order.

    **Constraints:** (C1) 2 to 64 operands.

    Example:

    ```mlir
    %dk = ring.sum_chunks %dk0, %dk1 : tensor<1x64x2x128xf32>
    ```

    Lifespan: made by `burst-split-heads`, removed by `ring-accumulate`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$chunks);
  let results = (outs AnyRankedTensor:$sum);
  let assemblyFormat = "$chunks attr-dict `:` type($sum)";
  let hasVerifier = 1;
}

#endif // BURST_DIALECT_RING_HEADSOPS_TD
