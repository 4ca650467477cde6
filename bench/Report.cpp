//===- Report.cpp - cells of the report, one loop -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Report.h"

#include "bench/Peak.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace burst;
using namespace burst::bench;

static std::unique_ptr<Bound> prepare(const Problem &problem,
                                      const Report &report) {
  auto program =
      std::make_unique<Bound>(problem.text(), "attention", report.target);
  program->bind(problem.sequence, report.device.handle, problem.ids());
  return program;
}

namespace {
/// Rates in each round, and what is made of two of one round: clocks change
/// between rounds.
struct Rates {
  std::vector<double> limits, bursts, peers, shares, busyShares, peerShares,
      ratios;
  std::string peerError;

  /// That of burst, or of the peer where only that is measured.
  const std::vector<double> &measuredShares() const {
    return shares.empty() ? peerShares : shares;
  }
};

/// Measures one cell.
class Rounds {
public:
  Rounds(Report &report, const Description &cell) : report(report), cell(cell) {
    if (cell.problem)
      program = prepare(*cell.problem, report);
    if (cell.reference)
      reference = prepare(*cell.reference, report);
  }

  Rates run();

private:
  void round();
  void askPeer();

  Report &report;
  const Description &cell;
  std::unique_ptr<Bound> program, reference;
  Rates rates;
};
} // namespace

void Rounds::round() {
  auto limit = [&] {
    if (reference)
      return cell.reference->flops() / reference->run();
    if (cell.bytes != 0)
      return cell.flops * readingOf(cell.bytes, report.threads) / cell.bytes;
    return peakOf(cell.type, report.threads, report.peakSeconds);
  };
  rates.limits.push_back(limit());
  if (program) {
    double limit = rates.limits.back(), cpuBegin = cpuNow();
    rates.bursts.push_back(cell.flops / program->run());
    double busy = (cpuNow() - cpuBegin) / static_cast<double>(report.threads);
    rates.shares.push_back(100 * rates.bursts.back() / limit);
    rates.busyShares.push_back(100 * cell.flops / busy / limit);
  }
  if (!cell.question.empty() && rates.peerError.empty())
    askPeer();
}

void Rounds::askPeer() {
  llvm::Expected<double> seconds = report.peer.ask(cell.question);
  if (!seconds) {
    rates.peerError = llvm::toString(seconds.takeError());
    for (auto *values : {&rates.peers, &rates.peerShares, &rates.ratios})
      values->clear();
    return;
  }
  rates.peers.push_back(cell.flops / *seconds);
  rates.peerShares.push_back(100 * rates.peers.back() / rates.limits.back());
  if (program)
    rates.ratios.push_back(rates.bursts.back() / rates.peers.back());
}

/// The first round warms up, unless there is no time for another one.
Rates Rounds::run() {
  double left = cell.bar == 0 ? report.budget : report.barBudget, last = 0;
  for (int64_t i = 0; i <= report.repeat && (i == 0 || last <= left); ++i) {
    double begin = now();
    round();
    last = now() - begin;
    left -= last;
  }
  for (std::vector<double> *values :
       {&rates.limits, &rates.bursts, &rates.peers, &rates.shares,
        &rates.busyShares, &rates.peerShares, &rates.ratios})
    if (values->size() > 1)
      values->erase(values->begin());
  return std::move(rates);
}

static Cell describe(const Description &cell, const Rates &rates) {
  Cell result;
  result.name = cell.name;
  auto number = [&](const char *name, const std::vector<double> &values,
                    double unit = 1) {
    if (!values.empty())
      result.numbers.emplace_back(name, median(values) / unit);
  };
  number("limit GFLOP/s", rates.limits, 1e9);
  number("burst GFLOP/s", rates.bursts, 1e9);
  number("peer GFLOP/s", rates.peers, 1e9);
  number("% of limit", rates.shares);
  if (!cell.reference && cell.bytes == 0)
    number("% of limit while it has a processor", rates.busyShares);
  number("peer's % of limit", rates.peerShares);
  number("over peer", rates.ratios);
  result.numbers.emplace_back("GFLOP", 1e-9 * cell.flops);
  result.numbers.emplace_back("rounds",
                              static_cast<double>(rates.limits.size()));

  auto text = [](const std::vector<double> &rates) {
    return llvm::formatv("{0:f1} GFLOP/s", 1e-9 * median(rates)).str();
  };
  result.limit = text(rates.limits) + ", " + cell.limit;
  if (!rates.peers.empty())
    result.peer = text(rates.peers);
  else if (!cell.question.empty())
    result.peer = "missing: " + rates.peerError;
  result.burst = cell.problem ? text(rates.bursts) : "-";
  return result;
}

static void draw(Plot &plot, const Description &cell, const Rates &rates) {
  double share = median(rates.measuredShares());
  switch (cell.shown) {
  case Shown::Share:
    plot.add("burst, " + cell.series, cell.x, share);
    if (!rates.peerShares.empty())
      plot.add("PyTorch, " + cell.series, cell.x, median(rates.peerShares));
    break;
  case Shown::Slowdown:
    if (!plot.has(cell.series))
      plot.add(cell.series, 1, 1);
    plot.add(cell.series, cell.x, 100 / share);
    break;
  case Shown::Time:
    plot.add(cell.series, cell.x, 1e3 * cell.flops / median(rates.bursts));
    plot.add("at the rate of causal", cell.x,
             1e3 * cell.flops / median(rates.limits));
    break;
  }
}

void Report::measure(const Description &cell) {
  Rates rates = Rounds(*this, cell).run();
  Cell result = describe(cell, rates);
  std::vector<std::string> verdicts;
  if (!rates.measuredShares().empty()) {
    double share = median(rates.measuredShares());
    result.share = llvm::formatv("{0:f1} %", share);
    std::string bar =
        cell.bar == 0 ? "" : llvm::formatv("{0:f0} %", cell.bar).str();
    if (!cell.barName.empty())
      bar = cell.barName;
    if (cell.bar != 0)
      verdicts.push_back(verdict(bar, share >= cell.bar));
    else if (!bar.empty())
      verdicts.push_back(bar);
    if (auto plot = plots.find(cell.plot); plot != plots.end())
      draw(plot->second, cell, rates);
  }
  if (!rates.ratios.empty()) {
    overPeer.push_back(median(rates.ratios));
    result.ratio = llvm::formatv("{0:f2}", overPeer.back());
    verdicts.push_back(verdict("faster than the peer", overPeer.back() > 1));
  }
  result.note = llvm::join(verdicts, ", ");
  table.add(std::move(result));
}

void Report::summarize() {
  if (overPeer.empty())
    return;
  auto slower =
      llvm::count_if(overPeer, [](double ratio) { return ratio <= 1; });
  double middle = median(overPeer);
  Cell cell{llvm::formatv("attention over the peer, median of {0} cells",
                          overPeer.size()),
            {{"over peer", middle},
             {"cells that are slower", static_cast<double>(slower)}},
            verdict("1.5", middle >= 1.5) + ", " +
                verdict("faster in every cell", slower == 0)};
  cell.burst = "-";
  cell.ratio = llvm::formatv("{0:f2}", middle);
  table.add(std::move(cell));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

double burst::bench::closedForm(const Problem &problem,
                                const cpu::Target &target) {
  // Positions of a rank in all heads, and their numbers in a tensor.
  double rows = static_cast<double>(problem.sequence * problem.heads) /
                static_cast<double>(problem.ranks);
  double numbers = rows * static_cast<double>(problem.dim);
  double state = problem.type == "f64" ? 8 : 4;
  double given = problem.type == "bf16" ? 2 : state;
  double packed = given == 2 && target.pairs ? 2 : state;
  bool isRing = problem.ranks > 1, isWide = given == state;
  if (!problem.isBackward) {
    double slots = static_cast<double>(std::min<int64_t>(problem.ranks - 1, 2));
    return numbers *
               (given * (4 + 2 * slots) + 2 * packed + (isWide ? 0 : state)) +
           2 * rows * state;
  }
  bool keysTravel = problem.strategy == "ring_kv";
  double travelling = !isRing ? 0 : keysTravel ? 8 : 4;
  double vectors = isRing && !keysTravel ? 6 : 2;
  return numbers * (given * (isRing ? 12 : 8) + 5 * packed +
                    state * (travelling + (isWide ? 0 : 3))) +
         vectors * rows * state;
}

void Report::measure(const MemoryDescription &cell) {
  const Problem &problem = cell.problem;
  Lowered lowered(problem.text(), "attention");
  std::vector<int64_t> planned = lowered.peaks(target);
  Bound program(lowered, target);
  program.bind(problem.sequence, device.handle);
  program.run();
  std::vector<int64_t> counted = program.peaks();
  auto most = [](const std::vector<int64_t> &bytes) {
    return static_cast<double>(*llvm::max_element(bytes));
  };
  double limit = closedForm(problem, target);
  double share = 100 * most(planned) / limit;
  auto mebi = [](double bytes) {
    return llvm::formatv("{0:f1} MiB", bytes / (1 << 20)).str();
  };
  Cell result{cell.name,
              {{"bytes of the closed form", limit},
               {"bytes planned", most(planned)},
               {"bytes held", most(counted)},
               {"% of limit", share}},
              verdict("held as planned", planned == counted) + ", " +
                  verdict("planned within 5 %", std::abs(share - 100) <= 5)};
  result.limit = mebi(limit) + ", closed form";
  result.burst = mebi(most(counted));
  result.share = llvm::formatv("{0:f1} %", share);
  table.add(std::move(result));
}
