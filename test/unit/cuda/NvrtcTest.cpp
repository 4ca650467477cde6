//===- NvrtcTest.cpp - with the compiler of CUDA itself -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "burst/internal/nvrtc.h"
#include "Scratch.h"
#include "codegen/cuda/CompileLog.h"
#include "codegen/cuda/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/Magic.h"

using namespace burst::cuda;
using namespace burst::test;

namespace {

constexpr const char *scale = R"(
extern "C" __global__ void __launch_bounds__(128)
scale(float *x, float factor, int count) {
  __shared__ float tile[128];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < count)
    x[threadIdx.x] = factor * tile[threadIdx.x ^ 1];
}
)";

/// More numbers at a time than a thread has registers.
constexpr const char *crowded = R"(
extern "C" __global__ void __launch_bounds__(1024)
crowded(float *x, int count) {
  float a[80];
#pragma unroll
  for (int i = 0; i < 80; ++i)
    a[i] = x[i * count + threadIdx.x];
  for (int j = 0; j < count; ++j)
#pragma unroll
    for (int i = 0; i < 80; ++i)
      a[i] = a[i] * a[(i + 7) % 80] + j;
#pragma unroll
  for (int i = 0; i < 80; ++i)
    x[i * count + threadIdx.x] = a[i];
}
)";

class NvrtcTest : public testing::Test {
protected:
  void SetUp() override {
    const burst_nvrtc *nvrtc = nullptr;
    if (burst_error *error = burst_nvrtc_table(&nvrtc)) {
      std::string message = burst_error_message(error);
      burst_error_destroy(error);
      GTEST_SKIP() << "no NVRTC: " << message;
    }
    int count = 0;
    ASSERT_EQ(nvrtc->nvrtcGetNumSupportedArchs(&count), NVRTC_SUCCESS);
    architectures.resize(count);
    ASSERT_EQ(nvrtc->nvrtcGetSupportedArchs(architectures.data()),
              NVRTC_SUCCESS);
  }

  static Source source(std::string text, std::string architecture = "sm_80") {
    return {"kernel.cu", std::move(text), std::move(architecture), false, {}};
  }

  static Binary compiled(const Source &source) {
    llvm::Expected<Binary> binary = compile(source);
    if (binary)
      return std::move(*binary);
    ADD_FAILURE() << toString(binary.takeError());
    return {};
  }

  ScratchTexts texts;
  std::vector<int> architectures;
};

TEST(ArchitectureTest, IsNamedAsNvrtcDoes) {
  EXPECT_EQ(architectureOf(8, 0), "sm_80");
  EXPECT_EQ(architectureOf(8, 9), "sm_89");
  EXPECT_EQ(architectureOf(9, 0), "sm_90a");
  EXPECT_EQ(architectureOf(10, 0), "sm_100a");
}

TEST_F(NvrtcTest, CompilesForEveryTarget) {
  for (int number : {80, 90, 100}) {
    if (!llvm::is_contained(architectures, number))
      continue;
    std::string name = architectureOf(number / 10, number % 10);
    Binary binary = compiled(source(scale, name));
    EXPECT_EQ(llvm::identify_magic(binary.cubin),
              llvm::file_magic::elf_executable)
        << name;
    expectHas(binary.ptx, "\n.target " + name);
    expectHas(binary.ptx, ".entry scale(");
    EXPECT_NE(binary.ptx.back(), '\0');
    CompileLog log = CompileLog::read(binary.log);
    EXPECT_EQ(log.rejectionReason(), "") << binary.log;
    const FunctionUse *use = log.find("scale");
    ASSERT_TRUE(use) << binary.log;
    EXPECT_GT(use->registers, 0U);
    EXPECT_EQ(use->barriers, 1U);
    EXPECT_EQ(use->sharedBytes, 512U);
  }
}

TEST_F(NvrtcTest, MakesPtxAloneForAVirtualTarget) {
  Binary binary = compiled(source(scale, "compute_80"));
  EXPECT_TRUE(binary.cubin.empty());
  expectHas(binary.ptx, "\n.target sm_80");
}

TEST_F(NvrtcTest, TellsLinesWhenAsked) {
  Source asked = source(scale);
  EXPECT_EQ(compiled(asked).ptx.find("\t.loc\t"), std::string::npos);
  asked.lineInfo = true;
  std::string ptx = compiled(asked).ptx;
  expectHas(ptx, "\t.loc\t");
  expectHas(ptx, "kernel.cu");
}

TEST_F(NvrtcTest, PassesOptions) {
  Source asked = source("extern \"C\" __global__ void NAME() {}");
  asked.options = {"-DNAME=other"};
  expectHas(compiled(asked).ptx, ".entry other(");
}

TEST_F(NvrtcTest, ReportsSpills) {
  Binary binary = compiled(source(crowded));
  CompileLog log = CompileLog::read(binary.log);
  const FunctionUse *use = log.find("crowded");
  ASSERT_TRUE(use) << binary.log;
  EXPECT_EQ(use->registers, 64U);
  EXPECT_GT(use->spillStoreBytes, 0U);
  EXPECT_GT(use->spillLoadBytes, 0U);
  expectHas(log.rejectionReason(), "crowded: ");
}

TEST_F(NvrtcTest, ShowsErrorsAndTheText) {
  std::string text = "extern \"C\" __global__ void f() { int x = y; }\n";
  llvm::Expected<Binary> binary = compile(source(text));
  ASSERT_FALSE(bool(binary));
  std::string message = toString(binary.takeError());
  expectHas(message, "kernel.cu: NVRTC ");
  expectHas(message, " did not compile it for sm_80: NVRTC_ERROR_COMPILATION; "
                     "its text is in ");
  expectHas(message, "kernel.cu(1): error: identifier \"y\" is undefined");
  EXPECT_EQ(ScratchTexts::read(message), text);
}

TEST_F(NvrtcTest, NamesUnknownArchitectures) {
  llvm::Expected<Binary> binary = compile(source(scale, "sm_12"));
  ASSERT_FALSE(bool(binary));
  std::string message = toString(binary.takeError());
  expectHas(message, "did not compile it for sm_12: "
                     "NVRTC_ERROR_INVALID_OPTION");
  expectHas(message, "\noptions: --gpu-architecture=sm_12 ");
  expectHas(message, "\narchitectures: sm_");
}

TEST_F(NvrtcTest, IsAskedOnce) {
  ScratchCache scratch;
  llvm::Expected<std::unique_ptr<Compiler>> compiler =
      Compiler::create(scratch.config(), 2);
  ASSERT_TRUE(bool(compiler)) << toString(compiler.takeError());
  std::vector<Source> sources = {source(scale), source(crowded)};
  for (int again = 0; again < 2; ++again) {
    std::vector<llvm::Expected<Binary>> binaries =
        (*compiler)->compileAll(sources);
    ASSERT_EQ(binaries.size(), 2U);
    for (llvm::Expected<Binary> &binary : binaries)
      ASSERT_TRUE(bool(binary)) << toString(binary.takeError());
    EXPECT_TRUE(CompileLog::read(binaries[0]->log).find("scale"));
    expectHas(CompileLog::read(binaries[1]->log).rejectionReason(),
              "bytes of spills stored");
    EXPECT_EQ((*compiler)->compiled(), 2);
    EXPECT_EQ((*compiler)->known(), 2 * again);
  }
}

TEST_F(NvrtcTest, HashesItsLibraryOnce) {
  std::string file, hash;
  auto find = [&](llvm::StringRef of) {
    return of == file ? std::optional(hash) : std::nullopt;
  };
  auto put = [&](llvm::StringRef of, llvm::StringRef is) {
    EXPECT_TRUE(file.empty()) << "hashed again";
    file = of;
    hash = is;
  };
  llvm::Expected<std::string> unopened = identifyNvrtcUnopened({find, put});
  ASSERT_TRUE(bool(unopened)) << toString(unopened.takeError());
  llvm::Expected<std::string> opened = identifyNvrtc({find, put});
  ASSERT_TRUE(bool(opened)) << toString(opened.takeError());
  EXPECT_EQ(*unopened, *opened);
  EXPECT_EQ(*opened, hash);
  EXPECT_EQ(hash.size(), 64U);
  expectHas(file, "libnvrtc");
}

} // namespace
