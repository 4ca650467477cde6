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

namespace {
/// What was found to be needed, at the top of a rank's program.
struct Needs {
  Value need, reach, step;
};
} // namespace

/// The call of the need function. Meetings of one ring have the same bounds and
/// captures.
static Needs callNeeds(const RingMeeting &meeting, func::FuncOp function) {
  auto program = meeting.op->getParentOfType<func::FuncOp>();
  // Sizes and captures are arguments or constants: behind the last of them is
  // the place, which is in front of all loops.
  OpBuilder builder(&program.getBody().front(),
                    program.getBody().front().begin());
  SmallVector<Value> operands{meeting.queryExtent, meeting.keyExtent};
  llvm::append_range(operands, meeting.maskCaptures);
  Operation *last = nullptr;
  for (Value operand : operands)
    if (Operation *def = operand.getDefiningOp())
      if (!last || last->isBeforeInBlock(def))
        last = def;
  if (last)
    builder.setInsertionPointAfter(last);
  Location loc = meeting.op->getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value batch = tensor::DimOp::create(builder, loc, meeting.query, zero);
  operands.insert(operands.begin() + 2, batch);
  auto call = func::CallOp::create(builder, loc, function, operands);
  return {call.getResult(0), call.getResult(1), call.getResult(2)};
}

/// Says why something of an attend goes on as it was.
static void missed(Operation *op, StringRef reason) {
  auto options = remark::RemarkOpts::name("not-dropped")
                     .category("ring-drop-empty")
                     .function(op->getParentOfType<func::FuncOp>().getName());
  remark::missed(op->getLoc(), options) << remark::reason("{0}", reason);
}

/// What goes round where `op` is computed; null where its transfers are written
/// out, or where there are none.
static ring::RotateOp rotateOf(Operation *op) {
  return op->getParentOfType<ring::RotateOp>();
}

/// The queries that a ring begins with, where they are what goes round.
static Value atTheTop(Value query, ring::RotateOp rotate) {
  if (!rotate)
    return query;
  ValueRange shards = rotate.getShards();
  auto shard = llvm::find(shards, query);
  return shard == shards.end()
             ? query
             : rotate.getTensors()[std::distance(shards.begin(), shard)];
}

static RingMeeting meetingOf(ring::AttendLikeOpInterface op) {
  ring::RotateOp rotate = rotateOf(op);
  return {op,
          atTheTop(op.getQuery(), rotate),
          op.getQueryExtent(),
          op.getKeyExtent(),
          op.getQueryLayout(),
          op.getKeyLayout(),
          &op.getBounds(),
          op.getMaskCaptures(),
          /*movesKeys=*/!rotate || op.getQueryOwner() != rotate.getOwner()};
}

/// What the need function is called with must be there in front of all loops.
static bool isKnownAtTheTop(const RingMeeting &meeting, Block &top) {
  SmallVector<Value> values{meeting.query, meeting.queryExtent,
                            meeting.keyExtent};
  llvm::append_range(values, meeting.maskCaptures);
  return llvm::all_of(
      values, [&](Value value) { return value.getParentBlock() == &top; });
}

/// Meetings with the same inputs ask the same question.
static bool sameNeeds(const RingMeeting &a, const RingMeeting &b) {
  return a.query == b.query && a.queryExtent == b.queryExtent &&
         a.keyExtent == b.keyExtent && a.queryLayout == b.queryLayout &&
         a.keyLayout == b.keyLayout && a.movesKeys == b.movesKeys &&
         llvm::equal(a.maskCaptures, b.maskCaptures) &&
         OperationEquivalence::isRegionEquivalentTo(
             a.bounds, b.bounds, OperationEquivalence::IgnoreLocations);
}

/// Why what goes round may not go less far than needed by one meeting; empty
/// where it may.
static StringRef whyAll(ring::RotateOp rotate, const RingMeeting &meeting) {
  for (Value shard : rotate.getShards())
    if (llvm::any_of(shard.getUsers(),
                     [&](Operation *user) { return user != meeting.op; }))
      return "it shares what goes round with other ops: all of every shard "
             "goes on";
  auto op = cast<ring::AttendLikeOpInterface>(meeting.op);
  Value owner = rotate.getOwner(), rank = rotate.getRank();
  Value other =
      meeting.movesKeys ? op.getQueryOwner() : op.getSliceOwners().front();
  Value moving =
      meeting.movesKeys ? op.getSliceOwners().front() : op.getQueryOwner();
  if (moving != owner || other != rank)
    return "it does not bring shards of the owner that goes round and those of "
           "this rank together: all of every shard goes on";
  return {};
}

static void drop(const RingMeeting &meeting, Needs needs) {
  cast<ring::AttendLikeOpInterface>(meeting.op)
      .getPairsMutable()
      .assign(needs.need);
  ring::RotateOp rotate = rotateOf(meeting.op);
  if (!rotate)
    return missed(meeting.op, "its transfers are written out, and no "
                              "ring.rotate: all that they send is sent");
  if (StringRef why = whyAll(rotate, meeting); !why.empty())
    return missed(meeting.op, why);
  rotate.getReachMutable().assign(needs.reach);
  rotate.getStepMutable().assign(needs.step);
}

static void dropEmpty(func::FuncOp program, SymbolTable &symbols) {
  SmallVector<RingMeeting> meetings;
  program.walk([&](ring::AttendLikeOpInterface op) {
    if (op.getMask().empty() || op.getPairs() || !op.mayDropPairs())
      return;
    if (op.getBounds().empty())
      return missed(op, "its mask has no bounds: burst-derive-bounds, run "
                        "before, makes them");
    RingMeeting meeting = meetingOf(op);
    if (!isKnownAtTheTop(meeting, program.getBody().front()))
      return missed(op, "its queries, extents or captures are not known in "
                        "front of all loops, where is asked what is needed");
    meetings.push_back(meeting);
  });
  while (!meetings.empty()) {
    RingMeeting first = meetings.front();
    Needs needs = callNeeds(first, NeedFunction(first, symbols).create());
    llvm::erase_if(meetings, [&](const RingMeeting &meeting) {
      if (!sameNeeds(first, meeting))
        return false;
      drop(meeting, needs);
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
