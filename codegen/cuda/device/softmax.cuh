//===- softmax.cuh - the recurrence over tiles ------------------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

namespace burst {

/// Of the four threads that share a row.
__device__ __forceinline__ float maxOfRow(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float sumOfRow(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

/// What the threads of each row have summed together.
template <class Warps>
__device__ __forceinline__ RowVector<Warps> sumsOf(const RowSums<Warps> &a) {
  RowVector<Warps> sums;
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sums.x[i][half] = sumOfRow(a.part.x[i][half]);
  return sums;
}

/// tile.positions: those of rows or columns of a tile. Behind the last one they go
/// on: what is computed there is thrown away, and tables are read `within`.
template <int Step, int Block> struct Positions {
  int first, begin;

  __device__ __forceinline__ int at(int x) const {
    int y = first + x;
    if constexpr (Block == 1)
      return begin + y * Step;
    else
      return begin + y / Block * Step + y % Block;
  }
};

/// tile.map: s = f(s, row, column), both counted from the tile's first.
template <class Warps, int C, class F>
__device__ __forceinline__ void map(Accumulator<Warps, C> &s, F f) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < C / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &number = s.x[i][j][2 * half + e];
          number = f(number, Warps::row(i, half), 8 * j + Warps::column() + e);
        }
}

/// tile.row_max: m' = max(m, unit max_j s), factor = 2^(m - m'), 0 where m is
/// -inf. `unit` is positive: it scales scores to base 2.
template <class Warps, int C>
__device__ __forceinline__ void rowMax(const Accumulator<Warps, C> &s,
                                       RowVector<Warps> &m,
                                       RowVector<Warps> &factor, float unit) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = s.x[i][0][2 * half];
#pragma unroll
      for (int j = 0; j < C / 8; ++j)
        most = fmaxf(most, fmaxf(s.x[i][j][2 * half], s.x[i][j][2 * half + 1]));
      float before = m.x[i][half];
      float now = fmaxf(before, unit * maxOfRow(most));
      m.x[i][half] = now;
      // Where both are -inf, their difference is NaN.
      factor.x[i][half] = exp2(before - (now == -infinity() ? 0.f : now));
    }
}

/// Keeps what `sum`, which is not negative, is made of in front of waits for
/// products: ptxas moves such a wait in front of arithmetic, but not in front of a
/// store, even of one that never happens.
__device__ __forceinline__ void computeBeforeWaits(float sum) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("{\n.reg .pred never;\nsetp.lt.f32 never, %0, 0f00000000;\n"
               "@never st.shared.f32 [%1], %0;\n}" ::"f"(sum),
               "r"(sharedMemory())
               : "memory");
#endif
}

/// tile.exponentials: s = 2^(unit s - m), l = factor l + the sum of s.
template <class Warps, int C>
__device__ __forceinline__ void
exponentials(Accumulator<Warps, C> &s, const RowVector<Warps> &m,
             RowSums<Warps> &l, const RowVector<Warps> &factor, float unit) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = m.x[i][half];
      float reference = now == -infinity() ? 0.f : now;
      float sum = factor.x[i][half] * l.part.x[i][half];
#pragma unroll
      for (int j = 0; j < C / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float &number = s.x[i][j][2 * half + e];
          number = exp2(fmaf(number, unit, -reference));
          sum += number;
        }
      l.part.x[i][half] = sum;
      // Half of them suffice for products to be under way meanwhile. The others
      // are free to fill what the wait leaves.
      if (half == 0)
        computeBeforeWaits(sum);
    }
}

/// tile.rescale
template <class Warps, int C>
__device__ __forceinline__ void rescale(Accumulator<Warps, C> &o,
                                        const RowVector<Warps> &factor) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int j = 0; j < C / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        o.x[i][j][e] *= factor.x[i][e / 2];
}

/// A product's factor, where no later op applies it.
template <class Warps, int C>
__device__ __forceinline__ void scale(Accumulator<Warps, C> &s, float factor) {
  map(s, [&](float x, int, int) { return factor * x; });
}

/// tile.add
template <class Warps, int C>
__device__ __forceinline__ void add(Accumulator<Warps, C> &a,
                                    const Accumulator<Warps, C> &b) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int j = 0; j < C / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        a.x[i][j][e] += b.x[i][j][e];
}

/// tile.row_dot: x = the products of rows, less x.
template <class Warps, int C>
__device__ __forceinline__ void rowDot(const Accumulator<Warps, C> &a,
                                       const Accumulator<Warps, C> &b,
                                       RowVector<Warps> &x) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = 0.f;
#pragma unroll
      for (int j = 0; j < C / 8; ++j)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e)
          sum = fmaf(a.x[i][j][e], b.x[i][j][e], sum);
      x.x[i][half] = sumOfRow(sum) - x.x[i][half];
    }
}

/// tile.merge
template <class Warps, int C>
__device__ __forceinline__ void
merge(Accumulator<Warps, C> &o, RowVector<Warps> &m, RowVector<Warps> &l,
      Accumulator<Warps, C> &o2, const RowVector<Warps> &m2,
      const RowVector<Warps> &l2) {
  RowVector<Warps> factor, factor2;
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = fmaxf(m.x[i][half], m2.x[i][half]);
      float reference = now == -infinity() ? 0.f : now;
      factor.x[i][half] = exp2(m.x[i][half] - reference);
      factor2.x[i][half] = exp2(m2.x[i][half] - reference);
      l.x[i][half] = factor.x[i][half] * l.x[i][half] +
                     factor2.x[i][half] * l2.x[i][half];
      m.x[i][half] = now;
    }
  rescale(o, factor);
  rescale(o2, factor2);
  add(o, o2);
}

/// tile.max_score: m = m ln 2; NaN where l is and m is not +inf.
template <class Warps>
__device__ __forceinline__ void maxScore(RowVector<Warps> &m,
                                         const RowVector<Warps> &l) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = l.x[i][half], most = m.x[i][half];
      m.x[i][half] = sum != sum && most != infinity()
                         ? sum
                         : most * 0.693147180559945309f;
    }
}

/// tile.normalize: o = o / l, m = (m + log2 l) ln 2; 0 and -inf where l is 0.
template <class Warps, int C>
__device__ __forceinline__ void normalize(Accumulator<Warps, C> &o,
                                          RowVector<Warps> &m,
                                          const RowVector<Warps> &l) {
  RowVector<Warps> inverse;
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = l.x[i][half];
      inverse.x[i][half] = sum == 0.f ? 0.f : __fdividef(1.f, sum);
      m.x[i][half] = sum == 0.f
                         ? -infinity()
                         : (m.x[i][half] + log2(sum)) * 0.693147180559945309f;
    }
  rescale(o, inverse);
}

template <class Warps, int C>
__device__ __forceinline__ void normalize(Accumulator<Warps, C> &o,
                                          RowVector<Warps> &m,
                                          const RowSums<Warps> &l) {
  normalize(o, m, sumsOf(l));
}

} // namespace burst
