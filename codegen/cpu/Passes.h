//===- Passes.h - from tiles to LLVM on a CPU -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CPU_PASSES_H
#define BURST_CODEGEN_CPU_PASSES_H

#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Pass/Pass.h"

namespace burst::cpu {

#define GEN_PASS_DECL
#include "codegen/cpu/Passes.h.inc"

/// Attribute of a function that `tile-outline` made; LLVM's attributes of it.
inline constexpr llvm::StringLiteral outlinedAttr = "passthrough";

/// Whether there are vector registers of so many bits, on some processor.
inline bool isVectorBits(int64_t bits) {
  return bits >= 64 && bits <= 2048 && llvm::isPowerOf2_64(bits);
}

void registerPasses();

/// What compilation asks of upstream's dialects: to be inlined, and to be
/// translated to LLVM IR.
void registerInterfaces(mlir::DialectRegistry &registry);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_PASSES_H
