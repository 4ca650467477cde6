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

namespace burst::cpu {
#define GEN_PASS_REGISTRATION
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

void burst::cpu::registerPasses() {
  registerBurstCpuPasses();
  mlir::PassPipelineRegistration<>(
      "burst-to-tile",
      "From ring programs to kernels over tiles of this machine",
      [](mlir::OpPassManager &pm) { buildBufferPipeline(pm, Target::host()); });
  mlir::PassPipelineRegistration<>(
      "burst-to-llvm", "From kernels over tiles to LLVM's dialect",
      [](mlir::OpPassManager &pm) { buildLLVMPipeline(pm, Target::host()); });
}

void burst::cpu::registerInterfaces(mlir::DialectRegistry &registry) {
  mlir::func::registerInlinerExtension(registry);
  mlir::arith::registerConvertArithToLLVMInterface(registry);
  mlir::cf::registerConvertControlFlowToLLVMInterface(registry);
  mlir::registerConvertFuncToLLVMInterface(registry);
  mlir::registerConvertMemRefToLLVMInterface(registry);
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}
