//===- Candidates.cpp - strategies side by side ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Candidates.h"

#include "passes/Explain/Recording.h"
#include "passes/Strategies/Choice.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace burst;

/// A line of the table.
using Row = std::array<std::string, 6>;

static Row rowOf(const Candidate &candidate, bool isChosen) {
  auto bytes = [](double count) {
    return bytesText(static_cast<int64_t>(std::llround(count)));
  };
  auto time = [](double seconds) {
    return llvm::formatv("{0:f1} us", seconds * 1e6).str();
  };
  const Estimate &cost = candidate.cost;
  StringRef mark = isChosen ? "* " : candidate.fits ? "  " : "- ";
  return {(mark + candidate.pin.getText()).str(),
          bytes(cost.bytes),
          bytes(candidate.peakBytes),
          time(cost.compute),
          time(cost.hidden),
          time(cost.exposed)};
}

static void print(ArrayRef<Row> rows, raw_ostream &os) {
  std::array<size_t, std::tuple_size_v<Row>> widths{};
  for (const Row &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, cell.size());
  for (const Row &row : rows) {
    std::string line;
    for (auto [width, cell] : llvm::zip_equal(widths, row)) {
      line += (line.empty() ? "" : " | ") + cell;
      line.append(width - cell.size(), ' ');
    }
    os << StringRef(line).rtrim() << "\n";
  }
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
  SmallVector<Row> rows{
      {"  strategy", "sent", "peak memory", "compute", "hidden", "exposed"}};
  for (auto [index, candidate] : llvm::enumerate(choice.candidates))
    rows.push_back(rowOf(candidate, index == choice.chosen));
  os << "\n";
  print(rows, os);
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
