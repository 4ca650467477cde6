//===- memory.cuh - between memory and registers ----------------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

namespace burst {

/// Two numbers side by side.
__device__ __forceinline__ float2 loadPair(const float *from) {
  return *reinterpret_cast<const float2 *>(from);
}
template <class T> __device__ __forceinline__ float2 loadPair(const T *from) {
  u32 pair = *reinterpret_cast<const u32 *>(from);
  return {convert<float>(T{u16(pair)}), convert<float>(T{u16(pair >> 16)})};
}

/// tile.load of `Columns` columns in fp32; what lies behind them becomes 0.
template <int Columns, class Warps, int C, class T>
__device__ __forceinline__ void load(Accumulator<Warps, C> &a,
                                     GlobalRows<T> from) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = Warps::row(i, half);
#pragma unroll
      for (int j = 0; j < C / 8; ++j) {
        int column = 8 * j + Warps::column();
        float2 pair = {0.f, 0.f};
        if (row < from.count && column < Columns)
          pair = loadPair(from.base + row * from.pitch + column);
        a.x[i][j][2 * half] = pair.x;
        a.x[i][j][2 * half + 1] = pair.y;
      }
    }
}
/// tile.load of a number of each row.
template <class Warps, class T>
__device__ __forceinline__ void load(RowVector<Warps> &a, GlobalRows<T> from,
                                     float padding, float factor = 1.f) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = Warps::row(i, half);
      a.x[i][half] =
          row < from.count ? factor * from.base[row * from.pitch] : padding;
    }
}
template <class Warps, class T>
__device__ __forceinline__ void load(RowSums<Warps> &a, GlobalRows<T> from,
                                     float padding) {
  load(a.part, from, padding);
  if (Warps::lane() % 4 != 0)
    fill(a.part, 0.f);
}

/// tile.store of `Columns` columns, in fp32.
template <int Columns, class Warps, int C>
__device__ __forceinline__ void store(const Accumulator<Warps, C> &a,
                                      GlobalRows<float> to) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = Warps::row(i, half);
      if (row < to.count)
#pragma unroll
        for (int j = 0; j < C / 8; ++j) {
          int column = 8 * j + Warps::column();
          if (column < Columns)
            *reinterpret_cast<float2 *>(to.base + row * to.pitch + column) =
                float2{a.x[i][j][2 * half], a.x[i][j][2 * half + 1]};
        }
    }
}
/// The same, rounded to 16 bits.
template <int Columns, class Warps, int C, class T>
__device__ __forceinline__ void store(const Accumulator<Warps, C> &a,
                                      GlobalRows<T> to) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = Warps::row(i, half);
      if (row < to.count)
#pragma unroll
        for (int j = 0; j < C / 8; ++j) {
          int column = 8 * j + Warps::column();
          if (column < Columns)
            *reinterpret_cast<u32 *>(to.base + row * to.pitch + column) =
                pack<T>(a.x[i][j][2 * half], a.x[i][j][2 * half + 1]);
        }
    }
}
/// A number of each row, by one thread in four: when all four have read what was
/// there.
template <class Warps>
__device__ __forceinline__ void store(const RowVector<Warps> &a,
                                      GlobalRows<float> to) {
  __syncwarp();
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = Warps::row(i, half);
      if (Warps::lane() % 4 == 0 && row < to.count)
        to.base[row * to.pitch] = a.x[i][half];
    }
}

template <class Warps>
__device__ __forceinline__ void store(const RowSums<Warps> &a,
                                      GlobalRows<float> to) {
  store(sumsOf(a), to);
}

} // namespace burst
