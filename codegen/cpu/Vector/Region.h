//===- Region.h - a scalar region, many points at a time --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CPU_VECTOR_REGION_H
#define BURST_CODEGEN_CPU_VECTOR_REGION_H

#include "dialect/Tile/Build.h"

namespace burst::cpu {

/// Takes a vector that a region contributes, and at which indices: scalars that
/// all points share, or vectors.
using Contribute = llvm::function_ref<void(
    ContributeOp op, mlir::Value amount, llvm::ArrayRef<mlir::Value> indices)>;

/// Emits what a region yields at `lanes` points. Arguments are scalars that all
/// points share, vectors with one element per point, or buffers in place of
/// tables. Ops on shared scalars stay scalar.
///
/// Points that do not matter are evaluated too, so nothing emitted may trap:
/// indices are clamped into their table, and a divisor that would trap is
/// replaced. A contribution is handed over as it is; a gradient region needs
/// `contribute`.
mlir::Value vectorizeRegion(tile::LoopBuilder &builder, mlir::Block &region,
                            llvm::ArrayRef<mlir::Value> arguments,
                            int64_t lanes, Contribute contribute = nullptr);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_VECTOR_REGION_H
