//===- Passes.td - passes of burst --------------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PASSES_TD
#define BURST_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// burst: what is computed
//===----------------------------------------------------------------------===//

def ExpandNamesPass : Pass<"burst-expand-names", "::mlir::func::FuncOp"> {
  let summary = "expands named masks and scores to regions";
  let description = [{
    A list of masks becomes one region that keeps what all of them keep; a list
    of scores becomes one region that applies them in order. `#burst.full` alone
    becomes no region.

    Input:
    ```mlir
    burst.attention %q, %k, %v mask causal : ...
    ```
    Output:
    ```mlir
    burst.attention %q, %k, %v mask(%b, %h, %i, %j, %sq, %sk) {
      %0 = arith.subi %sk, %sq : index
      %1 = arith.addi %i, %0 : index
      %2 = arith.cmpi sle, %j, %1 : index
      burst.yield %2 : i1
    } : ...
    ```

    Needs nothing. Leaves no named mask or score.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GuardRegionsPass : Pass<"burst-guard-regions", "::mlir::func::FuncOp"> {
  let summary = "makes every op of masks and scores defined for all operands";
  let description = [{
    Regions have a meaning for every pair (the table is in the documentation of
    `burst.attention`), ops of `arith` do not: a division by zero, a shift by the
    width, a conversion of a float that is out of range, and flags such as `nsw`
    give poison or undefined behaviour. Such ops are guarded where the ranges of
    their operands do not show that they are safe, and flags are dropped, with a
    remark of the category `regions`. An op that ranges show to be undefined for
    every pair is refused.

    Also rewritten is what upstream's folds and canonicalizations change: an
    `index_cast` that narrows goes by way of i64, since `index -> i8 -> index`
    would be folded away, and `truncf(sitofp(x))` adds 0 in between where it
    rounds twice, since it would be folded to one rounding.

    Input:
    ```mlir
    %x = arith.remui %i, %j : index
    ```
    Output:
    ```mlir
    %zero = arith.constant 0 : index
    %isZero = arith.cmpi eq, %j, %zero : index
    %one = arith.constant 1 : index
    %safe = arith.select %isZero, %one, %j : index
    %rem = arith.remui %i, %safe : index
    %x = arith.select %isZero, %i, %rem : index
    ```

    Needs `burst-expand-names`, and to run before anything that folds. Leaves
    regions whose ops are defined for all operands; `tensor.extract` stays and
    clamps, at every level.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def DeriveBoundsPass : Pass<"burst-derive-bounds", "::mlir::func::FuncOp"> {
  let summary = "derives from each mask what it may and must keep in a box";
  let description = [{
    Gives every attention with a mask region a bounds region: abstract
    interpretation of the mask over intervals, emitted as IR (`passes/Bounds`).
    It folds where boxes are constant and runs where they are not. What cannot
    be bounded may be kept and need not be: such a mask is computed rightly, for
    all pairs. Bounds that stand there already are derived anew.

    Needs `burst-guard-regions`: bounds do not cover what is undefined. Leaves a
    bounds region beside every mask region.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def DeriveGradientsPass : Pass<"burst-derive-gradients", "::mlir::func::FuncOp"> {
  let summary = "derives from each score how gradients pass through it";
  let description = [{
    Gives every backward attention with a score region a gradient region:
    reverse-mode differentiation of the score, emitted as IR (`passes/Gradient`).
    An op that has no derivative is refused, at the op. A gradient that stands
    there already is derived anew.

    Input: `burst.attention_backward ... score(%s, ...) { ... }`. Output: the same
    with `gradient(%s, ..., %g) { ... }`, which yields the gradient by %s from
    that by what the score yields, %g, and contributes to the captures that
    `gradients` names.

    Needs `burst-guard-regions`. Leaves a gradient region beside every score region
    of a backward attention.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def VerifyExpandedPass : Pass<"burst-verify-expanded", "::mlir::func::FuncOp"> {
  let summary = "checks that masks are regions with bounds";
  let description = [{
    Ends the phase of `burst-expand-names`, `burst-derive-bounds` and
    `burst-derive-gradients`: an attention that still has names, a mask without
    bounds or a backward score without its gradient is an error.
  }];
}

def ChooseStrategyPass : Pass<"burst-choose-strategy", "::mlir::ModuleOp"> {
  let summary = "decides what travels, by bytes and time";
  let description = [{
    Every attention without a strategy gets the cheapest of those that
    `burst-lower-to-ring` knows; a strategy that is pinned stays. Sizes, types,
    grid, order and bounds give the bytes of each hop, what the mask drops left
    out, and its operations. A hop takes as long as the slower of both; states and
    gradients of the last hop return to their owners when there is nothing left to compute. The
    least time wins, and of times within a percent the fewest bytes; but what needs
    more than twice the buffers of the smallest of these does not win by a percent.

    Bytes of a position that each of P - 1 hops takes on, e and s those of an
    element and of the state type (BurstAttention, arXiv 2403.09347):

    | | slice | state or gradients behind it |
    |---|---|---|
    | `ring_kv`, forward | Hkv (Dqk + Dv) e of a key | |
    | `ring_q`, forward | Hq Dqk e of a query | Hq (Dv + 2) s |
    | `ring_kv`, backward | Hkv (Dqk + Dv) e of a key | Hkv (Dqk + Dv) s |
    | `ring_q`, backward | Hq ((Dqk + Dv) e + 2 s) of a query | Hq Dqk s |

    With `all_gather` slices are as with `ring_kv`, and each rank sends its own to
    all others at once, which takes the latency once and a tenth of it for each further
    rank; nothing is computed meanwhile. Backward, gradients return to one owner
    after the other. So it is with `gather_q` and slices of `ring_q`, whose states
    and gradients return.

    The double rings, of a sequence over two axes of G and I ranks, send the same
    slices I - 1 hops round each of G inner rings, and G - 1 hops between them. Those
    of the outer ring have the time of a whole inner one. They are weighed where both
    axes have several ranks, and differ from one ring where axes have links of their
    own: a hop of one ring over both takes as long as the slower of them.

    So with one head dim of 128, 16-bit elements and as many queries as keys,
    queries travel backward where Hq / Hkv is below 1.49, that is without groups of
    heads, and forward where queries are fewer than keys: when a cache is decoded.

    What the machine can do is read from the module, from the device of the
    grid's name, else from the device `burst`:

    ```mlir
    module attributes {dlti.target_system_spec = #dlti.target_system_spec<
      "burst" = #dlti.target_device_spec<
        "burst.bandwidth" = 5.0e10 : f64,
        "burst.latency" = 1.0e-5 : f64,
        "burst.flops" = 6.0e14 : f64>>} {
    ```

    | key | unit | of | default |
    |---|---|---|---|
    | `burst.bandwidth` | bytes per second | what a rank sends | 5e10 |
    | `burst.latency` | seconds | a hop, whatever its bytes | 1e-5 |
    | `burst.flops` | operations per second | a rank | 6e14 |
    | `burst.memory` | bytes | a rank; what needs more is not chosen | no limit |

    The links of an axis are those of the device of grid and axis, as in `"mesh.1"`,
    which says bandwidth or latency; of what goes along several axes the slowest
    counts. Links of two axes are used at the same time.

    `bi_ring_kv` and `bi_ring_q` send the slices of a ring floor((P - 1) / 2) hops ahead
    and floor(P / 2) back, at the same time: without a mask as many bytes as one
    ring, in half of the turns. Over one axis both directions share the link of a rank,
    so that only latencies are halved; over several, those that leave a node do so
    from two of its ranks. Of fewer than 6 ranks they are never chosen; nor is
    `ring_scores`, a baseline. Such are listed only where they are pinned.

    Of memory, a rank needs operands, results, and beside them

    - what transfers receive into: two slices (on two ranks one, where nothing comes
      behind it), and four states or gradients of what comes behind; of a double ring
      the same for inner rings, and for the outer one two slices and four of what
      comes behind; of a ring in both directions min(P - 1, 4) slices where nothing
      comes behind, else four and eight of what does (ten on three ranks, on two
      as in one ring);
    - forward l, and o where out is of another type than the state, but nothing on
      one rank (`ring-fuse-ends`); backward delta, and in the state type the gradients
      of which results are of another;
    - with `all_gather` keys and values of all ranks, backward also gradients by
      them, and two shards of gradients, that come; with `gather_q` the same of
      queries, and of states or gradients by them;
    - with `ring_scores` all scores of its queries;
    - with `ulysses` around any of these what all-to-alls bring and take: q, k, v, o and
      lse, backward q, k, v, o, do, lse, dq, dk and dv. Of n chunks of heads 2/n of that,
      and 1/n of what the attention in between needs; of keys that chunks share all.

    Where all heads of the whole sequence, at once, need more than `burst.memory`, 2, 4, 8
    chunks and so on, up to 64, are weighed as well. Of n chunks one of n parts of the
    all-to-alls is exposed, and of others what takes longer than an n-th of the attention.

    Dynamic keys are taken as 4096 positions per rank, but not fewer than queries, dynamic
    queries as many as keys, and a dynamic batch as 1. A mask whose bounds read what is known at run
    time only is taken to keep everything, and a grid of more than 64 ranks is
    looked at as one of 64. Remarks of the category `strategy` say so, and what
    each strategy costs: bytes that a rank sends on average, those that it holds at
    most, and microseconds of transfers that are hidden behind computation and that
    are exposed. These are the bytes of `ring-plan`, but for what is assumed, and
    where shards are uneven: then memory is that of the largest ones. Gradients that
    nobody uses are not sent, and not counted; memory is as if they were.

    On a grid of which several axes have several ranks, bytes are told by axis, too, as
    in `bytes_axis_0=896, bytes_axis_1=2688`. A message goes along the first axis in
    which its sender and its receiver differ, so what leaves a node goes along the
    axis of nodes. Of an all-to-all that is one of the axes of the exchange, of a
    double ring the axis of each ring; of one ring over G x I ranks, without a mask,
    one hop in I leaves the node. Their sum is the bytes that a rank sends.

    Remarks are named for what became of a strategy: `chosen` or `pinned`,
    `alternative`, `ruled-out` where a rank has not the memory, and `unsupported` where
    it cannot compute this attention; the reason says why, also for `ulysses` along
    each of the last axes of the sequence.

    Input: `burst.attention_backward ... sequence <@cp, zigzag>`. Output: the same
    with `strategy <ring_q>`.

    Needs `burst-derive-bounds`, and sizes before `burst-partition`. Leaves a
    strategy at every attention with a sequence.
  }];
  let dependentDialects = ["::mlir::DLTIDialect"];
}

def PartitionPass : Pass<"burst-partition", "::mlir::ModuleOp"> {
  let summary = "turns functions over global tensors into programs of a rank";
  let description = [{
    Every function with attentions gets the shards of its tensors as arguments
    and gives shards as results. In between, `burst.unshard` and `burst.shard`
    stand for the global tensors; what travels is decided later. A size that is
    dynamic becomes an index argument with `ring.extent`. Heads and batches that are
    sharded are cut at once, and `ring.splits` says so: nothing of them travels, and the
    attention is one of this rank's, whose clauses say over which axes.

    Where the strategy of an attention has `ulysses`, its arguments come in
    all-to-alls and its results go in others: in between it is an attention whose
    sequence is sharded over the axes that are left, and whose heads over these, with
    the strategy that is left. All attentions of a function do so alike.

    Input:
    ```mlir
    func.func @f(%q: tensor<1x512x4x64xf32>, ...) -> ... {
      %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> : ...
      return %o, %lse
    }
    ```
    Output:
    ```mlir
    func.func @f(%q: tensor<1x128x4x64xf32> {ring.shard = #ring.shard<
                     #ring.layout<zigzag over 4>, dim 1 extent 512>}, ...)
        -> ... attributes {ring.grid = @cp} {
      %c512 = arith.constant 512 : index
      %gq = burst.unshard %q dim 1 extent %c512 by <@cp, zigzag> : ...
      %o, %lse = burst.attention %gq, %gk, %gv sequence ... : ...
      %lo = burst.shard %o dim 1 by <@cp, zigzag> : ...
      return %lo, %llse
    }
    ```

    Where ranks of `ulysses` do not divide heads, some have fewer than others, or
    none, and memory as the others: `burst-number-heads` rules out what is not there.

    Refused, at the op: an attention without a sequence, several grids in one
    function, an argument in two roles, heads or batches that the ranks of these
    clauses do not divide, axes on which a strategy cannot work, and any op that stands
    between the function's boundary and the attention (constants for captures may).

    Needs nothing. Leaves functions with `ring.grid`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::burst::ring::RingDialect"];
}

def VerifyPartitionedPass : Pass<"burst-verify-partitioned", "::mlir::func::FuncOp"> {
  let summary = "checks that every attention stands in the program of a rank";
  let description = [{
    Ends the phase of `burst-partition`: attentions stand in functions with
    `ring.grid`, between `burst.unshard` and `burst.shard`.
  }];
}

def NumberHeadsPass : Pass<"burst-number-heads", "::mlir::func::FuncOp"> {
  let summary = "numbers heads among all, where ranks have room for more";
  let description = [{
    Attentions count heads as if each rank had as many as it has room for. Where an
    all-to-all divides them unevenly, this makes regions see the numbers that heads
    have among all; the mask, and its bounds, rule out what is only room.

    Input, 28 heads over 8 ranks with room for 4 each, of which two share 7 heads:
    ```mlir
    %t = ring.start %q ... all_to_all heads over 8 groups 4 ...
    ...
    %o = burst.attention %gq, %gk, %gv score(%s, %b, %h, ...) { ... %h ... }
    ```
    Output:
    ```mlir
    %o = burst.attention %gq, %gk, %gv
      mask(%b, %n, ...) {
        %in_group = arith.remui %n, %c8
        %is_head = arith.cmpi slt, %in_group, %c7
        ...
      }
      bounds(...) { ... }
      score(%s, %b, %n, ...) {
        %h = n / 8 * 7 + min(n mod 8, 7)
        ... %h ...
      }
    ```

    Needs `burst-partition`, and comes behind `burst-check-tables`, which asks for the
    heads of the problem, and in front of `burst-split-heads`. Leaves even divisions as
    they are.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def SplitHeadsPass : Pass<"burst-split-heads", "::mlir::func::FuncOp"> {
  let summary = "exchanges heads in chunks, and attends one after the other";
  let description = [{
    Where `burst-partition` says in how many chunks heads go (`ring.head_chunks`, of
    `strategy <ulysses in 4 chunks>`), all-to-alls and attentions between them are
    written once for each: `ring.take_heads` gives the first ones their chunk of an
    argument, and `ring.join_heads` makes results of what the last ones bring. Regions
    see the numbers that heads have among all.

    Keys of which each has one query head go with it; others come whole, once, in front
    of all chunks, and `ring.sum_chunks` adds what chunks give as gradients by them, and
    by tables.

    Input:
    ```mlir
    %t = ring.start %q ... all_to_all heads over 4 ...
    %lq = ring.wait %t
    ...
    %o = burst.attention %gq, %gk, %gv ...
    ```
    Output, twice:
    ```mlir
    %c = ring.take_heads %q chunk 0 of 2
    %t = ring.start %c ... all_to_all heads over 4 ...
    %lq = ring.wait %t
    ...
    %o = burst.attention %gq, %gk, %gv ...
    ```

    Needs `burst-partition`, and comes behind `burst-number-heads`. Leaves programs without `ring.head_chunks`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::burst::ring::RingDialect"];
}

def CheckTablesPass : Pass<"burst-check-tables", "::mlir::func::FuncOp"> {
  let summary = "requires that captured tables are as large as what reads them";
  let description = [{
    Compiled code clamps indices into tables, for it computes whole tiles: a table
    that is too small would give a wrong result. So for every `tensor.extract` in
    a mask or a score, whether or not a select guards it, the table must hold all
    indices of the problem: b in [0, B), h in [0, Hq), i in [0, Sq), j in
    [0, Sk). Where sizes are static that is checked here, else at the top of the
    program of a rank:

    ```mlir
    %size = tensor.dim %ids, %c0 : tensor<?xi32>
    ring.require %size at least %sk, "size of dimension 0 of ids"
    ```

    Checked are indices whose range is known exactly: sums, differences, multiples
    and quotients by positive constants, minima and maxima, in which each of b, h,
    i and j occurs at most once. So `%i` and `%i + (%sk - %sq)` need all positions
    and a clamped index what it is clamped to. Of other indices, such as remainders,
    selects, captured scalars and what tables hold, only that the table is not
    empty.

    Refused, at the attention: a static table that is too small.

    Needs `burst-expand-names` and `burst-partition`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect",
                           "::burst::ring::RingDialect"];
}

//===----------------------------------------------------------------------===//
// ring: who sends what, when
//===----------------------------------------------------------------------===//

def LowerToRingPass : Pass<"burst-lower-to-ring", "::mlir::func::FuncOp"> {
  let summary = "lowers attention to a ring in which keys, or queries, travel, or to a gather";
  let description = [{
    Global attention optimisation: each rank keeps its queries and their softmax
    state; in P - 1 hops the slices of keys and values go round, and each slice
    is attended where it comes by (`ring_kv`). Or each rank keeps its keys and
    values, and queries go round (`ring_q`), with their softmax states as partial
    results. In the backward pass gradients by what goes round are partial results
    too. Or each rank gathers keys and values and computes once (`all_gather`):
    gradients by them are its partial results.

    Input: `burst.attention` between `burst.unshard` and `burst.shard`. Output,
    where keys travel:
    ```mlir
    %o1, %m1, %l1 = ring.rotate (%k, %v ...) of #layout[%r] carry(%o0, %m0, %l0) {
    ^bb0(%owner: index, %kt: ..., %vt: ..., %o: ..., %m: ..., %l: ...):
      ... = ring.attend %q at #layout[%r], (%kt, %vt at %owner), state %o, %m, %l
      ring.yield ...
    }
    %out, %lse = ring.finalize %o1, %m1, %l1
    ```

    Where queries do:
    ```mlir
    %o1, %m1, %l1 = ring.rotate (%q ...) of #layout[%r] partial(merge ...) {
    ^bb0(%owner: index, %qt: ..., %o: ..., %m: ..., %l: ...):
      ... = ring.attend %qt at #layout[%owner], (%k, %v at %r), state %o, %m, %l
      ring.yield ...
    }
    %out, %lse = ring.finalize %o1, %m1, %l1
    ```

    Where keys and values are gathered:
    ```mlir
    %o1, %m1, %l1 = ring.gather (%k, %v ...) of #layout[%r] {
    ^bb0(%ka: ..., %va: ...):
      ... = ring.attend %q at #layout[%r], (%ka, %va at %c0) of #all, state %o, ...
      ring.yield ...
    }
    %out, %lse = ring.finalize %o1, %m1, %l1
    ```

    A strategy whose ranks hold more than two received slices says so in
    `ring.max_slices` of the function.

    Needs `burst-partition` and `burst-expand-names`. Leaves no op of burst but
    the yields of regions. A strategy that is not known is refused; an op
    without one gets `ring_kv` (`burst-choose-strategy` gives it the cheapest).

    With `ring_scores` pinned there is no online softmax (RingAttention of Li et
    al., arXiv 2105.13120), so that its effect can be measured: keys go round and
    every rank stores all its scores, `ring.softmax` makes them weights once, then
    values go round. The backward pass of Li et al. has the probabilities of the
    forward pass; here it has lse, stores the scores anew while keys go round, makes
    them probabilities with `ring.probabilities`, and gradients by scores while values
    go round with theirs; then keys go round a second time, with theirs. It
    refuses scores whose derivative reads products of queries and keys, and
    gradients of tables. Nothing is dropped.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::shard::ShardDialect", "::burst::ring::RingDialect"];
}

def DropEmptyPass : Pass<"ring-drop-empty", "::mlir::ModuleOp"> {
  let summary = "drops transfers and attends that nothing needs, per segment";
  let description = [{
    From the bounds of an attend's mask, a private function is made that says for
    all ranks r, owners o and segments a, b of their layouts whether any pair is
    needed, in which direction of the ring less travels, and how many hops
    segment b of o must travel in that direction. It depends on sizes and captured
    tables only, not on the rank. The attend then gets its table of pairs, and the
    `ring.rotate` around it how far segments go, and in which direction. (Under a
    causal mask the second zigzag chunk of an owner is needed by lower ranks only:
    going down, a quarter of all bytes need not travel.) A bidirectional one gets how
    far they go in both. A `ring.gather` gets which segments each rank needs.

    Needs `burst-derive-bounds` before `burst-lower-to-ring`; run it before
    `ring-lower-rotate` and `ring-lower-gather`. An attend without bounds needs everything and is left
    alone. Where something is left alone a remark (`ring-drop-empty`) says why.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::func::FuncDialect",
                           "::burst::ring::RingDialect"];
}

def LowerRotatePass : Pass<"ring-lower-rotate", "::mlir::ModuleOp"> {
  let summary = "writes out what goes round as loops and transfers";
  let description = [{
    Where values are carried only, P - 1 turns compute with the shards at hand and
    pass them on; the last shards are computed with behind the loop:
    ```mlir
    %k1, %v1, %o1, ... = scf.for %t = 0 to P - 1 iter_args(...) {
      ... = ring.attend %q at #layout[%r], (%kt, %vt at %o), %state
      %token = ring.start %kt, %vt of #layout[%o] to %to receive [%on] from %from
      %kn, %vn = ring.wait %token
      scf.yield %kn, %vn, %on, ...
    }
    ... = ring.attend ...
    ```

    Partial results come along one hop behind their shards: each rank joins what it
    has computed itself, and the last one sends the whole to the owner. Tables of
    flags say what arrives for which turn; `%h` is who has the own shards in this
    turn:
    ```mlir
    %q1, %own1, ... = scf.for %t = 0 to P iter_args(...) {
      %part = ring.attend %qt at #layout[%o], (%k, %v at %r), (ring.init %qt)
      %qn = ring.wait (ring.start %qt of #layout[%o] to %to receive [%on] ...)
      %own2 = ring.merge %own with %returned       // nothing: it comes at the end
      %own3 = ring.merge %own2 with %part      // in the first hop
      %sum = ring.merge %part with %onward     // from the third on
      %onward1 = ring.wait (ring.start %sum of #layout[%o] to %to ...)
      %home1 = ring.wait (ring.start %sum of #layout[%o] to %o receive [%r] from %h)
      scf.yield %qn, %on, %own3, %onward1, %home1
    }
    %all = ring.merge %own1 with %home1
    ```

    In both directions there are two of each of these in a turn, of the shards from
    ahead and from behind, whose distance from their owners is that of the turn, or one
    more; see `ring.rotate`. One rank computes once. Transfers are waited for at once;
    see `ring-overlap`. Where several rotates attend, `ring.apart` numbers their attends:
    they may begin alike, and `cse` must not make them one, since each goes on with a
    state of its own. Leaves no `ring.rotate`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::func::FuncDialect",
                           "::burst::ring::RingDialect"];
}

def LowerGatherPass : Pass<"ring-lower-gather", "::mlir::func::FuncOp"> {
  let summary = "writes out what is gathered as transfers";
  let description = [{
    Shards of all ranks come with one transfer, behind which the region stands; its
    partial results return to the owners of their shards, by distance:
    ```mlir
    %ka, %va = ring.wait (ring.start %k, %v of #layout[%r] all_gather ...)
    ... = ring.attend_grad ..., (%ka, %va at %c0) of #all into %dq, %dka, %dva
    %own = ring.wait (ring.start %dka of #all[%r] to %r receive [%r] from %r)
    %sum, %last = scf.for %d = 1 to P iter_args(%dk = ring.zero %k, %part = %own) {
      %dk1 = ring.add %dk, %part of #layout[%r]
      %next = ring.wait (ring.start %dka of #all[%r - %d] to %r - %d
                         receive [%r] from %r + %d)
      scf.yield %dk1, %next
    }
    %dk = ring.add %sum, %last
    ```

    One rank has all, and sends nothing. Transfers are waited for at once; see
    `ring-overlap`. Leaves no `ring.gather`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect",
                           "::burst::ring::RingDialect"];
}

def AccumulatePass : Pass<"ring-accumulate", "::mlir::func::FuncOp"> {
  let summary = "lets chunks of heads add to one gradient";
  let description = [{
    The backward pass of a chunk adds to what the one before has made of a gradient
    that they share, in place of to zeros:
    ```mlir
    %dk0 = ring.attend_grad ... into %z0        %dk0 = ring.attend_grad ... into %z0
    %dk1 = ring.attend_grad ... into %z1   =>   %dk1 = ring.attend_grad ... into %dk0
    %dk = ring.sum_chunks %dk0, %dk1
    ```

    Needs attends whose transfers are written out. Leaves no `ring.sum_chunks`.
  }];
}

def OverlapPass : Pass<"ring-overlap", "::mlir::func::FuncOp"> {
  let summary = "issues each transfer before the computation in front of it";
  let description = [{
    Moves every `ring.start` up in its block, above the attends that it does not
    depend on, so that transfer t + 1 runs while hop t computes. Costs a second
    received slice (the double buffer). And what a loop waits for at the end of a
    turn, though the next one needs it only behind its attend (states and
    gradients, and shards that come back in a bidirectional ring), it waits for there:
    the token is carried in place of what it brings.

    Where heads go in chunks, those of the next chunk come while those of one are
    attended, and what was made of one goes while the next one is: two buffers of each.

    Input: `attend; start; wait`. Output: `start; attend; wait`.
  }];
}

def FuseEndsPass : Pass<"ring-fuse-ends", "::mlir::func::FuncOp"> {
  let summary = "makes a state that begins and ends with one attend part of it";
  let description = [{
    A `ring.attend` that alone uses a `ring.init`, and whose state only a
    `ring.finalize` uses, becomes one that is `first` and `last`: one kernel, whose
    state stays in registers or caches. It is so on one rank, and where an attend has
    all keys. With `separately`, an attend also becomes one of the two alone. In a
    ring that saves a pass over o, once, and costs the compilation of a kernel beside
    that of the loop. An attend whose queries were received does not become `first`:
    it would read those that were not sent.

    Input: `init; attend state; finalize`. Output: `attend first last`.
  }];
  let options = [
    Option<"separately", "separately", "bool", "false",
           "Also fuse a beginning or an end alone.">,
  ];
  let dependentDialects = ["::burst::ring::RingDialect"];
}

def BufferizePass : Pass<"ring-bufferize", "::mlir::ModuleOp"> {
  let summary = "puts the program of a rank on buffers";
  let description = [{
    A pass of its own because upstream's bufferization, which knows values only,
    allocates and copies a slice per hop. Here

    - arguments are the caller's memory, with its strides; results become
      arguments marked `ring.result`;
    - softmax states are updated in place. Of the one that becomes the result o
      lives in the memory of the result where types agree, m in that of lse;
    - what a loop receives alternates between two buffers (one, where the loop
      runs once): the double buffer. The own slice is never copied;
    - `tile.allocate` says what memory is for.

    Input:
    ```mlir
    func.func @f(%q: tensor<1x128x4x64xf32>, ...) -> tensor<1x128x4x64xf32> {
      %k1:2 = scf.for ... iter_args(%kt = %k, ...) {
        %token = ring.start %kt ...
        %o1, ... = ring.attend %q ... slice (%kt, ...) state %o0, ...
        %kn = ring.wait %token
        scf.yield %kn, ...
    ```
    Output:
    ```mlir
    func.func @f(%q: memref<1x128x4x64xf32, strided<...>>, ...,
                 %out: memref<1x128x4x64xf32, strided<...>> {ring.result}) {
      %slots = tile.allocate "slice" () : memref<2x1x128x4x64xf32>
      %k1 = scf.for %t = ... iter_args(%kt = %k, ...) {
        %next = memref.subview %slots[%t mod 2, ...]
        %token = ring.start %kt ... into %next
        ring.attend %q ... slice (%kt, ...) state %o, %m, %l
        ring.wait %token
        scf.yield %next, ...
    ```

    Refused, at the op: a state that is used behind what updates it, slices that outlive their
    loop's next turn, transfers in nested loops, and calls (`inline` them).

    Needs ring programs, `inline`d. Leaves no tensor but in the regions of
    attends.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::burst::tile::TileDialect"];
}

def VerifyRingPass : Pass<"ring-verify", "::mlir::ModuleOp"> {
  let summary = "proves the schedule of every rank, or shows a counterexample";
  let description = [{
    Proves a program from its text for every number of ranks, all sizes and all
    tables, and looks at its tables where they are known (see the rationale of the
    ring dialect). Where that does not do, runs the program of every rank without
    data. Both check, for all ranks:

    - every pair of segments that the mask does not rule out enters the result, or
      each of the gradients, exactly once, and no other pair does;
    - slices are what attends and transfers say they are; no segment is read or
      sent that was not received;
    - every send has its receive, of the same segments and bytes;
    - nothing deadlocks, under the model that the ring dialect states;
    - nothing travels in vain: each segment that arrives at a rank is read there, by an
      attend that computes a pair with it or as a partial result that is joined, or is
      sent on; and what returns to an owner is of segments for which something was
      computed;
    - every transfer is waited for once, and at most two received slices are held
      at a time (the double buffer), two states of slices or gradients by them,
      and two that returned to its owner; or as many as `ring.max_slices` of the function says,
      for channel 0, 1 and so on, `array<i64: 3, 2>`;
    - o, m and l of a state belong together, and all its attends have one mask, one
      score and one scale, and the same on all ranks; so have all attends that
      add to a gradient, and lse and delta are those of the same attention;
    - states are merged with states of the same queries, gradients are added to
      gradients by the same shard, both are not changed while they are under way,
      and gradients are rounded once;
    - every rank returns its own shard, or the gradient by it, laid out as the
      function says, and of the gradient by a table its part.

    An attend without a table of pairs counts as reading all that it is given; what an
    all-to-all brings, which has no flags, as read; and a partial result may follow
    its shard from the first hop on, before any rank has computed something for it.

    A refusal shows rank, hop, op and reason. A remark says `proved` *for every number
    of ranks*, of rings in both directions *for every odd number of ranks* or *even*,
    or *for these ranks, sizes and tables*. A program whose sizes or tables
    are known at run time only is looked at again when they are bound, by whoever
    runs it (`burst-run` does), and simulated then where it is not proved for every
    number of ranks. Of more than 2048 ranks none are simulated: what is not proved
    for every number is an error that names the condition.

    Options say which of the optimising passes were left out, and what may be done in
    vain.
  }];
  let options = [
    Option<"allowEmpty", "allow-empty", "bool", "false",
           "Pairs that the mask rules out may be computed (without ring-drop-empty).">,
    Option<"allowNeedless", "allow-needless", "bool", "false",
           "Segments may arrive where nobody reads them or sends them on.">,
    Option<"smtlib", "smtlib", "std::string", "\"\"",
           "A file to which the conditions of proofs for every number of ranks are written, in SMT-LIB: a solver answers each with what was found, shown or not shown, and unsat or sat.">];
}

def PlanPass : Pass<"ring-plan", "::mlir::ModuleOp"> {
  let summary = "prints what each rank sends and holds, as JSON";
  let description = [{
    Evaluates every rank's program without data: hops, messages, bytes sent per
    tensor, peak bytes and peak received slices; where several axes of the grid have
    several ranks, also bytes sent by axis, which is the first in which sender and
    receiver differ. One JSON object per program, on the standard output. Peak bytes
    are those of tensors, state and slices. What a transport keeps comes on top, which
    is known when it is made: `ipc` keeps its `buffer_bytes` for each rank, in the
    memory of each GPU.
  }];
  let options = [
    ListOption<"extents", "extents", "int64_t",
               "Values of the dynamic sizes, in the order of the program's "
               "`ring.extent` arguments.">,
    Option<"batch", "batch", "int64_t", "1", "The batch size, where it is dynamic.">];
}

def ExplainPass : Pass<"burst-explain", "::mlir::ModuleOp"> {
  let summary = "prints the schedule as a table that a person reads";
  let description = [{
    Hop by hop, for every rank: which block it computes (empty, partial, full per
    pair of segments), which slices, states and gradients it sends, and the bytes.
    The same is drawn into a file, where one is named. A module that is not lowered yet is
    lowered on a copy, and what `burst-choose-strategy` weighs for each attention is
    printed first, with what cannot compute it and why. Where several axes of the grid
    have several ranks, what is sent is told by axis. Of a grid of more than 64 ranks a
    summary is printed: what the ranks send and hold at least and at most, and what was
    proved. `max-ranks` shows the first of them.
  }];
  let options = [
    Option<"maxRanks", "max-ranks", "int64_t", "16",
           "Ranks to show, the first ones of the grid; left out, a grid of more than 64 gives "
           "a summary.">,
    Option<"machine", "machine", "std::string", "\"\"",
           "A file with a module that describes the machine for which strategies are chosen, in "
           "place of the module's own.">,
    Option<"svg", "svg", "std::string", "\"\"",
           "A file into which the same is drawn, as a picture in SVG.">,
    Option<"drop", "drop", "bool", "true",
           "Of burst.attention: drop transfers and attends that the mask does not need.">,
    Option<"overlap", "overlap", "bool", "true",
           "Of burst.attention: issue transfers before computing.">];
}

def SimulatePass : Pass<"burst-simulate", "::mlir::ModuleOp"> {
  let summary = "says how long the program of all ranks would take on a machine";
  let description = [{
    A discrete-event run of all ranks on the machine that `#dlti.target_system_spec` of the
    module describes, or that of a file: what the clock of a schedule shows. A rank takes one
    step after the other, and goes on where it starts a transfer. Transfers of a channel run on
    a rank in the order in which it started them, each when sender and receiver have come to it,
    and share the bandwidth of their link with others that are under way on it. A module that is
    not lowered yet is lowered on a copy, and its schedule proved. Sizes are static.

    Of each program is printed: the time until the last rank ends, what share of the machine's
    peak that is, for how long that rank computes and waits, along each axis, what is sent and
    held, and what limits. Nothing is measured.

    Beside what `burst-choose-strategy` reads, a machine may say, each as a f64 but for the
    placement:

    - `burst.flops` and `burst.flops_backward`, also of an element type (`burst.flops.bf16`) and
      of a head dimension (`burst.flops.bf16.64`): operations per second on tiles of which the
      mask keeps all. Partial tiles take as long as full ones. `burst.flops_stored` is that of
      products with stored scores (`ring_scores`), in both passes; left out, `burst.flops`.
    - `burst.peak`: operations per second that nothing exceeds.
    - `burst.tile`, rows and columns of a tile, and `burst.processors`, over which tiles of
      queries are shared out in all heads; `burst.launch`, seconds of any kernel;
      `burst.memory_bandwidth`, bytes per second of kernels that compute little.
    - `burst.node`: so many ranks in a row share a node, with links of `burst.node_bandwidth` and
      `burst.node_latency` from each rank to others of it, and `burst.links` network cards (one
      for each rank where it is left out) of `burst.bandwidth` and `burst.latency`.
    - `burst.placement`: the axes of the grid, as in `array<i64: 1, 0>`, from the one whose ranks
      are farthest apart to the one whose ranks follow each other in a node; left out, they are in
      their order, the last one within nodes.
    - `burst.staged`: how many times what a kernel reads and writes is moved before or behind its
      products, rather than while they run: 2 where operands are packed first, as on CPUs.
    - `burst.copy_bandwidth`: bytes per second at which ranks copy what they receive, once it is
      there; left out, the network does. Ranks that are threads of a process copy.
    - `burst.busy`: the share of the processors that transfers take while they are under way.
    - `burst.devices`: that the ranks of a node share, or all ranks where no nodes are described,
      with one of them computing on each at a time: ranks that are threads of one process share
      one. Left out, each rank has its own.
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"\"",
           "A file with a module that describes the machine, in place of the module's own.">,
    Option<"format", "format", "std::string", "\"text\"",
           "text, json, trace (of Perfetto) or svg.">,
    Option<"drop", "drop", "bool", "true",
           "As of `burst-to-ring`, where a module is lowered.">,
    Option<"overlap", "overlap", "bool", "true", "The same.">,
    Option<"maxRanks", "max-ranks", "int64_t", "16",
           "Ranks to show in a trace or a picture, the first ones of the grid.">,
    ListOption<"compare", "compare", "std::string",
               "strategies, orders, placements: what each of them would take, as a table.">];
}

//===----------------------------------------------------------------------===//
// tile: how a device computes
//===----------------------------------------------------------------------===//

def LowerToTilePass : Pass<"ring-lower-to-tile", "::mlir::ModuleOp"> {
  let summary = "lowers steps on buffers to kernels over tiles, and their launches";
  let description = [{
    Every `ring.init`, `attend`, `merge` and `finalize` becomes a launch of a
    kernel (equal kernels are made once). On a processor a state that meets one
    attend only, between `ring.init` and `finalize`, stays out of memory: all three
    are one kernel. In front of an attend stands what it needs to know of the mask:

    - two tables, of the tiles of its queries and of its keys: where they lie and
      which positions they hold;
    - the bounds of the mask, asked about every pair of tiles: a list of tiles per
      task, full ones from its beginning and partial ones from its end;
    - the order of the tasks, longest first by the power of two of their work, and
      of one power head by head; those of short lists by their tile, all heads of
      one together;
    - a launch that packs the tiles of keys and values which anybody needs, once
      for all tiles of queries. Backward, queries and gradients of results are
      packed as well; of these and of keys and values, what is an input of the
      program and stays through its loop is packed in front of that.

    A tile of queries passes a tile of keys strip by strip: scores, weights and sums
    of `strip` rows, which no cache but the first then holds. In a partial tile the
    bounds of the mask are asked again, about the strip and every panel of keys: the
    panels in front of the first and behind the last one that the strip may see are
    not multiplied, and the mask is evaluated only where its bounds do not tell.
    Backward, strips of queries make weights, their gradients and what these add to
    that of queries; then strips of keys add up the other gradients, over the rows
    of queries that may see them.

    Where a tile has room for all queries that a rank may hold, of all heads that share
    a key head, and heads are whole panels, its rows are those of all these heads, one
    position's after the other. Nothing is packed: products take keys and values as they
    lie in the slice, and numbers of 16 bits become those of the state. Of more than two
    tiles of keys, tasks have parts: as many as make 128 tasks, or of two tiles each, and
    a launch merges their states in their order.

    Operands of 16 bits are packed, and loaded, as numbers of the state. With
    `pairs`, those of bf16 stay what they are, and weights and, backward, the
    gradients by scores are rounded to bf16: the products are of pairs (see
    `tile.multiply`), and the scale is applied behind them, in f32. Which it is shows
    in the types of the kernels' blocks.

    With `warps`, kernels are those of a GPU (see the dialect `cuda`): nothing is
    packed, a kernel loads tiles of keys and values, as they lie in the slice,
    to shared memory. A backward pass is two kernels, of which each alone adds to
    what it adds up: one gradients by queries, over the keys of a tile's list, the
    other gradients by keys and values, over queries and their heads, on transposed
    scores. Where the latter do not fit into registers together, they are one kernel
    each. Their tiles are those that are known to fit a head dimension, with no more
    than `columns` columns; or what `query-gradients` and `key-gradients` say. Loops
    of a GPU's kernels are over full and partial tiles alike: a branch around the
    mask costs less than a second loop does in registers and in NVRTC's time.

    The tasks of a CPU's backward pass, one per tile of keys, batch and key head, run
    at once. They take turns at the gradients of queries, in the order of the tiles
    of keys (`tile.await`): sums have the same bits with any number of threads.

    With gradients of captured tables a task does all tiles of a batch and key head.
    Where two of them may add to the same element of a table's gradient, the
    first adds to the gradient and every other one to a table of its own, which are
    added up in their order behind the last `attend_grad`. An element that the
    score finds by its head is the head's alone, one that it finds by its batch
    the batch's: of a table of slopes or of a bias per head there is a copy per
    batch, of one that is read by i - j alone a copy per batch and key head.

    Without `local-tiling`, the paper's local attention optimisation, the kernel
    of a step falls into parts that leave the scores of the whole slice in memory:
    scores, softmax and the product with values; backward, weights with their
    gradients and the products that add to gradients. Pairs are not used then. It
    shows what the optimisation saves, and is for nothing else.

    Tiles are those of the program's `tile.shape`, where it has one (see the
    dialect), and else of `rows` and `columns`.

    m is kept in base 2 between the kernels (see the dialect), so a state may not
    leave the program.

    Needs `ring-bufferize`. Leaves transfers, host code on scalars and tables,
    and kernels.
  }];
  let options = [
    Option<"rows", "rows", "int64_t", "96", "Queries of a tile.">,
    Option<"columns", "columns", "int64_t", "128", "Keys of a tile.">,
    Option<"panelBytes", "panel-bytes", "int64_t", "64", "Bytes of a row of a panel.">,
    Option<"keyPanelBytes", "key-panel-bytes", "int64_t", "0",
           "Bytes of a row of a panel of keys, what a strip leaves out in whole; 0: as "
           "many as of others.">,
    Option<"strip", "strip", "int64_t", "6",
           "Rows of a tile that go through all steps of an attend together.">,
    Option<"pairs", "pairs", "bool", "false",
           "Multiply operands of bf16 in pairs; else as numbers of the state.">,
    Option<"warps", "warps", "int64_t", "0",
           "Warps of a GPU's CTA that do a task; 0: a core of a CPU does.">,
    Option<"localTiling", "local-tiling", "bool", "true",
           "Keep no more than tiles of scores; else those of whole slices.">,
    ListOption<"queryGradients", "query-gradients", "int64_t",
               "Of a GPU: queries and keys of a tile, and warps, of the kernel of "
               "gradients by queries.">,
    ListOption<"keyGradients", "key-gradients", "int64_t",
               "Of a GPU: keys and queries of a tile, and warps, of the kernel of "
               "gradients by keys and values.">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::gpu::GPUDialect", "::burst::tile::TileDialect"];
}

#endif // BURST_PASSES_PASSES_TD
