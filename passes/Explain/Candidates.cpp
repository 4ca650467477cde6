//===- Candidates.cpp - strategies side by side ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Candidates.h"

#include "passes/Explain/Recording.h"
#include "passes/Strategies/Choice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace burst;

using Row = SmallVector<std::string>;

/// With the bytes along each of `axes`.
static Row rowOf(const Candidate &candidate, ArrayRef<int64_t> axes,
                 bool isChosen) {
  auto bytes = [](double count) {
    return bytesText(static_cast<int64_t>(std::llround(count)));
  };
  auto time = [](double seconds) {
    return llvm::formatv("{0:f1} us", seconds * 1e6).str();
  };
  const Estimate &cost = candidate.cost;
  StringRef mark = isChosen ? "* " : candidate.fits ? "  " : "- ";
  Row row{(mark + candidate.pin.getText()).str(), bytes(cost.bytes)};
  for (int64_t axis : axes)
    row.push_back(bytes(cost.bytesAlong(axis)));
  row.append({bytes(candidate.peakBytes), time(cost.compute), time(cost.hidden),
              time(cost.exposed)});
  return row;
}

/// A line for all strategies of one reason.
static void printRefused(ArrayRef<Refused> all, raw_ostream &os) {
  llvm::MapVector<StringRef, std::string> byReason;
  for (const Refused &refused : all) {
    std::string &names = byReason[refused.why];
    names += (names.empty() ? "x " : "; ") + refused.pin.getText();
  }
  for (const auto &[why, names] : byReason)
    os << names << ": " << why << "\n";
}

static void print(AttentionInterface op, const Choice &choice,
                  raw_ostream &os) {
  os << "strategies for " << op->getName() << " of @"
     << op->getParentOfType<func::FuncOp>().getName() << ", per rank; * is "
     << (choice.isPinned ? "pinned" : "chosen") << "\n";
  if (!choice.assumptions.empty())
    os << choice.assumptions << "\n";
  if (llvm::any_of(choice.candidates,
                   [](const Candidate &each) { return !each.fits; }))
    os << "- needs more memory than the "
       << bytesText(static_cast<int64_t>(choice.memory))
       << " that a rank has\n";
  if (!choice.refused.empty())
    os << "x cannot compute it\n";
  if (!choice.axes.empty())
    os << "on [i] is sent along axis i of the grid, the first in which sender "
          "and receiver differ\n";
  Row head{"  strategy", "sent"};
  for (int64_t axis : choice.axes)
    head.push_back(llvm::formatv("on [{0}]", axis));
  head.append({"peak memory", "compute", "hidden", "exposed"});
  SmallVector<Row> rows{head};
  for (auto [index, candidate] : llvm::enumerate(choice.candidates))
    rows.push_back(rowOf(candidate, choice.axes, index == choice.chosen));
  os << "\n";
  printAligned(rows, os);
  printRefused(choice.refused, os);
  os << "\n";
}

LogicalResult burst::printCandidates(ModuleOp module, raw_ostream &os) {
  WalkResult result = module.walk([&](func::FuncOp function) -> WalkResult {
    SmallVector<AttentionInterface> attentions = attentionsOf(function);
    FailureOr<SmallVector<Choice>> choices = weighStrategies(attentions);
    if (failed(choices))
      return WalkResult::interrupt();
    for (auto [op, choice] : llvm::zip_equal(attentions, *choices))
      print(op, choice, os);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
