//===- Objects.h - host code and kernels as object files --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_HOST_OBJECTS_H
#define BURST_CODEGEN_HOST_OBJECTS_H

#include "codegen/host/Image.h"
#include "codegen/host/Phases.h"
#include "codegen/host/Processor.h"

#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace burst::host {

/// Relocatable objects, to be linked with each other.
using Objects = llvm::SmallVector<std::unique_ptr<llvm::MemoryBuffer>, 0>;

/// Whether a program becomes one object, or several that are compiled at a
/// time: host code first, then some with kernels.
enum class Parts : uint8_t { One, Several };

/// Compiles a module of LLVM's dialect, with host code that
/// `burst-host-to-runtime` made and kernels, to objects, one of which exports
/// the image as BURST_IMAGE_SYMBOL; nothing else is visible. The module is used
/// up. Errors are emitted at it.
mlir::FailureOr<Objects> emitObjects(mlir::ModuleOp module, const Image &image,
                                     const Processor &processor, Parts parts,
                                     const Dump &dump = {});

} // namespace burst::host

#endif // BURST_CODEGEN_HOST_OBJECTS_H
