//===- Bench.cpp - attention on this machine's processors -----------------===//
//
// Every ratio is of two measurements that alternate in one run: these machines
// are shared and their clocks change.
//
//===----------------------------------------------------------------------===//
#include "bench/Baselines.h"
#include "bench/Bound.h"
#include "bench/Calls.h"
#include "bench/Peak.h"
#include "bench/Table.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace burst;
using namespace burst::bench;
namespace cl = llvm::cl;

static cl::OptionCategory category("burst-bench options");
static int64_t threads = 2;
static cl::opt<int64_t> repeat("repeat", cl::desc("Runs per cell (5)"),
                               cl::init(5), cl::cat(category));
static cl::opt<std::string>
    only("only", cl::desc("Cells whose name contains this"), cl::cat(category));
static cl::opt<int64_t> rows("rows",
                             cl::desc("Queries of a tile (the target's)"),
                             cl::cat(category));
static cl::opt<int64_t> columns("columns",
                                cl::desc("Keys of a tile (the target's)"),
                                cl::cat(category));
static cl::opt<int64_t> sequence("sequence",
                                 cl::desc("Positions of the baselines (1536)"),
                                 cl::init(1536), cl::cat(category));
static cl::opt<std::string> json("json", cl::desc("Where to write all numbers"),
                                 cl::value_desc("file"), cl::cat(category));

static cpu::Target target() {
  cpu::Target target = cpu::Target::host();
  if (rows.getNumOccurrences() != 0)
    target.rows = rows;
  if (columns.getNumOccurrences() != 0)
    target.columns = columns;
  return target;
}

//===----------------------------------------------------------------------===//
// A problem
//===----------------------------------------------------------------------===//

namespace {

/// Attention of one batch, as many key heads as query heads.
struct Problem {
  std::string type = "f32";
  int64_t sequence = 4096, heads = 8, dim = 128, ranks = 1;
  std::string mask; ///< a clause, with what it captures
  double share = 1; ///< of pairs that the mask keeps
  /// What travels in the backward pass; the forward pass where there is none.
  std::string strategy;

  std::string text() const;
  /// Useful operations of all pairs that are kept: two products, or the five of
  /// the backward pass.
  double flops() const {
    auto pairs = static_cast<double>(heads * sequence * sequence) * share;
    return (strategy.empty() ? 4.0 : 10.0) * pairs * static_cast<double>(dim);
  }
};

} // namespace

std::string Problem::text() const {
  std::string length = std::to_string(sequence);
  std::string tensor =
      llvm::formatv("tensor<1x{0}x{1}x{2}x{3}>", length, heads, dim, type);
  std::string rows = llvm::formatv("tensor<1x{0}x{1}x{2}>", heads, length,
                                   type == "f64" ? "f64" : "f32");
  if (!strategy.empty())
    return llvm::formatv(
        "shard.grid @cp(shape = {0})\n"
        "func.func @attention(%q: {1}, %k: {1}, %v: {1}, %o: {1}, %lse: {2}, "
        "%do: {1}) -> ({1}, {1}, {1}) {{\n"
        "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do\n"
        "      {3} sequence <@cp, zigzag> strategy <{4}>\n"
        "      : ({1}, {1}, {1}, {1}, {2}, {1}) -> ({1}, {1}, {1})\n"
        "  return %dq, %dk, %dv : {1}, {1}, {1}\n"
        "}\n",
        ranks, tensor, rows, mask, strategy);
  return llvm::formatv(
      "shard.grid @cp(shape = {0})\n"
      "func.func @attention(%q: {1}, %k: {1}, %v: {1}) -> ({1}, {2}) {{\n"
      "  %o, %lse = burst.attention %q, %k, %v {3} sequence <@cp, zigzag>\n"
      "      : ({1}, {1}, {1}) -> ({1}, {2})\n"
      "  return %o, %lse : {1}, {2}\n"
      "}\n",
      ranks, tensor, rows, mask);
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

static bool wanted(const std::string &name) {
  return llvm::StringRef(name).contains(only);
}

/// Share of the peak, measured in turns with it.
static void measureShare(Table &table, Device &device, const Problem &problem,
                         double bar) {
  std::string name = llvm::formatv(
      "{0} {1} {2} S={3} D={4}",
      problem.strategy.empty() ? "forward" : "backward " + problem.strategy,
      problem.type, problem.mask.empty() ? "full" : problem.mask,
      problem.sequence, problem.dim);
  if (!wanted(name))
    return;
  Bound program(problem.text(), "attention", target());
  program.bind(problem.sequence, device.handle);
  program.run();
  bool isDouble = problem.type == "f64";
  std::vector<double> rates, shares, busyShares, peaks;
  for (int64_t i = 0; i < repeat; ++i) {
    double peak = peakOf(isDouble ? peakF64 : peakF32, threads, 0.2);
    double cpuBegin = cpuNow();
    double rate = problem.flops() / program.run();
    double busy =
        problem.flops() / (cpuNow() - cpuBegin) * static_cast<double>(threads);
    busyShares.push_back(100 * busy / peak);
    rates.push_back(rate * 1e-9);
    peaks.push_back(peak * 1e-9);
    shares.push_back(100 * rate / peak);
  }
  double share = median(shares);
  table.add({name,
             {{"GFLOP/s", median(rates)},
              {"peak", median(peaks)},
              {"% of peak", share},
              {"% while it has a processor", median(busyShares)}},
             llvm::formatv("bar {0}: {1}", bar,
                           share >= bar ? "reached" : "MISSED")});
}

/// Several ranks in this process against one, in turns.
static void measureRanks(Table &table, Device &device, Problem problem) {
  std::string name = llvm::formatv(
      "ranks {0}{1} S={2}",
      problem.strategy.empty() ? "" : "backward " + problem.strategy + " ",
      problem.mask, problem.sequence);
  if (!wanted(name))
    return;
  std::vector<int64_t> counts{1, 4, 8};
  if (!problem.strategy.empty())
    counts.pop_back();
  std::vector<std::unique_ptr<Bound>> programs;
  for (int64_t ranks : counts) {
    problem.ranks = ranks;
    programs.push_back(
        std::make_unique<Bound>(problem.text(), "attention", target()));
    programs.back()->bind(problem.sequence, device.handle);
  }
  std::vector<std::vector<double>> times(counts.size()), ratios(counts.size());
  for (int64_t i = 0; i < repeat; ++i)
    for (size_t c = 0; c < counts.size(); ++c) {
      times[c].push_back(programs[c]->run());
      ratios[c].push_back(times[c].back() / times[0].back());
    }
  for (size_t c = 0; c < counts.size(); ++c) {
    int64_t most = 0;
    for (const burst_counters &rank : programs[c]->counters)
      most = std::max(most, rank.peak_total);
    double ratio = median(ratios[c]);
    table.add({name + " P=" + std::to_string(counts[c]),
               {{"seconds", median(times[c])},
                {"over P=1", ratio},
                {"peak MiB per rank", static_cast<double>(most) / (1 << 20)}},
               c == 0 ? ""
                      : std::string("bar 1.10: ") +
                            (ratio <= 1.10 ? "reached" : "MISSED")});
  }
}

/// Whether transfers hide behind computation: a ring whose links are as slow as
/// makes one transfer take `ratio` of the time of one hop's computation,
/// against the time it would take if only the longer of both counted.
///
/// P ranks compute P hops and, meanwhile, transfer P - 1 times; the last hop
/// has nothing to hide. So the limit, written down before anything was
/// measured, is
///     (P - 1) max(compute, transfer) + compute,
/// with the times of one hop. compute is measured without delay, in turns;
/// transfer is what the delay makes of the bytes.
static void measureOverlap(Table &table, Device &device, Problem problem) {
  for (double ratio : {0.5, 0.9, 1.1, 2.0}) {
    std::string name = llvm::formatv("overlap S={0} P={1} transfer/compute={2}",
                                     problem.sequence, problem.ranks, ratio);
    if (!wanted(name))
      continue;
    Bound program(problem.text(), "attention", target());
    program.bind(problem.sequence, device.handle);
    program.run();
    auto hops = static_cast<double>(problem.ranks);
    int64_t positions = problem.sequence / problem.ranks;
    double bytes =
        2.0 * 4 * static_cast<double>(positions * problem.heads * problem.dim);
    std::vector<double> ratios, computes, transfers, totals;
    for (int64_t i = 0; i < repeat; ++i) {
      program.delay(0, 0);
      double compute = program.run() / hops;
      double transfer = ratio * compute;
      program.delay(0, bytes / transfer);
      double total = program.run();
      // The clock of a shared machine changes: the mean of before and behind.
      program.delay(0, 0);
      compute = (compute + program.run() / hops) / 2;
      double limit = (hops - 1) * std::max(compute, transfer) + compute;
      computes.push_back(hops * compute);
      transfers.push_back((hops - 1) * transfer);
      totals.push_back(total);
      ratios.push_back(total / limit);
    }
    double over = median(ratios);
    table.add(
        {name,
         {{"over the limit", over},
          {"seconds", median(totals)},
          {"seconds of compute", median(computes)},
          {"seconds of transfer", median(transfers)}},
         std::string("bar 1.10: ") + (over <= 1.10 ? "reached" : "MISSED")});
  }
}

/// Compilation, cold.
static void measureCompile(Table &table) {
  if (!wanted("compile"))
    return;
  Problem demo;
  demo.type = "bf16";
  demo.sequence = 2048;
  demo.heads = 32;
  demo.ranks = 8;
  demo.mask = "mask causal";
  std::vector<double> all, front, busy;
  for (int64_t i = 0; i < repeat; ++i) {
    Bound program(demo.text(), "attention", target());
    all.push_back(1e3 * program.seconds.compile);
    front.push_back(1e3 * program.seconds.lower);
    busy.push_back(1e3 * program.seconds.processor);
  }
  double time = median(all);
  table.add(
      {"compile the demo, cold",
       {{"ms", time},
        {"ms of a processor", median(busy)},
        {"ms, to ring and proof", median(front)}},
       llvm::formatv("bar 500: {0}", time <= 500 ? "reached" : "MISSED")});
}

/// The backward pass. Written down before anything was measured: 60 % of the
/// peak, with five products for the forward's two, since it loads, converts and
/// packs more for each of them; and 1.10 of one rank, as the forward pass.
static void measureBackward(Table &table, Device &device) {
  Problem problem;
  problem.strategy = "ring_kv";
  measureShare(table, device, problem, 60);
  problem.mask = "mask causal";
  problem.share = 0.5;
  for (int64_t dim : {128, 64, 256}) {
    problem.dim = dim;
    measureShare(table, device, problem, dim == 128 ? 60 : 0);
  }
  problem.dim = 128;
  problem.sequence = 16384;
  for (const char *strategy : {"ring_kv", "ring_q"}) {
    problem.strategy = strategy;
    measureRanks(table, device, problem);
  }
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // libLLVM.so has an option of this name.
  if (cl::Option *other = cl::getRegisteredOptions().lookup("threads"))
    other->removeArgument();
  cl::opt<int64_t, true> number("threads", cl::desc("Threads (2)"),
                                cl::location(threads), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Measures attention on this machine\n");
  if (threads < 1 || repeat < 1)
    fail("--threads and --repeat take numbers from 1 on");
  if (sequence < 1)
    fail("--sequence takes a number from 1 on, got: " + llvm::Twine(sequence));
  if (sequence.getNumOccurrences() != 0 &&
      !llvm::StringRef(only).starts_with("baselines"))
    fail("--sequence is for the baselines: give --only=baselines");
  Table table;
  table.fact("target", target().str());
  table.fact("threads", std::to_string(threads));
  Device device(threads);
  Problem full, causal;
  causal.mask = "mask causal";
  causal.share = 0.5;
  measureShare(table, device, full, 70);
  measureShare(table, device, causal, 70);
  Problem more = causal;
  more.dim = 64;
  measureShare(table, device, more, 0);
  more.dim = 256;
  measureShare(table, device, more, 0);
  more = full;
  more.type = "f64";
  measureShare(table, device, more, 0);
  more = full;
  more.type = "bf16";
  measureShare(table, device, more, 0);
  Problem ring = causal;
  ring.sequence = 16384;
  measureRanks(table, device, ring);
  ring = full;
  ring.ranks = 4;
  for (int64_t sequence : {4096, 6144}) {
    ring.sequence = sequence;
    measureOverlap(table, device, ring);
  }
  measureCompile(table);
  measureCalls(table, threads, target(), only);
  measureBackward(table, device);
  measureBaselines(table, device, target(),
                   {sequence, /*ranks=*/4, repeat, only});
  if (!json.empty())
    if (std::string error = table.write(json); !error.empty())
      fail(error);
  return 0;
}
