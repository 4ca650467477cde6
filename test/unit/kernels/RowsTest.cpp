//===- RowsTest.cpp - kernels that go over rows ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands before, between and behind attends: a state is made, merged and
// becomes an attention; gradients are zeroed, added up and rounded; delta.
//
//===----------------------------------------------------------------------===//
#include "test/unit/kernels/KernelTest.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace burst;
using namespace burst::kerneltest;

namespace {

struct Sizes {
  std::string name, element;
  int64_t dim, rows;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for it.
void PrintTo(const Sizes &sizes, std::ostream *os) { *os << sizes.name; }

class Rows : public KernelTest<Sizes> {
protected:
  const int64_t rows = GetParam().rows, heads = 2, numRows = rows * heads;
  const std::vector<int64_t> perRow{1, heads, rows};

  void SetUp() override {
    KernelTest<Sizes>::SetUp();
    if (IsSkipped())
      return;
    const Sizes &sizes = GetParam();
    auto shards = [&](llvm::StringRef element) {
      return llvm::formatv("memref<1x{0}x{1}x{2}x{3}>", rows, heads, sizes.dim,
                           element)
          .str();
    };
    std::string o = shards("f32"), out = shards(sizes.element),
                m = llvm::formatv("memref<1x{0}x{1}xf32>", heads, rows);
    bench.lower(llvm::formatv(R"(
shard.grid @cp(shape = 1)
func.func @f(%q: {1}, %o: {0}, %m: {2}, %l: {2}, %o2: {0}, %m2: {2}, %l2: {2},
             %dlse: {2}) attributes {{ring.grid = @cp} {{
  %n = arith.constant {3} : index
  %zero = arith.constant 0 : index
  ring.init %q into %o, %m, %l : {1}, {0}, {2}, {2}
  ring.merge (%o, %m, %l) with (%o2, %m2, %l2) of <contiguous over 1>[%zero] extent %n
      : {0}, {2}, {2}, {0}, {2}, {2}
  ring.finalize %o, %m, %l into %q, %m2 : {0}, {2}, {2}, {1}, {2}
  ring.zero %q into %o : {1}, {0}
  ring.delta %q, %q less %dlse into %m : {1}, {1}, {2}, {2}
  ring.add %o, %o2 of <contiguous over 1>[%zero] extent %n : {0}, {0}
  ring.round %o into %q : {0}, {1}
  return
})",
                              o, out, m, rows),
                "", "warps=4 rows=128 columns=64");
  }

  /// Executes a kernel whose buffers are in `launch`.
  void run(const std::string &name, Launch &launch) {
    Kernel made = bench.kernel("f_" + name);
    emulator::Module program;
    bench.compile(made, program);
    if (!HasFailure())
      launch.run(program, made, heads * ((rows + 63) / 64));
  }
  int64_t dim() const { return GetParam().dim; }
  std::vector<int64_t> shard() const { return {1, rows, heads, dim()}; }
  /// Numbers of f32 which 16 bits do not hold.
  std::vector<float> numbers(int64_t count) {
    std::vector<double> high = drawn.draw(count, "f16"),
                        low = drawn.draw(count, "f16");
    std::vector<float> numbers;
    for (auto [a, b] : llvm::zip_equal(high, low))
      numbers.push_back(static_cast<float>(a + b / 4096));
    return numbers;
  }
  /// Where a row lies in (batch, heads, sequence), by the row of a shard.
  int64_t at(int64_t row) const { return row % heads * rows + row / heads; }
  float fromBits(uint16_t bits) const;

  Numbers drawn;
};

} // namespace

TEST_P(Rows, StatesAreMade) {
  Launch launch;
  uint64_t o = launch.buffer("oState", numbers(numRows * dim()), shard(), true),
           m = launch.buffer("mState", numbers(numRows), perRow, true),
           l = launch.buffer("lState", numbers(numRows), perRow, true);
  run("init", launch);
  EXPECT_EQ(launch.get(o, numRows * dim()),
            std::vector<float>(numRows * dim()));
  EXPECT_EQ(launch.get(m, numRows), std::vector<float>(numRows, -INFINITY));
  EXPECT_EQ(launch.get(l, numRows), std::vector<float>(numRows));
}

TEST_P(Rows, StatesAreMerged) {
  std::vector<float> o = numbers(numRows * dim()), m = numbers(numRows),
                     l(numRows, 2.F), o2 = numbers(numRows * dim()),
                     m2 = numbers(numRows), l2(numRows, 3.F);
  // Rows that one of the two saw nothing of, and a row that both did not.
  for (int64_t row : {3, 5})
    m[row] = -INFINITY, l[row] = 0;
  for (int64_t row : {5, 29})
    m2[row] = -INFINITY, l2[row] = 0;
  Launch launch;
  launch.buffer("oFrom", o2, shard());
  launch.buffer("mFrom", m2, perRow);
  launch.buffer("lFrom", l2, perRow);
  uint64_t oAt = launch.buffer("oState", o, shard(), true),
           mAt = launch.buffer("mState", m, perRow, true),
           lAt = launch.buffer("lState", l, perRow, true);
  run("merge", launch);
  auto outs = launch.get(oAt, numRows * dim()), most = launch.get(mAt, numRows),
       sums = launch.get(lAt, numRows);
  for (int64_t row = 0; row < numRows; ++row) {
    int64_t x = at(row);
    float reference = std::max(m[x], m2[x]);
    ASSERT_EQ(most[x], reference);
    auto factor = [&](double m) {
      return std::isinf(m) ? 0.0 : std::exp2(m - reference);
    };
    ASSERT_NEAR(sums[x], factor(m[x]) * l[x] + factor(m2[x]) * l2[x], 1e-5);
    for (int64_t d = row * dim(); d < (row + 1) * dim(); ++d)
      ASSERT_NEAR(outs[d], factor(m[x]) * o[d] + factor(m2[x]) * o2[d], 1e-5);
  }
}

TEST_P(Rows, StatesBecomeAttentions) {
  std::vector<float> o = numbers(numRows * dim()), m = numbers(numRows),
                     l(numRows, 3.F);
  m[7] = -INFINITY, l[7] = 0;
  Launch launch;
  launch.buffer("oState", o, shard());
  uint64_t lse = launch.buffer("mState", m, perRow, true);
  launch.same("lse", "mState"); // as programs have it
  launch.buffer("lState", l, perRow);
  uint64_t out = launch.buffer("out", std::vector<uint16_t>(numRows * dim(), 1),
                               shard(), true);
  run("finalize", launch);
  std::vector<double> want(numRows * dim());
  auto lses = launch.get(lse, numRows);
  for (int64_t row = 0; row < numRows; ++row) {
    int64_t x = at(row);
    if (l[x] == 0)
      EXPECT_EQ(lses[x], -INFINITY);
    else
      EXPECT_NEAR(lses[x], (m[x] + std::log2(3.0)) * std::log(2.0), 1e-5);
    for (int64_t d = row * dim(); d < (row + 1) * dim(); ++d)
      want[d] = l[x] == 0 ? 0 : o[d] / 3.0;
  }
  auto outs = launch.memory.get<uint16_t>(out, numRows * dim());
  for (auto [d, number] : llvm::enumerate(want))
    ASSERT_NEAR(fromBits(outs[d]), number,
                unitOf(GetParam().element) * std::abs(number) + 1e-7);
}

TEST_P(Rows, GradientsAreZeroed) {
  Launch launch;
  uint64_t gradient =
      launch.buffer("gradient", numbers(numRows * dim()), shard(), true);
  run("zero", launch);
  EXPECT_EQ(launch.get(gradient, numRows * dim()),
            std::vector<float>(numRows * dim()));
}

TEST_P(Rows, GradientsAreAddedUp) {
  std::vector<float> a = numbers(numRows * dim()), b = numbers(numRows * dim());
  Launch launch;
  uint64_t gradient = launch.buffer("gradient", a, shard(), true);
  launch.buffer("from", b, shard());
  run("add", launch);
  for (auto [x, y] : llvm::zip_equal(a, b))
    x += y;
  EXPECT_EQ(launch.get(gradient, numRows * dim()), a);
}

TEST_P(Rows, GradientsAreRounded) {
  std::vector<float> gradient = numbers(numRows * dim());
  Launch launch;
  launch.buffer("gradient", gradient, shard());
  uint64_t out = launch.buffer(
      "rounded", std::vector<uint16_t>(numRows * dim()), shard(), true);
  run("round", launch);
  EXPECT_EQ(launch.memory.get<uint16_t>(out, numRows * dim()),
            bitsOf({gradient.begin(), gradient.end()}, GetParam().element));
}

TEST_P(Rows, DeltasAreProductsOfRows) {
  const std::string &element = GetParam().element;
  std::vector<double> out = drawn.draw(numRows * dim(), element),
                      outGrad = drawn.draw(numRows * dim(), element);
  std::vector<float> lseGrad = numbers(numRows);
  Launch launch;
  launch.buffer("out", bitsOf(out, element), shard());
  launch.buffer("dout", bitsOf(outGrad, element), shard());
  launch.buffer("dlse", lseGrad, perRow);
  uint64_t delta =
      launch.buffer("delta", std::vector<float>(numRows), perRow, true);
  run("delta", launch);
  auto deltas = launch.get(delta, numRows);
  for (int64_t row = 0; row < numRows; ++row) {
    double want = -lseGrad[at(row)], size = 0;
    for (int64_t d = row * dim(); d < (row + 1) * dim(); ++d) {
      want += out[d] * outGrad[d];
      size += std::abs(out[d] * outGrad[d]);
    }
    EXPECT_NEAR(deltas[at(row)], want, 1e-6 * size);
  }
}

float Rows::fromBits(uint16_t bits) const {
  llvm::APFloat number(GetParam().element == "bf16" ? llvm::APFloat::BFloat()
                                                    : llvm::APFloat::IEEEhalf(),
                       llvm::APInt(16, bits));
  bool loses = false;
  number.convert(llvm::APFloat::IEEEsingle(),
                 llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.convertToFloat();
}

INSTANTIATE_TEST_SUITE_P(Kernels, Rows,
                         testing::Values(Sizes{"bf16x128", "bf16", 128, 70},
                                         Sizes{"f16x40", "f16", 40, 30},
                                         Sizes{"bf16x256", "bf16", 256, 70}),
                         [](const auto &info) { return info.param.name; });
