//===- DropEmpty.cpp - drops what the mask does not need ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Drop/NeedFunction.h"
#include "passes/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

namespace burst {
#define GEN_PASS_DEF_DROPEMPTYPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

/// The call of the need function. Meetings of one ring have the same bounds and
/// captures.
static ValueRange callNeeds(const Droppable &attend, func::FuncOp function) {
  auto program = attend.op->getParentOfType<func::FuncOp>();
  // Sizes and captures are arguments or constants: behind the last of them is
  // the place, which is in front of all loops.
  OpBuilder builder(&program.getBody().front(),
                    program.getBody().front().begin());
  SmallVector<Value> operands{attend.queryExtent, attend.keyExtent};
  if (attend.batches)
    operands.push_back(attend.batches);
  llvm::append_range(operands, attend.maskCaptures);
  Operation *last = nullptr;
  for (Value operand : operands)
    if (Operation *def = operand.getDefiningOp())
      if (!last || last->isBeforeInBlock(def))
        last = def;
  if (last)
    builder.setInsertionPointAfter(last);
  Location loc = attend.op->getLoc();
  if (!attend.batches) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value batch = tensor::DimOp::create(builder, loc, attend.query, zero);
    operands.insert(operands.begin() + 2, batch);
  }
  return func::CallOp::create(builder, loc, function, operands).getResults();
}

/// Says why something of an attend goes on as it was.
static void missed(Operation *op, StringRef reason) {
  auto options = remark::RemarkOpts::name("not-dropped")
                     .category("ring-drop-empty")
                     .function(op->getParentOfType<func::FuncOp>().getName());
  remark::missed(op->getLoc(), options) << remark::reason("{0}", reason);
}

/// What brings shards to where `op` is computed; null where its transfers are
/// written out, or where there are none.
static ring::CollectiveOpInterface collectiveOf(Operation *op) {
  return op->getParentOfType<ring::CollectiveOpInterface>();
}

/// The queries of this rank, where they are what is brought.
static Value atTheTop(Value query, ring::CollectiveOpInterface collective) {
  for (; collective; collective = collectiveOf(collective)) {
    ValueRange brought = collective.getBrought();
    auto found = llvm::find(brought, query);
    if (found != brought.end())
      query = collective.getTensors()[std::distance(brought.begin(), found)];
  }
  return query;
}

/// The rotate around another one, to which it hands all that it brings; null
/// where there is none.
static ring::RotateOp outerOf(ring::CollectiveOpInterface collective) {
  auto inner = dyn_cast_or_null<ring::RotateOp>(*collective);
  auto outer = inner ? inner->getParentOfType<ring::RotateOp>() : nullptr;
  if (!outer || inner.getRank() != outer.getOwner() ||
      !llvm::equal(inner.getTensors(), outer.getBrought()) ||
      llvm::any_of(outer.getBrought(),
                   [](Value shard) { return !shard.hasOneUse(); }))
    return {};
  int64_t parts = inner.getLayout().getParts();
  bool isNest = inner.getStride() == 1 && outer.getBlock() == parts &&
                static_cast<int64_t>(outer.getStride()) == inner.getBlock() &&
                outer.getLayout() == inner.getLayout();
  return isNest ? outer : nullptr;
}

static Droppable droppableOf(ring::AttendLikeOpInterface op) {
  ring::CollectiveOpInterface collective = collectiveOf(op);
  bool movesKeys = !collective ||
                   !llvm::is_contained(collective.getBrought(), op.getQuery());
  int64_t innerRanks = 0;
  if (collective && outerOf(collective))
    innerRanks = cast<ring::RotateOp>(*collective).getNumRanks();
  auto rotate = dyn_cast_or_null<ring::RotateOp>(
      collective ? collective.getOperation() : nullptr);
  bool isDirect = rotate && rotate.getDirect(),
       isBidirectional = rotate && rotate.getBidirectional();
  OperandRange offsets = op.getOffsetsMutable();
  int64_t heads = cast<RankedTensorType>(op.getQuery().getType()).getDimSize(2);
  if (!offsets.empty())
    heads = getConstantIntValue(offsets[3]).value_or(ShapedType::kDynamic);
  return {op,
          ring::behindAllToAll(atTheTop(op.getQuery(), collective)),
          op.getQueryExtent(),
          op.getKeyExtent(),
          offsets.empty() ? Value() : offsets[1],
          heads,
          op.getQueryLayout(),
          op.getKeyLayout(),
          &op.getBounds(),
          op.getMaskCaptures(),
          movesKeys,
          innerRanks,
          isDirect,
          isBidirectional};
}

/// What the need function is called with must be there in front of all loops.
static bool isKnownAtTheTop(const Droppable &attend, Block &top) {
  SmallVector<Value> values{attend.query, attend.queryExtent, attend.keyExtent};
  llvm::append_range(values, attend.maskCaptures);
  if (attend.batches)
    values.push_back(attend.batches);
  return !ShapedType::isDynamic(attend.heads) &&
         llvm::all_of(values, [&](Value value) {
           return value.getParentBlock() == &top;
         });
}

/// Meetings with the same inputs ask the same proved.
static bool sameNeeds(const Droppable &a, const Droppable &b) {
  return a.query == b.query && a.queryExtent == b.queryExtent &&
         a.keyExtent == b.keyExtent && a.batches == b.batches &&
         a.heads == b.heads && a.queryLayout == b.queryLayout &&
         a.keyLayout == b.keyLayout && a.movesKeys == b.movesKeys &&
         a.innerRanks == b.innerRanks && a.isDirect == b.isDirect &&
         a.isBidirectional == b.isBidirectional &&
         llvm::equal(a.maskCaptures, b.maskCaptures) &&
         OperationEquivalence::isRegionEquivalentTo(
             a.bounds, b.bounds, OperationEquivalence::IgnoreLocations);
}

/// Why all of what is brought must be, whatever one attend needs; empty where
/// what it needs will do.
static StringRef whyAll(ring::CollectiveOpInterface collective,
                        const Droppable &attend) {
  for (Value shard : collective.getBrought())
    if (llvm::any_of(shard.getUsers(),
                     [&](Operation *user) { return user != attend.op; }))
      return "it shares what is brought with other ops: all of every shard is "
             "sent";
  auto op = cast<ring::AttendLikeOpInterface>(attend.op);
  Value keyOwner = op.getKeyOwner();
  Value other = attend.movesKeys ? op.getQueryOwner() : keyOwner;
  Value moving = attend.movesKeys ? keyOwner : op.getQueryOwner();
  Value owner = collective.getBroughtOwner(), own = collective.getRank();
  if (collectiveOf(collective)) {
    ring::RotateOp outer = outerOf(collective);
    if (!outer || collectiveOf(outer))
      return "its rings are no nest of two, of which the inner one takes all "
             "that the outer one brings: all of every shard is sent";
    own = outer.getRank();
  }
  if ((owner && moving != owner) || other != own ||
      !owner != attend.isGathered())
    return "it does not bring shards that are brought and those of this rank "
           "together: all of every shard is sent";
  return {};
}

/// `needs` are the results of the need function.
static void drop(const Droppable &attend, ValueRange needs) {
  cast<ring::AttendLikeOpInterface>(attend.op).getPairsMutable().assign(
      needs[0]);
  ring::CollectiveOpInterface collective = collectiveOf(attend.op);
  if (!collective)
    return missed(attend.op, "its transfers are written out, and no "
                             "ring.rotate or ring.gather: all that they send "
                             "is sent");
  if (StringRef why = whyAll(collective, attend); !why.empty())
    return missed(attend.op, why);
  if (auto gather = dyn_cast<ring::GatherOp>(*collective)) {
    gather.getSegmentsMutable().assign(needs[1]);
    return;
  }
  auto rotate = cast<ring::RotateOp>(*collective);
  if (rotate.getDirect()) {
    rotate.getSegmentsMutable().assign(needs[1]);
    return;
  }
  if (rotate.getBidirectional()) {
    rotate.getReachMutable().assign(needs[1]);
    return;
  }
  if (ring::RotateOp outer = outerOf(collective)) {
    outer.getReachMutable().assign(needs[1]);
    outer.getStepMutable().assign(needs[2]);
    OpBuilder builder(outer);
    Value inner = arith::ConstantIndexOp::create(builder, rotate.getLoc(),
                                                 rotate.getBlock());
    rotate.getRingMutable().assign(arith::DivUIOp::create(
        builder, rotate.getLoc(), outer.getRank(), inner));
    needs = needs.drop_front(2);
  }
  rotate.getReachMutable().assign(needs[1]);
  rotate.getStepMutable().assign(needs[2]);
}

static void dropEmpty(func::FuncOp program, SymbolTable &symbols) {
  SmallVector<Droppable> attends;
  program.walk([&](ring::AttendLikeOpInterface op) {
    if (op.getMask().empty() || op.getPairs() || !op.mayDropPairs())
      return;
    if (op.getBounds().empty())
      return missed(op, "its mask has no bounds: burst-derive-bounds, run "
                        "before, makes them");
    Droppable attend = droppableOf(op);
    if (!isKnownAtTheTop(attend, program.getBody().front()))
      return missed(op, "its queries, extents or captures are not known in "
                        "front of all loops, where is asked what is needed");
    attends.push_back(attend);
  });
  while (!attends.empty()) {
    Droppable first = attends.front();
    ValueRange needs = callNeeds(first, NeedFunction(first, symbols).create());
    llvm::erase_if(attends, [&](const Droppable &attend) {
      if (!sameNeeds(first, attend))
        return false;
      drop(attend, needs);
      return true;
    });
  }
}

namespace {
struct DropEmpty : burst::impl::DropEmptyPassBase<DropEmpty> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(ring::gridAttr))
        dropEmpty(function, symbols);
  }
};
} // namespace
