//===- Lifetimes.h - tokens, and tensors that are under way -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PROOF_LIFETIMES_H
#define BURST_PASSES_PROOF_LIFETIMES_H

#include "passes/Proof/Labels.h"

namespace burst::proof {

/// Checks what depends on no rank: every transfer is waited for once, nothing
/// that is under way changes, and what is received fits the buffers that the
/// program states. Refuses the program where it is not so.
///
/// A turn uses what the turn before it has made, so that a few turns, one after
/// the other, stand for all: as many as there are buffers, and one more.
void checkLifetimes(mlir::func::FuncOp program, const Labels &labels,
                    Places &places);

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_LIFETIMES_H
