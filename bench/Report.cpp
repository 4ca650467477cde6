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

void Report::measure(const Description &cell) {
  std::unique_ptr<Bound> program, reference;
  if (cell.problem)
    program = prepare(*cell.problem, *this);
  if (cell.reference)
    reference = prepare(*cell.reference, *this);
  std::string peerError;

  // Rates, and what is made of two of one round: clocks change between rounds.
  std::vector<double> limits, bursts, peers, shares, busyShares, peerShares,
      ratios;
  auto round = [&] {
    limits.push_back(reference ? cell.reference->flops() / reference->run()
                               : peakOf(cell.type, threads, peakSeconds));
    double limit = limits.back();
    if (program) {
      double cpuBegin = cpuNow();
      bursts.push_back(cell.flops / program->run());
      double busy = (cpuNow() - cpuBegin) / static_cast<double>(threads);
      shares.push_back(100 * bursts.back() / limit);
      busyShares.push_back(100 * cell.flops / busy / limit);
    }
    if (cell.question.empty() || !peerError.empty())
      return;
    llvm::Expected<double> seconds = peer.ask(cell.question);
    if (!seconds) {
      peerError = llvm::toString(seconds.takeError());
      for (std::vector<double> *values : {&peers, &peerShares, &ratios})
        values->clear();
      return;
    }
    peers.push_back(cell.flops / *seconds);
    peerShares.push_back(100 * peers.back() / limit);
    if (program)
      ratios.push_back(bursts.back() / peers.back());
  };
  // The first round warms up, unless there is no time for another one.
  double left = cell.bar == 0 ? budget : barBudget, last = 0;
  for (int64_t i = 0; i <= repeat && (i == 0 || last <= left); ++i) {
    double begin = now();
    round();
    last = now() - begin;
    left -= last;
  }
  for (std::vector<double> *values :
       {&limits, &bursts, &peers, &shares, &busyShares, &peerShares, &ratios})
    if (values->size() > 1)
      values->erase(values->begin());

  Cell result;
  result.name = cell.name;
  auto number = [&](const char *name, const std::vector<double> &values,
                    double unit = 1) {
    if (!values.empty())
      result.numbers.emplace_back(name, median(values) / unit);
  };
  number("limit GFLOP/s", limits, 1e9);
  number("burst GFLOP/s", bursts, 1e9);
  number("peer GFLOP/s", peers, 1e9);
  number("% of limit", shares);
  if (!reference)
    number("% of limit while it has a processor", busyShares);
  number("peer's % of limit", peerShares);
  number("over peer", ratios);
  result.numbers.emplace_back("GFLOP", 1e-9 * cell.flops);
  result.numbers.emplace_back("rounds", static_cast<double>(limits.size()));

  auto rate = [](const std::vector<double> &rates) {
    return llvm::formatv("{0:f1} GFLOP/s", 1e-9 * median(rates)).str();
  };
  result.limit = rate(limits) + ", " + cell.limit;
  if (!peers.empty())
    result.peer = rate(peers);
  else if (!cell.question.empty())
    result.peer = "missing: " + peerError;
  result.burst = program ? rate(bursts) : "-";
  const std::vector<double> &main = program ? shares : peerShares;
  std::vector<std::string> verdicts;
  if (!main.empty()) {
    double share = median(main);
    result.share = llvm::formatv("{0:f1} %", share);
    std::string bar =
        cell.bar == 0 ? "" : llvm::formatv("{0:f0} %", cell.bar).str();
    if (!cell.barName.empty())
      bar = cell.barName;
    if (cell.bar != 0)
      verdicts.push_back(verdict(bar, share >= cell.bar));
    else if (!bar.empty())
      verdicts.push_back(bar);
    if (auto plot = plots.find(cell.plot); plot != plots.end()) {
      Plot &drawn = plot->second;
      switch (cell.shown) {
      case Shown::Share:
        drawn.add("burst, " + cell.series, cell.x, share);
        if (!peerShares.empty())
          drawn.add("PyTorch, " + cell.series, cell.x, median(peerShares));
        break;
      case Shown::Slowdown:
        if (!drawn.has(cell.series))
          drawn.add(cell.series, 1, 1);
        drawn.add(cell.series, cell.x, 100 / share);
        break;
      case Shown::Time:
        drawn.add(cell.series, cell.x, 1e3 * cell.flops / median(bursts));
        drawn.add("at the rate of causal", cell.x,
                  1e3 * cell.flops / median(limits));
        break;
      }
    }
  }
  if (!ratios.empty()) {
    overPeer.push_back(median(ratios));
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
