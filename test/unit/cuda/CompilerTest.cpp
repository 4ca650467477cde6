//===- CompilerTest.cpp - kernels compiled once, and many at a time -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Compiler.h"

#include "Scratch.h"
#include "StandIn.h"
#include "burst/internal/nvrtc.h"

using namespace burst::cuda;
using namespace burst::test;

namespace {

std::unique_ptr<Compiler> makeCompiler(ScratchCache &scratch,
                                       uint64_t cacheBytes = 1 << 20) {
  llvm::Expected<std::unique_ptr<Compiler>> made =
      Compiler::create(scratch.config(cacheBytes), /*threads=*/4);
  if (made)
    return std::move(*made);
  ADD_FAILURE() << toString(made.takeError());
  return nullptr;
}

Source source(std::string text) {
  return {"kernel.cu", std::move(text), "sm_80", false, {}};
}

class CompilerTest : public testing::Test {
protected:
  std::unique_ptr<Compiler> make(uint64_t cacheBytes = 1 << 20) {
    return makeCompiler(scratch, cacheBytes);
  }

  StandIn nvrtc;
  ScratchTexts texts;
  ScratchCache scratch;
};

TEST_F(CompilerTest, CompilesOnce) {
  std::unique_ptr<Compiler> compiler = make();
  llvm::Expected<Binary> first = compiler->compile(source("text"));
  ASSERT_TRUE(bool(first)) << toString(first.takeError());
  EXPECT_EQ(first->cubin, std::string("\177ELF\0\ntext", 10));
  EXPECT_EQ(first->ptx, "ptx of text, --gpu-architecture=sm_80 --std=c++20 "
                        "--ptxas-options=-v");
  expectHas(first->log, "Compiling entry function 'k'");
  llvm::Expected<Binary> second = make()->compile(source("text"));
  ASSERT_TRUE(bool(second)) << toString(second.takeError());
  EXPECT_EQ(second->cubin, first->cubin);
  EXPECT_EQ(second->ptx, first->ptx);
  EXPECT_EQ(second->log, first->log);
  EXPECT_EQ(StandIn::compiled(), 1);
  EXPECT_EQ(compiler->compiled(), 1);
  EXPECT_EQ(compiler->known(), 0);
  EXPECT_EQ(StandIn::alive(), 0);
}

TEST_F(CompilerTest, CompilesAgainWhatDiffers) {
  std::unique_ptr<Compiler> compiler = make();
  std::vector<Source> sources(7, source("text"));
  sources[1].text = "other text";
  sources[2].architecture = "sm_90a";
  sources[3].lineInfo = true;
  sources[4].options = {"-DA=1"};
  sources[5].options = {"-DA=2"};
  sources[6].name = "other.cu";
  for (int again = 0; again < 2; ++again)
    for (const Source &each : sources)
      EXPECT_TRUE(bool(compiler->compile(each)));
  EXPECT_EQ(compiler->compiled(), 7);
  EXPECT_EQ(compiler->known(), 7);
  StandIn::setMinorVersion(1);
  compiler = make();
  EXPECT_TRUE(bool(compiler->compile(sources[0])));
  EXPECT_EQ(compiler->compiled(), 1);
}

TEST_F(CompilerTest, CompilesAgainWhatIsDamaged) {
  EXPECT_TRUE(bool(make()->compile(source("text"))));
  // The longest entry has the binary; the other one says which NVRTC was last.
  std::vector<std::filesystem::path> entries = scratch.entries();
  ASSERT_EQ(entries.size(), 2U);
  std::filesystem::resize_file(std::filesystem::file_size(entries[0]) >
                                       std::filesystem::file_size(entries[1])
                                   ? entries[0]
                                   : entries[1],
                               100);
  llvm::Expected<Binary> binary = make()->compile(source("text"));
  ASSERT_TRUE(bool(binary)) << toString(binary.takeError());
  EXPECT_EQ(binary->cubin, std::string("\177ELF\0\ntext", 10));
  EXPECT_EQ(StandIn::compiled(), 2);
  ASSERT_EQ(scratch.warnings.size(), 1U);
  expectHas(scratch.warnings[0], "damaged");
}

TEST_F(CompilerTest, CompilesAlwaysWithoutCache) {
  std::unique_ptr<Compiler> compiler = make(0);
  EXPECT_TRUE(bool(compiler->compile(source("text"))));
  EXPECT_TRUE(bool(compiler->compile(source("text"))));
  EXPECT_EQ(compiler->compiled(), 2);
}

TEST_F(CompilerTest, KeepsNoErrors) {
  std::unique_ptr<Compiler> compiler = make();
  for (int again = 1; again <= 2; ++again) {
    llvm::Expected<Binary> binary = compiler->compile(source("fails"));
    ASSERT_FALSE(bool(binary));
    std::string message = toString(binary.takeError());
    expectHas(message, "kernel.cu: NVRTC 99.0 did not compile it for sm_80: "
                       "NVRTC_ERROR_COMPILATION; its text is in ");
    expectHas(message, "\nerror: it fails");
    EXPECT_EQ(compiler->compiled(), again);
    EXPECT_EQ(ScratchTexts::read(message), "fails");
  }
  EXPECT_EQ(StandIn::alive(), 0);
}

TEST_F(CompilerTest, CompilesManyAtATime) {
  std::unique_ptr<Compiler> compiler = make();
  std::vector<Source> sources;
  sources.reserve(12);
  for (int i = 0; i < 12; ++i)
    sources.push_back(source(i == 7 ? "fails" : "text " + std::to_string(i)));
  std::vector<llvm::Expected<Binary>> binaries = compiler->compileAll(sources);
  ASSERT_EQ(binaries.size(), 12U);
  for (int i = 0; i < 12; ++i) {
    if (i == 7) {
      std::string message = toString(binaries[i].takeError());
      expectHas(message, "it fails");
      continue;
    }
    ASSERT_TRUE(bool(binaries[i]));
    expectHas(binaries[i]->ptx, "ptx of text " + std::to_string(i) + ",");
  }
  EXPECT_GT(StandIn::atOnce(), 1);
  EXPECT_LE(StandIn::atOnce(), 4);
}

TEST_F(CompilerTest, TellsLibrariesApart) {
  std::string path = scratch.path / "libnvrtc.so";
  StandIn::setLibrary(path.c_str());
  auto compiledWith = [&](const std::string &library) {
    std::ofstream(path) << library;
    std::unique_ptr<Compiler> compiler = make();
    EXPECT_TRUE(bool(compiler->compile(source("text"))));
    return compiler->compiled();
  };
  EXPECT_EQ(compiledWith("a library"), 1);
  EXPECT_EQ(compiledWith("a newer library"), 1);
  EXPECT_EQ(compiledWith("a library"), 0);
  EXPECT_EQ(compiledWith("a newer library"), 0);
}

/// A library of NVRTC that is named, and cannot be opened.
class UnopenedTest : public testing::Test {
protected:
  void SetUp() override {
    put("a library");
    setenv("BURST_NVRTC_LIBRARY", path.c_str(), 1);
    char *found = burst_nvrtc_locate();
    bool isFound = found && path == found;
    free(found);
    if (!isFound)
      GTEST_SKIP() << "NVRTC was opened before";
  }
  void TearDown() override { unsetenv("BURST_NVRTC_LIBRARY"); }

  void put(const std::string &content) const { std::ofstream(path) << content; }

  /// A stand-in that was opened from the library compiles.
  int64_t compile(Compiler &compiler, const std::string &text) const {
    StandIn nvrtc;
    StandIn::setLibrary(path.c_str());
    EXPECT_TRUE(bool(compiler.compile(source(text))));
    return compiler.compiled();
  }

  /// What is said to a text that is not known.
  static std::string errorOf(Compiler &compiler) {
    llvm::Expected<Binary> binary = compiler.compile(source("other text"));
    return binary ? "no error" : toString(binary.takeError());
  }

  ScratchCache scratch;
  std::string path = std::filesystem::canonical(scratch.path) / "libnvrtc.so";
};

TEST_F(UnopenedTest, KnowsWhatItCompiled) {
  EXPECT_EQ(compile(*makeCompiler(scratch), "text"), 1);
  std::unique_ptr<Compiler> compiler = makeCompiler(scratch);
  llvm::Expected<Binary> binary = compiler->compile(source("text"));
  ASSERT_TRUE(bool(binary)) << toString(binary.takeError());
  EXPECT_EQ(binary->cubin, std::string("\177ELF\0\ntext", 10));
  EXPECT_EQ(binary->minimumDriver, 99000);
  EXPECT_EQ(compiler->known(), 1);
  expectHas(errorOf(*compiler), "kernels of GPUs need NVRTC: NVRTC: cannot "
                                "open what BURST_NVRTC_LIBRARY names: " +
                                    path);
}

TEST_F(UnopenedTest, IsNotTheOneBefore) {
  EXPECT_EQ(compile(*makeCompiler(scratch), "text"), 1);
  put("a newer library");
  std::unique_ptr<Compiler> compiler = makeCompiler(scratch);
  llvm::Expected<Binary> binary = compiler->compile(source("text"));
  ASSERT_FALSE(bool(binary));
  expectHas(toString(binary.takeError()), "kernels of GPUs need NVRTC: ");
}

TEST_F(UnopenedTest, MayOpenAsAnother) {
  std::unique_ptr<Compiler> compiler = makeCompiler(scratch);
  put("what opens");
  EXPECT_EQ(compile(*compiler, "text"), 1);
  compiler = makeCompiler(scratch);
  EXPECT_TRUE(bool(compiler->compile(source("text"))));
  EXPECT_EQ(compiler->known(), 1);
}

TEST_F(UnopenedTest, IsMissed) {
  EXPECT_EQ(compile(*makeCompiler(scratch), "text"), 1);
  std::filesystem::remove(path);
  std::unique_ptr<Compiler> compiler = makeCompiler(scratch);
  EXPECT_TRUE(bool(compiler->compile(source("text"))));
  EXPECT_EQ(compiler->known(), 1);
  EXPECT_EQ(errorOf(*compiler), "kernels of GPUs need NVRTC: NVRTC: cannot "
                                "open what BURST_NVRTC_LIBRARY names: " +
                                    path);
}

TEST(CompilerWithoutNvrtcTest, SaysWhatIsMissing) {
  setenv("BURST_NVRTC_LIBRARY", "/no/libnvrtc.so", 1);
  llvm::Expected<std::unique_ptr<Compiler>> compiler = Compiler::create({});
  unsetenv("BURST_NVRTC_LIBRARY");
  if (compiler)
    GTEST_SKIP() << "NVRTC was opened before";
  EXPECT_EQ(toString(compiler.takeError()),
            "kernels of GPUs need NVRTC: NVRTC: cannot open what "
            "BURST_NVRTC_LIBRARY names: "
            "/no/libnvrtc.so");
}

} // namespace
