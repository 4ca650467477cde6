//===- StoredScores.cpp - scores are stored, then values travel -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RingAttention of Li et al. (Sequence Parallelism, arXiv 2105.13120), section
// 3.2: no online softmax. It is what global attention optimisation is compared
// with.
//
//===----------------------------------------------------------------------===//
#include "passes/Strategies/ForwardProgram.h"
#include "passes/Strategies/Strategy.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

namespace {

class ScoreRing final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build();

private:
  Value score(Value key, Value owner, Value scores);
};

} // namespace

Value ScoreRing::score(Value key, Value owner, Value scores) {
  auto score = ring::ScoreOp::create(
      builder, loc, scores.getType(), query.getShard(), rank, query.getExtent(),
      key, owner, this->key.getExtent(), scores, offsets, /*pairs=*/Value(),
      op.getMaskCaptures(), op.getScoreCaptures(), layout, layout,
      builder.getF64FloatAttr(op.getScaleOrDefault()));
  IRMapping mapping;
  op.getMask().cloneInto(&score.getMask(), mapping);
  op.getScore().cloneInto(&score.getScore(), mapping);
  op.getBounds().cloneInto(&score.getBounds(), mapping);
  return score.getNewScores();
}

void ScoreRing::build() {
  beginProgram();
  auto shard = cast<RankedTensorType>(query.getShard().getType());
  auto stored = RankedTensorType::get(
      {shard.getDimSize(0), shard.getDimSize(2), shard.getDimSize(1),
       cast<RankedTensorType>(op.getKey().getType()).getDimSize(1)},
      op.getStateType());
  Value scores = ring::ScoresOp::create(builder, loc, stored, query.getShard(),
                                        key.getExtent(), /*into=*/Value())
                     .getScores();
  scores = rotate({{key.getShard()}, {1}, key.getExtent(), {scores}},
                  [&](Value owner, ValueRange shards, ValueRange carried,
                      ValueRange) {
                    return Tensors{score(shards[0], owner, carried[0])};
                  })
               .front();
  Tensors state = init();
  SmallVector<Type> types{stored};
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

/// Keys travel, then values. A product of all pairs is taken in each round:
/// what the mask rules out is stored, and weighs nothing.
static Estimate estimateRounds(const Workload &workload,
                               const Hardware &hardware) {
  Estimate result;
  for (bool isOfKeys : {true, false}) {
    AttentionSizes sizes = workload.sizes;
    (isOfKeys ? sizes.valueDim : sizes.queryDim) = 0;
    Workload round(sizes, workload.elementBytes, workload.stateBytes,
                   /*isBackward=*/false, workload.whole,
                   [](const Segment &, const Segment &) { return Kept(); });
    round.axes = workload.axes;
    // One of the dims is 0.
    double numbers = static_cast<double>(sizes.keyHeads) *
                     static_cast<double>(sizes.queryDim + sizes.valueDim);
    Cargo cargo{/*movesKeys=*/true,
                numbers * static_cast<double>(workload.elementBytes)};
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

namespace {
struct StoredScores final : Strategy {
  StringRef getName() const override { return "ring_scores"; }
  bool isBaseline() const override { return true; }
  std::string whyNot(AttentionInterface op,
                     SequenceAttr sequence) const override {
    if (isa<AttentionBackwardOp>(op.getOperation()))
      return "has a forward pass only: gradients would need the scores that it "
             "stored";
    return {};
  }
  Estimate estimate(const Workload &workload,
                    const Hardware &hardware) const override {
    Estimate result = estimateRounds(workload, hardware);
    result.buffers += ownBuffers(workload) + scoreBytes(workload);
    return result;
  }
  void build(AttentionInterface op, const Layout &layout) const override {
    ScoreRing(cast<AttentionOp>(op.getOperation()), layout).build();
  }
};
} // namespace

const Strategy *burst::getStoredScores() {
  static const StoredScores strategy;
  return &strategy;
}
