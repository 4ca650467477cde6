//===- StoredScores.cpp - scores are stored, then values travel -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RingAttention of Li et al. (Sequence Parallelism, arXiv 2105.13120), section
// 3.2: no online softmax. It is what global attention optimisation is compared
// with. There the backward pass has the probabilities of the forward pass; here
// it has lse, and makes them again: keys travel once more than there.
//
//===----------------------------------------------------------------------===//
#include "passes/Strategies/BackwardProgram.h"
#include "passes/Strategies/ForwardProgram.h"
#include "passes/Strategies/Strategy.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

/// Memory for all scores of this rank's queries.
template <typename Op>
static Value makeScores(OpBuilder &builder, Location loc, Op op, Value query,
                        Value keyExtent) {
  auto shard = cast<RankedTensorType>(query.getType());
  auto stored = RankedTensorType::get(
      {shard.getDimSize(0), shard.getDimSize(2), shard.getDimSize(1),
       cast<RankedTensorType>(op.getKey().getType()).getDimSize(1)},
      op.getStateType());
  return ring::ScoresOp::create(builder, loc, stored, query, keyExtent,
                                /*into=*/Value())
      .getScores();
}

namespace {

/// Shards of an owner of the queries, or of the keys.
struct Side {
  Value shard, owner, extent;
};

class ScoreRing final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build();
};

class ScoreGradientRing final : public BackwardProgram {
public:
  using BackwardProgram::BackwardProgram;

  void build();
};

} // namespace

/// Writes the scores of queries with the keys of an owner.
template <typename Op>
static Value score(OpBuilder &builder, Location loc, Op op, const Side &queries,
                   const Side &keys, Value scores, ValueRange offsets,
                   ring::LayoutAttr layout) {
  auto score = ring::ScoreOp::create(
      builder, loc, scores.getType(), queries.shard, queries.owner,
      queries.extent, keys.shard, keys.owner, keys.extent, scores, offsets,
      /*pairs=*/Value(), op.getMaskCaptures(), op.getScoreCaptures(), layout,
      layout, builder.getF64FloatAttr(op.getScaleOrDefault()));
  IRMapping mapping;
  op.getMask().cloneInto(&score.getMask(), mapping);
  op.getScore().cloneInto(&score.getScore(), mapping);
  op.getBounds().cloneInto(&score.getBounds(), mapping);
  return score.getNewScores();
}

void ScoreRing::build() {
  beginProgram();
  Value scores =
      makeScores(builder, loc, op, query.getShard(), key.getExtent());
  scores =
      rotate(
          {{key.getShard()}, {1}, key.getExtent(), {scores}},
          [&](Value owner, ValueRange shards, ValueRange carried, ValueRange) {
            return Tensors{score(builder, loc, op,
                                 {query.getShard(), rank, query.getExtent()},
                                 {shards[0], owner, key.getExtent()},
                                 carried[0], offsets, layout)};
          })
          .front();
  Tensors state = init();
  SmallVector<Type> types{scores.getType()};
  llvm::append_range(types, ValueRange(state).getTypes());
  auto softmax = ring::SoftmaxOp::create(builder, loc, types, scores, state[0],
                                         state[1], state[2]);
  Tensors sums = rotate(
      {{value.getShard()},
       {1},
       value.getExtent(),
       Tensors(softmax.getResults().drop_front())},
      [&](Value owner, ValueRange shards, ValueRange carried, ValueRange) {
        auto weigh = ring::WeighOp::create(
            builder, loc, TypeRange(carried), softmax.getWeights(), shards[0],
            owner, key.getExtent(), carried[0], carried[1], carried[2], layout);
        return Tensors(weigh.getResults());
      });
  finish(sums);
}

/// Keys travel past queries, whose scores become probabilities; values travel
/// with their gradient, and probabilities become gradients by scores; keys
/// travel with theirs.
void ScoreGradientRing::build() {
  beginBackward();
  Tensors rows = ownQueries().tensors, keys = ownKeys().tensors;
  Value query = rows[0], outGrad = rows[1], lse = rows[2], delta = rows[3];
  Value scores = makeScores(builder, loc, op, query, keyExtent());
  scores =
      rotate({{keys[0]}, {1}, keyExtent(), {scores}}, [&](Value owner,
                                                          ValueRange shards,
                                                          ValueRange carried,
                                                          ValueRange) {
        return Tensors{score(builder, loc, op, {query, rank, queryExtent()},
                             {shards[0], owner, keyExtent()}, carried[0],
                             offsets, layout)};
      }).front();
  Value weights =
      ring::ProbabilitiesOp::create(builder, loc, scores.getType(), scores, lse)
          .getWeights();
  auto withGradient = [&](Value shard, Value carried) {
    return Rotation{{shard},
                    {1},
                    keyExtent(),
                    {carried},
                    ring::Join::Add,
                    {gradientType(shard.getType())},
                    {1}};
  };
  Tensors byValues = rotate(
      withGradient(keys[1], weights),
      [&](Value owner, ValueRange shards, ValueRange stays, ValueRange fresh) {
        auto weigh = ring::WeighGradOp::create(
            builder, loc, stays[0].getType(), fresh[0].getType(), outGrad,
            delta, shards[0], owner, keyExtent(), stays[0], fresh[0], layout,
            builder.getF64FloatAttr(op.getScaleOrDefault()));
        return Tensors(weigh.getResults());
      });
  Tensors byKeys = rotate(
      withGradient(keys[0], zero(query)),
      [&](Value owner, ValueRange shards, ValueRange stays, ValueRange fresh) {
        auto score = ring::ScoreGradOp::create(
            builder, loc, stays[0].getType(), fresh[0].getType(), byValues[0],
            query, shards[0], owner, keyExtent(), stays[0], fresh[0], layout);
        return Tensors(score.getResults());
      });
  finish({byKeys[0], byKeys[1], byValues[1]});
}

/// Keys travel, then values; backward, values with their gradients, then keys
/// with theirs. Products of all pairs are taken in each round: what the mask
/// rules out is stored, and weighs nothing.
static Estimate estimateRounds(const Workload &workload,
                               const Hardware &hardware) {
  const AttentionSizes &sizes = workload.sizes;
  struct Round {
    int64_t dim, products;
    bool hasGradient, isWanted; ///< of what travels
  };
  auto [wantsQuery, wantsKey, wantsValue] = workload.wanted;
  SmallVector<Round> rounds{{sizes.queryDim, 1, false, false}};
  if (!workload.isBackward)
    rounds.push_back({sizes.valueDim, 1, false, false});
  else
    rounds.push_back({sizes.valueDim, 2, true, wantsValue});
  if (workload.isBackward && (wantsQuery || wantsKey))
    rounds.push_back({sizes.queryDim, 2, true, wantsKey});
  Estimate result;
  for (auto [dim, products, hasGradient, isWanted] : rounds) {
    AttentionSizes one = sizes;
    one.queryDim = dim * products;
    one.valueDim = 0;
    Workload round(one, workload.elementBytes, workload.stateBytes,
                   /*isBackward=*/false, workload.whole,
                   [](const Segment &, const Segment &) { return Kept(); });
    round.axes = workload.axes;
    auto numbers = static_cast<double>(sizes.keyHeads * dim);
    Cargo cargo{.slice = numbers * static_cast<double>(workload.elementBytes)};
    if (hasGradient)
      cargo.made = numbers * static_cast<double>(workload.stateBytes);
    cargo.behind = isWanted ? cargo.made : 0;
    result += estimateRotation(round, cargo, hardware);
  }
  return result;
}

/// Of all pairs of the own queries with all keys.
static double scoreBytes(const Workload &workload) {
  const AttentionSizes &sizes = workload.sizes;
  return static_cast<double>(sizes.batch) *
         static_cast<double>(sizes.queryHeads) *
         static_cast<double>(workload.stateBytes) *
         static_cast<double>(workload.queriesOfRank) *
         static_cast<double>(sizes.keys);
}

/// Whether gradients by scores are those by what the score region was given, so
/// that nobody asks what that was: where it adds to it, or there is none.
static bool leavesGradients(AttentionBackwardOp op) {
  if (op.getScore().empty())
    return true;
  if (op.getGradient().empty())
    return false;
  Block &block = op.getGradient().front();
  return block.getTerminator()->getOperand(0) ==
         RegionArguments::of(RegionRole::Gradient, block).g;
}

namespace {
struct StoredScores final : Strategy {
  StringRef getName() const override { return "ring_scores"; }
  bool isOnlyPinned(int64_t ranks) const override { return true; }
  std::string whyNot(AttentionInterface op,
                     SequenceAttr sequence) const override {
    auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
    if (!backward)
      return {};
    if (backward.getGradients() && !backward.getGradients()->empty())
      return "has no gradients of tables: it keeps scores only";
    if (!leavesGradients(backward))
      return "has no backward pass through a score whose derivative reads "
             "products of queries and keys: it keeps scores only";
    return {};
  }
  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override {
    Estimate result = estimateRounds(workload, hardware);
    result.buffers += ownBuffers(workload) + scoreBytes(workload);
    return result;
  }
  void build(AttentionInterface op, const Layout &layout) const override {
    if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
      return ScoreGradientRing(backward, layout).build();
    ScoreRing(cast<AttentionOp>(op.getOperation()), layout).build();
  }
};
} // namespace

const Strategy *burst::getStoredScores() {
  static const StoredScores strategy;
  return &strategy;
}
