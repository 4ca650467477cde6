//===- Table.h - measured cells ---------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_TABLE_H
#define BURST_BENCH_TABLE_H

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace burst::bench {

/// One line: what was measured, and its numbers by name.
struct Cell {
  std::string name;
  std::vector<std::pair<std::string, double>> numbers; ///< "ms of a processor"
  std::string note; ///< bars and verdicts, for people
  /// Columns of the table, for people. Without them the numbers stand in that
  /// of burst.
  std::string limit = {}, peer = {}, burst = {}, share = {}, ratio = {};
};

/// Prints each cell when it is done, as a line of a table in Markdown, and
/// gives all as Markdown and as JSON.
class Table {
public:
  void add(Cell cell);
  /// Only for the JSON: what was printed in another form.
  void keep(Cell cell) { cells.push_back(std::move(cell)); }
  /// Facts of the run: processor, date, threads.
  void fact(const std::string &name, const std::string &value);

  std::string json() const;
  /// What was printed.
  const std::string &markdown() const { return printed; }
  bool empty() const { return cells.empty(); }

private:
  void print(const std::string &text);

  std::vector<Cell> cells;
  std::map<std::string, std::string> facts;
  std::string printed;
  bool hasHead = false;
};

double median(std::vector<double> values);

/// Whether a bar was reached, for a note.
std::string verdict(const std::string &bar, bool isReached);

} // namespace burst::bench

#endif // BURST_BENCH_TABLE_H
