//===- CudaTest.cpp - programs for GPUs, by the API -----------------------===//
//
// On emulated GPUs, beside the same program on this processor.
//
//===----------------------------------------------------------------------===//
#include "Problem.h"

#include <bit>
#include <cmath>
#include <cstdlib>

using namespace burst;
using namespace burst::test;

namespace {

uint16_t toBf16(float x) {
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + 0x8000) >> 16);
}
float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// A causal attention in bf16 with documents, over `ranks` ranks.
burst_attention attentionOf(int64_t ranks) {
  burst_attention attention{};
  attention.size = sizeof(attention);
  attention.num_ranks = ranks;
  attention.type = BURST_BF16;
  attention.batch = 1;
  attention.query_length = attention.key_length = 90;
  attention.query_heads = 2;
  attention.key_heads = 1;
  attention.head_dim = 64;
  attention.order = BURST_ZIGZAG;
  attention.mask = BURST_MASK_CAUSAL | BURST_MASK_DOCUMENTS;
  return attention;
}

class Cuda : public testing::Test {
protected:
  void SetUp() override {
    setenv("BURST_CUDA_DRIVER_LIBRARY", EMULATED_CUDA, /*overwrite=*/1);
    config.size = sizeof(config);
    config.target = "cuda";
    config.architectures = "sm_80";
  }
  void TearDown() override {
    burst_program_release(program);
    burst_device_destroy(device);
  }

  /// Skips the test where there is no NVRTC.
  void compile(const burst_attention &attention) {
    burst_error *error = burst_compile_attention(&attention, &config, &program);
    if (!error)
      return;
    std::string message = take(error);
    if (message.find("kernels of GPUs need NVRTC") != std::string::npos)
      GTEST_SKIP() << message;
    FAIL() << message;
  }

  burst_compile_config config{};
  burst_program *program = nullptr;
  burst_device *device = nullptr;
};

burst_tensor tensorOf(void *data, int32_t type, std::vector<int64_t> sizes) {
  burst_tensor tensor{};
  tensor.data = data;
  tensor.type = type;
  tensor.rank = static_cast<int32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    tensor.sizes[d] = sizes[d];
    tensor.strides[d] = stride;
    stride *= sizes[d];
  }
  return tensor;
}

} // namespace

TEST_F(Cuda, givesWhatTheProcessorGives) {
  compile(attentionOf(3));
  if (!program)
    return;
  EXPECT_NE(burst_program_is_gpu(program), 0);
  EXPECT_EQ(std::string(burst_program_target(program)).find("sm_80, tiles of"),
            0U);
  // What the mask reads is the host's; nothing else is.
  for (int64_t i = 0; i < burst_program_num_parameters(program); ++i) {
    const burst_parameter *parameter = burst_program_parameter(program, i);
    EXPECT_EQ(parameter->is_host, parameter->type == BURST_I32)
        << parameter->name;
  }
  burst_compile_config here{};
  here.size = sizeof(here);
  burst_program *other = nullptr;
  burst_attention attention = attentionOf(3);
  ASSERT_EQ(burst_compile_attention(&attention, &here, &other), nullptr);
  EXPECT_EQ(burst_program_is_gpu(other), 0);

  std::vector<uint16_t> q(90 * 2 * 64), k(90 * 64), v(90 * 64);
  uint32_t seed = 1;
  for (auto *numbers : {&q, &k, &v})
    for (uint16_t &number : *numbers) {
      seed = seed * 1664525 + 1013904223;
      number = toBf16(static_cast<float>(seed >> 8) / (1 << 23) - 1);
    }
  std::vector<int32_t> ids(90);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int32_t>(i / 40);
  struct Results {
    std::vector<uint16_t> o;
    std::vector<float> lse;
  };
  auto run = [&](burst_program *program, burst_device *device) {
    Results results{std::vector<uint16_t>(q.size()),
                    std::vector<float>(size_t{90} * 2)};
    burst_tensor values[] = {
        tensorOf(q.data(), BURST_BF16, {1, 90, 2, 64}),
        tensorOf(k.data(), BURST_BF16, {1, 90, 1, 64}),
        tensorOf(v.data(), BURST_BF16, {1, 90, 1, 64}),
        tensorOf(ids.data(), BURST_I32, {90}),
        tensorOf(ids.data(), BURST_I32, {90}),
        tensorOf(results.o.data(), BURST_BF16, {1, 90, 2, 64}),
        tensorOf(results.lse.data(), BURST_F32, {1, 2, 90})};
    burst_run_all_config how{};
    how.size = sizeof(how);
    how.device = device;
    if (burst_error *error =
            burst_run_all(program, &how, values, std::size(values), nullptr))
      ADD_FAILURE() << take(error);
    return results;
  };
  ASSERT_EQ(burst_device_create_cuda(nullptr, &device), nullptr);
  Results got = run(program, device);
  burst_device *processor = nullptr;
  ASSERT_EQ(burst_device_create_cpu(nullptr, &processor), nullptr);
  Results wanted = run(other, processor);
  for (size_t i = 0; i < q.size(); ++i)
    ASSERT_NEAR(fromBf16(got.o[i]), fromBf16(wanted.o[i]), 0x1p-7) << i;
  for (size_t i = 0; i < wanted.lse.size(); ++i)
    ASSERT_NEAR(got.lse[i], wanted.lse[i], 1e-5) << i;

  // A program runs on what it was compiled for.
  burst_run_all_config how{};
  how.size = sizeof(how);
  how.device = processor;
  burst_error *error = burst_run_all(program, &how, nullptr, 0, nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(burst_error_code(error), BURST_INVALID_ARGUMENT);
  burst_error_destroy(error);
  burst_device_destroy(processor);
  burst_program_release(other);
}

TEST_F(Cuda, checksItsConfig) {
  burst_attention attention = attentionOf(1);
  auto failure = [&] {
    burst_error *error = burst_compile_attention(&attention, &config, &program);
    return error ? take(error) : "";
  };
  config.target = "rocm";
  EXPECT_EQ(failure(), "burst_compile_config: target 'rocm', there are: cpu, "
                       "cuda");
  config.target = "cuda";
  config.architectures = "sm_90a,sm_80";
  EXPECT_EQ(failure(),
            "burst_compile_config: architecture 'sm_90a': code that is for one "
            "architecture alone is made for sm_90a, and for no other with it");
  config.target = nullptr;
  EXPECT_EQ(failure(), "burst_compile_config: architecture 'sm_90a,sm_80' is "
                       "of a GPU, and the target is cpu");
}
