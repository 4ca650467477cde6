//===- Matching.cpp - how the transfers of ranks meet ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Ranks.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;

bool Simulation::Impl::refuse(const Transfer &transfer, const Twine &message) {
  failure = {transfer.rank, transfer.hop, transfer.start, message.str(),
             std::nullopt};
  return false;
}

/// Bytes of a position of the dimension that is sharded.
int64_t Simulation::Impl::positionBytes(const Tensor &tensor, int64_t dim) {
  if (tensor.element != lastElement.first)
    lastElement = {tensor.element, elementBytes(tensor.element)};
  int64_t bytes = lastElement.second;
  for (int64_t d = 0; d < static_cast<int64_t>(tensor.shape.size()); ++d)
    bytes *= d == dim ? 1 : tensor.shape[d];
  return bytes;
}

void Simulation::Impl::countBytes(int64_t rank, int argument, int64_t bytes) {
  argument = ofAllHeads(argument);
  for (auto &[known, sum] : sent[rank])
    if (known == argument) {
      sum += bytes;
      return;
    }
  sent[rank].push_back({argument, bytes});
}

/// The first axis of the grid in which ranks differ.
size_t Simulation::Impl::axisBetween(int64_t rank, int64_t to) const {
  size_t axis = 0;
  while (axis + 1 < strides.size() &&
         rank / strides[axis] == to / strides[axis])
    ++axis;
  return axis;
}

/// Tensor `index` of a transfer is handed over to a rank.
void Simulation::Impl::countSent(Transfer &transfer, int64_t to, size_t index,
                                 int64_t bytes) {
  transfer.sentBytes += bytes;
  countBytes(transfer.rank, transfer.tensors[index]->argument, bytes);
  traffic[transfer.rank].sentByAxis[axisBetween(transfer.rank, to)] += bytes;
}

/// Whether `to` receives of tensor `index` what `from` sends.
bool Simulation::Impl::checkMatch(const Transfer &from, const Transfer &to,
                                  size_t index, int64_t sent) {
  const Tensor &target = *to.tensors[index];
  int64_t wanted = positionBytes(target, to.dims[index]) * to.receivedCount;
  if (sent != wanted || from.tensors[index]->element != target.element)
    return refuse(to, llvm::formatv("receives {0} bytes of tensor {1} from "
                                    "rank {2}, which sends {3}",
                                    wanted, index, from.rank, sent));
  if (from.owner != to.receivedOwner || from.sendMask != to.receiveMask)
    return refuse(
        to, llvm::formatv("receives segments {0:x} of the shard of {1} from "
                          "rank {2}, which sends {3:x} of {4}",
                          to.receiveMask, to.receivedOwner, from.rank,
                          from.sendMask, from.owner));
  return true;
}

/// Hands over a part of an all-to-all.
bool Simulation::Impl::matchAllToAll(Transfer &from, Transfer &to) {
  if (from.start != to.start)
    return refuse(to, llvm::formatv("meets another transfer of rank {0} than "
                                    "this all_to_all",
                                    from.rank));
  for (size_t i = 0; i < from.tensors.size(); ++i) {
    if (from.tensors[i]->argument != to.tensors[i]->argument)
      return refuse(to, llvm::formatv("exchanges another tensor {0} than rank "
                                      "{1}",
                                      i, from.rank));
    countSent(from, to.rank, i, from.legBytes[i]);
    semantics->exchange(from, to, i);
    if (listener)
      listener->delivers(from, to, i);
  }
  ++traffic[from.rank].messages;
  from.sent = true;
  to.arrived = true;
  return true;
}

/// Hands the message of `from` to `to`, both at the head of their queues.
bool Simulation::Impl::match(Transfer &from, Transfer &to) {
  if (from.start.isAllToAll() || to.start.isAllToAll())
    return matchAllToAll(from, to);
  if (from.tensors.size() != to.tensors.size())
    return refuse(to, llvm::formatv("receives {0} tensors from rank {1}, which "
                                    "sends {2}",
                                    to.tensors.size(), from.rank,
                                    from.tensors.size()));
  bool isCopy = from.rank == to.rank; // of what stays on the rank
  for (size_t i = 0; i < from.tensors.size(); ++i) {
    const Tensor &tensor = *from.tensors[i];
    int64_t bytes = positionBytes(tensor, from.dims[i]) * from.sentCount;
    if (!checkMatch(from, to, i, bytes))
      return false;
    if (!isCopy)
      countSent(from, to.rank, i, bytes);
    TensorRef received = semantics->deliver(from, to, i);
    received->argument = tensor.argument;
    received->sharding = tensor.sharding;
    to.received[i] = std::move(received);
    if (listener && !isCopy)
      listener->delivers(from, to, i);
  }
  traffic[from.rank].messages += isCopy ? 0 : 1;
  from.sent = true;
  to.arrived = true;
  return true;
}

/// Counts what a transfer sends, and gives it what it receives.
void Simulation::Impl::takeAlone(Transfer &transfer) {
  bool sends = !transfer.sent && transfer.to != transfer.rank;
  for (size_t i = 0; i < transfer.tensors.size(); ++i) {
    const Tensor &tensor = *transfer.tensors[i];
    if (sends) {
      int64_t bytes =
          transfer.legBytes.empty()
              ? positionBytes(tensor, transfer.dims[i]) * transfer.sentCount
              : transfer.legBytes[i];
      countSent(transfer, transfer.to, i, bytes);
      if (listener) {
        Transfer receiver{}; // which is asked whose it is
        receiver.rank = transfer.to;
        listener->delivers(transfer, receiver, i);
      }
    }
    if (!transfer.arrived && transfer.legBytes.empty()) {
      transfer.received[i] = transfer.makeReceived(i);
      transfer.received[i]->sharding = tensor.sharding;
    }
  }
  traffic[transfer.rank].messages += sends ? 1 : 0;
  transfer.sent = transfer.arrived = true;
}

/// Matches what can be matched now that `rank` has a new head.
bool Simulation::Impl::advance(int64_t rank, Channel &queue) {
  SmallVector<int64_t> work{rank};
  while (!work.empty()) {
    int64_t r = work.pop_back_val();
    if (queue[r].isEmpty())
      continue;
    Transfer &head = *queue[r].head;
    Transfer *target = queue[head.to].head;
    if (!head.sent && target && !target->arrived && target->from == r) {
      if (!match(head, *target))
        return false;
      work.push_back(head.to);
    }
    Transfer *source = queue[head.from].head;
    if (!head.arrived && source && !source->sent && source->to == r) {
      if (!match(*source, head))
        return false;
      work.push_back(head.from);
    }
    if (!head.isDone())
      continue;
    int64_t to = head.to, from = head.from;
    queue[r].pop();
    work.append({r, to, from});
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Deadlock
//===----------------------------------------------------------------------===//

/// What a transfer is waiting for, in words.
static std::string describe(const Transfer &transfer) {
  std::string text;
  if (!transfer.sent)
    text += llvm::formatv("sends to rank {0}", transfer.to).str();
  if (!transfer.arrived)
    text += llvm::formatv("{0}receives from rank {1}",
                          text.empty() ? "" : " and ", transfer.from)
                .str();
  return text;
}

/// What a rank is doing while others wait for it on `channel`, in words.
std::string Simulation::Impl::describeRank(int64_t rank, int64_t channel) {
  auto onChannel = [&](int64_t number) -> const Transfer * {
    Channel &queue = channels[number];
    return queue.empty() ? nullptr : queue[rank].head;
  };
  std::string where;
  const Transfer *stuck = onChannel(channel);
  for (auto &[number, queue] : channels) {
    if (stuck)
      break;
    stuck = onChannel(number);
    where = " on channel " + std::to_string(number);
  }
  if (stuck)
    return llvm::formatv("rank {0}, at hop {1}, {2}{3}", rank, stuck->hop,
                         describe(*stuck), where);
  return llvm::formatv("rank {0} {1}", rank,
                       ranks[rank]->isDone ? "has ended"
                                           : "has started nothing more");
}

bool Simulation::Impl::reportDeadlock() {
  for (auto &[channel, queue] : channels)
    for (const TransferQueue &q : queue) {
      if (q.isEmpty())
        continue;
      const Transfer &head = *q.head;
      std::string message = "deadlock: it " + describe(head);
      auto addPeer = [&](int64_t peer) {
        message += "; " + describeRank(peer, channel);
      };
      if (!head.sent)
        addPeer(head.to);
      if (!head.arrived && (head.sent || head.from != head.to))
        addPeer(head.from);
      return refuse(head, message);
    }
  failure = {0, 0, function, "deadlock: no rank can go on"};
  return false;
}

/// Nothing may be under way when a rank has ended.
bool Simulation::Impl::checkEnd() {
  for (auto &rank : ranks)
    if (!rank->open.empty())
      return refuse(*rank->open.front(), "is never waited for");
  return true;
}
