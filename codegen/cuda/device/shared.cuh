//===- shared.cuh - tiles in shared memory ----------------------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

namespace burst {

/// Rows x Columns numbers of 16 bits at `base`, an offset into shared memory, a
/// multiple of 128.
///
/// Columns lie in panels, so that a row of a panel is 128, 64 or 32 bytes, and
/// panels one behind the other. Within 8 rows the chunks of 16 bytes are
/// permuted (chunk XOR row), so that the 8 rows that ldmatrix reads of one chunk
/// lie in different banks.
template <int Rows_, int Columns_> struct SharedTile {
  static constexpr int Rows = Rows_, Columns = Columns_;
  static_assert(Rows % 8 == 0 && Columns % 16 == 0, "whole fragments");
  /// Of a panel, in numbers and in chunks.
  static constexpr int Width = Columns % 64 == 0 ? 64 : Columns % 32 == 0 ? 32 : 16;
  static constexpr int Chunks = Width / 8;
  static constexpr int Bytes = Rows * Columns * 2;

  u32 base;

  /// Where columns 8 c to 8 c + 7 of a row lie.
  __device__ __forceinline__ u32 chunk(int row, int c) const {
    int permuted = (c % Chunks) ^ (row / (8 / Chunks) % Chunks);
    return base + (c / Chunks) * (Rows * Width * 2) + row * (Width * 2) +
           permuted * 16;
  }

  /// From where chunk 0 or 1 of a row lies to where chunk 2 k or 2 k + 1 of a row
  /// 8 r rows below lies: rows repeat their permutation after 8, and 2 k only
  /// changes bits that a row's begin does not have. So a thread keeps one address
  /// for all fragments of an operand.
  static __device__ __forceinline__ u32 from(u32 first, int r, int k) {
    constexpr int pairs = Chunks / 2;
    return (first ^ (k % pairs * 32)) + k / pairs * (Rows * Width * 2) +
           r * (8 * Width * 2);
  }
};

/// A tensor in memory: a parameter of a kernel.
template <class T, int Rank> struct Buffer {
  T *base;
  i64 step[Rank]; ///< between neighbours of a dimension
  i32 size[Rank];

  template <class... Index>
  __device__ __forceinline__ T &at(Index... index) const {
    static_assert(sizeof...(Index) == Rank, "an index for each dimension");
    T *element = base;
    int d = 0;
    ((element += i64(index) * step[d++]), ...);
    return *element;
  }
  /// The same of indices, of 32 or 64 bits, that are moved into the tensor.
  template <class... Index>
  __device__ __forceinline__ T &within(Index... index) const {
    T *element = base;
    int d = 0;
    ((element += max(Index(0), min(index, Index(size[d] - 1))) * step[d], ++d),
     ...);
    return *element;
  }
};

/// Rows of a tensor, `pitch` numbers apart; the first `count` exist.
template <class T> struct GlobalRows {
  T *base;
  i64 pitch;
  int count;
};

/// `count` rows of a tensor from an element on, along a dimension.
template <int Dim, class T, int Rank, class... Index>
__device__ __forceinline__ GlobalRows<T> rowsOf(const Buffer<T, Rank> &buffer,
                                                int count, Index... index) {
  return {&buffer.at(index...), buffer.step[Dim], count};
}

/// Where a block's shared memory begins.
__device__ __forceinline__ u32 sharedMemory() {
  extern __shared__ __align__(1024) u8 memory[];
  return u32(__cvta_generic_to_shared(memory));
}

/// 16 bytes from memory to shared memory, or zeros.
__device__ __forceinline__ void copyChunk(u32 to, const void *from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(exists ? 16 : 0)
               : "memory");
}

/// cuda.copy: begins to copy `Depth` columns of `from`; what lies behind its
/// columns and rows becomes 0. All threads of the block take part, those side by
/// side in rows of one panel, which lie in different banks.
template <class Warps, int Depth, int R, int C, class T>
__device__ __forceinline__ void copy(SharedTile<R, C> to, GlobalRows<T> from) {
  static_assert(Depth % 8 == 0 && Depth <= C, "rows are whole chunks");
  constexpr int Chunks = SharedTile<R, C>::Chunks;
  constexpr int Rows = Warps::Threads / Chunks;
  // The remainder says how few there are: the compiler folds the permutation.
  int first = threadIdx.x / Chunks % Rows, c = threadIdx.x % Chunks;
  const T *source = from.base + first * from.pitch + 8 * c;
#pragma unroll
  for (int panel = 0; panel < C / 8 / Chunks; ++panel)
#pragma unroll
    for (int n = 0; n < (R + Rows - 1) / Rows; ++n) {
      int row = first + n * Rows;
      if (R % Rows != 0 && row >= R)
        break;
      bool exists = row < from.count && panel * Chunks + c < Depth / 8;
      copyChunk(to.chunk(row, panel * Chunks + c),
                exists ? source + n * Rows * from.pitch + panel * Chunks * 8
                       : from.base,
                exists);
    }
}

/// cuda.commit
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// cuda.wait
template <int Pending> __device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
/// cuda.synchronize
__device__ __forceinline__ void synchronize() { __syncthreads(); }

} // namespace burst
