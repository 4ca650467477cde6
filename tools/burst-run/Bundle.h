//===- Bundle.h - runs programs that were compiled before -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_RUN_BUNDLE_H
#define BURST_TOOLS_BURST_RUN_BUNDLE_H

#include "tools/burst-run/Runner.h"

namespace burst {

/// Whether a file begins as shared objects do, whatever its name is.
bool isBundle(const std::string &path);

/// Runs a shared object that burst-compile made. The exit status: 0, or 1 with
/// a message on the standard error.
int runBundle(const RunOptions &options);

} // namespace burst

#endif // BURST_TOOLS_BURST_RUN_BUNDLE_H
