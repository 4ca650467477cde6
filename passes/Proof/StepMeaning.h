//===- StepMeaning.h - what steps do, as a proof sees it --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of Semantics (Simulation.h), of values in place of tensors: what a
// step reads, of which owner and segments, and what becomes of it.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_STEPMEANING_H
#define BURST_PASSES_PROOF_STEPMEANING_H

#include "dialect/Ring/Ring.h"

#include "mlir/IR/DialectRegistry.h"

#include <optional>
#include <variant>

namespace burst::proof {

/// Of a pair of segments, the one of the queries or the one of the keys.
enum class Side : uint8_t { Query, Key };

/// A table of segments, and the turn of it; all segments where there is none.
struct Segments {
  mlir::Value table, turn;
};

/// A state that has attended nothing; see ring.init.
struct Init {
  mlir::Value query;
  mlir::ValueRange state; ///< o, m and l, the results
};

/// A gradient to which nothing was added; see ring.zero.
struct Zero {
  mlir::Value like, gradient;
};

/// See ring.delta.
struct Delta {
  mlir::Value out, outGrad, lseGrad, delta;
};

/// Queries that attend a slice; see ring.attend.
struct Attended {
  mutable ring::AttendLikeOpInterface op; ///< whose methods are not const
  mlir::Value key, value;
  mlir::ValueRange state; ///< none where the op begins from nothing
  mlir::ValueRange made;  ///< a state, or out and lse
};

/// Gradients of queries that attended a slice; see ring.attend_grad.
struct AttendedGrad {
  mutable ring::AttendLikeOpInterface op; ///< whose methods are not const
  mlir::Value outGrad, lse, delta, key, value;
  mlir::Region *gradient; ///< of the score
  llvm::ArrayRef<int64_t> captures;
  mlir::ValueRange grads; ///< by query, key, value and captures
  mlir::ValueRange made;
};

/// Partial results of an owner, states or gradients, that become one: into the
/// first others are joined, in the segments that are flagged for each.
struct Joined {
  struct Part {
    mlir::ValueRange from;
    Segments segments;
  };
  mlir::ValueRange into;
  llvm::SmallVector<Part, 1> parts;
  mlir::Value owner, extent;
  ring::LayoutAttr layout;
  mlir::ValueRange made;
};

/// The attention of a state; see ring.finalize.
struct Finalized {
  mlir::ValueRange state;
  mlir::ValueRange results; ///< out, lse and maybe the largest scores
};

/// See ring.round.
struct Rounded {
  mlir::Value gradient, rounded;
};

/// See ring.take_heads.
struct TakenHeads {
  mlir::Value whole, taken;
  int64_t chunk, count;
};

/// See ring.join_heads.
struct JoinedHeads {
  mlir::ValueRange chunks;
  mlir::Value whole;
};

/// What a step does.
using StepMeaning =
    std::variant<Init, Zero, Delta, Attended, AttendedGrad, Joined, Finalized,
                 Rounded, TakenHeads, JoinedHeads>;

} // namespace burst::proof

namespace burst {
/// Gives the steps of the ring dialect their ProvedOpInterface.
void registerRingProof(mlir::DialectRegistry &registry);
} // namespace burst

#include "passes/Proof/ProvedOp.h.inc"

#endif // BURST_PASSES_PROOF_STEPMEANING_H
