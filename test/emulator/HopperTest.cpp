//===- HopperTest.cpp - mbarrier, bulk copies, wgmma ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Float.h"
#include "test/emulator/Text.h"

#include <random>

using namespace burst::emulator;

namespace {

/// The kernel of Inputs/hopper.cu: 128x256 by 256x128, whose last rows, and
/// steps of the contraction, lie outside the tensors.
struct Problem {
  static constexpr uint32_t m = 120, n = 128, k = 250, tiles = 256;
  Memory memory;
  std::vector<uint16_t> left = std::vector<uint16_t>(size_t(m) * tiles),
                        right = std::vector<uint16_t>(size_t(k) * n);
  uint64_t a, b, c;
  Problem() {
    std::mt19937 random(1);
    for (auto *matrix : {&left, &right})
      for (uint16_t &x : *matrix)
        x = toBF16(float(int(random() % 17) - 8) / 4);
    a = memory.add(left, "a", Memory::Access::ReadOnly);
    b = memory.add(right, "b", Memory::Access::ReadOnly);
    c = memory.allocate(size_t(4) * m * n, "c");
  }
  static TensorMap map(uint64_t address, uint32_t rows, uint32_t columns,
                       uint64_t stride, uint8_t element, uint8_t swizzle) {
    TensorMap map;
    map.rank = 2;
    map.elementBytes = element;
    map.swizzle = swizzle;
    map.address = address;
    map.sizes[0] = columns;
    map.sizes[1] = rows;
    map.strides[0] = stride;
    map.box[0] = map.box[1] = 64;
    return map;
  }
  Outcome launch(const std::string &text, const Options &options = {}) {
    Arguments arguments;
    arguments.add(map(a, m, k, 2 * tiles, 2, 3))
        .add(map(b, k, n, 2 * n, 2, 3))
        .add(map(c, m, n, 4 * n, 4, 0))
        .add(tiles);
    return parsed(text).launch("product", {2, 2}, {160}, 32768, arguments,
                               memory, options);
  }
};

std::string kernel() { return readInput("hopper.ptx"); }

TEST(Hopper, ProductAtEachLateness) {
  for (Lateness lateness :
       {Lateness::Late, Lateness::Early, Lateness::Random}) {
    for (uint64_t seed : {0, 1, 2}) {
      Problem problem;
      Options options;
      options.lateness = lateness;
      options.seed = seed;
      Outcome outcome = problem.launch(kernel(), options);
      ASSERT_TRUE(outcome.ok()) << str(outcome);
      ASSERT_TRUE(problem.memory.initialised(problem.c, size_t(4) * Problem::m *
                                                            Problem::n));
      auto got =
          problem.memory.get<float>(problem.c, size_t(Problem::m) * Problem::n);
      for (size_t i = 0; i < Problem::m; ++i)
        for (size_t j = 0; j < Problem::n; ++j) {
          float want = 0;
          for (size_t k = 0; k < Problem::k; ++k)
            want += fromBF16(problem.left[i * Problem::tiles + k]) *
                    fromBF16(problem.right[k * Problem::n + j]);
          ASSERT_EQ(got[i * Problem::n + j], want) << i << ", " << j;
        }
    }
  }
}

/// The failure of the kernel after an edit.
Failure failureOf(const std::string &from, const std::string &to,
                  int occurrence = 0) {
  Problem problem;
  Options options;
  options.budget = 1'000'000;
  Outcome outcome =
      problem.launch(edited(kernel(), from, to, occurrence), options);
  EXPECT_FALSE(outcome.ok()) << from;
  return outcome.failure.value_or(Failure());
}

void expectKind(const Failure &failure, FailureKind kind,
                const std::string &text) {
  EXPECT_EQ(name(failure.kind), name(kind)) << failure.str();
  EXPECT_NE(failure.text.find(text), std::string::npos) << failure.str();
}

const std::string waitOf = "mbarrier.try_wait.parity.shared::cta.b64 done, ",
                  noWait = "setp.eq.u32 done, 0, 0; // ";

TEST(Hopper, ConsumerDoesNotWaitForTheTile) {
  // The second wait of the text is the consumers'.
  expectKind(failureOf(waitOf, noWait, 1), FailureKind::Race,
             "wgmma.mma_async");
}

TEST(Hopper, ProducerDoesNotWaitForTheSlot) {
  Failure failure = failureOf(waitOf, noWait, 0);
  EXPECT_TRUE(failure.kind == FailureKind::Race ||
              failure.kind == FailureKind::Protocol)
      << failure.str();
}

TEST(Hopper, SlotReleasedBeforeItsProductIsDone) {
  expectKind(failureOf("wgmma.wait_group.sync.aligned 0;",
                       "wgmma.wait_group.sync.aligned 4;"),
             FailureKind::Race, "cp.async.bulk");
}

TEST(Hopper, MissingFences) {
  expectKind(failureOf("wgmma.fence.sync.aligned;", ";"), FailureKind::Protocol,
             "wgmma");
  expectKind(failureOf("fence.proxy.async.shared::cta;", ";"),
             FailureKind::Protocol, "cp.async.bulk.tensor");
}

TEST(Hopper, MissingBarriers) {
  // After the init of the mbarriers, before the tiles are overwritten, and
  // before what was written is sent.
  EXPECT_TRUE(failureOf("bar.sync \t0;", ";").kind == FailureKind::Race ||
              failureOf("bar.sync \t0;", ";").kind ==
                  FailureKind::Uninitialised);
  expectKind(failureOf("bar.sync 1, 128;", ";"), FailureKind::Race,
             "st.shared");
  Failure unsent = failureOf("bar.sync 2, 128;", ";");
  EXPECT_TRUE(unsent.kind == FailureKind::Race ||
              unsent.kind == FailureKind::Uninitialised)
      << unsent.str();
}

TEST(Hopper, MissingArrivals) {
  expectKind(failureOf("mbarrier.arrive.shared::cta",
                       "@!%p1 mbarrier.arrive.shared::cta"),
             FailureKind::Deadlock, "mbarrier.try_wait");
}

} // namespace
