//===- Reuse.cpp - buffers that are used again ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Buffers/Reuse.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace burst;

namespace {

/// Where in a block values are last used, by the numbers of its ops.
class LastUses {
public:
  explicit LastUses(Block &block) : block(block) {
    for (auto [number, op] : llvm::enumerate(block))
      numbers[&op] = static_cast<int64_t>(number);
  }

  static constexpr int64_t never = std::numeric_limits<int64_t>::max();

  int64_t numberOf(Operation *op) const { return numbers.at(op); }
  /// The last use of all that an op makes; `never` where it has no end that is
  /// known.
  int64_t ofResults(Operation *op);

private:
  int64_t of(Value tensor);
  int64_t of(OpOperand &use);
  int64_t ofReceived(Value token);

  Block &block;
  llvm::DenseMap<Operation *, int64_t> numbers;
  llvm::DenseMap<Value, int64_t> known;
};

} // namespace

/// What is sent is in use until the transfer is waited for; a step that updates
/// its operand keeps the memory.
int64_t LastUses::of(OpOperand &use) {
  Operation *user = use.getOwner();
  if (user->getBlock() != &block)
    return never;
  if (auto start = dyn_cast<ring::TransferOpInterface>(user)) {
    int64_t last = numberOf(user);
    for (Operation *wait : start.getToken().getUsers())
      last =
          std::max(last, wait->getBlock() == &block ? numberOf(wait) : never);
    return last;
  }
  if (auto step = dyn_cast<ring::StepOpInterface>(user)) {
    OpResult tied = step.getTiedResult(use);
    return tied ? std::max(numberOf(user), of(tied)) : numberOf(user);
  }
  return isa<tensor::DimOp>(user) ? numberOf(user) : never;
}

int64_t LastUses::of(Value tensor) {
  if (auto found = known.find(tensor); found != known.end())
    return found->second;
  int64_t last = numberOf(tensor.getDefiningOp());
  for (OpOperand &use : tensor.getUses())
    last = std::max(last, of(use));
  return known[tensor] = last;
}

int64_t LastUses::ofReceived(Value token) {
  int64_t last = 0;
  for (Operation *wait : token.getUsers()) {
    if (!isa<ring::WaitOp>(wait) || wait->getBlock() != &block)
      return never;
    for (Value tensor : wait->getResults())
      last = std::max(last, of(tensor));
  }
  return token.use_empty() ? never : last;
}

int64_t LastUses::ofResults(Operation *op) {
  if (auto start = dyn_cast<ring::TransferOpInterface>(op))
    return ofReceived(start.getToken());
  int64_t last = numberOf(op);
  for (Value result : op->getResults())
    last = std::max(last, of(result));
  return last;
}

/// Whether an op has buffers of its own that others may use behind it: what an
/// all-to-all brings to attend, and what steps make.
static bool isMaker(Operation &op) {
  if (auto start = dyn_cast<ring::TransferOpInterface>(op))
    return start.getRoute() == ring::Route::ToHeads;
  auto step = dyn_cast<ring::StepOpInterface>(op);
  return step && step.getResultMemory() && op.getNumResults() != 0;
}

/// The argument that says how large a tensor is where its type does not.
static Value argumentOf(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    Value behind = ring::behindAllToAll(tensor);
    auto step = dyn_cast<ring::StepOpInterface>(op);
    if (auto take = dyn_cast<ring::TakeHeadsOp>(op)) {
      behind = take.getTensor();
    } else if (step) {
      auto result = cast<OpResult>(tensor);
      OpOperand *tied = step.getTiedOperand(result);
      behind = tied ? tied->get() : step.getSizeSource(result, 0).value;
    }
    if (behind == tensor)
      return tensor;
    tensor = behind;
  }
  return tensor;
}

/// Whether two makers need as much memory, result by result.
static bool areAlike(Operation *x, Operation *y) {
  auto areOfOne = [](ValueRange a, ValueRange b) {
    return llvm::equal(a, b, [](Value own, Value other) {
      return argumentOf(own) == argumentOf(other);
    });
  };
  if (x->getName() != y->getName() ||
      x->getResultTypes() != y->getResultTypes())
    return false;
  auto start = dyn_cast<ring::TransferOpInterface>(x);
  if (!start)
    return areOfOne(x->getResults(), y->getResults());
  auto other = cast<ring::TransferOpInterface>(y);
  return start.getExtent() == other.getExtent() &&
         start.getLayout() == other.getLayout() &&
         areOfOne(start.getTensors(), other.getTensors());
}

llvm::DenseMap<Operation *, Operation *>
burst::findReusedBuffers(func::FuncOp program) {
  llvm::DenseMap<Operation *, Operation *> reused;
  Block &block = program.getBody().front();
  if (block.getOps<ring::TakeHeadsOp>().empty())
    return reused;
  LastUses lastUses(block);
  struct Buffers {
    Operation *first;
    int64_t inUseUntil;
  };
  SmallVector<Buffers> all;
  for (Operation &op : block) {
    if (!isMaker(op))
      continue;
    int64_t end = lastUses.ofResults(&op), begin = lastUses.numberOf(&op);
    if (end == LastUses::never)
      continue;
    auto *free = llvm::find_if(all, [&](const Buffers &buffers) {
      return buffers.inUseUntil < begin && areAlike(buffers.first, &op);
    });
    if (free == all.end()) {
      all.push_back({&op, end});
      continue;
    }
    reused[&op] = free->first;
    free->inUseUntil = end;
  }
  return reused;
}
