//===- Gradient.h - derivatives of score regions ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reverse mode over a region of scalar ops. A score region
//
//   s' = score(s, b, h, i, j, Sq, Sk, captures...)
//
// becomes a gradient region
//
//   ds = gradient(s, b, h, i, j, Sq, Sk, g, captures...)
//
// that computes the score's values anew and from them, with g = d loss / d s',
// the derivative d loss / d s; and that adds, by `burst.contribute`, to the
// gradients of captured floats.
//
// Adjoints have the state type, or the type of their value where that is wider:
// nothing is rounded to 16 bits on the way back. What derivatives mean where
// calculus has no answer:
//
//   rounding (arith.truncf, extf)     as if it changed nothing: 1
//   steps (floor, round, fptosi,
//     comparisons, indices)           0
//   minima, maxima                    all to the operand that is chosen, to the
//                                     first one where they are equal
//   absf at 0                         0
//   copysign at 0                     by the sign of the zero
//   remf                              1 and -trunc(a / b), as between its jumps
//   an adjoint of 0                   0, whatever it is multiplied with
//
// The last rule is what makes `arith.select` safe: in IEEE arithmetic, 0 from
// an arm that is not taken, times an infinite derivative, would be NaN.
//
// The bits of a float (arith.bitcast) have no derivative. They may decide a
// comparison or be an index, but no number may be made of them.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_GRADIENT_GRADIENT_H
#define BURST_PASSES_GRADIENT_GRADIENT_H

#include "mlir/IR/Region.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace burst {

/// Builds into `gradient`, which is empty, the gradient region of `score`,
/// which is not. `wanted` has a flag per capture of the score: whether to
/// contribute to its gradient. Flags of captures that are no floats are not
/// looked at.
///
/// Fails with an error at an op that the result depends on and that has no
/// derivative; `gradient` is empty then.
llvm::LogicalResult differentiate(mlir::Region &score, mlir::Region &gradient,
                                  llvm::ArrayRef<bool> wanted);

/// To which captures a gradient region contributes. Others that were wanted
/// have a gradient of zero: the score does not depend on them.
llvm::SmallVector<bool> gradientCaptures(mlir::Region &gradient);

/// Whether two batches, or two heads, may contribute to one element of a table:
/// they do not where it is always found by the batch, or the head, along one
/// dimension, also from an offset on.
struct Sharing {
  bool batches = false, heads = false;
};
Sharing sharingOf(mlir::Region &gradient, size_t capture);

} // namespace burst

#endif // BURST_PASSES_GRADIENT_GRADIENT_H
