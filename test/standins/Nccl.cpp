//===- Nccl.cpp - Sends between emulated GPUs -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is sent and received between ncclGroupStart and ncclGroupEnd on a stream
// is one operation there. It is done when each of its parts has met its other
// side: a part of an operation that is the first of its stream as well. So a
// send waits for its receive. Parts meet in the order in which they were asked
// for, per communicator, source and destination.
//
// A communicator that does not block puts its operations on their streams when
// ncclCommGetAsyncError says that it is done, not before: that is as late as is
// legal.
//
// Where ranks are processes (BURST_EMULATED_PROCESSES), each of which emulates
// GPUs, a part is data that is sent when its operation is the first of its
// stream, and done when the receiver, for which the same holds, has taken it.
// Communicators cannot be split there.
//
//===----------------------------------------------------------------------===//
#include "runtime/src/cuda/Nccl.h"
#include "test/standins/Gpus.h"
#include "test/standins/Links.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <unistd.h>
#include <utility>

using namespace burst::standins;

extern "C" {
#define BURST_DECLARE(result, name, parameters) result name parameters;
BURST_NCCL_FUNCTIONS(BURST_DECLARE) // NOLINT(misc-misplaced-const)
BURST_NCCL_NEW_FUNCTIONS(BURST_DECLARE)
#undef BURST_DECLARE
}

namespace {

struct Part;
using PartRef = std::shared_ptr<Part>;
using CommunicatorRef = std::shared_ptr<ncclComm>;

/// One send or receive.
struct Part {
  CommunicatorRef communicator = nullptr;
  bool sends = false;
  uint64_t buffer = 0;
  size_t bytes = 0;
  int peer = 0;
  bool isNever = false;
  NcclCall call = NcclCall::SendOrReceive; // which meets the same
  // When it is asked for:
  std::weak_ptr<Operation> operation = {};
  std::weak_ptr<Part> other = {};
  bool isDone = false;
  // Between processes: its number among those of its source and destination,
  // and whether it is on its way.
  uint64_t number = 0;
  bool isSent = false;
  Clock learnt = {}; // what its sender did before, not that the send is done
};

/// Ranks that talk to each other.
struct Clique {
  size_t size = 0;
  std::map<int, CommunicatorRef> members;
  // Of each source and destination, what has no other side yet: all of them
  // sends, or all receives.
  std::map<std::pair<int, int>, std::deque<PartRef>> mailboxes;
  /// What ranks said to the same ncclCommSplit, by rank.
  struct Wish {
    int color, key;
    CommunicatorRef made;
  };
  std::map<size_t, std::map<int, Wish>> splits;
  // Of ranks in processes: what connects the one that is here, and how many
  // parts it had with each other, by rank and whether they were sent.
  uint64_t id = 0;
  std::unique_ptr<Links> links = nullptr;
  std::map<std::pair<int, bool>, uint64_t> numbers;
};

} // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  CUcontext context = nullptr;
  bool blocks = true;
  bool isReady = false; // all ranks are there
  bool isAborted = false, isFinalized = false;
  ncclResult_t error = ncclSuccess;
  std::string text; // of the error
  size_t splits = 0;
  /// Of one that is split from ranks in processes: these, what they said, and
  /// the numbers of the messages in which others will.
  std::shared_ptr<Clique> parent = nullptr;
  std::map<int, Clique::Wish> wishes;
  std::map<int, uint64_t> awaited;
  /// What it does when it is asked how it is: not blocking, so only then.
  std::vector<std::function<void()>> later;
  bool wasAsked = false;
  std::map<StreamRef, uint64_t> last; // operation on each stream
};

namespace {

struct Nccl {
  std::map<uint64_t, std::shared_ptr<Clique>> cliques; // by unique id
  std::map<ncclComm_t, CommunicatorRef> communicators;
  uint64_t ids = 0;
};
Nccl &nccl() { // under the mutex of Gpus
  static Nccl *const instance = new Nccl;
  return *instance;
}

/// What a thread asks for until ncclGroupEnd.
struct Group {
  int depth = 0;
  std::vector<std::pair<CUstream, PartRef>> parts;
  std::vector<CommunicatorRef> made;
};
thread_local Group group;
thread_local std::string lastError;

ncclResult_t fail(ncclResult_t result, std::string text) {
  lastError = std::move(text);
  return result;
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

void fail(ncclComm &communicator, ncclResult_t result,
          const std::string &text) {
  communicator.error = result;
  communicator.text = text;
}

/// All members are there.
void complete(Gpus &gpus, Clique &clique) {
  std::map<CUcontext, int> ranks;
  for (auto &[rank, member] : clique.members) {
    auto [found, isNew] = ranks.try_emplace(member->context, rank);
    if (!isNew)
      for (auto &[other, failed] : clique.members)
        fail(*failed, ncclInvalidUsage,
             fmt::format("Duplicate GPU detected : rank {} and rank {} both on "
                         "CUDA device {}",
                         found->second, rank, member->context->ordinal));
    member->isReady = true;
  }
  gpus.changed.notify_all();
}

void join(Gpus &gpus, const std::shared_ptr<Clique> &clique,
          const CommunicatorRef &member) {
  member->clique = clique;
  clique->members[member->rank] = member;
  if (clique->members.size() == clique->size)
    complete(gpus, *clique);
}

/// Of other processes nobody hears.
void waitForChange(Gpus &gpus, std::unique_lock<std::mutex> &lock) {
  if (gpus.options.processes)
    gpus.changed.wait_for(lock, std::chrono::milliseconds(1));
  else
    gpus.changed.wait(lock);
}

/// What a rank in another process says of an ncclCommSplit.
struct Said {
  int color, key;
};

/// Connects those of one color, in the order of their keys, once all have said
/// theirs.
void lookForWishes(ncclComm &communicator) {
  for (auto [peer, number] : std::exchange(communicator.awaited, {})) {
    Said said{};
    if (auto message = communicator.parent->links->take(peer, number)) {
      memcpy(&said, message->data.data(), sizeof(said));
      communicator.wishes[peer] = {said.color, said.key, nullptr};
    } else {
      communicator.awaited[peer] = number;
    }
  }
  if (!communicator.awaited.empty())
    return;
  const Clique::Wish own = communicator.wishes[communicator.rank];
  std::vector<std::pair<int, int>> members;
  for (auto &[rank, wish] : communicator.wishes)
    if (wish.color == own.color)
      members.emplace_back(wish.key, rank);
  std::sort(members.begin(), members.end());
  auto place = std::find(members.begin(), members.end(),
                         std::pair(own.key, communicator.rank));
  Clique &clique = *communicator.clique;
  clique.size = members.size();
  communicator.rank = int(place - members.begin());
  clique.links =
      std::make_unique<Links>(clique.id, communicator.rank, int(clique.size),
                              communicator.context->ordinal);
  communicator.parent = nullptr;
}

/// Whether the ranks in other processes are there.
void lookForOthers(ncclComm &communicator) {
  if (communicator.parent)
    lookForWishes(communicator);
  const Clique *clique = communicator.clique.get();
  if (communicator.isReady || !clique || !clique->links ||
      !clique->links->isReady())
    return;
  std::map<int, int> ranks; // by GPU
  for (int rank = 0; rank < int(clique->size); ++rank) {
    int gpu = clique->links->gpus()[size_t(rank)];
    auto [found, isNew] = ranks.try_emplace(gpu, rank);
    if (!isNew)
      fail(communicator, ncclInvalidUsage,
           fmt::format("Duplicate GPU detected : rank {} and rank {} both on "
                       "CUDA device {}",
                       found->second, rank, gpu));
  }
  communicator.isReady = true;
}

ncclResult_t waitFor(Gpus &gpus, ncclComm &communicator,
                     std::unique_lock<std::mutex> &lock) {
  if (!communicator.blocks)
    return ncclInProgress;
  while (!communicator.isReady && !communicator.isAborted &&
         communicator.error == ncclSuccess) {
    waitForChange(gpus, lock);
    lookForOthers(communicator);
  }
  if (communicator.isAborted)
    return fail(ncclInternalError, "the communicator was aborted");
  if (communicator.error != ncclSuccess)
    return fail(communicator.error, communicator.text);
  return ncclSuccess;
}

CommunicatorRef create(Gpus &gpus, const ncclConfig_t *config) {
  auto made = std::make_shared<ncclComm>();
  made->context = currentContext;
  made->blocks = !config || config->blocking != 0;
  nccl().communicators[made.get()] = made;
  ++gpus.communicators;
  return made;
}

CommunicatorRef find(ncclComm_t communicator) {
  auto found = nccl().communicators.find(communicator);
  return found == nccl().communicators.end() ? nullptr : found->second;
}

/// Waits at once, or at the end of the group.
ncclResult_t finishCreation(Gpus &gpus, const CommunicatorRef &made,
                            std::unique_lock<std::mutex> &lock) {
  if (group.depth) {
    group.made.push_back(made);
    return ncclSuccess;
  }
  return waitFor(gpus, *made, lock);
}

/// One that can be used.
#define FIND(name, handle)                                                     \
  CommunicatorRef name = find(handle);                                         \
  if (!(name))                                                                 \
    return fail(ncclInvalidArgument, "no communicator");                       \
  if ((name)->error != ncclSuccess)                                            \
    return fail((name)->error, (name)->text);                                  \
  if (!(name)->isReady || !(name)->later.empty())                              \
  return fail(ncclInvalidArgument, "Attempt to use communicator before the "   \
                                   "previous operation returned ncclSuccess")

#define BEGIN                                                                  \
  Gpus &gpus = Gpus::get();                                                    \
  std::unique_lock lock(gpus.mutex);                                           \
  const int planted = gpus.planted(__func__, currentContext);                  \
  if (planted > 0)                                                             \
  return fail(static_cast<ncclResult_t>(planted), "planted failure")

//===----------------------------------------------------------------------===//
// Sends and receives
//===----------------------------------------------------------------------===//

/// Finds the other side of a part that is asked for, or leaves it for that.
void post(Gpus &gpus, const PartRef &part) {
  if (part->isNever)
    return;
  ncclComm &communicator = *part->communicator;
  if (communicator.clique->links) {
    part->number = ++communicator.clique->numbers[{part->peer, part->sends}];
    return;
  }
  std::pair<int, int> key = part->sends
                                ? std::pair(communicator.rank, part->peer)
                                : std::pair(part->peer, communicator.rank);
  std::deque<PartRef> &box = communicator.clique->mailboxes[key];
  if (box.empty() || box.front()->sends == part->sends) {
    box.push_back(part);
    return;
  }
  PartRef other = std::move(box.front());
  box.pop_front();
  if (part->call != other->call) {
    std::string text = fmt::format(
        "rank {} and rank {}: one calls {}, the other one {}", key.first,
        key.second, nameOf(part->call), nameOf(other->call));
    gpus.report(communicator.context, CUDA_SUCCESS, text);
    for (const PartRef &one : {part, other})
      fail(*one->communicator, ncclInvalidUsage, text);
    return;
  }
  if (part->bytes == other->bytes) {
    part->other = other;
    other->other = part;
    return;
  }
  const Part &send = part->sends ? *part : *other,
             &receive = part->sends ? *other : *part;
  std::string text =
      fmt::format("sizes differ: rank {} sends {} bytes to rank {}, which "
                  "receives {}",
                  key.first, send.bytes, key.second, receive.bytes);
  gpus.report(communicator.context, CUDA_SUCCESS, text);
  for (const PartRef &one : {part, other})
    fail(*one->communicator, ncclInvalidUsage, text);
}

/// What came for a part that receives.
void receive(Gpus &gpus, Part &part, const Links::Message &message) {
  const OperationRef ours = part.operation.lock();
  std::string text;
  if (part.call != message.call)
    text = fmt::format("one calls {}, the other one {}", nameOf(message.call),
                       nameOf(part.call));
  else if (part.bytes != message.data.size())
    text = fmt::format("sizes differ: {} bytes are sent, {} received",
                       message.data.size(), part.bytes);
  if (!text.empty()) {
    text = fmt::format("rank {} and rank {}: {}", part.peer,
                       part.communicator->rank, text);
    gpus.report(part.communicator->context, CUDA_SUCCESS, text);
    fail(*part.communicator, ncclInvalidUsage, text);
  } else if (part.bytes && gpus.touch(*ours, part.buffer, part.bytes, true)) {
    gpus.memory.write(part.buffer, message.data.data(), part.bytes);
  }
  part.isDone = true;
}

/// The same of a part whose other side is in another process.
void meetElsewhere(Gpus &gpus, Part &part) {
  Links &links = *part.communicator->clique->links;
  if (part.isNever)
    return;
  if (!part.sends) {
    if (auto message = links.take(part.peer, part.number))
      receive(gpus, part, *message);
    return;
  }
  if (!part.isSent) {
    std::vector<char> data(part.bytes);
    const OperationRef ours = part.operation.lock();
    if (part.bytes && gpus.touch(*ours, part.buffer, part.bytes, false))
      gpus.memory.read(part.buffer, data.data(), part.bytes);
    links.send(part.peer, part.number, part.call, std::move(data));
    part.isSent = true;
  }
  part.isDone = links.isTaken(part.peer, part.number);
}

/// Moves the data of a part whose other side can run as well.
void meet(Gpus &gpus, const PartRef &part) {
  if (part->communicator->clique->links) {
    meetElsewhere(gpus, *part);
    return;
  }
  PartRef other = part->other.lock();
  OperationRef theirs = other ? other->operation.lock() : nullptr,
               ours = part->operation.lock();
  // It may have been done meanwhile, by the other side.
  if (!theirs || other->communicator->isAborted || !gpus.activate(*theirs) ||
      part->isDone)
    return;
  const Part &send = part->sends ? *part : *other,
             &receive = part->sends ? *other : *part;
  const Operation &from = part->sends ? *ours : *theirs;
  const Operation &to = part->sends ? *theirs : *ours;
  if (gpus.touch(from, send.buffer, send.bytes, false) &&
      gpus.touch(to, receive.buffer, receive.bytes, true) && send.bytes)
    gpus.copy(receive.buffer, send.buffer, send.bytes);
  (part->sends ? *other : *part).learnt = from.begun;
  part->isDone = other->isDone = true;
}

/// One operation of a stream.
void push(Gpus &gpus, const StreamRef &stream,
          const std::vector<PartRef> &parts) {
  const CommunicatorRef &communicator = parts.front()->communicator;
  std::string what = "NCCL";
  for (const PartRef &part : parts)
    what += fmt::format("{} {} of {} bytes {} rank {}",
                        part == parts.front() ? "" : ",",
                        part->sends ? "send" : "receive", part->bytes,
                        part->sends ? "to" : "from", part->peer);
  gpus.submit(stream, [=, &gpus](const StreamRef &onto, Replay *) {
    std::vector<PartRef> now;
    now.reserve(parts.size());
    for (const PartRef &part : parts) // anew for each launch of a graph
      now.push_back(std::make_shared<Part>(*part));
    Operation operation{.what = what};
    operation.await = [&gpus, now, communicator](Operation &own) {
      bool isDone = true;
      for (const PartRef &part : now) {
        if (!communicator->isAborted && !part->isDone)
          meet(gpus, part);
        isDone &= part->isDone;
      }
      if (!isDone)
        return communicator->isAborted;
      for (const PartRef &part : now)
        own.clock.join(part->learnt);
      return true;
    };
    OperationRef pushed = gpus.push(onto, std::move(operation));
    communicator->last[onto] = pushed->number;
    for (const PartRef &part : now) {
      part->operation = pushed;
      post(gpus, part);
    }
  });
}

/// Parts of one operation that use the same bytes, of which one is received.
void checkOverlap(Gpus &gpus, const std::vector<PartRef> &parts) {
  for (const PartRef &a : parts)
    for (const PartRef &b : parts)
      if (a != b && !a->sends && a->buffer < b->buffer + b->bytes &&
          b->buffer < a->buffer + a->bytes)
        gpus.report(a->communicator->context, CUDA_ERROR_LAUNCH_FAILED,
                    fmt::format("race: in one group rank {} receives from rank "
                                "{} where it {} rank {}",
                                a->communicator->rank, a->peer,
                                b->sends ? "sends to" : "receives from",
                                b->peer));
}

/// Puts on the streams what the group of this thread has.
ncclResult_t endGroup(Gpus &gpus, std::unique_lock<std::mutex> &lock) {
  Group ended = std::move(group);
  group = Group();
  ncclResult_t result = ncclSuccess;
  for (const CommunicatorRef &made : ended.made)
    if (ncclResult_t one = waitFor(gpus, *made, lock))
      result = one;
  // By communicator and stream, in the order of the first calls.
  while (!ended.parts.empty()) {
    auto [handle, first] = ended.parts.front();
    CommunicatorRef communicator = first->communicator;
    std::vector<PartRef> parts;
    std::erase_if(ended.parts, [&, handle = handle](const auto &entry) {
      bool isOfIt =
          entry.first == handle && entry.second->communicator == communicator;
      if (isOfIt)
        parts.push_back(entry.second);
      return isOfIt;
    });
    checkOverlap(gpus, parts);
    if (communicator->context->sticky)
      return fail(ncclUnhandledCudaError, "the GPU has failed");
    StreamRef stream =
        handle ? gpus.find(handle) : communicator->context->nullStream;
    if (communicator->blocks) {
      push(gpus, stream, parts);
      continue;
    }
    communicator->later.emplace_back(
        [&gpus, stream, parts] { push(gpus, stream, parts); });
    result = ncclInProgress;
  }
  return result;
}

/// Whether all that was asked of a communicator is done.
bool isIdle(Gpus &gpus, const ncclComm &communicator) {
  bool result = true;
  for (const auto &[stream, number] : communicator.last)
    result &= gpus.advance(stream, number);
  return result;
}

void flush(ncclComm &communicator) {
  for (const auto &one : std::exchange(communicator.later, {}))
    one();
}

void forget(Gpus &gpus, const CommunicatorRef &communicator) {
  nccl().communicators.erase(communicator.get());
  --gpus.communicators;
  if (communicator->clique) {
    std::erase_if(communicator->clique->members, [&](const auto &member) {
      return member.second == communicator;
    });
    for (auto &[key, box] : communicator->clique->mailboxes)
      std::erase_if(box, [&](const PartRef &part) {
        return part->communicator == communicator;
      });
    communicator->clique->links.reset();
  }
  communicator->last.clear();
  gpus.changed.notify_all();
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  BEGIN;
  *version = 22809;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInternalError:
    return "internal error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return lastError.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  BEGIN;
  uint64_t number = ++nccl().ids;
  if (gpus.options.processes)
    number += uint64_t(getpid()) << 32;
  memset(id, 0x5a, sizeof(*id));
  memcpy(id, &number, sizeof(number));
  nccl().cliques[number] = std::make_shared<Clique>();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  BEGIN;
  uint64_t number;
  memcpy(&number, &id, sizeof(number));
  auto found = nccl().cliques.find(number);
  if (found == nccl().cliques.end() && gpus.options.processes)
    found = nccl().cliques.emplace(number, std::make_shared<Clique>()).first;
  if (found == nccl().cliques.end() || ranks < 1 || rank < 0 || rank >= ranks)
    return fail(ncclInvalidArgument, "an unknown id, or an invalid rank");
  if (!currentContext)
    return fail(ncclUnhandledCudaError, "no current GPU");
  Clique &clique = *found->second;
  if (clique.size && clique.size != size_t(ranks))
    return fail(ncclInvalidUsage, "two numbers of ranks");
  if (clique.members.contains(rank))
    return fail(ncclInvalidUsage, fmt::format("two ranks {}", rank));
  clique.size = size_t(ranks);
  clique.id = number;
  CommunicatorRef made = create(gpus, config);
  made->rank = rank;
  *communicator = made.get();
  if (gpus.options.processes) {
    made->clique = found->second;
    clique.members[rank] = made;
    clique.links =
        std::make_unique<Links>(number, rank, ranks, currentContext->ordinal);
  } else if (planted != BURST_EMULATED_NEVER) {
    join(gpus, found->second, made);
  }
  return finishCreation(gpus, made, lock);
}

/// Says the own wish to all, and expects theirs.
static void splitProcesses(ncclComm &parent, ncclComm *child, Said said) {
  Clique &clique = *parent.clique;
  size_t number = ++parent.splits;
  for (int peer = 0; peer < int(clique.size); ++peer) {
    if (peer == parent.rank)
      continue;
    std::vector<char> data(sizeof(said));
    memcpy(data.data(), &said, sizeof(said));
    clique.links->send(peer, ++clique.numbers[{peer, true}],
                       NcclCall::SendOrReceive, std::move(data));
    uint64_t awaited = ++clique.numbers[{peer, false}];
    if (child)
      child->awaited[peer] = awaited;
  }
  if (!child)
    return;
  child->rank = parent.rank;
  child->wishes[parent.rank] = {said.color, said.key, nullptr};
  child->parent = parent.clique;
  child->clique = std::make_shared<Clique>();
  child->clique->id =
      (clique.id * 0x9E3779B97F4A7C15 + number) * 31 + uint64_t(said.color);
}

ncclResult_t ncclCommSplit(ncclComm_t communicator, int color, int key,
                           ncclComm_t *made, ncclConfig_t *config) {
  BEGIN;
  FIND(parent, communicator);
  CommunicatorRef child;
  *made = nullptr;
  if (color != NCCL_SPLIT_NOCOLOR) {
    child = create(gpus, config);
    child->context = parent->context;
    child->blocks = config ? config->blocking != 0 : parent->blocks;
    *made = child.get();
  }
  if (gpus.options.processes && planted != BURST_EMULATED_NEVER)
    splitProcesses(*parent, child.get(), {color, key});
  else if (planted != BURST_EMULATED_NEVER) {
    Clique &clique = *parent->clique;
    size_t number = parent->splits++;
    auto &wishes = clique.splits[number];
    wishes[parent->rank] = {color, key, child};
    if (wishes.size() == clique.size) {
      // Ranks of a color, by their key, then their rank.
      std::map<int, std::map<std::pair<int, int>, CommunicatorRef>> colors;
      for (auto &[rank, wish] : wishes)
        if (wish.made)
          colors[wish.color][{wish.key, rank}] = wish.made;
      for (auto &[of, members] : colors) {
        auto split = std::make_shared<Clique>();
        split->size = members.size();
        int rank = 0;
        for (auto &[order, member] : members) {
          member->rank = rank++;
          join(gpus, split, member);
        }
      }
      clique.splits.erase(number);
    }
  }
  return child ? finishCreation(gpus, child, lock) : ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t communicator, int *ranks) {
  BEGIN;
  FIND(found, communicator);
  *ranks = int(found->clique->size);
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t communicator, int *rank) {
  BEGIN;
  FIND(found, communicator);
  *rank = found->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator,
                                   ncclResult_t *result) {
  BEGIN;
  CommunicatorRef found = find(communicator);
  if (!found)
    return fail(ncclInvalidArgument, "no communicator");
  *result = ncclSuccess;
  lookForOthers(*found);
  if (found->error != ncclSuccess) {
    lastError = found->text;
    *result = found->error;
  } else if (!found->later.empty()) {
    // Whoever asks once learns nothing.
    if (std::exchange(found->wasAsked, !found->wasAsked))
      flush(*found);
    else
      *result = ncclInProgress;
  } else if (!found->isReady || (found->isFinalized && !isIdle(gpus, *found))) {
    *result = ncclInProgress;
  }
  return ncclSuccess;
}

/// Waits until a communicator is idle.
static void finish(Gpus &gpus, ncclComm &communicator,
                   std::unique_lock<std::mutex> &lock) {
  flush(communicator);
  while (!isIdle(gpus, communicator) && communicator.error == ncclSuccess &&
         !communicator.isAborted)
    waitForChange(gpus, lock);
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  BEGIN;
  FIND(found, communicator);
  found->isFinalized = true;
  if (!found->blocks)
    return ncclInProgress;
  finish(gpus, *found, lock);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  BEGIN;
  CommunicatorRef found = find(communicator);
  if (!found)
    return fail(ncclInvalidArgument, "no communicator");
  finish(gpus, *found, lock);
  forget(gpus, found);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  BEGIN;
  CommunicatorRef found = find(communicator);
  if (!found)
    return fail(ncclInvalidArgument, "no communicator");
  found->isAborted = true;
  found->later.clear();
  forget(gpus, found);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
  BEGIN;
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
  BEGIN;
  if (group.depth == 0)
    return fail(ncclInvalidUsage, "no group was started");
  if (--group.depth)
    return ncclSuccess;
  return endGroup(gpus, lock);
}

static ncclResult_t add(Gpus &gpus, std::unique_lock<std::mutex> &lock,
                        Part part, size_t count, ncclDataType_t type,
                        ncclComm_t handle, CUstream stream) {
  FIND(communicator, handle);
  if (type != ncclInt8 && type != ncclUint8)
    return fail(ncclInvalidArgument, "a type that is not of one byte");
  if (part.peer < 0 || size_t(part.peer) >= communicator->clique->size)
    return fail(ncclInvalidArgument, fmt::format("Invalid peer {}", part.peer));
  if (communicator->isFinalized)
    return fail(ncclInvalidUsage, "the communicator is finalized");
  StreamRef onto =
      stream ? gpus.find(stream) : communicator->context->nullStream;
  if (!onto || onto->context != communicator->context)
    return fail(ncclInvalidUsage, "a stream of another GPU");
  part.communicator = communicator;
  part.bytes = count;
  group.parts.emplace_back(stream, std::make_shared<Part>(std::move(part)));
  return group.depth ? ncclSuccess : endGroup(gpus, lock);
}

ncclResult_t ncclSend(const void *buffer, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t communicator, CUstream stream) {
  BEGIN;
  Part part{.sends = true,
            .buffer = reinterpret_cast<uint64_t>(buffer),
            .peer = peer,
            .isNever = planted == BURST_EMULATED_NEVER};
  return add(gpus, lock, std::move(part), count, type, communicator, stream);
}

ncclResult_t ncclRecv(void *buffer, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, CUstream stream) {
  BEGIN;
  Part part{.sends = false,
            .buffer = reinterpret_cast<uint64_t>(buffer),
            .peer = peer,
            .isNever = planted == BURST_EMULATED_NEVER};
  return add(gpus, lock, std::move(part), count, type, communicator, stream);
}

/// Sends to all others and receives from all others, of one operation: parts
/// of `count` bytes that begin where `bufferOf` a peer says.
static ncclResult_t
addAll(Gpus &gpus, std::unique_lock<std::mutex> &lock, NcclCall call,
       bool isNever, size_t count, ncclDataType_t type, ncclComm_t handle,
       CUstream stream,
       const std::function<uint64_t(bool sends, size_t peer)> &bufferOf) {
  FIND(communicator, handle);
  ++group.depth;
  ncclResult_t result = ncclSuccess;
  for (int peer = 0; peer < int(communicator->clique->size); ++peer)
    for (bool sends : {true, false}) {
      if (peer == communicator->rank || result != ncclSuccess)
        continue;
      Part part{.sends = sends,
                .buffer = bufferOf(sends, size_t(peer)),
                .peer = peer,
                .isNever = isNever,
                .call = call};
      result = add(gpus, lock, std::move(part), count, type, handle, stream);
    }
  if (--group.depth || result != ncclSuccess)
    return result;
  return endGroup(gpus, lock);
}

ncclResult_t ncclAllGather(const void *own, void *all, size_t count,
                           ncclDataType_t type, ncclComm_t handle,
                           CUstream stream) {
  BEGIN;
  FIND(communicator, handle);
  auto begin = reinterpret_cast<uint64_t>(all);
  auto mine = reinterpret_cast<uint64_t>(own);
  if (mine != begin + count * size_t(communicator->rank))
    return fail(ncclInvalidArgument,
                "a gather that is not in place: the stand-in knows no other");
  return addAll(gpus, lock, NcclCall::AllGather,
                planted == BURST_EMULATED_NEVER, count, type, handle, stream,
                [&](bool sends, size_t peer) {
                  return sends ? mine : begin + count * peer;
                });
}

/// The own part is not needed, nor copied.
ncclResult_t ncclAlltoAll(const void *sent, void *received, size_t count,
                          ncclDataType_t type, ncclComm_t handle,
                          CUstream stream) {
  BEGIN;
  return addAll(gpus, lock, NcclCall::AlltoAll, planted == BURST_EMULATED_NEVER,
                count, type, handle, stream, [&](bool sends, size_t peer) {
                  return reinterpret_cast<uint64_t>(sends ? sent : received) +
                         count * peer;
                });
}
