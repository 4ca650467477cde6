//===- CompileLogTest.cpp - what logs of NVRTC say ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/CompileLog.h"

#include <gtest/gtest.h>

using namespace burst::cuda;

namespace {

// As NVRTC 13.0.88 wrote it, of two kernels and a function.
constexpr const char *clean =
    R"(a.cu(9): warning #177-D: variable "s" was declared but never referenced
    float s = 0;
          ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1tILi3EEvPf' for 'sm_90a'
ptxas info    : Function properties for _Z1tILi3EEvPf
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compile time = 1.624 ms
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 26 registers, used 1 barriers, 1024 bytes smem, 364 bytes cmem[0]
ptxas info    : Compile time = 5.783 ms
ptxas info    : Function properties for g
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
)";

constexpr const char *serialised = R"(
ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the function 'attn_fwd'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'attn_fwd' for 'sm_90a'
ptxas info    : Function properties for attn_fwd
ptxas         .     312 bytes stack frame, 484 bytes spill stores, 480 bytes spill loads
ptxas info    : Used 128 registers, used 16 barriers, 312 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 398.009 ms
)";

TEST(CompileLogTest, ReadsWhatFunctionsUse) {
  CompileLog log = CompileLog::read(clean);
  ASSERT_EQ(log.functions.size(), 3U);
  const FunctionUse *k = log.find("k");
  ASSERT_TRUE(k);
  EXPECT_EQ(k->registers, 26U);
  EXPECT_EQ(k->barriers, 1U);
  EXPECT_EQ(k->sharedBytes, 1024U);
  EXPECT_EQ(k->stackBytes, 0U);
  const FunctionUse *t = log.find("_Z1tILi3EEvPf");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->registers, 8U);
  EXPECT_EQ(t->barriers, 0U);
  EXPECT_EQ(t->sharedBytes, 0U);
  EXPECT_FALSE(log.find("g")) << "is no kernel";
  EXPECT_EQ(log.functions[2].name, "g");
  EXPECT_TRUE(log.notes.empty());
  EXPECT_EQ(log.rejectionReason(), "");
}

TEST(CompileLogTest, RejectsSpillsAndSerialisedProducts) {
  CompileLog log = CompileLog::read(serialised);
  const FunctionUse *kernel = log.find("attn_fwd");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->registers, 128U);
  EXPECT_EQ(kernel->barriers, 16U);
  EXPECT_EQ(kernel->stackBytes, 312U);
  EXPECT_EQ(kernel->spillStoreBytes, 484U);
  EXPECT_EQ(kernel->spillLoadBytes, 480U);
  EXPECT_EQ(kernel->sharedBytes, 1024U);
  ASSERT_EQ(log.notes.size(), 1U);
  EXPECT_EQ(log.rejectionReason(),
            "attn_fwd: 312 bytes of stack, 484 bytes of spills stored, 480 "
            "bytes loaded; ptxas info    : (C7512) Potential Performance Loss: "
            "wgmma.mma_async instructions are serialized due to insufficient "
            "register resources for the function 'attn_fwd'");
}

TEST(CompileLogTest, RejectsEachKindAlone) {
  auto rejects = [](std::string line) {
    std::string log = "ptxas info    : Compiling entry function 'k' for 'x'\n"
                      "ptxas info    : Function properties for k\n";
    return !CompileLog::read(log + line + "\n").rejectionReason().empty();
  };
  auto properties = [](int stack, int stores, int loads) {
    return "ptxas         .     " + std::to_string(stack) +
           " bytes stack frame, " + std::to_string(stores) +
           " bytes spill stores, " + std::to_string(loads) +
           " bytes spill loads";
  };
  EXPECT_FALSE(rejects(properties(0, 0, 0)));
  EXPECT_TRUE(rejects(properties(8, 0, 0)));
  EXPECT_TRUE(rejects(properties(0, 4, 0)));
  EXPECT_TRUE(rejects(properties(0, 0, 4)));
  for (int code = 7500; code <= 7530; ++code)
    EXPECT_EQ(rejects("ptxas info    : (C" + std::to_string(code) + ") Note"),
              code >= 7510 && code <= 7520)
        << code;
  EXPECT_FALSE(rejects("ptxas info    : (C7512 is not closed"));
}

TEST(CompileLogTest, ALogWithoutKernelsProvesNothing) {
  EXPECT_EQ(CompileLog::read("").rejectionReason(),
            "the log tells of no kernel");
  EXPECT_EQ(CompileLog::read("ptxas\nptxas info\nptxas info    :\n"
                             "ptxas info    : Used 8 registers\n"
                             "ptxas info    : Function properties for g\n")
                .rejectionReason(),
            "the log tells of no kernel");
}

} // namespace
