//===- CacheTest.cpp - programs that are compiled once --------------------===//
#include "Problem.h"

#include <thread>

using namespace burst;
using namespace burst::test;

namespace {
struct Cached : testing::Test {
  api::Result<api::Cache> cache = api::Cache::create();
  burst_compile_config config = api::make<burst_compile_config>();

  Cached() { config.cache = cache->get(); }
};
} // namespace

TEST_F(Cached, sameKeySameProgram) {
  api::Program first = compiled(smallAttention(), config);
  api::Program second = compiled(smallAttention(), config);
  EXPECT_EQ(first.get(), second.get());
  EXPECT_EQ(cache->size(), 1);
  EXPECT_EQ(cache->hits(), 1);
}

TEST_F(Cached, theKeyIsWhatDecidesTheCode) {
  burst_attention attention = smallAttention();
  api::Program first = compiled(attention, config);
  attention.order = BURST_CONTIGUOUS;
  EXPECT_NE(compiled(attention, config).get(), first.get());
  attention.order = BURST_ZIGZAG;
  config.features = "-fma";
  EXPECT_NE(compiled(attention, config).get(), first.get());
  EXPECT_EQ(cache->size(), 3);
  EXPECT_EQ(cache->hits(), 0);
  // The name appears in errors only.
  config.features = nullptr;
  config.name = "other";
  EXPECT_EQ(compiled(attention, config).get(), first.get());
}

TEST_F(Cached, threadsCompileOnce) {
  constexpr int count = 6;
  std::vector<api::Program> programs(count);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back(
          [&, i] { programs[i] = compiled(smallAttention(), config); });
  }
  for (const api::Program &program : programs)
    EXPECT_EQ(program.get(), programs[0].get());
  EXPECT_EQ(cache->size(), 1);
  EXPECT_EQ(cache->hits(), count - 1);
}

TEST_F(Cached, errorsAreNotKept) {
  constexpr int count = 4;
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      auto program = api::Program::compile("oops", config);
      ASSERT_FALSE(program);
      EXPECT_EQ(program.error().location(), "text:1:1");
    });
  threads.clear();
  EXPECT_EQ(cache->size(), 0);
  EXPECT_EQ(cache->hits(), 0);
}

TEST_F(Cached, programsOutliveIt) {
  api::Program program = compiled(smallAttention(), config);
  *cache = api::Cache();
  Problem problem(smallAttention());
  expectSuccess(problem.run(program));
  problem.expectResults();
}

TEST_F(Cached, filesAreAlwaysCompiled) {
  EXPECT_EQ(take(burst_compile_to_file("", 0, &config, "/dev/null/x")),
            "burst_compile_config: a cache, wanted none: a file is always "
            "compiled");
}

/// Sizes that the text leaves open need no second compilation.
TEST_F(Cached, oneProgramForAllSizes) {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  api::Program program = compiled(attention, config);
  ASSERT_TRUE(program.get());
  for (int64_t length : {1, 2, 7, 16, 61, 130}) {
    EXPECT_EQ(compiled(attention, config).get(), program.get());
    Problem problem(attention, length, length + 3);
    expectSuccess(problem.run(program));
    problem.expectResults();
  }
  EXPECT_EQ(cache->size(), 1);
  EXPECT_EQ(cache->hits(), 6);
}

TEST(Threads, compileAndRunAtOnce) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([i] {
      burst_attention attention = smallAttention();
      attention.query_length = attention.key_length = 20 + i;
      attention.order = i % 3;
      Problem problem(attention);
      expectSuccess(problem.run(compiled(attention)));
      problem.expectResults();
    });
}
