//===- Shapes.cpp - which tiles kernels of GPUs may have ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Shapes.h"
#include "dialect/Cuda/Cuda.h"
#include "dialect/Ring/Ring.h"
#include "passes/Tile/CtaGradient.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;
using llvm::formatv;

std::string Shape::str() const {
  return formatv("{0}x{1} by {2} warps{3}{4}", rows, columns, warps,
                 isPipelined ? ", pipelined" : "",
                 isPingPong ? ", ping-pong" : "");
}

Tiling cuda::tilingOf(func::FuncOp kernel) {
  auto gradient = kernel->getAttrOfType<StringAttr>(tile::gradientAttr);
  if (!gradient)
    return Tiling::Attends;
  return gradient.getValue() == "queries" ? Tiling::QueryGradients
                                          : Tiling::KeyGradients;
}

/// Shapes for attends of a head dimension (the larger one of queries and
/// values), best first. A mask wants tiles that are not too wide.
static std::vector<Shape>
shapesOfAttends(int64_t headDim, bool isWarpSpecialized, bool isMasked) {
  // Small ones, which every mask fits.
  std::vector<Shape> shapes = {{64, 64, 4}, {64, 32, 4}, {64, 16, 4}};
  std::vector<Shape> best;
  auto pipelined = [](int64_t rows, int64_t columns, int64_t warps,
                      bool isPingPong = true) {
    return Shape{rows, columns, warps, /*isPipelined=*/true, isPingPong};
  };
  if (!isWarpSpecialized && headDim <= 64) // with tables it needs 8 warps
    best = {{128, 64, 4}, {128, 64, 8}};
  else if (!isWarpSpecialized)
    best = {{128, headDim <= 192 ? 64 : 32, 8}};
  else if (headDim <= 64)
    best = {pipelined(192, 128, 12),
            pipelined(128, 128, 8),
            {128, 128, 8},
            {128, 64, 8}};
  else if (headDim <= 96)
    best = {pipelined(128, 128, 8), {128, 128, 8}, {128, 64, 8}};
  else if (headDim <= 128)
    best = {pipelined(128, isMasked ? 128 : 176, 8),
            pipelined(128, 112, 8),
            {128, 128, 8},
            {128, 112, 8}};
  else if (headDim <= 192) // outputs fill registers: products take longer
    best = {pipelined(128, 112, 8, /*isPingPong=*/false),
            pipelined(128, 96, 8, /*isPingPong=*/false),
            {128, 96, 8},
            {128, 64, 8}};
  else
    best = {pipelined(128, 80, 8, /*isPingPong=*/false),
            pipelined(128, 64, 8, /*isPingPong=*/false),
            {128, 80, 8},
            {128, 64, 8}};
  shapes.insert(shapes.begin(), best.begin(), best.end());
  return shapes;
}

/// From a shape on, those with half the columns, down to a fragment's.
static std::vector<Shape> narrowed(const tiling::CtaShape &cta) {
  std::vector<Shape> shapes;
  for (int64_t columns = cta.columns; columns >= 16; columns /= 2)
    shapes.push_back({cta.rows, columns, cta.warps});
  return shapes;
}

/// Head dimensions of what a program has of an op, the largest of queries and
/// of values; 0 where it has none.
template <typename OpT>
static std::pair<int64_t, int64_t> headDimsOf(func::FuncOp program) {
  std::pair<int64_t, int64_t> largest{0, 0};
  auto update = [](int64_t &largest, Value shard) {
    largest =
        std::max(largest, cast<ShapedType>(shard.getType()).getDimSize(3));
  };
  program.walk([&](OpT op) {
    update(largest.first, op.getQuery());
    update(largest.second, op.getValue());
  });
  return largest;
}

static bool hasMask(func::FuncOp program) {
  return program
      .walk([](ring::AttendOp op) {
        return op.getMask().empty() ? WalkResult::advance()
                                    : WalkResult::interrupt();
      })
      .wasInterrupted();
}

Shapes::Shapes(func::FuncOp program, bool isWarpSpecialized) {
  auto [dim, valueDim] = headDimsOf<ring::AttendOp>(program);
  auto [gradDim, gradValueDim] = headDimsOf<ring::AttendGradOp>(program);
  hasTiles = {dim > 0, gradDim > 0, gradDim > 0};
  ladders[0].shapes = {{64, 64, 4}}; // of what goes row by row
  if (dim > 0)
    ladders[0].shapes = shapesOfAttends(std::max(dim, valueDim),
                                        isWarpSpecialized, hasMask(program));
  ladders[1].shapes = narrowed(tiling::queryCtaOf(gradDim, gradValueDim));
  ladders[2].shapes = narrowed(tiling::keyCtaOf(gradDim, gradValueDim));
}

std::string Shapes::describe(Tiling tiling) const {
  static constexpr StringLiteral what[] = {"", "gradients by queries in ",
                                           "gradients by keys in "};
  return (what[static_cast<size_t>(tiling)] + (*this)[tiling].str()).str();
}

void Shapes::refuse(Tiling tiling, const std::string &why) {
  reasons.push_back(describe(tiling) + ": " + why);
  if (!isLast(tiling))
    ++ladders[static_cast<size_t>(tiling)].now;
}

LowerToTilePassOptions Shapes::options() const {
  LowerToTilePassOptions options;
  const Shape &attends = (*this)[Tiling::Attends];
  options.rows = attends.rows;
  options.columns = attends.columns;
  options.warps = attends.warps;
  auto sizes = [&](Tiling tiling) {
    const Shape &shape = (*this)[tiling];
    return SmallVector<int64_t>{shape.rows, shape.columns, shape.warps};
  };
  options.queryGradients = sizes(Tiling::QueryGradients);
  options.keyGradients = sizes(Tiling::KeyGradients);
  return options;
}

std::string Shapes::str() const {
  std::vector<std::string> all;
  for (Tiling tiling : allTilings)
    if (hasTiles[static_cast<size_t>(tiling)])
      all.push_back(describe(tiling));
  return llvm::join(all, "; ");
}
