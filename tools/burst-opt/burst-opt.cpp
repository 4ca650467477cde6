//===- burst-opt.cpp - runs burst passes over MLIR files ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Files.h"
#include "support/Tool.h"
#include "tools/Tools.h"
#include "tools/burst-opt/Interpret.h"
#include "tools/burst-opt/Registry.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace mlir;

/// Passes that print a report. Where one is asked for and no output file is
/// named, the module itself is not printed.
static bool wantsReport(int argc, char **argv) {
  constexpr llvm::StringLiteral reports[] = {"burst-explain", "burst-simulate",
                                             "ring-plan", "ring-interpret"};
  bool found = false;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef argument(argv[i]);
    if (!argument.consume_front("-"))
      continue;
    argument.consume_front("-");
    if (argument.starts_with("o") && (argument == "o" || argument[1] == '='))
      return false;
    found |= llvm::any_of(reports, [&](llvm::StringRef report) {
      return argument == report || argument.starts_with((report + "=").str());
    });
  }
  return found;
}

static LogicalResult fail(const Twine &message) {
  llvm::errs() << "burst-opt: " << message << "\n";
  return failure();
}

/// As upstream does it, which however reads devices without end, and ends the
/// process with neither a path nor a whole file where the disk is full.
static LogicalResult optimize(StringRef input, StringRef output, bool isReport,
                              DialectRegistry &registry,
                              const MlirOptMainConfig &config) {
  auto buffer = burst::readInput(input);
  if (!buffer)
    return fail(toString(buffer.takeError()));
  if (output == "-")
    return MlirOptMain(isReport ? llvm::nulls() : llvm::outs(),
                       std::move(*buffer), registry, config);
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (failed(MlirOptMain(stream, std::move(*buffer), registry, config)))
    return failure();
  llvm::Error unwritten = burst::writeFile(text, output);
  return unwritten ? fail(toString(std::move(unwritten))) : success();
}

int burst::optMain(int argc, char **argv) {
  burst::prepareTool("burst-opt");
  DialectRegistry registry;
  burst::registerAll(registry);
  burst::registerInterpretPass();
  bool isReport = wantsReport(argc, argv);
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "burst optimizer driver\n", registry);
  auto config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(optimize(input, output, isReport, registry, config));
}
