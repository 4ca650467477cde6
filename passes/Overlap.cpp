//===- Overlap.cpp - transfers before computation -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_OVERLAPPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

static bool isIndexComputation(Operation *op) {
  return isMemoryEffectFree(op) &&
         llvm::all_of(op->getResultTypes(),
                      [](Type type) { return type.isIntOrIndexOrFloat(); });
}

/// The number of the channel of the transfer that a token is of, also of one
/// that a loop carries; none where that cannot be seen.
static std::optional<int64_t> channelOf(Value token) {
  if (auto start = token.getDefiningOp<ring::TransferOpInterface>())
    return start.getChannel().getIndex();
  if (auto loop = token.getDefiningOp<scf::ForOp>())
    return channelOf(loop.getTiedLoopInit(cast<OpResult>(token))->get());
  auto argument = dyn_cast<BlockArgument>(token);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : nullptr;
  if (!loop)
    return std::nullopt;
  return channelOf(loop.getTiedLoopInit(argument)->get());
}

/// Whether `start` may come in front of what an op does: it has no effects, or
/// those of a loop or a wait, of which all transfers have channels of other
/// numbers.
static bool mayPass(ring::TransferOpInterface start, Operation *op) {
  if (isMemoryEffectFree(op))
    return true;
  if (!isa<scf::ForOp, ring::WaitOp>(op))
    return false;
  int64_t channel = start.getChannel().getIndex();
  auto isElsewhere = [&](Operation *inner) {
    if (auto wait = dyn_cast<ring::WaitOp>(inner)) {
      std::optional<int64_t> other = channelOf(wait.getToken());
      return other && *other != channel;
    }
    if (auto other = dyn_cast<ring::TransferOpInterface>(inner))
      return other.getChannel().getIndex() != channel;
    return inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
           isMemoryEffectFree(inner);
  };
  return !op->walk([&](Operation *inner) {
              return isElsewhere(inner) ? WalkResult::advance()
                                        : WalkResult::interrupt();
            }).wasInterrupted();
}

/// Whether `op` uses what the transfer of the turn before has brought into the
/// buffer of `start`, whose token a loop carries. Where it is that which
/// `start` sends, there are two buffers.
static bool isOfTurnBefore(ring::TransferOpInterface start, Operation *op) {
  for (OpOperand &use : start.getToken().getUses()) {
    auto loop = dyn_cast<scf::ForOp>(use.getOwner()->getParentOp());
    if (!loop || !isa<scf::YieldOp>(use.getOwner()))
      continue;
    for (Operation *user :
         loop.getRegionIterArg(use.getOperandNumber()).getUsers())
      if (!llvm::is_contained(user->getUsers(), start.getOperation()) &&
          llvm::any_of(user->getUsers(),
                       [&](Operation *other) { return op->isAncestor(other); }))
        return true;
  }
  return false;
}

/// Moves `start` up as far as it may go, and with it the index computations
/// that it needs: up to what makes its tensors, to another transfer, or to what
/// uses its buffer.
static void hoist(ring::TransferOpInterface start) {
  SmallVector<Operation *> needed{start};
  Operation *target = start;
  for (Operation *above = start->getPrevNode(); above;
       above = above->getPrevNode()) {
    // Also by what stands in the regions of a needed op.
    bool isNeeded = llvm::any_of(needed, [&](Operation *op) {
      return llvm::any_of(above->getUsers(), [&](Operation *user) {
        return op->isAncestor(user);
      });
    });
    if (isNeeded && isIndexComputation(above))
      needed.push_back(above);
    else if (isNeeded || !mayPass(start, above) || isOfTurnBefore(start, above))
      break;
    else
      target = above;
  }
  for (Operation *op : llvm::reverse(needed))
    if (target->isBeforeInBlock(op))
      op->moveBefore(target);
}

//===----------------------------------------------------------------------===//
// Chunks of heads
//===----------------------------------------------------------------------===//

/// The chunk of heads that an all-to-all brings; none where it is no chunk.
static std::optional<uint64_t> chunkOf(ring::TransferOpInterface start) {
  auto take = start.getTensors().front().getDefiningOp<ring::TakeHeadsOp>();
  return take ? std::optional(take.getChunk()) : std::nullopt;
}

/// Heads of the next chunk come while those of this one are attended, and no
/// earlier, so that what they come in are two buffers.
static void bringNextChunks(ArrayRef<ring::TransferOpInterface> starts) {
  SmallVector<Operation *> waits; // the first of each chunk
  auto moveUp = [](Operation *op, Operation *target) {
    if (target->isBeforeInBlock(op))
      op->moveBefore(target);
  };
  for (ring::TransferOpInterface start : starts) {
    std::optional<uint64_t> chunk = chunkOf(start);
    if (!chunk)
      continue;
    waits.resize(std::max<size_t>(waits.size(), *chunk + 1));
    for (Operation *wait : start.getToken().getUsers())
      if (!waits[*chunk] || wait->isBeforeInBlock(waits[*chunk]))
        waits[*chunk] = wait;
    Operation *target = *chunk == 0 ? nullptr : waits[*chunk - 1];
    if (!target)
      continue;
    for (Value tensor : start.getTensors())
      if (Operation *take = tensor.getDefiningOp())
        moveUp(take, target);
    moveUp(start, target);
  }
}

/// What was made of a chunk is under way until the next one has been attended.
static void awaitChunksLate(ArrayRef<ring::TransferOpInterface> starts) {
  for (ring::TransferOpInterface start : starts) {
    if (start.getRoute() != ring::Route::ToSequence ||
        !start.getToken().hasOneUse())
      continue;
    Operation *wait = *start.getToken().user_begin();
    if (!llvm::all_of(wait->getUsers(), llvm::IsaPred<ring::JoinHeadsOp>))
      continue;
    for (Operation *behind = wait->getNextNode(); behind;
         behind = behind->getNextNode())
      if (auto next = dyn_cast<ring::TransferOpInterface>(behind);
          next && next.getRoute() == ring::Route::ToSequence) {
        wait->moveBefore(behind);
        break;
      }
  }
}

//===----------------------------------------------------------------------===//
// What the next turn needs late
//===----------------------------------------------------------------------===//

namespace {
/// A transfer that a loop waits for at the end of a turn, though the next turn
/// needs what it brings only behind an attend.
struct Carried {
  ring::WaitOp before; ///< what the first turn is given
  ring::WaitOp inside;
  unsigned first; ///< carried value; others follow in order
};
} // namespace

/// The first of the ops of `block` that use any of the values, themselves or in
/// their regions; null where none does.
static Operation *firstUser(ValueRange values, Block *block) {
  Operation *first = nullptr;
  for (Value value : values)
    for (Operation *user : value.getUsers()) {
      Operation *above = block->findAncestorOpInBlock(*user);
      if (above && (!first || above->isBeforeInBlock(first)))
        first = above;
    }
  return first;
}

/// Whether products are taken in front of `op` in its block, or in a loop
/// there.
static bool isBehindAttend(Operation *op) {
  for (Operation *above = op->getPrevNode(); above;
       above = above->getPrevNode())
    if (above
            ->walk([](Operation *inner) {
              return isa<ring::AttendLikeOpInterface, ring::WeighGradOp,
                         ring::ScoreGradOp>(inner)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted())
      return true;
  return false;
}

static std::optional<Carried> findCarried(scf::ForOp loop, ring::WaitOp wait) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  unsigned count = wait.getNumResults();
  if (count == 0 || !wait.getResult(0).hasOneUse() ||
      *wait.getResult(0).user_begin() != yield)
    return std::nullopt;
  unsigned first = wait.getResult(0).use_begin()->getOperandNumber();
  auto before = loop.getInits()[first].getDefiningOp<ring::WaitOp>();
  if (!before || before.getToken().getType() != wait.getToken().getType())
    return std::nullopt;
  for (unsigned i = 0; i < count; ++i)
    if (!wait.getResult(i).hasOneUse() || !before.getResult(i).hasOneUse() ||
        yield.getOperand(first + i) != wait.getResult(i) ||
        loop.getInits()[first + i] != before.getResult(i))
      return std::nullopt;
  ValueRange arguments = loop.getRegionIterArgs();
  Operation *user = firstUser(arguments.slice(first, count), loop.getBody());
  if (!user || !isBehindAttend(user))
    return std::nullopt;
  return Carried{before, wait, first};
}

/// Waits for `token` in front of the first use of what it brings.
static void waitLate(Value token, ValueRange brought, Operation *otherwise) {
  Operation *user = firstUser(brought, otherwise->getBlock());
  OpBuilder builder(user ? user : otherwise);
  auto wait =
      ring::WaitOp::create(builder, token.getLoc(), brought.getTypes(), token);
  for (auto [old, result] : llvm::zip_equal(brought, wait.getTensors()))
    old.replaceAllUsesWith(result);
}

/// Carries the token to the next turn in place of what it brings.
static scf::ForOp carryToken(scf::ForOp loop, const Carried &carried) {
  unsigned first = carried.first,
           count = Carried(carried).inside.getNumResults();
  auto without = [&](ValueRange values) {
    SmallVector<Value> rest(values.take_front(first));
    llvm::append_range(rest, values.drop_front(first + count));
    return rest;
  };
  OpBuilder builder(loop);
  ring::WaitOp before = carried.before, inside = carried.inside;
  SmallVector<Value> inits = without(loop.getInits());
  inits.push_back(before.getToken());
  auto created =
      scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                         loop.getUpperBound(), loop.getStep(), inits);
  Block *body = created.getBody();
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(created.getInductionVar());
  ValueRange old = loop.getRegionIterArgs(), made = created.getRegionIterArgs();
  for (auto [from, to] : llvm::zip_equal(without(old), made.drop_back()))
    from.replaceAllUsesWith(to);
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  waitLate(made.back(), old.slice(first, count), yield);
  SmallVector<Value> yields = without(yield.getOperands());
  yields.push_back(inside.getToken());
  yield->setOperands(yields);
  ValueRange results = loop.getResults();
  for (auto [from, to] :
       llvm::zip_equal(without(results), created.getResults().drop_back()))
    from.replaceAllUsesWith(to);
  waitLate(created.getResults().back(), results.slice(first, count),
           loop->getNextNode());
  inside.erase();
  loop.erase();
  before.erase();
  return created;
}

static void waitInNextTurn(scf::ForOp loop) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto wait : loop.getBody()->getOps<ring::WaitOp>())
      if (std::optional<Carried> carried = findCarried(loop, wait)) {
        loop = carryToken(loop, *carried);
        changed = true;
        break;
      }
  }
}

namespace {
struct Overlap : burst::impl::OverlapPassBase<Overlap> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      waitInNextTurn(loop);
    SmallVector<ring::TransferOpInterface> starts;
    getOperation().walk(
        [&](ring::TransferOpInterface start) { starts.push_back(start); });
    for (ring::TransferOpInterface start : starts)
      hoist(start);
    bringNextChunks(starts);
    awaitChunksLate(starts);
  }
};
} // namespace
