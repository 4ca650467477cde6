//===- Calibrate.h - what this machine can do -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_RUN_CALIBRATE_H
#define BURST_TOOLS_BURST_RUN_CALIBRATE_H

#include "tools/burst-run/Runner.h"

namespace burst {

/// Measures what burst-choose-strategy reads of a machine, and writes it to the
/// file `path` ("-": the standard output) as an alias of an attribute:
/// `#machine = #dlti.target_system_spec<...>`. Of the options, those of the
/// device and of the transport count. The exit status.
int calibrate(const RunOptions &options, const std::string &path);

} // namespace burst

#endif // BURST_TOOLS_BURST_RUN_CALIBRATE_H
