//===- AttendMutations.cpp - how attends and states are broken ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Slices.h"
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

//===----------------------------------------------------------------------===//
// What is attended
//===----------------------------------------------------------------------===//

static void setState(ring::AttendOp attend, ValueRange state) {
  attend.getOMutable().assign(state[0]);
  attend.getMMutable().assign(state[1]);
  attend.getLMutable().assign(state[2]);
}

static SmallVector<Value> stateOf(ring::AttendOp attend) {
  return SmallVector<Value>(attend.getState());
}

static bool doubleAttend(Schedule &s) {
  ring::AttendOp first = s.attends[0];
  OpBuilder builder(first->getNextNode());
  auto second = cast<ring::AttendOp>(builder.clone(*first));
  for (auto [a, b] : llvm::zip_equal(first.getResults(), second.getResults()))
    a.replaceAllUsesWith(b);
  setState(second, first.getResults());
  return true;
}

static bool dropLastAttend(Schedule &s) {
  if (!s.needsLast)
    return false;
  ring::AttendOp last = s.attends.back();
  for (auto [after, before] : llvm::zip_equal(last.getResults(), stateOf(last)))
    after.replaceAllUsesWith(before);
  last.erase();
  return true;
}

static bool mixSlices(Schedule &s) {
  s.attends.back().getValueMutable().set(s.program.getArgument(2));
  return true;
}

static bool swapKeysAndValues(Schedule &s) {
  Value key = s.start.getTensors()[0], value = s.start.getTensors()[1];
  if (key.getType() != value.getType())
    return false;
  s.start.getTensorsMutable().assign({value, key});
  return true;
}

static bool attendAConstant(Schedule &s) {
  ring::AttendOp attend = s.attends.back();
  auto type = cast<RankedTensorType>(attend.getKey().getType());
  if (!type.hasStaticShape())
    return false;
  Emit e(s, attend);
  auto zeros = DenseElementsAttr::get(type, e.builder.getF32FloatAttr(0));
  attend.getKeyMutable().set(
      arith::ConstantOp::create(e.builder, e.loc, zeros).getResult());
  return true;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// The queries of the rank behind, and that rank.
static std::pair<Value, Value> queriesOfAnother(Emit &e) {
  Value query = e.receive(
      e.send(e.schedule.program.getArgument(0), shardOf(e.schedule, 0), 1));
  // They are held beside the slices, which is not the point here.
  e.schedule.program->setAttr(ring::maxSlicesAttr,
                              e.builder.getDenseI64ArrayAttr({3, 3}));
  return {query, e.ahead(e.schedule.rank, e.schedule.parts - 1)};
}

static void setQuery(ring::AttendOp attend, std::pair<Value, Value> queries) {
  attend.getQueryMutable().set(queries.first);
  attend.getQueryOwnerMutable().set(queries.second);
}

/// All is attended as it should be, but for the rows of another rank.
static bool returnRowsOfAnotherRank(Schedule &s) {
  if (hasFlags(s))
    return false;
  Emit e = Emit::atTop(s);
  auto queries = queriesOfAnother(e);
  s.init->moveAfter(queries.second.getDefiningOp());
  s.init.getQueryMutable().set(queries.first);
  for (ring::AttendOp attend : s.attends)
    setQuery(attend, queries);
  return true;
}

static bool mixQueries(Schedule &s) {
  if (hasFlags(s))
    return false;
  Emit e = Emit::atTop(s);
  setQuery(s.attends.back(), queriesOfAnother(e));
  return true;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

static bool restartStateInLoop(Schedule &s) {
  if (!s.loop)
    return false;
  setState(s.attends[0], s.init.getResults());
  return true;
}

static bool restartStateBehindLoop(Schedule &s) {
  setState(s.attends.back(), s.init.getResults());
  return true;
}

static bool tearState(Schedule &s) {
  s.attends.back().getMMutable().assign(s.init.getM());
  return true;
}

static bool swapRows(Schedule &s) {
  s.finalize.getMMutable().set(s.attends.back().getMade(2));
  s.finalize.getLMutable().set(s.attends.back().getMade(1));
  return true;
}

static bool finalizeEarly(Schedule &s) {
  if (!s.needsLast)
    return false;
  SmallVector<Value> state = stateOf(s.attends.back());
  s.finalize->setOperands(state);
  return true;
}

static bool finalizeFresh(Schedule &s) {
  s.finalize->setOperands(s.init.getResults());
  return true;
}

static bool finalizeTornState(Schedule &s) {
  s.finalize.getLMutable().set(s.init.getL());
  return true;
}

/// The last state becomes one that is merged with `from`.
static void mergeAtTheEnd(Schedule &s, ValueRange into, ValueRange from) {
  Emit e(s, s.finalize);
  ring::AttendOp last = s.attends.back();
  auto merge = ring::MergeOp::create(
      e.builder, e.loc, into.getTypes(), into[0], into[1], into[2], from[0],
      from[1], from[2], s.rank, last.getQueryExtent(),
      /*segments=*/Value(), /*turn=*/Value(), last.getQueryLayout());
  s.finalize->setOperands(merge.getResults());
}

static bool mergeAStateWithItself(Schedule &s) {
  ValueRange state = s.attends.back().getResults();
  mergeAtTheEnd(s, state, state);
  return true;
}

static bool mergeTornState(Schedule &s) {
  ValueRange state = s.attends.back().getResults();
  mergeAtTheEnd(s, {s.init.getO(), s.init.getM(), state[2]}, state);
  return true;
}

static bool returnAState(Schedule &s) {
  auto ret = cast<func::ReturnOp>(s.program.getBody().front().getTerminator());
  if (s.finalize.getO().getType() != s.finalize.getMade()[0].getType())
    return false;
  ret->setOperand(0, s.finalize.getO());
  return true;
}

//===----------------------------------------------------------------------===//
// What attends compute
//===----------------------------------------------------------------------===//

static bool changeMask(Schedule &s) {
  Region &mask = s.attends.back().getMask();
  if (mask.empty())
    return false;
  Operation *yield = mask.front().getTerminator();
  Emit e(s, yield);
  yield->setOperand(0,
                    arith::XOrIOp::create(e.builder, e.loc,
                                          yield->getOperand(0), e.truth(true)));
  return true;
}

static bool changeScore(Schedule &s) {
  ring::AttendOp attend = s.attends.back();
  OpBuilder builder(s.module.getContext());
  Block &block = addRegionBlock(builder, attend.getLoc(), attend.getScore(),
                                RegionRole::Score, attend.getStateType(), {});
  Value score = block.getArgument(0);
  Value twice = arith::AddFOp::create(builder, attend.getLoc(), score, score);
  YieldOp::create(builder, attend.getLoc(), twice);
  return true;
}

static bool changeScale(Schedule &s) {
  s.attends.back().setScaleAttr(
      OpBuilder(s.module.getContext()).getF64FloatAttr(1));
  return true;
}

/// Each rank's attends agree with each other, but not with those of others.
static bool changeScaleOfOneRank(Schedule &s) {
  for (ring::AttendOp attend : s.attends) {
    Emit e(s, attend);
    scf::IfOp branch = e.branchOnRank(0, attend->getResultTypes());
    attend->replaceAllUsesWith(branch.getResults());
    for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
      OpBuilder inner = OpBuilder::atBlockEnd(block);
      auto clone = cast<ring::AttendOp>(inner.clone(*attend));
      if (block == branch.thenBlock())
        clone.setScaleAttr(inner.getF64FloatAttr(1));
      scf::YieldOp::create(inner, attend.getLoc(), clone->getResults());
    }
    attend.erase();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

ArrayRef<Mutation> attendMutations() {
  static constexpr Mutation mutations[] = {
      {"an attend is doubled", doubleAttend, "a second time", "ring.attend"},
      {"the last attend is dropped", dropLastAttend, "lacks query segment",
       "ring.finalize"},
      {"a key meets the value of another hop", mixSlices,
       "takes the values for those of rank", "ring.attend"},
      {"keys and values change places", swapKeysAndValues,
       "attends slices of other tensors", "ring.attend"},
      {"a constant is attended", attendAConstant,
       "keys that are no shard of an argument", "ring.attend"},
      {"a rank returns the rows of another", returnRowsOfAnotherRank,
       "returns .* queries of rank", "func.return"},
      {"a state sees queries of two ranks", mixQueries,
       "attends with the queries of rank|not the rows of its queries",
       "ring.attend"},
      {"the state restarts in the loop", restartStateInLoop,
       "lacks query segment", "ring.finalize"},
      {"the state restarts behind the loop", restartStateBehindLoop,
       "lacks query segment", "ring.finalize"},
      {"a state is torn", tearState, "of different states", "ring.attend"},
      {"m and l change places", swapRows, "m and l", "ring.finalize"},
      {"the state ends before the last attend", finalizeEarly,
       "lacks query segment", "ring.finalize"},
      {"a fresh state ends", finalizeFresh, "attended nothing",
       "ring.finalize"},
      {"a torn state ends", finalizeTornState, "of different states",
       "ring.finalize"},
      {"a state is merged with itself", mergeAStateWithItself,
       "absorbed the same pair", "ring.merge"},
      {"a torn state is merged", mergeTornState, "of different states",
       "ring.merge"},
      {"a state is returned", returnAState, "what no ring.finalize",
       "func.return"},
      {"the mask of one attend is changed", changeMask, "another mask",
       "ring.attend"},
      {"the score of one attend is changed", changeScore, "another mask, score",
       "ring.attend"},
      {"the scale of one attend is changed", changeScale,
       "another mask, score, scale", "ring.attend"},
      {"one rank has another scale", changeScaleOfOneRank, "returns .* rank 0",
       "func.return"},
  };
  return mutations;
}

} // namespace burst::test
