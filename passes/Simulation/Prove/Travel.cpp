//===- Travel.cpp - whether what arrives is read --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Prove/Auditor.h"

using namespace mlir;
using namespace burst;

/// Of what is found the first hop is told, and in it the first rank: what ranks
/// let go of when does not matter.
bool Travel::isFirst(int64_t rank, int64_t hop, size_t number) const {
  return !first || std::tuple(hop, rank, number) <
                       std::tuple(first->hop, first->rank, firstNumber);
}

void Travel::note(int64_t rank, int64_t hop, size_t number,
                  ring::TransferOpInterface start, std::string message) {
  message += start.getSegments()
                 ? "; its flags must leave that out"
                 : "; ring-drop-empty flags what is needed, where none are "
                   "given all is sent";
  message += ", or the option allow-needless of ring-verify lets it pass";
  first = Counterexample{rank, hop, start, std::move(message), std::nullopt};
  firstNumber = number;
}

void Travel::noteUnread(const Arrival &arrival, size_t number,
                        uint64_t segments) {
  if (!isFirst(arrival.rank, arrival.hop, number))
    return;
  note(arrival.rank, arrival.hop, number, arrival.start,
       format("receives segment {0} of {1} of rank {2}, in tensor {3}, and "
              "neither {4} it nor sends it on",
              llvm::countr_zero(segments),
              arrival.isPartial ? "a partial result" : "the shard",
              arrival.owner, number, arrival.isPartial ? "joins" : "reads"));
}

void Travel::noteEmpty(const Transfer &from, const Transfer &to, size_t number,
                       uint64_t segments) {
  if (!isFirst(to.rank, to.hop, number))
    return;
  note(to.rank, to.hop, number, to.start,
       format("receives segment {0} of its partial result from rank {1}, in "
              "tensor {2}, for which nothing was computed",
              llvm::countr_zero(segments), from.rank, number));
}

void Auditor::readSegments(const Tensor &tensor, uint64_t segments) {
  if (!travel || !tensor.slice)
    return;
  auto &arrival = *static_cast<Arrival *>(tensor.slice.get());
  const auto *found = llvm::find(arrival.tensors, &tensor);
  assert(found != arrival.tensors.end() && "a slice has its tensors");
  arrival.unread[found - arrival.tensors.begin()] &= ~segments;
}

/// Tensor `index` of a transfer arrives. What a rank sends to itself has stayed
/// there.
void Auditor::receive(const Transfer &from, const Transfer &to, size_t index,
                      Tensor &arrived) {
  bool isAsked = from.rank != to.rank;
  if (index == 0)
    arriving = std::make_shared<Arrival>(travel, to, isAsked);
  arriving->tensors.push_back(&arrived);
  arrived.slice = arriving;
  if (index + 1 == to.tensors.size())
    arriving.reset();
  if (isAsked && to.kind() == TransferKind::ToOwner)
    noteEmpty(from, to, index);
}

/// On its way a partial result follows its shard, whoever computes; to the
/// owner comes what some rank has computed.
void Auditor::noteEmpty(const Transfer &from, const Transfer &to,
                        size_t index) {
  const Tensor *sent = from.tensors[index].get();
  uint64_t empty = 0;
  if (const auto *account = dyn_cast<Account>(sent))
    empty = to.receiveMask & ~account->worked;
  else if (const auto *gradient = dyn_cast<Gradient>(sent))
    empty = to.receiveMask & ~gradient->worked;
  if (empty != 0)
    travel->noteEmpty(from, to, index, empty);
}

std::optional<Counterexample> Auditor::checkTravel(const Results &results) {
  if (!travel)
    return std::nullopt;
  for (const auto &ofRank : results)
    for (TensorRef result : ofRank)
      for (; result; result = result->inside)
        readSegments(*result);
  return travel->getFirst();
}
