//===- burst-translate.cpp - burst's IR in other languages ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Emit.h"
#include "dialect/Cuda/Cuda.h"
#include "jit/Frontend.h"
#include "support/Files.h"
#include "support/Tool.h"
#include "tools/Tools.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace burst;

namespace cl = llvm::cl;

namespace {
/// Made when the program runs: another one in the same binary has options of
/// the same names.
struct Options {
  cl::OptionCategory category{"burst-translate options"};
  cl::opt<std::string> input{cl::Positional, cl::init("-"),
                             cl::desc("FILE.mlir ('-' for stdin)"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::init("-"),
                              cl::desc("Where to write ('-': stdout)"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> wantsCuda{"burst-to-cuda", cl::Required, cl::ValueDisallowed,
                          cl::desc("Print kernels of GPUs as CUDA C++"),
                          cl::cat(category)};
  cl::opt<bool> withLibrary{
      "with-device-library",
      cl::desc("Print the device library in front of kernels, so "
               "that the text compiles as it is"),
      cl::cat(category)};
};
} // namespace

static Options &flags() {
  static Options options;
  return options;
}

/// Prints the kernels of GPUs of a module.
static LogicalResult toCuda(ModuleOp module, llvm::raw_ostream &os) {
  if (flags().withLibrary)
    os << cuda::getDeviceLibrary();
  os << "using namespace burst;\n";
  bool found = false;
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(tile::warpsAttr))
      continue;
    FailureOr<cuda::KernelText> text = cuda::emitKernel(kernel);
    if (failed(text))
      return failure();
    os << "\n// " << 32 * text->warps << " threads, " << text->sharedBytes
       << " bytes of shared memory\n"
       << text->text;
    found = true;
  }
  if (!found)
    return module.emitError("has no kernels for GPUs; run ring-lower-to-tile "
                            "with warps");
  return success();
}

static LogicalResult fail(const llvm::Twine &message) {
  llvm::errs() << "burst-translate: " << message << "\n";
  return failure();
}

/// Not by mlirTranslateMain, which ends the process with neither a path nor a
/// whole file where the disk is full.
static LogicalResult translate() {
  DialectRegistry registry;
  jit::registerDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  std::string text, error;
  auto module = jit::parseFile(flags().input, sources, context, error);
  if (!module)
    return error.empty() ? failure() : fail(error);
  llvm::raw_string_ostream stream(text);
  if (failed(toCuda(*module, stream)))
    return failure();
  if (flags().output == "-") {
    llvm::outs() << text;
    return success();
  }
  llvm::Error unwritten = writeFile(text, flags().output);
  return unwritten ? fail(toString(std::move(unwritten))) : success();
}

int burst::translateMain(int argc, char **argv) {
  prepareTool("burst-translate");
  cl::HideUnrelatedOptions(flags().category);
  cl::ParseCommandLineOptions(argc, argv, "Prints burst's IR in a language\n");
  return failed(translate()) ? 1 : 0;
}
