//===- ReturningRing.h - rings of which something comes home ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_RING_RETURNINGRING_H
#define BURST_PASSES_RING_RETURNINGRING_H

#include "passes/Ring/RingBuilder.h"

namespace burst {

/// A slice travels past what stays, and what is computed by it, its share, goes
/// along, one hop behind: what a rank computes is joined with what the ranks
/// before it have, and passed on, while the rank computes the next slice. The
/// last rank sends the whole home; what the owner itself computed has stayed
/// there. So shares take as many hops as their slice.
///
/// All hops are turns of one loop: tables say what has arrived for which.
class ReturningRing : public RingBuilder {
protected:
  ReturningRing(AttentionInterface op, const Deal &deal, mlir::Value extent,
                llvm::SmallVector<int64_t> sliceDims,
                llvm::SmallVector<int64_t> shareDims)
      : RingBuilder(op, deal), extent(extent), sliceDims(std::move(sliceDims)),
        shareDims(std::move(shareDims)) {}

  /// The share of a slice by which nothing was computed yet.
  virtual Tensors fresh(mlir::ValueRange slice) = 0;
  /// Computes a slice here: adds to what stays and to the slice's share.
  virtual void compute(mlir::ValueRange slice, mlir::Value owner, Tensors &kept,
                       Tensors &share) = 0;
  /// Two shares of a slice as one, where the flags hold; else the first.
  virtual Tensors join(mlir::ValueRange a, mlir::ValueRange b,
                       mlir::Value owner, const Flags &flags) = 0;

  /// Of all hops, from the rank's own slice on: what has stayed, and the own
  /// slice's share, to which nothing was added yet.
  void run(Tensors slice, Tensors &kept, Tensors &own);

  mlir::Value extent; ///< of what travels

private:
  void hops(Tensors slice, Tensors &kept, Tensors &own);
  Tensors send(mlir::ValueRange tensors, llvm::ArrayRef<int64_t> dims,
               mlir::Value owner, mlir::Value to, mlir::Value receivedOwner,
               mlir::Value from, int64_t channel, const Flags &flags);

  llvm::SmallVector<int64_t> sliceDims, shareDims; ///< that are dealt
};

} // namespace burst

#endif // BURST_PASSES_RING_RETURNINGRING_H
