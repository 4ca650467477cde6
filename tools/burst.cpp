//===- burst.cpp - one binary under several names -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `burst-run ...`, a link to the binary, is `burst run ...`.
//
//===----------------------------------------------------------------------===//
#include "support/Tool.h"
#include "tools/Tools.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace {
struct Tool {
  llvm::StringLiteral name;
  int (*main)(int argc, char **argv);
  llvm::StringLiteral summary;
};

constexpr Tool tools[] = {
    {"opt", burst::optMain, "runs passes over MLIR files"},
    {"run", burst::runMain, "runs a sharded attention, and checks it"},
    {"compile", burst::compileMain, "writes programs that need no compiler"},
    {"translate", burst::translateMain, "prints kernels as CUDA C++"},
    {"lsp-server", burst::lspServerMain, "serves editors"},
};
} // namespace

static const Tool *find(llvm::StringRef name) {
  const auto *tool =
      llvm::find_if(tools, [&](const Tool &tool) { return tool.name == name; });
  return tool == std::end(tools) ? nullptr : tool;
}

static void printUsage(llvm::raw_ostream &os) {
  os << "usage: burst TOOL [ARGUMENT...], which is burst-TOOL "
        "[ARGUMENT...]\n\n";
  for (const Tool &tool : tools)
    os << "  " << llvm::left_justify(tool.name, 12) << tool.summary << "\n";
  os << "\n--help of a tool says more; --version is that of burst.\n";
}

// NOLINTNEXTLINE(readability-identifier-naming): exported to C.
extern "C" int burst_main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::StringRef name =
      argc > 0 ? llvm::sys::path::filename(argv[0]) : llvm::StringRef();
  if (name.consume_front("burst-"))
    if (const Tool *tool = find(name))
      return tool->main(argc, argv);
  llvm::StringRef command = argc > 1 ? argv[1] : "";
  if (const Tool *tool = find(command))
    return tool->main(argc - 1, argv + 1);
  if (command == "--version") {
    burst::printVersion(llvm::outs());
    return 0;
  }
  bool isHelp = command == "--help" || command == "-h";
  if (!isHelp && !command.empty())
    llvm::errs() << "burst: no tool '" << command << "'\n";
  printUsage(isHelp ? llvm::outs() : llvm::errs());
  return isHelp ? 0 : 1;
}
