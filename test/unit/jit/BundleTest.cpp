//===- BundleTest.cpp - programs in files ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace burst;
using namespace burst::test;
namespace fs = std::filesystem;

namespace {
struct Bundle : testing::Test {
  fs::path folder;

  Bundle() {
    std::string name = (fs::temp_directory_path() / "burst-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~Bundle() override { fs::remove_all(folder); }

  std::string
  write(const burst_attention &attention, const fs::path &path,
        burst_compile_config config = api::make<burst_compile_config>()) {
    char *text = nullptr;
    EXPECT_EQ(take(burst_attention_text(&attention, &text)), "");
    std::string error = take(
        burst_compile_to_file(text, std::strlen(text), &config, path.c_str()));
    burst_text_destroy(text);
    return error;
  }
  size_t files() const {
    return std::distance(fs::directory_iterator(folder),
                         fs::directory_iterator());
  }
};
} // namespace

TEST(Api, FitsItsHeaders) { EXPECT_TRUE(bool(api::checkVersion())); }

TEST_F(Bundle, givesTheSameBits) {
  burst_attention attention = smallAttention();
  attention.score = "softcap<2.0>"; // calls libm
  fs::path path = folder / "attention.so";
  ASSERT_EQ(write(attention, path), "");
  EXPECT_EQ(files(), 1u);
  auto loaded = api::Program::load(path.c_str());
  ASSERT_TRUE(loaded) << loaded.error().message();
  Problem fromFile(attention), inProcess(attention);
  expectSuccess(fromFile.run(*loaded));
  // Its dump directory is made.
  auto config = api::make<burst_compile_config>();
  fs::path dump = folder / "deep" / "dump";
  config.dump_directory = dump.c_str();
  expectSuccess(inProcess.run(compiled(attention, config)));
  EXPECT_TRUE(fs::exists(dump / "1-ring.mlir"));
  EXPECT_TRUE(fs::exists(dump / "5-program.o"));
  inProcess.expectResults();
  EXPECT_EQ(fromFile.o, inProcess.o);
  EXPECT_EQ(fromFile.lse, inProcess.lse);
}

TEST_F(Bundle, isForProcessorsThatCanRunIt) {
#if defined(__x86_64__)
  auto config = api::make<burst_compile_config>();
  fs::path path = folder / "attention.so";
  config.processor = "x86-64";
  EXPECT_EQ(write(smallAttention(), path, config), "");
  auto loaded = api::Program::load(path.c_str());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->target().find("x86-64, vectors of 128 bits"), 0u);
  config.processor = "x86-64-v4";
  path = folder / "wide.so";
  EXPECT_EQ(write(smallAttention(), path, config), "");
  auto wide = api::Program::load(path.c_str());
  if (__builtin_cpu_supports("x86-64-v4")) {
    ASSERT_TRUE(wide);
    EXPECT_EQ(wide->target().find("x86-64-v4, vectors of 512 bits"), 0u);
  } else {
    ASSERT_FALSE(wide);
    EXPECT_NE(wide.error().message().find("this processor lacks: avx512"),
              std::string::npos)
        << wide.error().message();
  }
#endif
}

TEST_F(Bundle, replacesAtOnceAndHasNothingToProveWith) {
  fs::path path = folder / "attention.so";
  std::ofstream(path) << "old";
  EXPECT_EQ(write(smallAttention(), path), "");
  auto loaded = api::Program::load(path.c_str());
  ASSERT_TRUE(loaded) << loaded.error().message();
  Problem problem(smallAttention());
  EXPECT_EQ(loaded->prove(problem.arguments(*loaded)).message(),
            "attention: not compiled in this process, so that its schedule is "
            "not known here");
  EXPECT_EQ(write(smallAttention(), folder),
            folder.string() + ": found a directory, wanted a file to write");
  EXPECT_EQ(write(smallAttention(), folder / "none" / "a.so"),
            (folder / "none" / "a.so: cannot write: No such file or directory")
                .string());
  EXPECT_EQ(files(), 1u);
}

//===----------------------------------------------------------------------===//
// Damage
//===----------------------------------------------------------------------===//

namespace {
struct DamagedBundle : Bundle {
  fs::path path = folder / "attention.so";
  std::string whole;

  DamagedBundle() {
    EXPECT_EQ(write(smallAttention(), path), "");
    std::ifstream stream(path, std::ios::binary);
    whole = {std::istreambuf_iterator(stream), {}};
  }
  /// Writes bytes to a file of their own, which no other has in its memory, and
  /// loads it: the error, or nothing. What is taken is as it was.
  std::string load(const std::string &bytes) {
    fs::path damaged = folder / "damaged.so";
    fs::remove(damaged);
    std::ofstream(damaged, std::ios::binary) << bytes;
    auto loaded = api::Program::load(damaged.c_str());
    if (!loaded)
      return std::string(loaded.error().message());
    Problem problem(smallAttention());
    expectSuccess(problem.run(*loaded));
    problem.expectResults();
    return "";
  }
  std::string flipped(size_t bit) const {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    return bytes;
  }
  void expectError(size_t bit) {
    std::string error = load(flipped(bit));
    EXPECT_NE(error, "") << "bit " << bit;
    if (error.empty())
      return;
    // In front of what knows the format there may be nothing else to say.
    if (bit / 8 >= 64 && error.find("truncated") == error.npos) {
      EXPECT_NE(error.find("damaged: "), error.npos) << error;
      EXPECT_NE(error.find(": compile it again"), error.npos) << error;
    }
  }
};

constexpr size_t sealBytes = 32;
} // namespace

TEST_F(DamagedBundle, everyFlippedBitIsAnErrorOrHarmless) {
  ASSERT_EQ(load(whole), "");
  size_t bits = 8 * (whole.size() - sealBytes);
  size_t step = getenv("BURST_TEST_FULL") ? 1 : 997;
  for (size_t bit = 0; bit < 8 * 64; bit += 3) // the header
    expectError(bit);
  for (size_t bit = 0; bit < bits; bit += step)
    expectError(bit);
  // Of the seal: numbers are compared; where its mark is gone there is none,
  // and what it was of is whole.
  for (size_t bit = bits; bit < 8 * whole.size(); ++bit) {
    bool isMark = bit < bits + 8 * 16;
    EXPECT_EQ(load(flipped(bit)).empty(), isMark) << "bit " << bit;
  }
}

TEST_F(DamagedBundle, whatIsCutOffIsAnErrorOrHarmless) {
  size_t size = whole.size();
  for (size_t cut = 1; cut < size; cut += 1 + cut / 8) {
    std::string error = load(whole.substr(0, size - cut));
    EXPECT_EQ(error.empty(), cut <= sealBytes) << cut << ": " << error;
  }
  EXPECT_NE(load(whole.substr(0, size - sealBytes) + "x" +
                 whole.substr(size - sealBytes)),
            "");
}
