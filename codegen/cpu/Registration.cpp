//===- Registration.cpp - passes of the CPU target ------------------------===//
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
/// The processor that a pipeline is for.
struct TargetOptions : PassPipelineOptions<TargetOptions> {
  Option<std::string> triple{
      *this, "target-triple",
      llvm::cl::desc("Architecture and system, such as aarch64-linux-gnu; left "
                     "out: this machine's")};
  Option<std::string> processor{
      *this, "target-cpu",
      llvm::cl::desc("Processor, by LLVM's name; left out: that of this "
                     "machine, or of another architecture a generic one")};
  Option<std::string> features{
      *this, "features",
      llvm::cl::desc("Features on top of the processor's: +a,-b")};
};
} // namespace

static void addPipeline(StringRef name, StringRef description,
                        void (*build)(OpPassManager &, const Target &)) {
  PassPipelineRegistration<TargetOptions>(
      name, description,
      [build](OpPassManager &pm, const TargetOptions &options) {
        std::string error;
        FailureOr<Target> target = Target::named(
            options.triple, options.processor, options.features, error);
        // A pipeline has no other way to refuse its options.
        if (failed(target))
          llvm::reportFatalUsageError(llvm::Twine(error));
        build(pm, *target);
      });
}

void burst::cpu::registerPasses() {
  registerBurstCpuPasses();
  addPipeline("burst-to-tile",
              "From ring programs to kernels over tiles of a processor",
              buildBufferPipeline);
  addPipeline("burst-to-llvm", "From kernels over tiles to LLVM's dialect",
              buildLLVMPipeline);
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
