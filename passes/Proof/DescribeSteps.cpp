//===- DescribeSteps.cpp - what the steps of the ring dialect do ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/StepMeaning.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

#include "passes/Proof/ProvedOp.cpp.inc"

static StepMeaning describe(ring::InitOp op) {
  return Init{op.getQuery(), op->getResults()};
}

static StepMeaning describe(ring::AttendOp op) {
  return Attended{cast<ring::AttendLikeOpInterface>(op.getOperation()),
                  op.getKey(), op.getValue(), op.getState(), op->getResults()};
}

static StepMeaning describe(ring::MergeOp op) {
  return Joined{
      op.getInto(),   {{op.getFrom(), {op.getSegments(), op.getTurn()}}},
      op.getOwner(),  op.getExtent(),
      op.getLayout(), op->getResults()};
}

static StepMeaning describe(ring::FinalizeOp op) {
  return Finalized{op->getOperands().take_front(3), op->getResults()};
}

static StepMeaning describe(ring::ZeroOp op) {
  return Zero{op.getLike(), op.getZero()};
}

static StepMeaning describe(ring::DeltaOp op) {
  return Delta{op.getOut(), op.getOutGrad(), op.getLseGrad(), op.getDelta()};
}

static StepMeaning describe(ring::AttendGradOp op) {
  return AttendedGrad{cast<ring::AttendLikeOpInterface>(op.getOperation()),
                      op.getOutGrad(),
                      op.getLse(),
                      op.getDelta(),
                      op.getKey(),
                      op.getValue(),
                      &op.getGradient(),
                      op.getCaptures(),
                      op.getGrads(),
                      op->getResults()};
}

static StepMeaning describe(ring::AddOp op) {
  return Joined{
      op->getOperands().take_front(1),
      {{op->getOperands().slice(1, 1), {op.getSegments(), op.getTurn()}}},
      op.getOwner(),
      op.getExtent(),
      op.getLayout(),
      op->getResults()};
}

static StepMeaning describe(ring::RoundOp op) {
  return Rounded{op.getGradient(), op.getRounded()};
}

static StepMeaning describe(ring::TakeHeadsOp op) {
  return TakenHeads{op.getTensor(), op.getTaken(),
                    static_cast<int64_t>(op.getChunk()),
                    static_cast<int64_t>(op.getNumChunks())};
}

static StepMeaning describe(ring::JoinHeadsOp op) {
  return JoinedHeads{op.getChunks(), op.getJoined()};
}

namespace {
template <typename OpT>
struct Proved : ProvedOpInterface::ExternalModel<Proved<OpT>, OpT> {
  StepMeaning describe(Operation *op) const {
    return ::describe(cast<OpT>(op));
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext *context) {
  (Ops::template attachInterface<Proved<Ops>>(*context), ...);
}

void burst::registerRingProof(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ring::RingDialect *) {
    attach<ring::InitOp, ring::AttendOp, ring::MergeOp, ring::FinalizeOp,
           ring::ZeroOp, ring::DeltaOp, ring::AttendGradOp, ring::AddOp,
           ring::RoundOp, ring::TakeHeadsOp, ring::JoinHeadsOp>(context);
  });
}
