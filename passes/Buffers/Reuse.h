//===- Reuse.h - buffers that are used again --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_BUFFERS_REUSE_H
#define BURST_PASSES_BUFFERS_REUSE_H

#include "dialect/Ring/Ring.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace burst {

/// Of a program whose heads go in chunks: all-to-alls and steps in no loop that
/// make what they make in the buffers of another one, which comes first and
/// with whose buffers everything is done. All of them are as large as those.
/// Whoever puts a program on buffers, and whoever counts them, asks this.
llvm::DenseMap<mlir::Operation *, mlir::Operation *>
findReusedBuffers(mlir::func::FuncOp program);

} // namespace burst

#endif // BURST_PASSES_BUFFERS_REUSE_H
