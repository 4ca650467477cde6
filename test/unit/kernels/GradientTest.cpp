//===- GradientTest.cpp - the kernels of an attend_grad -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From burst.attention_backward to PTX that is executed, on top of gradients
// that are not zero, against gradients in f64:
//
//   t = scale q k^T                     p = exp(score(t) - lse)
//   w = p (outGrad v^T - delta)         u = score'(t) w
//   dq = scale u k     dk = scale u^T q     dv = p^T outGrad
//
//===----------------------------------------------------------------------===//
#include "passes/Tile/CtaGradient.h"
#include "test/unit/kernels/KernelTest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace burst;
using namespace burst::kerneltest;

using tiling::CtaShape;

namespace {

class Gradient : public KernelTest<Problem> {
protected:
  void lower(const Problem &p);
};

/// A gradient, what each of its numbers may be off by, and where it is added
/// to.
struct Sum {
  Sum(const std::string &name, int64_t positions, int64_t heads, int64_t dim)
      : name(name), shape{1, positions, heads, dim},
        want(positions * heads * dim), size(want.size()) {}

  void add(int64_t position, int64_t head, int64_t d, double x) {
    int64_t at = (position * shape[2] + head) * shape[3] + d;
    want[at] += x;
    size[at] += std::abs(x);
  }
  void place(Launch &launch) {
    address = launch.buffer(name, std::vector<float>(want.size(), before),
                            shape, /*isWritten=*/true);
  }
  void check(Launch &launch, double unit) {
    std::vector<float> got =
        launch.get(address, static_cast<int64_t>(want.size()));
    for (auto [n, x] : llvm::enumerate(got))
      ASSERT_NEAR(x - before, want[n], unit * size[n] + 2e-5)
          << name << ", number " << n << " of heads " << shape[2] << ", dim "
          << shape[3];
  }

  static constexpr float before = 0.5F;
  std::string name;
  std::vector<int64_t> shape;
  std::vector<double> want, size;
  uint64_t address = 0;
};

} // namespace

void Gradient::lower(const Problem &p) {
  std::string q = p.typeOf(p.queries, p.heads, p.dim),
              k = p.typeOf(p.keys, p.keyHeads, p.dim),
              v = p.typeOf(p.keys, p.keyHeads, p.valueDim),
              o = p.typeOf(p.queries, p.heads, p.valueDim),
              lse = llvm::formatv("tensor<1x{0}x{1}xf32>", p.heads, p.queries);
  bench.lower(
      "shard.grid @cp(shape = 1)\nfunc.func @f(%q: " + q + ", %k: " + k +
          ", %v: " + v + ", %o: " + o + ", %lse: " + lse + ", %do: " + o +
          (p.table.empty() ? "" : ", %table: " + p.table) + ") -> (" + q +
          ", " + k + ", " + v +
          ") {\n  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, "
          "%lse, %do " +
          p.clauses + " sequence <@cp, contiguous> : (" + q + ", " + k + ", " +
          v + ", " + o + ", " + lse + ", " + o + ") -> (" + q + ", " + k +
          ", " + v + ")\n  return %dq, %dk, %dv : " + q + ", " + k + ", " + v +
          "\n}\n",
      "burst-to-ring,inline,symbol-dce,ring-bufferize,",
      "warps=4 rows=64 columns=64");
}

TEST_P(Gradient, AgreesWithGradientsInF64) {
  const Problem &p = GetParam();
  lower(p);
  if (HasFailure())
    return;

  Numbers numbers;
  auto draw = [&](int64_t positions, int64_t heads, int64_t dim) {
    return numbers.draw(positions * heads * dim, p.element);
  };
  std::vector<double> q = draw(p.queries, p.heads, p.dim),
                      k = draw(p.keys, p.keyHeads, p.dim),
                      v = draw(p.keys, p.keyHeads, p.valueDim),
                      outGrad = draw(p.queries, p.heads, p.valueDim);
  Sum dq("dq", p.queries, p.heads, p.dim), dk("dk", p.keys, p.keyHeads, p.dim),
      dv("dv", p.keys, p.keyHeads, p.valueDim);
  std::vector<float> lse(p.heads * p.queries), delta(p.heads * p.queries);
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.queries; ++i) {
      Row row = rowOf(p, q, k, h, i);
      const double *g = &outGrad[(i * p.heads + h) * p.valueDim];
      std::vector<double> dp(p.keys);
      double common = 0;
      for (int64_t j = 0; j < p.keys; ++j) {
        const double *values = &v[(j * p.keyHeads + p.keyHead(h)) * p.valueDim];
        for (int64_t d = 0; d < p.valueDim; ++d)
          dp[j] += g[d] * values[d];
        common += row.weights[j] * dp[j];
      }
      lse[h * p.queries + i] = static_cast<float>(row.lse);
      delta[h * p.queries + i] = static_cast<float>(common);
      for (int64_t j = 0; j < p.keys; ++j) {
        double weight = row.weights[j];
        if (weight == 0)
          continue;
        double u = p.scale() * p.derivative(row.products[j]) * weight *
                   (dp[j] - common);
        int64_t keyHead = p.keyHead(h);
        for (int64_t d = 0; d < p.dim; ++d) {
          dq.add(i, h, d, u * k[(j * p.keyHeads + keyHead) * p.dim + d]);
          dk.add(j, keyHead, d, u * q[(i * p.heads + h) * p.dim + d]);
        }
        for (int64_t d = 0; d < p.valueDim; ++d)
          dv.add(j, keyHead, d, weight * g[d]);
      }
    }

  auto run = [&](bool ofKeys, const std::vector<std::string> &kernels) {
    CtaShape cta = ofKeys ? tiling::keyCtaOf(p.dim, p.valueDim)
                          : tiling::queryCtaOf(p.dim, p.valueDim);
    Tiles queries{p.queries, ofKeys ? cta.columns : cta.rows},
        keys{p.keys, ofKeys ? cta.rows : cta.columns};
    Launch launch;
    launch.buffer("q", bitsOf(q, p.element), {1, p.queries, p.heads, p.dim});
    launch.buffer("dout", bitsOf(outGrad, p.element),
                  {1, p.queries, p.heads, p.valueDim});
    launch.buffer("k", bitsOf(k, p.element), {1, p.keys, p.keyHeads, p.dim});
    launch.buffer("v", bitsOf(v, p.element),
                  {1, p.keys, p.keyHeads, p.valueDim});
    launch.buffer("lse", lse, {1, p.heads, p.queries});
    launch.buffer("delta", delta, {1, p.heads, p.queries});
    launch.mask(p);
    launch.schedule(
        queries, keys,
        listsOf(p, queries, keys, ofKeys, [](int64_t) { return true; }));
    std::vector<Sum *> sums{&dq};
    if (ofKeys)
      sums = {&dk, &dv};
    for (Sum *sum : sums)
      sum->place(launch);
    for (const std::string &name : kernels) {
      Kernel made = bench.kernel("f_" + name);
      emulator::Module program;
      bench.compile(made, program);
      if (HasFailure())
        return;
      launch.run(program, made,
                 ofKeys ? keys.count() * p.keyHeads
                        : queries.count() * p.heads);
    }
    // What is multiplied is rounded to 16 bits: weights, or gradients by
    // scores. All else is of f32.
    for (Sum *sum : sums)
      sum->check(launch, unitOf(p.element) * 1.01);
  };
  run(/*ofKeys=*/false, {"attend_grad_queries"});
  if (tiling::keySumsOf(p.dim, p.valueDim).size() == 1)
    run(/*ofKeys=*/true, {"attend_grad_keys"});
  else
    run(/*ofKeys=*/true, {"attend_grad_keys", "attend_grad_values"});
}

static std::vector<Problem> problems() {
  std::vector<Problem> all;
  // 40 keys more than queries.
  auto add = [&](std::string name, int64_t dim, std::string clauses,
                 std::function<bool(int64_t, int64_t)> keeps) -> Problem & {
    all.push_back(
        problem(std::move(name), dim, std::move(clauses), std::move(keeps)));
    all.back().queries = 60;
    all.back().keys = 100;
    all.back().heads = 1;
    return all.back();
  };
  auto causal = [](int64_t i, int64_t j) { return j <= i + 40; };
  for (int64_t dim : {64, 96, 128, 256}) {
    if (dim == 64 || dim == 128)
      add("full" + std::to_string(dim), dim, "", everything);
    Problem &masked =
        add("causal" + std::to_string(dim), dim, "mask causal", causal);
    if (dim == 64 || dim == 128) { // heads that share keys, more tiles
      masked.heads = 2;
      masked.queries = 80;
      masked.keys = 120;
    }
  }
  add("window", 128, "mask [causal, window<left = 40, right = 3>]",
      [=](int64_t i, int64_t j) { return causal(i, j) && j >= i + 40 - 40; });
  // Sizes of all kinds: values of another dimension, f16, a multiple of 8 that
  // no fragment has, as many heads of keys as of queries.
  Problem &sizes = add("sizes", 40, "mask causal", causal);
  sizes.valueDim = 24;
  sizes.element = "f16";
  sizes.heads = sizes.keyHeads = 2;
  // A table that the mask reads.
  Problem &documents =
      add("documents", 64, "mask [causal, documents](%table : tensor<100xi32>)",
          nullptr);
  documents.queries = 100;
  documents.table = "tensor<100xi32>";
  for (int32_t j = 0; j < 100; ++j)
    documents.capture.push_back(j * j / 2500);
  documents.keeps = [ids = documents.capture](int64_t i, int64_t j) {
    return j <= i && ids[i] == ids[j];
  };
  // Rows that see nothing.
  add("nothing", 64, "mask causal", [](int64_t i, int64_t j) {
    return j <= i - 30;
  }).keys = 30;
  Problem &softcap =
      add("softcap", 64, "mask causal score softcap<5.0>", causal);
  softcap.score = [](double s, int64_t, int64_t) {
    return 5 * std::tanh(s / 5);
  };
  softcap.derivative = [](double s) {
    return 1 - std::pow(std::tanh(s / 5), 2);
  };
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Gradient,
                         testing::ValuesIn(sampleOf(problems())),
                         [](const auto &info) { return info.param.name; });
