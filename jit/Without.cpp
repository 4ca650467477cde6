//===- Without.cpp - optimisations that are left out ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Without.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace burst;
using namespace burst::jit;

namespace {
struct Named {
  StringRef name;
  bool Without::*isLeftOut;
};
} // namespace

static constexpr Named known[] = {{"overlap", &Without::overlap},
                                  {"dropping", &Without::dropping},
                                  {"local_tiling", &Without::localTiling}};

std::string Without::str() const {
  std::string text;
  for (const Named &named : known)
    if (this->*named.isLeftOut)
      text += (text.empty() ? "" : ",") + named.name.str();
  return text;
}

void Without::applyTo(RingPipelineOptions &options) const {
  options.overlap = !overlap;
  options.drop = !dropping;
}

void Without::applyTo(Target &target) const {
  target.host.localTiling = !localTiling;
}

LogicalResult Without::check(func::FuncOp entry) const {
  if (!entry->hasAttr(ring::gridAttr) || !(overlap || dropping))
    return success();
  return emitError(entry.getLoc(), "@")
         << entry.getName() << " is the program of a rank already, without '"
         << str() << "' wants attention over global tensors";
}

FailureOr<Without> jit::readWithout(StringRef names, StringRef whyTiled,
                                    std::string &error) {
  Without without;
  if (names.empty())
    return without;
  for (StringRef name : llvm::split(names, ',')) {
    const Named *found = llvm::find_if(
        known, [&](const Named &named) { return named.name == name; });
    bool isTiling =
        found != std::end(known) && found->isLeftOut == &Without::localTiling;
    if (found != std::end(known) && (!isTiling || whyTiled.empty())) {
      without.*found->isLeftOut = true;
      continue;
    }
    error = ("without '" + name + "', " +
             (isTiling ? whyTiled : "which is not known") + "; there are: ")
                .str();
    llvm::ListSeparator comma;
    for (const Named &named : known)
      if (named.isLeftOut != &Without::localTiling || whyTiled.empty())
        error += (StringRef(comma) + named.name).str();
    return failure();
  }
  return without;
}
