//===- Compile.h - ring programs to object files ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

/// Relocatable objects, to be linked with each other.
using Objects = llvm::SmallVector<std::unique_ptr<llvm::MemoryBuffer>, 0>;

/// Whether a program becomes one object, or several that are compiled at a
/// time: host code first, then some with kernels.
enum class Parts : uint8_t { One, Several };

/// Compiles the ring program `entry` of a module to objects, one of which
/// exports its burst_image as BURST_IMAGE_SYMBOL; nothing else is visible. The
/// module is used up. Errors are emitted at the op, or at the module.
mlir::FailureOr<Objects> compileToObjects(mlir::ModuleOp module,
                                          llvm::StringRef entry,
                                          const Target &given, Parts parts,
                                          const Dump &dump = {});

/// Steps of that, for programs that launch kernels of GPUs too: leaves `entry`
/// and what it calls, and from tiles, whose program is that of the image, to
/// objects.
mlir::LogicalResult isolate(mlir::ModuleOp module, llvm::StringRef entry);
mlir::FailureOr<Objects> compileTiles(mlir::ModuleOp module, const Image &image,
                                      const Target &target, Parts parts,
                                      const Dump &dump = {});

/// A module as text, without locations.
std::string print(mlir::ModuleOp module);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_COMPILE_H
