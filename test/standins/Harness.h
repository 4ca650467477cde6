//===- Harness.h - Emulated GPUs for tests ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_STANDINS_HARNESS_H
#define BURST_TEST_STANDINS_HARNESS_H

#include "runtime/src/cuda/Nccl.h"
#include "test/standins/Control.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace burst::standins {

#define OK(call) ASSERT_EQ(call, 0)

/// add: out = a + b for n floats, one per thread. scale: a *= 2. sum: one block
/// whose threads race where `racy`.
inline constexpr const char *kernels = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n)
{
.reg .pred %p<2>;
.reg .f32 %f<4>;
.reg .b32 %r<6>;
.reg .b64 %rd<12>;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u64 %rd3, [out];
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.s32 %r5, %r2, %r3, %r4;
setp.ge.u32 %p1, %r5, %r1;
@%p1 bra done;
mul.wide.u32 %rd4, %r5, 4;
add.s64 %rd5, %rd1, %rd4;
add.s64 %rd6, %rd2, %rd4;
add.s64 %rd7, %rd3, %rd4;
ld.global.f32 %f1, [%rd5];
ld.global.f32 %f2, [%rd6];
add.f32 %f3, %f1, %f2;
st.global.f32 [%rd7], %f3;
done:
ret;
}
.visible .entry scale(.param .u64 a)
{
.reg .f32 %f<3>;
.reg .b32 %r<6>;
.reg .b64 %rd<6>;
ld.param.u64 %rd1, [a];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.f32 %f1, [%rd3];
add.f32 %f2, %f1, %f1;
st.global.f32 [%rd3], %f2;
ret;
}
.visible .entry collide(.param .u64 a)
{
.reg .b32 %r<2>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [a];
mov.u32 %r1, %tid.x;
st.global.u32 [%rd1], %r1;
ret;
}
)";

/// Sets the environment, and takes the tables that burst takes.
class Emulated : public testing::Test {
protected:
  explicit Emulated(std::map<std::string, std::string> environment = {}) {
    for (const auto &[name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    burst_emulated_reset();
    for (const auto &[name, value] : environment)
      unsetenv(name.c_str());
    setenv("BURST_CUDA_DRIVER_LIBRARY", EMULATED_CUDA, 1);
    setenv("BURST_NCCL_LIBRARY", EMULATED_NCCL, 1);
    EXPECT_EQ(burst_driver_table(&cu), nullptr);
    EXPECT_EQ(burst_nccl_table(&nccl), nullptr);
    EXPECT_EQ(cu->cuInit(0), CUDA_SUCCESS);
    enter(0);
  }
  ~Emulated() override {
    const char *report = burst_emulated_take_report();
    EXPECT_EQ(report, nullptr) << report;
  }

  /// Makes a GPU that of this thread.
  CUcontext enter(int ordinal) {
    CUcontext context = nullptr;
    EXPECT_EQ(cu->cuDevicePrimaryCtxRetain(&context, ordinal), CUDA_SUCCESS);
    EXPECT_EQ(cu->cuCtxSetCurrent(context), CUDA_SUCCESS);
    return context;
  }
  CUstream stream() {
    CUstream made = nullptr;
    EXPECT_EQ(cu->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return made;
  }
  CUevent event() {
    CUevent made = nullptr;
    EXPECT_EQ(cu->cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return made;
  }
  CUdeviceptr memory(size_t bytes) {
    CUdeviceptr made = 0;
    EXPECT_EQ(cu->cuMemAlloc_v2(&made, bytes), CUDA_SUCCESS);
    return made;
  }
  CUdeviceptr memoryOn(CUstream stream, size_t bytes) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cu->cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    CUdeviceptr made = 0;
    EXPECT_EQ(cu->cuMemAllocFromPoolAsync(&made, bytes, pool, stream),
              CUDA_SUCCESS);
    EXPECT_EQ(cu->cuMemPoolDestroy(pool), CUDA_SUCCESS);
    return made;
  }
  CUfunction kernel(const char *name) {
    if (!module)
      EXPECT_EQ(cu->cuModuleLoadData(&module, kernels), CUDA_SUCCESS);
    CUfunction found = nullptr;
    EXPECT_EQ(cu->cuModuleGetFunction(&found, module, name), CUDA_SUCCESS);
    return found;
  }
  CUresult launch(const char *name, unsigned threads, CUstream stream,
                  std::vector<void *> parameters, unsigned blocks = 1) {
    CUlaunchConfig config = {};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = threads;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    return cu->cuLaunchKernelEx(&config, kernel(name), parameters.data(),
                                nullptr);
  }
  /// Takes a report, which must have that text in it.
  static void expectReport(const std::string &text) {
    const char *report = burst_emulated_take_report();
    ASSERT_NE(report, nullptr) << "wanted: " << text;
    EXPECT_NE(std::string(report).find(text), std::string::npos) << report;
  }

  const burst_driver *cu = nullptr;
  const burst_nccl *nccl = nullptr;
  CUmodule module = nullptr;
};

} // namespace burst::standins

#endif // BURST_TEST_STANDINS_HARNESS_H
