//===- Hops.h - how long messages between ranks take ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_HARNESS_HOPS_H
#define BURST_TOOLS_HARNESS_HOPS_H

#include "tools/harness/Compiled.h"

namespace burst {

/// Of `numRanks` ranks those whose numbers differ by `stride`, `size` of them.
struct AxisLinks {
  int64_t numRanks, size, stride;
};

/// In `seconds` the median time of `count` hops along an axis: each rank sends
/// a message of `bytes` to the next one and receives one from that behind.
/// Null, or what went wrong.
std::optional<std::string> timeHops(const AxisLinks &axis, int64_t bytes,
                                    int64_t count, const CompiledRun &run,
                                    double &seconds);

} // namespace burst

#endif // BURST_TOOLS_HARNESS_HOPS_H
