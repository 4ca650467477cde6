// A kernel for HopperTest. hopper.ptx is what NVRTC 13.0 makes of this text with
// -arch=compute_90a -lineinfo.

typedef unsigned int u32;
typedef unsigned long long u64;

struct __align__(64) Map {
  u64 opaque[16];
};

__device__ __forceinline__ u32 address(const void *p) {
  return (u32)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void init(u32 barrier, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}
__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain_%=:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra ready_%=;\nbra again_%=;\nready_%=:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void load(u32 to, const Map *map, u32 barrier, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),
               "l"(map), "r"(barrier), "r"(x), "r"(y)
               : "memory");
}
__device__ __forceinline__ void multiply(float (&d)[32], u64 a, u64 b, int accumulates) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,"
      "%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, p, 1, 1, 0, 1;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(accumulates));
}

// c = a b for tiles of 64x64: a warp brings tiles of a and b through a ring of two
// stages, a warpgroup multiplies them and sends its floats through shared memory.
extern "C" __global__ void __launch_bounds__(160)
product(const __grid_constant__ Map a, const __grid_constant__ Map b,
        const __grid_constant__ Map c, int k) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ __align__(8) u64 barriers[4];
  const u32 tile = 8192, tileA = address(memory), tileB = tileA + 2 * tile,
            full = address(barriers), empty = full + 16;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      init(full + 8 * stage, 1);
      init(empty + 8 * stage, 4);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  if (warp == 4) {
    if (lane == 0)
#pragma unroll 1
      for (int step = 0; step < k / 64; ++step) {
        u32 stage = step & 1, at = stage * tile;
        wait(empty + 8 * stage, (step / 2 & 1) ^ 1);
        expect(full + 8 * stage, 2 * tile);
        load(tileA + at, &a, full + 8 * stage, step * 64, blockIdx.y * 64);
        load(tileB + at, &b, full + 8 * stage, blockIdx.x * 64, step * 64);
      }
    return;
  }
  float sum[32];
  const u64 swizzle = 1ull << 62 | (u64)(1024 >> 4) << 32;
#pragma unroll 1
  for (int step = 0; step < k / 64; ++step) {
    u32 stage = step & 1, at = stage * tile;
    wait(full + 8 * stage, step / 2 & 1);
    u64 x = swizzle | (tileA + at) >> 4, y = swizzle | (tileB + at) >> 4;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int kk = 0; kk < 4; ++kk)
      multiply(sum, x + kk * 2, y + kk * 128, step > 0 || kk > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (lane == 0)
      arrive(empty + 8 * stage);
  }
  asm volatile("bar.sync 1, 128;" ::: "memory"); // all tiles are read
#pragma unroll
  for (int i = 0; i < 32; i += 2) {
    int row = warp * 16 + lane / 4 + (i & 2) * 4, column = i / 4 * 8 + lane % 4 * 2;
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(tileA + row * 256 + column * 4),
                 "f"(sum[i]), "f"(sum[i + 1])
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync 2, 128;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
                     &c),
                 "r"(tileA), "r"(blockIdx.x * 64), "r"(blockIdx.y * 64)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}
