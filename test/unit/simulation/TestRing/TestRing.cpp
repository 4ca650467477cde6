//===- TestRing.cpp - ops from outside of the ring dialect ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestRing.h"

#include "dialect/Ring/Verify.h"

using namespace mlir;
using namespace burst;
using namespace burst::test_ring;

#include "TestRingDialect.cpp.inc"
#define GET_OP_CLASSES
#include "TestRing.cpp.inc"

void TestRingDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "TestRing.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// add_twice
//===----------------------------------------------------------------------===//

ring::Content AddTwiceOp::getContent(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type && isa<FloatType>(type.getElementType()) ? ring::Content::Gradient
                                                       : ring::Content::Data;
}

void AddTwiceOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  ring::addEffects(effects, (*this)->getOpOperands(), getA());
}

Step AddTwiceOp::simulate(SimulatedRank &rank, const ExternalCall &call) {
  Layout layout = getLayout().getValue();
  int64_t owner = call.index(getOwnerMutable());
  int64_t extent = call.index(getExtentMutable());
  if (!rank.isRank(*this, "owner", owner))
    return Step::Failed;
  uint64_t all = rank.shardOf(layout, extent, owner).mask;
  TensorRef sum = call.take<Tensor>(getAMutable());
  SegmentFlags ofB(getSegmentsOfBMutable(), getTurnOfBMutable());
  SegmentFlags ofC(getSegmentsOfCMutable(), getTurnOfCMutable());
  for (auto [other, flags] :
       {std::pair(&getBMutable(), ofB), std::pair(&getCMutable(), ofC)}) {
    uint64_t segments = all;
    if (!rank.selectSegments(call, flags, owner, segments))
      return Step::Failed;
    Sum add{getLayout(),
            rank.index,
            rank.hop,
            std::move(sum),
            call.peek<Tensor>(*other),
            owner,
            extent,
            segments};
    std::string message;
    if (segments != 0 && !rank.semantics().add(add, message))
      return rank.fail(*this, message);
    sum = std::move(add.a);
  }
  call.give(getSum(), std::move(sum));
  return Step::Done;
}

proof::StepMeaning AddTwiceOp::describe() {
  OperandRange operands = getOperands();
  return proof::Joined{
      operands.take_front(1),
      {{operands.slice(1, 1), {getSegmentsOfB(), getTurnOfB()}},
       {operands.slice(2, 1), {getSegmentsOfC(), getTurnOfC()}}},
      getOwner(),
      getExtent(),
      getLayout(),
      getOperation()->getResults()};
}

void AddTwiceOp::lowerToTile(tiling::Lowering &lowering) {
  OpBuilder builder(*this);
  for (auto [other, flags, turn] :
       {std::tuple(getB(), getSegmentsOfB(), getTurnOfB()),
        std::tuple(getC(), getSegmentsOfC(), getTurnOfC())})
    lowering.lower(ring::AddOp::create(builder, getLoc(), Type(), getA(), other,
                                       getOwner(), getExtent(), flags, turn,
                                       getLayout()));
  erase();
}

//===----------------------------------------------------------------------===//
// attend_one
//===----------------------------------------------------------------------===//

ring::Content AttendOneOp::getContent(Value value) {
  bool isState = value.getDefiningOp() == *this ||
                 llvm::is_contained(getOperands().take_front(3), value);
  return isState ? ring::Content::State : ring::Content::Data;
}

void AttendOneOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  ring::addEffects(effects, (*this)->getOpOperands(),
                   getOperands().take_front(3));
}

Step AttendOneOp::simulate(SimulatedRank &rank, const ExternalCall &call) {
  Attend attend;
  if (!rank.readInputs(*this, call, {}, attend))
    return Step::Failed;
  attend.slices = {{call.peek<Tensor>(getKeyMutable()),
                    call.peek<Tensor>(getValueMutable()),
                    call.index(getKeyOwnerMutable())}};
  attend.state = {call.take<Tensor>(getOMutable()),
                  call.take<Tensor>(getMMutable()),
                  call.take<Tensor>(getLMutable())};
  rank.announce(attend, 0, attend.slices.front().owner);
  State state;
  std::string message;
  if (!rank.semantics().attend(attend, state, message))
    return rank.fail(*this, message);
  call.give(getNewO(), std::move(state.o));
  call.give(getNewM(), std::move(state.m));
  call.give(getNewL(), std::move(state.l));
  return Step::Done;
}

proof::StepMeaning AttendOneOp::describe() {
  return proof::Attended{cast<ring::AttendLikeOpInterface>(getOperation()),
                         getKey(), getValue(), getOperands().take_front(3),
                         getOperation()->getResults()};
}

void AttendOneOp::lowerToTile(tiling::Lowering &lowering) {
  OpBuilder builder(*this);
  auto attend = ring::AttendOp::create(
      builder, getLoc(), TypeRange(), getQuery(), getQueryOwner(),
      getQueryExtent(), getKey(), getValue(), getKeyOwner(), getKeyExtent(),
      getO(), getM(), getL(), /*offsets=*/ValueRange(), getPairs(),
      getMaskCaptures(), getScoreCaptures(),
      /*into=*/ValueRange(), getQueryLayout(), getKeyLayout(), getScaleAttr(),
      /*last=*/UnitAttr());
  for (auto [from, to] :
       llvm::zip_equal((*this)->getRegions(), attend->getRegions()))
    to.takeBody(from);
  lowering.lower(attend);
  erase();
}

//===----------------------------------------------------------------------===//
// send
//===----------------------------------------------------------------------===//

void SendOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  ring::addTransferEffects(*this, effects);
}
