//===- Compile.h - ring programs to object files ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CPU_COMPILE_H
#define BURST_CODEGEN_CPU_COMPILE_H

#include "codegen/cpu/Target.h"
#include "codegen/host/Objects.h"

namespace burst::cpu {

/// From ring programs on tensors to kernels over tiles that suit a processor,
/// and on to LLVM's dialect.
void buildBufferPipeline(mlir::OpPassManager &pm, const Target &target);
void buildLLVMPipeline(mlir::OpPassManager &pm, const Target &target);

/// Compiles the ring program `entry` of a module to objects, one of which
/// exports its burst_image as BURST_IMAGE_SYMBOL; nothing else is visible. The
/// module is used up. Errors are emitted at the op, or at the module.
mlir::FailureOr<host::Objects> compileToObjects(mlir::ModuleOp module,
                                                llvm::StringRef entry,
                                                const Target &given,
                                                host::Parts parts,
                                                const host::Dump &dump = {});

/// The last step of that, for programs that launch kernels of GPUs too: from
/// tiles, whose program is that of the image, to objects.
mlir::FailureOr<host::Objects> compileTiles(mlir::ModuleOp module,
                                            const host::Image &image,
                                            const Target &target,
                                            host::Parts parts,
                                            const host::Dump &dump = {});

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_COMPILE_H
