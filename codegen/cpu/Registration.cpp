//===- Registration.cpp - passes of the CPU target ------------------------===//
#include "codegen/cpu/Passes.h"

#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

namespace burst::cpu {
#define GEN_PASS_REGISTRATION
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

void burst::cpu::registerPasses() { registerBurstCpuPasses(); }

void burst::cpu::registerInterfaces(mlir::DialectRegistry &registry) {
  mlir::func::registerInlinerExtension(registry);
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}
