//===- Bench.cpp - attention on this machine's processors -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every ratio is of two measurements that alternate in one run: these machines
// are shared and their clocks change.
//
//===----------------------------------------------------------------------===//
#include "bench/Baselines.h"
#include "bench/Bound.h"
#include "bench/Calls.h"
#include "bench/Clock.h"
#include "bench/Output.h"
#include "bench/Report.h"
#include "bench/Strategies.h"
#include "bench/Table.h"
#include "support/NumberOption.h"
#include "support/Tool.h"

#include "burst/internal/limits.h"

#include "llvm/Support/Chrono.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/StringSaver.h"

#include <fstream>

using namespace mlir;
using namespace burst;
using namespace burst::bench;
namespace cl = llvm::cl;

static cl::OptionCategory category("burst-bench options");
static int64_t threads = 2;
static cl::opt<int64_t>
    repeat("repeat",
           cl::desc("Runs per cell (5; of strategies 3, and ten times as many "
                    "in decode)"),
           cl::init(5), cl::cat(category));
static cl::opt<std::string>
    only("only",
         cl::desc("Cells whose name contains this. The first word of a name is "
                  "its group: attention, product, decode, ranks, sparse, "
                  "memory, compile, call; and, on demand, overlap, baselines, "
                  "strategies and clock"),
         cl::cat(category));
static cl::opt<bool> quick("quick",
                           cl::desc("Cells of every kind, small: a try"),
                           cl::cat(category));
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
static cl::opt<std::string> plots("plots", cl::desc("Where to write pictures"),
                                  cl::value_desc("folder"), cl::cat(category));
static cl::opt<std::string>
    out("out", cl::desc("Writes PREFIX.md, PREFIX.json and PREFIX-*.svg"),
        cl::value_desc("PREFIX"), cl::cat(category));
static cl::opt<std::string> peerCommand(
    "peer",
    cl::desc("Asked for timings as bench/peers/torch_sdpa.py is, which it is "
             "unless given, in the environment of scripts/peers; or none"),
    cl::value_desc("command"), cl::cat(category));
static NumberOption
    peerTimeout("peer-timeout",
                cl::desc("An answer of the peer may take (180)"),
                cl::value_desc("seconds"), cl::init(180), cl::cat(category));

static cpu::Target target() {
  cpu::Target target = cpu::Target::host();
  if (rows.getNumOccurrences() != 0)
    target.rows = rows;
  if (columns.getNumOccurrences() != 0)
    target.columns = columns;
  return target;
}

static bool wanted(const std::string &name) {
  return llvm::StringRef(name).contains(only);
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
    table.add({name,
               {{"of the limit", over},
                {"seconds", median(totals)},
                {"seconds of compute", median(computes)},
                {"seconds of transfer", median(transfers)}},
               verdict("1.10", over <= 1.10)});
  }
}

static void measureOverlaps(Table &table, Device &device) {
  Problem ring;
  ring.ranks = 4;
  for (int64_t sequence : {4096, 6144}) {
    ring.sequence = sequence;
    measureOverlap(table, device, ring);
  }
}

/// Compilation with nothing kept of the one before, against a bar in ms.
static void measureCompile(Table &table, const std::string &name,
                           const std::string &text, const std::string &entry,
                           int64_t bar) {
  if (!wanted(name))
    return;
  std::vector<double> all, front, busy;
  for (int64_t i = 0; i < repeat; ++i) {
    Bound program(text, entry, target());
    all.push_back(1e3 * program.seconds.compile);
    front.push_back(1e3 * program.seconds.lower);
    busy.push_back(1e3 * program.seconds.processor);
  }
  double time = median(all);
  table.add(
      {name,
       {{"ms", time},
        {"ms of a processor", median(busy)},
        {"ms to ring and proof", median(front)}},
       verdict(std::to_string(bar) + " ms", time <= static_cast<double>(bar))});
}

static void measureCompiles(Table &table) {
  Problem problem;
  problem.type = "bf16";
  problem.mask = Mask::Causal;
  problem.sequence = 2048;
  problem.heads = 32;
  problem.ranks = 8;
  measureCompile(table, "compile the demo, cold", problem.text(), "attention",
                 500);
  problem.ranks = 4;
  for (const char *strategy : {"ring_kv", "ring_q"}) {
    problem.strategy = strategy;
    measureCompile(table,
                   llvm::formatv("compile forward and backward causal D=128 "
                                 "{0} P=4, cold",
                                 strategy),
                   problem.step(), "step", 400);
  }
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

/// What the command line says of the peer: its command, or why it is missing.
static Peer makePeer() {
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  llvm::SmallVector<const char *> words;
  cl::TokenizeGNUCommandLine(peerCommand, saver, words);
  std::vector<std::string> command(words.begin(), words.end());
  std::string missing;
  if (peerCommand == "none") {
    missing = "not wanted";
  } else if (command.empty()) {
    const char *given = std::getenv("BURST_PEERS");
    llvm::SmallString<128> python(given ? given : "");
    if (!given) {
      llvm::sys::path::cache_directory(python);
      llvm::sys::path::append(python, "burst", "peers");
    }
    llvm::sys::path::append(python, "bin", "python");
    command = {python.str().str(), BURST_BENCH_PEERS "/torch_sdpa.py"};
    if (!llvm::sys::fs::can_execute(python))
      missing = "scripts/peers installs it";
  }
  return {std::move(command), std::move(missing), threads, peerTimeout};
}

/// "AMD EPYC", as the kernel knows it.
static std::string processorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (llvm::StringRef(line).starts_with("model name"))
      return llvm::StringRef(line).split(':').second.trim().str();
  return "unknown";
}

/// Whether all files can be written, asked before anything is measured.
static void checkFiles() {
  std::vector<std::string> files;
  if (!json.empty())
    files.push_back(json);
  if (!plots.empty() && !llvm::sys::fs::is_directory(plots))
    fail("no folder " + plots);
  if (!out.empty())
    files.insert(files.end(), {out + ".md", out + ".json"});
  for (const auto &[name, plot] : describePlots()) {
    if (!plots.empty())
      files.push_back(plots + "/" + name + ".svg");
    if (!out.empty())
      files.push_back(out + "-" + name + ".svg");
  }
  for (const std::string &file : files)
    if (std::string error = checkOutput(file); !error.empty())
      fail(error);
}

static void writeFiles(const Table &table,
                       const std::map<std::string, Plot> &drawn) {
  auto write = [](const std::string &path, const std::string &text) {
    if (std::string error = writeOutput(path, text); !error.empty())
      fail(error);
  };
  std::string pictures;
  for (const auto &[name, plot] : drawn) {
    if (plot.series.empty())
      continue;
    if (!plots.empty())
      write(plots + "/" + name + ".svg", plot.svg());
    if (out.empty())
      continue;
    std::string path = out + "-" + name + ".svg";
    write(path, plot.svg());
    pictures += llvm::formatv("\n![{0}]({1})\n", plot.title,
                              llvm::sys::path::filename(path));
  }
  if (!json.empty())
    write(json, table.json());
  if (out.empty())
    return;
  write(out + ".json", table.json());
  write(out + ".md", "# Attention on CPUs\n\nWhat cells and columns are, says "
                     "\"Measure how fast it is\" in docs/how-to.md.\n\n" +
                         table.markdown() + pictures);
}

static void measureReport(Report &report, std::vector<Description> cells) {
  llvm::erase_if(cells, [](const auto &cell) { return !wanted(cell.name); });
  if (llvm::any_of(cells,
                   [](const auto &cell) { return !cell.question.empty(); }))
    report.table.fact("peer", report.peer.greet());
  for (const Description &cell : cells)
    report.measure(cell);
  report.summarize();
  for (const MemoryDescription &cell : describeMemory(quick))
    if (wanted(cell.name))
      report.measure(cell);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  prepareTool("burst-bench");
  // libLLVM.so has an option of this name.
  if (cl::Option *other = cl::getRegisteredOptions().lookup("threads"))
    other->removeArgument();
  cl::opt<int64_t, true> number("threads", cl::desc("Threads (2)"),
                                cl::location(threads), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Measures attention on this machine\n");
  if (threads < 1 || repeat < 1)
    fail("--threads and --repeat take numbers from 1 on, got: " +
         llvm::Twine(std::min<int64_t>(threads, repeat)));
  if (threads > BURST_MOST_THREADS)
    fail("--threads takes numbers up to " + llvm::Twine(BURST_MOST_THREADS) +
         ", got: " + llvm::Twine(threads));
  for (const cl::opt<int64_t> *size : {&rows, &columns})
    if (size->getNumOccurrences() != 0 && *size < 1)
      fail("--" + size->ArgStr +
           " takes a number from 1 on, got: " + llvm::Twine(size->getValue()));
  if (sequence < 1)
    fail("--sequence takes a number from 1 on, got: " + llvm::Twine(sequence));
  if (sequence.getNumOccurrences() != 0 &&
      !llvm::StringRef(only).starts_with("baselines"))
    fail("--sequence is for the baselines: give --only=baselines");
  checkFiles();
  Table table;
  table.fact("date", llvm::formatv("{0:%Y-%m-%d}",
                                   llvm::sys::toUtcTime(std::time(nullptr))));
  table.fact("processor", processorName());
  table.fact("target", target().str());
  table.fact("threads", std::to_string(threads));
  Device device(threads);
  Peer peer = makePeer();
  Report report{table,
                device,
                peer,
                target(),
                threads,
                repeat,
                /*budget=*/quick ? 0.1 : 8.0,
                /*barBudget=*/quick ? 0.1 : 15.0,
                /*peakSeconds=*/quick ? 0.005 : 0.1};
  measureReport(report, describeCells(quick));
  measureCompiles(table);
  measureCalls(table, threads, target(), only);
  if (llvm::StringRef(only).starts_with("overlap"))
    measureOverlaps(table, device);
  if (llvm::StringRef(only).starts_with("baselines"))
    measureBaselines(table, device, target(),
                     {sequence, /*ranks=*/4, repeat, only});
  if (llvm::StringRef(only).starts_with("strategies"))
    measureStrategies(
        table, device, target(),
        {repeat.getNumOccurrences() == 0 ? 3 : repeat, quick, only});
  if (llvm::StringRef(only).starts_with("clock"))
    measureClock(
        table, device, target(),
        {repeat.getNumOccurrences() == 0 ? 3 : repeat, threads, quick, only});
  if (table.empty())
    fail("no cell has a name with \"" + only + "\"; --help names groups");
  writeFiles(table, report.plots);
  return 0;
}
