//===- OpcodesTest.cpp - Each class of opcodes against the host -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Float.h"
#include "test/emulator/Text.h"

#include <cmath>
#include <limits>
#include <random>

using namespace burst::emulator;

namespace {

template <class T>
std::string registerOf(int index) {
  return (sizeof(T) == 8   ? "%rd"
          : sizeof(T) == 2 ? "%rs"
                           : "%r") +
         std::to_string(index);
}
template <class T>
std::string bits() {
  return ".b" + std::to_string(8 * sizeof(T));
}

/// The results of an instruction, one thread for each element. The text has D
/// for the destination and A, B, C for sources.
template <class R, class... Args>
std::vector<R> results(std::string instruction,
                       const std::vector<Args> &...values) {
  Memory memory;
  std::vector<uint64_t> inputs = {
      memory.add(values, "in", Memory::Access::ReadOnly)...};
  size_t count = std::max({values.size()...});
  uint64_t table = memory.add(inputs, "table", Memory::Access::ReadOnly);
  uint64_t out = memory.allocate(count * sizeof(R), "out");
  std::string body;
  int index = 0;
  auto argument = [&]<class T>(const std::vector<T> &) {
    body += "ld.global.u64 %rd10, [%rd2+" + std::to_string(8 * index) +
            "];\nmad.wide.u32 %rd11, %r1, " + std::to_string(sizeof(T)) +
            ", %rd10;\nld.global" + bits<T>() + " " +
            registerOf<T>(20 + index) + ", [%rd11];\n";
    std::string name(1, char('A' + index));
    for (size_t at = 0; (at = instruction.find(name, at)) != std::string::npos;)
      instruction.replace(at, 1, registerOf<T>(20 + index));
    ++index;
  };
  (argument(values), ...);
  for (size_t at = 0; (at = instruction.find('D', at)) != std::string::npos;)
    instruction.replace(at, 1, registerOf<R>(30));
  body += instruction + "\nmad.wide.u32 %rd12, %r1, " +
          std::to_string(sizeof(R)) + ", %rd1;\nst.global" + bits<R>() +
          " [%rd12], " + registerOf<R>(30) + ";\n";
  Module module = parsed(kernelOf(body));
  Arguments arguments;
  arguments.add(out).add(table);
  Outcome outcome =
      module.launch("k", {}, {uint32_t(count)}, 0, arguments, memory);
  EXPECT_TRUE(outcome.ok()) << instruction << "\n" << str(outcome);
  return memory.get<R>(out, count);
}

/// Expects F of each element.
template <class R, class F, class A, class... Args>
void expect(const std::string &instruction, F f, const std::vector<A> &a,
            const std::vector<Args> &...values) {
  std::vector<R> got = results<R>(instruction, a, values...);
  for (size_t i = 0; i < a.size(); ++i) {
    R want = f(a[i], values[i]...);
    if constexpr (std::is_floating_point_v<R>) {
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got[i])) << instruction << " of " << a[i];
      else
        EXPECT_EQ(got[i], want)
            << instruction << " of element " << i << ", " << a[i];
    } else {
      EXPECT_EQ(got[i], want)
          << instruction << " of element " << i << ", " << a[i];
    }
  }
}

// 40 threads: a full warp, and one with few lanes.
template <class T>
std::vector<T> integers(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values = {0,
                           1,
                           2,
                           T(-1),
                           T(-2),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::min(),
                           31};
  while (values.size() < 40)
    values.push_back(T(random() >> random() % 60));
  std::shuffle(values.begin(), values.end(), random);
  return values;
}
template <class T>
std::vector<T> nonzero(uint64_t seed) {
  std::vector<T> values = integers<T>(seed);
  for (T &value : values)
    value = value ? value : 3;
  return values;
}
std::vector<float> floats(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 10);
  std::vector<float> values = {0.0F,      -0.0F, 1.0F,   INFINITY,
                               -INFINITY, NAN,   1e-40F, 3.4e38F};
  while (values.size() < 40)
    values.push_back(normal(random));
  std::shuffle(values.begin(), values.end(), random);
  return values;
}
std::vector<uint32_t> small(uint32_t bound, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> values(40);
  for (uint32_t &value : values)
    value = uint32_t(random() % bound);
  return values;
}

using U = uint32_t;
using S = int32_t;
using UL = uint64_t;
using SL = int64_t;

TEST(Opcodes, Integers) {
  auto a = integers<U>(1), b = integers<U>(2), c = integers<U>(3);
  auto s = integers<S>(1), t = integers<S>(2);
  auto ul = integers<UL>(4), vl = integers<UL>(5);
  auto sl = integers<SL>(4), tl = integers<SL>(5);
  expect<U>("add.s32 D, A, B;", [](U x, U y) { return x + y; }, a, b);
  expect<U>("sub.u32 D, A, B;", [](U x, U y) { return x - y; }, a, b);
  expect<UL>("add.s64 D, A, B;", [](UL x, UL y) { return x + y; }, ul, vl);
  expect<U>("add.s32 D, A, -8;", [](U x) { return x - 8; }, a);
  expect<U>("mul.lo.s32 D, A, B;", [](U x, U y) { return x * y; }, a, b);
  expect<U>(
      "mul.hi.u32 D, A, B;", [](U x, U y) { return U(UL(x) * y >> 32); }, a, b);
  expect<S>(
      "mul.hi.s32 D, A, B;", [](S x, S y) { return S(SL(x) * y >> 32); }, s, t);
  expect<SL>("mul.wide.s32 D, A, B;", [](S x, S y) { return SL(x) * y; }, s, t);
  expect<UL>("mul.wide.u32 D, A, B;", [](U x, U y) { return UL(x) * y; }, a, b);
  expect<UL>("mul.lo.s64 D, A, B;", [](UL x, UL y) { return x * y; }, ul, vl);
  expect<UL>(
      "mul.hi.u64 D, A, B;",
      [](UL x, UL y) { return UL((unsigned __int128)(x)*y >> 64); }, ul, vl);
  expect<U>(
      "mad.lo.s32 D, A, B, C;", [](U x, U y, U z) { return x * y + z; }, a, b,
      c);
  expect<UL>(
      "mad.wide.s32 D, A, B, C;",
      [](S x, S y, UL z) { return UL(SL(x) * y) + z; }, s, t, ul);
  auto safe = [](auto x, auto y, auto f) {
    return x == std::numeric_limits<decltype(x)>::min() && y == -1
               ? decltype(x)(f == 0 ? x : 0)
           : f == 0 ? x / y
                    : x % y;
  };
  expect<S>(
      "div.s32 D, A, B;", [&](S x, S y) { return safe(x, y, 0); }, s,
      nonzero<S>(7));
  expect<S>(
      "rem.s32 D, A, B;", [&](S x, S y) { return safe(x, y, 1); }, s,
      nonzero<S>(7));
  expect<U>(
      "div.u32 D, A, B;", [](U x, U y) { return x / y; }, a, nonzero<U>(7));
  expect<UL>(
      "rem.u64 D, A, B;", [](UL x, UL y) { return x % y; }, ul, nonzero<UL>(7));
  expect<S>("min.s32 D, A, B;", [](S x, S y) { return std::min(x, y); }, s, t);
  expect<U>("max.u32 D, A, B;", [](U x, U y) { return std::max(x, y); }, a, b);
  expect<SL>(
      "max.s64 D, A, B;", [](SL x, SL y) { return std::max(x, y); }, sl, tl);
  expect<U>("neg.s32 D, A;", [](U x) { return 0 - x; }, a);
  expect<U>("abs.s32 D, A;", [](S x) { return x < 0 ? 0 - U(x) : U(x); }, s);
}

TEST(Opcodes, Bits) {
  auto a = integers<U>(1), b = integers<U>(2), c = integers<U>(3);
  auto s = integers<S>(1);
  auto ul = integers<UL>(4), vl = integers<UL>(5);
  auto by = small(70, 6), from = small(34, 7), count = small(34, 8);
  expect<U>("and.b32 D, A, B;", [](U x, U y) { return x & y; }, a, b);
  expect<UL>("or.b64 D, A, B;", [](UL x, UL y) { return x | y; }, ul, vl);
  expect<U>("xor.b32 D, A, B;", [](U x, U y) { return x ^ y; }, a, b);
  expect<U>("not.b32 D, A;", [](U x) { return ~x; }, a);
  expect<U>(
      "shl.b32 D, A, B;", [](U x, U n) { return n > 31 ? 0 : x << n; }, a, by);
  expect<U>(
      "shr.u32 D, A, B;", [](U x, U n) { return n > 31 ? 0 : x >> n; }, a, by);
  expect<S>(
      "shr.s32 D, A, B;", [](S x, U n) { return x >> std::min(n, 31U); }, s,
      by);
  expect<UL>(
      "shl.b64 D, A, B;", [](UL x, U n) { return n > 63 ? 0 : x << n; }, ul,
      by);
  expect<U>(
      "shf.l.wrap.b32 D, A, B, C;",
      [](U x, U y, U n) { return U((((UL(y) << 32 | x) << (n & 31)) >> 32)); },
      a, b, by);
  expect<U>(
      "shf.r.clamp.b32 D, A, B, C;",
      [](U x, U y, U n) { return U((UL(y) << 32 | x) >> std::min(n, 32U)); }, a,
      b, by);
  expect<U>(
      "bfe.u32 D, A, B, C;",
      [](U x, U f, U n) { return f > 31 ? 0 : U(x >> f & ((UL(1) << n) - 1)); },
      a, from, count);
  expect<S>(
      "bfe.s32 D, A, B, C;",
      [](S x, U f, U n) {
        return n == 0 ? 0
                      : S(SL(f > 31 ? (x < 0 ? -1 : 0) : SL(x) >> f)
                              << (64 - std::min(n, 32U)) >>
                          (64 - std::min(n, 32U)));
      },
      s, from, count);
  expect<U>(
      "bfi.b32 D, A, B, 4, 9;",
      [](U x, U y) { return (y & ~(0x1ffU << 4)) | (x & 0x1ff) << 4; }, a, b);
  expect<U>(
      "lop3.b32 D, A, B, C, 0xe8;",
      [](U x, U y, U z) { return (x & y) | (x & z) | (y & z); }, a, b, c);
  expect<U>(
      "prmt.b32 D, A, B, 0x5410;",
      [](U x, U y) { return (x & 0xffff) | y << 16; }, a, b);
  expect<U>(
      "prmt.b32 D, A, B, 0x7632;",
      [](U x, U y) { return x >> 16 | (y & 0xffff0000); }, a, b);
  expect<U>("popc.b32 D, A;", [](U x) { return U(std::popcount(x)); }, a);
  expect<U>("clz.b64 D, A;", [](UL x) { return U(std::countl_zero(x)); }, ul);
  expect<U>(
      "brev.b32 D, A;",
      [](U x) {
        U r = 0;
        for (int i = 0; i < 32; ++i)
          r |= (x >> i & 1) << (31 - i);
        return r;
      },
      a);
  expect<U>(
      "bfind.u32 D, A;",
      [](U x) { return x ? 31 - U(std::countl_zero(x)) : ~0U; }, a);
}

TEST(Opcodes, Floats) {
  auto a = floats(1), b = floats(2), c = floats(3);
  using F = float;
  expect<F>("add.f32 D, A, B;", [](F x, F y) { return x + y; }, a, b);
  expect<F>("sub.rn.f32 D, A, B;", [](F x, F y) { return x - y; }, a, b);
  expect<F>("mul.f32 D, A, B;", [](F x, F y) { return x * y; }, a, b);
  expect<F>(
      "mul.ftz.f32 D, A, B;",
      [](F x, F y) { return flush(flush(x) * flush(y)); }, a, b);
  expect<F>(
      "fma.rn.f32 D, A, B, C;", [](F x, F y, F z) { return std::fma(x, y, z); },
      a, b, c);
  expect<F>("div.rn.f32 D, A, B;", [](F x, F y) { return x / y; }, a, b);
  expect<F>("min.f32 D, A, B;", [](F x, F y) { return std::fmin(x, y); }, a, b);
  expect<F>(
      "copysign.f32 D, A, B;", [](F x, F y) { return std::copysign(y, x); }, a,
      b);
  expect<F>("max.f32 D, A, B;", [](F x, F y) { return std::fmax(x, y); }, a, b);
  expect<F>(
      "max.NaN.f32 D, A, B;",
      [](F x, F y) {
        return std::isnan(x) || std::isnan(y) ? NAN : std::fmax(x, y);
      },
      a, b);
  expect<F>("neg.f32 D, A;", [](F x) { return -x; }, a);
  expect<F>("abs.f32 D, A;", [](F x) { return std::fabs(x); }, a);
  expect<F>("rcp.rn.f32 D, A;", [](F x) { return 1 / x; }, a);
  expect<F>("sqrt.rn.f32 D, A;", [](F x) { return std::sqrt(x); }, a);
  expect<F>(
      "ex2.approx.ftz.f32 D, A;",
      [](F x) { return flush(std::exp2(flush(x))); }, a);
  expect<F>("lg2.approx.f32 D, A;", [](F x) { return std::log2(x); }, a);
  expect<F>(
      "mul.f32 D, A, 0f3fb8aa3b;", [](F x) { return x * 1.44269502F; }, a);
}

TEST(Opcodes, OrderOfZeros) {
  const std::vector<float> a = {0.0F, -0.0F, 0.0F, -0.0F};
  const std::vector<float> b = {-0.0F, 0.0F, 0.0F, -0.0F};
  auto areNegative = [&](const std::string &instruction) {
    std::vector<bool> signs;
    for (float zero : results<float>(instruction + " D, A, B;", a, b))
      signs.push_back(std::signbit(zero));
    return signs;
  };
  for (std::string nan : {"", ".NaN"}) {
    EXPECT_EQ(areNegative("min" + nan + ".f32"),
              (std::vector<bool>{true, true, false, true}));
    EXPECT_EQ(areNegative("max" + nan + ".f32"),
              (std::vector<bool>{false, false, false, true}));
  }
}

TEST(Opcodes, Conversions) {
  auto a = integers<U>(1);
  auto s = integers<S>(1);
  auto ul = integers<UL>(4);
  auto f = floats(1), g = floats(2);
  using F = float;
  expect<SL>("cvt.s64.s32 D, A;", [](S x) { return SL(x); }, s);
  expect<UL>("cvt.u64.u32 D, A;", [](U x) { return UL(x); }, a);
  expect<U>("cvt.u32.u64 D, A;", [](UL x) { return U(x); }, ul);
  expect<U>("cvt.s32.s8 D, A;", [](U x) { return U(S(int8_t(x))); }, a);
  expect<uint16_t>("cvt.u16.u32 D, A;", [](U x) { return uint16_t(x); }, a);
  expect<F>("cvt.rn.f32.s32 D, A;", [](S x) { return F(x); }, s);
  expect<F>("cvt.rn.f32.u64 D, A;", [](UL x) { return F(x); }, ul);
  auto toInteger = [](double x) {
    return std::isnan(x) ? 0 : S(std::clamp(x, -2147483648.0, 2147483647.0));
  };
  expect<S>(
      "cvt.rzi.s32.f32 D, A;", [&](F x) { return toInteger(std::trunc(x)); },
      f);
  expect<S>(
      "cvt.rni.s32.f32 D, A;",
      [&](F x) { return toInteger(std::nearbyint(x)); }, f);
  expect<S>(
      "cvt.rmi.s32.f32 D, A;", [&](F x) { return toInteger(std::floor(x)); },
      f);
  expect<F>("cvt.rpi.f32.f32 D, A;", [](F x) { return std::ceil(x); }, f);
  expect<U>(
      "cvt.rn.bf16x2.f32 D, A, B;",
      [](F x, F y) { return U(toBF16(x)) << 16 | toBF16(y); }, f, g);
  expect<U>(
      "cvt.rn.f16x2.f32 D, A, B;",
      [](F x, F y) { return U(toF16(x)) << 16 | toF16(y); }, f, g);
  expect<uint16_t>("cvt.rn.bf16.f32 D, A;", [](F x) { return toBF16(x); }, f);
}

TEST(Opcodes, HalvesRoundToTheNearest) {
  // All halves survive the way to float and back, and what lies between two of
  // them goes to the nearer, or to the even one.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    float x = fromF16(uint16_t(bits));
    ASSERT_EQ(toF16(x), bits);
    float next = bits == 0x7bff ? 65536.0F : fromF16(uint16_t(bits + 1));
    float middle = x + (next - x) / 2;
    ASSERT_EQ(toF16(middle), bits & 1 ? bits + 1 : bits) << bits;
    ASSERT_EQ(toF16(std::nextafter(middle, x)), bits) << bits;
    ASSERT_EQ(toF16(std::nextafter(middle, next)), bits + 1) << bits;
  }
  EXPECT_EQ(toF16(-1.5F), 0xbe00);
  EXPECT_EQ(toF16(INFINITY), 0x7c00);
  EXPECT_EQ(toBF16(1.00390625F), 0x3f80); // a tie, to the even one
  EXPECT_EQ(toBF16(1.01171875F), 0x3f82);
  EXPECT_TRUE(std::isnan(fromBF16(toBF16(NAN))));
}

TEST(Opcodes, PackedHalves) {
  auto f = floats(1), g = floats(2);
  std::vector<U> a, b;
  for (size_t i = 0; i < f.size(); ++i) {
    a.push_back(U(toBF16(f[i])) << 16 | toBF16(g[i]));
    b.push_back(U(toBF16(g[i])) << 16 | toBF16(f[i] / 3));
  }
  auto both = [](auto f) {
    return [f](U x, U y) {
      auto half = [&](int shift) {
        return U(toBF16(
            f(fromBF16(uint16_t(x >> shift)), fromBF16(uint16_t(y >> shift)))));
      };
      return half(16) << 16 | half(0);
    };
  };
  expect<U>("add.rn.bf16x2 D, A, B;",
            both([](float x, float y) { return x + y; }), a, b);
  expect<U>("mul.rn.bf16x2 D, A, B;",
            both([](float x, float y) { return x * y; }), a, b);
  expect<U>("max.bf16x2 D, A, B;", both([](float x, float y) {
              return x == y && std::signbit(x) ? y : std::fmax(x, y);
            }),
            a, b);
}

TEST(Opcodes, ComparisonsAndSelection) {
  auto s = integers<S>(1), t = integers<S>(2);
  auto a = integers<U>(1), b = integers<U>(2);
  auto f = floats(1), g = floats(2);
  auto select = [](const std::string &compare) {
    return compare + "\nselp.b32 D, 7, 9, %p1;";
  };
  auto is = [](auto f) {
    return [f](auto x, auto y) { return U(f(x, y) ? 7 : 9); };
  };
  expect<U>(select("setp.lt.s32 %p1, A, B;"),
            is([](S x, S y) { return x < y; }), s, t);
  expect<U>(select("setp.ge.u32 %p1, A, B;"),
            is([](U x, U y) { return x >= y; }), a, b);
  expect<U>(select("setp.ne.b32 %p1, A, B;"),
            is([](U x, U y) { return x != y; }), a, b);
  expect<U>(
      select("setp.hi.u32 %p1, A, 5;"), [](U x) { return x > 5 ? 7U : 9U; }, a);
  expect<U>(select("setp.lt.f32 %p1, A, B;"),
            is([](float x, float y) { return x < y; }), f, g);
  expect<U>(
      select("setp.neu.f32 %p1, A, A;"),
      [](float x) { return std::isnan(x) ? 7U : 9U; }, f);
  expect<U>(select("setp.leu.f32 %p1, A, B;"),
            is([](float x, float y) { return !(x > y); }), f, g);
  expect<U>(
      select("setp.eq.u32 %p2, A, B;\nsetp.gt.and.s32 %p1|%p3, A, 0, !%p2;"),
      is([](S x, S y) { return x > 0 && x != y; }), s, t);
  expect<U>(select("setp.lt.s32 %p2, A, 0;\nsetp.lt.s32 %p3, B, 0;\nxor.pred "
                   "%p1, %p2, %p3;"),
            is([](S x, S y) { return (x < 0) != (y < 0); }), s, t);
  expect<U>(
      "mov.u32 D, 1;\nsetp.lt.s32 %p2, A, 0;\n@%p2 mov.u32 D, 2;\n@!%p2 "
      "add.u32 D, D, 4;",
      [](S x) { return x < 0 ? 2U : 5U; }, s);
}

TEST(Opcodes, MovesOfParts) {
  auto a = integers<U>(1), b = integers<U>(2);
  expect<UL>(
      "mov.b64 D, {A, B};", [](U x, U y) { return UL(y) << 32 | x; }, a, b);
  expect<U>(
      "{ .reg .b16 lo, hi;\nmov.b32 {lo, hi}, A;\nmov.b32 D, {hi, lo}; }",
      [](U x) { return x << 16 | x >> 16; }, a);
}

TEST(Opcodes, BranchesDiverge) {
  // Collatz: each lane leaves the loop at a time of its own.
  auto a = small(1000, 1);
  expect<U>(
      "mov.u32 D, 0;\nmax.u32 %r40, A, 1;\nnext: setp.eq.u32 %p1, %r40, "
      "1;\n@%p1 bra end;\n"
      "and.b32 %r41, %r40, 1;\nsetp.eq.u32 %p2, %r41, 0;\n@%p2 bra even;\n"
      "mad.lo.u32 %r40, %r40, 3, 1;\nbra join;\neven: shr.u32 %r40, %r40, 1;\n"
      "join: add.u32 D, D, 1;\nbra next;\nend:",
      [](U x) {
        U steps = 0;
        for (x = std::max(x, 1U); x != 1; x = x & 1 ? 3 * x + 1 : x / 2)
          ++steps;
        return steps;
      },
      a);
}

//===----------------------------------------------------------------------===//
// Between lanes
//===----------------------------------------------------------------------===//

std::vector<U> iota(size_t count) {
  std::vector<U> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = U(i);
  return values;
}

TEST(Opcodes, Shuffles) {
  auto a = iota(64); // two warps
  expect<U>(
      "shfl.sync.bfly.b32 D, A, 5, 31, -1;", [](U x) { return x ^ 5; }, a);
  expect<U>(
      "shfl.sync.down.b32 D|%p1, A, 3, 31, -1;\n@!%p1 mov.u32 D, 99;",
      [](U x) { return x % 32 + 3 < 32 ? x + 3 : 99; }, a);
  expect<U>(
      "shfl.sync.up.b32 D, A, 1, 0, -1;",
      [](U x) { return x % 32 ? x - 1 : x; }, a);
  expect<U>(
      "shfl.sync.idx.b32 D, A, 2, 0x181f, -1;",
      [](U x) { return x / 8 * 8 + 2; }, a);
  expect<U>(
      "setp.gt.u32 %p1, A, 40;\nvote.sync.ballot.b32 D, %p1, -1;",
      [](U x) { return x < 32 ? 0 : ~0U << 9; }, a);
  expect<U>(
      "setp.gt.u32 %p1, A, 40;\nvote.sync.any.pred %p2, %p1, -1;\nselp.u32 D, "
      "1, 0, %p2;",
      [](U x) { return U(x >= 32); }, a);
  expect<U>(
      "redux.sync.add.u32 D, A, -1;", [](U x) { return x < 32 ? 496U : 1520U; },
      a);
  expect<U>(
      "elect.sync %r50|%p1, -1;\nselp.u32 D, 1, 0, %p1;",
      [](U x) { return U(x % 32 == 0); }, a);
}

TEST(Opcodes, LanesThatTakeTwoPathsMeetAtACollective) {
  // The block of the odd lanes lies behind its successor, so that the even ones
  // come to the shuffle first.
  expect<U>(
      "and.b32 %r40, A, 1;\nsetp.eq.u32 %p1, %r40, 1;\nmov.u32 %r41, 10;\n@%p1 "
      "bra odd;\n"
      "join: shfl.sync.bfly.b32 D, %r41, 1, 31, -1;\nbra done;\n"
      "odd: mov.u32 %r41, 20;\nbra join;\ndone:",
      [](U x) { return x & 1 ? 10U : 20U; }, iota(32));
}

TEST(Opcodes, SpecialRegisters) {
  Memory memory;
  uint64_t out = memory.allocate(4 * 2 * 96, "out");
  Arguments arguments;
  arguments.add(out).add(out);
  // A grid of 2 x 1 x 1 blocks of 8 x 6 x 2 threads.
  Module module =
      parsed(kernelOf("mov.u32 %r2, %tid.y;\nmov.u32 %r3, %tid.z;\nmov.u32 "
                      "%r4, %ntid.x;\nmov.u32 %r5, %ntid.y;\n"
                      "mad.lo.u32 %r6, %r3, %r5, %r2;\nmad.lo.u32 %r6, %r6, "
                      "%r4, %r1;\nmov.u32 %r7, %ctaid.x;\n"
                      "mad.lo.u32 %r8, %r7, 96, %r6;\nmul.wide.u32 %rd3, %r8, "
                      "4;\nadd.u64 %rd3, %rd3, %rd1;\n"
                      "mov.u32 %r9, %warpid;\nmov.u32 %r10, "
                      "%laneid;\nmad.lo.u32 %r9, %r9, 32, %r10;\n"
                      "mov.u32 %r11, %nctaid.x;\nmad.lo.u32 %r9, %r11, 1000, "
                      "%r9;\nst.global.u32 [%rd3], %r9;"));
  Outcome outcome = module.launch("k", {2}, {8, 6, 2}, 0, arguments, memory);
  ASSERT_TRUE(outcome.ok()) << str(outcome);
  auto got = memory.get<U>(out, 192);
  for (U i = 0; i < 192; ++i)
    EXPECT_EQ(got[i], 2000 + i % 96);
}

TEST(Opcodes, VectorsAndSmallTypes) {
  Memory memory;
  std::vector<uint8_t> in(64 * 32);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = uint8_t(i * 37);
  uint64_t from = memory.add(in, "in"), to = memory.allocate(in.size(), "out");
  Arguments arguments;
  arguments.add(to).add(from);
  // Each thread moves 32 bytes: by 16, by 8, by 2, by 1, and 4 over generic
  // addresses.
  Module module = parsed(kernelOf(
      "mad.wide.u32 %rd3, %r1, 32, %rd1;\nmad.wide.u32 %rd4, %r1, 32, %rd2;\n"
      "ld.global.nc.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4];\nst.global.v4.b32 "
      "[%rd3], {%r2, %r3, %r4, %r5};\n"
      "ld.v2.f32 {%f1, %f2}, [%rd4+16];\nst.v2.f32 [%rd3+16], {%f1, %f2};\n"
      "ld.global.u16 %rs1, [%rd4+24];\nst.global.u16 [%rd3+24], %rs1;\n"
      "ld.global.s8 %r6, [%rd4+26];\nst.global.u8 [%rd3+26], %r6;\n"
      "ld.global.u8 %rs2, [%rd4+27];\nst.global.u8 [%rd3+27], %rs2;\n"
      "mov.u64 %rd5, buffer;\ncvta.shared.u64 %rd6, %rd5;\nmad.wide.u32 %rd6, "
      "%r1, 4, %rd6;\n"
      "ld.global.u32 %r7, [%rd4+28];\nst.u32 [%rd6], %r7;\ncvta.to.shared.u64 "
      "%rd7, %rd6;\n"
      "ld.shared.u32 %r8, [%rd7];\nst.global.u32 [%rd3+28], %r8;"));
  Outcome outcome = module.launch("k", {}, {64}, 256, arguments, memory);
  ASSERT_TRUE(outcome.ok()) << str(outcome);
  EXPECT_EQ(memory.get<uint8_t>(to, in.size()), in);
  EXPECT_EQ(outcome.counters.globalRead, in.size());
  EXPECT_EQ(outcome.counters.globalWritten, in.size());
}

TEST(Opcodes, Atomics) {
  Memory memory;
  std::vector<U> cells = {0, 100, 0, 0, 7};
  std::vector<float> sums = {0};
  uint64_t at = memory.add(cells, "cells"), sum = memory.add(sums, "sum");
  Arguments arguments;
  arguments.add(at).add(sum);
  Module module = parsed(kernelOf(
      "atom.global.add.u32 %r2, [%rd1], 1;\nred.global.min.u32 [%rd1+4], %r1;\n"
      "red.global.max.u32 [%rd1+8], %r1;\natom.global.or.b32 %r3, [%rd1+12], "
      "16;\n"
      "atom.global.cas.b32 %r4, [%rd1+16], 7, 8;\nred.global.add.f32 [%rd2], "
      "0f3F000000;"));
  Outcome outcome = module.launch("k", {3}, {64}, 0, arguments, memory);
  ASSERT_TRUE(outcome.ok()) << str(outcome);
  EXPECT_EQ(memory.get<U>(at, 5), (std::vector<U>{192, 0, 63, 16, 8}));
  EXPECT_EQ(memory.get<float>(sum, 1)[0], 96);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

TEST(Opcodes, MatricesLoadPlainAndTransposed) {
  for (bool transposes : {false, true}) {
    Memory memory;
    std::vector<uint16_t> in(4 * 64);
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = uint16_t(i);
    uint64_t from = memory.add(in, "in"),
             to = memory.allocate(4 * 32 * 4, "out");
    Arguments arguments;
    arguments.add(to).add(from);
    std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, "
                       "%r12, %r13}, [%r3];\n";
    Module module = parsed(kernelOf(
        "mad.wide.u32 %rd3, %r1, 16, %rd2;\nld.global.v4.u32 {%r4, %r5, %r6, "
        "%r7}, [%rd3];\n"
        "mov.u32 %r2, buffer;\nmad.lo.u32 %r3, %r1, 16, %r2;\n"
        "st.shared.v4.u32 [%r3], {%r4, %r5, %r6, %r7};\nbar.warp.sync -1;\n" +
        (transposes ? edited(load, ".x4.", ".x4.trans.") : load) +
        "mad.wide.u32 %rd4, %r1, 16, %rd1;\nst.global.v4.u32 [%rd4], {%r10, "
        "%r11, %r12, %r13};"));
    Outcome outcome = module.launch("k", {}, {32}, 512, arguments, memory);
    ASSERT_TRUE(outcome.ok()) << str(outcome);
    EXPECT_EQ(outcome.counters.bankConflicts, 0U);
    auto got = memory.get<uint16_t>(to, 256);
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned m = 0; m < 4; ++m)
        for (unsigned e = 0; e < 2; ++e) {
          unsigned row = lane / 4, column = lane % 4 * 2 + e;
          EXPECT_EQ(got[lane * 8 + m * 2 + e],
                    64 * m +
                        (transposes ? 8 * column + row : 8 * row + column));
        }
  }
}

/// The product of a warp, its fragments filled as the manual draws them.
void checkProduct(bool bf16, unsigned depth) {
  std::mt19937 random(1);
  auto toHalf = [&](float x) { return bf16 ? toBF16(x) : toF16(x); };
  std::vector<float> a(16 * depth), b(depth * 8), c(16 * 8);
  for (auto *matrix : {&a, &b, &c})
    for (float &x : *matrix)
      x = float(int(random() % 17) - 8) / 4; // exact in each format
  unsigned pairsA = depth / 4, pairsB = depth / 8, words = pairsA + pairsB + 4;
  std::vector<U> in(32 * words);
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    U *to = in.data() + lane * words;
    for (unsigned r = 0; r < pairsA; ++r) {
      unsigned row = g + r % 2 * 8, k = r / 2 * 8 + 2 * t;
      *to++ = toHalf(a[row * depth + k]) | U(toHalf(a[row * depth + k + 1]))
                                               << 16;
    }
    for (unsigned r = 0; r < pairsB; ++r) {
      unsigned k = r * 8 + 2 * t;
      *to++ = toHalf(b[k * 8 + g]) | U(toHalf(b[(k + 1) * 8 + g])) << 16;
    }
    for (unsigned r = 0; r < 4; ++r)
      *to++ = std::bit_cast<U>(c[(g + r / 2 * 8) * 8 + 2 * t + r % 2]);
  }
  Memory memory;
  uint64_t from = memory.add(in, "in"), to = memory.allocate(32 * 16, "out");
  std::string body =
      "mad.wide.u32 %rd3, %r1, " + std::to_string(4 * words) + ", %rd2;\n";
  for (unsigned w = 0; w < words; ++w)
    body += "ld.global.b32 %r" + std::to_string(20 + w) + ", [%rd3+" +
            std::to_string(4 * w) + "];\n";
  auto list = [](unsigned first, unsigned count) {
    std::string text;
    for (unsigned i = 0; i < count; ++i)
      text += (i ? ", %r" : "{%r") + std::to_string(first + i);
    return text + "}";
  };
  std::string type = bf16 ? "bf16" : "f16";
  body += "mma.sync.aligned.m16n8k" + std::to_string(depth) + ".row.col.f32." +
          type + "." + type + ".f32 " + list(10, 4) + ", " + list(20, pairsA) +
          ", " + list(20 + pairsA, pairsB) + ", " +
          list(20 + pairsA + pairsB, 4) +
          ";\nmad.wide.u32 %rd4, %r1, 16, %rd1;\nst.global.v4.b32 [%rd4], " +
          list(10, 4) + ";";
  Arguments arguments;
  arguments.add(to).add(from);
  Outcome outcome =
      parsed(kernelOf(body)).launch("k", {}, {32}, 0, arguments, memory);
  ASSERT_TRUE(outcome.ok()) << str(outcome);
  auto got = memory.get<float>(to, 128);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned r = 0; r < 4; ++r) {
      unsigned row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
      float want = c[row * 8 + column];
      for (unsigned k = 0; k < depth; ++k)
        want += a[row * depth + k] * b[k * 8 + column];
      EXPECT_EQ(got[lane * 4 + r], want) << row << ", " << column;
    }
}

TEST(Opcodes, Products) {
  for (unsigned depth : {8U, 16U}) {
    checkProduct(true, depth);
    checkProduct(false, depth);
  }
}

TEST(Opcodes, BankConflicts) {
  // Floats of stride 1, 2, 32 and 33: 1, 2, 32 and 1 passes.
  for (auto [stride, extra] : {std::pair(1, 0), {2, 1}, {32, 31}, {33, 0}}) {
    Memory memory;
    uint64_t out = memory.allocate(8, "out");
    Arguments arguments;
    arguments.add(out).add(out);
    std::string text = kernelOf("mov.u32 %r2, buffer;\nmad.lo.u32 %r3, %r1, " +
                                std::to_string(4 * stride) +
                                ", %r2;\nst.shared.u32 [%r3], %r1;");
    Outcome outcome =
        parsed(text).launch("k", {}, {32}, 8192, arguments, memory);
    ASSERT_TRUE(outcome.ok()) << str(outcome);
    EXPECT_EQ(outcome.counters.bankConflicts, unsigned(extra)) << stride;
    ASSERT_EQ(outcome.counters.conflicts.size(), extra ? 1U : 0U);
    if (extra) {
      EXPECT_EQ(outcome.counters.conflicts[0].line, lineOf(text, "st.shared"));
    }
  }
}

} // namespace
