//===- gradients.cuh - the backward pass over tiles -------------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients are sums over tiles in one order, so a kernel owns what it adds to:
// one adds up dQ over keys, one dK and dV over queries. The second works on
// transposed scores (rows are keys), so that weights are left operands as they
// lie in registers, and never pass through shared memory.
//
//===----------------------------------------------------------------------===//

namespace burst {

/// A number for each column: of thread t columns 8 j + 2 (t mod 4) + e.
template <class Warps, int Columns> struct ColumnVector {
  float x[Columns / 8][2];
};

/// tile.load; columns behind `from.count` become `padding`.
template <class Warps, int C, class T>
__device__ __forceinline__ void load(ColumnVector<Warps, C> &a,
                                     GlobalRows<T> from, float padding,
                                     float factor = 1.f) {
#pragma unroll
  for (int j = 0; j < C / 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int column = 8 * j + Warps::column() + e;
      a.x[j][e] = column < from.count
                      ? factor * from.base[column * from.pitch]
                      : padding;
    }
}

/// The number for an element of an accumulator: of its row, or of its column.
template <class Warps>
__device__ __forceinline__ float at(const RowVector<Warps> &a, int i, int j,
                                    int e) {
  return a.x[i][e / 2];
}
template <class Warps, int C>
__device__ __forceinline__ float at(const ColumnVector<Warps, C> &a, int i,
                                    int j, int e) {
  return a.x[j][e % 2];
}

/// tile.weights: s = 2^(unit s - lse), 0 where s or lse is -inf. lse is of base
/// 2.
template <class Warps, int C, class Vector>
__device__ __forceinline__ void weights(Accumulator<Warps, C> &s,
                                        const Vector &lse, float unit) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int j = 0; j < C / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float whole = at(lse, i, j, e);
        float weight = exp2(fmaf(s.x[i][j][e], unit, -whole));
        s.x[i][j][e] = whole == -infinity() ? 0.f : weight;
      }
}

/// tile.differentials: dp = factor p (dp - delta), 0 where p is 0.
template <class Warps, int C, class Vector>
__device__ __forceinline__ void
differentials(const Accumulator<Warps, C> &p, Accumulator<Warps, C> &dp,
              const Vector &delta, float factor) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int j = 0; j < C / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float weight = p.x[i][j][e];
        float change = factor * weight * (dp.x[i][j][e] - at(delta, i, j, e));
        dp.x[i][j][e] = weight == 0.f ? 0.f : change;
      }
}

/// tile.map_gradient: w = f(w, t, row, column), where w is not 0.
template <class Warps, int C, class F>
__device__ __forceinline__ void mapGradient(Accumulator<Warps, C> &w,
                                            const Accumulator<Warps, C> &t,
                                            F f) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < C / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &number = w.x[i][j][2 * half + e];
          float gradient = f(number, t.x[i][j][2 * half + e],
                             Warps::row(i, half), 8 * j + Warps::column() + e);
          number = number == 0.f ? 0.f : gradient;
        }
}

} // namespace burst
