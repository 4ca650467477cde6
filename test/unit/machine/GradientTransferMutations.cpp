//===- GradientTransferMutations.cpp - how gradients travel wrongly -------===//
#include "test/unit/machine/Mutations.h"

using namespace mlir;

namespace burst::test {

/// The wait in the same hop, or null where it stands in the next.
static ring::WaitOp waitInHop(ring::StartOp start) {
  return dyn_cast<ring::WaitOp>(*start.getToken().user_begin());
}

/// That, or the wait of what the loop carries on.
static ring::WaitOp waitOf(ring::StartOp start) {
  OpOperand &use = *start.getToken().use_begin();
  if (auto wait = dyn_cast<ring::WaitOp>(use.getOwner()))
    return wait;
  auto loop = cast<scf::ForOp>(start->getParentOp());
  Value carried = loop.getRegionIterArg(use.getOperandNumber());
  return cast<ring::WaitOp>(*carried.user_begin());
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static bool dropWait(ring::StartOp start) {
  ring::WaitOp wait = waitInHop(start);
  if (!wait)
    return false;
  for (auto [received, sent] :
       llvm::zip_equal(wait.getResults(), start.getTensors()))
    received.replaceAllUsesWith(sent);
  wait.erase();
  return true;
}

static bool dropWaitOfSlice(Backward &s) { return dropWait(s.slice); }

static bool dropWaitOfOnward(Backward &s) { return dropWait(s.onward); }

static bool dropWaitOfHome(Backward &s) { return dropWait(s.home); }

static bool doubleWait(Backward &s) {
  ring::WaitOp wait = waitOf(s.onward);
  OpBuilder(wait->getNextNode()).clone(*wait);
  return true;
}

//===----------------------------------------------------------------------===//
// Owners and peers
//===----------------------------------------------------------------------===//

static void shiftOwner(Backward &s, ring::StartOp start) {
  Emit e(s, start);
  start.getOwnerMutable().set(e.ahead(start.getOwner()));
}

static bool shiftOwnerOfSlice(Backward &s) {
  shiftOwner(s, s.slice);
  return true;
}

static bool shiftOwnerOfOnward(Backward &s) {
  shiftOwner(s, s.onward);
  return true;
}

static bool shiftOwnerOfHome(Backward &s) {
  shiftOwner(s, s.home);
  return true;
}

static bool shiftReceivedOwnerOfOnward(Backward &s) {
  if (s.onwards.empty())
    return false;
  Emit e(s, s.onward);
  s.onward.getReceivedOwnerMutable().set(e.ahead(s.onward.getReceivedOwner()));
  return true;
}

static bool misdirectOnwardOfOneRank(Backward &s) {
  if (s.onwards.empty())
    return false;
  Emit e(s, s.onward);
  Value to = s.onward.getTo();
  s.onward.getToMutable().set(
      e.onRank(s.onwards.front().from, e.ahead(to), to));
  return true;
}

static bool misdirectHome(Backward &s) {
  if (s.homes.empty())
    return false;
  Emit e(s, s.home);
  s.home.getToMutable().set(e.ahead(s.home.getTo()));
  return true;
}

static bool takeHomeFromAnother(Backward &s) {
  if (s.homes.empty())
    return false;
  Emit e(s, s.home);
  s.home.getFromMutable().set(e.ahead(s.home.getFrom()));
  return true;
}

/// The slices go one way round, their gradients the other.
static bool turnGradientsRound(Backward &s) {
  if (s.parts == 2 || s.onwards.empty())
    return false;
  Value to = s.onward.getTo(), from = s.onward.getFrom();
  s.onward.getToMutable().set(from);
  s.onward.getFromMutable().set(to);
  return true;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static void clearFlags(MutableOperandRange flags, Value keep, Emit &e) {
  SmallVector<Value> result;
  for (OpOperand &flag : flags)
    result.push_back(e.both(flag.get(), keep));
  flags.assign(result);
}

static bool clearSends(Backward &s, ring::StartOp start,
                       ArrayRef<Backward::Message> messages) {
  if (messages.empty() || start.getSendSegments().empty())
    return false;
  Emit e(s, start);
  clearFlags(start.getSendSegmentsMutable(),
             e.differs(s.rank, messages.front().from), e);
  return true;
}

static bool clearReceives(Backward &s, ring::StartOp start,
                          ArrayRef<Backward::Message> messages) {
  if (messages.empty() || start.getReceiveSegments().empty())
    return false;
  Emit e(s, start);
  clearFlags(start.getReceiveSegmentsMutable(),
             e.differs(s.rank, messages.front().to), e);
  return true;
}

static bool clearBoth(Backward &s, ring::StartOp start,
                      ArrayRef<Backward::Message> messages) {
  if (messages.empty() || start.getSendSegments().empty())
    return false;
  Emit e(s, start);
  Value no = e.truth(false);
  clearFlags(start.getSendSegmentsMutable(), no, e);
  clearFlags(start.getReceiveSegmentsMutable(), no, e);
  return true;
}

static bool clearSendsOfSlice(Backward &s) {
  return clearSends(s, s.slice, s.slices);
}
static bool clearSendsOfOnward(Backward &s) {
  return clearSends(s, s.onward, s.onwards);
}
static bool clearSendsOfHome(Backward &s) {
  return clearSends(s, s.home, s.homes);
}
static bool clearReceivesOfSlice(Backward &s) {
  return clearReceives(s, s.slice, s.slices);
}
static bool clearReceivesOfOnward(Backward &s) {
  return clearReceives(s, s.onward, s.onwards);
}
static bool clearReceivesOfHome(Backward &s) {
  return clearReceives(s, s.home, s.homes);
}
static bool neverSendSlices(Backward &s) {
  return clearBoth(s, s.slice, s.slices);
}
static bool neverSendOnward(Backward &s) {
  return clearBoth(s, s.onward, s.onwards);
}
static bool neverSendHome(Backward &s) { return clearBoth(s, s.home, s.homes); }

/// What the owner computes goes round with the rest, and stays at home too.
static bool sendOwnPartOnward(Backward &s) {
  if (s.problem.drop)
    return false;
  auto isTurn = [&](Emit &e, int64_t turn) {
    return arith::CmpIOp::create(e.builder, e.loc, arith::CmpIPredicate::eq,
                                 s.loop.getInductionVar(), e.index(turn));
  };
  auto alsoIn = [&](Operation *op, MutableOperandRange flags, int64_t turn) {
    Emit e(s, op);
    SmallVector<Value> result;
    for (OpOperand &flag : flags)
      result.push_back(
          arith::OrIOp::create(e.builder, e.loc, flag.get(), isTurn(e, turn)));
    flags.assign(result);
  };
  alsoIn(s.onward, s.onward.getSendSegmentsMutable(), 0);
  alsoIn(s.onward, s.onward.getReceiveSegmentsMutable(), 0);
  for (ring::AddOp add : s.onwardSums)
    alsoIn(add, add.getSegmentsMutable(), 1);
  return true;
}

//===----------------------------------------------------------------------===//
// What is sent
//===----------------------------------------------------------------------===//

/// A slice travels with what is this rank's own.
static bool mixSlices(Backward &s) {
  s.slice.getTensorsMutable().slice(1, 1).assign(
      s.program.getArgument(s.movesKeys ? 2 : 5));
  return true;
}

static bool swapTensorsOfSlice(Backward &s) {
  Value first = s.slice.getTensors()[0], second = s.slice.getTensors()[1];
  if (first.getType() != second.getType())
    return false;
  s.slice.getTensorsMutable().slice(0, 2).assign({second, first});
  return true;
}

/// What this rank computed, without what came.
static bool sendBeforeTheSum(Backward &s) {
  if (s.onwards.empty())
    return false;
  for (ring::StartOp start : {s.onward, s.home})
    for (auto [index, add] : llvm::enumerate(s.onwardSums))
      start->setOperand(index, add.getA());
  return true;
}

/// What came is added while the gradient is under way.
static bool addWhileUnderWay(Backward &s) {
  if (!sendBeforeTheSum(s))
    return false;
  ring::StartOp last = s.onward->isBeforeInBlock(s.home) ? s.home : s.onward;
  for (ring::AddOp add : s.onwardSums)
    add->moveAfter(last);
  // Both are waited for behind the sums.
  for (ring::StartOp start : {s.onward, s.home})
    if (ring::WaitOp wait = waitInHop(start))
      wait->moveBefore(s.loop.getBody()->getTerminator());
  return true;
}

static bool sendAtTheWrongDeal(Backward &s) {
  if (s.problem.order == "zigzag")
    return false; // It has two segments, others have one.
  auto deal = [&](Order order) {
    return ring::LayoutAttr::get(s.module.getContext(),
                                 Deal{order, 1, s.parts});
  };
  s.onward.setLayoutAttr(deal(
      s.problem.order == "contiguous" ? Order::Striped : Order::Contiguous));
  return true;
}

/// Two more gradients come than there is room for.
static bool holdTooMany(Backward &s) {
  if (s.onwards.empty())
    return false;
  for (int64_t channel : {5, 6}) {
    OpBuilder builder(s.onward->getNextNode());
    auto more = cast<ring::StartOp>(builder.clone(*s.onward));
    more.setChannelAttr(ring::ChannelAttr::get(
        s.module.getContext(), s.onward.getChannel().getGrid(), channel));
    builder.setInsertionPoint(s.loop.getBody()->getTerminator());
    ring::WaitOp::create(builder, more.getLoc(),
                         waitOf(s.onward).getResultTypes(), more.getToken());
  }
  if (ring::WaitOp wait = waitInHop(s.onward))
    wait->moveBefore(s.loop.getBody()->getTerminator());
  return true;
}

static bool exchangeAGradient(Backward &s) {
  Emit e(s, s.end());
  e.exchange(s.end().getOperand(0), shardOf(s, 0));
  return true;
}

ArrayRef<GradientMutation> gradientTransferMutations() {
  static constexpr GradientMutation mutations[] = {
      {"the wait for a slice is dropped", dropWaitOfSlice,
       "takes .* for (those|that) of rank|sends (a tensor|the shard) of|is "
       "never waited for",
       "ring.(attend_grad|start)"},
      {"the wait for gradients is dropped", dropWaitOfOnward,
       "adds (a gradient|gradients) (by|of)|is never waited for",
       "ring.(add|start)"},
      {"the wait for gradients at home is dropped", dropWaitOfHome,
       "adds (a gradient|gradients) (by|of)|is never waited for",
       "ring.(add|start)"},
      {"a wait is doubled", doubleWait, "waits again", "ring.wait"},
      {"the owner of a slice is off by one", shiftOwnerOfSlice,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the owner of gradients is off by one", shiftOwnerOfOnward,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the owner of gradients going home is off by one", shiftOwnerOfHome,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the received owner of gradients is off by one",
       shiftReceivedOwnerOfOnward, "receives .* from rank|deadlock",
       "ring.start"},
      {"one rank sends gradients elsewhere", misdirectOnwardOfOneRank,
       "deadlock|receives .* from rank", "ring.start"},
      {"gradients go to another home", misdirectHome,
       "deadlock|receives .* from rank", "ring.start"},
      {"gradients come home from elsewhere", takeHomeFromAnother,
       "deadlock|receives .* from rank", "ring.start"},
      {"gradients go round the other way", turnGradientsRound,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not send its slice", clearSendsOfSlice,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not send gradients", clearSendsOfOnward,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not send gradients home", clearSendsOfHome,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not receive a slice", clearReceivesOfSlice,
       "deadlock|receives .* from rank|which was not received|sends segments",
       "ring.(start|attend_grad)"},
      {"one rank does not receive gradients", clearReceivesOfOnward,
       "deadlock|receives .* from rank|adds segments", "ring.(start|add)"},
      {"one rank does not receive gradients at home", clearReceivesOfHome,
       "deadlock|receives .* from rank|adds segments", "ring.(start|add)"},
      {"no slice is sent", neverSendSlices,
       "which was not received|sends segments", "ring.(start|attend_grad)"},
      {"no gradients are sent on", neverSendOnward, "adds segments",
       "ring.add"},
      {"no gradients are sent home", neverSendHome, "adds segments",
       "ring.add"},
      {"the own part is sent on too", sendOwnPartOnward,
       "what was added before", "ring.add"},
      {"a slice travels with what is of another owner", mixSlices,
       "sends (a tensor|the shard) of", "ring.start"},
      {"two tensors of a slice change places", swapTensorsOfSlice,
       "attends slices of other|attends with another query|adds gradients by|"
       "made of another outGrad",
       "ring.(attend_grad|add)"},
      {"gradients are sent without what came", sendBeforeTheSum,
       "which lacks query segment", "func.return"},
      {"gradients change while they are under way", addWhileUnderWay,
       "changes a gradient that is under way", "ring.add"},
      {"gradients are sent at another deal", sendAtTheWrongDeal,
       "sends what is dealt as|sends a tensor of", "ring.start"},
      {"three gradients are held", holdTooMany,
       "receives a gradient while 2 are still needed", "ring.start"},
      {"a gradient is exchanged", exchangeAGradient,
       "exchanges a tensor that is no shard", "ring.exchange"},
  };
  return mutations;
}

} // namespace burst::test
