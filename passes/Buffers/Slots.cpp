//===- Slots.cpp - how many buffers a loop alternates between -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Buffers/Slots.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace burst;

static scf::ForOp loopOf(Operation *op) {
  return dyn_cast<scf::ForOp>(op->getParentOp());
}

/// The values of the loop's next turn that `value` becomes.
static SmallVector<Value> carriedAs(Value value, scf::ForOp loop) {
  SmallVector<Value> arguments;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  for (OpOperand &use : value.getUses())
    if (use.getOwner() == yield)
      arguments.push_back(loop.getRegionIterArg(use.getOperandNumber()));
  return arguments;
}

/// Whether all uses of a value stand in front of `op` in its block.
static bool isUsedUp(Value value, Operation *op) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    Operation *above = op->getBlock()->findAncestorOpInBlock(*user);
    return above && above->isBeforeInBlock(op);
  });
}

int64_t burst::numSlots(ring::TransferOpInterface start) {
  scf::ForOp loop = loopOf(start);
  if (!loop)
    return 1;
  SmallVector<Value> brought; // in the turn before
  auto add = [&](ring::WaitOp wait, bool isOfThisTurn) {
    for (Value tensor : wait.getTensors()) {
      if (isOfThisTurn)
        llvm::append_range(brought, carriedAs(tensor, loop));
      else
        brought.push_back(tensor);
    }
  };
  for (Operation *user : start.getToken().getUsers())
    if (auto wait = dyn_cast<ring::WaitOp>(user))
      add(wait, true);
  for (Value token : carriedAs(start.getToken(), loop)) {
    brought.push_back(token);
    for (Operation *user : token.getUsers())
      if (auto wait = dyn_cast<ring::WaitOp>(user))
        add(wait, false);
  }
  return llvm::all_of(brought,
                      [&](Value value) { return isUsedUp(value, start); })
             ? 1
             : 2;
}

ring::TransferOpInterface
burst::predecessorOf(ring::TransferOpInterface start) {
  scf::ForOp loop = loopOf(start);
  if (!loop)
    return {};
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  auto initOf = [&](Value value) {
    auto found = llvm::find(yield.getOperands(), value);
    return found == yield.getOperands().end()
               ? Value()
               : loop.getInits()[std::distance(yield.getOperands().begin(),
                                               found)];
  };
  if (Value token = initOf(start.getToken()))
    return token.getDefiningOp<ring::TransferOpInterface>();
  ring::TransferOpInterface first;
  for (Operation *user : start.getToken().getUsers()) {
    auto wait = dyn_cast<ring::WaitOp>(user);
    if (!wait)
      continue;
    for (OpResult brought : wait->getResults()) {
      Value init = initOf(brought);
      auto before = init && init.hasOneUse()
                        ? init.getDefiningOp<ring::WaitOp>()
                        : ring::WaitOp();
      if (!before || before->getResult(brought.getResultNumber()) != init)
        return {};
      auto found = before.getToken().getDefiningOp<ring::TransferOpInterface>();
      if (!found || (first && first != found) ||
          found.getRoute() != ring::Route::Shift ||
          found.getChannel() != start.getChannel() ||
          found.getToken().getType() != start.getToken().getType())
        return {};
      first = found;
    }
  }
  return first;
}

ring::TransferOpInterface burst::successorOf(ring::TransferOpInterface first) {
  for (Operation &op : llvm::make_range(std::next(first->getIterator()),
                                        first->getBlock()->end()))
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (auto start : loop.getBody()->getOps<ring::TransferOpInterface>())
        if (predecessorOf(start) == first)
          return start;
  return {};
}

static bool isOnlyRead(OpOperand &use) {
  if (auto step = dyn_cast<ring::StepOpInterface>(use.getOwner()))
    return step.isOnlyRead(use);
  return isa<ring::TransferOpInterface, tensor::DimOp>(use.getOwner());
}

SmallVector<SmallVector<OpOperand *>> burst::updatingUses(Operation *op) {
  SmallVector<SmallVector<OpOperand *>> groups;
  for (OpOperand &use : op->getUses()) {
    if (isOnlyRead(use))
      continue;
    auto *group = llvm::find_if(groups, [&](auto &others) {
      return op->getNumResults() > 1 &&
             others.front()->getOwner() == use.getOwner();
    });
    if (group == groups.end())
      groups.push_back({&use});
    else
      group->push_back(&use);
  }
  return groups;
}

OpOperand *burst::updatingUse(Value tensor) {
  OpOperand *found = nullptr;
  for (OpOperand &use : tensor.getUses()) {
    if (isOnlyRead(use))
      continue;
    if (found)
      return nullptr;
    found = &use;
  }
  return found;
}

/// Whether a tensor is what became of a softmax state.
static bool isFinal(Value tensor) {
  auto attend = tensor.getDefiningOp<ring::AttendOp>();
  return tensor.getDefiningOp<ring::FinalizeOp>() ||
         (attend && attend.isLast());
}

bool burst::isReturnedInPlace(OpOperand &use) {
  Value tensor = use.get();
  // What comes from other ranks is as large as the result that it is.
  bool isReceived =
      isa_and_nonnull<ring::WaitOp, ring::JoinHeadsOp>(tensor.getDefiningOp());
  auto isReturn = [&](Operation *user) { return user == use.getOwner(); };
  if (!isFinal(tensor) &&
      !(isReceived && llvm::all_of(tensor.getUsers(), isReturn)))
    return tensor.hasOneUse();
  auto before =
      use.getOwner()->getOperands().take_front(use.getOperandNumber());
  return !llvm::is_contained(before, tensor);
}

Value burst::updated(OpOperand &use) {
  Operation *user = use.getOwner();
  if (auto step = dyn_cast<ring::StepOpInterface>(user))
    return step.getTiedResult(use);
  if (auto loop = dyn_cast<scf::ForOp>(user))
    // Updated in place, it is followed behind the loop.
    return loop.getTiedLoopRegionIterArg(&use) ? loop.getTiedLoopResult(&use)
                                               : Value();
  return {};
}

std::optional<CarriedSlice> burst::sliceOf(Operation *fresh) {
  scf::ForOp loop = loopOf(fresh);
  Value slice = fresh->getOperand(0);
  if (!loop)
    return std::nullopt;
  // It, or the token of what brings it, is carried.
  auto wait = slice.getDefiningOp<ring::WaitOp>();
  auto carried = dyn_cast<BlockArgument>(wait ? wait.getToken() : slice);
  if (!carried || carried.getOwner() != loop.getBody() ||
      carried.getArgNumber() == 0)
    return std::nullopt;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  Value next = yield.getOperand(carried.getArgNumber() - 1);
  unsigned result = 0;
  if (wait) {
    result = cast<OpResult>(slice).getResultNumber();
  } else {
    wait = next.getDefiningOp<ring::WaitOp>();
    if (!wait)
      return std::nullopt;
    result = cast<OpResult>(next).getResultNumber();
    next = wait.getToken();
  }
  auto start = next.getDefiningOp<ring::TransferOpInterface>();
  if (!start || start.getRoute() != ring::Route::Shift)
    return std::nullopt;
  auto owner = llvm::find(yield.getOperands(), start.getReceivedOwner());
  if (owner == yield.getOperands().end())
    return std::nullopt;
  unsigned number = std::distance(yield.getOperands().begin(), owner);
  return CarriedSlice{slice, loop.getRegionIterArg(number), start,
                      start.getDims()[result]};
}

int64_t burst::numSlots(Operation *fresh) {
  scf::ForOp loop = loopOf(fresh);
  if (!loop)
    return 1;
  for (Value tensor = fresh->getResult(0); tensor;) {
    for (Operation *user : tensor.getUsers())
      if (auto start = dyn_cast<ring::TransferOpInterface>(user);
          start && !carriedAs(start.getToken(), loop).empty())
        return 2;
    OpOperand *use = updatingUse(tensor);
    tensor = use ? updated(*use) : Value();
  }
  return 1;
}
