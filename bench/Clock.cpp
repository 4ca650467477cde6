//===- Clock.cpp - the clock beside real runs -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Clock.h"

#include "bench/Peak.h"
#include "bench/Problem.h"
#include "bench/Processes.h"
#include "passes/Clock/Report.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace burst;
using namespace burst::bench;

namespace {

/// How ranks are connected.
struct Links {
  const char *name;
  /// Of threads: what transfers take beside copies; nothing where it is 0.
  double latency = 0, bandwidth = 0;
  bool areProcesses = false; ///< over TCP on this machine
};

/// A program as it was measured and as the clock has it.
struct Timing {
  std::string group; ///< of those that differ in the strategy alone
  bool areProcesses = false;
  double measured = 0, predicted = 0;

  double error() const { return predicted / measured - 1; }
};

class ClockCells {
public:
  ClockCells(Table &table, const Device &device, const cpu::Target &target,
             const ClockOptions &options)
      : table(table), device(device), target(target), options(options) {}

  void run();

private:
  double secondsOf(Bound &program);
  /// Of a process.
  int64_t threadsOf(const Problem &problem) const {
    return std::max<int64_t>(1, options.threads / problem.ranks);
  }
  void measureMachine();
  void describe(const Problem &problem, double seconds, const Links &links);
  void describeProcesses(const Problem &problem, Processes &processes);
  Bound &reference(bool isBackward);
  void measure(Problem problem, const Links &links);
  void summarize(llvm::StringRef what, llvm::ArrayRef<Timing> some);

  Table &table;
  const Device &device;
  const cpu::Target &target;
  const ClockOptions &options;
  Machine machine;
  /// Attention of one rank that keeps all, forward and backward.
  std::optional<Bound> references[2];
  /// When the machine was measured: how long these took, and a kernel of next
  /// to nothing, how fast the memory was, and products with stored scores.
  double referenceSeconds[2];
  double launch = 0, memoryBandwidth = 0, storedRate = 0;
  std::vector<Timing> timings;
};

} // namespace

/// Of which a run takes a tenth of a second, so that what any run takes does
/// not show.
static Problem problemOf(bool isQuick, bool isBackward, Mask mask) {
  Problem problem{"f32", isBackward, mask, isQuick ? 256 : 2048, 8, 64};
  if (mask == Mask::Window)
    problem.parts = problem.sequence / 8;
  if (mask == Mask::Documents)
    problem.parts = 8;
  if (mask == Mask::Prefix)
    problem.parts = problem.sequence / 4;
  return problem;
}

Bound &ClockCells::reference(bool isBackward) {
  std::optional<Bound> &bound = references[isBackward];
  if (!bound) {
    Problem problem = problemOf(options.quick, isBackward, Mask::Full);
    bound.emplace(problem.text(), "attention", target);
    bound->bind(problem.sequence, device.handle);
  }
  return *bound;
}

/// In the median.
double ClockCells::secondsOf(Bound &program) {
  program.run(); // touches memory for the first time
  std::vector<double> seconds;
  seconds.reserve(options.repeat);
  for (int64_t i = 0; i < options.repeat; ++i)
    seconds.push_back(program.run());
  return median(seconds);
}

/// Ranks share the threads of one device, of which each rank takes all while it
/// computes alone. They pack operands before products, and copy what comes; of
/// a tile that a mask cuts they skip strips of rows by panels of keys.
void ClockCells::measureMachine() {
  machine.axes.resize(2);
  machine.areAxesStated.resize(2);
  machine.kernels.devices = 1;
  machine.kernels.staged = 2;
  machine.kernels.tile = static_cast<double>(target.maskedSide(sizeof(float)));
  for (bool isBackward : {false, true}) {
    Problem problem = problemOf(options.quick, isBackward, Mask::Full);
    double seconds = secondsOf(reference(isBackward));
    referenceSeconds[isBackward] = seconds;
    table.fact(
        isBackward ? "clock: backward" : "clock: forward",
        llvm::formatv("{0:f1} GFLOP/s", 1e-9 * problem.flops() / seconds));
  }
  constexpr double wanted = 256e6;
  memoryBandwidth = readingOf(options.quick ? 1e6 : wanted, options.threads);
  table.fact("clock: memory",
             llvm::formatv("{0:f1} GB/s", 1e-9 * memoryBandwidth));
  Problem smallest = problemOf(/*isQuick=*/true, false, Mask::Full);
  smallest.sequence = 16;
  Bound program(smallest.text(), "attention", target);
  program.bind(smallest.sequence, device.handle);
  launch = secondsOf(program);
  table.fact("clock: launch", llvm::formatv("{0:f1} us", 1e6 * launch));
  // Beside two products a softmax reads and writes all scores.
  Problem stored = problemOf(options.quick, false, Mask::Full);
  stored.strategy = "ring_scores";
  Bound stores(stored.text(), "attention", target);
  stores.bind(stored.sequence, device.handle);
  auto positions = static_cast<double>(stored.sequence);
  double scores =
      positions * positions * static_cast<double>(stored.heads) * sizeof(float);
  // No more than half, however slow the memory was meanwhile.
  double seconds = secondsOf(stores);
  double softmax = std::min(2 * scores / memoryBandwidth, seconds / 2);
  storedRate = stored.flops() / (seconds - softmax);
  table.fact("clock: stored scores",
             llvm::formatv("{0:f1} GFLOP/s", 1e-9 * storedRate));
}

/// Says how fast the machine is while the reference takes so long: others may
/// have a part of it, of the memory as well. Ranks that are threads have one
/// device together.
void ClockCells::describe(const Problem &problem, double seconds,
                          const Links &links) {
  Kernels &kernels = machine.kernels;
  Problem full = problemOf(options.quick, problem.isBackward, Mask::Full);
  kernels.rates[problem.isBackward ? "flops_backward" : "flops"] =
      full.flops() / seconds;
  double slower = seconds / referenceSeconds[problem.isBackward];
  kernels.rates["flops_stored"] = storedRate / slower;
  kernels.launch = launch * slower;
  kernels.memoryBandwidth = memoryBandwidth / slower;
  kernels.copyBandwidth = kernels.memoryBandwidth / 2;
  kernels.devices = 1;
  kernels.busy = 0;
  constexpr double unlimited = 1e18; // but by copies
  machine.whole = {};
  machine.whole.bandwidth = links.bandwidth == 0 ? unlimited : links.bandwidth;
  machine.whole.latency = links.latency;
}

/// Each has a part of the threads, and TCP copies. What that takes of the
/// processors, computation does not get.
void ClockCells::describeProcesses(const Problem &problem,
                                   Processes &processes) {
  Kernels &kernels = machine.kernels;
  int64_t atOnce = options.threads / threadsOf(problem);
  auto parts = static_cast<double>(atOnce);
  for (auto &[name, rate] : kernels.rates)
    rate /= parts;
  kernels.memoryBandwidth /= parts;
  kernels.copyBandwidth = std::numeric_limits<double>::infinity();
  kernels.devices = parts;
  Processes::Link link = processes.measureLink();
  machine.whole.bandwidth = link.bandwidth;
  machine.whole.latency = link.latency;
  constexpr double most = 0.95; // a machine that computes nothing has no speed
  kernels.busy = std::min(most, link.busy);
}

void ClockCells::measure(Problem problem, const Links &links) {
  std::string name =
      llvm::formatv("clock {0} {1} P={2} {3}", problem.name(), problem.strategy,
                    problem.grid(), links.name);
  if (!llvm::StringRef(name).contains(options.only))
    return;
  std::string refusal;
  Lowered lowered(problem.text(), "attention", /*without=*/{}, &refusal);
  if (!refusal.empty())
    return;
  auto globals = describeGlobals(lowered.program, {});
  if (failed(globals))
    fail("cannot describe " + name);
  for (Argument &argument : *globals) // ids, which decide what is needed
    if (argument.table && argument.table->element.isInteger(32))
      for (int32_t id : problem.ids())
        argument.table->ints.push_back(id);
  Bound program(lowered, target);
  program.bind(problem.sequence, device.handle, problem.ids());
  program.delay(links.latency, links.bandwidth);
  std::optional<Processes> processes;
  if (links.areProcesses)
    processes.emplace(program, threadsOf(problem));
  auto run = [&] { return processes ? processes->run() : program.run(); };
  run(); // touches memory for the first time
  std::vector<double> seconds, references;
  for (int64_t i = 0; i < options.repeat; ++i) {
    references.push_back(reference(problem.isBackward).run());
    seconds.push_back(run());
  }
  describe(problem, median(references), links);
  if (processes)
    describeProcesses(problem, *processes);
  auto timed = timeProgram(lowered.program, *globals, machine, /*shown=*/0);
  if (failed(timed))
    fail("cannot time " + name);
  Timing timing{
      llvm::formatv("{0} {1} {2}", problem.name(), problem.ranks, links.name),
      links.areProcesses, median(seconds), timed->clocked.seconds()};
  Cell cell;
  cell.name = name;
  cell.numbers = {{"ms", 1e3 * timing.measured},
                  {"predicted ms", 1e3 * timing.predicted},
                  {"error %", 100 * timing.error()}};
  cell.limit = llvm::formatv("{0:f1} ms predicted", 1e3 * timing.predicted);
  cell.burst = llvm::formatv("{0:f1} ms", 1e3 * timing.measured);
  cell.share = llvm::formatv("{0:f1} % off", 100 * timing.error());
  table.add(std::move(cell));
  timings.push_back(std::move(timing));
}

/// How far off it is, and how often it has two strategies in the right order.
void ClockCells::summarize(llvm::StringRef what, llvm::ArrayRef<Timing> some) {
  if (some.empty())
    return;
  constexpr double differ = 1.05;
  std::vector<double> errors;
  int64_t pairs = 0, right = 0;
  for (const Timing &a : some) {
    errors.push_back(std::abs(a.error()));
    for (const Timing &b : some)
      if (a.group == b.group && a.measured > differ * b.measured) {
        ++pairs;
        right += a.predicted > b.predicted;
      }
  }
  Cell cell;
  cell.name = ("clock, " + what).str();
  cell.numbers = {{"median error %", 100 * median(errors)},
                  {"pairs", static_cast<double>(pairs)},
                  {"pairs in order", static_cast<double>(right)}};
  cell.share =
      llvm::formatv("{0:f1} % off in the median", 100 * median(errors));
  cell.note = llvm::formatv("{0} of {1} pairs of strategies that differ by "
                            "more than 5 % are in the right order",
                            right, pairs);
  table.add(std::move(cell));
}

void ClockCells::run() {
  measureMachine();
  struct Pinned {
    const char *name;
    int64_t nodes = 1;
  };
  constexpr Pinned strategies[] = {{"ring_kv"},
                                   {"ring_q"},
                                   {"direct_kv"},
                                   {"direct_q"},
                                   {"all_gather"},
                                   {"gather_q"},
                                   {"bi_ring_kv"},
                                   {"bi_ring_q"},
                                   {"ulysses"},
                                   {"ring_scores"},
                                   {"double_ring_kv", 2},
                                   {"double_ring_q", 2},
                                   {"ulysses on [1], ring_kv on [0]", 2},
                                   {"ulysses on [1], all_gather on [0]", 2}};
  // Slow ones have the bytes of a ring take about as long as it computes.
  constexpr Links links[] = {
      {"fast"}, {"slow", 1e-3, 1e8}, {"processes", 0, 0, true}};
  for (bool isBackward : {false, true})
    for (Mask mask : {Mask::Full, Mask::Causal, Mask::Window, Mask::Documents,
                      Mask::Prefix}) {
      Problem problem = problemOf(options.quick, isBackward, mask);
      for (int64_t ranks : {2, 4, 8})
        for (const Pinned &strategy : strategies)
          for (const Links &link : links) {
            if (strategy.nodes >= ranks)
              continue;
            problem.ranks = ranks;
            problem.nodes = strategy.nodes;
            problem.strategy = strategy.name;
            measure(problem, link);
          }
    }
  summarize("all cells", timings);
  for (bool areProcesses : {false, true}) {
    std::vector<Timing> some;
    llvm::copy_if(timings, std::back_inserter(some), [&](const Timing &timing) {
      return timing.areProcesses == areProcesses;
    });
    summarize(areProcesses ? "processes" : "threads", some);
  }
}

void burst::bench::measureClock(Table &table, const Device &device,
                                const cpu::Target &target,
                                const ClockOptions &options) {
  ClockCells(table, device, target, options).run();
}
