//===- TargetTest.cpp - processors by name --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Target.h"
#include "burst/internal/processor.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

#include "gtest/gtest.h"

using namespace burst;

static constexpr const char *triples[] = {"x86_64-linux-gnu",
                                          "aarch64-linux-gnu"};

/// All features that code for processors of a triple may ask for.
static llvm::StringMap<std::string> requiredOf(const char *triple) {
  llvm::StringMap<std::string> asked;
  std::string error;
  auto names = cpu::Target::names(triple, error);
  EXPECT_TRUE(succeeded(names)) << error;
  for (const std::string &name : *names) {
    auto target = cpu::Target::named(triple, name, "", error);
    if (failed(target))
      continue; // without vectors
    for (const std::string &feature : target->required())
      asked.try_emplace(feature, name);
  }
  return asked;
}

// What the compiler writes into an image, the runtime understands, and both see
// the same processor.
TEST(TargetTest, RuntimeKnowsFeatures) {
  llvm::StringMap<bool> here = llvm::sys::getHostCPUFeatures();
  bool compared = false;
  for (const char *triple : triples) {
    std::string error;
    if (!cpu::Target::named(triple, "", "", error)->isNative())
      continue;
    for (const auto &asked : requiredOf(triple)) {
      std::string name = asked.getKey().str();
      int has = burst_processor_has(name.data(), name.size());
      EXPECT_GE(has, 0) << name << " of " << asked.getValue()
                        << " is not known to the runtime";
      if (!here.contains(name))
        continue; // LLVM does not ask for it
      EXPECT_EQ(has == 1, here.lookup(name)) << name;
      compared = true;
    }
  }
  EXPECT_TRUE(compared);
  EXPECT_EQ(burst_processor_has("avx1024", 7), -1);
}

// A register tile, the operands of a step and nothing else fit into registers;
// tiles fit everything that they are cut into.
TEST(TargetTest, RegisterTilesFit) {
  for (const char *triple : triples) {
    std::string error;
    auto names = cpu::Target::names(triple, error);
    ASSERT_TRUE(succeeded(names)) << error;
    size_t known = 0;
    for (const std::string &name : *names) {
      auto target = cpu::Target::named(triple, name, "", error);
      if (failed(target))
        continue;
      ++known;
      SCOPED_TRACE(target->str());
      int64_t vectors = target->microVectors;
      EXPECT_EQ(target->keyPanelBytes() % (target->vectorBits / 8), 0);
      EXPECT_EQ(target->panelBytes() % target->keyPanelBytes(), 0);
      EXPECT_LE(target->microRows * vectors + vectors + 1, target->registers);
      EXPECT_GE(target->steps, 1);
      EXPECT_GE(target->exponentials, 1);
      EXPECT_GE(target->weights, 1);
      EXPECT_TRUE(!target->dot || target->vectorBits == 512);
    }
    EXPECT_GT(known, 50u);
  }
}

TEST(TargetTest, WithoutVectors) {
  std::string error;
  EXPECT_TRUE(failed(
      cpu::Target::named("aarch64-linux-gnu", "generic", "-neon", error)));
  EXPECT_EQ(error,
            "processor 'generic' without feature 'neon', wanted vectors");
}
