// Kernels for EmulatorTests. kernels.ptx is what NVRTC 13.0 makes of this text with
// -arch=compute_80 -lineinfo.

typedef unsigned int u32;
typedef unsigned short u16;

// out = in^T for a matrix of floats whose sides are multiples of 32, in tiles that
// 32x8 threads move through shared memory.
extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int j = 0; j < 32; j += 8)
    tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int j = 0; j < 32; j += 8)
    out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

__device__ __forceinline__ void copy(u32 to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ u32 address(const void *p) {
  return (u32)__cvta_generic_to_shared(p);
}

// 16-byte chunks of a row change places so that eight rows meet eight banks.
__device__ __forceinline__ u32 chunkOfA(int row, int chunk) {
  return row * 64 + ((chunk ^ (row >> 1 & 3)) << 4);
}
__device__ __forceinline__ u32 chunkOfB(int row, int chunk) {
  return row * 128 + ((chunk ^ (row & 7)) << 4);
}

// c = a b, bf16 to float, in tiles of 64x64 by 4 warps of 16 rows each; a step of
// the contraction is 32 long, and the next one is copied during this one.
extern "C" __global__ void __launch_bounds__(128)
product(const u16 *a, const u16 *b, float *c, int n, int k) {
  extern __shared__ __align__(128) unsigned char memory[];
  const u32 stage = 8192, tileA = address(memory), tileB = tileA + 4096;
  int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  a += (long)blockIdx.y * 64 * k;
  b += blockIdx.x * 64;
  auto load = [&](int step) {
    u32 at = (step & 1) * stage;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int t = threadIdx.x + i * 128;
      copy(tileA + at + chunkOfA(t / 4, t % 4), a + (long)(t / 4) * k + step * 32 + t % 4 * 8);
      copy(tileB + at + chunkOfB(t / 8, t % 8), b + (long)(step * 32 + t / 8) * n + t % 8 * 8);
    }
  };
  float sum[8][4] = {};
  load(0);
  commit();
#pragma unroll 1
  for (int step = 0; step < k / 32; ++step) {
    if (step + 1 < k / 32)
      load(step + 1);
    commit();
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    u32 at = (step & 1) * stage;
#pragma unroll
    for (int kk = 0; kk < 2; ++kk) {
      u32 x[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(tileA + at + chunkOfA(warp * 16 + (lane & 15), kk * 2 + (lane >> 4))));
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        u32 y[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
                     : "r"(tileB + at + chunkOfB(kk * 16 + (lane & 15), j * 2 + (lane >> 4))));
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float *d = sum[2 * j + h];
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                       "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                       : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * h]),
                         "r"(y[2 * h + 1]));
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int row = blockIdx.y * 64 + warp * 16 + lane / 4 + 8 * h;
      int column = blockIdx.x * 64 + j * 8 + lane % 4 * 2;
      *(float2 *)(c + (long)row * n + column) = make_float2(sum[j][2 * h], sum[j][2 * h + 1]);
    }
}

// The sum of n floats in one launch: each block adds its part to shared memory, the
// last block to arrive adds the parts.
extern "C" __global__ void reduce(const float *in, float *parts, u32 *arrived, float *out, int n) {
  __shared__ float warps[4];
  __shared__ bool isLast;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += in[i];
#pragma unroll
  for (int mask = 16; mask; mask /= 2)
    sum += __shfl_xor_sync(~0u, sum, mask);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = warps[0] + warps[1] + warps[2] + warps[3];
    __threadfence();
    isLast = atomicAdd(arrived, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (isLast && threadIdx.x == 0) {
    float total = 0;
    for (int i = 0; i < gridDim.x; ++i)
      total += parts[i];
    *out = total;
  }
}
