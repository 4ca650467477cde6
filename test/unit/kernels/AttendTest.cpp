//===- AttendTest.cpp - the kernel of an attend ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From burst.attention to PTX that is executed, in two launches that hand the
// state on, against attention in f64.
//
//===----------------------------------------------------------------------===//
#include "dialect/Cuda/Cuda.h"
#include "test/unit/kernels/KernelTest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace burst;
using namespace burst::kerneltest;

namespace {

class Attend : public KernelTest<Problem> {
protected:
  Kernel lower(const Problem &p);
};

} // namespace

Kernel Attend::lower(const Problem &p) {
  std::string q = p.typeOf(p.queries, p.heads, p.dim),
              k = p.typeOf(p.keys, p.keyHeads, p.dim),
              v = p.typeOf(p.keys, p.keyHeads, p.valueDim),
              o = p.typeOf(p.queries, p.heads, p.valueDim),
              lse = llvm::formatv("tensor<1x{0}x{1}xf32>", p.heads, p.queries);
  bench.lower("shard.grid @cp(shape = 1)\nfunc.func @f(%q: " + q +
                  ", %k: " + k + ", %v: " + v +
                  (p.table.empty() ? "" : ", %table: " + p.table) + ") -> (" +
                  o + ", " + lse +
                  ") {\n  %o, %lse = burst.attention %q, %k, %v " + p.clauses +
                  " sequence <@cp, contiguous> : (" + q + ", " + k + ", " + v +
                  ") -> (" + o + ", " + lse + ")\n  return %o, %lse : " + o +
                  ", " + lse + "\n}\n",
              "burst-to-ring{fuse=false},inline,symbol-dce,ring-bufferize,",
              llvm::formatv("rows={0} columns={1} warps={2}", p.rows, p.columns,
                            p.warps));
  return bench.kernel("f_attend");
}

TEST_P(Attend, AgreesWithAttentionInF64) {
  const Problem &p = GetParam();
  Kernel kernel = lower(p);
  emulator::Module program;
  bench.compile(kernel, program);
  if (HasFailure())
    return;

  Numbers numbers;
  std::vector<double> q = numbers.draw(p.queries * p.heads * p.dim, p.element),
                      k = numbers.draw(p.keys * p.keyHeads * p.dim, p.element),
                      v = numbers.draw(p.keys * p.keyHeads * p.valueDim,
                                       p.element);
  Launch launch;
  launch.buffer("q", bitsOf(q, p.element), {1, p.queries, p.heads, p.dim});
  launch.buffer("k", bitsOf(k, p.element), {1, p.keys, p.keyHeads, p.dim});
  launch.buffer("v", bitsOf(v, p.element), {1, p.keys, p.keyHeads, p.valueDim});
  launch.mask(p);
  int64_t rows = p.queries * p.heads;
  uint64_t o = launch.buffer("oState", std::vector<float>(rows * p.valueDim),
                             {1, p.queries, p.heads, p.valueDim}, true),
           m = launch.buffer("mState", std::vector<float>(rows, -INFINITY),
                             {1, p.heads, p.queries}, true),
           l = launch.buffer("lState", std::vector<float>(rows),
                             {1, p.heads, p.queries}, true);
  // The first launch takes the first half of the keys, the second the others.
  Tiles queryTiles{p.queries, p.rows, p.begin},
      keyTiles{p.keys, p.columns, p.begin};
  for (int64_t half = 0; half < 2; ++half) {
    launch.schedule(
        queryTiles, keyTiles,
        listsOf(p, queryTiles, keyTiles, /*ofKeys=*/false, [&](int64_t key) {
          return (key < keyTiles.count() / 2) == (half == 0);
        }));
    launch.run(program, kernel, queryTiles.count() * p.heads, half);
    if (HasFailure())
      return;
  }

  std::vector<float> outs = launch.get(o, rows * p.valueDim),
                     references = launch.get(m, rows),
                     sums = launch.get(l, rows);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.queries; ++i) {
      Row want = rowOf(p, q, k, h, i);
      int64_t row = h * p.queries + i;
      if (std::isinf(want.lse)) {
        EXPECT_EQ(sums[row], 0) << "row " << i << " sees nothing";
        continue;
      }
      double got = (references[row] + std::log2(sums[row])) * std::log(2.0);
      EXPECT_NEAR(got, want.lse, 1e-5 * std::max(1.0, std::abs(want.lse)))
          << "lse of head " << h << ", row " << i;
      for (int64_t d = 0; d < p.valueDim; ++d) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < p.keys; ++j) {
          double x = want.weights[j] *
                     v[(j * p.keyHeads + p.keyHead(h)) * p.valueDim + d];
          sum += x;
          size += std::abs(x);
        }
        double out = outs[(i * p.heads + h) * p.valueDim + d] / sums[row];
        // Weights are rounded to 16 bits; all else is of f32.
        ASSERT_NEAR(out, sum, unitOf(p.element) * size + 1e-5)
            << "head " << h << ", row " << i << ", column " << d;
      }
    }
}

static std::vector<Problem> problems() {
  std::vector<Problem> all_;
  auto causal = [](int64_t i, int64_t j) { return j <= i + 50; };
  for (int64_t dim : {64, 96, 128, 256}) {
    all_.push_back(problem("full" + std::to_string(dim), dim, "", everything));
    all_.push_back(
        problem("causal" + std::to_string(dim), dim, "mask causal", causal));
    if (dim == 256)
      for (Problem &p : llvm::drop_begin(all_, all_.size() - 2))
        p.columns = 32;
  }
  all_.push_back(problem(
      "window", 64, "mask [causal, window<left = 40, right = 3>]",
      [=](int64_t i, int64_t j) { return causal(i, j) && j >= i + 50 - 40; }));
  // Sizes of all kinds: values of another dimension, f16, a multiple of 8 that
  // no fragment has, more rows for a warp, 8 warps.
  Problem sizes = problem("sizes", 40, "mask causal", causal);
  sizes.valueDim = 24;
  sizes.element = "f16";
  sizes.rows = 128;
  sizes.columns = 48;
  all_.push_back(sizes);
  Problem warps = problem("warps", 128, "mask causal", causal);
  warps.rows = 128;
  warps.warps = 8;
  all_.push_back(warps);
  // The last positions that there are: differences below 0 that are read
  // without a sign, sums that do and do not fit in 32 bits, and a product.
  constexpr int64_t largest = tile::largestExtent;
  Problem far = problem("far", 64, R"(mask(%b, %h, %i, %j, %sq, %sk) {
      %c40 = arith.constant 40 : index
      %last = arith.constant 5368708948 : index
      %c7 = arith.constant 7 : index
      %zero = arith.constant 0 : index
      %from = arith.subi %i, %j : index
      %near = arith.cmpi ult, %from, %c40 : index
      %sum = arith.addi %i, %j : index
      %three = arith.addi %sum, %sk : index
      %four = arith.addi %three, %sk : index
      %all = arith.addi %four, %sk : index
      %behind = arith.cmpi sgt, %all, %last : index
      %product = arith.muli %i, %j : index
      %rest = arith.remui %product, %c7 : index
      %seventh = arith.cmpi eq, %rest, %zero : index
      %one = arith.ori %near, %behind : i1
      %keep = arith.ori %one, %seventh : i1
      burst.yield %keep : i1
    })",
                        [](int64_t i, int64_t j) {
                          i += largest - 150;
                          j += largest - 150;
                          return (j <= i && i - j < 40) ||
                                 i + j + 3 * largest > 5368708948 ||
                                 i * j % 7 == 0;
                        });
  far.begin = largest - 150;
  far.extent = largest;
  far.columns = 32;
  all_.push_back(far);
  // Rows that see nothing, and a table that the mask reads.
  Problem documents =
      problem("documents", 64,
              "mask [causal, documents](%table : tensor<150xi32>)", nullptr);
  documents.queries = 150;
  documents.table = "tensor<150xi32>";
  for (int32_t j = 0; j < 150; ++j)
    documents.capture.push_back(j * j / 3000);
  documents.keeps = [ids = documents.capture](int64_t i, int64_t j) {
    return j <= i && ids[i] == ids[j];
  };
  all_.push_back(documents);
  Problem nothing = problem("nothing", 64, "mask causal",
                            [](int64_t i, int64_t j) { return j <= i - 50; });
  nothing.keys = 50;
  all_.push_back(nothing);
  Problem softcap = problem("softcap", 64, "score softcap<5.0>", everything);
  softcap.score = [](double s, int64_t, int64_t) {
    return 5 * std::tanh(s / 5);
  };
  all_.push_back(softcap);
  return all_;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Attend,
                         testing::ValuesIn(sampleOf(problems())),
                         [](const auto &info) { return info.param.name; });
