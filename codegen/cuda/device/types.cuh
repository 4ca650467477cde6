//===- types.cuh - numbers, and conversions between them --------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device library: what the text of a kernel calls. NVRTC compiles it in
// front of each kernel, without a header of CUDA's, so that a kernel compiles in
// a fraction of a second and reads as a whole.
//
// A tile op of the IR is a function here, of the same name where C++ allows it.
// Indices into arrays of registers are constants after unrolling: an array that
// is indexed by a variable lives in memory.
//
//===----------------------------------------------------------------------===//

namespace burst {

using u8 = unsigned char;
using i8 = signed char;
using i16 = short;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

struct bf16 {
  u16 bits;
};
struct f16 {
  u16 bits;
};

__device__ __forceinline__ float infinity() {
  return __int_as_float(0x7f800000);
}
__device__ __forceinline__ float notANumber() {
  return __int_as_float(0x7fc00000);
}

/// 2^x; subnormal results are 0, and 2^-inf is 0.
__device__ __forceinline__ float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float log2(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// What a product takes: two numbers in a register, `low` in its lower half.
template <class T> __device__ u32 pack(float low, float high);
template <>
__device__ __forceinline__ u32 pack<bf16>(float low, float high) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
__device__ __forceinline__ u32 pack<f16>(float low, float high) {
  u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// arith.extf and arith.truncf.
template <class T> __device__ T convert(float x) = delete;
template <> __device__ __forceinline__ float convert<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 convert<bf16>(float x) {
  bf16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
  return rounded;
}
template <> __device__ __forceinline__ f16 convert<f16>(float x) {
  f16 rounded;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
  return rounded;
}
template <> __device__ __forceinline__ double convert<double>(float x) { return x; }
/// Rounds once: what a float cannot hold is left in its last bit, which stands
/// for all behind it.
template <class T> __device__ __forceinline__ T convert(double x) {
  float cut = __double2float_rz(x);
  if (cut != x && x == x)
    cut = __int_as_float(__float_as_int(cut) | 1);
  return convert<T>(cut);
}
template <> __device__ __forceinline__ float convert<float>(double x) { return x; }
template <> __device__ __forceinline__ double convert<double>(double x) { return x; }
template <class T> __device__ __forceinline__ T convert(bf16 x) {
  return T(__int_as_float(u32(x.bits) << 16));
}
template <class T> __device__ __forceinline__ T convert(f16 x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return T(wide);
}

/// arith.bitcast
template <class To, class From> __device__ __forceinline__ To bitcast(From x) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To y;
  memcpy(&y, &x, sizeof(To));
  return y;
}

/// The low `Width` bits of an integer, with and without a sign.
template <class T, int Width> __device__ __forceinline__ T wrap(i64 x) {
  return T(i64(u64(x) << (64 - Width)) >> (64 - Width));
}
template <class T, int Width> __device__ __forceinline__ T low(i64 x) {
  return T(u64(x) << (64 - Width) >> (64 - Width));
}
__device__ __forceinline__ bool lowBit(i64 x) { return x & 1; }

/// Quotients rounded down and up. A divisor of 0 gives some number.
template <class T> __device__ __forceinline__ T floorDivide(T a, T b) {
  T quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
template <class T> __device__ __forceinline__ T ceilDivide(T a, T b) {
  T quotient = a / b;
  return quotient + (a % b != 0 && (a < 0) == (b < 0));
}

/// A product that is rounded, whatever is added to it.
__device__ __forceinline__ float product(float a, float b) {
  return __fmul_rn(a, b);
}
__device__ __forceinline__ double product(double a, double b) {
  return __dmul_rn(a, b);
}

/// arith.maximumf and minimumf: NaN stays, and +0 is more than -0.
__device__ __forceinline__ float maximum(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ __forceinline__ float minimum(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ __forceinline__ double maximum(double a, double b) {
  double y;
  asm("max.f64 %0, %1, %2;" : "=d"(y) : "d"(a), "d"(b));
  return a != a || b != b ? a + b : y;
}
__device__ __forceinline__ double minimum(double a, double b) {
  double y;
  asm("min.f64 %0, %1, %2;" : "=d"(y) : "d"(a), "d"(b));
  return a != a || b != b ? a + b : y;
}

/// How the `Count` warps that do a task (the consumer warps of a warp-specialized
/// kernel, else all of a CTA) share a tile of `Rows` rows: warp w has rows
/// 16 (i Count + w) to 16 (i Count + w) + 15 for i below `Tiles`.
template <int Rows_, int Count_> struct Warps {
  static constexpr int Rows = Rows_, Count = Count_;
  static constexpr int Tiles = Rows / (16 * Count);
  static constexpr int Threads = 32 * Count;
  static_assert(Rows == 16 * Count * Tiles, "each warp has as many rows");

  static __device__ __forceinline__ int warp() { return threadIdx.x / 32; }
  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
  /// The first row of a warp's tile i.
  static __device__ __forceinline__ int begin(int i) {
    return 16 * (i * Count + warp());
  }
  /// The row of the upper (0) or lower (1) half of an accumulator that a thread
  /// holds, and the first of its two columns in each eight.
  static __device__ __forceinline__ int row(int i, int half) {
    return begin(i) + 8 * half + lane() / 4;
  }
  static __device__ __forceinline__ int column() { return 2 * (lane() % 4); }
};

} // namespace burst
