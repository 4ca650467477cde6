//===- Drawing.h - schedules as pictures ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_EXPLAIN_DRAWING_H
#define BURST_PASSES_EXPLAIN_DRAWING_H

#include "passes/Explain/Recording.h"

namespace burst {

/// A schedule as it is drawn.
struct Drawing {
  std::string title;
  std::vector<std::vector<Cell>> cells; ///< by rank, by hop
  int64_t shown = 0;                    ///< ranks
};

/// Draws schedules one below the other, as a picture (SVG). Of many hops, and
/// of many blocks and messages of a rank at a hop, the first ones.
void draw(llvm::ArrayRef<Drawing> drawings, llvm::raw_ostream &os);

} // namespace burst

#endif // BURST_PASSES_EXPLAIN_DRAWING_H
