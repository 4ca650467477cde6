//===- Slots.h - how many buffers a loop alternates between -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_BUFFERS_SLOTS_H
#define BURST_PASSES_BUFFERS_SLOTS_H

#include "dialect/Ring/Ring.h"

#include <optional>

namespace burst {

/// Into how many buffers a transfer receives in turn: two where what came in
/// the turn before is still in use when it starts (the double buffer), else
/// one.
int64_t numSlots(ring::TransferOpInterface start);

/// The transfer in front of the loop of `start` that brings to the first turn
/// what `start` brings to all others, as a token or waited for; null where none
/// does.
ring::TransferOpInterface predecessorOf(ring::TransferOpInterface start);

/// The transfer in a loop of which `first` is the predecessor, which it shares
/// its buffers with where these are two; null where there is none.
ring::TransferOpInterface successorOf(ring::TransferOpInterface first);

/// In how many buffers a state or gradients are made in turn, by a `ring.init`
/// or `ring.zero`: two where those of the turn before are still under way, else
/// one.
int64_t numSlots(mlir::Operation *fresh);

/// A slice that a transfer of the turn before has brought.
struct CarriedSlice {
  mlir::Value slice;         ///< carried by the loop, or waited for in it
  mlir::BlockArgument owner; ///< that the loop carries
  mutable ring::TransferOpInterface start; ///< whose methods are not const
  int64_t dim;                             ///< of the slice, that is laid out
};

/// That by which such an op makes something; none where it is none.
std::optional<CarriedSlice> sliceOf(mlir::Operation *fresh);

/// The uses that update results of `op` in place, or carry them into a loop or
/// out of the program, in groups of which each needs results of its own: those
/// of a state by user, those of a gradient one by one.
llvm::SmallVector<llvm::SmallVector<mlir::OpOperand *>>
updatingUses(mlir::Operation *op);

/// The result of `op` that updates `tensor` in place, or the use in a loop or a
/// return that carries it; uses that only read it are left out. Null where
/// there is no such use, or more than one.
mlir::OpOperand *updatingUse(mlir::Value tensor);

/// Whether what a return gives is made in the memory of the result: it has no
/// other use; or it is final, or received and only returned, and this is the
/// first result that it is.
bool isReturnedInPlace(mlir::OpOperand &use);

/// What an updating use turns its tensor into; null where that is the end.
mlir::Value updated(mlir::OpOperand &use);

} // namespace burst

#endif // BURST_PASSES_BUFFERS_SLOTS_H
