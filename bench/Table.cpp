//===- Table.cpp - measured cells -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace burst::bench;

void Table::print(const std::string &text) {
  printed += text;
  llvm::outs() << text;
  llvm::outs().flush();
}

void Table::add(Cell cell) {
  if (!hasHead)
    print("\n| cell | limit | peer | burst | of limit | over peer | bars |\n"
          "|---|---|---|---|---|---|---|\n");
  hasHead = true;
  std::string burst = cell.burst;
  bool isPlain = cell.limit.empty() && cell.peer.empty() && cell.burst.empty();
  if (isPlain)
    for (const auto &[name, value] : cell.numbers)
      burst += llvm::formatv("{0}{1:f2} {2}", burst.empty() ? "" : ", ", value,
                             name);
  print(llvm::formatv("| {0} | {1} | {2} | {3} | {4} | {5} | {6} |\n",
                      cell.name, cell.limit, cell.peer, burst, cell.share,
                      cell.ratio, cell.note));
  cells.push_back(std::move(cell));
}

void Table::fact(const std::string &name, const std::string &value) {
  print("* " + name + ": " + value + "\n");
  facts[name] = value;
}

std::string Table::json() const {
  llvm::json::Array array;
  for (const Cell &cell : cells) {
    llvm::json::Object numbers;
    for (const auto &[name, value] : cell.numbers)
      numbers[name] = value;
    llvm::json::Object object{{"name", cell.name},
                              {"numbers", std::move(numbers)},
                              {"note", cell.note}};
    if (!cell.peer.empty())
      object["peer"] = cell.peer;
    array.push_back(std::move(object));
  }
  llvm::json::Object object{{"cells", std::move(array)}};
  for (const auto &[name, value] : facts)
    object[name] = value;
  return llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
}

double burst::bench::median(std::vector<double> values) {
  llvm::sort(values);
  size_t size = values.size();
  return (values[(size - 1) / 2] + values[size / 2]) / 2;
}

std::string burst::bench::verdict(const std::string &bar, bool isReached) {
  return bar + (isReached ? ": pass" : ": fail");
}
