//===- Arrivals.cpp - what arrives for a turn of a rotate -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Rotate/Arrivals.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace burst;

using Predicate = arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Arrivals: of a segment whose shard is at its end, having gone a hop per turn,
// in the turn before `past`
//===----------------------------------------------------------------------===//

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
// Tables
//===----------------------------------------------------------------------===//

/// Tables are made once, also where this ring is lowered in the loop of
/// another.
void ArrivalTables::goInFrontOfLoops() {
  Operation *outermost = op;
  while (outermost->getParentOp() != program)
    outermost = outermost->getParentOp();
  builder.setInsertionPoint(outermost);
}

/// Calls a function of the reach that gives a table for each of `arrivals`. All
/// ranks share its results.
ValueRange ArrivalTables::byReach(StringRef name, int64_t direction,
                                  ArrayRef<Arrival> arrivals) {
  OpBuilder top(program);
  int64_t ranks = op.getNumRanks();
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
  SmallVector<Value> made;
  for (Arrival arrives : arrivals)
    made.push_back(tensor::GenerateOp::create(
        top, loc, type, ValueRange(),
        [&](OpBuilder &inner, Location, ValueRange at) {
          Emit inside{inner, loc};
          Value turn = at[1];
          SmallVector<Value> where{at[0], at[2]};
          if (op.getRing()) {
            where.insert(where.begin() + 1, inside.div(turn, ranks + 1));
            turn = inside.mod(turn, ranks + 1);
          } else if (op.getBidirectional()) {
            where.insert(where.begin() + 1, inside.index(direction));
          }
          Value reach = inside.extract(function.getArgument(0), where);
          Value past = inside.add(reach, inside.index(1));
          tensor::YieldOp::create(inner, loc, arrives(inside, past, turn));
        }));
  func::ReturnOp::create(top, loc, made);
  return func::CallOp::create(builder, loc, function, op.getReach())
      .getResults();
}

Value ArrivalTables::byTurn(int64_t turns,
                            llvm::function_ref<Value(Emit, Value)> flag) {
  return tensor::GenerateOp::create(
      builder, loc, RankedTensorType::get({1, turns, 1}, builder.getI1Type()),
      ValueRange(), [&](OpBuilder &inner, Location, ValueRange at) {
        tensor::YieldOp::create(inner, loc, flag({inner, loc}, at[1]));
      });
}

/// Of a direct one arrives what is needed by the rank so far ahead, and returns
/// from it in the turn in which it is computed.
Arrivals ArrivalTables::findDirect() {
  OpBuilder top(program);
  auto type = RankedTensorType::get(
      {parts, parts + 1, op.getLayout().getNumSegments()}, top.getI1Type());
  auto function = func::FuncOp::create(
      top, loc, (program.getName() + "_direct").str(),
      top.getFunctionType({op.getSegments().getType(), top.getIndexType()},
                          {type, type}));
  function.setPrivate();
  symbols.insert(function);
  top.setInsertionPointToStart(function.addEntryBlock());
  SmallVector<Value> made;
  for (int64_t late : {0, 1})
    made.push_back(tensor::GenerateOp::create(
        top, loc, type, ValueRange(),
        [&](OpBuilder &inner, Location, ValueRange at) {
          Emit inside{inner, loc};
          // The own ones need no transfer.
          Value exists = inside.both(
              inside.compare(Predicate::ugt, at[1], inside.index(late)),
              inside.compare(late == 0 ? Predicate::ult : Predicate::ule, at[1],
                             inside.index(parts)));
          Value turn =
              late == 0 ? at[1] : inside.add(at[1], function.getArgument(1));
          Value distance = inside.mod(turn, parts);
          Value needed =
              inside.extract(function.getArgument(0), {at[0], distance, at[2]});
          tensor::YieldOp::create(inner, loc, inside.both(exists, needed));
        }));
  func::ReturnOp::create(top, loc, made);
  // In functions a proof reads no P - 1: it is given.
  Emit e{builder, loc};
  auto call = func::CallOp::create(
      builder, loc, function, ValueRange{op.getSegments(), e.index(parts - 1)});
  return {call.getResult(0), {}, call.getResult(1)};
}

Arrivals ArrivalTables::find(int64_t direction, int64_t farthest,
                             bool hasPartials, bool isWhole) {
  if (op.getSegments())
    return findDirect();
  Arrivals found;
  if (op.getReach()) {
    found.shards = byReach("slices", direction, arrivesWithShard).front();
    if (!hasPartials)
      return found;
    ValueRange made =
        byReach("partials", direction, {arrivesBehindShard, returnsFromEnd});
    found.partials = made[0];
    found.returned = made[1];
    return found;
  }
  if (!hasPartials && !isWhole)
    return found;
  int64_t turns = op.getNumRanks() + 1;
  auto all = [&](Arrival arrives) {
    return byTurn(turns, [&](Emit inside, Value turn) {
      return arrives(inside, inside.index(farthest + 1), turn);
    });
  };
  found.shards = all(arrivesWithShard);
  if (!hasPartials)
    return found;
  found.partials = all(arrivesBehindShard);
  found.returned = op.getDirect()
                       ? byTurn(turns,
                                [&](Emit inside, Value turn) {
                                  return inside.compare(Predicate::ugt, turn,
                                                        inside.index(1));
                                })
                       : all(returnsFromEnd);
  return found;
}
