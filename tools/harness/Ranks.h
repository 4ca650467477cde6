//===- Ranks.h - This process as one of several ranks -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_HARNESS_RANKS_H
#define BURST_TOOLS_HARNESS_RANKS_H

#include "burst/burst.h"

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <optional>
#include <string>

namespace burst {

/// A rank of a job that a launcher has started, and what connects it.
class Ranks {
public:
  /// "mpi", or between worlds as the environment says: "tcp"; and, from GPU to
  /// GPU, "nccl" and "ipc". There `gpu` is that of this rank; none: the one of
  /// the rank's number on its machine. Where it fails, `error` says why, and
  /// the other ranks may hear of it when what is returned is gone.
  static std::unique_ptr<Ranks> connect(llvm::StringRef transport,
                                        std::optional<int64_t> gpu,
                                        std::string &error);
  static bool isTransport(llvm::StringRef name);
  static bool isOfGpus(llvm::StringRef transport) {
    return transport == "nccl" || transport == "ipc";
  }
  Ranks(const Ranks &) = delete;
  ~Ranks();

  bool isConnected() const { return connected; }
  burst_transport *transport() const { return handle; }
  int64_t rank() const { return own; }
  int64_t numRanks() const { return count; }
  /// The GPU that a transport of GPUs is for; else null, and none.
  burst_device *device() const { return gpuDevice; }
  std::optional<int64_t> gpu() const { return ordinal; }

  /// The exit status of rank 0, on all: 1 where it cannot be heard.
  int share(int status);

private:
  Ranks() = default;
  bool connectMpi(std::string &error);
  bool connectWorld(llvm::StringRef transport, std::string &error);
  bool connectGpu(llvm::StringRef transport, std::string &error);
  int shareOverWorld(int status);
  int shareOverTransport(int status);

  burst_world *world = nullptr;
  burst_device *gpuDevice = nullptr;
  std::optional<int64_t> ordinal;
  burst_transport *handle = nullptr;
  void (*closeMpi)() = nullptr;
  int64_t own = 0, count = 1;
  bool connected = false;
};

} // namespace burst

#endif // BURST_TOOLS_HARNESS_RANKS_H
