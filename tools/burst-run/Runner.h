//===- Runner.h - what burst-run does ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_RUN_RUNNER_H
#define BURST_TOOLS_BURST_RUN_RUNNER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace burst {

class Ranks;

struct RunOptions {
  std::string tool; ///< the path of this program
  std::string file, entry, in, out;
  uint64_t seed = 0;
  /// Rows to compare with the oracle, -1 for all; none: no comparison.
  std::optional<int64_t> checkRows;
  /// Ranks of which the schedule is shown, 0 for as many as burst-explain does;
  /// none: it is not.
  std::optional<int64_t> explainRanks;
  bool json = false;
  std::vector<int64_t> extents;
  std::optional<int64_t> batch;
  bool interpret = false;     ///< do not compile
  int64_t threads = 0;        ///< of compiled kernels; 0: one per processor
  double deadline = 0;        ///< of each wait in seconds; 0: the runtime's
  double latency = 0;         ///< of each transfer in seconds
  double bandwidth = 0;       ///< bytes per second; 0: as fast as memory
  std::string trace;          ///< a file; empty: none
  std::optional<int64_t> gpu; ///< runs the kernels; none: this processor does
  std::string architectures;  ///< of GPUs, to compile for
  std::string processor;      ///< to compile for; empty: this one
  std::string features;       ///< on top of the processor's
  std::string without;        ///< optimisations that are left out
  std::string dumpDirectory;
  /// This process is one of several ranks; null: it has all of them.
  Ranks *ranks = nullptr;

  /// Whether all functions of the file can be run with them, one after the
  /// other.
  bool mayBeSeveral() const {
    return file != "-" && in.empty() && out.empty() && extents.empty() &&
           !batch && !json && trace.empty() && dumpDirectory.empty();
  }
};

/// The exit status: 0, or 1 with a message on the standard error.
int run(const RunOptions &options);

} // namespace burst

#endif // BURST_TOOLS_BURST_RUN_RUNNER_H
