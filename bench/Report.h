//===- Report.h - cells of the report, one loop -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_REPORT_H
#define BURST_BENCH_REPORT_H

#include "bench/Bound.h"
#include "bench/Peer.h"
#include "bench/Plot.h"
#include "bench/Problem.h"
#include "bench/Table.h"

#include <map>
#include <optional>

namespace burst::bench {

/// What a plot shows of a cell.
enum class Shown : uint8_t {
  Share,    ///< percent of the limit, of burst and of the peer
  Slowdown, ///< time over that of the limit
  Time      ///< milliseconds, and those that the limit's rate would take
};

/// A cell: what burst and its peer run in turns, and what limits them.
struct Description {
  std::string name; ///< begins with its group
  /// What burst runs; nothing where only the peer is measured.
  std::optional<Problem> problem;
  /// What the peer is asked; empty: nothing.
  llvm::json::Object question;
  /// The limit is the rate of burst on this; the peak of multiply-adds where
  /// there is none.
  std::optional<Problem> reference;
  /// Or it is reading so many bytes of memory; 0: it is not.
  double bytes = 0;
  std::string limit = "peak"; ///< its name

  std::string type;
  double flops = 0;
  double bar = 0;           ///< percent of the limit that are wanted; 0: none
  std::string barName = {}; ///< else "bar 80 %"

  std::string plot = {}, series = {}; ///< where it is drawn
  double x = 0;
  Shown shown = Shown::Share;
};

/// All cells; `quick`: of every kind, small.
std::vector<Description> describeCells(bool quick);
/// A cell of what is held at most: by a run, by its plan, and by the closed
/// form.
struct MemoryDescription {
  std::string name;
  Problem problem;
};
std::vector<MemoryDescription> describeMemory(bool quick);
/// The plots that the cells name.
std::map<std::string, Plot> describePlots();

/// Bytes that a rank holds at most, by a formula that knows nothing of the
/// program; docs/how-to.md says it.
double closedForm(const Problem &problem, const cpu::Target &target);

struct Report {
  Table &table;
  const Device &device;
  Peer &peer;
  cpu::Target target;
  int64_t threads, repeat;
  /// Of a cell, unless one round alone takes longer; of one with a bar.
  double budget, barBudget;
  double peakSeconds; ///< of the peak in each round
  std::map<std::string, Plot> plots = describePlots();
  std::vector<double> overPeer = {}; ///< of each cell

  void measure(const Description &cell);
  void measure(const MemoryDescription &cell);
  /// How burst compares with the peer over all cells.
  void summarize();
};

} // namespace burst::bench

#endif // BURST_BENCH_REPORT_H
