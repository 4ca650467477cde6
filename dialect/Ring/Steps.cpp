//===- Steps.cpp - what steps are to passes -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

#include "dialect/Ring/RingInterfaces.cpp.inc"

/// `content` where a value is among others, else data.
static Content contentIf(bool isAmong, Content content) {
  return isAmong ? content : Content::Data;
}

static bool isAmong(Value value, ValueRange others) {
  return llvm::is_contained(others, value);
}

/// (batch, sequence, heads, dim) of a shard, where rows are (batch, heads,
/// sequence).
static SizeSource rowSize(Value shard, int64_t dim) {
  static constexpr int64_t dims[] = {0, 2, 1};
  return {shard, dims[dim]};
}

//===----------------------------------------------------------------------===//
// Softmax state
//===----------------------------------------------------------------------===//

SizeSource InitOp::getSizeSource(OpResult result, int64_t dim) {
  return result == getO() ? SizeSource{getQuery(), dim}
                          : rowSize(getQuery(), dim);
}

Content InitOp::getContent(Value value) {
  return contentIf(value.getDefiningOp() == *this || isAmong(value, getInto()),
                   Content::State);
}

/// The results, and the operands that they are tied to.
template <typename OpT>
static bool isUpdated(OpT op, Value value) {
  return value.getDefiningOp() == op ||
         isAmong(value, OperandRange(op.getDpsInitsMutable()));
}

OpOperand *AttendOp::getTiedOperand(OpResult result) {
  return isFirst() ? nullptr : &getStateMutable()[result.getResultNumber()];
}

std::optional<MutableOperandRange> AttendOp::getResultMemory() {
  if (isFirst() || isLast())
    return getIntoMutable();
  return std::nullopt;
}

/// As of queries, but that heads have the dimension of values.
SizeSource AttendOp::getSizeSource(OpResult result, int64_t dim) {
  return result.getResultNumber() == 0 ? SizeSource{getQuery(), dim}
                                       : rowSize(getQuery(), dim);
}

Content AttendOp::getContent(Value value) {
  bool isMade = value.getDefiningOp() == *this || isAmong(value, getInto());
  return contentIf(isAmong(value, getState()) || (isMade && !isLast()),
                   Content::State);
}

/// A state ends with an op that is last.
bool AttendOp::isOnlyRead(OpOperand &operand) {
  return !isAmong(operand.get(), getState());
}

Content MergeOp::getContent(Value value) {
  return contentIf(isUpdated(*this, value) || isAmong(value, getFrom()),
                   Content::State);
}

/// out lives where o did, lse where m did, the largest scores where l did.
OpOperand *FinalizeOp::getTiedOperand(OpResult result) {
  return &(*this)->getOpOperand(result.getResultNumber());
}

SizeSource FinalizeOp::getSizeSource(OpResult result, int64_t dim) {
  return {getOperand(result.getResultNumber()), dim};
}

Content FinalizeOp::getContent(Value value) {
  Value state[] = {getO(), getM(), getL()};
  return contentIf(isAmong(value, state), Content::State);
}

/// l ends here, together with o and m.
bool FinalizeOp::isOnlyRead(OpOperand &) { return false; }

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

Content ZeroOp::getContent(Value value) {
  return contentIf(value == getZero() || value == getInto(), Content::Gradient);
}

SizeSource DeltaOp::getSizeSource(OpResult, int64_t dim) {
  return rowSize(getOut(), dim);
}

Content AttendGradOp::getContent(Value value) {
  return contentIf(isUpdated(*this, value), Content::Gradient);
}

Content AddOp::getContent(Value value) {
  return contentIf(isUpdated(*this, value) || value == getB(),
                   Content::Gradient);
}

//===----------------------------------------------------------------------===//
// Stored scores
//===----------------------------------------------------------------------===//

SizeSource ScoresOp::getSizeSource(OpResult, int64_t dim) {
  return dim == 3 ? SizeSource{getKeyExtent()} : rowSize(getQuery(), dim);
}

Content ScoresOp::getContent(Value value) {
  return contentIf(value == getScores() || value == getInto(), Content::State);
}

Content ScoreOp::getContent(Value value) {
  return contentIf(isUpdated(*this, value), Content::State);
}

Content SoftmaxOp::getContent(Value) { return Content::State; }

Content WeighOp::getContent(Value value) {
  return contentIf(isUpdated(*this, value), Content::State);
}

Content ProbabilitiesOp::getContent(Value value) {
  return contentIf(isUpdated(*this, value), Content::State);
}

Content WeighGradOp::getContent(Value value) {
  if (value == getWeights() || value == getNewWeights())
    return Content::State;
  return contentIf(isUpdated(*this, value), Content::Gradient);
}

Content ScoreGradOp::getContent(Value value) {
  if (value == getWeights())
    return Content::State;
  return contentIf(isUpdated(*this, value), Content::Gradient);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void ring::addStepEffects(AttendOp op, Effects &effects) {
  bool isTied = !op.getResultMemory();
  addEffects(effects, op->getOpOperands(),
             isTied ? op.getState() : OperandRange(op.getInto()));
}

void ring::addStepEffects(StepOpInterface step, Effects &effects) {
  SmallVector<Value> written;
  if (std::optional<MutableOperandRange> memory = step.getResultMemory())
    llvm::append_range(written, OperandRange(*memory));
  else
    llvm::append_range(written, OperandRange(cast<DestinationStyleOpInterface>(
                                                 step.getOperation())
                                                 .getDpsInitsMutable()));
  addEffects(effects, step->getOpOperands(), written);
}
