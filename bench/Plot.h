//===- Plot.h - curves as SVG -----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_PLOT_H
#define BURST_BENCH_PLOT_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace burst::bench {

/// How numbers lie on an axis. Ticks of Doubling are powers of two, those of
/// Decades powers of ten.
enum class Scale : uint8_t { Linear, Doubling, Decades };

struct Axis {
  std::string label;
  Scale scale = Scale::Linear;
};

/// Curves over a common axis. The picture follows whether its reader wants it
/// light or dark.
struct Plot {
  std::string title;
  Axis x, y;
  /// By name, in order.
  std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>>
      series = {};
  /// A level that is to be reached or not to be passed, and its name.
  double bar = 0;
  std::string barName = {};

  bool has(const std::string &name) const;
  void add(const std::string &name, double atX, double atY);
  std::string svg() const;
};

} // namespace burst::bench

#endif // BURST_BENCH_PLOT_H
