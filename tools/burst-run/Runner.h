//===- Runner.h - what burst-run does ---------------------------*- C++ -*-===//
#ifndef BURST_TOOLS_BURST_RUN_RUNNER_H
#define BURST_TOOLS_BURST_RUN_RUNNER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace burst {

struct RunOptions {
  std::string file, entry, in, out;
  uint64_t seed;
  /// Rows to compare with the oracle, -1 for all; none: no comparison.
  std::optional<int64_t> checkRows;
  bool json;
  std::vector<int64_t> extents;
  std::optional<int64_t> batch;
};

/// The exit status: 0, or 1 with a message on the standard error.
int run(const RunOptions &options);

} // namespace burst

#endif // BURST_TOOLS_BURST_RUN_RUNNER_H
