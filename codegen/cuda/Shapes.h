//===- Shapes.h - which tiles kernels of GPUs may have ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_SHAPES_H
#define BURST_CODEGEN_CUDA_SHAPES_H

#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>
#include <string>
#include <vector>

namespace burst::cuda {

/// Tiles of a kernel, and the warps that compute one.
struct Shape {
  int64_t rows, columns; ///< of its own tile, and of those that it lists
  int64_t warps;
  /// Whether warp-specialized kernels compute weights while products are done
  /// (cuda-software-pipeline), and warpgroups are scheduled in ping-pong
  /// (cuda-ping-pong).
  bool isPipelined = false, isPingPong = false;

  std::string str() const;
};

/// Kernels that read the same lists of tiles, and so have one shape. What goes
/// row by row has no list, and the warps of attends.
enum class Tiling : uint8_t { Attends, QueryGradients, KeyGradients };
inline constexpr std::array allTilings{Tiling::Attends, Tiling::QueryGradients,
                                       Tiling::KeyGradients};

/// The tiling of a kernel.
Tiling tilingOf(mlir::func::FuncOp kernel);

/// Shapes that the kernels of a program may have, tiling by tiling, best first,
/// and at which of them the search is.
class Shapes {
public:
  Shapes(mlir::func::FuncOp program, bool isWarpSpecialized);

  const Shape &operator[](Tiling tiling) const { return of(tiling).at(); }
  bool isLast(Tiling tiling) const {
    return of(tiling).now + 1 == of(tiling).shapes.size();
  }
  /// Notes what speaks against the shape at hand; the next one is tried, if
  /// there is one.
  void refuse(Tiling tiling, const std::string &why);
  llvm::ArrayRef<std::string> refused() const { return reasons; }
  /// What ring-lower-to-tile has to know.
  LowerToTilePassOptions options() const;
  /// Those of all tilings that the program has.
  std::string str() const;

private:
  struct Ladder {
    std::vector<Shape> shapes;
    size_t now = 0;
    const Shape &at() const { return shapes[now]; }
  };
  const Ladder &of(Tiling tiling) const {
    return ladders[static_cast<size_t>(tiling)];
  }
  std::string describe(Tiling tiling) const;

  std::array<Ladder, allTilings.size()> ladders;
  std::array<bool, allTilings.size()> hasTiles{};
  std::vector<std::string> reasons;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_SHAPES_H
