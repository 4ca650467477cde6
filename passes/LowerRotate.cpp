//===- LowerRotate.cpp - loops and transfers of what goes round -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Rotate/Arrivals.h"
#include "passes/Transfers/Transfers.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace burst {
#define GEN_PASS_DEF_LOWERROTATEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

using Predicate = arith::CmpIPredicate;

static Values take(ValueRange &values, size_t count) {
  Values taken(values.take_front(count));
  values = values.drop_front(count);
  return taken;
}

//===----------------------------------------------------------------------===//
// One rotate
//===----------------------------------------------------------------------===//

namespace {
/// A direction in which shards go round.
struct Way {
  int64_t number = 0;   ///< see ring.rotate
  int64_t first = 0;    ///< hops that its shards have gone in the first turn
  int64_t farthest = 0; ///< hops that a shard goes at most
  int64_t channel = 0;  ///< how far its channels are behind that of the whole
  Value to = {}, from = {}; ///< the ranks ahead and behind
  Value back = {}; ///< what takes a place to the one behind, modulo ranks
  Arrivals arrives = {};
};

/// Shards that have come in a direction, and partial results behind them.
struct Coming {
  Values shards;
  Value owner;
  Values onward = {};   ///< partial results of the rank behind
  Values returned = {}; ///< those of the own shards, from their end
};

class RotateLowering {
public:
  RotateLowering(ring::RotateOp op, func::FuncOp program, SymbolTable &symbols)
      : op(op), tables(op, program, symbols), builder(op), loc(op.getLoc()),
        e{builder, loc}, parts(op.getLayout().getParts()),
        ranks(op.getNumRanks()), stride(static_cast<int64_t>(op.getStride())),
        rank(op.getRank()),
        wanted(wantedPartials(op.getPartialResults(), op.getJoin())) {}

  /// What nobody uses does not travel.
  void run() {
    Values results;
    if (!op.use_empty())
      results = ranks == 1       ? alone()
                : wanted.empty() ? carriedOnly()
                                 : withPartials();
    for (auto [result, value] : llvm::zip(op.getResults(), results))
      if (value)
        result.replaceAllUsesWith(value);
    op.erase();
  }

private:
  Values alone();
  Values carriedOnly();
  Values withPartials();

  Values turn(Value owner, ValueRange shards, ValueRange carried,
              ValueRange partials);
  Values fresh(ValueRange shards);
  Values join(ValueRange a, ValueRange b, Value owner, Flags flags);
  Values send(ValueRange tensors, ArrayRef<int64_t> dims, Value owner, Value to,
              Value receivedOwner, Value from, int64_t channel, Flags flags);
  void findWays();
  void findPeers(Way &way);
  void findArrivals();
  Coming begin(const Way &way);
  Values next(const Way &way, ValueRange shards, Value owner, Value behind,
              Value turn);
  Value placeOf(Value owner);
  Value nextOwner(const Way &way, Value owner);
  Value distance(const Way &way, Value turn);
  Value row(Value turn);
  /// Whether all turns are those of the loop, in the last of which nothing
  /// arrives: what is there in each, an inner ring or fresh partial results, is
  /// there once, with its buffers.
  bool isWhole() { return op.isOuter() || op.getJoin(); }

  ring::RotateOp op;
  ArrivalTables tables;
  OpBuilder builder;
  Location loc;
  Emit e;
  int64_t parts;              ///< all owners
  int64_t ranks, stride;      ///< of the ring, and from owner to owner in it
  Value rank;                 ///< whose shards this rank begins with
  SmallVector<size_t> wanted; ///< the partial results that are used
  Value place;                ///< of this rank in the ring
  SmallVector<Way, 2> ways;
  int64_t turns = 0; ///< in each of which a shard of each way is there
  /// Whether a turn with the own shards stands in front of these.
  bool ownFirst = false;
};
} // namespace

/// What the region computes for the shards of an owner.
Values RotateLowering::turn(Value owner, ValueRange shards, ValueRange carried,
                            ValueRange partials) {
  Values arguments{owner};
  for (ValueRange some : {shards, carried, partials})
    llvm::append_range(arguments, some);
  return inlineRegion(builder, op.getBody(), arguments);
}

/// Partial results of shards for which nothing was computed yet.
Values RotateLowering::fresh(ValueRange shards) {
  if (!op.getJoin())
    return {};
  return freshPartials(builder, loc, *op.getJoin(), shards,
                       op.getPartialResults().getTypes());
}

/// Two partial results of an owner as one, where the flags hold; else the
/// first.
Values RotateLowering::join(ValueRange a, ValueRange b, Value owner,
                            Flags flags) {
  return joinPartials(builder, loc, *op.getJoin(), a, b,
                      {op.getLayout(), owner, op.getExtent()}, flags);
}

/// Sends shards of `owner` to `to`, takes those of `receivedOwner` from `from`,
/// and waits.
Values RotateLowering::send(ValueRange tensors, ArrayRef<int64_t> dims,
                            Value owner, Value to, Value receivedOwner,
                            Value from, int64_t channel, Flags flags) {
  return shift(builder, loc, tensors, tensors.getTypes(), dims,
               {op.getLayout(), owner, op.getExtent()},
               {to, receivedOwner, from}, op.getChannel(), channel, flags);
}

/// The shards of the next turn, of the owner `behind`: those that this rank has
/// go on, or its own ones go straight to who needs them then.
Values RotateLowering::next(const Way &way, ValueRange shards, Value owner,
                            Value behind, Value turn) {
  Flags flags;
  if (way.arrives.shards)
    flags = {way.arrives.shards, row(turn)};
  if (!op.getDirect())
    return send(shards, op.getDims(), owner, way.to, behind, way.from,
                way.channel, flags);
  Value ahead = e.mod(e.add(rank, turn), parts);
  return send(op.getTensors(), op.getDims(), rank, ahead, behind, behind,
              way.channel, flags);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Of an owner of this ring in it.
Value RotateLowering::placeOf(Value owner) {
  Value place = stride == 1 ? owner : e.div(owner, stride);
  return stride * ranks == parts ? place : e.mod(place, ranks);
}

/// The owner one place behind.
Value RotateLowering::nextOwner(const Way &way, Value owner) {
  int64_t block = stride * ranks;
  Value behind =
      e.add(owner, stride == 1 ? way.back : e.mul(way.back, e.index(stride)));
  if (block == parts)
    return e.mod(behind, parts);
  Value first = e.sub(owner, e.mod(owner, block));
  return e.add(first, e.mod(e.sub(behind, first), block));
}

/// How many hops shards have gone in a turn.
Value RotateLowering::distance(const Way &way, Value turn) {
  return way.first == 0 ? turn : e.add(turn, e.index(way.first));
}

/// The row of a table of arrivals for a distance.
Value RotateLowering::row(Value turn) {
  if (!op.getRing())
    return turn;
  return e.add(e.mul(op.getRing(), e.index(ranks + 1)), turn);
}

//===----------------------------------------------------------------------===//
// Ways
//===----------------------------------------------------------------------===//

/// Shards go by `step` from rank to rank. In both directions there are as many
/// turns for either: of an odd number of ranks behind that with the own shards,
/// of an even one with these on the first way. Of two ranks there is one way.
void RotateLowering::findWays() {
  place = placeOf(rank);
  if (!op.getBidirectional() || ranks == 2) {
    turns = ranks;
    ways.push_back(
        {.number = op.getBidirectional() ? 1 : 0, .farthest = ranks - 1});
  } else {
    auto [ahead, back] = op.getFarthest();
    turns = back;
    ownFirst = ahead == back;
    ways.push_back({.first = ownFirst, .farthest = ahead});
    ways.push_back({.number = 1,
                    .first = 1,
                    .farthest = back,
                    .channel = ring::exchangeChannel + 1});
  }
  for (Way &way : ways)
    findPeers(way);
}

void RotateLowering::findPeers(Way &way) {
  Value step = op.getStep();
  if (step) {
    way.to = e.mod(e.add(place, step), ranks);
    way.back = e.sub(e.index(ranks), step);
  } else {
    way.to =
        e.mod(e.add(place, e.index(way.number == 0 ? 1 : ranks - 1)), ranks);
    way.back = e.index(way.number == 0 ? ranks - 1 : 1);
  }
  way.from = e.mod(e.add(place, way.back), ranks);
}

/// Without a reach all segments travel, as far as the last rank.
void RotateLowering::findArrivals() {
  for (Way &way : ways)
    way.arrives =
        tables.find(way.number, way.farthest, !wanted.empty(), isWhole());
}

/// The shards of the first turn.
Coming RotateLowering::begin(const Way &way) {
  if (way.first == 0)
    return {Values(op.getTensors()), rank};
  Value behind = nextOwner(way, rank);
  return {next(way, op.getTensors(), rank, behind, e.index(way.first)), behind};
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// One rank has all.
Values RotateLowering::alone() {
  return turn(rank, op.getTensors(), op.getInits(), fresh(op.getTensors()));
}

/// In all turns but the last: compute with the shards at hand, pass them on,
/// take the next ones. Then compute with the last.
Values RotateLowering::carriedOnly() {
  findWays();
  findArrivals();
  size_t numShards = op.getTensors().size(), numCarried = op.getInits().size();
  Values carried(op.getInits());
  auto compute = [&](Value owner, ValueRange shards, ValueRange partials) {
    carried = turn(owner, shards, carried, partials);
    carried.truncate(numCarried);
  };
  if (ownFirst)
    compute(rank, op.getTensors(), fresh(op.getTensors()));
  Values inits;
  for (const Way &way : ways) {
    Coming coming = begin(way);
    llvm::append_range(inits, coming.shards);
    inits.push_back(coming.owner);
  }
  llvm::append_range(inits, carried);
  auto loop = scf::ForOp::create(builder, loc, e.index(0),
                                 e.index(isWhole() ? turns : turns - 1),
                                 e.index(1), inits);
  auto split = [&](ValueRange values) {
    SmallVector<Coming, 2> comings;
    for (size_t i = 0; i < ways.size(); ++i) {
      Values shards = take(values, numShards);
      comings.push_back({shards, take(values, 1).front()});
    }
    carried = Values(values);
    return comings;
  };
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Coming, 2> comings = split(loop.getRegionIterArgs());
    for (const Coming &coming : comings)
      compute(coming.owner, coming.shards, fresh(coming.shards));
    Values yields;
    for (auto [way, coming] : llvm::zip_equal(ways, comings)) {
      Value behind = nextOwner(way, coming.owner), past;
      if (way.arrives.shards || op.getDirect())
        past = e.add(distance(way, loop.getInductionVar()), e.index(1));
      llvm::append_range(yields,
                         next(way, coming.shards, coming.owner, behind, past));
      yields.push_back(behind);
    }
    llvm::append_range(yields, carried);
    scf::YieldOp::create(builder, loc, yields);
  }
  SmallVector<Coming, 2> comings = split(loop.getResults());
  if (!isWhole())
    for (const Coming &coming : comings)
      compute(coming.owner, coming.shards, {});
  return carried;
}

/// Shards travel past what stays, and partial results go along, one hop behind
/// (but direct ones, which return from where they are computed):
/// what a rank computes is joined with what the ranks before it have, and
/// passed on, while the rank computes with the next shards. The last rank sends
/// the whole to the owner; what the owner itself computed has stayed there. All
/// hops are turns of one loop: tables say what has arrived for which.
Values RotateLowering::withPartials() {
  Values own = fresh(op.getTensors());
  size_t numShards = op.getTensors().size(), numCarried = op.getInits().size();
  findWays();
  Values carried(op.getInits());
  if (ownFirst) {
    Values given = turn(rank, op.getTensors(), carried, own);
    ValueRange rest = given;
    carried = take(rest, numCarried);
    own = Values(rest);
  }
  own = pickWanted(own, wanted);
  size_t numPartials = own.size();
  findArrivals();
  Value zero = e.index(0), one = e.index(1), end = e.index(ranks);
  Value isOwn;
  if (!ownFirst)
    isOwn = tables.byTurn(turns, [&](Emit inside, Value turn) {
      return inside.compare(Predicate::eq, turn, inside.index(0));
    });
  // Nothing arrives in front of the first hop, but hops take something there.
  auto none = DenseElementsAttr::get(
      RankedTensorType::get({1, 1, 1}, builder.getI1Type()), false);
  Flags nothing{arith::ConstantOp::create(builder, loc, none), zero};
  SmallVector<int64_t> dims = pickWanted(*op.getPartialDims(), wanted);
  SmallVector<Coming, 2> comings;
  for (const Way &way : ways) {
    Coming coming = begin(way);
    if (!op.getDirect())
      coming.onward = send(own, dims, rank, way.to, nextOwner(way, rank),
                           way.from, way.channel + 1, nothing);
    coming.returned =
        send(own, dims, rank, place, rank, place, way.channel + 1, nothing);
    comings.push_back(coming);
  }
  // What is carried stands behind the shards of all ways.
  auto asValues = [&](ArrayRef<Coming> comings, ValueRange carried,
                      ValueRange own) {
    Values values;
    for (const Coming &coming : comings) {
      llvm::append_range(values, coming.shards);
      values.push_back(coming.owner);
    }
    llvm::append_range(values, carried);
    llvm::append_range(values, own);
    for (const Coming &coming : comings) {
      llvm::append_range(values, coming.onward);
      llvm::append_range(values, coming.returned);
    }
    return values;
  };
  auto split = [&](ValueRange values) {
    for (Coming &coming : comings) {
      coming.shards = take(values, numShards);
      coming.owner = take(values, 1).front();
    }
    carried = take(values, numCarried);
    own = take(values, numPartials);
    for (Coming &coming : comings) {
      coming.onward = take(values, coming.onward.size());
      coming.returned = take(values, numPartials);
    }
  };
  auto loop = scf::ForOp::create(builder, loc, zero, e.index(turns), one,
                                 asValues(comings, carried, own));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value t = loop.getInductionVar();
    split(loop.getRegionIterArgs());
    for (auto [way, coming] : llvm::zip_equal(ways, comings)) {
      Value owner = coming.owner;
      Values given = turn(owner, coming.shards, carried, fresh(coming.shards));
      ValueRange rest = given;
      carried = take(rest, numCarried);
      Values part = pickWanted(rest, wanted);

      Value previous = nextOwner(way, owner), hops = distance(way, t),
            past = e.add(hops, one);
      coming.shards = next(way, coming.shards, owner, previous, past);
      // What returned in the hop before, and what the owner computes itself.
      own = join(own, coming.returned, rank, {way.arrives.returned, row(hops)});
      if (way.first == 0)
        own = join(own, part, rank, {isOwn, t});
      if (!op.getDirect()) {
        part =
            join(part, coming.onward, owner, {way.arrives.partials, row(hops)});
        coming.onward =
            send(part, dims, owner, way.to, previous, way.from, way.channel + 1,
                 {way.arrives.partials, row(past)});
      }
      // Who has the own shards now is as far ahead as their owner is behind.
      Value ofOwner = placeOf(owner);
      Value holder =
          e.mod(e.add(place, e.sub(e.add(place, end), ofOwner)), ranks);
      coming.returned =
          send(part, dims, owner, ofOwner, rank, holder, way.channel + 1,
               {way.arrives.returned, row(past)});
      coming.owner = previous;
    }
    scf::YieldOp::create(builder, loc, asValues(comings, carried, own));
  }
  split(loop.getResults());
  for (auto [way, coming] : llvm::zip_equal(ways, comings))
    own = join(own, coming.returned, rank,
               {way.arrives.returned, row(e.index(turns + way.first))});
  Values given = carried;
  given.resize(op->getNumResults());
  for (auto [number, value] : llvm::zip_equal(wanted, own))
    given[numCarried + number] = value;
  return given;
}

/// Attends of several rotates may begin alike, with the own shards in front of
/// their loops, and do not go on with the same state.
static void keepApart(func::FuncOp program) {
  llvm::MapVector<OperationName, SmallVector<Operation *>> attends;
  program.walk([&](ring::AttendLikeOpInterface attend) {
    if (attend->getParentOfType<ring::RotateOp>())
      attends[attend->getName()].push_back(attend);
  });
  for (auto &[name, alike] : attends)
    for (auto [number, attend] : llvm::enumerate(alike))
      if (alike.size() > 1)
        attend->setAttr(ring::apartAttr, Builder(attend).getI64IntegerAttr(
                                             static_cast<int64_t>(number)));
}

namespace {
struct LowerRotate : burst::impl::LowerRotatePassBase<LowerRotate> {
  void runOnOperation() override {
    getOperation().walk(keepApart);
    // Outer ones first: inner ones are lowered in the loops of these.
    SymbolTableCollection symbols;
    while (ring::RotateOp op = findOuter()) {
      auto program = op->getParentOfType<func::FuncOp>();
      if (!program) {
        op.emitOpError("must be in a func.func, the program of a rank");
        return signalPassFailure();
      }
      // Tables of arrivals are made there, too.
      for (Value table : {Value(op.getReach()), Value(op.getSegments())})
        if (table && table.getParentBlock() != &program.getBody().front()) {
          op.emitOpError(
              "takes a table of what travels that is made in a loop; "
              "make it in front of all loops");
          return signalPassFailure();
        }
      RotateLowering(op, program,
                     symbols.getSymbolTable(program->getParentOp()))
          .run();
    }
  }

  /// Null where none is left.
  ring::RotateOp findOuter() {
    ring::RotateOp found;
    getOperation().walk<WalkOrder::PreOrder>([&](ring::RotateOp op) {
      found = op;
      return WalkResult::interrupt();
    });
    return found;
  }
};
} // namespace
