//===- Registry.h - what the tools know -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_OPT_REGISTRY_H
#define BURST_TOOLS_BURST_OPT_REGISTRY_H

#include "codegen/cpu/Passes.h"
#include "codegen/cuda/Passes.h"
#include "codegen/host/Passes.h"
#include "jit/Frontend.h"
#include "passes/Passes.h"

#include "mlir/Transforms/Passes.h"

namespace burst {

/// The dialects of burst's programs.
using jit::registerDialects;

/// Dialects, passes and pipelines.
inline void registerAll(mlir::DialectRegistry &registry) {
  registerDialects(registry);
  mlir::registerTransformsPasses();
  registerPasses();
  registerPipelines();
  host::registerBurstHostPasses();
  cpu::registerPasses();
  cuda::registerBurstCudaPasses();
}

} // namespace burst

#endif // BURST_TOOLS_BURST_OPT_REGISTRY_H
