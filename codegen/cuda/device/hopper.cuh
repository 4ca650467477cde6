//===- hopper.cuh - warp specialization, TMA, wgmma -------------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels of sm_90a have beside the rest of the library. Consumer warps are
// whole warpgroups with 16 rows for each warp, and hold accumulators as wgmma
// does: warp w has rows 16 w to 16 w + 15 either way. So the functions of the
// recurrence (softmax.cuh) serve both kinds of kernels.
//
//===----------------------------------------------------------------------===//

#if __CUDA_ARCH_FEAT_SM90_ALL
namespace burst {

//===----------------------------------------------------------------------===//
// Warp specialization
//===----------------------------------------------------------------------===//

/// Whether a warp is behind the consumer warps.
template <class Warps> __device__ __forceinline__ bool isProducer() {
  return threadIdx.x >= Warps::Threads;
}
/// The thread that does what the producer has to do.
template <class Warps> __device__ __forceinline__ bool isElected() {
  return threadIdx.x == Warps::Threads;
}
/// Whether a warp is behind that of the elected thread. All lanes shuffle, so that
/// the compiler knows the result to be uniform.
template <class Warps> __device__ __forceinline__ bool isMaskWarp() {
  return __shfl_sync(~0u, threadIdx.x / 32, 0) > Warps::Count;
}
template <int Registers> __device__ __forceinline__ void giveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers> __device__ __forceinline__ void takeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// A CUtensorMap: a parameter of a kernel.
struct __align__(64) TensorMap {
  u64 opaque[16];
};

/// Where a box begins in a tensor; the last dimension is the row's.
template <int Rank> struct Box {
  const TensorMap *map;
  int at[Rank];
};
template <class... Index>
__device__ __forceinline__ Box<sizeof...(Index)> boxOf(const TensorMap &map,
                                                       Index... index) {
  return {&map, {int(index)...}};
}

/// Begins a TMA load of a box to shared memory, from `column` of its rows on.
__device__ __forceinline__ void copyBox(u32 to, const Box<4> &box, int column,
                                        u32 barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::"
               "complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
               "l"(box.map), "r"(barrier), "r"(box.at[3] + column),
               "r"(box.at[2]), "r"(box.at[1]), "r"(box.at[0])
               : "memory");
}

/// Makes what this thread wrote to shared memory visible to copies and products.
__device__ __forceinline__ void fenceProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

__device__ __forceinline__ void initialise(u32 barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}
/// Arrives, and says how many bytes will come before the phase may end.
__device__ __forceinline__ void arriveExpecting(u32 barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   barrier),
               "r"(bytes)
               : "memory");
}
#ifdef BURST_SPINS
/// In debug builds waiting is bounded: BURST_SPINS questions, a microsecond apart.
/// Then the kernel traps. What a kernel says before it traps is lost, and a call
/// would serialise products; so the error tells a bit of the barrier's number, which
/// is its place / 8: where bit BURST_SPIN_BIT is set, an illegal address is written.
__device__ __forceinline__ void waitInVain(u32 barrier) {
#ifdef BURST_SPIN_BIT
  if (barrier / 8 >> BURST_SPIN_BIT & 1)
    asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(u64(8)), "r"(barrier)
                 : "memory");
  asm volatile("nanosleep.u32 1000000;"); // until that has been refused
#endif
  asm volatile("trap;");
}
/// Waits until the phase of this parity has ended.
__device__ __forceinline__ void waitFor(u32 barrier, u32 parity) {
#pragma unroll 1
  for (u32 spin = 0; spin < BURST_SPINS; ++spin) {
    u32 done;
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    if (done)
      return;
    asm volatile("nanosleep.u32 1000;");
  }
  waitInVain(barrier);
}
#else
/// Waits until the phase of this parity has ended.
__device__ __forceinline__ void waitFor(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain_%=:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra ready_%=;\nbra again_%=;\nready_%=:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
#endif

/// A stage to be filled, and the barrier that says when it is.
template <class Tile> struct Stage {
  Tile tile;
  u32 full;
};

/// cuda.tma_load, a panel at a time.
template <class Tile>
__device__ __forceinline__ void tmaLoad(Stage<Tile> stage, const Box<4> &box) {
#pragma unroll
  for (int column = 0; column < Tile::Columns; column += Tile::Width)
    copyBox(stage.tile.base + column * (Tile::Rows * 2), box, column, stage.full);
}

/// Mask bits of pairs of rows and columns at `base`: bit c % 32 of a word is that of
/// column c. Words of one row lie `Rows` words apart, so that those of rows side by
/// side are in different banks.
template <int Rows_, int Columns_> struct SharedMaskBits {
  static constexpr int Rows = Rows_, Columns = Columns_;
  static constexpr int Words = (Columns + 31) / 32; ///< of a row
  static constexpr int Bytes = Rows * Words * 4;
  /// The warps behind that of the producer's thread.
  static constexpr int Writers = 3;
  static_assert(Rows % 32 == 0, "a lane has a row");

  u32 base;

  __device__ __forceinline__ u32 word(int row, int n) const {
    return base + 4 * (n * Rows + row);
  }
};

/// cuda.pipeline: stages for tiles at `tiles`, and from `barriers` on a full barrier
/// for each (its tile was written), then an empty barrier for each (its tile was
/// read). Each role has its own index and parity. Tiles that threads write have
/// `Writers`: warps, which arrive when their lanes are done.
template <class Tile, int Stages> struct Pipeline {
  static constexpr int BarrierBytes = 16 * Stages;
  u32 tiles, barriers;
  int index = 0;
  u32 parity = 0;

  /// By one thread, in front of a CTA-wide barrier.
  __device__ __forceinline__ void open(int readers) const {
    int writers = 1;
    if constexpr (requires { Tile::Writers; })
      writers = Tile::Writers;
    for (int stage = 0; stage < Stages; ++stage) {
      initialise(barriers + 8 * stage, writers);
      initialise(barriers + 8 * (Stages + stage), readers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ __forceinline__ Pipeline(u32 tiles, u32 barriers, int readers)
      : tiles(tiles), barriers(barriers) {
    if (threadIdx.x == 0)
      open(readers);
  }

  __device__ __forceinline__ Tile tile() const {
    return {tiles + index * Tile::Bytes};
  }
  __device__ __forceinline__ u32 full() const { return barriers + 8 * index; }
  __device__ __forceinline__ u32 empty() const { return full() + 8 * Stages; }
  __device__ __forceinline__ void advance() {
    if (++index == Stages) {
      index = 0;
      parity ^= 1;
    }
  }

  /// cuda.producer_acquire: of a barrier that was just initialised, the phase before
  /// has ended.
  __device__ __forceinline__ Stage<Tile> producerAcquire() const {
    waitFor(empty(), parity ^ 1);
    arriveExpecting(full(), Tile::Bytes);
    return {tile(), full()};
  }
  __device__ __forceinline__ Tile producerAcquire() const
    requires requires { Tile::Writers; }
  {
    waitFor(empty(), parity ^ 1);
    return tile();
  }
  /// cuda.producer_commit
  __device__ __forceinline__ void producerCommit() { advance(); }
  __device__ __forceinline__ void producerCommit()
    requires requires { Tile::Writers; }
  {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      arrive(full());
    advance();
  }
  /// cuda.consumer_wait
  __device__ __forceinline__ Tile consumerWait() const {
    waitFor(full(), parity);
    return tile();
  }
  /// cuda.consumer_release: an arrival for each warp, whose lanes are done.
  __device__ __forceinline__ void consumerRelease() {
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      arrive(empty());
    advance();
  }
};

/// cuda.clear: rows from `count` on become 0; the consumer warps synchronize.
/// Rows of a panel lie side by side.
template <class Warps, int R, int C>
__device__ __forceinline__ void clear(SharedTile<R, C> tile, int count) {
  if (count >= R)
    return;
  constexpr int row = SharedTile<R, C>::Width * 2, panel = R * row;
#pragma unroll 1
  for (u32 begin = tile.base; begin < tile.base + R * C * 2; begin += panel)
#pragma unroll 1
    for (int n = count * row + threadIdx.x * 16; n < panel; n += Warps::Threads * 16)
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(begin + n),
                   "r"(0)
                   : "memory");
  fenceProxy();
  asm volatile("bar.sync 1, %0;" ::"n"(Warps::Threads) : "memory");
}

//===----------------------------------------------------------------------===//
// Mask bits
//===----------------------------------------------------------------------===//

/// cuda.mask_bits: set where `keeps(row, column)`. A lane computes a word of its row
/// at a time, several columns unrolled as far as registers allow, of which three
/// warpgroups of consumers leave few.
template <class Warps, int R, int C, class F>
__device__ __forceinline__ void maskBits(SharedMaskBits<R, C> bits, F keeps) {
  constexpr int groups = R / 32, all = groups * SharedMaskBits<R, C>::Words;
  constexpr int Columns = Warps::Count > 8 ? 2 : 8;
  int warp = threadIdx.x / 32 - Warps::Count - 1, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int n = warp; n < all; n += SharedMaskBits<R, C>::Writers) {
    int row = n % groups * 32 + lane, begin = n / groups * 32;
    u32 word = 0;
#pragma unroll Columns
    for (int bit = 0; bit < 32; ++bit)
      word |= u32(keeps(row, begin + bit)) << bit;
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(bits.word(row, n / groups)),
                 "r"(word)
                 : "memory");
  }
}

/// cuda.apply_mask_bits
template <class Warps, int R, int C>
__device__ __forceinline__ void applyMaskBits(Accumulator<Warps, C> &s,
                                              SharedMaskBits<R, C> bits) {
#pragma unroll
  for (int i = 0; i < Warps::Tiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int n = 0; n < SharedMaskBits<R, C>::Words; ++n) {
        u32 word;
        asm volatile("ld.shared.b32 %0, [%1];"
                     : "=r"(word)
                     : "r"(bits.word(Warps::row(i, half), n))
                     : "memory");
        word >>= Warps::column();
#pragma unroll
        for (int j = 4 * n; j < min(4 * n + 4, C / 8); ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (!(word >> (8 * (j % 4) + e) & 1))
              s.x[i][j][2 * half + e] = -infinity();
      }
}

//===----------------------------------------------------------------------===//
// Ping-pong scheduling
//===----------------------------------------------------------------------===//

/// Consumer warpgroup w begins products when the one before it has signalled, by
/// named barrier 2 + w, of the warps of both. Barrier 0 is `synchronize`, 1 is that
/// of `clear`.
template <class Warps> struct PingPong {
  static constexpr int Warpgroups = Warps::Count / 4;
  static_assert(Warpgroups > 1, "ping-pong is between warpgroups");

  static __device__ __forceinline__ int warpgroup() { return threadIdx.x / 128; }

  /// cuda.ping_pong_begin: the last warpgroup signals, so that the first may begin.
  static __device__ __forceinline__ void begin() {
    if (warpgroup() == Warpgroups - 1)
      signal();
  }
  /// cuda.ping_pong_wait
  static __device__ __forceinline__ void wait() {
    asm volatile("bar.sync %0, 256;" ::"r"(2 + warpgroup()) : "memory");
  }
  /// cuda.ping_pong_signal
  static __device__ __forceinline__ void signal() {
    int next = warpgroup() + 1 == Warpgroups ? 0 : warpgroup() + 1;
    asm volatile("bar.arrive %0, 256;" ::"r"(2 + next) : "memory");
  }
  /// cuda.ping_pong_end: the first warpgroup takes the last signal, of which none is
  /// left then.
  static __device__ __forceinline__ void end() {
    if (warpgroup() == 0)
      wait();
  }
};

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// What a product must know of a tile from `address` on: eight rows of a panel
/// behind eight, how rows are permuted and, for columns of the product that lie in
/// several panels, how far apart these are.
template <int R, int C> __device__ __forceinline__ u64 describe(u32 address) {
  constexpr int width = SharedTile<R, C>::Width;
  constexpr u64 mode = width == 64 ? 1 : width == 32 ? 2 : 3;
  constexpr u64 panel = R * width * 2, eight = 8 * width * 2;
  return u64((address & 0x3ffff) >> 4) | panel >> 4 << 16 | eight >> 4 << 32 |
         mode << 62;
}

/// Registers of products may change, or have changed.
__device__ __forceinline__ void fenceProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Of this warp, as a number that the compiler knows to be uniform: by a shuffle,
/// which stays in the loop where it is asked for.
__device__ __forceinline__ int uniformWarpgroup() {
  return __shfl_sync(~0u, threadIdx.x / 128, 0);
}

/// cuda.multiply_async by rows: c = a b^T, or c += a b^T, of the 64 rows that a
/// warpgroup has.
template <class T, bool Accumulates, class Warps, int R, int N, int D>
__device__ __forceinline__ void
beginMultiplyTransposed(Accumulator<Warps, N> &c, SharedTile<R, D> a,
                        SharedTile<N, D> b, int warpgroup) {
  static_assert(Warps::Tiles == 1 && Warps::Count % 4 == 0, "whole warpgroups");
  constexpr int width = SharedTile<R, D>::Width;
  u64 left = describe<R, D>(a.base + warpgroup * (64 * width * 2)),
      right = describe<N, D>(b.base);
  fenceProducts();
#pragma unroll
  for (int k = 0; k < D; k += 16) {
    int panel = k / width, inside = k % width * 2;
    Products<T, N>::tiles(c.x[0], left + (panel * (R * width * 2) + inside) / 16,
                          right + (panel * (N * width * 2) + inside) / 16,
                          Accumulates || k > 0);
  }
  commitProducts();
}

/// Weights as left operands of products: 16 columns are four registers.
template <class Warps, class T, int C> struct Weights {
  u32 x[C / 16][4];
};

/// cuda.round
template <class Warps, class T, int C>
__device__ __forceinline__ void round(const Accumulator<Warps, C> &s,
                                      Weights<Warps, T, C> &weights) {
  static_assert(Warps::Tiles == 1, "whole warpgroups");
#pragma unroll
  for (int k = 0; k < C / 16; ++k) {
    const auto &left = s.x[0][2 * k], &right = s.x[0][2 * k + 1];
    weights.x[k][0] = pack<T>(left[0], left[1]);
    weights.x[k][1] = pack<T>(left[2], left[3]);
    weights.x[k][2] = pack<T>(right[0], right[1]);
    weights.x[k][3] = pack<T>(right[2], right[3]);
  }
}

/// cuda.multiply_async of weights: c = a b, or c += a b.
template <class T, bool Accumulates, class Warps, int K, int D>
__device__ __forceinline__ void beginMultiply(Accumulator<Warps, D> &c,
                                              const Weights<Warps, T, K> &a,
                                              SharedTile<K, D> b) {
  static_assert(Warps::Tiles == 1 && Warps::Count % 4 == 0, "whole warpgroups");
  constexpr int width = SharedTile<K, D>::Width;
  const u64 right = describe<K, D>(b.base);
  fenceProducts();
#pragma unroll
  for (int k = 0; k < K / 16; ++k)
    Products<T, D>::weights(c.x[0], a.x[k], right + k * (16 * width * 2) / 16,
                            Accumulates || k > 0);
  commitProducts();
}

/// cuda.await: all but the `Pending` newest products are done, and c may be read.
template <int Pending, class Warps, int N>
__device__ __forceinline__ void await(Accumulator<Warps, N> &c) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
#pragma unroll
  for (int j = 0; j < N / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      asm volatile("" : "+f"(c.x[0][j][e])::"memory");
}

} // namespace burst
#endif
