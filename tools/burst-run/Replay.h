//===- Replay.h - runs that can be repeated ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_RUN_REPLAY_H
#define BURST_TOOLS_BURST_RUN_REPLAY_H

#include "tools/burst-run/Runner.h"

#include "llvm/ADT/StringRef.h"

namespace burst {

/// Writes into the dump directory the module (input.mlir), the tensors that
/// were given (input.safetensors) and replay.sh, which runs them again with the
/// same options. An error, or empty.
std::string writeReplay(const RunOptions &options, llvm::StringRef module);

} // namespace burst

#endif // BURST_TOOLS_BURST_RUN_REPLAY_H
