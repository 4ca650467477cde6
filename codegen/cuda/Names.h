//===- Names.h - names of values in text ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_NAMES_H
#define BURST_CODEGEN_CUDA_NAMES_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace burst::cuda {

/// Gives each value a name of its own: what its location calls it, as
/// upstream's printer does with --mlir-use-nameloc-as-prefix, else a hint; and
/// a number where that is taken.
class Names {
public:
  void reserve(llvm::StringRef name) { taken.insert(name); }

  llvm::StringRef define(mlir::Value value, llvm::StringRef hint) {
    if (auto loc = mlir::dyn_cast<mlir::NameLoc>(value.getLoc()))
      hint = loc.getName().getValue();
    return names[value] = fresh(hint);
  }
  /// A value that is written as an expression, or that has a name already.
  void alias(mlir::Value value, std::string expression) {
    names[value] = taken.insert(expression).first->getKey();
  }
  /// A name that nothing has.
  llvm::StringRef fresh(llvm::StringRef hint) {
    std::string name = hint.str();
    for (unsigned &n = numbers[hint]; !taken.insert(name).second;)
      name = (hint + llvm::Twine(++n)).str();
    return taken.find(name)->getKey();
  }
  llvm::StringRef of(mlir::Value value) const {
    auto found = names.find(value);
    assert(found != names.end() && "used before it is printed");
    return found->second;
  }

private:
  llvm::DenseMap<mlir::Value, llvm::StringRef> names;
  llvm::StringSet<> taken;
  llvm::StringMap<unsigned> numbers;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_NAMES_H
