//===- wgmma.cuh - asynchronous products of warpgroups ----------*- CUDA -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instruction takes its registers one by one, and how many depends on the
// columns of the product.
//
//===----------------------------------------------------------------------===//

#if __CUDA_ARCH_FEAT_SM90_ALL
namespace burst {

/// c (64 x N) = a b, or c + a b where it accumulates; a is 64 x 16, b is 16 x N.
/// `tiles` takes descriptors of a and b as rows in shared memory, each row of b a
/// column of the product; `weights` takes a in registers, and b as it lies.
template <class T, int N> struct Products;

#define BURST_4(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define BURST_SUMS_16 BURST_4(0), BURST_4(1)
#define BURST_SUMS_32 BURST_SUMS_16, BURST_4(2), BURST_4(3)
#define BURST_SUMS_48 BURST_SUMS_32, BURST_4(4), BURST_4(5)
#define BURST_SUMS_64 BURST_SUMS_48, BURST_4(6), BURST_4(7)
#define BURST_SUMS_80 BURST_SUMS_64, BURST_4(8), BURST_4(9)
#define BURST_SUMS_96 BURST_SUMS_80, BURST_4(10), BURST_4(11)
#define BURST_SUMS_112 BURST_SUMS_96, BURST_4(12), BURST_4(13)
#define BURST_SUMS_128 BURST_SUMS_112, BURST_4(14), BURST_4(15)
#define BURST_SUMS_144 BURST_SUMS_128, BURST_4(16), BURST_4(17)
#define BURST_SUMS_160 BURST_SUMS_144, BURST_4(18), BURST_4(19)
#define BURST_SUMS_176 BURST_SUMS_160, BURST_4(20), BURST_4(21)
#define BURST_SUMS_192 BURST_SUMS_176, BURST_4(22), BURST_4(23)
#define BURST_SUMS_208 BURST_SUMS_192, BURST_4(24), BURST_4(25)
#define BURST_SUMS_224 BURST_SUMS_208, BURST_4(26), BURST_4(27)
#define BURST_SUMS_240 BURST_SUMS_224, BURST_4(28), BURST_4(29)
#define BURST_SUMS_256 BURST_SUMS_240, BURST_4(30), BURST_4(31)
#define BURST_NAMES_16 "%0,%1,%2,%3,%4,%5,%6,%7"
#define BURST_NAMES_32 BURST_NAMES_16 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define BURST_NAMES_48 BURST_NAMES_32 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define BURST_NAMES_64 BURST_NAMES_48 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define BURST_NAMES_80 BURST_NAMES_64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define BURST_NAMES_96 BURST_NAMES_80 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define BURST_NAMES_112 BURST_NAMES_96 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define BURST_NAMES_128 BURST_NAMES_112 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define BURST_NAMES_144 BURST_NAMES_128 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define BURST_NAMES_160 BURST_NAMES_144 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define BURST_NAMES_176 BURST_NAMES_160 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define BURST_NAMES_192 BURST_NAMES_176 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define BURST_NAMES_208 BURST_NAMES_192 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define BURST_NAMES_224 BURST_NAMES_208 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define BURST_NAMES_240 BURST_NAMES_224 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define BURST_NAMES_256 BURST_NAMES_240 ",%120,%121,%122,%123,%124,%125,%126,%127"

#define BURST_PRODUCTS(T, N, i0, i1, i2, i3, i4, i5)                               \
  template <> struct Products<T, N> {                                              \
    static __device__ __forceinline__ void tiles(float (&c)[N / 8][4], u64 a,      \
                                                 u64 b, bool accumulates) {        \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\n"               \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T     \
                   " {" BURST_NAMES_##N "}, %" #i0 ", %" #i1                       \
                   ", p, 1, 1, 0, 0;\n}"                                           \
                   : BURST_SUMS_##N                                                \
                   : "l"(a), "l"(b), "r"(int(accumulates)));                       \
    }                                                                              \
    static __device__ __forceinline__ void                                         \
    weights(float (&c)[N / 8][4], const u32 (&a)[4], u64 b, bool accumulates) {    \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\n"               \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T     \
                   " {" BURST_NAMES_##N "}, {%" #i0 ",%" #i1 ",%" #i2 ",%" #i3     \
                   "}, %" #i4 ", p, 1, 1, 1;\n}"                                   \
                   : BURST_SUMS_##N                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),           \
                     "r"(int(accumulates)));                                       \
    }                                                                              \
  };
#define BURST_SIZE(N, i0, i1, i2, i3, i4, i5)                                      \
  BURST_PRODUCTS(bf16, N, i0, i1, i2, i3, i4, i5)                                  \
  BURST_PRODUCTS(f16, N, i0, i1, i2, i3, i4, i5)

BURST_SIZE(16, 8, 9, 10, 11, 12, 13)
BURST_SIZE(32, 16, 17, 18, 19, 20, 21)
BURST_SIZE(48, 24, 25, 26, 27, 28, 29)
BURST_SIZE(64, 32, 33, 34, 35, 36, 37)
BURST_SIZE(80, 40, 41, 42, 43, 44, 45)
BURST_SIZE(96, 48, 49, 50, 51, 52, 53)
BURST_SIZE(112, 56, 57, 58, 59, 60, 61)
BURST_SIZE(128, 64, 65, 66, 67, 68, 69)
BURST_SIZE(144, 72, 73, 74, 75, 76, 77)
BURST_SIZE(160, 80, 81, 82, 83, 84, 85)
BURST_SIZE(176, 88, 89, 90, 91, 92, 93)
BURST_SIZE(192, 96, 97, 98, 99, 100, 101)
BURST_SIZE(208, 104, 105, 106, 107, 108, 109)
BURST_SIZE(224, 112, 113, 114, 115, 116, 117)
BURST_SIZE(240, 120, 121, 122, 123, 124, 125)
BURST_SIZE(256, 128, 129, 130, 131, 132, 133)

} // namespace burst
#endif
