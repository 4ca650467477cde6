//===- Progress.h - one line on a terminal ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_RUN_PROGRESS_H
#define BURST_TOOLS_BURST_RUN_PROGRESS_H

#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <string>

namespace burst {

/// Says how far a phase is, where it takes longer than a second and the
/// standard error is a terminal.
class Progress {
public:
  explicit Progress(std::string phase) : phase(std::move(phase)) {}
  ~Progress() {
    if (shown)
      llvm::errs() << "\r\033[K";
  }

  void update(int64_t done, int64_t all) {
    auto now = std::chrono::steady_clock::now();
    if (!isTerminal || now < next)
      return;
    next = now + std::chrono::milliseconds(200);
    shown = true;
    llvm::errs() << "\r\033[K" << phase << ": " << done << " of " << all;
    llvm::errs().flush();
  }

private:
  std::string phase;
  bool isTerminal = llvm::sys::Process::StandardErrIsDisplayed();
  bool shown = false;
  std::chrono::steady_clock::time_point next =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

} // namespace burst

#endif // BURST_TOOLS_BURST_RUN_PROGRESS_H
