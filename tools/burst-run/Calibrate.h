//===- Calibrate.h - what this machine can do -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_RUN_CALIBRATE_H
#define BURST_TOOLS_BURST_RUN_CALIBRATE_H

#include "tools/burst-run/Runner.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace burst {

/// A grid of ranks, whose axes have links of their own.
struct CalibratedGrid {
  std::string name;
  llvm::SmallVector<int64_t> shape;

  int64_t numRanks() const;
  /// "mesh=2x4"; empty where the text is none.
  static std::optional<CalibratedGrid> parse(llvm::StringRef text);
};

/// Measures what burst-choose-strategy reads of a machine, and writes it to the
/// file `path` ("-": the standard output) as an alias of an attribute:
/// `#machine = #dlti.target_system_spec<...>`. Of the options, those of the
/// device and of the transport count. Without a grid the link is that between
/// two ranks; with one those of its axes are told, too. Ranks that are
/// processes all call it, with a grid of as many; rank 0 writes. The exit
/// status.
int calibrate(const RunOptions &options,
              const std::optional<CalibratedGrid> &grid,
              const std::string &path);

} // namespace burst

#endif // BURST_TOOLS_BURST_RUN_CALIBRATE_H
