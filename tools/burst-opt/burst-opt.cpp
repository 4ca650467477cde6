//===- burst-opt.cpp - runs burst passes over MLIR files ------------------===//
#include "tools/burst-opt/Interpret.h"
#include "tools/burst-opt/Registry.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace mlir;

/// Passes that print a report. Where one is asked for and no output file is
/// named, the module itself is not printed.
static bool wantsReport(int argc, char **argv) {
  constexpr llvm::StringLiteral reports[] = {"burst-explain", "ring-plan",
                                             "ring-interpret"};
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

int main(int argc, char **argv) {
  DialectRegistry registry;
  burst::registerAll(registry);
  burst::registerInterpretPass();
  bool isReport = wantsReport(argc, argv);
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "burst optimizer driver\n", registry);
  return asMainReturnCode(MlirOptMain(
      argc, argv, input, isReport ? "/dev/null" : output, registry));
}
