//===- Compile.h - ring programs to object files ----------------*- C++ -*-===//
#ifndef BURST_CODEGEN_CPU_COMPILE_H
#define BURST_CODEGEN_CPU_COMPILE_H

#include "codegen/cpu/Target.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace burst::cpu {

struct Image;

/// From ring programs on tensors to kernels over tiles, and on to LLVM's
/// dialect.
void buildTilePipeline(mlir::OpPassManager &pm,
                       const LowerToTilePassOptions &options);
void buildBufferPipeline(mlir::OpPassManager &pm, const Target &target);
void buildLLVMPipeline(mlir::OpPassManager &pm, const Target &target);

/// Where phases of a compilation are written: IR of each phase, LLVM IR, the
/// object. Empty: nowhere.
struct Dump {
  std::string directory;

  mlir::LogicalResult operator()(mlir::Operation *op, llvm::StringRef name,
                                 llvm::StringRef text) const;
};

/// Compiles the ring program `entry` of a module to a relocatable object that
/// exports its burst_image as BURST_IMAGE_SYMBOL. The module is used up. Errors
/// are emitted at the op, or at the module.
mlir::FailureOr<std::unique_ptr<llvm::MemoryBuffer>>
compileToObject(mlir::ModuleOp module, llvm::StringRef entry,
                const Target &target, const Dump &dump = {});

/// Steps of that, for programs that launch kernels of GPUs too: leaves `entry`
/// and what it calls, and from tiles, whose program is that of the image, to an
/// object.
mlir::LogicalResult isolate(mlir::ModuleOp module, llvm::StringRef entry);
mlir::FailureOr<std::unique_ptr<llvm::MemoryBuffer>>
compileTiles(mlir::ModuleOp module, const Image &image, const Target &target,
             const Dump &dump = {});

/// A module as text, without locations.
std::string print(mlir::ModuleOp module);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_COMPILE_H
