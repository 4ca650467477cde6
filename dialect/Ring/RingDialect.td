//===- RingDialect.td - who sends what, when ----------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_RINGDIALECT_TD
#define BURST_DIALECT_RING_RINGDIALECT_TD

include "mlir/IR/OpBase.td"

def Ring_Dialect : Dialect {
  let name = "ring";
  let cppNamespace = "::burst::ring";
  let summary = "The program of a rank: slices, hops, transfers, softmax state.";
  let description = [{
    A program of this dialect is one function that every rank of a grid runs, in
    structured control flow over its own index. Peers and owners are values,
    positions come from a layout and an owner and from nowhere else.

    The state of the softmax is three tensors (o, m, l) of the state type (f64
    for f64 operands, else f32):

    ```
    o = sum_j exp(s_j - m) v_j     (B, Sq, Hq, Dv)
    m = a reference for the exponentials, usually the largest s_j; -inf where
        nothing was attended yet                               (B, Hq, Sq)
    l = sum_j exp(s_j - m)                                     (B, Hq, Sq)
    ```

    A transfer is `ring.start`, which returns at once, and `ring.wait`. The
    model of both: a message is handed over when sender and receiver have both
    come to it (rendezvous); messages are matched in the order in which they were
    started, per source, destination and channel; transfers of one channel run on
    a rank in the order in which they were started there. `ring-verify` proves
    that a program neither deadlocks nor loses a block under that model.

    **Buffers.** Behind `ring-bufferize` the same ops work on memrefs: a program
    gets the memory of its results as arguments marked `ring.result`, updates the
    state in place, and transfers name the buffers they fill.

    **Attributes of functions.** `ring.grid` on a function makes it a rank's
    program over that grid. On its arguments and results `ring.shard` says what
    of a global tensor each rank holds, and the type what is static of it;
    `ring.splits`, an array of the same beside it, says into which parts batch and
    heads are cut, over other axes of the grid. All tensors are sharded over the same
    axes, and every axis of more than one rank is one of them. An index argument with `ring.extent = array<i64: a, d, ...>` receives the global
    size of argument a along dimension d, which is the one its `ring.shard` names;
    all the pairs that are listed have that size. `ring.partial` on a result says
    that the ranks' results add up to it. `ring.max_slices = array<i64: n, m, ...>`
    on the function says how many received slices a rank may hold at once of channel
    0, 1 and so on; without it, two of all channels together (the double buffer).
    `ring.head_chunks = n` on the function, from `burst-partition` to
    `burst-split-heads`, says in how many chunks heads are to be exchanged.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasOperationAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::burst::BurstDialect", "::mlir::arith::ArithDialect"];
}

#endif // BURST_DIALECT_RING_RINGDIALECT_TD
