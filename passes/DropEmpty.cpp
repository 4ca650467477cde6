//===- DropEmpty.cpp - drops what the mask does not need ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Emit.h"
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

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
/// What was found to be needed, at the top of a rank's program.
struct Needs {
  Value need, reach, step;
};
} // namespace

/// The call of the need function, and the meetings it speaks for. Those of one
/// ring have the same bounds and captures.
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

using Predicate = arith::CmpIPredicate;

namespace {
/// What travels of a ring: tables by owner, turn and segment of what arrives
/// for a turn. Segment s of owner o travels reach[o][s] hops, a hop per turn.
/// They are results of functions, which all ranks share, as needs are.
struct Route {
  const RingMeeting &meeting;
  Needs needs;
  SymbolTable &symbols;

  using Flag = llvm::function_ref<Value(Emit, Value reach, Value turn)>;

  int64_t parts() const { return meeting.queryLayout.getParts(); }

  /// Calls a function `name` of the reach, with a table for each of `flags`.
  ValueRange tables(StringRef name, ArrayRef<Flag> flags) const {
    auto program = meeting.op->getParentOfType<func::FuncOp>();
    OpBuilder builder(program);
    Location loc = meeting.op->getLoc();
    auto type = RankedTensorType::get(
        {parts(), parts() + 1, meeting.movingLayout().getNumSegments()},
        builder.getI1Type());
    auto function = func::FuncOp::create(
        builder, loc, (program.getName() + "_" + name).str(),
        builder.getFunctionType(needs.reach.getType(),
                                SmallVector<Type>(flags.size(), type)));
    function.setPrivate();
    symbols.insert(function);
    builder.setInsertionPointToStart(function.addEntryBlock());
    SmallVector<Value> made;
    for (Flag flag : flags)
      made.push_back(tensor::GenerateOp::create(
          builder, loc, type, ValueRange(),
          [&](OpBuilder &inner, Location, ValueRange at) {
            Emit e{inner, loc};
            Value reach = e.extract(function.getArgument(0), {at[0], at[2]});
            tensor::YieldOp::create(inner, loc, flag(e, reach, at[1]));
          }));
    func::ReturnOp::create(builder, loc, made);
    builder.setInsertionPointAfterValue(needs.reach);
    return func::CallOp::create(builder, loc, function, needs.reach)
        .getResults();
  }

  /// A slice has come one hop for turn 1.
  Value slices() const {
    return tables("slices", {[](Emit e, Value reach, Value turn) {
                    return e.both(e.compare(Predicate::ne, turn, e.index(0)),
                                  e.compare(Predicate::ule, turn, reach));
                  }})
        .front();
  }
  /// A partial result goes on like its slice, but for what its owner computed,
  /// which stays there; and returns in the turn in which its slice has come to
  /// its end.
  ValueRange partials() const {
    return tables("partials",
                  {[](Emit e, Value reach, Value turn) {
                     return e.both(e.compare(Predicate::ugt, turn, e.index(1)),
                                   e.compare(Predicate::ule, turn, reach));
                   },
                   [](Emit e, Value reach, Value turn) {
                     return e.both(e.compare(Predicate::ugt, turn, e.index(1)),
                                   e.compare(Predicate::eq, turn,
                                             e.add(reach, e.index(1))));
                   }});
  }

  /// The turn in which a slice of `owner` is here: step is its own inverse,
  /// modulo P.
  Value turnOf(Emit e, Value owner) const {
    Value between = e.sub(e.add(meeting.rank(), e.index(parts())), owner);
    return e.mod(e.mul(between, needs.step), parts());
  }
};

/// An op that joins two partial results of a slice: a merge of states, or a sum
/// of gradients.
struct Join {
  Value owner;
  Value second; ///< or a part of it
  MutableOperandRange segments;

  static std::optional<Join> of(Operation *op) {
    if (auto add = dyn_cast<ring::AddOp>(op))
      return Join{add.getOwner(), add.getB(), add.getSegmentsMutable()};
    if (auto merge = dyn_cast<ring::MergeOp>(op))
      return Join{merge.getOwner(), merge.getO2(), merge.getSegmentsMutable()};
    return std::nullopt;
  }
};
} // namespace

/// Whether `value` is (rank + offset) mod parts.
static bool isNeighbour(Value value, Value rank, int64_t offset,
                        int64_t parts) {
  auto mod = value.getDefiningOp<arith::RemUIOp>();
  auto sum = mod ? mod.getLhs().getDefiningOp<arith::AddIOp>() : nullptr;
  return sum && sum.getLhs() == rank &&
         getConstantIntValue(sum.getRhs()) == offset &&
         getConstantIntValue(mod.getRhs()) == parts;
}

/// Whether a transfer passes on to the next rank, as burst-lower-to-ring makes
/// it.
static bool goesOn(ring::StartOp start, const RingMeeting &meeting) {
  int64_t parts = meeting.queryLayout.getParts();
  return start.getOwner() == meeting.movingOwner() &&
         isNeighbour(start.getTo(), meeting.rank(), 1, parts) &&
         isNeighbour(start.getFrom(), meeting.rank(), parts - 1, parts) &&
         isNeighbour(start.getReceivedOwner(), meeting.movingOwner(), parts - 1,
                     parts);
}

/// Lets transfers of one ring go by `step` instead of by 1.
static void redirect(ArrayRef<ring::StartOp> starts, const RingMeeting &meeting,
                     Value step) {
  if (starts.empty())
    return;
  ring::StartOp first = starts.front();
  OpBuilder builder(first);
  // The next owner is also what the loop carries on.
  Value nextOwner = first.getReceivedOwner();
  builder.setInsertionPointAfterValue(nextOwner);
  Emit e{builder, first.getLoc()};
  int64_t parts = meeting.queryLayout.getParts();
  Value back = e.sub(e.index(parts), step);
  nextOwner.replaceAllUsesWith(e.mod(e.add(first.getOwner(), back), parts));
  for (ring::StartOp start : starts) {
    builder.setInsertionPoint(start);
    Value rank = meeting.rank();
    start.getToMutable().assign(e.mod(e.add(rank, step), parts));
    start.getFromMutable().assign(e.mod(e.add(rank, back), parts));
  }
}

static ring::StartOp findStart(const RingMeeting &meeting) {
  for (Operation *user : meeting.moving.getUsers())
    if (auto start = dyn_cast<ring::StartOp>(user))
      if (goesOn(start, meeting))
        return start;
  return nullptr;
}

/// What moves has another owner in each turn of a loop.
static bool isCarried(Value owner) {
  auto argument = dyn_cast<BlockArgument>(owner);
  return argument && isa<scf::ForOp>(argument.getOwner()->getParentOp());
}

/// Says why something of an attend goes on as it was.
static void missed(Operation *op, StringRef reason) {
  auto options = remark::RemarkOpts::name("not-dropped")
                     .category("ring-drop-empty")
                     .function(op->getParentOfType<func::FuncOp>().getName());
  remark::missed(op->getLoc(), options) << remark::reason("{0}", reason);
}

/// Says so where slices of a loop go on whole.
static void missedSlices(const RingMeeting &meeting) {
  if (isCarried(meeting.movingOwner()))
    missed(meeting.op,
           "no transfer passes what its loop carries on to the next rank of "
           "the ring: all of every slice goes on");
}

/// A slice travels alone.
static void dropSlice(const RingMeeting &meeting, Needs needs,
                      SymbolTable &symbols) {
  ring::StartOp start = findStart(meeting);
  if (!start)
    return missedSlices(meeting);
  redirect(start, meeting, needs.step);
  Route route{meeting, needs, symbols};
  OpBuilder builder(start);
  Emit e{builder, start.getLoc()};
  start.getSegmentsMutable().assign(route.slices());
  start.getTurnMutable().assign(
      e.add(route.turnOf(e, start.getOwner()), e.index(1)));
}

/// A slice travels, and its partial result behind it. All have tables already,
/// and turns.
static void dropSliceAndPartial(const RingMeeting &meeting, Needs needs,
                                SymbolTable &symbols) {
  auto loop = meeting.op->getParentOfType<scf::ForOp>();
  ring::StartOp slice = findStart(meeting);
  if (!loop || !slice)
    return missedSlices(meeting);
  SmallVector<ring::StartOp> onward{slice}, home;
  for (auto start : loop.getBody()->getOps<ring::StartOp>()) {
    if (start != slice && goesOn(start, meeting))
      onward.push_back(start);
    else if (start != slice && start.getTo() == meeting.movingOwner())
      home.push_back(start);
  }
  redirect(onward, meeting, needs.step);
  Route route{meeting, needs, symbols};
  slice.getSegmentsMutable().assign(route.slices());
  ValueRange tables = route.partials();
  Value partials = tables[0], returns = tables[1];
  for (ring::StartOp start : ArrayRef(onward).drop_front())
    start.getSegmentsMutable().assign(partials);
  for (ring::StartOp start : home)
    start.getSegmentsMutable().assign(returns);
  for (Operation &op : *loop.getBody()) {
    std::optional<Join> join = Join::of(&op);
    if (!join || !isa<BlockArgument>(join->second))
      continue;
    if (join->owner == meeting.movingOwner())
      join->segments.assign(partials);
    else if (join->owner == meeting.rank())
      join->segments.assign(returns);
  }
  // Of the last hop, behind the loop.
  for (Value result : loop.getResults())
    for (Operation *user : result.getUsers())
      if (std::optional<Join> join = Join::of(user);
          join && join->second == result)
        join->segments.assign(returns);
}

/// Whether what is computed by the slice that moves goes home from where the
/// slice ends.
static bool hasPartial(const RingMeeting &meeting) {
  auto loop = meeting.op->getParentOfType<scf::ForOp>();
  return loop && llvm::any_of(loop.getBody()->getOps<ring::StartOp>(),
                              [&](ring::StartOp start) {
                                return start.getTo() == meeting.movingOwner();
                              });
}

static void dropFrom(const RingMeeting &meeting, Needs needs,
                     SymbolTable &symbols) {
  auto op = cast<ring::AttendLikeOpInterface>(meeting.op);
  op.getPairsMutable().assign(needs.need);
  if (hasPartial(meeting))
    dropSliceAndPartial(meeting, needs, symbols);
  else
    dropSlice(meeting, needs, symbols);
}

/// What the need function is called with must be there in front of all loops.
static bool isKnownAtTheTop(const RingMeeting &meeting, Block &top) {
  SmallVector<Value> values{meeting.query, meeting.rank(), meeting.queryExtent,
                            meeting.keyExtent};
  llvm::append_range(values, meeting.maskCaptures);
  return llvm::all_of(
      values, [&](Value value) { return value.getParentBlock() == &top; });
}

/// The queries that a ring begins with, where they are what it carries.
static Value atTheTop(Value query) {
  auto argument = dyn_cast<BlockArgument>(query);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  return loop ? loop.getTiedLoopInit(argument)->get() : query;
}

static RingMeeting meetingOf(ring::AttendLikeOpInterface op) {
  bool movesKeys = !isCarried(op.getQueryOwner());
  return {op,
          atTheTop(op.getQuery()),
          op.getQueryOwner(),
          op.getQueryExtent(),
          op.getSliceOwners().front(),
          op.getKeyExtent(),
          op.getQueryLayout(),
          op.getKeyLayout(),
          &op.getBounds(),
          op.getMaskCaptures(),
          movesKeys ? op.getSliceKeys().front() : op.getQuery(),
          movesKeys};
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
      return missed(op, "its queries, extents, captures or rank are not known "
                        "in front of all loops, where is asked what is needed");
    meetings.push_back(meeting);
  });
  while (!meetings.empty()) {
    RingMeeting first = meetings.front();
    Needs needs = callNeeds(first, NeedFunction(first, symbols).create());
    llvm::erase_if(meetings, [&](const RingMeeting &meeting) {
      if (!sameNeeds(first, meeting))
        return false;
      dropFrom(meeting, needs, symbols);
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
