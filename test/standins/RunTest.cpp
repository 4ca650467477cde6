//===- RunTest.cpp - Runs of programs over emulated GPUs ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Harness.h"
#include "test/unit/runtime/Harness.h"

#include <barrier>
#include <cstddef>
#include <cstring>
#include <thread>

using namespace burst;
using namespace burst::standins;

namespace {

constexpr int64_t count = 48, ranks = 4;

struct MemRef1 {
  float *base, *data;
  int64_t offset, sizes[1], strides[1];
};

/// Of the kernel add: out = a + b.
struct Arguments {
  const float *a, *b;
  float *out;
  uint32_t n;
};
constexpr burst_gpu_parameter theParameters[] = {
    {offsetof(Arguments, a), 8, nullptr},
    {offsetof(Arguments, b), 8, nullptr},
    {offsetof(Arguments, out), 8, nullptr},
    {offsetof(Arguments, n), 4, nullptr}};

void launchAdd(burst_rank *rank, const burst_table *table, const float *a,
               const float *b, float *out) {
  const Arguments arguments = {a, b, out, uint32_t(count)};
  const burst_use uses[] = {{a, 4 * count, BURST_READS},
                            {b, 4 * count, BURST_READS},
                            {out, 4 * count, BURST_WRITES}};
  table->launch_gpu(rank, 0, &arguments, 2, 3, uses);
}

enum class Ring : uint8_t {
  Plain,
  /// Forgets to wait for what it receives.
  Forgetful,
  /// Writes what it is about to send or to receive into, and what it has sent,
  /// so that no wait is for nothing.
  Busy
};

/// o = q + the sum of the k of all ranks, which travel round a ring; of a busy
/// ring, of twice the k.
test::Body ring(Ring kind) {
  return
      [kind](burst_rank *rank, const burst_table *table, void *const *values) {
        const auto *q = static_cast<MemRef1 *>(values[0]),
                   *k = static_cast<MemRef1 *>(values[1]),
                   *o = static_cast<MemRef1 *>(values[2]);
        int64_t index = table->index(rank);
        auto *buffers = static_cast<float *>(
            table->allocate(rank, 2 * 4 * count, BURST_MEMORY_SLICE));
        float *slice = k->data;
        if (kind == Ring::Busy)
          launchAdd(rank, table, k->data, k->data, k->data);
        for (int64_t hop = 0; hop < ranks; ++hop) {
          float *next = buffers + hop % 2 * count;
          bool sends = hop + 1 < ranks;
          int64_t token = 0;
          if (sends && kind == Ring::Busy)
            launchAdd(rank, table, q->data, q->data, next);
          if (sends) {
            burst_piece send = test::pieceOf(slice, count),
                        receive = test::pieceOf(next, count);
            token = test::shift(table, rank, 0, (index + 1) % ranks, 1, &send,
                                (index + ranks - 1) % ranks, 1, &receive);
          }
          launchAdd(rank, table, hop ? o->data : q->data, slice, o->data);
          if (sends && kind == Ring::Forgetful && hop == 1 && index == 2)
            launchAdd(rank, table, next, next, buffers + (hop + 1) % 2 * count);
          if (sends)
            table->wait(rank, token);
          slice = next;
        }
        table->release(rank, buffers);
      };
}

struct Setting {
  int gpus, seed;
};

class EmulatedRun : public Emulated,
                    public testing::WithParamInterface<Setting> {
protected:
  EmulatedRun()
      : Emulated({{"BURST_EMULATED_GPUS", std::to_string(GetParam().gpus)},
                  {"BURST_EMULATED_SEED", std::to_string(GetParam().seed)}}) {
    binary.architecture = "compute_80";
    binary.data = kernels;
    binary.bytes = int64_t(strlen(kernels) + 1);
    binary.checksum = 0xcbf29ce484222325;
    for (int64_t i = 0; i < binary.bytes; ++i)
      binary.checksum =
          (binary.checksum ^ (unsigned char)(kernels[i])) * 0x100000001b3;
    kernelAdd.name = "add";
    kernelAdd.threads = 32;
    kernelAdd.argument_bytes = sizeof(Arguments);
    kernelAdd.num_parameters = 4;
    kernelAdd.parameters = theParameters;
    kernelAdd.num_binaries = 1;
    kernelAdd.binaries = &binary;
  }

  /// Takes new GPUs in the place of those that may have failed.
  void again() {
    const Setting &setting = GetParam();
    setenv("BURST_EMULATED_GPUS", std::to_string(setting.gpus).c_str(), 1);
    setenv("BURST_EMULATED_SEED", std::to_string(setting.seed).c_str(), 1);
    burst_emulated_reset();
    unsetenv("BURST_EMULATED_GPUS");
    unsetenv("BURST_EMULATED_SEED");
    EXPECT_EQ(cu->cuInit(0), CUDA_SUCCESS);
    enter(0);
  }

  CUdeviceptr upload(float first) {
    std::vector<float> numbers(count);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = first + float(i);
    CUdeviceptr made = memory(4 * count);
    EXPECT_EQ(
        cu->cuMemcpyHtoDAsync_v2(made, numbers.data(), 4 * count, nullptr),
        CUDA_SUCCESS);
    EXPECT_EQ(cu->cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    return made;
  }

  /// Runs all ranks; gives their errors and results.
  void run(Ring kind = Ring::Plain) {
    test::Program program(ranks, ring(kind));
    program.parameters.reserve(3);
    program.tensor("q", {count});
    program.tensor("k", {count});
    program.tensor("o", {count}, BURST_F32, true);
    program.image.minimum_driver = 12000;
    program.image.num_gpu_kernels = 1;
    program.image.gpu_kernels = &kernelAdd;
    burst_program *shared = program.get();
    std::vector<test::Transport> transports = test::makeTransports(ranks);
    std::vector<test::Device> devices;
    for (int i = 0; i < GetParam().gpus; ++i) {
      burst_cuda_config config = {};
      config.size = sizeof(config);
      config.ordinal = i;
      burst_device *made = nullptr;
      EXPECT_EQ(test::take(burst_device_create_cuda(&config, &made)), "");
      devices.emplace_back(made);
    }
    std::vector<std::thread> threads;
    std::barrier<> begin(ranks); // a GPU that has failed takes no tensors
    for (int64_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        auto gpu = size_t(r % GetParam().gpus);
        enter(int(gpu));
        CUdeviceptr o = upload(-1);
        std::vector<burst_tensor> values;
        for (CUdeviceptr data :
             {upload(float(100 * r)), upload(float(1000 * (r + 1))), o})
          values.push_back(
              test::tensorOf(reinterpret_cast<void *>(data), {count}));
        burst_stream *made = nullptr;
        EXPECT_EQ(test::take(burst_stream_create(devices[gpu].get(), &made)),
                  "");
        test::Stream stream(made);
        burst_run_config config = {};
        config.size = sizeof(config);
        config.rank = r;
        config.transport = transports[size_t(r)].get();
        config.deadline_seconds = kind == Ring::Plain ? 60 : 2;
        config.stream = made;
        begin.arrive_and_wait();
        errors[size_t(r)] =
            test::take(burst_run(shared, &config, values.data(), 3, nullptr));
        if (errors[size_t(r)].empty())
          errors[size_t(r)] = test::take(burst_stream_synchronize(made));
        if (errors[size_t(r)].empty() && kind != Ring::Busy) {
          results[size_t(r)].resize(count);
          EXPECT_EQ(cu->cuMemcpyDtoHAsync_v2(results[size_t(r)].data(), o,
                                             4 * count, nullptr),
                    CUDA_SUCCESS);
          EXPECT_EQ(cu->cuStreamSynchronize(nullptr), CUDA_SUCCESS);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  burst_gpu_binary binary = {};
  burst_gpu_kernel kernelAdd = {};
  std::vector<std::string> errors = std::vector<std::string>(ranks);
  std::vector<std::vector<float>> results =
      std::vector<std::vector<float>>(ranks);
};

TEST_P(EmulatedRun, GivesTheSum) {
  run();
  for (size_t r = 0; r < size_t(ranks); ++r) {
    EXPECT_EQ(errors[r], "");
    ASSERT_EQ(results[r].size(), size_t(count));
    for (size_t i = 0; i < size_t(count); ++i)
      EXPECT_EQ(results[r][i], float(100 * r + 10000 + 5 * i));
  }
}

/// Threads of ranks may come in an order in which what is not waited for is
/// over in time, but not again and again.
TEST_P(EmulatedRun, FindsAMissingWait) {
  bool isFound = false;
  for (int attempt = 0; attempt < 5 && !isFound; ++attempt) {
    again();
    run(Ring::Forgetful);
    EXPECT_NE(errors[2], "");
    while (const char *report = burst_emulated_take_report())
      isFound |= std::string(report).find("kernel add") != std::string::npos;
  }
  EXPECT_TRUE(isFound) << "five runs with a fault";
}

/// Of each of the 12 messages a copy waits for the sender's memory and for the
/// receiver's, and each of these for the copy. Which number one has depends on
/// threads. Now and then one is not needed: where another wait of the same
/// stream stands for it, or the host has seen what it is for. If one of the
/// four kinds were never seen, a quarter would be missing.
TEST_P(EmulatedRun, NeedsEachKindOfWait) {
  constexpr int waits = ranks * (ranks - 1) * 4, tries = 3;
  auto isSeen = [&](int wait) {
    again();
    if (wait > 0)
      burst_emulated_fail("cuStreamWaitEvent", wait, BURST_EMULATED_NEVER);
    run(Ring::Busy);
    bool seen = false;
    while (burst_emulated_take_report())
      seen = true;
    return seen;
  };
  EXPECT_FALSE(isSeen(0));
  EXPECT_FALSE(isSeen(waits + 1)) << "there are more than " << waits;
  int seen = 0;
  for (int wait = 1; wait <= waits; ++wait)
    for (int left = tries; left > 0; --left)
      if (isSeen(wait)) {
        ++seen;
        break;
      }
  EXPECT_GT(seen, waits * 3 / 4);
  RecordProperty("seen", seen);
  std::printf("%d of %d waits\n", seen, waits);
}

INSTANTIATE_TEST_SUITE_P(Gpus, EmulatedRun,
                         testing::Values(Setting{1, 0}, Setting{4, 0},
                                         Setting{2, 5}));

} // namespace
