//===- BundleTest.cpp - programs in files ---------------------------------===//
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

TEST_F(Bundle, givesTheSameBits) {
  burst_attention attention = smallAttention();
  attention.score = BURST_SCORE_SOFTCAP; // calls libm
  attention.softcap = 2;
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
  EXPECT_EQ(loaded->prove({}).message(),
            "attention: not compiled in this process, so that its schedule is "
            "not known here");
  EXPECT_EQ(write(smallAttention(), folder),
            folder.string() + ": found a directory, wanted a file to write");
  EXPECT_EQ(write(smallAttention(), folder / "none" / "a.so"),
            (folder / "none" / "a.so: cannot write: No such file or directory")
                .string());
  EXPECT_EQ(files(), 1u);
}
