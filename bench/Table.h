//===- Table.h - measured cells ---------------------------------*- C++ -*-===//
#ifndef BURST_BENCH_TABLE_H
#define BURST_BENCH_TABLE_H

#include <map>
#include <string>
#include <vector>

namespace burst::bench {

/// One line: what was measured, and its numbers by name.
struct Cell {
  std::string name;
  std::vector<std::pair<std::string, double>> numbers;
  std::string note; ///< limit and verdict, for people
};

/// Prints each cell when it is done, and writes all as JSON.
class Table {
public:
  void add(Cell cell);
  /// Only for the JSON: what was printed in another form.
  void keep(Cell cell) { cells.push_back(std::move(cell)); }
  /// Facts of the run: processor, date, threads.
  void fact(std::string name, std::string value);
  /// Under a temporary name, then renamed; an error message or nothing.
  std::string write(const std::string &path) const;

private:
  std::vector<Cell> cells;
  std::map<std::string, std::string> facts;
};

double median(std::vector<double> values);

} // namespace burst::bench

#endif // BURST_BENCH_TABLE_H
