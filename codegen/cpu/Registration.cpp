//===- Registration.cpp - passes of the CPU target ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Compile.h"
#include "codegen/cpu/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/ErrorHandling.h"

namespace burst::cpu {
#define GEN_PASS_REGISTRATION
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst::cpu;

namespace {
/// Options of a pipeline that name the processor that it is for.
class TargetOptions {
public:
  explicit TargetOptions(mlir::detail::PassOptions &options)
      : triple(options, "target-triple",
               llvm::cl::desc("Architecture and system, such as "
                              "aarch64-linux-gnu; left out: this machine's")),
        processor(options, "target-cpu",
                  llvm::cl::desc("Processor, by LLVM's name; left out: that of "
                                 "this machine, or of another architecture a "
                                 "generic one")),
        features(options, "features",
                 llvm::cl::desc("Features on top of the processor's: +a,-b")) {}

  Target named() const {
    std::string error;
    FailureOr<Target> found = Target::named(triple, processor, features, error);
    // A pipeline has no other way to refuse its options.
    if (failed(found))
      llvm::reportFatalUsageError(llvm::Twine(error));
    return *found;
  }

private:
  using Text = mlir::detail::PassOptions::Option<std::string>;
  Text triple, processor, features;
};

struct CodeOptions : PassPipelineOptions<CodeOptions> {
  TargetOptions target{*this};
};

struct TileOptions : PassPipelineOptions<TileOptions> {
  TargetOptions target{*this};
  Option<bool> localTiling{
      *this, "local-tiling",
      llvm::cl::desc("Keep no more than tiles of scores; else those of whole "
                     "slices, as without local attention optimisation"),
      llvm::cl::init(true)};
};
} // namespace

void burst::cpu::registerPasses() {
  registerBurstCpuPasses();
  PassPipelineRegistration<TileOptions>(
      "burst-to-tile",
      "From ring programs to kernels over tiles of a processor",
      [](OpPassManager &pm, const TileOptions &options) {
        Target target = options.target.named();
        target.localTiling = options.localTiling;
        buildBufferPipeline(pm, target);
      });
  PassPipelineRegistration<CodeOptions>(
      "burst-to-llvm", "From kernels over tiles to LLVM's dialect",
      [](OpPassManager &pm, const CodeOptions &options) {
        buildLLVMPipeline(pm, options.target.named());
      });
}

void burst::cpu::registerInterfaces(DialectRegistry &registry) {
  func::registerInlinerExtension(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}
