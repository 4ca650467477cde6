//===- CacheTest.cpp - programs that are compiled once --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

#include <cstring>
#include <filesystem>
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
  attention.axes = axis(3, "contiguous");
  EXPECT_NE(compiled(attention, config).get(), first.get());
  attention.axes = axis(3, "zigzag");
  config.features = "-fma";
  EXPECT_NE(compiled(attention, config).get(), first.get());
  EXPECT_EQ(cache->size(), 3);
  EXPECT_EQ(cache->hits(), 0);
  // The name appears in errors only.
  config.features = nullptr;
  config.without = "overlap,dropping";
  api::Program without = compiled(attention, config);
  EXPECT_NE(without.get(), first.get());
  config.without = "dropping,overlap";
  EXPECT_EQ(compiled(attention, config).get(), without.get());
  config.without = nullptr;
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

#ifndef NDEBUG
TEST(CacheDeathTest, isDestroyedOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        burst_cache *cache = nullptr;
        burst_cache_create(&cache);
        burst_cache_destroy(cache);
        burst_cache_destroy(cache);
      },
      "burst_cache_destroy: the cache was destroyed before");
  burst_cache *cache = nullptr;
  ASSERT_EQ(take(burst_cache_create(&cache)), "");
  auto config = api::make<burst_compile_config>();
  config.cache = cache;
  burst_program *program = nullptr;
  EXPECT_DEATH(
      {
        burst_cache_destroy(cache);
        burst_compile_text("", 0, &config, &program);
      },
      "the cache was destroyed before");
  burst_cache_destroy(cache);
}
#endif

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
      const char *const orders[] = {"contiguous", "zigzag", "striped"};
      attention.axes = axis(3, orders[i % 3]);
      Problem problem(attention);
      expectSuccess(problem.run(compiled(attention)));
      problem.expectResults();
    });
}

/// Compiled, written, loaded and proved by all threads, some of them at one
/// path, some of them the same program.
TEST(Threads, compileWriteLoadAndProveAtOnce) {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "burst-XXXXXX").string();
  fs::path folder = mkdtemp(name.data());
  burst_attention open = smallAttention();
  open.batch = open.query_length = open.key_length = -1;
  open.mask = "[causal, documents]";
  api::Program shared = compiled(open);
  auto work = [&](int64_t i) {
    Problem problem(open, 20 + i, 20 + i);
    api::Program mine = compiled(open);
    for (const api::Program &program : {shared, mine}) {
      expectSuccess(program.prove(problem.arguments(program)));
      problem.clearResults();
      expectSuccess(problem.run(program));
      problem.expectResults();
    }
    char *text = nullptr;
    ASSERT_EQ(take(burst_attention_text(&open, &text)), "");
    fs::path path = folder / (i % 2 ? "one.so" : std::to_string(i) + ".so");
    EXPECT_EQ(take(burst_compile_to_file(text, std::strlen(text), nullptr,
                                         path.c_str())),
              "");
    burst_text_destroy(text);
    auto loaded = api::Program::load(path.c_str());
    ASSERT_TRUE(loaded) << loaded.error().message();
    problem.clearResults();
    expectSuccess(problem.run(*loaded));
    problem.expectResults();
  };
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < 4; ++i)
      threads.emplace_back(work, i);
  }
  fs::remove_all(folder);
}
