//===- NumberHeads.cpp - heads of ranks, numbered among all ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Heads.h"
#include "passes/Passes.h"

#include "dialect/Burst/Emit.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace burst {
#define GEN_PASS_DEF_NUMBERHEADSPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Attentions count heads as if each rank had as many as it has room for. Those
/// numbers lie in parts, of ranks that the clause `heads` tells apart, and in
/// these in groups; behind the heads of a group there is room, and behind the
/// groups of a part room of ranks without heads.
struct Numbers {
  int64_t parts;
  int64_t groups;
  int64_t heads; ///< of a group
  int64_t room;  ///< of a group, heads and more
  int64_t width; ///< of a part

  bool areThoseOfAll() const { return parts * width == numHeads(); }
  int64_t headsOfPart() const { return groups * heads; }
  int64_t numHeads() const { return parts * headsOfPart(); }
  /// Whether all room lies behind all heads, whose numbers are right as they
  /// are.
  bool isRoomLast() const { return parts == 1 && groups == 1; }

  Value before(Emit e, Value number) const;
  Value isHead(Emit e, Value number) const;
};

} // namespace

static Value least(Emit e, Value a, int64_t b) {
  return arith::MinUIOp::create(e.builder, e.loc, a, e.index(b));
}

/// How many heads have smaller numbers: of a head, its number among all.
Value Numbers::before(Emit e, Value number) const {
  Value inPart = parts == 1 ? number : e.mod(number, width);
  Value count;
  if (groups == 1) {
    count = least(e, inPart, heads);
  } else {
    count = e.add(e.mul(e.div(inPart, room), e.index(heads)),
                  least(e, e.mod(inPart, room), heads));
    if (groups * room != width)
      count = least(e, count, headsOfPart());
  }
  if (parts == 1)
    return count;
  return e.add(e.mul(e.div(number, width), e.index(headsOfPart())), count);
}

/// Whether a number is that of a head.
Value Numbers::isHead(Emit e, Value number) const {
  auto isBelow = [&](Value value, int64_t bound) {
    return e.compare(arith::CmpIPredicate::slt, value, e.index(bound));
  };
  Value inPart = parts == 1 ? number : e.mod(number, width);
  if (groups == 1)
    return isBelow(inPart, heads);
  Value is = isBelow(e.mod(inPart, room), heads);
  return groups * room == width ? is
                                : e.both(is, isBelow(inPart, groups * room));
}

/// Those of the queries of an attention behind an all-to-all; none where there
/// is no all-to-all.
static std::optional<Numbers> numbersOf(AttentionInterface op) {
  auto unshard = op.getQuery().getDefiningOp<UnshardOp>();
  auto start = unshard ? ring::allToAllOf(unshard.getShard())
                       : ring::TransferOpInterface();
  if (!start)
    return std::nullopt;
  auto headsOf = [](Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return type.getDimSize(ring::headsDimOf(type));
  };
  auto members = static_cast<int64_t>(start.getMembers());
  auto groups = static_cast<int64_t>(start.getGroups());
  int64_t most = headsOf(unshard.getShard());
  return Numbers{numParts(op, op.getHeadsAttr()) / members, groups,
                 headsOf(ring::behindAllToAll(unshard.getShard())) / groups,
                 members / groups * most, members * most};
}

/// The terminator of a region over so many indices and what the mask captures;
/// one that yields `truth` where there is none.
static Operation *yieldOf(AttentionInterface op, Region &region,
                          int64_t indices, ArrayRef<bool> truth) {
  if (!region.empty())
    return region.front().getTerminator();
  OpBuilder builder(op.getContext());
  Emit e{builder, op.getLoc()};
  Block &block = region.emplaceBlock();
  SmallVector<Type> types(indices, builder.getIndexType());
  for (Value capture : op.getMaskCaptures())
    types.push_back(capture.getType());
  block.addArguments(types, SmallVector<Location>(types.size(), op.getLoc()));
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> yielded;
  for (bool value : truth)
    yielded.push_back(e.truth(value));
  return YieldOp::create(builder, op.getLoc(), yielded).getOperation();
}

/// What is yielded in place `number` holds where also `condition` does.
static void narrow(Operation *yield, unsigned number,
                   function_ref<Value(Emit, Block &)> condition) {
  OpBuilder builder(yield);
  Emit e{builder, yield->getParentOp()->getLoc()};
  Value holds = condition(e, *yield->getBlock());
  yield->setOperand(number, e.both(yield->getOperand(number), holds));
}

/// The mask keeps heads alone, and its bounds know.
static void maskRoom(AttentionInterface op, const Numbers &numbers) {
  bool hadMask = !op.getMask().empty();
  narrow(yieldOf(op, op.getMask(), 6, {true}), 0, [&](Emit e, Block &block) {
    return numbers.isHead(e, block.getArgument(1));
  });
  Operation *bounds = yieldOf(op, op.getBounds(), 10, {true, !hadMask});
  if (numbers.isRoomLast()) {
    auto isFront = [&](arith::CmpIPredicate predicate, unsigned head) {
      return [&numbers, predicate, head](Emit e, Block &block) {
        return e.compare(predicate, block.getArgument(head),
                         e.index(numbers.numHeads()));
      };
    };
    narrow(bounds, 0, isFront(arith::CmpIPredicate::slt, 2));
    narrow(bounds, 1, isFront(arith::CmpIPredicate::sle, 3));
    return;
  }
  auto countOf = [&](Emit e, Block &block) {
    return e.sub(numbers.before(e, block.getArgument(3)),
                 numbers.before(e, block.getArgument(2)));
  };
  narrow(bounds, 0, [&](Emit e, Block &block) {
    return e.compare(arith::CmpIPredicate::ne, countOf(e, block), e.index(0));
  });
  narrow(bounds, 1, [&](Emit e, Block &block) {
    return e.compare(arith::CmpIPredicate::eq, countOf(e, block),
                     e.sub(block.getArgument(3), block.getArgument(2)));
  });
}

namespace {
struct NumberHeads : burst::impl::NumberHeadsPassBase<NumberHeads> {
  void runOnOperation() override {
    getOperation().walk([](AttentionInterface op) {
      std::optional<Numbers> numbers = numbersOf(op);
      if (!numbers || numbers->areThoseOfAll())
        return;
      if (!numbers->isRoomLast())
        renumberHeads(op, [&](Emit e, Value number, bool) {
          return numbers->before(e, number);
        });
      maskRoom(op, *numbers);
    });
  }
};
} // namespace
