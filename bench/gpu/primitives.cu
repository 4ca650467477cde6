//===- primitives.cu - instructions of GPUs, one by one ---------*- CUDA -*-===//
//
// Behind the device library. What a GPU gives for them is compared with what the
// emulator of test/emulator gave for the same numbers, and how fast they can be is
// the ceiling of kernels.
//
//===----------------------------------------------------------------------===//

using namespace burst;

//===----------------------------------------------------------------------===//
// Truth
//===----------------------------------------------------------------------===//

/// Functions that the hardware rounds as it likes, and conversions.
extern "C" __global__ void functions(const float *x, float *exponentials, float *logarithms,
                                     u16 *bf16s, u16 *f16s) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  exponentials[i] = burst::exp2(x[i]);
  logarithms[i] = burst::log2(x[i]);
  bf16s[i] = convert<bf16>(x[i]).bits;
  f16s[i] = convert<f16>(x[i]).bits;
}

/// c = a b^T: 64 rows, N columns, a depth of D, by ldmatrix and mma.
template <class T, int N, int D>
__device__ __forceinline__ void rows(const T *a, const T *b, float *c) {
  using Four = Warps<64, 4>;
  SharedTile<64, D> left{sharedMemory()};
  SharedTile<N, D> right{left.base + left.Bytes};
  copy<Four, D>(left, GlobalRows<const T>{a, D, 64});
  copy<Four, D>(right, GlobalRows<const T>{b, D, N});
  commit();
  wait<0>();
  synchronize();
  Accumulator<Four, N> sums;
  fill(sums, 0.f);
  multiplyTransposed<T>(sums, left, right);
  store<N>(sums, GlobalRows<float>{c, N, 64});
}

/// c = a b: 64 rows, D columns, a depth of K, by mma with ldmatrix.trans; a is
/// rounded in registers.
template <class T, int K, int D>
__device__ __forceinline__ void columns(const T *a, const T *b, float *c) {
  using Four = Warps<64, 4>;
  SharedTile<K, D> right{sharedMemory()};
  copy<Four, D>(right, GlobalRows<const T>{b, D, K});
  commit();
  wait<0>();
  synchronize();
  Accumulator<Four, K> left;
  load<K>(left, GlobalRows<const T>{a, K, 64});
  Accumulator<Four, D> sums;
  fill(sums, 0.f);
  multiply<T>(sums, left, right);
  store<D>(sums, GlobalRows<float>{c, D, 64});
}

#define PRODUCT(NAME, KIND, T, A, B)                                                   \
  extern "C" __global__ void __launch_bounds__(128)                                    \
  NAME(const T *a, const T *b, float *c) {                                             \
    KIND<T, A, B>(a, b, c);                                                            \
  }
PRODUCT(mma_rows_bf16_64_64, rows, bf16, 64, 64)
PRODUCT(mma_rows_bf16_32_96, rows, bf16, 32, 96)
PRODUCT(mma_rows_f16_64_80, rows, f16, 64, 80)
PRODUCT(mma_columns_bf16_64_64, columns, bf16, 64, 64)
PRODUCT(mma_columns_f16_32_96, columns, f16, 32, 96)

//===----------------------------------------------------------------------===//
// Ceilings
//===----------------------------------------------------------------------===//

/// Pairs of bf16 in [1, 2) with either sign, or zeros: what tensor cores draw
/// depends on the numbers.
__device__ __forceinline__ u32 someNumbers(u32 n, u32 mask) {
  n = (n ^ 61 ^ threadIdx.x << 16) * 2654435761u;
  return ((n & 0x807f807f) | 0x3f803f80) & mask;
}

/// `count` times eight products of 16x8x16 that do not wait for each other.
extern "C" __global__ void __launch_bounds__(256, 1) peak_mma(float *out, int count, u32 mask) {
  float sums[8][4] = {};
  Left a;
  u32 b[2] = {someNumbers(5, mask), someNumbers(6, mask)};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    a.x[i] = someNumbers(i, mask);
#pragma unroll 1
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 8; ++i)
      multiply8<bf16>(sums[i], a, b[0], b[1]);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    sum += sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

#if __CUDA_ARCH_FEAT_SM90_ALL

/// c = a b^T by wgmma with both operands in shared memory.
template <class T, int N, int D>
__device__ __forceinline__ void tiles(const T *a, const T *b, float *c) {
  using Four = Warps<64, 4>;
  SharedTile<64, D> left{sharedMemory()};
  SharedTile<N, D> right{left.base + left.Bytes};
  copy<Four, D>(left, GlobalRows<const T>{a, D, 64});
  copy<Four, D>(right, GlobalRows<const T>{b, D, N});
  commit();
  wait<0>();
  fenceProxy();
  synchronize();
  Accumulator<Four, N> sums;
  fill(sums, 0.f);
  beginMultiplyTransposed<T, false>(sums, left, right, uniformWarpgroup());
  await<0>(sums);
  store<N>(sums, GlobalRows<float>{c, N, 64});
}

/// c = a b by wgmma with a in registers, and b as it lies.
template <class T, int K, int D>
__device__ __forceinline__ void weights(const T *a, const T *b, float *c) {
  using Four = Warps<64, 4>;
  SharedTile<K, D> right{sharedMemory()};
  copy<Four, D>(right, GlobalRows<const T>{b, D, K});
  commit();
  wait<0>();
  fenceProxy();
  synchronize();
  Accumulator<Four, K> left;
  load<K>(left, GlobalRows<const T>{a, K, 64});
  Accumulator<Four, D> sums;
  fill(sums, 0.f);
  Weights<Four, T, K> rounded;
  burst::round(left, rounded);
  beginMultiply<T, false>(sums, rounded, right);
  await<0>(sums);
  store<D>(sums, GlobalRows<float>{c, D, 64});
}

#define BOTH(N)                                                                        \
  PRODUCT(wgmma_tiles_bf16_##N##_64, tiles, bf16, N, 64)                               \
  PRODUCT(wgmma_weights_bf16_64_##N, weights, bf16, 64, N)
BOTH(64)
#if !FEW // of all shapes, to test what runs them
BOTH(80)
BOTH(96)
BOTH(112)
BOTH(128)
BOTH(144)
BOTH(160)
BOTH(176)
BOTH(192)
BOTH(208)
BOTH(224)
BOTH(240)
BOTH(256)
PRODUCT(wgmma_tiles_f16_64_96, tiles, f16, 64, 96)
PRODUCT(wgmma_tiles_bf16_64_80, tiles, bf16, 64, 80)
PRODUCT(wgmma_tiles_bf16_128_128, tiles, bf16, 128, 128)
PRODUCT(wgmma_weights_f16_32_64, weights, f16, 32, 64)
#endif

/// A tile by TMA, as it lies in shared memory: panel by panel, permuted.
template <int R, int C>
__device__ __forceinline__ void box(const TensorMap &map, u32 *out, int head, int row) {
  __shared__ __align__(8) u64 barrier;
  u32 full = u32(__cvta_generic_to_shared(&barrier));
  SharedTile<R, C> tile{sharedMemory()};
  if (threadIdx.x == 0) {
    initialise(full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  synchronize();
  if (threadIdx.x == 0) {
    arriveExpecting(full, tile.Bytes);
    tmaLoad(Stage<SharedTile<R, C>>{tile, full}, boxOf(map, 0, row, head, 0));
  }
  waitFor(full, 0);
  for (int i = threadIdx.x; i < tile.Bytes / 4; i += blockDim.x)
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(out[i]) : "r"(tile.base + 4 * i));
}
#define BOX(R, C)                                                                      \
  extern "C" __global__ void __launch_bounds__(128)                                    \
  tma_##R##_##C(const __grid_constant__ TensorMap map, u32 *out, int head, int row) {  \
    box<R, C>(map, out, head, row);                                                    \
  }
BOX(16, 80)
#if !FEW
BOX(64, 64)
BOX(32, 96)
BOX(128, 128)
#endif

/// `count` times a product of 64xNx64 by each warpgroup, both operands in shared
/// memory, or the left one in registers.
template <int N, bool Registers>
__device__ __forceinline__ void peak(float *out, int count, u32 mask) {
  using Group = Warps<128, 8>;
  SharedTile<128, 64> left{sharedMemory()};
  SharedTile<N, 64> right{left.base + left.Bytes};
  for (u32 i = threadIdx.x; i < (left.Bytes + right.Bytes) / 4; i += blockDim.x)
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(left.base + 4 * i), "r"(someNumbers(i, mask))
                 : "memory");
  fenceProxy();
  synchronize();
  Accumulator<Group, N> sums;
  fill(sums, 0.f);
  // In registers are weights: then the other operand has a column of the product in
  // each column, else in each row.
  u64 a = describe<128, 64>(left.base + __shfl_sync(~0u, threadIdx.x / 128, 0) * 8192),
      b = Registers ? describe<64, N>(right.base) : describe<N, 64>(right.base);
  u32 x[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    x[i] = someNumbers(i, mask);
#pragma unroll 1
  for (int n = 0; n < count; ++n) {
    fenceProducts();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (Registers)
        Products<bf16, N>::weights(sums.x[0], x, b + 128 * k, true);
      else
        Products<bf16, N>::tiles(sums.x[0], a + 2 * k, b + 2 * k, true);
    }
    commitProducts();
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  await<0>(sums);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < N / 8; ++j)
    sum += sums.x[0][j][0] + sums.x[0][j][3];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
#define PEAK(N, KIND, REGISTERS)                                                       \
  extern "C" __global__ void __launch_bounds__(256, 1)                                 \
  peak_wgmma_##KIND##_##N(float *out, int count, u32 mask) {                           \
    peak<N, REGISTERS>(out, count, mask);                                              \
  }
PEAK(64, tiles, false)
#if !FEW
PEAK(128, tiles, false)
PEAK(176, tiles, false)
PEAK(64, weights, true)
PEAK(128, weights, true)
#endif
#endif
