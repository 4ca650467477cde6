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
// Flags
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

/// A flag for every pair of segments of the slices of an attend.
static void flagPairs(const RingMeeting &meeting, ValueRange owners,
                      MutableOperandRange pairs, Needs needs) {
  OpBuilder builder(meeting.op);
  Emit e{builder, meeting.op->getLoc()};
  SmallVector<Value> flags;
  for (Value owner : owners)
    for (int64_t a = 0; a < meeting.queryLayout.getNumSegments(); ++a)
      for (int64_t b = 0; b < meeting.keyLayout.getNumSegments(); ++b)
        flags.push_back(e.extract(
            needs.need, {meeting.queryOwner, owner, e.index(a), e.index(b)}));
  pairs.assign(flags);
}

namespace {
/// Emits questions about where slices are.
struct Route {
  const RingMeeting &meeting;
  Needs needs;
  Emit e;

  int64_t parts() const { return meeting.queryLayout.getParts(); }
  int64_t numSegments() const {
    return meeting.movingLayout().getNumSegments();
  }

  /// How many hops the slice of `owner` that is here has come: step is its own
  /// inverse, modulo P.
  Value distance(Value owner) const {
    Value between = e.sub(e.add(meeting.rank(), e.index(parts())), owner);
    return e.mod(e.mul(between, needs.step), parts());
  }
  Value reach(Value owner, int64_t segment) const {
    return e.extract(needs.reach, {owner, e.index(segment)});
  }
  /// A flag per segment of `owner`, by how far it goes.
  SmallVector<Value> flags(Value owner, function_ref<Value(Value)> flag) const {
    SmallVector<Value> result;
    for (int64_t s = 0; s < numSegments(); ++s)
      result.push_back(flag(reach(owner, s)));
    return result;
  }
};
} // namespace

using Predicate = arith::CmpIPredicate;

/// Segment s of a slice goes on while it has come fewer hops than its reach.
/// What arrives here has come one hop more; where the ring goes round, that
/// may have brought it home, to where none is sent.
static void flagSlice(ring::StartOp start, const RingMeeting &meeting,
                      Needs needs, bool goesRound) {
  OpBuilder builder(start);
  Route route{meeting, needs, {builder, start.getLoc()}};
  Value sent = route.distance(start.getOwner());
  Value received = route.distance(start.getReceivedOwner());
  start.getSendSegmentsMutable().assign(
      route.flags(start.getOwner(), [&](Value reach) {
        return route.e.compare(Predicate::ult, sent, reach);
      }));
  start.getReceiveSegmentsMutable().assign(
      route.flags(start.getReceivedOwner(), [&](Value reach) {
        Emit e = route.e;
        Value comes = e.compare(Predicate::ule, received, reach);
        if (!goesRound)
          return comes;
        return e.both(e.compare(Predicate::ne, received, e.index(0)), comes);
      }));
}

/// The share of a slice, a state or gradients, goes on like it, but for what
/// its owner computed, which stays there.
static void flagShare(ring::StartOp start, const RingMeeting &meeting,
                      Needs needs) {
  OpBuilder builder(start);
  Route route{meeting, needs, {builder, start.getLoc()}};
  Emit e = route.e;
  Value sent = route.distance(start.getOwner());
  Value received = route.distance(start.getReceivedOwner());
  Value hasLeft = e.compare(Predicate::ne, sent, e.index(0));
  start.getSendSegmentsMutable().assign(
      route.flags(start.getOwner(), [&](Value reach) {
        return e.both(hasLeft, e.compare(Predicate::ult, sent, reach));
      }));
  Value hadLeft = e.compare(Predicate::ugt, received, e.index(1));
  start.getReceiveSegmentsMutable().assign(
      route.flags(start.getReceivedOwner(), [&](Value reach) {
        return e.both(hadLeft, e.compare(Predicate::ule, received, reach));
      }));
}

/// A share goes home from where its slice ends.
static void flagReturn(ring::StartOp start, const RingMeeting &meeting,
                       Needs needs) {
  OpBuilder builder(start);
  Route route{meeting, needs, {builder, start.getLoc()}};
  Emit e = route.e;
  Value distance = route.distance(start.getOwner());
  Value isAway = e.compare(Predicate::ne, distance, e.index(0));
  auto ends = [&](Value reach) {
    return e.both(isAway, e.compare(Predicate::eq, distance, reach));
  };
  start.getSendSegmentsMutable().assign(route.flags(start.getOwner(), ends));
  start.getReceiveSegmentsMutable().assign(
      route.flags(start.getReceivedOwner(), ends));
}

namespace {
/// An op that joins two shares of a slice: a merge of states, or a sum of
/// gradients.
struct Join {
  Operation *op;
  Value owner;
  Value second; ///< or a part of it
  MutableOperandRange segments;

  static std::optional<Join> of(Operation *op) {
    if (auto add = dyn_cast<ring::AddOp>(op))
      return Join{op, add.getOwner(), add.getB(), add.getSegmentsMutable()};
    if (auto merge = dyn_cast<ring::MergeOp>(op))
      return Join{op, merge.getOwner(), merge.getO2(),
                  merge.getSegmentsMutable()};
    return std::nullopt;
  }
};
} // namespace

/// What the rank before has is joined where it has sent it.
static void flagOnwardJoin(Join join, const RingMeeting &meeting, Needs needs) {
  OpBuilder builder(join.op);
  Route route{meeting, needs, {builder, join.op->getLoc()}};
  Emit e = route.e;
  Value distance = route.distance(join.owner);
  Value hadLeft = e.compare(Predicate::ugt, distance, e.index(1));
  join.segments.assign(route.flags(join.owner, [&](Value reach) {
    return e.both(hadLeft, e.compare(Predicate::ule, distance, reach));
  }));
}

/// What came home is joined where the segment's way has ended `hops` hops ago.
static void flagHomeJoin(Join join, Value hops, const RingMeeting &meeting,
                         Needs needs) {
  OpBuilder builder(join.op);
  Route route{meeting, needs, {builder, join.op->getLoc()}};
  Emit e = route.e;
  Value isAway = e.compare(Predicate::ne, hops, e.index(0));
  join.segments.assign(route.flags(join.owner, [&](Value reach) {
    return e.both(isAway, e.compare(Predicate::eq, hops, reach));
  }));
}

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
static void dropSlice(const RingMeeting &meeting, Needs needs) {
  ring::StartOp start = findStart(meeting);
  if (!start)
    return missedSlices(meeting);
  redirect(start, meeting, needs.step);
  flagSlice(start, meeting, needs, /*goesRound=*/false);
}

/// A slice travels, and its share behind it.
static void dropSliceAndShare(const RingMeeting &meeting, Needs needs) {
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
  flagSlice(slice, meeting, needs, /*goesRound=*/true);
  for (ring::StartOp start : ArrayRef(onward).drop_front())
    flagShare(start, meeting, needs);
  for (ring::StartOp start : home)
    flagReturn(start, meeting, needs);
  OpBuilder builder(loop);
  Emit e{builder, loop.getLoc()};
  for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
    std::optional<Join> join = Join::of(&op);
    if (!join || !isa<BlockArgument>(join->second))
      continue;
    if (join->owner == meeting.movingOwner()) {
      flagOnwardJoin(*join, meeting, needs);
    } else if (join->owner == meeting.rank()) {
      builder.setInsertionPoint(&op);
      // None has come home in front of the first hop.
      Value t = loop.getInductionVar();
      Value isFirst = e.compare(Predicate::eq, t, e.index(0));
      flagHomeJoin(*join, e.select(isFirst, t, e.sub(t, e.index(1))), meeting,
                   needs);
    }
  }
  // Of the last hop, behind the loop.
  for (Value result : loop.getResults())
    for (Operation *user : result.getUsers())
      if (std::optional<Join> join = Join::of(user);
          join && join->second == result) {
        builder.setInsertionPoint(user);
        flagHomeJoin(*join, e.index(meeting.queryLayout.getParts() - 1),
                     meeting, needs);
      }
}

/// Whether what is computed by the slice that moves goes home from where the
/// slice ends.
static bool hasShare(const RingMeeting &meeting) {
  auto loop = meeting.op->getParentOfType<scf::ForOp>();
  return loop && llvm::any_of(loop.getBody()->getOps<ring::StartOp>(),
                              [&](ring::StartOp start) {
                                return start.getTo() == meeting.movingOwner();
                              });
}

static void dropFrom(const RingMeeting &meeting, Needs needs) {
  auto op = cast<ring::AttendLikeOpInterface>(meeting.op);
  flagPairs(meeting, op.getSliceOwners(), op.getPairsMutable(), needs);
  if (hasShare(meeting))
    dropSliceAndShare(meeting, needs);
  else
    dropSlice(meeting, needs);
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
    if (op.getMask().empty() || !op.getPairs().empty() || !op.mayDropPairs())
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
      dropFrom(meeting, needs);
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
