//===- RotateOp.cpp - shards that go round the ranks ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace burst;
using namespace burst::ring;

/// Those of a rotate are numbered from its own on.
static constexpr int64_t maxChannels = ring::exchangeChannel + 3;

SmallVector<Region *> RotateOp::getLoopRegions() { return {&getBody()}; }

// The interface is verified before the op: of a region that is too short it is
// given what there is.

Block::BlockArgListType RotateOp::getRegionIterArgs() {
  Block::BlockArgListType all = getBody().getArguments();
  size_t first = std::min(all.size(), 1 + getTensors().size());
  return all.slice(first, std::min(all.size() - first, getInits().size()));
}

std::optional<MutableArrayRef<OpOperand>> RotateOp::getYieldedValuesMutable() {
  MutableArrayRef<OpOperand> all =
      getBody().front().getTerminator()->getOpOperands();
  return all.take_front(std::min(all.size(), getInits().size()));
}

std::optional<ResultRange> RotateOp::getLoopResults() {
  return getResults().take_front(
      std::min<size_t>(getNumResults(), getInits().size()));
}

void RotateOp::getAsmBlockArgumentNames(Region &, OpAsmSetValueNameFn setName) {
  setName(getOwner(), "owner");
}

// rotate_c5
LogicalResult RotateOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<RankGroup> group =
      resolveAxes(*this, getChannel().getGrid(), getChannel().getAxes());
  if (failed(group))
    return failure();
  auto stride = static_cast<int64_t>(getStride());
  int64_t parts = getLayout().getParts();
  bool isOfNest = !getDirect() && !getBidirectional() &&
                  (isOuter() || getOperation()->getParentOfType<RotateOp>());
  if (group->size == parts && stride == 1)
    return success();
  if (!isOfNest && stride != 1)
    return emitOpError("is one ring of all ranks, of which neighbours are 1 "
                       "apart, got: stride ")
           << stride;
  if (!isOfNest)
    return verifyChannel(*this, getChannel(), parts);
  if (parts % (group->size * stride) == 0)
    return success();
  return emitOpError("is a ring of ")
         << group->size << " ranks with stride " << stride
         << ", which must divide the " << parts << " parts of its layout";
}

int64_t RotateOp::getNumRanks() {
  return burst::groupOf(burst::lookupGrid(*this, getChannel().getGrid()),
                        getChannel().getAxes())
      .size;
}

LogicalResult RotateOp::verify() {
  // rotate_c1
  if (failed(verifyDims(*this)) || failed(verifyPart(*this, getLayout())))
    return failure();
  // rotate_c4
  if (getBidirectional() ? static_cast<bool>(getStep())
                         : !getReach() != !getStep())
    return emitOpError(getBidirectional()
                           ? "goes in both directions, and takes no step"
                           : "needs a reach and a step, or neither");
  if (failed(verifyReach()))
    return failure();
  // rotate_c6
  if (getDirect() && getReach())
    return emitOpError("is direct, so that nothing has a reach, got one");
  if (getSegments() && !getDirect())
    return emitOpError(
        "has segments that ranks need, which are those of a direct one; "
        "others have a reach");
  // rotate_c7
  auto outer = getOperation()->getParentOfType<RotateOp>();
  if (outer && outer.getBidirectional())
    return emitOpError(
        "is in the region of a bidirectional one, of which there "
        "are no nests");
  if (getBidirectional() && (getDirect() || getRing() || outer))
    return emitOpError("is bidirectional, which is no ")
           << (getDirect() ? "direct one" : "ring of a nest");
  if (static_cast<int64_t>(getChannel().getIndex()) >
      std::numeric_limits<int64_t>::max() - maxChannels)
    return emitOpError("takes several channels, of which the last has no "
                       "number: ")
           << getChannel();
  int64_t parts = getLayout().getParts();
  if (failed(verifyTable(*this, getSegments(), /*isBuffer=*/false,
                         {parts, parts, getLayout().getNumSegments()})))
    return failure();
  // rotate_c3
  if (getNumResults() < getInits().size())
    return emitOpError("gives the ")
           << getInits().size()
           << " values that it carries, and partial results, got: "
           << getNumResults();
  size_t partials = getPartialResults().size();
  ArrayRef<int64_t> dims;
  if (getPartialDims())
    dims = *getPartialDims();
  if (!getJoin() && (partials != 0 || !dims.empty()))
    return emitOpError("has partial results but does not say how they are "
                       "joined: partial add dims [...], or merge");
  if (failed(verifyPartials(*this, partials)))
    return failure();
  if (dims.size() != partials)
    return emitOpError("needs a dimension of each partial result, got: ")
           << dims.size() << " of " << partials;
  for (auto [partial, dim] : llvm::zip_equal(getPartialResults(), dims)) {
    auto type = dyn_cast<RankedTensorType>(partial.getType());
    if (!type || dim < 0 || dim >= type.getRank())
      return emitOpError("names dimension ")
             << dim << " of " << partial.getType();
  }
  return success();
}

LogicalResult RotateOp::verifyReach() {
  if (!getReach())
    return getRing() ? emitOpError("names a ring but has no reach") : success();
  ArrayRef<int64_t> shape = shapedType(getReach()).getShape();
  int64_t parts = getLayout().getParts(),
          segments = getLayout().getNumSegments();
  bool isOfSeveral = getRing() || getBidirectional();
  if (shape.front() == parts && shape.back() == segments &&
      shape.size() == (isOfSeveral ? 3 : 2) &&
      (!getBidirectional() || shape[1] == 2))
    return success();
  return emitOpError("needs a reach of ")
         << parts
         << (getBidirectional() ? "x2x"
             : getRing()        ? "x?x"
                                : "x")
         << segments
         << ", parts and segments of its layout, got: " << getReach().getType();
}

// rotate_c2
LogicalResult RotateOp::verifyRegions() {
  SmallVector<Type> taken{IndexType::get(getContext())}, given;
  llvm::append_range(taken, getTensors().getTypes());
  llvm::append_range(given, getInits().getTypes());
  llvm::append_range(given, getPartialResults().getTypes());
  llvm::append_range(taken, given);
  if (getBody().getArgumentTypes() != TypeRange(taken))
    return emitOpError("region takes ")
           << taken << ", got: " << getBody().getArgumentTypes();
  if (getResultTypes() != TypeRange(given))
    return emitOpError("must give ") << given << ", got: " << getResultTypes();
  return verifyYield(*this, given);
}
