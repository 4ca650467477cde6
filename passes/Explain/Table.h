//===- Table.h - schedules as tables ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_EXPLAIN_TABLE_H
#define BURST_PASSES_EXPLAIN_TABLE_H

#include "passes/Explain/Drawing.h"
#include "passes/Proof/Prove.h"

namespace burst {

/// What burst-explain prints of a program, when it is proved.
class Table {
public:
  /// Of at most so many ranks; of none, what all do together.
  Table(mlir::func::FuncOp program, int64_t maxRanks, llvm::raw_ostream &os);

  /// How many ranks to show where nobody says it.
  static int64_t defaultRanks(mlir::func::FuncOp program);

  /// To be told of what is proved.
  Listener *listener() { return shown == 0 ? nullptr : &recorder; }
  /// `option` is what says how many ranks to show.
  void print(const ScheduleProof &proof, llvm::StringRef option);

  /// What was printed, as a picture shows it.
  Drawing drawing;

private:
  void printLegend();
  void printHops();
  void printRanks(const std::vector<Traffic> &traffic);
  void printExtremes(const std::vector<Traffic> &traffic,
                     llvm::StringRef option);
  void printProof(const ScheduleProof &proof);
  void printRow(llvm::StringRef head, llvm::ArrayRef<std::string> cells);

  int64_t ranks, shown;
  llvm::SmallVector<int64_t> axes;   ///< by which bytes are told
  mlir::DenseI64ArrayAttr maxSlices; ///< see ring::maxSlicesAttr
  Recorder recorder;
  bool hasStates = false, hasGradients = false; ///< that travel
  bool hasExchanges = false;
  bool hasBackward = false; ///< a backward pass
  size_t width = 6;
  llvm::raw_ostream &os;
};

} // namespace burst

#endif // BURST_PASSES_EXPLAIN_TABLE_H
