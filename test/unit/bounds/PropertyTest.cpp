//===- PropertyTest.cpp - The bounds against brute force ------------------===//
//
// BURST_SEED and BURST_COUNT set the seed and the number of masks.
//
//===----------------------------------------------------------------------===//

#include "test/unit/bounds/RandomMask.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace mlir;
using namespace burst::test;

namespace {

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// How often the bounds decided what could be decided.
struct Score {
  uint64_t empty = 0, emptyFound = 0, full = 0, fullFound = 0, mixed = 0;

  void count(Decision truth, Decision found) {
    empty += !truth.may;
    emptyFound += !truth.may && !found.may;
    full += truth.must;
    fullFound += truth.must && found.must;
    mixed += truth.may && !truth.must;
  }
  uint64_t total() const { return empty + full + mixed; }
  double exact() const {
    return double(emptyFound + fullFound + mixed) /
           double(std::max<uint64_t>(total(), 1));
  }
  double found() const {
    return double(emptyFound + fullFound) /
           double(std::max<uint64_t>(empty + full, 1));
  }
  void print(const char *name) const {
    std::printf(
        "%-20s %8llu rectangles: empty %llu of %llu, full %llu of %llu, mixed "
        "%llu; decided %.1f%%, exact %.1f%%\n",
        name, (unsigned long long)total(), (unsigned long long)emptyFound,
        (unsigned long long)empty, (unsigned long long)fullFound,
        (unsigned long long)full, (unsigned long long)mixed, 100 * found(),
        100 * exact());
  }
};

class PropertyTest : public ::testing::Test {
protected:
  /// A mask that keeps some points and drops others, mostly: where all are kept
  /// or none is, little can be wrong.
  RandomMask drawVarying(MLIRContext &context, Random &random) {
    bool isUsual = random.chance(35);
    int tries = random.chance(90) ? 10 : 0;
    while (true) {
      RandomMask mask = drawMask(context, random, isUsual);
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
      if (style == Style::Constant && mask.tables.empty())
        EXPECT_TRUE(emitted->isConstant());
      if (check(program, *emitted, rectangle, score) && !HasFailure())
        continue;
      show(mask, *emitted, rectangle);
      return false;
    }
    return true;
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
  uint64_t count = fromEnvironment("BURST_COUNT", 20000);
  std::printf("BURST_SEED=%llu BURST_COUNT=%llu\n", (unsigned long long)seed,
              (unsigned long long)count);
  RecordProperty("seed", std::to_string(seed));
  std::unique_ptr<MLIRContext> context = makeContext();
  Score scores[2][3];
  for (uint64_t n = 0; n < count; ++n) {
    Random random(seed + n); // so that mask n alone is BURST_SEED=seed+n
    RandomMask mask = drawVarying(*context, random);
    std::vector<SmallVector<Extent>> rectangles = {
        mask.rectangle, drawPart(mask, random), drawPart(mask, random)};
    for (Style style : {Style::Constant, Style::Bounded, Style::Open}) {
      Score &score = scores[mask.isUsual][static_cast<int>(style)];
      if (!checkAll(mask, style, rectangles, drawAround(mask, random), score))
        FAIL() << "BURST_SEED=" << seed + n << " BURST_COUNT=1, style "
               << static_cast<int>(style);
    }
  }
  const char *names[2][3] = {
      {"random, constant", "random, bounded", "random, open"},
      {"usual, constant", "usual, bounded", "usual, open"}};
  for (int usual : {0, 1})
    for (int style : {0, 1, 2})
      scores[usual][style].print(names[usual][style]);
  if (count < 1000)
    return; // too few to say how often
  // A library that decides nothing would be sound, too. About 95 % were
  // measured.
  for (auto &ofKind : scores)
    for (const Score &score : ofKind)
      EXPECT_GT(score.found(), 0.9);
}

} // namespace
