//===- ExactTest.cpp - The usual masks are decided exactly ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Over all rectangles of small sequences: the bounds say what brute force says.
//
//===----------------------------------------------------------------------===//

#include "test/unit/bounds/Masks.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace burst::test;

namespace {

const char *const kCausal = R"(
  %shift = arith.subi %sk, %sq : index
  %last = arith.addi %i, %shift : index
  %causal = arith.cmpi sle, %j, %last : index
)";

struct Usual {
  const char *name, *captured, *body;
  std::vector<int64_t> numbers; // of what is captured besides tables
};

std::vector<Usual> usualMasks() {
  const char *full = "%keep = arith.constant true";
  static const std::string causal =
      std::string(kCausal) + "%keep = arith.ori %causal, %causal : i1";
  static const std::string window = std::string(kCausal) + R"(
    %first = arith.subi %last, %left : index
    %end = arith.addi %last, %right : index
    %after = arith.cmpi sle, %first, %j : index
    %before = arith.cmpi sle, %j, %end : index
    %keep = arith.andi %after, %before : i1)";
  static const std::string prefix = std::string(kCausal) + R"(
    %inside = arith.cmpi slt, %j, %n : index
    %keep = arith.ori %inside, %causal : i1)";
  const char *documents = R"(
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %keep = arith.cmpi eq, %x, %y : i32)";
  // The window as one comparison, and by distance; blocks of 2.
  const char *unsignedWindow = R"(
    %distance = arith.subi %i, %j : index
    %keep = arith.cmpi ult, %distance, %n : index)";
  const char *distance = R"(
    %i32 = arith.index_cast %i : index to i32
    %j32 = arith.index_cast %j : index to i32
    %difference = arith.subi %i32, %j32 : i32
    %distance = math.absi %difference : i32
    %keep = arith.cmpi sle, %distance, %n : i32)";
  const char *blocks = R"(
    %size = arith.constant 2 : index
    %x = arith.divui %i, %size : index
    %y = arith.divui %j, %size : index
    %keep = arith.cmpi sge, %x, %y : index)";
  const char *table = "%ids: tensor<?xi32>";
  return {
      {"full", "", full, {}},
      {"causal", "", causal.c_str(), {}},
      {"window 2 0", "%left: index, %right: index", window.c_str(), {2, 0}},
      {"window 1 2", "%left: index, %right: index", window.c_str(), {1, 2}},
      {"window -1 3", "%left: index, %right: index", window.c_str(), {-1, 3}},
      {"prefix 0", "%n: index", prefix.c_str(), {0}},
      {"prefix 3", "%n: index", prefix.c_str(), {3}},
      {"documents", table, documents, {}},
      {"unsigned window 3", "%n: index", unsignedWindow, {3}},
      {"unsigned window 0", "%n: index", unsignedWindow, {0}},
      {"distance 2", "%n: i32", distance, {2}},
      {"blocks", "", blocks, {}}};
}

class ExactTest : public ::testing::TestWithParam<Usual> {
protected:
  void checkAll(int64_t sq, int64_t sk, const Table &ids);

  std::unique_ptr<MLIRContext> context = makeContext();
};

void ExactTest::checkAll(int64_t sq, int64_t sk, const Table &ids) {
  const Usual &usual = GetParam();
  OwningOpRef<Operation *> mask =
      parseMask(*context, usual.body, usual.captured);
  Region &region = mask->getRegion(0);
  Program program(region.front());
  SmallVector<Extent> whole = {{0, 0},      {0, 0},   {0, sq - 1},
                               {0, sk - 1}, {sq, sq}, {sk, sk}};
  SmallVector<bool> captured = {false, false, false, false, true, true};
  for (int64_t number : usual.numbers)
    whole.push_back({number, number});
  if (usual.numbers.empty() && *usual.captured)
    whole.push_back({0, 0, &ids});
  captured.resize(whole.size(), true);
  Emitted bounded(region, Style::Bounded, whole, captured);
  Emitted open(region, Style::Open, whole, captured);
  SmallVector<Extent> part = whole;
  for (int64_t i0 = 0; i0 < sq; ++i0)
    for (int64_t i1 = i0; i1 < sq; ++i1)
      for (int64_t j0 = 0; j0 < sk; ++j0)
        for (int64_t j1 = j0; j1 < sk; ++j1) {
          part[2] = {i0, i1};
          part[3] = {j0, j1};
          std::optional<Decision> truth = bruteForce(program, part);
          Emitted constant(region, Style::Constant, part, captured);
          EXPECT_EQ(constant.run(part), truth);
          EXPECT_EQ(bounded.run(part), truth);
          EXPECT_EQ(open.run(part), truth);
          if (HasFailure()) {
            FAIL() << "i " << i0 << ".." << i1 << ", j " << j0 << ".." << j1
                   << " of " << sq << " x " << sk << "\n"
                   << open.text();
          }
        }
}

TEST_P(ExactTest, AllRectangles) {
  Table ids;
  ids.shape = {7};
  for (const std::vector<int64_t> &elements :
       std::vector<std::vector<int64_t>>{{0, 0, 0, 0, 0, 0, 0},
                                         {0, 0, 1, 1, 1, 4, 4},
                                         {1, 2, 3, 4, 5, 6, 7}}) {
    ids.elements = elements;
    checkAll(5, 5, ids);
    checkAll(4, 7, ids);
    checkAll(7, 4, ids);
    checkAll(1, 6, ids);
  }
}

std::string nameOf(const ::testing::TestParamInfo<Usual> &info) {
  std::string name = info.param.name;
  for (char &c : name)
    c = c == ' ' ? '_' : c == '-' ? 'm' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Usual, ExactTest, ::testing::ValuesIn(usualMasks()),
                         nameOf);

} // namespace
