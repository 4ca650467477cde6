//===- NeedFunction.cpp - what a ring needs of its slices -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Drop/NeedFunction.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

namespace {
/// Arguments of bounds: boxes of batch, heads, queries and keys, then sizes.
enum : uint8_t { Batch, Heads = 2, Queries = 4, Keys = 6, Lengths = 8 };
} // namespace

NeedFunction::Box NeedFunction::segment(Emit &e, Side side, Value owner,
                                        Value index, ValueRange args) {
  bool isQuery = side == Side::Query;
  ring::LayoutAttr layout = isQuery ? attend.queryLayout : attend.keyLayout;
  auto op = ring::SegmentOp::create(e.builder, loc, index, layout, owner,
                                    args[isQuery ? 0 : 1]);
  Value isEmpty =
      e.compare(arith::CmpIPredicate::eq, op.getCount(), e.index(0));
  // Bounds mean nothing for an empty box, and may even trap: ask about another.
  return {e.select(isEmpty, e.index(0), op.getBegin()),
          e.select(isEmpty, e.index(1), op.getEnd()), isEmpty};
}

/// What the bounds are told beside the boxes of both sides.
void NeedFunction::mapSizes(Emit &e, ValueRange args, IRMapping &mapping) {
  Block &bounds = attend.bounds->front();
  Value batch =
      arith::MaxSIOp::create(e.builder, loc, args[2], e.index(1)); // not empty
  auto map = [&](unsigned argument, Value value) {
    mapping.map(bounds.getArgument(argument), value);
  };
  map(Batch, e.index(0));
  map(Batch + 1, batch);
  map(Heads, e.index(0));
  map(Heads + 1, e.index(attend.heads));
  mapping.map(bounds.getArguments().slice(Lengths, 2), args.take_front(2));
  mapping.map(bounds.getArguments().drop_front(Lengths + 2),
              args.drop_front(3));
}

void NeedFunction::mapBox(Side side, const Box &box, IRMapping &mapping) {
  Block &bounds = attend.bounds->front();
  unsigned first = side == Side::Query ? Queries : Keys;
  mapping.map(bounds.getArgument(first), box.begin);
  mapping.map(bounds.getArgument(first + 1), box.end);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

static llvm::SetVector<Operation *> backwardSliceOf(Operation *op) {
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *other) {
    return other->getBlock() == op->getBlock();
  };
  (void)getBackwardSlice(op, &slice, options);
  return slice;
}

/// The side whose box alone says what `op` gives.
std::optional<NeedFunction::Side> NeedFunction::sideOf(Operation *op) {
  bool ofQueries = false, ofKeys = false;
  for (Operation *before : backwardSliceOf(op))
    before->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        auto argument = dyn_cast<BlockArgument>(operand);
        if (!argument || argument.getOwner() != op->getBlock())
          continue;
        unsigned number = argument.getArgNumber();
        ofQueries |= number >= Queries && number < Keys;
        ofKeys |= number >= Keys && number < Lengths;
      }
    });
  if (ofQueries == ofKeys)
    return std::nullopt;
  return ofQueries ? Side::Query : Side::Key;
}

void NeedFunction::makeRanges(OpBuilder &builder, ValueRange args) {
  for (auto range : attend.bounds->getOps<TableRangeOp>())
    if (std::optional<Side> side = sideOf(range)) {
      Ranges &made = ranges[range];
      made.side = *side;
      for (OpResult result : range->getResults())
        made.tables.push_back(rangeTable(builder, result, *side, args));
    }
}

Value NeedFunction::rangeTable(OpBuilder &builder, OpResult range, Side side,
                               ValueRange args) {
  return tensor::GenerateOp::create(
      builder, loc,
      RankedTensorType::get({numOwners(side), numSegments(side)},
                            range.getType()),
      ValueRange(), [&](OpBuilder &inner, Location, ValueRange indices) {
        Emit e{inner, loc};
        IRMapping mapping;
        mapSizes(e, args, mapping);
        mapBox(side, segment(e, side, indices[0], indices[1], args), mapping);
        for (Operation *op : backwardSliceOf(range.getOwner()))
          inner.clone(*op, mapping);
        tensor::YieldOp::create(inner, loc, mapping.lookup(Value(range)));
      });
}

//===----------------------------------------------------------------------===//
// Needs
//===----------------------------------------------------------------------===//

Value NeedFunction::needOf(OpBuilder &builder, ValueRange indices,
                           ValueRange args) {
  Emit e{builder, loc};
  IRMapping mapping;
  Box q = segment(e, Side::Query, indices[0], indices[2], args);
  Box k = segment(e, Side::Key, indices[1], indices[3], args);
  mapBox(Side::Query, q, mapping);
  mapBox(Side::Key, k, mapping);
  mapSizes(e, args, mapping);
  Block &bounds = attend.bounds->front();
  for (Operation &op : bounds.without_terminator()) {
    auto found = ranges.find(&op);
    if (found == ranges.end()) {
      builder.clone(op, mapping);
      continue;
    }
    bool isQuery = found->second.side == Side::Query;
    for (auto [result, table] :
         llvm::zip_equal(op.getResults(), found->second.tables))
      mapping.map(result, e.extract(table, {indices[isQuery ? 0 : 1],
                                            indices[isQuery ? 2 : 3]}));
  }
  Value may = mapping.lookupOrDefault(bounds.getTerminator()->getOperand(0));
  Value some = e.negate(e.either(q.isEmpty, k.isEmpty));
  return e.both(some, may);
}

/// What `next` makes of `begin`, one after the other from `first` up to `end`.
Value NeedFunction::fold(OpBuilder &builder, int64_t first, int64_t end,
                         Value begin, Next next) {
  Emit e{builder, loc};
  auto loop = scf::ForOp::create(
      builder, loc, e.index(first), e.index(end), e.index(1), ValueRange{begin},
      [&](OpBuilder &inner, Location, Value rank, ValueRange made) {
        Value value = next(Emit{inner, loc}, rank, made.front());
        scf::YieldOp::create(inner, loc, value);
      });
  return loop.getResult(0);
}

/// Whether a rank needs a segment of what moves, of an owner.
Value NeedFunction::anyNeed(Emit &e, Value owner, Value rank, Value segment,
                            Value need) {
  if (attend.isGathered()) {
    segment = e.add(e.mul(owner, e.index(numMoving)), segment);
    owner = e.index(0);
  }
  bool keys = attend.movesKeys;
  Value needed;
  for (int64_t x = 0; x < (keys ? numA : numB); ++x) {
    Value one = keys ? e.extract(need, {rank, owner, e.index(x), segment})
                     : e.extract(need, {owner, rank, segment, e.index(x)});
    needed = needed ? e.either(needed, one) : one;
  }
  return needed;
}

/// Which segments of an owner the rank at a distance needs.
Value NeedFunction::segmentTable(OpBuilder &builder, Value need) {
  auto type =
      RankedTensorType::get({parts, parts, numMoving}, builder.getI1Type());
  return tensor::GenerateOp::create(
      builder, loc, type, ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange at) {
        Emit e{inner, loc};
        Value rank = e.mod(e.add(at[0], at[1]), parts);
        Value isOwn = e.compare(arith::CmpIPredicate::eq, at[1], e.index(0));
        tensor::YieldOp::create(
            inner, loc, e.either(isOwn, anyNeed(e, at[0], rank, at[2], need)));
      });
}

/// Whether a segment is needed where it comes to `far` places ahead: indices
/// are those of a reach.
Value NeedFunction::needAhead(Emit &e, Level level, ValueRange indices,
                              Value far, Value need) {
  Value owner = indices.front(), segment = indices.back();
  int64_t inner = attend.innerRanks;
  switch (level) {
  case Level::Whole:
    return anyNeed(e, owner, e.mod(e.add(owner, far), parts), segment, need);
  case Level::Outer: { // by any rank of that inner ring
    Value first = e.sub(owner, e.mod(owner, inner));
    first = e.mod(e.add(first, e.mul(far, e.index(inner))), parts);
    return fold(e.builder, 0, inner, e.truth(false),
                [&](Emit at, Value place, Value any) {
                  return at.either(any, anyNeed(at, owner, at.add(first, place),
                                                segment, need));
                });
  }
  case Level::Inner: {
    Value place = e.mod(e.add(owner, far), inner);
    Value rank = e.add(e.mul(indices[1], e.index(inner)), place);
    return anyNeed(e, owner, rank, segment, need);
  }
  }
  llvm_unreachable("unknown level");
}

/// The distance of the farthest rank that needs a segment, going by `step`.
Value NeedFunction::reachOf(OpBuilder &builder, Level level, ValueRange indices,
                            Value need, int64_t step) {
  Value none = Emit{builder, loc}.index(0);
  return fold(
      builder, 1, ranksOf(level), none, [&](Emit e, Value hop, Value reach) {
        Value far = e.mul(hop, e.index(step));
        return e.select(needAhead(e, level, indices, far, need), hop, reach);
      });
}

Value NeedFunction::reachTable(OpBuilder &builder, Level level, Value need,
                               int64_t step) {
  return tensor::GenerateOp::create(
      builder, loc, reachType(level), ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        tensor::YieldOp::create(inner, loc,
                                reachOf(inner, level, indices, need, step));
      });
}

/// The same of both directions, of which each serves half of the ranks.
Value NeedFunction::bidirectionalReach(OpBuilder &builder, Value need) {
  auto type =
      RankedTensorType::get({parts, 2, numMoving}, builder.getIndexType());
  return tensor::GenerateOp::create(
      builder, loc, type, ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        Emit e{inner, loc};
        Value goesBack =
            e.compare(arith::CmpIPredicate::ne, indices[1], e.index(0));
        Value step = e.select(goesBack, e.index(parts - 1), e.index(1));
        Value farthest =
            e.select(goesBack, e.index(parts / 2), e.index((parts - 1) / 2));
        Value reach =
            fold(inner, 1, parts / 2 + 1, e.index(0),
                 [&](Emit at, Value hop, Value reach) {
                   Value isNeeded = at.both(
                       at.compare(arith::CmpIPredicate::ule, hop, farthest),
                       needAhead(at, Level::Whole, indices, at.mul(hop, step),
                                 need));
                   return at.select(isNeeded, hop, reach);
                 });
        tensor::YieldOp::create(inner, loc, reach);
      });
}

/// How many positions travel in all, times their hops.
Value NeedFunction::cost(OpBuilder &builder, Level level, Value reach,
                         Value extent) {
  Value none = Emit{builder, loc}.index(0);
  return fold(builder, 0, parts, none, [&](Emit e, Value owner, Value sum) {
    for (int64_t b = 0; b < numMoving; ++b) {
      auto segment = ring::SegmentOp::create(
          e.builder, loc, b, attend.movingLayout(), owner, extent);
      Value hops;
      if (level == Level::Inner)
        hops = fold(e.builder, 0, ranksOf(Level::Outer), e.index(0),
                    [&](Emit at, Value ring, Value all) {
                      return at.add(
                          all, at.extract(reach, {owner, ring, at.index(b)}));
                    });
      else
        hops = e.extract(reach, {owner, e.index(b)});
      sum = e.add(sum, e.mul(segment.getCount(), hops));
    }
    return sum;
  });
}

/// How far segments travel, in the direction in which less does.
SmallVector<Value> NeedFunction::reachAndStep(OpBuilder &builder, Level level,
                                              Value need, ValueRange args) {
  Emit e{builder, loc};
  int64_t back = ranksOf(level) - 1;
  Value ahead = reachTable(builder, level, need, 1);
  Value behind = reachTable(builder, level, need, back);
  Value extent = args[attend.movesKeys ? 1 : 0];
  Value goesBack =
      e.compare(arith::CmpIPredicate::ult, cost(builder, level, behind, extent),
                cost(builder, level, ahead, extent));
  Value reach = tensor::GenerateOp::create(
      builder, loc, reachType(level), ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        Emit e{inner, loc};
        tensor::YieldOp::create(inner, loc,
                                e.select(goesBack, e.extract(behind, indices),
                                         e.extract(ahead, indices)));
      });
  return {reach, e.select(goesBack, e.index(back), e.index(1))};
}

func::FuncOp NeedFunction::create() {
  auto parent = attend.op->getParentOfType<func::FuncOp>();
  OpBuilder builder(parent);
  SmallVector<Type> inputs(3, builder.getIndexType());
  llvm::append_range(inputs, ValueRange(attend.maskCaptures).getTypes());
  auto function =
      func::FuncOp::create(builder, loc, (parent.getName() + "_needs").str(),
                           builder.getFunctionType(inputs, {}));
  function.setPrivate();
  symbols.insert(function);
  builder.setInsertionPointToStart(function.addEntryBlock());
  ValueRange args = function.getArguments();
  makeRanges(builder, args);
  Value need = tensor::GenerateOp::create(
      builder, loc, needType(), ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        tensor::YieldOp::create(inner, loc, needOf(inner, indices, args));
      });
  SmallVector<Value> results{need};
  if (attend.isGathered() || attend.isDirect)
    results.push_back(segmentTable(builder, need));
  else if (attend.isBidirectional)
    results.push_back(bidirectionalReach(builder, need));
  else if (attend.innerRanks == 0)
    llvm::append_range(results,
                       reachAndStep(builder, Level::Whole, need, args));
  else
    for (Level level : {Level::Outer, Level::Inner})
      llvm::append_range(results, reachAndStep(builder, level, need, args));
  func::ReturnOp::create(builder, loc, results);
  function.setType(
      builder.getFunctionType(inputs, ValueRange(results).getTypes()));
  return function;
}
