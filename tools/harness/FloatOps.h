//===- FloatOps.h - ops on floats and their derivatives ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_HARNESS_FLOATOPS_H
#define BURST_TOOLS_HARNESS_FLOATOPS_H

#include "llvm/ADT/StringRef.h"

namespace burst {

/// An op of arith or math from up to three floats to one, in fp64.
struct FloatOp {
  double (*value)(const double *x);
  /// Writes the partial derivatives; `y` is the value.
  void (*partials)(const double *x, double y, double *p);
  bool isExact = false; ///< the result is not rounded
};

/// Null where there is no such op.
const FloatOp *findFloatOp(llvm::StringRef name);

} // namespace burst

#endif // BURST_TOOLS_HARNESS_FLOATOPS_H
