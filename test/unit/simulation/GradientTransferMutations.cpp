//===- GradientTransferMutations.cpp - how gradients travel wrongly -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

template <bool (*Mutate)(Returning &)>
static bool with(Backward &s) {
  return Mutate(s);
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static bool dropWaitOfSlice(Backward &s) { return dropWait(s.slice); }

static bool dropWaitOfOnward(Backward &s) { return dropWait(s.onward); }

static bool dropWaitOfReturn(Backward &s) { return dropWait(s.toOwner); }

static bool doubleWaitOfOnward(Backward &s) { return doubleWait(s.onward); }

//===----------------------------------------------------------------------===//
// Owners and peers
//===----------------------------------------------------------------------===//

static bool shiftOwnerOfSlice(Backward &s) { return shiftOwner(s, s.slice); }

static bool shiftOwnerOfOnward(Backward &s) { return shiftOwner(s, s.onward); }

static bool shiftOwnerOfReturn(Backward &s) { return shiftOwner(s, s.toOwner); }

static bool shiftReceivedOwnerOfOnward(Backward &s) {
  return !s.onwards.empty() && shiftReceivedOwner(s, s.onward);
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static bool clearSendsOfSlice(Backward &s) {
  return clearSends(s, s.slice, s.slices);
}
static bool clearSendsOfOnward(Backward &s) {
  return clearSends(s, s.onward, s.onwards);
}
static bool clearSendsOfReturn(Backward &s) {
  return clearSends(s, s.toOwner, s.returns);
}
static bool clearReceivesOfSlice(Backward &s) {
  return clearReceives(s, s.slice, s.slices);
}
static bool clearReceivesOfOnward(Backward &s) {
  return clearReceives(s, s.onward, s.onwards);
}
static bool clearReceivesOfReturn(Backward &s) {
  return clearReceives(s, s.toOwner, s.returns);
}
static bool neverSendSlices(Backward &s) {
  return clearBoth(s, s.slice, s.slices);
}
static bool neverSendOnward(Backward &s) {
  return clearBoth(s, s.onward, s.onwards);
}
static bool neverReturn(Backward &s) {
  return clearBoth(s, s.toOwner, s.returns);
}

static bool sendOwnGradientsOnward(Backward &s) {
  return sendOwnPartOnward<ring::AddOp>(s, s.onwardSums);
}

static bool returnNoGradients(Backward &s) {
  return returnNothing<ring::AddOp>(s, s.returnSums);
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
  for (ring::StartOp start : {s.onward, s.toOwner})
    for (auto [index, add] : llvm::enumerate(s.onwardSums))
      start->setOperand(index, add.getA());
  return true;
}

/// What came is added while the gradient is under way.
static bool addWhileUnderWay(Backward &s) {
  if (!sendBeforeTheSum(s))
    return false;
  ring::StartOp last =
      s.onward->isBeforeInBlock(s.toOwner) ? s.toOwner : s.onward;
  for (ring::AddOp add : s.onwardSums)
    add->moveAfter(last);
  // Both are waited for behind the sums.
  for (ring::StartOp start : {s.onward, s.toOwner})
    if (ring::WaitOp wait = waitInHop(start))
      wait->moveBefore(s.loop.getBody()->getTerminator());
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
      {"the wait for returned gradients is dropped", dropWaitOfReturn,
       "adds (a gradient|gradients) (by|of)|is never waited for",
       "ring.(add|start)"},
      {"a wait is doubled", doubleWaitOfOnward, "waits again", "ring.wait"},
      {"the owner of a slice is off by one", shiftOwnerOfSlice,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the owner of gradients is off by one", shiftOwnerOfOnward,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the owner of gradients returning to the owner is off by one",
       shiftOwnerOfReturn, "sends (a tensor|the shard) of", "ring.start"},
      {"the received owner of gradients is off by one",
       shiftReceivedOwnerOfOnward, "receives .* from rank|deadlock",
       "ring.start"},
      {"one rank sends gradients elsewhere", with<misdirectOnwardOfOneRank>,
       "deadlock|receives .* from rank", "ring.start"},
      {"gradients return to another rank", with<misdirectReturn>,
       "deadlock|receives .* from rank", "ring.start"},
      {"gradients return from elsewhere", with<takeReturnFromAnother>,
       "deadlock|receives .* from rank", "ring.start"},
      {"gradients go round the other way", with<turnPartialsRound>,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not send its slice", clearSendsOfSlice,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not send gradients", clearSendsOfOnward,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not return gradients", clearSendsOfReturn,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not receive a slice", clearReceivesOfSlice,
       "deadlock|receives .* from rank|which was not received|sends segments",
       "ring.(start|attend_grad)"},
      {"one rank does not receive gradients", clearReceivesOfOnward,
       "deadlock|receives .* from rank|adds segments", "ring.(start|add)"},
      {"one rank does not receive returned gradients", clearReceivesOfReturn,
       "deadlock|receives .* from rank|adds segments", "ring.(start|add)"},
      {"no slice is sent", neverSendSlices,
       "which was not received|sends segments", "ring.(start|attend_grad)"},
      {"no gradients are sent on", neverSendOnward, "adds segments",
       "ring.add"},
      {"no gradients are returned", neverReturn, "adds segments", "ring.add"},
      {"the own part is sent on too", sendOwnGradientsOnward,
       "what was added before", "ring.add"},
      {"slices go a hop too far", with<sendSlicesFarther>,
       "segment [01] of the shard of rank .* neither reads it nor sends it on",
       "ring.start"},
      {"gradients go a hop too far", with<sendPartialsFarther>,
       "of a partial result of rank .* neither joins it nor sends it on",
       "ring.start"},
      {"gradients return to which nothing was added", returnNoGradients,
       "receives segment 0 of its partial result from rank [0-9]+, in tensor "
       "0, for which nothing was computed",
       "ring.start"},
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
      {"gradients are sent with another layout", with<sendWithTheWrongLayout>,
       "sends what is laid out as|sends a tensor of", "ring.start"},
      {"three gradients are held", with<holdTooMany>,
       "receives a gradient while 2 are still needed", "ring.start"},
  };
  return mutations;
}

} // namespace burst::test
