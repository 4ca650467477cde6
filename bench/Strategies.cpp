//===- Strategies.cpp - every strategy beside one rank --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank takes as long as any strategy, for it computes the same. So two
// strategies share its runs: it runs between both, next to each in time.
//
//===----------------------------------------------------------------------===//
#include "bench/Strategies.h"
#include "bench/Problem.h"

#include "llvm/Support/FormatVariadic.h"

using namespace burst;
using namespace burst::bench;

namespace {

/// A problem on one rank, and the grid on which strategies compute it.
struct Group {
  std::string prefix; ///< of names
  Problem one;
  int64_t ranks;
  double bar;     ///< times the time of one rank, at most; 0: none
  int64_t rounds; ///< that count
  bool warm;      ///< whether one round goes before them
};

struct PinnedStrategy {
  std::string name;
  int64_t nodes = 1;
};

/// A strategy on a problem, and what was measured of it.
struct Trial {
  Trial(const Group &group, const PinnedStrategy &strategy);

  void prepare(const Device &device, const cpu::Target &target);

  Problem problem;
  std::string name;
  std::string refusal;               ///< why it does not compute the problem
  std::unique_ptr<Bound> program;    ///< null where it is refused
  std::vector<double> seconds, ones; ///< in each round, and those of one rank
};

} // namespace

Trial::Trial(const Group &group, const PinnedStrategy &strategy)
    : problem(group.one) {
  problem.ranks = group.ranks;
  problem.nodes = strategy.nodes;
  problem.strategy = strategy.name;
  name = llvm::formatv("{0} {1} {2} P={3}", group.prefix, problem.name(),
                       strategy.name, problem.grid());
}

void Trial::prepare(const Device &device, const cpu::Target &target) {
  Lowered lowered(problem.text(), "attention", /*without=*/{}, &refusal);
  if (!refusal.empty())
    return;
  program = std::make_unique<Bound>(lowered, target);
  program->bind(problem.sequence, device.handle);
}

/// "96.0 KiB", "84.0 MiB".
static std::string bytesText(double bytes) {
  constexpr double mebi = 1 << 20;
  return bytes < mebi ? llvm::formatv("{0:f1} KiB", bytes / 1024).str()
                      : llvm::formatv("{0:f1} MiB", bytes / mebi).str();
}

static void add(Table &table, const Group &group, const Trial &trial) {
  Cell cell;
  cell.name = trial.name;
  if (!trial.program) {
    cell.burst = "-";
    cell.note = "refused: " + trial.refusal;
    table.add(std::move(cell));
    return;
  }
  // Sent by all ranks, and held by the one that holds most.
  double sent = 0, peak = 0;
  for (const burst_counters &rank : trial.program->counters) {
    sent += static_cast<double>(rank.bytes_sent);
    peak = std::max(peak, static_cast<double>(rank.peak_total));
  }
  sent /= static_cast<double>(trial.problem.ranks);
  std::vector<double> shares;
  for (auto [seconds, one] : llvm::zip_equal(trial.seconds, trial.ones))
    shares.push_back(100 * one / seconds);
  double giga = 1e-9 * trial.problem.flops(), share = median(shares);
  double seconds = median(trial.seconds), one = median(trial.ones);
  cell.numbers = {{"limit GFLOP/s", giga / one},
                  {"burst GFLOP/s", giga / seconds},
                  {"% of limit", share},
                  {"ms", 1e3 * seconds},
                  {"bytes sent per rank", sent},
                  {"peak bytes of a rank", peak},
                  {"GFLOP", giga},
                  {"rounds", static_cast<double>(shares.size())}};
  cell.limit = llvm::formatv("{0:f1} GFLOP/s, P=1", giga / one);
  cell.burst = llvm::formatv("{0:f1} GFLOP/s, sent {1}, peak {2}",
                             giga / seconds, bytesText(sent), bytesText(peak));
  cell.share = llvm::formatv("{0:f1} %", share);
  if (group.bar != 0)
    cell.note =
        verdict(llvm::formatv("at most {0:f2} of the time of P=1", group.bar),
                share >= 100 / group.bar);
  table.add(std::move(cell));
}

/// At most two strategies, and one rank between them. Which of both comes first
/// alternates, since clocks fall while a machine is busy.
static void measure(const Group &group, Bound &one,
                    llvm::MutableArrayRef<Trial> trials) {
  for (int64_t i = group.warm ? -1 : 0; i < group.rounds; ++i) {
    auto run = [&](size_t position) {
      size_t number = i % 2 == 0 ? position : 1 - position;
      if (number < trials.size() && trials[number].program)
        trials[number].seconds.push_back(trials[number].program->run());
    };
    run(0);
    double seconds = one.run();
    run(1);
    for (Trial &trial : trials) {
      trial.ones.push_back(seconds);
      if (i < 0) {
        trial.seconds.clear();
        trial.ones.clear();
      }
    }
  }
}

static void measure(Table &table, const Group &group,
                    llvm::ArrayRef<PinnedStrategy> strategies,
                    const Device &device, const cpu::Target &target,
                    const std::string &only) {
  std::vector<Trial> trials;
  for (const PinnedStrategy &strategy : strategies)
    if (Trial trial(group, strategy);
        llvm::StringRef(trial.name).contains(only))
      trials.push_back(std::move(trial));
  if (trials.empty())
    return;
  Bound one(group.one.text(), "attention", target);
  one.bind(group.one.sequence, device.handle);
  for (llvm::MutableArrayRef<Trial> left = trials; !left.empty();) {
    llvm::MutableArrayRef<Trial> both = left.take_front(2);
    left = left.drop_front(both.size());
    for (Trial &trial : both)
      trial.prepare(device, target);
    if (llvm::any_of(both, [](const Trial &trial) { return !!trial.program; }))
      measure(group, one, both);
    for (Trial &trial : both) {
      add(table, group, trial);
      trial.program.reset(); // tensors of all would not fit into memory
    }
  }
}

void burst::bench::measureStrategies(Table &table, const Device &device,
                                     const cpu::Target &target,
                                     const StrategyOptions &options) {
  const PinnedStrategy causal[] = {{"ring_kv"},
                                   {"ring_q"},
                                   {"bi_ring_kv"},
                                   {"bi_ring_q"},
                                   {"direct_kv"},
                                   {"direct_q"},
                                   {"all_gather"},
                                   {"gather_q"},
                                   {"ulysses"},
                                   {"ulysses in 4 chunks"},
                                   {"double_ring_kv", 2},
                                   {"double_ring_q", 2},
                                   {"ulysses on [1], ring_kv on [0]", 2},
                                   {"ulysses on [1], all_gather on [0]", 2}};
  const PinnedStrategy uneven[] = {{"ulysses"}, {"ring_kv"}};
  const PinnedStrategy decode[] = {{"gather_q"},  {"ring_kv"},  {"ring_q"},
                                   {"bi_ring_q"}, {"direct_q"}, {"all_gather"}};

  // Small, `ulysses` has fewer heads than ranks, and is refused.
  Problem problem{"f32", false, Mask::Causal, options.quick ? 256 : 16384,
                  options.quick ? 4 : 32};
  problem.keyHeads = options.quick ? 2 : 8;
  for (bool isBackward : {false, true}) {
    problem.isBackward = isBackward;
    // Runs take so long that what the first one does once does not show.
    measure(table,
            {"strategies", problem, /*ranks=*/8, /*bar=*/1.05, options.repeat,
             /*warm=*/options.quick},
            causal, device, target, options.only);
  }

  // Two ranks have four and three query heads of a key head.
  Problem seven = problem;
  seven.heads = 28;
  seven.keyHeads = 4;
  for (bool isBackward : {false, true}) {
    seven.isBackward = isBackward;
    measure(table,
            {"strategies uneven", seven, /*ranks=*/8, /*bar=*/0, options.repeat,
             /*warm=*/options.quick},
            uneven, device, target, options.only);
  }

  problem.isBackward = false;
  problem.mask = Mask::Full;
  problem.sequence = options.quick ? 256 : 32768;
  problem.queries = 1;
  for (const char *type : {"f32", "bf16"}) {
    problem.type = type;
    measure(table,
            {"strategies decode", problem, /*ranks=*/4, /*bar=*/0,
             10 * options.repeat, /*warm=*/true},
            decode, device, target, options.only);
  }
}
