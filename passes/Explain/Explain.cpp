//===- Explain.cpp - schedules as tables ----------------------------------===//
#include "passes/Machine/Audit.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst {
#define GEN_PASS_DEF_EXPLAINPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Bytes with a unit: "512 B", "1.5 KiB".
std::string bytesText(int64_t bytes) {
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0)
    return llvm::formatv("{0} B", bytes).str();
  return llvm::formatv("{0:F1} {1}", value, units[unit]).str();
}

/// Notes what every rank computes and sends in each hop.
class Recorder : public Bookkeeper {
public:
  explicit Recorder(int64_t ranks) : computed(ranks), sent(ranks) {}

  bool attend(Attend &attend, State &result, std::string &message) override {
    note(computed, attend.rank, attend.hop, blockText(attend));
    return Bookkeeper::attend(attend, result, message);
  }

  void deliver(const Transfer &from, Transfer &to, size_t index) override {
    // One note per message, with the bytes of all its tensors.
    if (index != 0)
      return;
    note(sent, from.rank, from.hop,
         ">" + std::to_string(to.rank) + " " + std::to_string(from.owner) +
             segmentsText(from));
  }

  /// By rank, by hop.
  std::vector<std::vector<std::string>> computed, sent;

private:
  static void note(std::vector<std::vector<std::string>> &table, int64_t rank,
                   int64_t hop, const std::string &text) {
    auto &column = table[rank];
    column.resize(std::max<size_t>(column.size(), hop + 1));
    column[hop] += (column[hop].empty() ? "" : " ") + text;
  }

  /// Owner, then per query segment the classes of the key segments.
  std::string blockText(const Attend &attend) {
    std::string text;
    for (auto [index, slice] : llvm::enumerate(attend.slices)) {
      text += (index == 0 ? "" : " ") + std::to_string(slice.owner) + " ";
      for (int64_t a = 0; a < attend.queryLayout.getNumSegments(); ++a) {
        text += a == 0 ? "" : "/";
        for (int64_t b = 0; b < attend.keyLayout.getNumSegments(); ++b) {
          PairClass kind = classifier.classify(attend, slice.owner, a, b);
          bool isComputed = attend.isComputed(index, a, b);
          text += !isComputed || kind == PairClass::Empty ? '.'
                  : kind == PairClass::Full               ? '#'
                                                          : '+';
        }
      }
    }
    return text;
  }

  static std::string segmentsText(const Transfer &transfer) {
    ring::StartOp op = transfer.start;
    std::string text;
    for (int64_t s = 0; s < op.getLayout().getNumSegments(); ++s)
      if (op.getLayout().getNumSegments() > 1 && transfer.sendMask >> s & 1)
        text += static_cast<char>('a' + s);
    return text;
  }

  Classifier classifier;
};

/// Prints one program's table.
class Table {
public:
  Table(func::FuncOp program, int64_t maxRanks, raw_ostream &os)
      : program(program), maxRanks(maxRanks), os(os) {}

  LogicalResult print();

private:
  void printLegend(int64_t ranks);
  void printHops(const Recorder &recorder);
  void printTotals(const std::vector<Traffic> &traffic, const Proof &proof);
  void printRow(StringRef head, ArrayRef<std::string> cells);

  func::FuncOp program;
  int64_t maxRanks, shown = 0;
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

void Table::printLegend(int64_t ranks) {
  os << "program @" << program.getName() << ", " << ranks << " ranks";
  if (shown < ranks)
    os << " (the first " << shown << " shown)";
  os << "\n\n"
     << "computes: owner of the slice, then per query segment its key "
        "segments,\n"
     << "          # full, + partly masked, . empty or dropped\n"
     << "sends:    >receiver owner of the slice, and which of its segments, a "
        "or b\n\n";
}

void Table::printHops(const Recorder &recorder) {
  size_t hops = 0;
  auto measure = [&](const auto &table) {
    for (int64_t rank = 0; rank < shown; ++rank) {
      hops = std::max(hops, table[rank].size());
      for (const std::string &cell : table[rank])
        width = std::max(width, cell.size());
    }
  };
  measure(recorder.computed);
  measure(recorder.sent);
  std::vector<std::string> cells;
  auto printTable = [&](StringRef head, const auto &table, size_t hop) {
    cells.clear();
    for (int64_t rank = 0; rank < shown; ++rank)
      cells.push_back(hop < table[rank].size() ? table[rank][hop] : "");
    if (llvm::any_of(cells, [](const std::string &c) { return !c.empty(); }))
      printRow(head, cells);
  };
  for (int64_t rank = 0; rank < shown; ++rank)
    cells.push_back("rank " + std::to_string(rank));
  printRow("hop", cells);
  for (size_t hop = 0; hop < hops; ++hop) {
    printTable(llvm::formatv("{0} computes", hop).str(), recorder.computed,
               hop);
    printTable("  sends", recorder.sent, hop);
  }
}

void Table::printTotals(const std::vector<Traffic> &traffic,
                        const Proof &proof) {
  std::vector<std::string> bytes, peaks;
  int64_t all = 0;
  for (auto [rank, found] : llvm::enumerate(traffic)) {
    all += found.totalBytes();
    if (static_cast<int64_t>(rank) >= shown)
      continue;
    bytes.push_back(bytesText(found.totalBytes()));
    peaks.push_back(bytesText(found.peakBytes));
  }
  for (const std::string &cell : llvm::concat<const std::string>(bytes, peaks))
    width = std::max(width, cell.size());
  os << "\n";
  printRow("sent", bytes);
  printRow("peak memory", peaks);
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
  Proof proof;
  if (auto counterexample = prove(*simulation, *globals, {true}, proof)) {
    report(program, *counterexample);
    return failure();
  }
  simulation->reset();
  Recorder recorder(simulation->numRanks());
  if (!simulation->run(recorder,
                       shardGlobals(*simulation, *globals, ShardData::Omit))) {
    report(program, simulation->getCounterexample());
    return failure();
  }
  shown = std::min(maxRanks, simulation->numRanks());
  printLegend(simulation->numRanks());
  printHops(recorder);
  printTotals(simulation->getTraffic(), proof);
  return success();
}

struct Explain : burst::impl::ExplainPassBase<Explain> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager pm(ModuleOp::getOperationName());
    buildRingPipeline(pm, {});
    pm.getDependentDialects(registry);
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
      buildRingPipeline(pm, {});
      if (failed(pm.run(module)))
        return signalPassFailure();
    }
    for (auto program : module.getOps<func::FuncOp>())
      if (program->hasAttr(ring::gridAttr) &&
          failed(Table(program, maxRanks, llvm::outs()).print()))
        signalPassFailure();
  }
};

} // namespace
