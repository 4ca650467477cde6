//===- ReturningMutations.cpp - how partial results travel wrongly --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

ring::WaitOp waitInHop(ring::StartOp start) {
  return dyn_cast<ring::WaitOp>(*start.getToken().user_begin());
}

ring::WaitOp waitOf(ring::StartOp start) {
  OpOperand &use = *start.getToken().use_begin();
  if (auto wait = dyn_cast<ring::WaitOp>(use.getOwner()))
    return wait;
  auto loop = cast<scf::ForOp>(start->getParentOp());
  Value carried = loop.getRegionIterArg(use.getOperandNumber());
  return cast<ring::WaitOp>(*carried.user_begin());
}

bool dropWait(ring::StartOp start) {
  ring::WaitOp wait = waitInHop(start);
  if (!wait)
    return false;
  for (auto [received, sent] :
       llvm::zip_equal(wait.getResults(), start.getTensors()))
    received.replaceAllUsesWith(sent);
  wait.erase();
  return true;
}

bool doubleWait(ring::StartOp start) {
  ring::WaitOp wait = waitOf(start);
  OpBuilder(wait->getNextNode()).clone(*wait);
  return true;
}

bool shiftOwner(Returning &s, ring::StartOp start) {
  Emit e(s, start);
  start.getOwnerMutable().set(e.ahead(start.getOwner()));
  return true;
}

bool shiftReceivedOwner(Returning &s, ring::StartOp start) {
  Emit e(s, start);
  start.getReceivedOwnerMutable().assign(e.ahead(start.getReceivedOwner()));
  return true;
}

bool misdirectOnwardOfOneRank(Returning &s) {
  if (s.onwards.empty())
    return false;
  Emit e(s, s.onward);
  Value to = s.onward.getTo();
  s.onward.getToMutable().assign(
      e.onRank(s.onwards.front().from, e.ahead(to), to));
  return true;
}

bool misdirectReturn(Returning &s) {
  if (s.returns.empty())
    return false;
  Emit e(s, s.toOwner);
  s.toOwner.getToMutable().assign(e.ahead(s.toOwner.getTo()));
  return true;
}

bool takeReturnFromAnother(Returning &s) {
  if (s.returns.empty())
    return false;
  Emit e(s, s.toOwner);
  s.toOwner.getFromMutable().assign(e.ahead(s.toOwner.getFrom()));
  return true;
}

bool turnPartialsRound(Returning &s) {
  if (s.parts == 2 || s.onwards.empty())
    return false;
  Value to = s.onward.getTo(), from = s.onward.getFrom();
  s.onward.getToMutable().assign(from);
  s.onward.getFromMutable().assign(to);
  return true;
}

void keepSegments(Ring &s, ring::StartOp start, Value owner, Value keep) {
  changeSegments(s, start, [&](Emit &e, Value old, ValueRange at) {
    return e.both(old, e.either(keep, e.differs(at[0], owner)));
  });
}

bool clearSends(Returning &s, ring::StartOp start,
                ArrayRef<Returning::Message> messages) {
  if (messages.empty() || !start.getSegments())
    return false;
  Emit e(s, start);
  keepSegments(s, start, start.getOwner(),
               e.differs(s.rank, messages.front().from));
  return true;
}

bool clearReceives(Returning &s, ring::StartOp start,
                   ArrayRef<Returning::Message> messages) {
  if (messages.empty() || !start.getSegments())
    return false;
  Emit e(s, start);
  keepSegments(s, start, start.getReceivedOwner(),
               e.differs(s.rank, messages.front().to));
  return true;
}

bool clearBoth(Returning &s, ring::StartOp start,
               ArrayRef<Returning::Message> messages) {
  if (messages.empty() || !start.getSegments())
    return false;
  changeSegments(s, start,
                 [](Emit &e, Value, ValueRange) { return e.truth(false); });
  return true;
}

bool sendWithTheWrongLayout(Returning &s) {
  if (s.problem.order == "zigzag")
    return false; // It has two segments, others have one.
  auto layout = [&](Order order) {
    return ring::LayoutAttr::get(s.module.getContext(),
                                 Layout{order, 1, s.parts});
  };
  s.onward.setLayoutAttr(layout(
      s.problem.order == "contiguous" ? Order::Striped : Order::Contiguous));
  return true;
}

bool sendSlicesFarther(Returning &s) {
  // A return in the last turn is from the last rank that there is.
  bool goesOn = llvm::any_of(s.returns, [&](const Returning::Message &m) {
    return m.turn < s.parts - 1;
  });
  if (!goesOn)
    return false;
  sendFarther(s, s.slice);
  return true;
}

bool sendPartialsFarther(Returning &s) {
  bool goesOn = llvm::any_of(s.returns, [&](const Returning::Message &m) {
    return m.turn < s.parts - 1;
  });
  Value returns = s.toOwner.getSegments();
  if (!goesOn || !returns)
    return false;
  changeSegments(s, s.onward, [&](Emit &e, Value old, ValueRange at) {
    Value ends = e.entry(returns, at[0], at[1], at[2]);
    return e.either(old, e.both(ends, e.differs(at[1], s.parts)));
  });
  return true;
}

bool holdTooMany(Returning &s) {
  if (s.onwards.empty())
    return false;
  for (int64_t channel : {5, 6}) {
    OpBuilder builder(s.onward->getNextNode());
    auto more = cast<ring::StartOp>(builder.clone(*s.onward));
    more.setChannelAttr(ring::ChannelAttr::get(
        s.module.getContext(), s.onward.getChannel().getGrid(),
        s.onward.getChannel().getAxes(), channel));
    builder.setInsertionPoint(s.loop.getBody()->getTerminator());
    ring::WaitOp::create(builder, more.getLoc(),
                         waitOf(s.onward).getResultTypes(), more.getToken());
  }
  if (ring::WaitOp wait = waitInHop(s.onward))
    wait->moveBefore(s.loop.getBody()->getTerminator());
  return true;
}

} // namespace burst::test
