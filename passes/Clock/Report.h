//===- Report.h - what a clock showed ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_CLOCK_REPORT_H
#define BURST_PASSES_CLOCK_REPORT_H

#include "passes/Clock/Clock.h"

#include "llvm/Support/JSON.h"

namespace burst {

/// A program that was run by the clock.
struct Timed {
  std::string name;
  int64_t ranks = 0;
  Clocked clocked;
  llvm::SmallVector<int64_t> axes; ///< of several ranks
  double computeMean = 0;          ///< seconds, of all ranks
  double flops = 0;                ///< of all ranks, for what the mask keeps
  double sharePeak = 0;            ///< of the peak, 0 where it is not known
  double bytesSent = 0;            ///< by a rank, on average
  double peakBytes = 0, memory = 0;
  std::string limit; ///< what the time is spent on, a sentence
  std::vector<llvm::StringRef> steps;
  std::vector<int64_t> channels;
};

/// Runs a program that is proved for the sizes of `globals`; keeps spans of the
/// first `shown` ranks. Emits errors.
mlir::FailureOr<Timed> timeProgram(mlir::func::FuncOp program,
                                   llvm::ArrayRef<Argument> globals,
                                   const Machine &machine, int64_t shown);

/// A few lines.
void print(const Timed &timed, llvm::raw_ostream &os);
llvm::json::Object toJson(const Timed &timed);

/// Several as the lines of a table, each under the name it is given.
void printTable(llvm::ArrayRef<std::pair<std::string, Timed>> rows,
                llvm::raw_ostream &os);

/// What the ranks that were shown did, as a trace for Perfetto, and as a
/// picture (SVG).
llvm::json::Object toTrace(llvm::ArrayRef<Timed> all);
void drawTimeline(llvm::ArrayRef<Timed> all, llvm::raw_ostream &os);

} // namespace burst

#endif // BURST_PASSES_CLOCK_REPORT_H
