//===- Cells.cpp - what the report is about -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Peak.h"
#include "bench/Report.h"

#include "llvm/Support/FormatVariadic.h"

using namespace burst;
using namespace burst::bench;

namespace {

/// The cells, group by group.
struct Cells {
  explicit Cells(bool quick) : quick(quick) {}

  void addAttention();
  void addProducts();
  void addRanks();
  void addSparse();
  void addDecode();

  bool quick;
  std::vector<Description> cells;

private:
  Description &addAttention(const Problem &problem);
  void addSparse(Problem problem, bool isDrawn);
};

} // namespace

/// Fewer at long sequences, but one for each of two threads: tasks of the
/// backward pass are whole heads.
static int64_t headsAt(int64_t sequence) {
  return sequence <= 2048 ? 8 : sequence <= 4096 ? 4 : 2;
}

/// Percent of the peak that are wanted at S = 4096; 0: nothing is. They were
/// written down before anything was measured.
static double barOf(const Problem &problem) {
  bool isFull = problem.mask == Mask::Full;
  if (problem.isBackward)
    return problem.type == "f32" ? (isFull ? 78 : 72) : 0;
  if (problem.type == "f64")
    return isFull ? 75 : 70;
  if (problem.type == "bf16")
    return !hasDot() ? 0 : isFull ? 70 : 62;
  if (problem.dim == 64)
    return isFull ? 80 : 75;
  if (problem.dim == 256)
    return isFull ? 90 : 85;
  return isFull ? 88 : 83;
}

Description &Cells::addAttention(const Problem &problem) {
  Description cell;
  cell.name = "attention " + problem.name();
  cell.problem = problem;
  cell.type = problem.type;
  cell.flops = problem.flops();
  cell.question =
      llvm::json::Object{{"kind", problem.isBackward ? "backward" : "forward"},
                         {"type", problem.type},
                         {"causal", problem.mask == Mask::Causal},
                         {"heads", problem.heads},
                         {"sequence", problem.sequence},
                         {"dim", problem.dim}};
  if (problem.type == "bf16")
    cell.limit = hasDot() ? "peak of dot products" : "peak of f32";
  cells.push_back(std::move(cell));
  return cells.back();
}

void Cells::addAttention() {
  std::vector<int64_t> sequences{512, 1024, 2048, 4096, 8192, 16384};
  int64_t judged = 4096;
  if (quick) {
    sequences = {128, 256};
    judged = 256;
  }
  for (const char *type : {"f32", "bf16"})
    for (bool isBackward : {false, true})
      for (Mask mask : {Mask::Full, Mask::Causal})
        for (int64_t sequence : sequences) {
          Problem problem{type, isBackward, mask, sequence, headsAt(sequence)};
          Description &cell = addAttention(problem);
          if (sequence == judged) {
            cell.bar = barOf(problem);
            if (problem.type == "bf16" && !isBackward && !hasDot())
              cell.barName = "no bar: the processor lacks AVX512-BF16";
          }
          cell.plot = llvm::formatv("{0}-{1}",
                                    isBackward ? "backward" : "forward", type);
          cell.series = mask == Mask::Full ? "full" : "causal";
          cell.x = static_cast<double>(sequence);
        }
  for (auto [type, dim] : {std::pair("f32", 64), {"f32", 256}, {"f64", 128}})
    for (Mask mask : {Mask::Full, Mask::Causal}) {
      Problem problem{type, false, mask, judged, headsAt(judged), dim};
      addAttention(problem).bar = barOf(problem);
    }
}

/// What a library does at the shapes of attention: queries by keys, and weights
/// by values. It can lay operands out once, and has no softmax in between.
void Cells::addProducts() {
  int64_t size = quick ? 512 : 4096;
  for (auto [type, dim] :
       {std::pair("f32", 64), {"f32", 128}, {"f32", 256}, {"bf16", 128}})
    for (bool isScores : {true, false}) {
      int64_t columns = isScores ? size : dim, depth = isScores ? dim : size;
      Description cell;
      cell.name = llvm::formatv("product {0} {1}x{2} by {2}x{3}", type, size,
                                depth, columns);
      cell.question = llvm::json::Object{{"kind", "product"},
                                         {"type", type},
                                         {"m", size},
                                         {"n", columns},
                                         {"k", depth}};
      cell.type = type;
      cell.flops = 2.0 * static_cast<double>(size * columns * depth);
      if (cell.type == "bf16")
        cell.limit = hasDot() ? "peak of dot products" : "peak of f32";
      cells.push_back(std::move(cell));
    }
}

/// Few queries against a cache of keys. All of it is read, and used for little:
/// at S = 32768 it is in no cache of a core.
void Cells::addDecode() {
  std::vector<int64_t> sequences{1024, 4096, 32768};
  if (quick)
    sequences = {256};
  for (const char *type : {"f32", "bf16"})
    for (int64_t sequence : sequences)
      for (int64_t heads : {32, 8})
        for (int64_t batch : {1, 8})
          for (int64_t queries : {1, 4, 16}) {
            // The others add nothing but time.
            if (queries != 1 && batch != 1)
              continue;
            Problem problem{type, false, Mask::Full, sequence, heads};
            problem.queries = queries;
            problem.batch = batch;
            problem.keyHeads = 8;
            Description cell;
            cell.name = "decode " + problem.name();
            cell.problem = problem;
            cell.question = llvm::json::Object{
                {"kind", "forward"},    {"type", type},
                {"causal", false},      {"heads", heads},
                {"sequence", sequence}, {"dim", problem.dim},
                {"queries", queries},   {"key_heads", problem.keyHeads},
                {"batch", batch}};
            cell.bytes = problem.keyBytes();
            cell.limit = "reading keys and values";
            cell.type = type;
            cell.flops = problem.flops();
            if (queries == 1 && sequence == 32768)
              cell.bar = 75;
            cells.push_back(std::move(cell));
          }
}

void Cells::addRanks() {
  Problem one{"f32", false, Mask::Causal, quick ? 256 : 16384, 2};
  for (auto [isBackward, strategy] :
       {std::pair(false, "ring_kv"), {true, "ring_kv"}, {true, "ring_q"}})
    for (int64_t ranks : {2, 4, 8}) {
      if (quick && ranks > 2)
        continue;
      one.isBackward = isBackward;
      one.strategy = strategy;
      Description cell;
      cell.reference = one;
      cell.limit = "P=1";
      cell.problem = one;
      cell.problem->ranks = ranks;
      cell.name =
          llvm::formatv("ranks {0} {1} P={2}", one.name(), strategy, ranks);
      cell.type = one.type;
      cell.flops = one.flops();
      cell.bar = 100 / 1.05;
      cell.barName = "at most 1.05 of the time of P=1";
      cell.plot = "ranks";
      cell.series = isBackward ? llvm::formatv("backward, {0}", strategy).str()
                               : "forward";
      cell.x = static_cast<double>(ranks);
      cell.shown = Shown::Slowdown;
      cells.push_back(std::move(cell));
    }
}

void Cells::addSparse(Problem problem, bool isDrawn) {
  Problem causal = problem;
  causal.mask = Mask::Causal;
  causal.parts = 0;
  causal.sequence = quick ? 256 : 16384;
  causal.heads = problem.isBackward ? 2 : 1;
  bool isWindow = problem.mask == Mask::Window;
  Description cell;
  cell.name = "sparse " + problem.name();
  cell.reference = causal;
  cell.limit = "causal";
  cell.problem = problem;
  cell.type = problem.type;
  cell.flops = problem.flops();
  if (problem.parts == (isWindow ? 1024 : 64)) {
    cell.bar = isWindow ? 85 : 80;
    cell.barName = isWindow ? "within 15 % of causal, per pair"
                            : "within 20 % of causal, per pair";
  }
  if (isDrawn) {
    cell.plot = "pairs";
    cell.series = llvm::formatv(
        "{0}, S={1}", isWindow ? "windows" : "documents", problem.sequence);
    cell.x = problem.pairs() * static_cast<double>(problem.heads);
    cell.shown = Shown::Time;
  }
  cells.push_back(std::move(cell));
}

void Cells::addSparse() {
  std::vector<int64_t> windows{256, 1024, 4096, 16384}, documents{4, 16, 64};
  Problem problem{"f32", false, Mask::Window, 32768, 2};
  Problem packed{"f32", false, Mask::Documents, 16384, 8};
  if (quick) {
    windows = {64};
    documents = {8};
    problem.sequence = packed.sequence = 512;
  }
  for (bool isBackward : {false, true}) {
    problem.isBackward = packed.isBackward = isBackward;
    for (int64_t width : windows) {
      problem.parts = width;
      if (!isBackward || quick || width == 1024)
        addSparse(problem, !isBackward);
    }
    for (int64_t count : documents) {
      packed.parts = count;
      if (!isBackward || quick || count == 64)
        addSparse(packed, !isBackward);
    }
  }
}

std::vector<Description> burst::bench::describeCells(bool quick) {
  Cells cells(quick);
  cells.addAttention();
  cells.addProducts();
  cells.addDecode();
  cells.addRanks();
  cells.addSparse();
  return std::move(cells.cells);
}

std::vector<MemoryDescription> burst::bench::describeMemory(bool quick) {
  std::vector<MemoryDescription> cells;
  for (const char *type : {"f32", "bf16"})
    for (auto [isBackward, strategy] :
         {std::pair(false, "ring_kv"), {true, "ring_kv"}, {true, "ring_q"}})
      for (int64_t ranks : {1, 4}) {
        Problem problem{
            type, isBackward,       Mask::Causal, quick ? 6144 : 8192,
            2,    quick ? 32 : 128, ranks};
        problem.strategy = strategy;
        cells.push_back({llvm::formatv("memory {0} {1} P={2}", problem.name(),
                                       strategy, ranks),
                         problem});
      }
  return cells;
}

std::map<std::string, Plot> burst::bench::describePlots() {
  std::map<std::string, Plot> plots;
  for (const char *direction : {"forward", "backward"})
    for (const char *type : {"f32", "bf16"})
      plots[llvm::formatv("{0}-{1}", direction, type)] = {
          llvm::formatv("{0} pass, {1}, D = 128", direction, type),
          {"positions", Scale::Doubling},
          {"% of the peak"}};
  plots["ranks"] = {"several ranks in one process, causal, f32, D = 128",
                    {"ranks", Scale::Doubling},
                    {"time over that of one rank"},
                    {},
                    1.05,
                    "bar"};
  plots["pairs"] = {"forward pass of sparse masks, f32, D = 128",
                    {"pairs that the mask keeps, in all heads", Scale::Decades},
                    {"ms", Scale::Decades}};
  return plots;
}
