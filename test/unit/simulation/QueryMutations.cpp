//===- QueryMutations.cpp - how queries and their states go wrong ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

template <bool (*Mutate)(Returning &)>
static bool with(Queries &s) {
  return Mutate(s);
}

//===----------------------------------------------------------------------===//
// What is attended
//===----------------------------------------------------------------------===//

static bool shiftQueryOwner(Queries &s) {
  Emit e(s, s.attend);
  s.attend.getQueryOwnerMutable().set(e.ahead(s.attend.getQueryOwner()));
  return true;
}

static bool attendWithOwnQueries(Queries &s) {
  if (s.attend.getQuery().getType() != s.program.getArgument(0).getType())
    return false;
  s.attend.getQueryMutable().set(s.program.getArgument(0));
  return true;
}

/// For the state that has stayed, whoever's queries they are.
static bool attendForOwnState(Queries &s) {
  ValueRange carried = s.returnMerge.getInto();
  if (carried[0].getType() != s.attend.getO().getType())
    return false;
  s.attend.getOMutable().assign(carried[0]);
  s.attend.getMMutable().assign(carried[1]);
  s.attend.getLMutable().assign(carried[2]);
  return true;
}

static bool tearState(Queries &s) {
  if (s.own.getL().getType() != s.attend.getL().getType())
    return false;
  s.attend.getLMutable().assign(s.own.getL());
  return true;
}

static bool changeScaleOfOneOwner(Queries &s) {
  Emit e(s, s.attend);
  auto isFirst =
      arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq,
                            s.attend.getQueryOwner(), s.rank);
  auto branch = scf::IfOp::create(e.builder, e.loc, s.attend->getResultTypes(),
                                  isFirst, /*withElseRegion=*/true);
  s.attend->replaceAllUsesWith(branch.getResults());
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    OpBuilder inner = OpBuilder::atBlockEnd(block);
    auto clone = cast<ring::AttendOp>(inner.clone(*s.attend));
    if (block == branch.thenBlock())
      clone.setScaleAttr(inner.getF64FloatAttr(1));
    scf::YieldOp::create(inner, e.loc, clone->getResults());
  }
  s.attend.erase();
  return true;
}

//===----------------------------------------------------------------------===//
// What is merged
//===----------------------------------------------------------------------===//

static bool leaveOut(ring::MergeOp merge) {
  merge->replaceAllUsesWith(ValueRange(merge.getInto()));
  merge.erase();
  return true;
}

static bool leaveOutOwnPart(Queries &s) { return leaveOut(s.ownMerge); }

static bool leaveOutWhatCame(Queries &s) {
  return !s.onwards.empty() && leaveOut(s.onwardMerge);
}

static bool leaveOutWhatComesLast(Queries &s) {
  return s.hasLastReturn() && leaveOut(s.lastMerge);
}

static bool leaveOutWhatComesEarlier(Queries &s) {
  return s.returns.size() > 1 &&
         !llvm::all_of(s.returns,
                       [&](const auto &m) { return m.turn == s.parts - 1; }) &&
         leaveOut(s.returnMerge);
}

static bool mergeTwice(Queries &s) {
  if (!s.hasLastReturn())
    return false;
  OpBuilder builder(s.lastMerge->getNextNode());
  auto again = cast<ring::MergeOp>(builder.clone(*s.lastMerge));
  s.lastMerge->replaceUsesWithIf(again->getResults(), [&](OpOperand &use) {
    return use.getOwner() != again;
  });
  again->setOperands(0, 3, s.lastMerge->getResults());
  return true;
}

/// What this rank computes of others is merged into its own state.
static bool mergePartsOfOthers(Queries &s) {
  changeSegments(s, s.ownMerge,
                 [](Emit &e, Value, ValueRange) { return e.truth(true); });
  return true;
}

/// What returns to the owner is not all that is merged.
static bool mergeWhatDidNotCome(Queries &s) {
  changeSegments(s, s.onwardMerge,
                 [](Emit &e, Value, ValueRange) { return e.truth(true); });
  return true;
}

static bool mergeForAnotherOwner(Queries &s) {
  Emit e(s, s.lastMerge);
  s.lastMerge.getOwnerMutable().set(e.ahead(s.lastMerge.getOwner()));
  return s.hasLastReturn();
}

static bool mergeTornState(Queries &s) {
  if (!s.hasLastReturn())
    return false;
  s.lastMerge.getL2Mutable().set(s.lastMerge.getL1());
  return true;
}

static bool finalizeEarly(Queries &s) {
  if (!s.hasLastReturn())
    return false;
  s.finalize->setOperands(ValueRange(s.lastMerge.getInto()));
  return true;
}

static bool finalizeWhatReturns(Queries &s) {
  if (!s.hasLastReturn())
    return false;
  s.finalize->setOperands(ValueRange(s.lastMerge.getFrom()));
  return true;
}

//===----------------------------------------------------------------------===//
// What travels
//===----------------------------------------------------------------------===//

static bool dropWaitOfSlice(Queries &s) { return dropWait(s.slice); }
static bool dropWaitOfOnward(Queries &s) { return dropWait(s.onward); }
static bool dropWaitOfReturn(Queries &s) { return dropWait(s.toOwner); }
static bool doubleWaitOfReturn(Queries &s) { return doubleWait(s.toOwner); }
static bool shiftOwnerOfSlice(Queries &s) { return shiftOwner(s, s.slice); }
static bool shiftOwnerOfOnward(Queries &s) { return shiftOwner(s, s.onward); }
static bool shiftOwnerOfReturn(Queries &s) { return shiftOwner(s, s.toOwner); }
static bool shiftReceivedOwnerOfOnward(Queries &s) {
  return !s.onwards.empty() && shiftReceivedOwner(s, s.onward);
}
static bool clearSendsOfSlice(Queries &s) {
  return clearSends(s, s.slice, s.slices);
}
static bool clearSendsOfOnward(Queries &s) {
  return clearSends(s, s.onward, s.onwards);
}
static bool clearSendsOfReturn(Queries &s) {
  return clearSends(s, s.toOwner, s.returns);
}
static bool clearReceivesOfSlice(Queries &s) {
  return clearReceives(s, s.slice, s.slices);
}
static bool clearReceivesOfOnward(Queries &s) {
  return clearReceives(s, s.onward, s.onwards);
}
static bool clearReceivesOfReturn(Queries &s) {
  return clearReceives(s, s.toOwner, s.returns);
}
static bool neverSendSlices(Queries &s) {
  return clearBoth(s, s.slice, s.slices);
}
static bool neverSendOnward(Queries &s) {
  return clearBoth(s, s.onward, s.onwards);
}
static bool neverReturn(Queries &s) {
  return clearBoth(s, s.toOwner, s.returns);
}

static bool sendOwnStateOnward(Queries &s) {
  return sendOwnPartOnward<ring::MergeOp>(s, s.onwardMerge);
}

static bool returnNoStates(Queries &s) {
  return returnNothing<ring::MergeOp>(s, s.returnMerge);
}

/// The state that this rank attended, without what came.
static bool sendBeforeTheMerge(Queries &s) {
  if (s.onwards.empty())
    return false;
  for (ring::StartOp start : {s.onward, s.toOwner})
    start.getTensorsMutable().assign(ValueRange(s.onwardMerge.getInto()));
  return true;
}

/// What came is merged while the state is under way.
static bool mergeWhileUnderWay(Queries &s) {
  if (!sendBeforeTheMerge(s))
    return false;
  ring::StartOp last =
      s.onward->isBeforeInBlock(s.toOwner) ? s.toOwner : s.onward;
  s.onwardMerge->moveAfter(last);
  // Both are waited for behind the merge.
  for (ring::StartOp start : {s.onward, s.toOwner})
    if (ring::WaitOp wait = waitInHop(start))
      wait->moveBefore(s.loop.getBody()->getTerminator());
  return true;
}

static bool swapRowsOnTheWay(Queries &s) {
  if (s.onwards.empty())
    return false;
  Value m = s.onward.getTensors()[1], l = s.onward.getTensors()[2];
  s.onward.getTensorsMutable().slice(1, 2).assign({l, m});
  return true;
}

ArrayRef<QueryMutation> queryMutations() {
  static constexpr QueryMutation mutations[] = {
      {"the owner of queries is off by one", shiftQueryOwner,
       "takes the queries for those of rank", "ring.attend"},
      {"own queries are attended for those of others", attendWithOwnQueries,
       "takes the queries for those of rank|not the rows of its queries",
       "ring.attend"},
      {"queries of others are attended for the own state", attendForOwnState,
       "for a state of those of|not the rows of its queries", "ring.attend"},
      {"a state is torn", tearState, "of different states", "ring.attend"},
      {"the scale of own queries is another", changeScaleOfOneOwner,
       "another mask, score, scale", "ring.merge"},
      {"the own part is left out", leaveOutOwnPart,
       "lacks query segment|attended nothing", "ring.finalize"},
      {"what comes on the way is left out", leaveOutWhatCame,
       "lacks query segment", "ring.finalize"},
      {"what returns to the owner last is left out", leaveOutWhatComesLast,
       "lacks query segment", "ring.finalize"},
      {"what returns to the owner earlier is left out",
       leaveOutWhatComesEarlier, "lacks query segment", "ring.finalize"},
      {"a state is merged twice", mergeTwice, "absorbed the same pair",
       "ring.merge"},
      {"parts of others are merged into the own state", mergePartsOfOthers,
       "merges a state of the queries of rank|merges states of", "ring.merge"},
      {"a state is merged that did not come", mergeWhatDidNotCome,
       "merges segments .* of a state, of which it has|states of different "
       "rows",
       "ring.merge"},
      {"states are merged as another owner's", mergeForAnotherOwner,
       "merges a state of the queries of rank|merges states of|"
       "lacks query segment",
       "ring.(merge|finalize)"},
      {"a torn state is merged", mergeTornState, "of different states",
       "ring.merge"},
      {"the state ends before what returns to the owner last", finalizeEarly,
       "lacks query segment", "ring.finalize"},
      {"only what returns to the owner is returned", finalizeWhatReturns,
       "lacks query segment|ends segments|did not make", "ring.finalize"},
      {"the wait for queries is dropped", dropWaitOfSlice,
       "takes the queries for those of rank|sends (a tensor|the shard) of|is "
       "never waited for",
       "ring.(attend|start)"},
      {"the wait for a state is dropped", dropWaitOfOnward,
       "merges a state of|states of different rows|absorbed the same pair|is "
       "never waited for",
       "ring.(merge|start)"},
      {"the wait for returned a state is dropped", dropWaitOfReturn,
       "merges a state of|states of different rows|absorbed the same pair|is "
       "never waited for",
       "ring.(merge|start)"},
      {"a wait is doubled", doubleWaitOfReturn, "waits again", "ring.wait"},
      {"the owner of queries sent is off by one", shiftOwnerOfSlice,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the owner of a state is off by one", shiftOwnerOfOnward,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the owner of a state returning to the owner is off by one",
       shiftOwnerOfReturn, "sends (a tensor|the shard) of", "ring.start"},
      {"the received owner of a state is off by one",
       shiftReceivedOwnerOfOnward, "receives .* from rank|deadlock",
       "ring.start"},
      {"one rank sends states elsewhere", with<misdirectOnwardOfOneRank>,
       "deadlock|receives .* from rank", "ring.start"},
      {"states return to another rank", with<misdirectReturn>,
       "deadlock|receives .* from rank", "ring.start"},
      {"states return from elsewhere", with<takeReturnFromAnother>,
       "deadlock|receives .* from rank", "ring.start"},
      {"states go round the other way", with<turnPartialsRound>,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not send its queries", clearSendsOfSlice,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not send a state", clearSendsOfOnward,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not return a state", clearSendsOfReturn,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not receive queries", clearReceivesOfSlice,
       "deadlock|receives .* from rank|which was not received|sends segments",
       "ring.(start|attend)"},
      {"one rank does not receive a state", clearReceivesOfOnward,
       "deadlock|receives .* from rank|merges segments", "ring.(start|merge)"},
      {"one rank does not receive returned a state", clearReceivesOfReturn,
       "deadlock|receives .* from rank|merges segments", "ring.(start|merge)"},
      {"no queries are sent", neverSendSlices,
       "which was not received|sends segments", "ring.(start|attend)"},
      {"no states are sent on", neverSendOnward, "merges segments",
       "ring.merge"},
      {"no states are returned", neverReturn, "merges segments", "ring.merge"},
      {"the own state is sent on too", sendOwnStateOnward,
       "absorbed the same pair", "ring.merge"},
      {"states are sent without what came", sendBeforeTheMerge,
       "lacks query segment", "ring.finalize"},
      {"states change while they are under way", mergeWhileUnderWay,
       "changes a state that is under way", "ring.merge"},
      {"queries go a hop too far", with<sendSlicesFarther>,
       "segment [01] of the shard of rank .* neither reads it nor sends it on",
       "ring.start"},
      {"states go a hop too far", with<sendPartialsFarther>,
       "of a partial result of rank .* neither joins it nor sends it on",
       "ring.start"},
      {"states return for which nothing was computed", returnNoStates,
       "receives segment 0 of its partial result from rank [0-9]+, in tensor "
       "0, for which nothing was computed",
       "ring.start"},
      {"m and l change places on the way", swapRowsOnTheWay,
       "receives .* from rank|m and l", "ring.(start|merge)"},
      {"states are sent with another layout", with<sendWithTheWrongLayout>,
       "sends what is laid out as|sends a tensor of", "ring.start"},
      {"three states are held", with<holdTooMany>,
       "receives a state while 2 are still needed", "ring.start"},
  };
  return mutations;
}

} // namespace burst::test
