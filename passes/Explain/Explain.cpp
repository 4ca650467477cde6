//===- Explain.cpp - schedules as tables ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Drawing.h"
#include "passes/Passes.h"
#include "support/Files.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace burst {
#define GEN_PASS_DEF_EXPLAINPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Owner, then per query segment the classes of the key segments.
std::string blockText(const Computed &block) {
  std::string result = std::to_string(block.owner) + " ";
  for (auto [index, pair] : llvm::enumerate(block.pairs)) {
    if (index != 0 && index % block.columns == 0)
      result += "/";
    result += pair == PairClass::Empty  ? '.'
              : pair == PairClass::Full ? '#'
                                        : '+';
  }
  return result;
}

/// Receiver, then owner and segments.
std::string messageText(const Message &message) {
  return llvm::formatv(">{0} {1}{2}{3}", message.to, prefixOf(message.kind),
                       message.owner, message.segments);
}

/// Prints one program's table.
class Table {
public:
  /// Of at most so many ranks; of none, what all do together.
  Table(func::FuncOp program, int64_t maxRanks, raw_ostream &os)
      : program(program), maxRanks(maxRanks), os(os) {}

  LogicalResult print();

  /// What was printed, as a picture shows it.
  Drawing drawing;

private:
  void printLegend();
  void printHops();
  void printRanks(const std::vector<Traffic> &traffic);
  void printExtremes(const std::vector<Traffic> &traffic);
  void printProof(const Proof &proof);
  void printRow(StringRef head, ArrayRef<std::string> cells);

  func::FuncOp program;
  int64_t maxRanks, shown = 0;
  bool hasStates = false, hasGradients = false; ///< that travel
  size_t width = 6;
  raw_ostream &os;
};

void Table::printRow(StringRef head, ArrayRef<std::string> cells) {
  std::string line = llvm::formatv("{0,-11}", head).str();
  for (const std::string &cell : cells) {
    line += " | " + cell;
    line.append(width - std::min(width, cell.size()), ' ');
  }
  os << StringRef(line).rtrim() << "\n";
}

void Table::printLegend() {
  os << drawing.title << "\n\n"
     << "computes: owner of the slice, then per query segment its key "
        "segments,\n"
     << "          # full, + partly masked, . empty or dropped\n"
     << "sends:    >receiver owner of the slice, and which of its segments, a "
        "or b\n";
  if (hasStates)
    os << "          s the state of its queries, and not the slice\n";
  if (hasGradients)
    os << "          d gradients by it, and not the slice\n";
  os << "\n";
}

void Table::printHops() {
  using Texts = std::vector<std::vector<std::string>>; // by hop, by rank
  Texts computed, sent;
  auto add = [&](Texts &texts, size_t hop, int64_t rank,
                 const std::string &text) {
    texts.resize(std::max(texts.size(), hop + 1));
    texts[hop].resize(shown);
    std::string &cell = texts[hop][rank];
    cell += (cell.empty() ? "" : " ") + text;
    width = std::max(width, cell.size());
  };
  for (int64_t rank = 0; rank < shown; ++rank)
    for (auto [hop, cell] : llvm::enumerate(drawing.cells[rank])) {
      for (const Computed &block : cell.blocks)
        add(computed, hop, rank, blockText(block));
      for (const Message &message : cell.messages)
        add(sent, hop, rank, messageText(message));
    }
  std::vector<std::string> heads;
  heads.reserve(shown);
  for (int64_t rank = 0; rank < shown; ++rank)
    heads.push_back("rank " + std::to_string(rank));
  printRow("hop", heads);
  for (size_t hop = 0; hop < std::max(computed.size(), sent.size()); ++hop) {
    if (hop < computed.size() && !computed[hop].empty())
      printRow(llvm::formatv("{0} computes", hop).str(), computed[hop]);
    if (hop < sent.size() && !sent[hop].empty())
      printRow("  sends", sent[hop]);
  }
}

void Table::printRanks(const std::vector<Traffic> &traffic) {
  std::vector<std::string> bytes, peaks;
  for (const Traffic &found : ArrayRef(traffic).take_front(shown)) {
    bytes.push_back(bytesText(found.totalBytes()));
    peaks.push_back(bytesText(found.peakBytes));
  }
  for (const std::string &cell : llvm::concat<const std::string>(bytes, peaks))
    width = std::max(width, cell.size());
  os << "\n";
  printRow("sent", bytes);
  printRow("peak memory", peaks);
}

/// The ranks with the least and the most.
void Table::printExtremes(const std::vector<Traffic> &traffic) {
  auto print = [&](StringRef head, auto &&amount) {
    auto [least, most] = std::minmax_element(
        traffic.begin(), traffic.end(),
        [&](const auto &a, const auto &b) { return amount(a) < amount(b); });
    os << llvm::formatv("{0,-11} | {1} (rank {2}) to {3} (rank {4})\n", head,
                        bytesText(amount(*least)), least - traffic.begin(),
                        bytesText(amount(*most)), most - traffic.begin());
  };
  os << drawing.title << "; max-ranks=N shows what N of them do\n\n";
  print("sent", [](const Traffic &t) { return t.totalBytes(); });
  print("peak memory", [](const Traffic &t) { return t.peakBytes; });
}

void Table::printProof(const Proof &proof) {
  int64_t all = 0;
  for (const Traffic &found : proof.traffic)
    all += found.totalBytes();
  os << "\nsent by all ranks: " << bytesText(all) << "\n"
     << "proved: each of " << proof.computed - proof.wasted
     << " pairs of segments that the mask needs is computed once, "
     << proof.dropped << " are dropped;\n";
  if (proof.wasted != 0)
    os << "        " << proof.wasted
       << " that it rules out are computed too;\n";
  os << "        sends match receives, no deadlock, at most 2 received slices "
        "at "
        "a time\n";
  if (hasStates)
    os << "        and 2 states of slices, and 2 of the rank's own\n";
  if (hasGradients)
    os << "        and 2 gradients by slices, and 2 by the rank's own\n";
}

LogicalResult Table::print() {
  std::unique_ptr<Simulation> simulation = Simulation::create(program);
  if (!simulation)
    return failure();
  if (!isStatic(program))
    return emitError(program.getLoc(),
                     "has sizes or tables that are known at run time "
                     "only, so its schedule cannot be shown; make them "
                     "static");
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  if (failed(globals))
    return failure();
  int64_t ranks = simulation->numRanks();
  shown = std::min(maxRanks, ranks);
  Proof proof;
  Recorder recorder(shown);
  if (auto counterexample = prove(*simulation, *globals, {true}, proof,
                                  shown == 0 ? nullptr : &recorder)) {
    report(program, *counterexample);
    return failure();
  }
  drawing = {llvm::formatv("program @{0}, {1} ranks", program.getName(), ranks),
             {},
             shown};
  program.walk([&](ring::StartOp start) {
    for (Value tensor : start.getTensors())
      if (auto step = tensor.getDefiningOp<ring::StepOpInterface>()) {
        hasStates |= step.getContent(tensor) == ring::Content::State;
        hasGradients |= step.getContent(tensor) == ring::Content::Gradient;
      }
  });
  if (shown == 0) {
    printExtremes(proof.traffic);
    printProof(proof);
    return success();
  }
  drawing.cells = recorder.cells();
  if (shown < ranks)
    drawing.title += llvm::formatv(" (the first {0} shown)", shown).str();
  printLegend();
  printHops();
  printRanks(proof.traffic);
  printProof(proof);
  return success();
}

struct Explain : burst::impl::ExplainPassBase<Explain> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager pm(ModuleOp::getOperationName());
    buildRingPipeline(pm, {});
    pm.getDependentDialects(registry);
  }

  /// How many ranks are shown where the option does not say it.
  int64_t shownOf(func::FuncOp program) const {
    constexpr int64_t maxTableRanks = 64;
    bool isLarge = ring::numRanks(program) > maxTableRanks;
    return isLarge && !maxRanks.hasValue() && svg.empty() ? 0 : maxRanks;
  }

  void runOnOperation() override {
    if (maxRanks < 1) {
      emitError(getOperation().getLoc(), "burst-explain shows at least 1 rank, "
                                         "got max-ranks=")
          << static_cast<int64_t>(maxRanks);
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> copy;
    ModuleOp module = getOperation();
    bool isLowered = true;
    module.walk([&](AttentionInterface) { isLowered = false; });
    if (!isLowered) {
      copy = module.clone();
      module = *copy;
      PassManager pm(&getContext());
      RingPipelineOptions options;
      options.verify = false; // it is proved below
      buildRingPipeline(pm, options);
      if (failed(pm.run(module)))
        return signalPassFailure();
    }
    std::vector<Drawing> drawings;
    for (auto program : module.getOps<func::FuncOp>()) {
      if (!program->hasAttr(ring::gridAttr))
        continue;
      Table table(program, shownOf(program), llvm::outs());
      if (failed(table.print())) {
        signalPassFailure();
        continue;
      }
      drawings.push_back(std::move(table.drawing));
    }
    if (!svg.empty() && failed(write(drawings)))
      signalPassFailure();
  }

  LogicalResult write(ArrayRef<Drawing> drawings) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    draw(drawings, stream);
    if (llvm::Error error = writeFile(text, svg))
      return emitError(getOperation().getLoc(), "burst-explain: ")
             << llvm::toString(std::move(error));
    return success();
  }
};

} // namespace
