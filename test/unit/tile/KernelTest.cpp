//===- KernelTest.cpp - tile ops, compiled, against plain loops -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Compile.h"
#include "jit/Frontend.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

using namespace mlir;
using namespace burst;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double noNumber = std::numeric_limits<double>::quiet_NaN();

/// Numbers of one shape.
template <typename T>
class Array {
public:
  explicit Array(const std::vector<int64_t> &shape)
      : shape(shape), values(std::accumulate(shape.begin(), shape.end(),
                                             size_t{1}, std::multiplies<>())) {}

  T &operator()(std::initializer_list<int64_t> indices) {
    int64_t place = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      place = place * shape[d] + indices.begin()[d];
    return values[place];
  }
  void fill(std::mt19937 &random, double least, double most) {
    std::uniform_real_distribution<double> numbers(least, most);
    for (T &value : values)
      value = static_cast<T>(numbers(random));
  }
  /// What a compiled function takes: two pointers, offset, sizes, strides.
  void *descriptor() {
    auto data = reinterpret_cast<int64_t>(values.data());
    words = {data, data, 0};
    words.insert(words.end(), shape.begin(), shape.end());
    words.resize(3 + 2 * shape.size());
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d])
      words[3 + shape.size() + d] = stride;
    return words.data();
  }

private:
  std::vector<int64_t> shape;
  std::vector<T> values;
  std::vector<int64_t> words;
};

/// A kernel in this process.
class Kernel {
public:
  /// `arguments` and `body` of a kernel; TYPE stands for the type of elements.
  Kernel(const cpu::Target &target, StringRef type, StringRef arguments,
         StringRef body) {
    std::string text =
        fmt::format("func.func @kernel(%task: index, {}) attributes "
                    "{{tile.kernel, llvm.emit_c_interface}} {{ {} return }}",
                    arguments.str(), body.str());
    for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
      text.replace(at, 4, type.str());
    error = llvm::toString(compile(target, text));
  }

  template <typename... Args>
  void operator()(Args... args) {
    ASSERT_EQ(error, "");
    address.toPtr<void (*)(int64_t, Args...)>()(0, args...);
  }

private:
  llvm::Error compile(const cpu::Target &target, StringRef text) {
    DialectRegistry registry;
    jit::registerDialects(registry);
    MLIRContext context(registry);
    context.loadAllAvailableDialects();
    auto module = parseSourceString<ModuleOp>(text, &context);
    auto pm = PassManager::on<ModuleOp>(&context);
    cpu::buildLLVMPipeline(pm, target);
    if (!module || failed(pm.run(*module)))
      return llvm::createStringError("the kernel cannot be lowered");
    auto llvmContext = std::make_unique<llvm::LLVMContext>();
    auto translated = translateModuleToLLVMIR(*module, *llvmContext);
    auto created = llvm::orc::LLJITBuilder().create();
    if (!created)
      return created.takeError();
    linker = std::move(*created);
    translated->setDataLayout(linker->getDataLayout());
    if (llvm::Error error = linker->addIRModule(
            {std::move(translated), std::move(llvmContext)}))
      return error;
    return linker->lookup("_mlir_ciface_kernel").moveInto(address);
  }

  std::string error;
  std::unique_ptr<llvm::orc::LLJIT> linker;
  llvm::orc::ExecutorAddr address;
};

template <typename T>
class TileKernel : public testing::Test {
protected:
  static constexpr const char *type = sizeof(T) == 4 ? "f32" : "f64";
  static constexpr double epsilon = std::numeric_limits<T>::epsilon();

  /// Compiles a kernel for vectors and register tiles of all sizes.
  void forTargets(StringRef arguments, StringRef body,
                  const std::function<void(Kernel &)> &check) {
    cpu::Target target = cpu::Target::host();
    bool hasFma = target.fma, hasDot = target.dot;
    for (auto [vectorBits, microRows] :
         {std::pair(128, 5), {256, 6}, {512, 14}}) {
      target.vectorBits = vectorBits;
      target.microRows = microRows;
      target.fma = hasFma && vectorBits > 128;
      target.dot = hasDot && vectorBits > 128;
      SCOPED_TRACE(target.str());
      Kernel kernel(target, type, arguments, body);
      check(kernel);
    }
  }
  /// Numbers that are equal, or neither of them one.
  void expectNear(T found, double expected, double tolerance) {
    if (std::isfinite(expected))
      EXPECT_NEAR(found, expected, tolerance);
    else if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(found)) << found;
    else
      EXPECT_EQ(found, expected);
  }

  std::mt19937 random{1};
};

} // namespace

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TileKernel, Types);

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Rounding errors of equal terms are equal, too, and do not cancel out: of
/// 4096 that are summed up one after the other, there are hundreds of units.
TYPED_TEST(TileKernel, SumsUpTileByTile) {
  constexpr int64_t depth = 64, tiles = 64, width = 16;
  this->forTargets(
      "%a: memref<1x64xTYPE>, %b: memref<1x64x16xTYPE>, %c: memref<1x16xTYPE>, "
      "%n: index",
      "tile.multiply %a, %b, %c rows %n accumulate : memref<1x64xTYPE>, "
      "memref<1x64x16xTYPE>, memref<1x16xTYPE>",
      [&](Kernel &kernel) {
        for (double term : {-3.1, 1.3, 1.7}) {
          Array<TypeParam> a({1, depth}), b({1, depth, width}), c({1, width});
          a.fill(this->random, 1, 1);
          b.fill(this->random, term, term);
          c.fill(this->random, 0, 0);
          for (int64_t tile = 0; tile < tiles; ++tile)
            kernel(a.descriptor(), b.descriptor(), c.descriptor(), int64_t{1});
          double sum = depth * tiles * double(TypeParam(term));
          for (int64_t n = 0; n < width; ++n)
            this->expectNear(c({0, n}), sum,
                             32 * this->epsilon * std::abs(sum));
        }
      });
}

TYPED_TEST(TileKernel, Multiply) {
  constexpr int64_t m = 12, k = 10, panels = 2, width = 16, rows = 7;
  constexpr int64_t hidden = 3;
  for (bool transposed : {false, true})
    for (bool accumulate : {false, true})
      for (bool where : {false, true})
        for (int64_t depth : {int64_t{0}, int64_t{7}, k}) {
          SCOPED_TRACE(fmt::format("transposed {} accumulate {} where {} "
                                   "depth {}",
                                   transposed, accumulate, where, depth));
          std::string a = transposed ? "memref<10x12xTYPE>" //
                                     : "memref<12x10xTYPE>";
          bool isLimited = depth != k;
          std::string body = fmt::format(
              "tile.multiply %a, %b, %c rows %n {} {} {} {} : {}, "
              "memref<2x10x16xTYPE>, memref<12x32xTYPE>",
              isLimited ? "depth %d" : "", where ? "where %seen : " + a : "",
              accumulate ? "accumulate" : "", transposed ? "transposed" : "",
              a);
          std::string arguments =
              fmt::format("%a: {0}, %seen: {0}, %b: memref<2x10x16xTYPE>, "
                          "%c: memref<12x32xTYPE>, %n: index, %d: index",
                          a);
          this->forTargets(arguments, body, [&](Kernel &kernel) {
            auto left = [&](auto &array, int64_t r, int64_t t) -> auto & {
              return transposed ? array({t, r}) : array({r, t});
            };
            std::vector<int64_t> shape{transposed ? k : m, transposed ? m : k};
            Array<TypeParam> a(shape), seen(shape), b({panels, k, width}),
                c({m, panels * width});
            a.fill(this->random, -2, 2);
            b.fill(this->random, -2, 2);
            c.fill(this->random, -2, 2);
            // What lies behind the depth, and what was not seen, is no number.
            for (int64_t t = 0; t < k; ++t) {
              bool isBad = t >= depth || (where && t == hidden);
              for (int64_t r = 0; r < m; ++r) {
                if (isBad || (r + t) % 4 == 0)
                  left(seen, r, t) = -infinity;
                if (isBad)
                  left(a, r, t) = t >= depth ? noNumber : 0;
              }
              for (int64_t n = 0; n < panels * width && isBad; ++n)
                b({n / width, t, n % width}) = infinity;
            }
            auto before = c;
            kernel(a.descriptor(), seen.descriptor(), b.descriptor(),
                   c.descriptor(), rows, depth);
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t n = 0; n < panels * width; ++n) {
                double sum = accumulate ? before({r, n}) : 0;
                for (int64_t t = 0; t < depth; ++t)
                  if (!where || left(seen, r, t) != -infinity)
                    sum += double(left(a, r, t)) * b({n / width, t, n % width});
                this->expectNear(c({r, n}), sum, 64 * this->epsilon);
              }
          });
        }
}

/// Of rows that lie in memory, of which there may be fewer than columns.
TYPED_TEST(TileKernel, MultiplyBySlice) {
  constexpr int64_t keys = 32, dim = 48, hidden = 3;
  for (int64_t height : {1, 2, 4, 7, 13})
    for (bool byRows : {true, false})
      for (bool accumulate : {false, true})
        for (bool where : {false, true}) {
          if (byRows && where)
            continue;
          SCOPED_TRACE(fmt::format("{} rows, by rows {} accumulate {} where {}",
                                   height, byRows, accumulate, where));
          auto tile = [&](int64_t columns) {
            return fmt::format("memref<{}x{}xTYPE>", height, columns);
          };
          int64_t depth = byRows ? dim : keys, width = byRows ? keys : dim;
          this->forTargets(
              fmt::format("%a: {0}, %seen: {0}, %b: memref<?x48xTYPE>, "
                          "%c: {1}, %n: index",
                          tile(depth), tile(width)),
              fmt::format(
                  "tile.multiply %a, %b, %c rows %n factor 0.5 {} {} {} "
                  ": {}, memref<?x48xTYPE>, {}",
                  where ? "where %seen : " + tile(depth) : "",
                  accumulate ? "accumulate" : "", byRows ? "by_rows" : "",
                  tile(depth), tile(width)),
              [&](Kernel &kernel) {
                for (int64_t count : {1, 5, 16, 31, 32}) {
                  int64_t rows = std::max<int64_t>(1, height - 1);
                  Array<TypeParam> a({height, depth}), seen({height, depth}),
                      b({count, dim}), c({height, width});
                  for (auto *array : {&a, &b, &c, &seen})
                    array->fill(this->random, -2, 2);
                  int64_t used = byRows ? dim : count;
                  for (int64_t r = 0; r < height; ++r)
                    for (int64_t t = 0; t < depth; ++t) {
                      bool isHidden = where && t == hidden;
                      if (isHidden || (r + t) % 4 == 0)
                        seen({r, t}) = -infinity;
                      if (isHidden)
                        a({r, t}) = 0;
                      if (t >= used)
                        a({r, t}) = noNumber;
                    }
                  for (int64_t d = 0; d < dim && where && hidden < count; ++d)
                    b({hidden, d}) = infinity;
                  auto before = c;
                  kernel(a.descriptor(), seen.descriptor(), b.descriptor(),
                         c.descriptor(), rows);
                  for (int64_t r = 0; r < rows; ++r)
                    for (int64_t n = 0; n < (byRows ? count : dim); ++n) {
                      double sum = 0;
                      for (int64_t t = 0; t < used; ++t)
                        if (!where || seen({r, t}) != -infinity)
                          sum += double(a({r, t})) *
                                 (byRows ? b({n, t}) : b({t, n}));
                      sum = 0.5 * sum + (accumulate ? before({r, n}) : 0);
                      this->expectNear(c({r, n}), sum, 64 * this->epsilon);
                    }
                }
              });
        }
}

TYPED_TEST(TileKernel, FiniteRows) {
  this->forTargets(
      "%b: memref<?x32xTYPE>, %found: memref<1xi1>",
      "%zero = arith.constant 0 : index %f = tile.is_finite %b : "
      "memref<?x32xTYPE> memref.store %f, %found[%zero] : memref<1xi1>",
      [&](Kernel &kernel) {
        for (int64_t count : {1, 3}) {
          Array<TypeParam> b({count, 32});
          Array<char> found({1});
          b.fill(this->random, -2, 2);
          kernel(b.descriptor(), found.descriptor());
          EXPECT_TRUE(found({0}));
          for (double bad : {infinity, -infinity, noNumber}) {
            b({count - 1, 17}) = static_cast<TypeParam>(bad);
            kernel(b.descriptor(), found.descriptor());
            EXPECT_FALSE(found({0}));
          }
        }
      });
}

/// The upper half of a float, which is a number of bf16.
static uint16_t roundToBF16(float value) {
  auto bits = llvm::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static float widen(uint16_t value) {
  return llvm::bit_cast<float>(uint32_t{value} << 16);
}

using TileKernelOfPairs = TileKernel<float>;

/// What lies in memory in 16 bits becomes f32.
TEST_F(TileKernelOfPairs, MultiplyBySlice) {
  constexpr int64_t keys = 16, dim = 32, height = 4;
  for (bool byRows : {true, false}) {
    int64_t depth = byRows ? dim : keys, width = byRows ? keys : dim;
    forTargets(
        fmt::format("%a: memref<4x{}xf32>, %b: memref<?x32xbf16>, "
                    "%c: memref<4x{}xf32>, %n: index",
                    depth, width),
        fmt::format("tile.multiply %a, %b, %c rows %n {} : memref<4x{}xf32>, "
                    "memref<?x32xbf16>, memref<4x{}xf32>",
                    byRows ? "by_rows" : "", depth, width),
        [&](Kernel &kernel) {
          constexpr int64_t count = 11;
          Array<float> a({height, depth}), c({height, width});
          Array<uint16_t> b({count, dim});
          a.fill(random, -2, 2);
          std::uniform_real_distribution<float> numbers(-2, 2);
          for (int64_t j = 0; j < count; ++j)
            for (int64_t d = 0; d < dim; ++d)
              b({j, d}) = roundToBF16(numbers(random));
          kernel(a.descriptor(), b.descriptor(), c.descriptor(), height);
          for (int64_t r = 0; r < height; ++r)
            for (int64_t n = 0; n < (byRows ? count : dim); ++n) {
              double sum = 0;
              for (int64_t t = 0; t < (byRows ? dim : count); ++t)
                sum +=
                    double(a({r, t})) * widen(byRows ? b({n, t}) : b({t, n}));
              expectNear(c({r, n}), sum, 64 * epsilon);
            }
        });
  }
}

/// Sums over rows: rounded two by two, or as they lie.
TEST_F(TileKernelOfPairs, RoundAndMultiply) {
  constexpr int64_t k = 8, m = 32, n = 16, rows = 7;
  constexpr int64_t hidden = 3;
  for (bool where : {false, true})
    for (int64_t count : {1, 2, 5, 8}) {
      SCOPED_TRACE(fmt::format("where {} count {}", where, count));
      std::string body = fmt::format(
          "%p = memref.alloca() {{alignment = 64 : i64}} : memref<4x32x2xbf16> "
          "%b = memref.alloca() {{alignment = 64 : i64}} : "
          "memref<1x4x16x2xbf16> "
          "tile.pack %g, %b : memref<?x16xbf16>, memref<1x4x16x2xbf16> "
          "tile.round %s into %p rows %k : memref<8x32xf32>, "
          "memref<4x32x2xbf16> "
          "tile.round %s into %r rows %k : memref<8x32xf32>, memref<8x32xbf16> "
          "tile.multiply %p, %b, %c rows %n depth %d {} accumulate transposed "
          ": memref<4x32x2xbf16>, memref<1x4x16x2xbf16>, memref<32x16xf32>",
          where ? "where %seen : memref<8x32xf32>" : "");
      forTargets(
          "%s: memref<8x32xf32>, %seen: memref<8x32xf32>, %g: "
          "memref<?x16xbf16>, %r: memref<8x32xbf16>, %c: "
          "memref<32x16xf32>, %k: index, %d: index, %n: index",
          body, [&](Kernel &kernel) {
            Array<float> s({k, m}), seen({k, m}), c({m, n});
            Array<uint16_t> g({count, n}), rounded({k, m});
            s.fill(random, -2, 2);
            c.fill(random, -2, 2);
            // What lies behind the rows, and what was not seen, is no
            // number.
            for (int64_t t = 0; t < k; ++t)
              for (int64_t r = 0; r < m; ++r) {
                if ((where && t == hidden) || (r + t) % 4 == 0)
                  seen({t, r}) = -infinity;
                if (t >= count)
                  s({t, r}) = noNumber;
                if (where && t == hidden)
                  s({t, r}) = 0;
              }
            std::uniform_real_distribution<float> numbers(-2, 2);
            for (int64_t t = 0; t < count; ++t)
              for (int64_t j = 0; j < n; ++j)
                g({t, j}) = roundToBF16(where && t == hidden ? float(infinity)
                                                             : numbers(random));
            auto before = c;
            kernel(s.descriptor(), seen.descriptor(), g.descriptor(),
                   rounded.descriptor(), c.descriptor(), count, (count + 1) / 2,
                   rows);
            for (int64_t t = 0; t < count; ++t)
              for (int64_t r = 0; r < m; ++r)
                EXPECT_EQ(rounded({t, r}), roundToBF16(s({t, r})));
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t j = 0; j < n; ++j) {
                double sum = before({r, j});
                for (int64_t t = 0; t < count; ++t)
                  if (!where || seen({t, r}) != -infinity)
                    sum += double(widen(rounded({t, r}))) * widen(g({t, j}));
                expectNear(c({r, j}), sum, 64 * epsilon);
              }
          });
    }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

TYPED_TEST(TileKernel, ReadsPoisonWhereNothingWasWritten) {
  cpu::Target target = cpu::Target::host();
  target.poison = true;
  Kernel kernel(target, this->type, "%out: memref<2xTYPE>", R"(
    %block = memref.alloca() : memref<2xTYPE>
    %zero = arith.constant 0 : index
    %written = arith.constant 3.0 : TYPE
    memref.store %written, %block[%zero] : memref<2xTYPE>
    memref.copy %block, %out : memref<2xTYPE> to memref<2xTYPE>
  )");
  Array<TypeParam> out({2});
  kernel(out.descriptor());
  EXPECT_EQ(out({0}), 3);
  EXPECT_TRUE(std::isnan(out({1})));
}

TYPED_TEST(TileKernel, LoadsLse) {
  this->forTargets(
      "%view: memref<?xTYPE, strided<[?], offset: ?>>, %lse: memref<4xTYPE>",
      "tile.load %view, %lse factor 1.4426950408889634 padding 1.0 : "
      "memref<?xTYPE, strided<[?], offset: ?>>, memref<4xTYPE>",
      [&](Kernel &kernel) {
        Array<TypeParam> view({3}), lse({4});
        view({0}) = -infinity;
        view({1}) = -3;
        view({2}) = infinity;
        kernel(view.descriptor(), lse.descriptor());
        EXPECT_EQ(lse({0}), -infinity);
        this->expectNear(lse({1}), -3 * std::numbers::log2e, 8 * this->epsilon);
        EXPECT_EQ(lse({2}), infinity);
        EXPECT_EQ(lse({3}), 1);
      });
}

TYPED_TEST(TileKernel, Weights) {
  constexpr int64_t m = 6, n = 48, rows = 5;
  this->forTargets("%s: memref<6x48xTYPE>, %lse: memref<6xTYPE>, %n: index",
                   "tile.weights %s, %lse rows %n : memref<6x48xTYPE>, "
                   "memref<6xTYPE>",
                   [&](Kernel &kernel) {
                     Array<TypeParam> s({m, n}), lse({m});
                     s.fill(this->random, -200, 8);
                     lse.fill(this->random, 7, 9);
                     lse({1}) = -infinity; // whatever its scores are
                     lse({2}) = noNumber;
                     lse({3}) = infinity;
                     for (int64_t r = 0; r < m; ++r)
                       for (int64_t c = r; c < n; c += 3)
                         s({r, c}) = -infinity;
                     s({4, 0}) = noNumber;
                     auto before = s;
                     kernel(s.descriptor(), lse.descriptor(), rows);
                     for (int64_t r = 0; r < m; ++r)
                       for (int64_t c = 0; c < n; ++c) {
                         TypeParam x = before({r, c});
                         bool none = x == -infinity || lse({r}) == -infinity;
                         double weight = none ? 0 : std::exp2(x - lse({r}));
                         if (r >= rows)
                           weight = x;
                         this->expectNear(
                             s({r, c}), weight,
                             std::abs(weight) * 4 * this->epsilon +
                                 std::numeric_limits<TypeParam>::min());
                       }
                   });
}

/// 2^x is within 2 units in the last place, and 0 below the normal range.
/// Through tile.exponentials, which hands -inf to it, too.
/// What no arithmetic on bits may turn into a number.
template <typename T>
static T nanWithAllBits() {
  T nan;
  std::memset(&nan, 0xFF, sizeof(nan));
  return nan;
}

TYPED_TEST(TileKernel, ExponentialsAreAccurate) {
  using Limits = std::numeric_limits<TypeParam>;
  constexpr int64_t m = 256, n = 2304;
  constexpr TypeParam lowest = Limits::min_exponent - 1;
  constexpr TypeParam most = Limits::infinity();
  std::vector<TypeParam> points{-TypeParam{0},
                                -Limits::denorm_min(),
                                lowest,
                                std::nextafter(lowest, -most),
                                Limits::lowest(),
                                -most,
                                lowest - 1,
                                Limits::quiet_NaN(),
                                nanWithAllBits<TypeParam>()};
  points.reserve(size_t{m} * n);
  // Where the integer that is split off changes, and where the result is 1.
  for (TypeParam tie = -0.5; tie > lowest; tie -= 1)
    for (TypeParam towards : {-most, most})
      points.insert(points.end(), {tie, std::nextafter(tie, towards)});
  for (int exponent = Limits::min_exponent; exponent < 0; ++exponent)
    points.push_back(-std::ldexp(TypeParam{1.75}, exponent));
  // As densely as there is room, to somewhat below the range; then any, also a
  // little above 0.
  const TypeParam least = sizeof(TypeParam) == 4 ? -130 : -1080;
  constexpr int64_t steps = m * n / 2;
  for (int64_t step = 0; step < steps; ++step)
    points.push_back(least * TypeParam(step) / TypeParam(steps));
  std::uniform_real_distribution<TypeParam> numbers(least, 1);
  while (points.size() < size_t{m} * n)
    points.push_back(numbers(this->random));

  double worst = 0;
  this->forTargets(
      "%s: memref<256x2304xTYPE>, %m: memref<256xTYPE>, %l: memref<256xTYPE>, "
      "%a: memref<256xTYPE>, %n: index",
      "tile.exponentials %s, %m, %l, %a rows %n : memref<256x2304xTYPE>, "
      "memref<256xTYPE>",
      [&](Kernel &kernel) {
        Array<TypeParam> s({m, n}), none({m}), sum({m}), factor({m});
        for (int64_t at = 0; at < m * n; ++at)
          s({at / n, at % n}) = points[at];
        kernel(s.descriptor(), none.descriptor(), sum.descriptor(),
               factor.descriptor(), m);
        for (int64_t at = 0; at < m * n; ++at) {
          TypeParam x = points[at], found = s({at / n, at % n});
          if (std::isnan(x)) {
            ASSERT_TRUE(std::isnan(found)) << found;
            continue;
          }
          if (x < lowest) { // subnormal: inaccurate, or 0
            ASSERT_GE(found, 0) << x;
            ASSERT_LE(found, x <= lowest - 1 ? 0 : Limits::min()) << x;
            continue;
          }
          auto expected = std::exp2(static_cast<long double>(x));
          long double unit =
              std::ldexp(1.0L, std::ilogb(expected) + 1 - Limits::digits);
          auto error = static_cast<double>(std::abs(found - expected) / unit);
          worst = std::max(worst, error);
          ASSERT_LE(error, 2) << x << ": " << found;
        }
      });
  std::printf("largest error: %.3f units in the last place\n", worst);
}

TYPED_TEST(TileKernel, Differentials) {
  constexpr int64_t m = 6, n = 48, rows = 5;
  for (double factor : {1.0, 0.375})
    this->forTargets(
        "%p: memref<6x48xTYPE>, %dp: memref<6x48xTYPE>, "
        "%delta: memref<6xTYPE>, %n: index",
        fmt::format("tile.differentials %p, %dp, %delta rows %n factor {:e} : "
                    "memref<6x48xTYPE>, memref<6xTYPE>",
                    factor),
        [&](Kernel &kernel) {
          Array<TypeParam> p({m, n}), dp({m, n}), delta({m});
          p.fill(this->random, 0, 1);
          dp.fill(this->random, -2, 2);
          delta.fill(this->random, -2, 2);
          for (int64_t r = 0; r < m; ++r)
            for (int64_t c = r; c < n; c += 3) {
              p({r, c}) = 0;
              dp({r, c}) = c % 2 == 0 ? noNumber : infinity;
            }
          auto before = dp;
          kernel(p.descriptor(), dp.descriptor(), delta.descriptor(), rows);
          for (int64_t r = 0; r < m; ++r)
            for (int64_t c = 0; c < n; ++c) {
              double expected = before({r, c});
              if (r < rows)
                expected = p({r, c}) == 0 ? 0
                                          : factor * p({r, c}) *
                                                (before({r, c}) - delta({r}));
              this->expectNear(dp({r, c}), expected, 8 * this->epsilon);
            }
        });
}

TYPED_TEST(TileKernel, MapGradient) {
  constexpr int64_t m = 6, n = 48, rows = 5, columns = 45, head = 2;
  this->forTargets(
      "%w: memref<6x48xTYPE>, %t: memref<6x48xTYPE>, %i: memref<6xindex>, "
      "%j: memref<48xindex>, %slopes: memref<?xTYPE>, %n: index, %c: index, "
      "%h: index",
      R"(
        tile.map_gradient %w, %t rows %n columns %c at (%h, %h, %i, %j) of (%n, %c)
            gradient(%t0 : TYPE, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : TYPE, %x = %slopes : memref<?xTYPE>) {
              %slope = tensor.extract %x[%h0] : tensor<?xTYPE>
              %distance = arith.subi %i0, %j0 : index
              %integer = arith.index_cast %distance : index to i64
              %far = arith.sitofp %integer : i64 to TYPE
              %factor = arith.mulf %far, %slope : TYPE
              %sum = arith.addf %factor, %t0 : TYPE
              %u = arith.mulf %sum, %w0 : TYPE
              burst.yield %u : TYPE
            } : memref<6x48xTYPE>, memref<6xindex>, memref<48xindex>)",
      [&](Kernel &kernel) {
        Array<TypeParam> w({m, n}), t({m, n}), slopes({4});
        Array<int64_t> i({m}), j({n});
        w.fill(this->random, -1, 1);
        t.fill(this->random, -2, 2);
        slopes.fill(this->random, 0, 1);
        for (int64_t r = 0; r < m; ++r)
          i({r}) = 100 + 2 * r;
        for (int64_t c = 0; c < n; ++c)
          j({c}) = 70 + c;
        for (int64_t r = 0; r < m; ++r)
          for (int64_t c = r; c < n; c += 3) {
            w({r, c}) = 0;
            t({r, c}) = c % 2 == 0 ? noNumber : infinity;
          }
        auto before = w;
        kernel(w.descriptor(), t.descriptor(), i.descriptor(), j.descriptor(),
               slopes.descriptor(), rows, columns, head);
        for (int64_t r = 0; r < m; ++r)
          for (int64_t c = 0; c < n; ++c) {
            double expected = before({r, c});
            if (r < rows)
              expected =
                  expected == 0 || c >= columns
                      ? 0
                      : (double(i({r}) - j({c})) * slopes({head}) + t({r, c})) *
                            expected;
            this->expectNear(w({r, c}), expected, 256 * this->epsilon);
          }
      });
}

/// To elements that all points share, those of a row, or those of a few points;
/// of points that are masked and of columns that are none nothing is added.
/// Indices are clamped into tables.
TYPED_TEST(TileKernel, Contributions) {
  constexpr int64_t m = 6, n = 48, rows = 5, columns = 45, head = 2;
  this->forTargets(
      "%w: memref<6x48xTYPE>, %t: memref<6x48xTYPE>, %i: memref<6xindex>, "
      "%j: memref<48xindex>, %heads: memref<4xTYPE>, %rows: memref<?x?xTYPE>, "
      "%near: memref<?xTYPE>, %n: index, %c: index, %h: index",
      R"(
        tile.map_gradient %w, %t rows %n columns %c at (%h, %h, %i, %j) of (%n, %c)
            grads (%near, %heads, %rows of [2, 0, 1] : memref<?xTYPE>, memref<4xTYPE>, memref<?x?xTYPE>)
            gradient(%t0 : TYPE, %b0, %h0, %i0, %j0, %sq, %sk, %w0 : TYPE,
                     %x = %heads : memref<4xTYPE>, %y = %rows : memref<?x?xTYPE>, %z = %near : memref<?xTYPE>) {
              %u = arith.mulf %t0, %w0 : TYPE
              %four = arith.constant 4 : index
              %past = arith.addi %h0, %four : index
              burst.contribute %u to %x[%h0] : TYPE, tensor<4xTYPE>
              burst.contribute %w0 to %x[%past] : TYPE, tensor<4xTYPE>
              burst.contribute %w0 to %y[%i0, %h0] : TYPE, tensor<?x?xTYPE>
              %distance = arith.subi %i0, %j0 : index
              %least = arith.minsi %distance, %four : index
              burst.contribute %w0 to %z[%least] : TYPE, tensor<?xTYPE>
              burst.yield %w0 : TYPE
            } : memref<6x48xTYPE>, memref<6xindex>, memref<48xindex>)",
      [&](Kernel &kernel) {
        Array<TypeParam> w({m, n}), t({m, n}), heads({4}), byRow({4, 3}),
            near({5});
        Array<int64_t> i({m}), j({n});
        for (Array<TypeParam> *array : {&w, &t, &heads, &byRow, &near})
          array->fill(this->random, -1, 1);
        for (int64_t r = 0; r < m; ++r)
          i({r}) = r;
        for (int64_t c = 0; c < n; ++c)
          j({c}) = c % 11 - 3;
        for (int64_t r = 0; r < m; ++r)
          for (int64_t c = r; c < n; c += 3) {
            w({r, c}) = 0;
            t({r, c}) = c % 2 == 0 ? noNumber : infinity;
          }
        std::vector<double> headSums(4), rowSums(12), nearSums(5);
        for (int64_t x = 0; x < 4; ++x)
          headSums[x] = heads({x});
        for (int64_t x = 0; x < 12; ++x)
          rowSums[x] = byRow({x / 3, x % 3});
        for (int64_t x = 0; x < 5; ++x)
          nearSums[x] = near({x});
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c) {
            double value = w({r, c});
            int64_t place = std::clamp<int64_t>(i({r}) - j({c}), 0, 4);
            if (value == 0)
              continue;
            headSums[head] += double(t({r, c})) * value;
            headSums[3] += value;
            rowSums[std::min<int64_t>(r, 3) * 3 + head] += value;
            nearSums[place] += value;
          }
        kernel(w.descriptor(), t.descriptor(), i.descriptor(), j.descriptor(),
               heads.descriptor(), byRow.descriptor(), near.descriptor(), rows,
               columns, head);
        for (int64_t x = 0; x < 4; ++x)
          this->expectNear(heads({x}), headSums[x], 1024 * this->epsilon);
        for (int64_t x = 0; x < 12; ++x)
          this->expectNear(byRow({x / 3, x % 3}), rowSums[x],
                           1024 * this->epsilon);
        for (int64_t x = 0; x < 5; ++x)
          this->expectNear(near({x}), nearSums[x], 1024 * this->epsilon);
      });
}
