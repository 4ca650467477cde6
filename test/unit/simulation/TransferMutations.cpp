//===- TransferMutations.cpp - how transfers are broken -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Slices.h"
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static bool dropWait(Schedule &s) {
  for (auto [received, sent] :
       llvm::zip_equal(s.wait.getResults(), s.start.getTensors()))
    received.replaceAllUsesWith(sent);
  s.wait.erase();
  return true;
}

static bool doubleWait(Schedule &s) {
  OpBuilder(s.wait->getNextNode()).clone(*s.wait);
  return true;
}

static bool neverWait(Schedule &s) {
  Emit e = Emit::atTop(s);
  e.send(s.program.getArgument(0), shardOf(s, 0), 1);
  // What it receives stays, which is not the point.
  s.program->setAttr(ring::maxSlicesAttr,
                     e.builder.getDenseI64ArrayAttr({3, 3}));
  return true;
}

//===----------------------------------------------------------------------===//
// Owners and peers
//===----------------------------------------------------------------------===//

static bool shiftAttendOwner(Schedule &s) {
  Emit e(s, s.attends[0]);
  s.attends[0].getKeyOwnerMutable().set(e.ahead(s.attends[0].getKeyOwner()));
  return true;
}

static bool shiftStartOwner(Schedule &s) {
  Emit e(s, s.start);
  s.start.getOwnerMutable().set(e.ahead(s.start.getOwner()));
  return true;
}

static bool shiftReceivedOwner(Schedule &s) {
  Emit e(s, s.start);
  s.start.getReceivedOwnerMutable().assign(e.ahead(s.start.getReceivedOwner()));
  return true;
}

static bool shiftQueryOwner(Schedule &s) {
  Emit e(s, s.attends[0]);
  s.attends[0].getQueryOwnerMutable().set(
      e.ahead(s.attends[0].getQueryOwner()));
  return true;
}

static bool misdirectSendOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  Value to = s.start.getTo();
  s.start.getToMutable().assign(
      e.onRank(s.messages.front().from, e.ahead(to), to));
  return true;
}

static bool misdirectReceiveOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  Value from = s.start.getFrom();
  s.start.getFromMutable().assign(
      e.onRank(s.messages.front().to, e.ahead(from), from));
  return true;
}

static bool swapPeers(Schedule &s) {
  if (s.parts == 2 || s.messages.empty())
    return false; // The two peers are one.
  Value to = s.start.getTo(), from = s.start.getFrom();
  s.start.getToMutable().assign(from);
  s.start.getFromMutable().assign(to);
  return true;
}

static bool sendToNoRank(Schedule &s) {
  Emit e(s, s.start);
  s.start.getToMutable().assign(e.plus(s.start.getTo(), s.parts));
  return true;
}

static bool attendOfNoOwner(Schedule &s) {
  Emit e(s, s.attends[0]);
  s.attends[0].getKeyOwnerMutable().set(
      e.plus(s.attends[0].getKeyOwner(), s.parts));
  return true;
}

static bool takeRankOfAnotherGrid(Schedule &s) {
  Emit e = Emit::atTop(s);
  OpBuilder top = OpBuilder::atBlockBegin(s.module.getBody());
  shard::GridOp::create(top, e.loc, "other", s.parts);
  auto other = shard::ProcessMultiIndexOp::create(e.builder, e.loc, "other",
                                                  ArrayRef<shard::GridAxis>{0});
  s.rank.replaceAllUsesWith(other.getResult()[0]);
  return true;
}

//===----------------------------------------------------------------------===//
// Hops
//===----------------------------------------------------------------------===//

static bool shortenLoop(Schedule &s) {
  if (!s.loop || !s.needsLast)
    return false;
  Emit e(s, s.loop);
  s.loop.setUpperBound(e.index(s.parts - 2));
  return true;
}

static bool lengthenLoop(Schedule &s) {
  if (!s.loop)
    return false;
  Emit e(s, s.loop);
  s.loop.setUpperBound(e.index(s.parts));
  return true;
}

static bool startTwice(Schedule &s) {
  // Only a rank that receives in two hops running holds three slices.
  auto receives = [&](int64_t rank, int64_t hop) {
    return llvm::any_of(s.messages, [&](const Schedule::Message &m) {
      return m.to == rank && m.hop == hop;
    });
  };
  bool hasTwo = llvm::any_of(s.messages, [&](const Schedule::Message &m) {
    return m.hop == 0 && receives(m.to, 1);
  });
  if (!s.loop || !hasTwo)
    return false;
  OpBuilder builder(s.start->getNextNode());
  auto second = cast<ring::StartOp>(builder.clone(*s.start));
  second.setChannelAttr(ring::ChannelAttr::get(
      s.module.getContext(), s.start.getChannel().getGrid(),
      s.start.getChannel().getAxes(), 1));
  builder.setInsertionPointAfter(s.wait);
  ring::WaitOp::create(builder, s.wait.getLoc(), s.wait.getResultTypes(),
                       second.getToken());
  return true;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static bool clearPair(Schedule &s) {
  Emit e(s, s.attends[0]);
  // The pair of the first segments of a rank is on every mask's diagonal.
  e.changePairs(s.attends[0], [&](Emit &e, Value old, ValueRange at) {
    Value keep = e.either(e.differs(at[2], 0), e.differs(at[3], 0));
    return e.both(old, e.either(keep, e.differs(s.rank, 0)));
  });
  return true;
}

static bool setPairs(Schedule &s) {
  if (!s.hasRuledOut || s.options.allowEmpty)
    return false;
  for (ring::AttendOp attend : s.attends)
    Emit(s, attend).changePairs(
        attend, [](Emit &e, Value, ValueRange) { return e.truth(true); });
  return true;
}

static bool clearSendOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  keepSegments(s, s.start, s.start.getOwner(),
               e.differs(s.rank, s.messages.front().from));
  return true;
}

static bool clearReceiveOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  keepSegments(s, s.start, s.start.getReceivedOwner(),
               e.differs(s.rank, s.messages.front().to));
  return true;
}

/// Nothing travels in the first hop, and the second passes on what is not
/// there.
static bool forwardWhatNeverCame(Schedule &s) {
  bool travelsOn = llvm::any_of(
      s.messages, [](const Schedule::Message &m) { return m.hop == 1; });
  if (!s.loop || !travelsOn)
    return false;
  changeSegments(s, s.start, [&](Emit &e, Value old, ValueRange) {
    return e.both(old, e.differs(s.loop.getInductionVar(), 0));
  });
  return true;
}

/// Nothing travels at all.
static bool attendWhatNeverCame(Schedule &s) {
  if (s.messages.empty())
    return false;
  changeSegments(s, s.start,
                 [](Emit &e, Value, ValueRange) { return e.truth(false); });
  return true;
}

//===----------------------------------------------------------------------===//
// What nobody needs
//===----------------------------------------------------------------------===//

void sendFarther(Ring &s, ring::StartOp start) {
  Value table = start.getSegments();
  changeSegments(s, start, [&](Emit &e, Value old, ValueRange at) {
    Value isFirst = e.equals(at[1], 0);
    Value before = arith::SelectOp::create(e.builder, e.loc, isFirst, at[1],
                                           e.plus(at[1], -1));
    return e.either(old, e.entry(table, at[0], before, at[2]));
  });
}

/// Whether some rank has received what it does not send on, and is not the last
/// one that there is.
static bool endsEarly(Schedule &s) {
  return s.loop && s.start.getSegments() &&
         llvm::any_of(s.messages, [&](const Schedule::Message &m) {
           return m.hop + 2 < s.parts &&
                  llvm::none_of(s.messages, [&](const Schedule::Message &next) {
                    return next.from == m.to && next.hop == m.hop + 1;
                  });
         });
}

static bool sendSlicesFarther(Schedule &s) {
  if (!endsEarly(s))
    return false;
  sendFarther(s, s.start);
  return true;
}

/// All of each shard goes round.
static bool sendWithoutFlags(Schedule &s) {
  if (!endsEarly(s))
    return false;
  s.start.getSegmentsMutable().clear();
  s.start.getTurnMutable().clear();
  return true;
}

/// A shard goes to a rank that uses none of it.
static bool sendInVain(Schedule &s) {
  Emit e = Emit::atTop(s);
  e.receive(e.send(s.program.getArgument(2), shardOf(s, 2), 2));
  return true;
}

/// Values come, and those that have come before are attended.
static bool sendTwice(Schedule &s) {
  if (s.messages.empty() || s.parts == 2)
    return false;
  OpBuilder builder(s.start->getNextNode());
  auto second = cast<ring::StartOp>(builder.clone(*s.start));
  second.setChannelAttr(ring::ChannelAttr::get(
      s.module.getContext(), s.start.getChannel().getGrid(),
      s.start.getChannel().getAxes(), 3));
  s.program->setAttr(ring::maxSlicesAttr,
                     builder.getDenseI64ArrayAttr({2, 2, 2, 2}));
  builder.setInsertionPointAfter(s.wait);
  ring::WaitOp::create(builder, s.wait.getLoc(), s.wait.getResultTypes(),
                       second.getToken());
  return true;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

/// Two transfers, each waited for at once: one rank runs them in the other
/// order, on two channels.
static bool crossChannels(Schedule &s) {
  Emit e = Emit::atTop(s);
  scf::IfOp branch = e.branchOnRank(0);
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    Emit inner(s, block->getTerminator());
    bool crosses = block == branch.thenBlock();
    for (int64_t channel : {crosses ? 2 : 1, crosses ? 1 : 2})
      inner.receive(
          inner.send(s.program.getArgument(1), shardOf(s, 1), channel));
  }
  return true;
}

static bool sendOnAnotherGrid(Schedule &s) {
  Emit e = Emit::atTop(s);
  OpBuilder top = OpBuilder::atBlockBegin(s.module.getBody());
  shard::GridOp::create(top, e.loc, "other", s.parts);
  scf::IfOp branch = e.branchOnRank(0);
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    Emit inner(s, block->getTerminator());
    inner.receive(inner.send(s.program.getArgument(1), shardOf(s, 1), 1,
                             block == branch.thenBlock() ? "other" : "cp"));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

ArrayRef<Mutation> transferMutations() {
  static constexpr Mutation mutations[] = {
      {"a wait is dropped", dropWait,
       "takes the keys for those of rank|sends (a tensor|the shard) of",
       "ring.(attend|start)"},
      {"a wait is doubled", doubleWait, "waits again", "ring.wait"},
      {"a transfer is never waited for", neverWait, "is never waited for",
       "ring.start"},
      {"an attend's owner is off by one", shiftAttendOwner,
       "takes the keys for those of rank", "ring.attend"},
      {"a start's owner is off by one", shiftStartOwner,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the received owner is off by one", shiftReceivedOwner,
       "receives .* from rank|takes the keys for those", "ring.(start|attend)"},
      {"the query's owner is off by one", shiftQueryOwner,
       "takes the queries for those of rank", "ring.attend"},
      {"one rank sends elsewhere", misdirectSendOfOneRank,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank receives from elsewhere", misdirectReceiveOfOneRank,
       "deadlock|receives .* from rank", "ring.start"},
      {"the peers are swapped", swapPeers, "deadlock|receives .* from rank",
       "ring.start"},
      {"a peer is no rank", sendToNoRank, "names rank [0-9]+ as target",
       "ring.start"},
      {"an owner is no rank", attendOfNoOwner, "names rank [0-9]+ as owner",
       "ring.attend"},
      {"the rank is that of another grid", takeRankOfAnotherGrid,
       "@other, the program runs on @cp", "shard.process_multi_index"},
      {"a hop too few", shortenLoop, "lacks query segment", "ring.finalize"},
      {"a hop too many", lengthenLoop,
       "deadlock|a second time|reads flags of segments|was not received",
       "ring.(start|attend)"},
      {"three slices are held", startTwice, "while 2 are still needed",
       "ring.start"},
      {"a pair is skipped", clearPair,
       "lacks query segment 0 with segment 0 of rank 0", "ring.finalize"},
      {"ruled-out pairs are computed", setPairs,
       "the mask keeps nothing|was not received", "ring.attend"},
      {"one rank does not send", clearSendOfOneRank,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not receive", clearReceiveOfOneRank,
       "deadlock|receives .* from rank|reads segment|sends segments",
       "ring.(start|attend)"},
      {"what never came is passed on", forwardWhatNeverCame,
       "reads segment|sends segments", "ring.(start|attend)"},
      {"what never came is attended", attendWhatNeverCame,
       "reads segment|sends segments", "ring.(start|attend)"},
      {"shards go a hop too far", sendSlicesFarther,
       "receives segment [01] of the shard of rank [0-9]+, in tensor 0, and "
       "neither reads it nor sends it on; its flags must leave that out",
       "ring.start"},
      {"shards go round without flags", sendWithoutFlags,
       "neither reads it nor sends it on; ring-drop-empty flags what is needed",
       "ring.start"},
      {"a shard comes that is not used", sendInVain,
       "receives segment 0 .* neither reads it nor sends it on", "ring.start"},
      {"a shard comes a second time", sendTwice,
       "neither reads it nor sends it on", "ring.start"},
      {"channels are crossed", crossChannels,
       "deadlock: .*rank [0-9]+, .* on channel [012]", "ring.start"},
      {"one rank sends on another grid's channel", sendOnAnotherGrid,
       "@other, the program runs on @cp", "ring.start"},
  };
  return mutations;
}

} // namespace burst::test
