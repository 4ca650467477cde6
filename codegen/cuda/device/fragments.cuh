//===- fragments.cuh - products, in the registers of warps ------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

namespace burst {

/// A left operand: 16 rows and 16 steps of the depth.
struct Left {
  u32 x[4];
};
/// A right operand: 16 columns and 16 steps of the depth.
struct Right {
  u32 x[4];
};

/// Rows of `Warps` times `Columns` numbers in fp32. Thread t of a warp holds
/// x[i][j][2 h + e] = number (16 i' + 8 h + t / 4, 8 j + 2 (t mod 4) + e), i' the
/// warp's tile i.
template <class Warps, int Columns> struct Accumulator {
  static_assert(Columns % 16 == 0, "whole fragments");
  static constexpr int Eights = Columns / 8;
  float x[Warps::Tiles][Eights][4];
};

/// A number for each row: of thread t rows 8 h + t / 4 of the warp's tiles.
template <class Warps> struct RowVector {
  float x[Warps::Tiles][2];
};

/// Sums of rows, each thread's part: a row's sum is that over its four threads.
template <class Warps> struct RowSums {
  RowVector<Warps> part;
};

/// tile.fill
template <class Warps, int C>
__device__ __forceinline__ void fill(Accumulator<Warps, C> &a, float number) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int j = 0; j < C / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        a.x[i][j][e] = number;
}
template <class Warps>
__device__ __forceinline__ void fill(RowVector<Warps> &a, float number) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
    a.x[i][0] = a.x[i][1] = number;
}
template <class Warps>
__device__ __forceinline__ void fill(RowSums<Warps> &a, float number) {
  fill(a.part, Warps::lane() % 4 == 0 ? number : 0.f);
}

__device__ __forceinline__ void loadMatrices(u32 (&x)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address));
}
__device__ __forceinline__ void loadTransposed(u32 (&x)[4], u32 address) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
      : "r"(address));
}

/// Fragments of a tile: those of a thread lie at constant distances from one
/// address.
///
/// `Rows` gives 16 rows from row 8 r and 16 columns from 16 k as they lie, in the
/// order of a left operand; `Columns` gives them as a right operand of which each
/// row is a column. The transposed ones load 16 rows of the depth, from 8 r, and 16
/// rows or columns of the product, from 16 k.
enum class As { Rows, Columns, TransposedRows, TransposedColumns };

template <As Form, int R, int C> struct Fragments {
  static constexpr bool Transposed = Form == As::TransposedRows || Form == As::TransposedColumns;
  /// Whether the second matrix of four lies below the first, or beside it.
  static constexpr bool Below = Form == As::Rows || Form == As::TransposedColumns;
  u32 first;

  __device__ __forceinline__ explicit Fragments(SharedTile<R, C> tile, int row = 0) {
    int lane = threadIdx.x % 32;
    int second = lane / 8 % 2, third = lane / 16;
    first = tile.chunk(row + lane % 8 + 8 * (Below ? second : third), Below ? third : second);
  }
  template <class Fragment> __device__ __forceinline__ Fragment at(int r, int k) const {
    Fragment fragment;
    u32 address = SharedTile<R, C>::from(first, r, k);
    if constexpr (Transposed)
      loadTransposed(fragment.x, address);
    else
      loadMatrices(fragment.x, address);
    return fragment;
  }
};

/// c += a b, for 8 columns.
template <class T>
__device__ void multiply8(float (&c)[4], const Left &a, u32 b0, u32 b1);
template <>
__device__ __forceinline__ void multiply8<bf16>(float (&c)[4], const Left &a,
                                                u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0),
                 "r"(b1));
}
template <>
__device__ __forceinline__ void multiply8<f16>(float (&c)[4], const Left &a,
                                               u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b0),
                 "r"(b1));
}

/// tile.multiply: c += a b^T, scores from queries and keys.
template <class T, class Warps, int R, int N, int D>
__device__ __forceinline__ void multiplyTransposed(Accumulator<Warps, N> &c,
                                                   SharedTile<R, D> a,
                                                   SharedTile<N, D> b) {
  Fragments<As::Rows, R, D> rows(a, 16 * Warps::warp());
  Fragments<As::Columns, N, D> columns(b);
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    Left x[Warps::Tiles];
#pragma unroll
    for (int i = 0; i < Warps::Tiles; ++i)
      x[i] = rows.template at<Left>(2 * Warps::Count * i, k);
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
      Right y = columns.template at<Right>(2 * n, k);
#pragma unroll
      for (int i = 0; i < Warps::Tiles; ++i) {
        multiply8<T>(c.x[i][2 * n], x[i], y.x[0], y.x[1]);
        multiply8<T>(c.x[i][2 * n + 1], x[i], y.x[2], y.x[3]);
      }
    }
  }
}

/// tile.multiply: c += a b, outputs from weights and values. Weights are rounded
/// to T; two fragments of an accumulator side by side are a left operand.
template <class T, class Warps, int K, int D>
__device__ __forceinline__ void multiply(Accumulator<Warps, D> &c,
                                         const Accumulator<Warps, K> &a,
                                         SharedTile<K, D> b) {
  Fragments<As::TransposedColumns, K, D> columns(b);
#pragma unroll
  for (int k = 0; k < K / 16; ++k) {
    Left x[Warps::Tiles];
#pragma unroll
    for (int i = 0; i < Warps::Tiles; ++i) {
      const auto &left = a.x[i][2 * k], &right = a.x[i][2 * k + 1];
      x[i] = {{pack<T>(left[0], left[1]), pack<T>(left[2], left[3]),
               pack<T>(right[0], right[1]), pack<T>(right[2], right[3])}};
    }
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      Right y = columns.template at<Right>(2 * k, n);
#pragma unroll
      for (int i = 0; i < Warps::Tiles; ++i) {
        multiply8<T>(c.x[i][2 * n], x[i], y.x[0], y.x[1]);
        multiply8<T>(c.x[i][2 * n + 1], x[i], y.x[2], y.x[3]);
      }
    }
  }
}

} // namespace burst
