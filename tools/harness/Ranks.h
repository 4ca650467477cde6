//===- Ranks.h - This process as one of several ranks -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_HARNESS_RANKS_H
#define BURST_TOOLS_HARNESS_RANKS_H

#include "burst/burst.h"

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace burst {

/// A rank of a job that a launcher has started, and what connects it.
class Ranks {
public:
  /// "tcp", between worlds as the environment says, or "mpi". Null, and why.
  static std::unique_ptr<Ranks> connect(llvm::StringRef transport,
                                        std::string &error);
  Ranks(const Ranks &) = delete;
  ~Ranks();

  burst_transport *transport() const { return handle; }
  int64_t rank() const { return own; }

  /// The exit status of rank 0, on all: 1 where it cannot be heard.
  int share(int status);

private:
  Ranks() = default;
  bool connectTcp(std::string &error);
  bool connectMpi(std::string &error);

  burst_world *world = nullptr;
  burst_transport *handle = nullptr;
  void (*closeMpi)() = nullptr;
  int64_t own = 0, count = 1;
};

} // namespace burst

#endif // BURST_TOOLS_HARNESS_RANKS_H
