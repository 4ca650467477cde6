//===- PropertyTest.cpp - The bounds against brute force ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// BURST_SEED and BURST_COUNT set the seed and the number of masks.
//
//===----------------------------------------------------------------------===//

#include "test/unit/Sanitizers.h"
#include "test/unit/bounds/RandomMask.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace mlir;
using namespace burst::test;

namespace {

constexpr uint64_t kCount = isSanitized ? 4000 : 20000;

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// How often the bounds decided what could be decided.
struct Score {
  uintmax_t empty = 0, emptyFound = 0, full = 0, fullFound = 0, mixed = 0;

  void count(Decision truth, Decision found) {
    empty += !truth.may;
    emptyFound += !truth.may && !found.may;
    full += truth.must;
    fullFound += truth.must && found.must;
    mixed += truth.may && !truth.must;
  }
  uintmax_t total() const { return empty + full + mixed; }
  double exact() const {
    return double(emptyFound + fullFound + mixed) /
           double(std::max<uintmax_t>(total(), 1));
  }
  double found() const {
    return double(emptyFound + fullFound) /
           double(std::max<uintmax_t>(empty + full, 1));
  }
  void print(const char *kind, const char *style) const {
    std::printf("%-9s %-8s %6ju rectangles: empty %ju of %ju, full %ju of %ju, "
                "mixed %ju; decided %.1f%%, exact %.1f%%\n",
                kind, style, total(), emptyFound, empty, fullFound, full, mixed,
                100 * found(), 100 * exact());
  }
};

class PropertyTest : public ::testing::Test {
protected:
  /// A mask that keeps some points and drops others, mostly: where all are kept
  /// or none is, little can be wrong.
  RandomMask drawVarying(MLIRContext &context, Random &random) {
    auto kind = random.pick(
        {RandomMask::Random, RandomMask::Single, RandomMask::Usual});
    int tries = random.chance(90) ? 10 : 0;
    while (true) {
      RandomMask mask = drawMask(context, random, kind);
      Program program(mask.op->getRegion(0).front());
      std::optional<Decision> truth = bruteForce(program, mask.rectangle);
      if (--tries < 0 || (truth && truth->may && !truth->must))
        return mask;
    }
  }

  /// Checks one way to hand over some rectangles, the first of which contains
  /// the others; `around` contains them all.
  bool checkAll(RandomMask &mask, Style style,
                ArrayRef<SmallVector<Extent>> rectangles,
                ArrayRef<Extent> around, Score &score) {
    Region &region = mask.op->getRegion(0);
    std::optional<Emitted> emitted;
    Program program(region.front());
    for (ArrayRef<Extent> rectangle : rectangles) {
      if (!emitted || style == Style::Constant)
        emitted.emplace(region, style,
                        style == Style::Constant ? rectangle : around,
                        mask.captured);
      bool folds = style == Style::Constant && mask.tables.empty();
      EXPECT_TRUE(!folds || emitted->isConstant());
      EXPECT_TRUE(style == Style::Constant || emitted->run(reversed(rectangle)))
          << "undefined behaviour on an empty rectangle";
      if (check(program, *emitted, rectangle, score) && !HasFailure())
        continue;
      show(mask, *emitted, rectangle);
      return false;
    }
    return true;
  }

  /// An empty rectangle.
  SmallVector<Extent> reversed(ArrayRef<Extent> rectangle) {
    SmallVector<Extent> result(rectangle);
    for (Extent &extent : result)
      std::swap(extent.lo, extent.hi);
    return result;
  }

  /// Checks one rectangle; false if the bounds are wrong.
  bool check(Program &program, Emitted &emitted, ArrayRef<Extent> rectangle,
             Score &score) {
    std::optional<Decision> found = emitted.run(rectangle);
    EXPECT_TRUE(found) << "the emitted code has undefined behaviour";
    std::optional<Decision> truth = bruteForce(program, rectangle);
    if (!found || !truth)
      return found.has_value();
    bool sound = (found->may || !truth->may) && (!found->must || truth->must);
    EXPECT_TRUE(sound) << "found may=" << found->may << " must=" << found->must
                       << ", true are may=" << truth->may
                       << " must=" << truth->must;
    score.count(*truth, *found);
    return sound;
  }

  void show(RandomMask &mask, Emitted &emitted, ArrayRef<Extent> rectangle) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    mask.op->print(stream, OpPrintingFlags().printGenericOpForm());
    stream << "\nrectangle";
    for (const Extent &extent : rectangle) {
      stream << ' ' << extent.lo << ".." << extent.hi;
      if (!extent.table)
        continue;
      stream << '[';
      llvm::interleaveComma(extent.table->elements, stream);
      stream << ']';
    }
    stream << "\nemitted\n" << emitted.text();
    std::fputs(text.c_str(), stdout);
  }
};

TEST_F(PropertyTest, SoundOnRandomMasks) {
  uint64_t seed = fromEnvironment("BURST_SEED", std::random_device()());
  uint64_t count = fromEnvironment("BURST_COUNT", kCount);
  std::printf("BURST_SEED=%llu BURST_COUNT=%llu\n", (unsigned long long)seed,
              (unsigned long long)count);
  RecordProperty("seed", std::to_string(seed));
  std::unique_ptr<MLIRContext> context = makeContext();
  Score scores[3][3];
  for (uint64_t n = 0; n < count; ++n) {
    Random random(seed + n); // so that mask n alone is BURST_SEED=seed+n
    RandomMask mask = drawVarying(*context, random);
    std::vector<SmallVector<Extent>> rectangles = {
        mask.rectangle, drawPart(mask, random), drawPart(mask, random)};
    for (Style style : {Style::Constant, Style::Bounded, Style::Open}) {
      Score &score = scores[mask.kind][static_cast<int>(style)];
      if (!checkAll(mask, style, rectangles, drawAround(mask, random), score))
        FAIL() << "BURST_SEED=" << seed + n << " BURST_COUNT=1, style "
               << static_cast<int>(style);
    }
  }
  const char *kinds[] = {"random", "single op", "usual"};
  const char *styles[] = {"constant", "bounded", "open"};
  for (int kind : {0, 1, 2})
    for (int style : {0, 1, 2})
      scores[kind][style].print(kinds[kind], styles[style]);
  if (count < 10000)
    return; // too few to say how often
  // A library that decides nothing would be sound, too. Of single ops, which
  // come with numbers that overflow, less can be decided, least where guards
  // have to find that out.
  const double floors[3][3] = {
      {0.91, 0.91, 0.91}, {0.80, 0.67, 0.65}, {0.93, 0.93, 0.93}};
  for (int kind : {0, 1, 2})
    for (int style : {0, 1, 2})
      EXPECT_GT(scores[kind][style].found(), floors[kind][style])
          << kinds[kind] << ", " << styles[style];
}

} // namespace
