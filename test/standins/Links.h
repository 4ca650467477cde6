//===- Links.h - Ranks of the emulated NCCL in processes --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What connects a rank of a communicator to those in other processes of this
// machine (BURST_EMULATED_PROCESSES): a socket to each, whose names are gone
// with the processes. A thread reads what comes, so that writing never waits
// for long; nobody is told of it, but asks.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_STANDINS_LINKS_H
#define BURST_TEST_STANDINS_LINKS_H

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace burst::standins {

/// By which call of NCCL something is sent, which is the same where it is
/// received.
enum class NcclCall : uint32_t { SendOrReceive, AllGather, AlltoAll };
inline const char *nameOf(NcclCall call) {
  switch (call) {
  case NcclCall::SendOrReceive:
    return "ncclSend or ncclRecv";
  case NcclCall::AllGather:
    return "ncclAllGather";
  case NcclCall::AlltoAll:
    return "ncclAlltoAll";
  }
  return "something else";
}

class Links {
public:
  /// Begins to connect the ranks that know the same id.
  Links(uint64_t id, int rank, int ranks, int gpu);
  ~Links();

  bool isReady() const { return ready; }
  /// GPUs of all ranks, when it is ready.
  const std::vector<int> &gpus() const { return ordinals; }

  /// Message number `number` to a peer, and whether that has taken it.
  void send(int peer, uint64_t number, NcclCall call, std::vector<char> data);
  bool isTaken(int peer, uint64_t number);

  struct Message {
    NcclCall call = NcclCall::SendOrReceive;
    std::vector<char> data;
  };
  /// Message number `number` of a peer, if it has come.
  std::optional<Message> take(int peer, uint64_t number);

private:
  struct Frame {
    uint64_t number = 0, bytes = 0;
    uint32_t isTaken = 0, call = 0;
  };

  void run();
  bool connectAll();
  bool greet(int fd, int &peer);
  bool readFrame(int peer);
  void write(int peer, const Frame &frame, const std::vector<char> &data);

  uint64_t id;
  int rank, ranks, gpu;
  int listener = -1;
  std::vector<int> sockets, ordinals; // by rank
  std::atomic<bool> ready = false, isEnded = false;
  std::mutex mutex;
  // Guarded:
  std::map<std::pair<int, uint64_t>, Message> come;
  std::map<std::pair<int, uint64_t>, bool> taken;
  std::thread reader;
};

} // namespace burst::standins

#endif // BURST_TEST_STANDINS_LINKS_H
