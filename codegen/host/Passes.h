//===- Passes.h - programs of ranks as host code ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_HOST_PASSES_H
#define BURST_CODEGEN_HOST_PASSES_H

#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Tile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace burst::host {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "codegen/host/Passes.h.inc"

} // namespace burst::host

#endif // BURST_CODEGEN_HOST_PASSES_H
