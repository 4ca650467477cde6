//===- DeviceTest.cpp - from a text to a kernel that runs -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On a GPU, without a stand-in.
//
//===----------------------------------------------------------------------===//
#include "Scratch.h"
#include "burst/internal/nvrtc.h"
#include "codegen/cuda/CompileLog.h"
#include "codegen/cuda/Nvrtc.h"
#include "runtime/src/cuda/Gpu.h"

#include <cstddef>
#include <numeric>

using namespace burst::cuda;
using namespace burst::test;

namespace {

/// Uses all shared memory that was asked for.
constexpr const char *text = R"(
extern "C" __global__ void __launch_bounds__(128)
scale(float *numbers, double factor, int count) {
  extern __shared__ float tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float *last = tile + SHARED_FLOATS - 128;
  last[threadIdx.x] = i < count ? numbers[i] : 0;
  __syncthreads();
  if (i < count)
    numbers[i] = factor * last[threadIdx.x];
}
)";

struct Arguments {
  CUdeviceptr numbers;
  double factor;
  int count;
};
constexpr burst_gpu_parameter parameters[] = {
    {offsetof(Arguments, numbers), sizeof(CUdeviceptr), nullptr},
    {offsetof(Arguments, factor), sizeof(double), nullptr},
    {offsetof(Arguments, count), sizeof(int), nullptr}};

/// Code that is said to be for an architecture.
burst_gpu_binary binaryOf(const std::string &architecture,
                          const Binary &binary) {
  uint64_t checksum = 0xcbf29ce484222325;
  for (char byte : binary.cubin)
    checksum = (checksum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return {architecture.c_str(), binary.cubin.data(),
          static_cast<int64_t>(binary.cubin.size()), checksum};
}

std::string take(burst_error *error) {
  std::string message = error ? burst_error_message(error) : "";
  burst_error_destroy(error);
  return message;
}

class DeviceTest : public testing::Test {
protected:
  void SetUp() override {
    int count = 0;
    std::string error = take(burst_gpu_count(&count));
    if (count == 0)
      GTEST_SKIP() << "no GPU: " << error;
    const burst_nvrtc *nvrtc = nullptr;
    error = take(burst_nvrtc_table(&nvrtc));
    if (!nvrtc)
      GTEST_SKIP() << "no NVRTC: " << error;
    ASSERT_EQ(take(burst_gpu_create(0, &gpu)), "");
    ASSERT_EQ(take(burst_gpu_stream_create(gpu, &stream)), "");
  }
  void TearDown() override {
    if (gpu)
      burst_gpu_stream_destroy(gpu, stream);
    burst_gpu_destroy(gpu);
  }

  burst_gpu *gpu = nullptr;
  CUstream stream = nullptr;
};

TEST_F(DeviceTest, RunsWhatNvrtcCompiled) {
  const burst_gpu_properties *properties = burst_gpu_get_properties(gpu);
  burst_gpu_kernel kernel = {};
  kernel.name = "scale";
  kernel.threads = 128;
  kernel.shared_bytes = properties->shared_bytes;
  kernel.argument_bytes = sizeof(Arguments);
  kernel.num_parameters = 3;
  kernel.parameters = parameters;
  Source source = {
      "scale.cu",
      text,
      architectureOf(properties->major, properties->minor),
      false,
      {"-DSHARED_FLOATS=" + std::to_string(properties->shared_bytes / 4)}};
  llvm::Expected<Binary> binary = compile(source);
  ASSERT_TRUE(bool(binary)) << toString(binary.takeError());
  EXPECT_EQ(CompileLog::read(binary->log).rejectionReason(), "");

  const burst_gpu_binary code = binaryOf(source.architecture, *binary);
  kernel.num_binaries = 1;
  kernel.binaries = &code;
  burst_gpu_module *module = nullptr;
  ASSERT_EQ(take(burst_gpu_module_load(gpu, 1, &kernel, &module)), "");
  constexpr int count = 1000;
  std::vector<float> in(count), out(count);
  std::iota(in.begin(), in.end(), 0.f);
  constexpr size_t bytes = count * sizeof(float);
  CUdeviceptr memory = 0;
  CUevent begin = nullptr, end = nullptr;
  ASSERT_EQ(take(burst_gpu_event_create(gpu, true, &begin)), "");
  ASSERT_EQ(take(burst_gpu_event_create(gpu, true, &end)), "");
  ASSERT_EQ(take(burst_gpu_allocate(gpu, bytes, stream, &memory)), "");
  EXPECT_EQ(take(burst_gpu_upload(gpu, memory, in.data(), bytes, stream)), "");
  EXPECT_EQ(take(burst_gpu_record(gpu, begin, stream)), "");
  Arguments arguments = {memory, 0.5, count};
  EXPECT_EQ(take(burst_gpu_launch(module, 0, 8, &arguments, stream)), "");
  arguments = {};
  EXPECT_EQ(take(burst_gpu_record(gpu, end, stream)), "");
  EXPECT_EQ(take(burst_gpu_download(gpu, out.data(), memory, bytes, stream)),
            "");
  EXPECT_EQ(take(burst_gpu_free(gpu, memory, stream)), "");
  ASSERT_EQ(take(burst_gpu_synchronize(gpu, stream)), "");
  for (int i = 0; i < count; ++i)
    ASSERT_EQ(out[i], in[i] / 2) << i;
  bool done = false;
  EXPECT_EQ(take(burst_gpu_is_done(gpu, end, &done)), "");
  EXPECT_TRUE(done);
  double seconds = -1;
  EXPECT_EQ(take(burst_gpu_elapsed(gpu, begin, end, &seconds)), "");
  EXPECT_GT(seconds, 0);
  burst_gpu_event_destroy(gpu, begin);
  burst_gpu_event_destroy(gpu, end);
  burst_gpu_module_unload(module);
}

TEST_F(DeviceTest, RefusesCodeOfAnotherDevice) {
  const burst_gpu_properties *properties = burst_gpu_get_properties(gpu);
  // Code of one major version runs on no other.
  Source source = {"scale.cu",
                   "extern \"C\" __global__ void scale() {}",
                   properties->major == 8 ? "sm_90" : "sm_80",
                   false,
                   {}};
  llvm::Expected<Binary> binary = compile(source);
  ASSERT_TRUE(bool(binary)) << toString(binary.takeError());
  std::string here = architectureOf(properties->major, properties->minor);
  const burst_gpu_binary code = binaryOf(here, *binary);
  burst_gpu_kernel kernel = {};
  kernel.name = "scale";
  kernel.threads = 1;
  kernel.num_binaries = 1;
  kernel.binaries = &code;
  burst_gpu_module *module = nullptr;
  std::string error = take(burst_gpu_module_load(gpu, 1, &kernel, &module));
  expectHas(error, "GPU 0: cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU");
}

} // namespace
