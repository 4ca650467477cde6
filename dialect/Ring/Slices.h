//===- Slices.h - how many received slices a rank holds ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_SLICES_H
#define BURST_DIALECT_RING_SLICES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace burst::ring {

/// Function attribute: `array<i64: n, m, ...>`, of what the transfers of
/// channel 0, 1, ... have brought, a rank may hold n, m, ... at once, of each
/// kind: slices, what follows slices of others, and what returned to its owner.
/// Channels that it leaves out have defaultMaxSlices. Without it, all channels
/// together have.
inline constexpr llvm::StringLiteral maxSlicesAttr = "ring.max_slices";

/// The double buffer.
inline constexpr int64_t defaultMaxSlices = 2;

/// Of a program without the attribute null.
mlir::DenseI64ArrayAttr getMaxSlices(mlir::FunctionOpInterface program);

/// The bound of a channel.
int64_t maxSlicesOf(mlir::DenseI64ArrayAttr bounds, int64_t channel);

/// Lets a program hold what each of its parts does, which state bounds by
/// channel, or none where the default will do. Nothing is said where none does.
void stateMaxSlices(mlir::FunctionOpInterface program,
                    llvm::ArrayRef<llvm::ArrayRef<int64_t>> parts);

llvm::LogicalResult verifyMaxSlices(mlir::Operation *op, mlir::Attribute value);

} // namespace burst::ring

#endif // BURST_DIALECT_RING_SLICES_H
