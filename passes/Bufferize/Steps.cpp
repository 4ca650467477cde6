//===- Steps.cpp - steps on buffers ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Bufferize/Bufferizer.h"

using namespace mlir;
using namespace burst;
using namespace burst::bufferizing;

/// Whether a table of flags is known to have none.
static bool isNothing(Value segments) {
  DenseElementsAttr flags;
  return segments && matchPattern(segments, m_Constant(&flags)) &&
         flags.isSplat() && !flags.getSplatValue<bool>();
}

LogicalResult Bufferizer::checkContent(ring::StepOpInterface op,
                                       OpOperand &operand) {
  if (!isTensor(operand.get()))
    return success();
  ring::Content wanted = op.getContent(operand.get());
  if (wanted == ring::Content::Data ||
      wanted == contents.lookup(map(operand.get())))
    return success();
  if (wanted == ring::Content::State)
    return op->emitOpError("takes a state that does not come from a ring.init "
                           "of this program; m has another unit outside of it");
  return op->emitOpError("takes a gradient that does not come from a ring.zero "
                         "of this program");
}

/// States and gradients are updated in place: whatever else uses one is done
/// with it, and it is not under way.
LogicalResult Bufferizer::checkUpdated(Operation *op, ValueRange tensors) {
  for (Value tensor : tensors) {
    bool isState = contents.lookup(map(tensor)) == ring::Content::State;
    StringRef what = isState ? "state" : "gradient";
    for (OpOperand &use : tensor.getUses()) {
      Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (user == op)
        continue;
      if (!user || !user->isBeforeInBlock(op))
        return op->emitOpError("updates a ")
                   .append(what, " that is used behind it too; buffers are "
                                 "updated in place")
                   .attachNote(use.getOwner()->getLoc())
               << "used here";
      auto start = dyn_cast<ring::TransferOpInterface>(use.getOwner());
      if (!start || isNothing(start.getSegments()))
        continue;
      bool isDone =
          llvm::any_of(start.getToken().getUsers(), [&](Operation *waiting) {
            return isa<ring::WaitOp>(waiting) &&
                   waiting->getBlock() == op->getBlock() &&
                   waiting->isBeforeInBlock(op);
          });
      if (!isDone)
        return op->emitOpError("updates a ")
                   .append(what, " that is under way")
                   .attachNote(start.getLoc())
               << "sent here";
    }
  }
  return success();
}

/// Fresh states are alike, and cse takes several for one: each state gets its
/// own again, and so does each gradient.
void Bufferizer::separateStates() {
  SmallVector<Operation *> fresh;
  program.walk([&](ring::StepOpInterface op) {
    if (isFresh(op))
      fresh.push_back(op);
  });
  for (Operation *op : fresh) {
    auto groups = updatingUses(op);
    if (groups.empty())
      continue;
    for (ArrayRef<OpOperand *> group : llvm::drop_begin(groups)) {
      Operation *own = OpBuilder(op).clone(*op);
      for (OpOperand *use : group)
        use->set(own->getResult(cast<OpResult>(use->get()).getResultNumber()));
    }
  }
}

/// Buffers of the slice of this turn, of which `fresh` makes something.
SmallVector<Value> Bufferizer::madeInSlots(Operation *fresh) {
  const Slots &entry = slots[fresh];
  CarriedSlice slice = *sliceOf(fresh);
  Extent sharded{slice.dim, slice.start.getLayout(), slice.owner,
                 slice.start.getExtent()};
  SmallVector<Value> views;
  for (auto [tensor, buffer] :
       llvm::zip_equal(fresh->getResults(), entry.buffers)) {
    auto type = cast<RankedTensorType>(tensor.getType());
    sharded.dim = shardedDim(type, sharded.dim);
    views.push_back(viewSlot(type, sharded, buffer, slotOf(entry.count)));
  }
  return views;
}

/// Buffers of what a step makes, in no loop that sends it on.
SmallVector<Value> Bufferizer::madeResults(ring::StepOpInterface op) {
  SmallVector<Value> memory;
  for (OpResult result : op->getResults())
    memory.push_back(made(op, result, memory));
  return memory;
}

/// The step on buffers, which writes what it makes to `memory`.
Operation *Bufferizer::cloneOnBuffers(ring::StepOpInterface op,
                                      ValueRange memory) {
  Operation *created = Operation::create(
      loc, op->getName(), TypeRange(), map(op->getOperands()),
      op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
      BlockRange(), op->getNumRegions());
  IRMapping inside;
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), created->getRegions()))
    from.cloneInto(&to, inside);
  created->removeDiscardableAttr(ring::apartAttr);
  builder.insert(created);
  if (!memory.empty())
    cast<ring::StepOpInterface>(created).getResultMemory()->assign(memory);
  return created;
}

LogicalResult Bufferizer::convert(ring::StepOpInterface op) {
  SmallVector<Value> updated;
  for (OpOperand &operand : op->getOpOperands()) {
    if (failed(checkContent(op, operand)))
      return failure();
    if (isTensor(operand.get()) && !op.isOnlyRead(operand))
      updated.push_back(operand.get());
  }
  if (failed(checkUpdated(op, updated)))
    return failure();
  SmallVector<Value> memory;
  if (op.getResultMemory())
    memory = slots.contains(op) ? madeInSlots(op) : madeResults(op);
  cloneOnBuffers(op, memory);
  for (OpResult result : op->getResults()) {
    Value buffer = memory.empty() ? map(op.getTiedOperand(result)->get())
                                  : memory[result.getResultNumber()];
    mapping.map(result, buffer);
    contents[buffer] = op.getContent(result);
  }
  return success();
}

/// The caller's memory for the gradient of a table must be as large as that.
/// How large a shard is the runtime knows.
void Bufferizer::requireSizes(unsigned result, Value table) {
  if (!program.getResultAttr(result, ring::partialAttr))
    return;
  auto type = cast<MemRefType>(results[result].getType());
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.isDynamicDim(d))
      ring::RequireOp::create(
          builder, loc, memref::DimOp::create(builder, loc, results[result], d),
          memref::DimOp::create(builder, loc, table, d),
          ("size of dimension " + Twine(d) + " of result " + Twine(result))
              .str());
}
