//===- CudaTest.cpp - programs for GPUs, by the API -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On emulated GPUs, beside the same program on this processor.
//
//===----------------------------------------------------------------------===//
#include "Problem.h"
#include "runtime/src/cuda/Driver.h"
#include "test/unit/FreePort.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <thread>
#include <unistd.h>

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
  attention.axes = axis(ranks, "zigzag");
  attention.num_axes = 1;
  attention.type = BURST_BF16;
  attention.batch = 1;
  attention.query_length = attention.key_length = 90;
  attention.query_heads = 2;
  attention.key_heads = 1;
  attention.head_dim = 64;
  attention.mask = "[causal, documents]";
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

//===----------------------------------------------------------------------===//
// Ranks that copy engines connect
//===----------------------------------------------------------------------===//

namespace {

/// What a caller does with the memory of a GPU.
const burst_driver &driver() {
  static const burst_driver table = [] {
    burst_driver made{};
    void *object = dlopen(EMULATED_CUDA, RTLD_NOW);
#define LOAD(result, name, parameters)                                         \
  made.name = reinterpret_cast<result(*) parameters>(dlsym(object, #name));
    BURST_DRIVER_FUNCTIONS(LOAD)
#undef LOAD
    return made;
  }();
  return table;
}

/// A global tensor, filled with what depends on `seed`.
struct Global {
  std::vector<int64_t> sizes;
  std::vector<char> data;
  burst_tensor tensor;
  Global(const burst_parameter &parameter, int64_t length, uint32_t seed)
      : sizes(parameter.sizes, parameter.sizes + parameter.rank) {
    if (parameter.shard_dim >= 0)
      sizes[size_t(parameter.shard_dim)] = length;
    int64_t bytes = parameter.type == BURST_BF16 ? 2 : 4;
    for (int64_t size : sizes)
      bytes *= size;
    data.resize(size_t(bytes));
    for (size_t i = 0; i < data.size();) {
      seed = seed * 1664525 + 1013904223;
      float value = static_cast<float>(seed >> 8) / (1 << 23) - 1;
      if (parameter.type == BURST_BF16) {
        uint16_t bits = toBf16(value);
        memcpy(&data[i], &bits, 2);
        i += 2;
      } else {
        value += 4; // log-sum-exps
        memcpy(&data[i], &value, 4);
        i += 4;
      }
    }
    tensor = tensorOf(data.data(), parameter.type, sizes);
  }
};

/// Runs a rank twice; results are gathered to `globals`.
void runRank(burst_program *program, const std::string &address, int64_t rank,
             std::vector<Global> &globals, burst_counters &counters) {
  const burst_driver &cu = driver();
  burst_world_config place{};
  place.size = sizeof(place);
  place.num_ranks = burst_program_num_ranks(program);
  place.rank = rank;
  place.address = address.c_str();
  burst_world *world = nullptr;
  burst_device *device = nullptr;
  burst_transport *transport = nullptr;
  ASSERT_EQ(burst_world_create(&place, &world), nullptr);
  ASSERT_EQ(burst_device_create_cuda(nullptr, &device), nullptr);
  burst_ipc_config how{};
  how.size = sizeof(how);
  how.world = world;
  how.device = device;
  how.buffer_bytes = 1 << 14;
  ASSERT_EQ(burst_transport_create_ipc(&how, &transport), nullptr);
  CUcontext context;
  ASSERT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu.cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUstream stream;
  ASSERT_EQ(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);

  auto count = burst_program_num_parameters(program);
  std::vector<std::vector<char>> shards(static_cast<size_t>(count));
  std::vector<burst_tensor> onHost, onGpu;
  for (int64_t i = 0; i < count; ++i) {
    const burst_parameter *parameter = burst_program_parameter(program, i);
    const Global &global = globals[size_t(i)];
    std::vector<int64_t> sizes = global.sizes;
    int64_t dim = parameter->shard_dim;
    if (dim >= 0)
      ASSERT_EQ(burst_program_local_size(program, i, rank, sizes[size_t(dim)],
                                         &sizes[size_t(dim)]),
                nullptr);
    std::vector<char> &shard = shards[size_t(i)];
    shard.resize(global.data.size());
    onHost.push_back(tensorOf(shard.data(), parameter->type, sizes));
    ASSERT_EQ(burst_shard(program, i, rank, &global.tensor, &onHost.back()),
              nullptr);
    CUdeviceptr memory;
    ASSERT_EQ(cu.cuMemAlloc_v2(&memory, shard.size()), CUDA_SUCCESS);
    ASSERT_EQ(
        cu.cuMemcpyHtoDAsync_v2(memory, shard.data(), shard.size(), stream),
        CUDA_SUCCESS);
    onGpu.push_back(onHost.back());
    onGpu.back().data = reinterpret_cast<void *>(memory);
  }
  ASSERT_EQ(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
  burst_run_config run{};
  run.size = sizeof(run);
  run.rank = rank;
  run.device = device;
  run.transport = transport;
  counters.size = sizeof(counters);
  for (int i = 0; i < 2; ++i)
    if (burst_error *error =
            burst_run(program, &run, onGpu.data(), count, &counters))
      ADD_FAILURE() << take(error);
  for (int64_t i = 0; i < count; ++i) {
    auto memory = reinterpret_cast<CUdeviceptr>(onGpu[size_t(i)].data);
    std::vector<char> &shard = shards[size_t(i)];
    ASSERT_EQ(
        cu.cuMemcpyDtoHAsync_v2(shard.data(), memory, shard.size(), stream),
        CUDA_SUCCESS);
    ASSERT_EQ(cu.cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_EQ(cu.cuMemFree_v2(memory), CUDA_SUCCESS);
    if (burst_program_parameter(program, i)->is_result)
      ASSERT_EQ(burst_gather(program, i, rank, &onHost[size_t(i)],
                             &globals[size_t(i)].tensor),
                nullptr);
  }
  ASSERT_EQ(cu.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  burst_transport_destroy(transport);
  burst_device_destroy(device);
  ASSERT_EQ(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  burst_world_destroy(world);
}

} // namespace

TEST_F(Cuda, copyEnginesGiveWhatThreadsOfOneDeviceGive) {
  struct Case {
    int64_t pass;
    size_t ranks;
    const char *strategy;
  };
  for (auto [pass, ranks, strategy] : {Case{BURST_FORWARD, 4, "ring_kv"},
                                       {BURST_BACKWARD, 2, "ring_q"},
                                       {BURST_FORWARD, 3, "all_gather"},
                                       {BURST_BACKWARD, 3, "all_gather"}}) {
    burst_attention attention = attentionOf(int64_t(ranks));
    attention.mask = "causal";
    attention.strategy = strategy;
    attention.pass = pass;
    compile(attention);
    if (!program)
      return;
    std::vector<Global> wanted;
    std::vector<burst_tensor> tensors;
    for (int64_t i = 0; i < burst_program_num_parameters(program); ++i)
      wanted.emplace_back(*burst_program_parameter(program, i), 90,
                          uint32_t(i + 1));
    std::vector<Global> found = wanted;
    for (size_t i = 0; i < wanted.size(); ++i) {
      found[i].tensor.data = found[i].data.data();
      wanted[i].tensor.data = wanted[i].data.data();
      tensors.push_back(wanted[i].tensor);
    }
    ASSERT_EQ(burst_device_create_cuda(nullptr, &device), nullptr);
    std::vector<burst_counters> planned(ranks), counted(ranks);
    for (burst_counters &counters : planned)
      counters.size = sizeof(counters);
    burst_run_all_config all{};
    all.size = sizeof(all);
    all.device = device;
    if (burst_error *error = burst_run_all(program, &all, tensors.data(),
                                           tensors.size(), planned.data()))
      FAIL() << take(error);
    std::string address = burst::test::freeAddress();
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < int64_t(ranks); ++rank)
      threads.emplace_back([&, rank] {
        runRank(program, address, rank, found, counted[size_t(rank)]);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(found[i].data, wanted[i].data)
          << burst_program_parameter(program, int64_t(i))->name;
    for (size_t rank = 0; rank < counted.size(); ++rank) {
      EXPECT_EQ(counted[rank].bytes_sent, planned[rank].bytes_sent);
      EXPECT_EQ(counted[rank].peak_total, planned[rank].peak_total);
    }
    TearDown();
    program = nullptr;
    device = nullptr;
  }
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
