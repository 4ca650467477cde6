//===- CompileLog.cpp - what the compiler of CUDA says of kernels ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/CompileLog.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace burst;
using namespace burst::cuda;

/// "16 barriers" in a list: sets the number.
static void readNumber(StringRef list, StringRef unit, unsigned &number) {
  for (StringRef item : split(list, ',')) {
    item = item.trim();
    item.consume_front("used ");
    unsigned value = 0;
    if (!item.consumeInteger(10, value) && item.trim() == unit)
      number = value;
  }
}

/// Whether a line has a note of ptxas about asynchronous products.
static bool isNote(StringRef line) {
  auto [before, after] = line.split("(C75");
  unsigned code = 0;
  return !after.consumeInteger(10, code) && after.starts_with(")") &&
         code >= 10 && code <= 20;
}

CompileLog CompileLog::read(StringRef text) {
  CompileLog log;
  // The function that the lines at hand tell of.
  FunctionUse *current = nullptr;
  auto begin = [&](StringRef name) {
    auto known = find_if(log.functions,
                         [&](const FunctionUse &f) { return f.name == name; });
    if (known == log.functions.end())
      known = log.functions.insert(known, {name.str()});
    current = &*known;
  };
  for (StringRef line : split(text, '\n')) {
    if (isNote(line))
      log.notes.push_back(line.trim().str());
    StringRef rest = line;
    if (!rest.consume_front("ptxas"))
      continue;
    // "ptxas info    : ..." and "ptxas         .     ..."
    rest = rest.drop_front(std::min(rest.find_first_of(":."), rest.size()));
    rest = rest.drop_front(rest.empty() ? 0 : 1).trim();
    if (rest.consume_front("Compiling entry function '")) {
      begin(rest.take_until([](char c) { return c == '\''; }));
      current->isKernel = true;
    } else if (rest.consume_front("Function properties for ")) {
      begin(rest.trim());
    } else if (!current) {
      continue;
    } else if (rest.contains(" bytes stack frame")) {
      readNumber(rest, "bytes stack frame", current->stackBytes);
      readNumber(rest, "bytes spill stores", current->spillStoreBytes);
      readNumber(rest, "bytes spill loads", current->spillLoadBytes);
    } else if (rest.consume_front("Used ")) {
      readNumber(rest, "registers", current->registers);
      readNumber(rest, "barriers", current->barriers);
      readNumber(rest, "bytes smem", current->sharedBytes);
    }
  }
  return log;
}

const FunctionUse *CompileLog::find(StringRef kernel) const {
  auto found = find_if(functions, [&](const FunctionUse &function) {
    return function.isKernel && function.name == kernel;
  });
  return found == functions.end() ? nullptr : &*found;
}

std::string CompileLog::rejectionReason() const {
  if (none_of(functions, [](const FunctionUse &f) { return f.isKernel; }))
    return "the log tells of no kernel";
  std::vector<std::string> reasons;
  for (const FunctionUse &function : functions)
    if (function.stackBytes || function.spillStoreBytes ||
        function.spillLoadBytes)
      reasons.push_back(
          formatv("{0}: {1} bytes of stack, {2} bytes of spills stored, {3} "
                  "bytes loaded",
                  function.name, function.stackBytes, function.spillStoreBytes,
                  function.spillLoadBytes));
  append_range(reasons, notes);
  return join(reasons, "; ");
}
