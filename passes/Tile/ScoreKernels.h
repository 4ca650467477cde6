//===- ScoreKernels.h - attention that stores its scores --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_SCOREKERNELS_H
#define BURST_PASSES_TILE_SCOREKERNELS_H

#include "passes/Tile/Builder.h"

namespace burst::tiling {

/// Lower an op on buffers to launches, in front of it. Scores in memory are in
/// units of base 2, as m is.
void lowerScores(TileBuilder &b, ring::ScoresOp op, const Shape &shape,
                 Launcher launch);
void lowerScore(TileBuilder &b, ring::ScoreOp op, const Shape &shape,
                Launcher launch);
void lowerSoftmax(TileBuilder &b, ring::SoftmaxOp op, const Shape &shape,
                  Launcher launch);
void lowerWeigh(TileBuilder &b, ring::WeighOp op, const Shape &shape,
                Launcher launch);

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_SCOREKERNELS_H
