//===- LowerRotate.cpp - loops and transfers of what goes round -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Emit.h"
#include "passes/Passes.h"
#include "passes/Transfers/Transfers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

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
// What arrives for a turn
//===----------------------------------------------------------------------===//

/// Whether a segment of a stream arrives for a turn, where its shard is at its
/// end, having gone a hop per turn, in the turn before `past`.
using Arrival = Value (*)(Emit e, Value past, Value turn);

/// A shard is here for turn 1 after one hop.
static Value arrivesWithShard(Emit e, Value past, Value turn) {
  return e.both(e.compare(Predicate::ne, turn, e.index(0)),
                e.compare(Predicate::ult, turn, past));
}

/// A partial result goes on like its shard, but for what the owner computed,
/// which stays there.
static Value arrivesBehindShard(Emit e, Value past, Value turn) {
  return e.both(e.compare(Predicate::ugt, turn, e.index(1)),
                e.compare(Predicate::ult, turn, past));
}

/// It returns in the turn in which its shard has come to its end.
static Value returnsFromEnd(Emit e, Value past, Value turn) {
  return e.both(e.compare(Predicate::ugt, turn, e.index(1)),
                e.compare(Predicate::eq, turn, past));
}

//===----------------------------------------------------------------------===//
// One rotate
//===----------------------------------------------------------------------===//

namespace {
class RotateLowering {
public:
  RotateLowering(ring::RotateOp op, func::FuncOp program, SymbolTable &symbols)
      : op(op), program(program), symbols(symbols), builder(op),
        loc(op.getLoc()), e{builder, loc}, parts(op.getLayout().getParts()),
        ranks(op.getNumRanks()), stride(static_cast<int64_t>(op.getStride())),
        rank(op.getRank()) {}

  void run() {
    Values results = ranks == 1     ? alone()
                     : op.getJoin() ? withPartials()
                                    : carriedOnly();
    op.replaceAllUsesWith(results);
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
  void findPeers();
  Values next(ValueRange shards, Value owner, Value behind, Value turn);
  Value placeOf(Value owner);
  Value nextOwner(Value owner);
  Value row(Value turn);
  ValueRange tables(StringRef name, ArrayRef<Arrival> arrivals);
  Value turnTable(int64_t turns,
                  llvm::function_ref<Value(Emit, Value turn)> flag);
  void findArrivals();
  void findDirectArrivals();
  void goInFrontOfLoops();

  ring::RotateOp op;
  func::FuncOp program;
  SymbolTable &symbols; ///< of the program
  OpBuilder builder;
  Location loc;
  Emit e;
  int64_t parts;         ///< all owners
  int64_t ranks, stride; ///< of the ring, and from owner to owner in it
  Value rank;            ///< whose shards this rank begins with
  Value place;           ///< of this rank in the ring
  Value to, from;        ///< the ranks ahead and behind
  Value back;            ///< what takes a place to the one behind, modulo ranks
  /// Which segments of shards and of partial results arrive, and which of the
  /// partial results return; null where all do.
  Value shardArrives, partialArrives, partialReturns;
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

/// Shards go by `step` from rank to rank.
void RotateLowering::findPeers() {
  Value step = op.getStep() ? op.getStep() : e.index(1);
  place = placeOf(rank);
  to = e.mod(e.add(place, step), ranks);
  back = op.getStep() ? e.sub(e.index(ranks), step) : e.index(ranks - 1);
  from = e.mod(e.add(place, back), ranks);
}

/// The shards of the next turn, of the owner `behind`: those that this rank has
/// go on, or its own ones go straight to who needs them then.
Values RotateLowering::next(ValueRange shards, Value owner, Value behind,
                            Value turn) {
  Flags flags;
  if (shardArrives)
    flags = {shardArrives, row(turn)};
  if (!op.getDirect())
    return send(shards, op.getDims(), owner, to, behind, from, /*channel=*/0,
                flags);
  Value ahead = e.mod(e.add(rank, turn), parts);
  return send(op.getTensors(), op.getDims(), rank, ahead, behind, behind,
              /*channel=*/0, flags);
}

/// Of an owner of this ring in it.
Value RotateLowering::placeOf(Value owner) {
  Value place = stride == 1 ? owner : e.div(owner, stride);
  return stride * ranks == parts ? place : e.mod(place, ranks);
}

/// The owner one place behind.
Value RotateLowering::nextOwner(Value owner) {
  int64_t block = stride * ranks;
  Value behind =
      e.add(owner, stride == 1 ? back : e.mul(back, e.index(stride)));
  if (block == parts)
    return e.mod(behind, parts);
  Value first = e.sub(owner, e.mod(owner, block));
  return e.add(first, e.mod(e.sub(behind, first), block));
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Tables are made once, also where this ring is lowered in the loop of
/// another.
void RotateLowering::goInFrontOfLoops() {
  Operation *outermost = op;
  while (outermost->getParentOp() != program)
    outermost = outermost->getParentOp();
  builder.setInsertionPoint(outermost);
}

/// Calls a function of the reach that gives a table by owner, turn and segment
/// for each of `arrivals`. All ranks share its results.
ValueRange RotateLowering::tables(StringRef name, ArrayRef<Arrival> arrivals) {
  OpBuilder top(program);
  int64_t rings = op.getRing() ? op.getReach().getType().getDimSize(1) : 1;
  auto type = RankedTensorType::get(
      {parts, rings * (ranks + 1), op.getLayout().getNumSegments()},
      top.getI1Type());
  auto function = func::FuncOp::create(
      top, loc, (program.getName() + "_" + name).str(),
      top.getFunctionType(op.getReach().getType(),
                          SmallVector<Type>(arrivals.size(), type)));
  function.setPrivate();
  symbols.insert(function);
  top.setInsertionPointToStart(function.addEntryBlock());
  Values made;
  for (Arrival arrives : arrivals)
    made.push_back(tensor::GenerateOp::create(
        top, loc, type, ValueRange(),
        [&](OpBuilder &inner, Location, ValueRange at) {
          Emit inside{inner, loc};
          Value turn = at[1];
          Values where{at[0], at[2]};
          if (op.getRing()) {
            where.insert(where.begin() + 1, inside.div(turn, ranks + 1));
            turn = inside.mod(turn, ranks + 1);
          }
          Value reach = inside.extract(function.getArgument(0), where);
          Value past = inside.add(reach, inside.index(1));
          tensor::YieldOp::create(inner, loc, arrives(inside, past, turn));
        }));
  func::ReturnOp::create(top, loc, made);
  OpBuilder::InsertionGuard guard(builder);
  goInFrontOfLoops();
  return func::CallOp::create(builder, loc, function, op.getReach())
      .getResults();
}

/// The row of such a table for a turn.
Value RotateLowering::row(Value turn) {
  if (!op.getRing())
    return turn;
  return e.add(e.mul(op.getRing(), e.index(ranks + 1)), turn);
}

/// Flags by turn, for all owners and segments alike.
Value RotateLowering::turnTable(int64_t turns,
                                llvm::function_ref<Value(Emit, Value)> flag) {
  OpBuilder::InsertionGuard guard(builder);
  goInFrontOfLoops();
  return tensor::GenerateOp::create(
      builder, loc, RankedTensorType::get({1, turns, 1}, builder.getI1Type()),
      ValueRange(), [&](OpBuilder &inner, Location, ValueRange at) {
        tensor::YieldOp::create(inner, loc, flag({inner, loc}, at[1]));
      });
}

/// The same of a direct one: what is needed by the rank so far ahead, and
/// returns from it in the turn in which it is computed.
void RotateLowering::findDirectArrivals() {
  OpBuilder top(program);
  auto type = RankedTensorType::get(
      {parts, parts + 1, op.getLayout().getNumSegments()}, top.getI1Type());
  auto function = func::FuncOp::create(
      top, loc, (program.getName() + "_direct").str(),
      top.getFunctionType(op.getSegments().getType(), {type, type}));
  function.setPrivate();
  symbols.insert(function);
  top.setInsertionPointToStart(function.addEntryBlock());
  Values made;
  for (int64_t late : {0, 1})
    made.push_back(tensor::GenerateOp::create(
        top, loc, type, ValueRange(),
        [&](OpBuilder &inner, Location, ValueRange at) {
          Emit inside{inner, loc};
          // The own ones need no transfer.
          Value exists = inside.both(
              inside.compare(Predicate::ugt, at[1], inside.index(late)),
              inside.compare(Predicate::ult, at[1],
                             inside.index(parts + late)));
          Value distance = inside.mod(
              inside.add(at[1], inside.index(late == 0 ? 0 : parts - 1)),
              parts);
          Value needed =
              inside.extract(function.getArgument(0), {at[0], distance, at[2]});
          tensor::YieldOp::create(inner, loc, inside.both(exists, needed));
        }));
  func::ReturnOp::create(top, loc, made);
  OpBuilder::InsertionGuard guard(builder);
  goInFrontOfLoops();
  auto call = func::CallOp::create(builder, loc, function, op.getSegments());
  shardArrives = call.getResult(0);
  partialReturns = call.getResult(1);
}

/// Finds which segments travel. Without a reach all do, as far as the last
/// rank.
void RotateLowering::findArrivals() {
  if (op.getSegments())
    return findDirectArrivals();
  if (op.getReach()) {
    shardArrives = tables("slices", arrivesWithShard).front();
    if (!op.getJoin())
      return;
    ValueRange made = tables("partials", {arrivesBehindShard, returnsFromEnd});
    partialArrives = made[0];
    partialReturns = made[1];
    return;
  }
  if (!op.getJoin() && !op.isOuter())
    return;
  auto all = [&](Arrival arrives) {
    return turnTable(ranks + 1, [&](Emit inside, Value turn) {
      return arrives(inside, inside.index(ranks), turn);
    });
  };
  shardArrives = all(arrivesWithShard);
  if (!op.getJoin())
    return;
  partialArrives = all(arrivesBehindShard);
  partialReturns = op.getDirect()
                       ? turnTable(ranks + 1,
                                   [&](Emit inside, Value turn) {
                                     return inside.compare(Predicate::ugt, turn,
                                                           inside.index(1));
                                   })
                       : all(returnsFromEnd);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// One rank has all.
Values RotateLowering::alone() {
  Values own;
  if (op.getJoin())
    own = fresh(op.getTensors());
  return turn(rank, op.getTensors(), op.getInits(), own);
}

/// P - 1 times: compute with the shards at hand, pass them on, take the next
/// ones. Then compute with the last. An outer ring of a nest has a turn more,
/// in which nothing arrives: the inner one is there, and has its buffers, once.
Values RotateLowering::carriedOnly() {
  findPeers();
  findArrivals();
  size_t numShards = op.getTensors().size();
  Values inits(op.getTensors());
  inits.push_back(rank);
  llvm::append_range(inits, op.getInits());
  int64_t turns = op.isOuter() ? ranks : ranks - 1;
  auto loop = scf::ForOp::create(builder, loc, e.index(0), e.index(turns),
                                 e.index(1), inits);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    ValueRange args = loop.getRegionIterArgs();
    Values shards = take(args, numShards);
    Value owner = take(args, 1).front();
    Values carried = turn(owner, shards, args, {});
    Value behind = nextOwner(owner), past;
    if (shardArrives || op.getDirect())
      past = e.add(loop.getInductionVar(), e.index(1));
    Values yields = next(shards, owner, behind, past);
    yields.push_back(behind);
    llvm::append_range(yields, carried);
    scf::YieldOp::create(builder, loc, yields);
  }
  ValueRange results = loop.getResults();
  Values shards = take(results, numShards);
  Value owner = take(results, 1).front();
  return op.isOuter() ? Values(results) : turn(owner, shards, results, {});
}

/// Shards travel past what stays, and partial results go along, one hop behind
/// (but direct ones, which return from where they are computed):
/// what a rank computes is joined with what the ranks before it have, and
/// passed on, while the rank computes with the next shards. The last rank sends
/// the whole to the owner; what the owner itself computed has stayed there. All
/// hops are turns of one loop: tables say what has arrived for which.
Values RotateLowering::withPartials() {
  Values own = fresh(op.getTensors());
  findPeers();
  findArrivals();
  Value zero = e.index(0), one = e.index(1), end = e.index(ranks);
  Value isOwn = turnTable(ranks, [&](Emit inside, Value turn) {
    return inside.compare(Predicate::eq, turn, inside.index(0));
  });
  // Nothing arrives in front of the first hop, but hops take something there.
  auto none = DenseElementsAttr::get(
      RankedTensorType::get({1, 1, 1}, builder.getI1Type()), false);
  Flags nothing{arith::ConstantOp::create(builder, loc, none), zero};
  ArrayRef<int64_t> dims = *op.getPartialDims();
  Values onward;
  if (!op.getDirect())
    onward = send(own, dims, rank, to, nextOwner(rank), from, 1, nothing);
  Values returned = send(own, dims, rank, place, rank, place, 1, nothing);
  Values inits(op.getTensors());
  inits.push_back(rank);
  for (ValueRange some : {ValueRange(op.getInits()), ValueRange(own),
                          ValueRange(onward), ValueRange(returned)})
    llvm::append_range(inits, some);
  auto loop = scf::ForOp::create(builder, loc, zero, end, one, inits);
  size_t numShards = op.getTensors().size(), numCarried = op.getInits().size(),
         numPartials = own.size();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value t = loop.getInductionVar();
    ValueRange args = loop.getRegionIterArgs();
    Values shards = take(args, numShards);
    Value owner = take(args, 1).front();
    Values carried = take(args, numCarried);
    own = take(args, numPartials);
    onward = take(args, onward.size());
    returned = take(args, numPartials);
    Values given = turn(owner, shards, carried, fresh(shards));
    ValueRange rest = given;
    carried = take(rest, numCarried);
    Values part(rest);

    Value previous = nextOwner(owner), past = e.add(t, one);
    Values nextShards = next(shards, owner, previous, past);
    // What returned in the hop before, and what the owner computes itself.
    own = join(own, returned, rank, {partialReturns, row(t)});
    own = join(own, part, rank, {isOwn, t});
    if (!op.getDirect()) {
      part = join(part, onward, owner, {partialArrives, row(t)});
      onward = send(part, dims, owner, to, previous, from, 1,
                    {partialArrives, row(past)});
    }
    // Who has the own shards now is as far ahead as their owner is behind.
    Value ofOwner = placeOf(owner);
    Value holder =
        e.mod(e.add(place, e.sub(e.add(place, end), ofOwner)), ranks);
    returned = send(part, dims, owner, ofOwner, rank, holder, 1,
                    {partialReturns, row(past)});
    Values yields(nextShards);
    yields.push_back(previous);
    for (const Values &some : {carried, own, onward, returned})
      llvm::append_range(yields, some);
    scf::YieldOp::create(builder, loc, yields);
  }
  ValueRange results = loop.getResults();
  results = results.drop_front(numShards + 1);
  Values given = take(results, numCarried);
  own = take(results, numPartials);
  returned = Values(results.drop_front(onward.size()));
  llvm::append_range(given,
                     join(own, returned, rank, {partialReturns, row(end)}));
  return given;
}

namespace {
struct LowerRotate : burst::impl::LowerRotatePassBase<LowerRotate> {
  void runOnOperation() override {
    // Outer ones first: inner ones are lowered in the loops of these.
    SymbolTableCollection symbols;
    while (ring::RotateOp op = findOuter()) {
      auto program = op->getParentOfType<func::FuncOp>();
      if (!program) {
        op.emitOpError("must be in a func.func, the program of a rank");
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
