//===- Table.cpp - measured cells -----------------------------------------===//
#include "bench/Table.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace burst::bench;

void Table::add(Cell cell) {
  std::string text = llvm::formatv("{0,-44}", cell.name);
  for (const auto &[name, value] : cell.numbers)
    text += llvm::formatv(" {0} {1:f2} |", name, value);
  llvm::outs() << text << ' ' << cell.note << '\n';
  llvm::outs().flush();
  cells.push_back(std::move(cell));
}

void Table::fact(std::string name, std::string value) {
  llvm::outs() << name << ": " << value << '\n';
  facts[std::move(name)] = std::move(value);
}

std::string Table::write(const std::string &path) const {
  llvm::json::Array array;
  for (const Cell &cell : cells) {
    llvm::json::Object numbers;
    for (const auto &[name, value] : cell.numbers)
      numbers[name] = value;
    array.push_back(llvm::json::Object{{"name", cell.name},
                                       {"numbers", std::move(numbers)},
                                       {"note", cell.note}});
  }
  llvm::json::Object object{{"cells", std::move(array)}};
  for (const auto &[name, value] : facts)
    object[name] = value;
  std::string text =
      llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
  if (llvm::Error error =
          llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
            stream << text;
            return llvm::Error::success();
          }))
    return llvm::toString(std::move(error));
  return "";
}

double burst::bench::median(std::vector<double> values) {
  llvm::sort(values);
  return values[values.size() / 2];
}
