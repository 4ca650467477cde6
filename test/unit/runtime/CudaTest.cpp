//===- CudaTest.cpp - Tests of runs on GPUs -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Exhaust.h"
#include "Harness.h"
#include "StandInDriver.h"
#include "runtime/src/cuda/Gpu.h"

#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <sys/mman.h>
#include <thread>

using namespace burst::test;

namespace {

struct MemRef1 {
  float *base, *data;
  int64_t offset, sizes[1], strides[1];
};

/// Kernel 0 sets numbers to 0, 1 adds `weights[hop]` times others to them, and
/// 2 adds others without a weight.
struct Arguments {
  float *to;
  const float *from;
  const float *weights;
  int64_t hop, count;
};
constexpr burst_gpu_parameter theParameters[] = {
    {offsetof(Arguments, to), 8, nullptr},
    {offsetof(Arguments, from), 8, nullptr},
    {offsetof(Arguments, weights), 8, nullptr},
    {offsetof(Arguments, hop), 8, nullptr},
    {offsetof(Arguments, count), 8, nullptr}};
enum { ZERO, ACCUMULATE, ADD };

void fillWeights(const void *arguments, int64_t task) {
  (*static_cast<float *const *>(arguments))[task] = float(task + 1);
}
const burst_kernel fillingWeights = {"fill", fillWeights};

void launch(burst_rank *rank, const burst_table *table, int64_t kernel,
            const Arguments &arguments) {
  const int64_t bytes = 4 * arguments.count;
  const burst_use uses[] = {{arguments.to, bytes, BURST_READS | BURST_WRITES},
                            {arguments.from, bytes, BURST_READS}};
  table->launch_gpu(rank, kernel, &arguments, 2, arguments.from ? 2 : 1, uses);
}

/// o = q + the sum over hops h of (h + 1) times the k of the rank h before this
/// one: a ring with two buffers.
void forward(burst_rank *rank, const burst_table *table, int64_t ranks,
             const MemRef1 &q, const MemRef1 &k, const MemRef1 &o) {
  int64_t r = table->index(rank), count = q.sizes[0];
  auto *state = static_cast<float *>(
      table->allocate(rank, 4 * count, BURST_MEMORY_STATE));
  auto *buffers = static_cast<float *>(
      table->allocate(rank, 2 * 4 * count, BURST_MEMORY_SLICE));
  auto *made = static_cast<float *>(
      table->allocate(rank, 4 * ranks, BURST_MEMORY_SCHEDULE));
  const burst_use use = {made, 4 * ranks, BURST_WRITES};
  table->launch(rank, &fillingWeights, &made, ranks, nullptr, 1, &use);
  auto *weights =
      static_cast<const float *>(table->upload(rank, made, 4 * ranks));
  table->release(rank, made);
  launch(rank, table, ZERO, {state, nullptr, nullptr, 0, count});
  float *slice = k.data;
  for (int64_t hop = 0; hop < ranks; ++hop) {
    float *next = buffers + hop % 2 * count;
    int64_t token = 0;
    bool last = hop + 1 == ranks;
    if (!last) {
      burst_piece send = pieceOf(slice, count), receive = pieceOf(next, count);
      token = shift(table, rank, 0, (r + 1) % ranks, 1, &send,
                    (r + ranks - 1) % ranks, 1, &receive);
    }
    launch(rank, table, ACCUMULATE, {state, slice, weights, hop, count});
    if (!last)
      table->wait(rank, token);
    slice = next;
  }
  launch(rank, table, ZERO, {o.data, nullptr, nullptr, 0, count});
  launch(rank, table, ADD, {o.data, state, nullptr, 0, count});
  launch(rank, table, ADD, {o.data, q.data, nullptr, 0, count});
  table->release(rank, state);
}

class Cuda : public testing::Test {
protected:
  static constexpr int64_t count = 5;

  explicit Cuda(std::vector<int> capabilities = {90})
      : driver(std::move(capabilities)) {
    for (const char *name : {"zero", "accumulate", "add"}) {
      burst_gpu_kernel kernel = {};
      kernel.name = name;
      kernel.threads = 128;
      kernel.argument_bytes = sizeof(Arguments);
      kernel.num_parameters = 5;
      kernel.parameters = theParameters;
      kernel.num_binaries = 1;
      kernel.binaries = &binary;
      kernels.push_back(kernel);
    }
    auto add = [this](const char *name, auto compute) {
      driver.addKernel(name, {8, 8, 8, 8, 8}, [compute](const Launch &launch) {
        auto *to = launch.parameter<float *>(0);
        for (int64_t i = 0; i < launch.parameter<int64_t>(4); ++i)
          compute(to[i], launch, i);
      });
    };
    add("zero", [](float &to, const Launch &, int64_t) { to = 0; });
    add("add", [](float &to, const Launch &launch, int64_t i) {
      to += launch.parameter<const float *>(1)[i];
    });
    add("accumulate", [](float &to, const Launch &launch, int64_t i) {
      to += launch.parameter<const float *>(1)[i] *
            launch.parameter<const float *>(2)[launch.parameter<int64_t>(3)];
    });
    EXPECT_EQ(take(burst_gpu_create(0, &gpu)), "");
    EXPECT_EQ(take(burst_gpu_stream_create(gpu, &copies)), "");
  }

  void TearDown() override {
    driver.resume();
    streams.clear();
    transports.clear();
    program.reset();
    devices.clear();
    for (const auto &[memory, size] : tensors)
      EXPECT_EQ(take(burst_gpu_free(gpu, memory, copies)), "");
    EXPECT_EQ(take(burst_gpu_synchronize(gpu, copies)), "");
    burst_gpu_stream_destroy(gpu, copies);
    burst_gpu_destroy(gpu);
    EXPECT_EQ(driver.alive(), 0);
    EXPECT_EQ(driver.current(), -1);
  }

  burst_device *makeDevice(burst_cuda_config config = {}) {
    config.size = sizeof(config);
    burst_device *device = nullptr;
    EXPECT_EQ(take(burst_device_create_cuda(&config, &device)), "");
    devices.emplace_back(device);
    return device;
  }

  /// Describes a program for GPUs, with tensors q, k and o of `count` numbers.
  void describe(int64_t ranks, const Body &body) {
    program.reset(); // whose end would take the body of the next one
    program = std::make_unique<Program>(ranks, body);
    program->image.minimum_driver = 12000;
    program->image.num_gpu_kernels = 3;
    program->image.gpu_kernels = kernels.data();
    program->parameters.reserve(4);
  }
  static Body bodyOf(int64_t ranks) {
    return [ranks](burst_rank *rank, const burst_table *table,
                   void *const *values) {
      forward(rank, table, ranks, *static_cast<MemRef1 *>(values[0]),
              *static_cast<MemRef1 *>(values[1]),
              *static_cast<MemRef1 *>(values[2]));
    };
  }
  void describe(int64_t ranks) {
    describe(ranks, bodyOf(ranks));
    program->tensor("q", {count});
    program->tensor("k", {count});
    program->tensor("o", {count}, BURST_F32, true);
  }

  /// Memory of the GPU with numbers from `first` on.
  float *upload(float first) {
    std::vector<float> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    CUdeviceptr memory = 0;
    size_t bytes = count * sizeof(float);
    EXPECT_EQ(take(burst_gpu_allocate(gpu, bytes, copies, &memory)), "");
    EXPECT_EQ(
        take(burst_gpu_upload(gpu, memory, numbers.data(), bytes, copies)), "");
    EXPECT_EQ(take(burst_gpu_synchronize(gpu, copies)), "");
    tensors[memory] = bytes;
    return reinterpret_cast<float *>(memory);
  }

  struct Rank {
    float *q, *k, *o;
    std::vector<burst_tensor> values;
    burst_run_config config = {};
    burst_counters counters = {};
    std::string error;
  };

  /// Ranks on devices in turn, each with a stream if `onStreams`.
  void make(int64_t count, const std::vector<burst_device *> &on,
            bool onStreams = true, bool checked = false) {
    burst_local_config local = {sizeof(local), count, 0, 0, checked};
    transports = makeTransports(local);
    ranks = std::vector<Rank>(count);
    streams.clear();
    for (int64_t r = 0; r < count; ++r) {
      Rank &rank = ranks[r];
      rank.q = upload(float(100 * r));
      rank.k = upload(float(1000 * (r + 1)));
      rank.o = upload(-1);
      for (float *data : {rank.q, rank.k, rank.o})
        rank.values.push_back(tensorOf(data, {Cuda::count}));
      rank.counters.size = sizeof(burst_counters);
      rank.config.size = sizeof(burst_run_config);
      rank.config.rank = r;
      rank.config.transport = transports[r].get();
      rank.config.deadline_seconds = 60;
      rank.config.checked = checked;
      burst_device *device = on[r % on.size()];
      if (!onStreams) {
        rank.config.device = device;
        continue;
      }
      burst_stream *stream = nullptr;
      EXPECT_EQ(take(burst_stream_create(device, &stream)), "");
      streams.emplace_back(stream);
      rank.config.stream = stream;
    }
  }

  /// Calls burst_run of all ranks, each on a thread.
  void start() {
    std::vector<std::thread> threads;
    burst_program *shared = program->get();
    for (Rank &rank : ranks)
      threads.emplace_back([&, shared] {
        rank.error = takeCoded(
            burst_run(shared, &rank.config, rank.values.data(),
                      int64_t(program->parameters.size()), &rank.counters));
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  std::string synchronize(int64_t rank) {
    return takeCoded(burst_stream_synchronize(streams[rank].get()));
  }
  void finish() {
    for (size_t r = 0; r < ranks.size(); ++r) {
      EXPECT_EQ(ranks[r].error, "");
      ranks[r].error = synchronize(int64_t(r));
    }
  }

  /// Whether all ranks have no error and what they should have.
  bool isRight() const {
    auto n = int64_t(ranks.size());
    for (int64_t r = 0; r < n; ++r) {
      if (!ranks[r].error.empty())
        return false;
      for (int64_t i = 0; i < count; ++i) {
        float sum = float(100 * r + i);
        for (int64_t hop = 0; hop < n; ++hop)
          sum += float((hop + 1) * (1000 * ((r + n - hop) % n + 1) + i));
        if (ranks[r].o[i] != sum)
          return false;
      }
    }
    return true;
  }
  void expectPoison(int64_t rank) const {
    for (int64_t i = 0; i < count; ++i)
      EXPECT_TRUE(std::isnan(ranks[rank].o[i])) << ranks[rank].o[i];
  }

  StandInDriver driver;
  burst_gpu_binary binary = binaryOf("sm_90", "zero accumulate add ");
  std::vector<burst_gpu_kernel> kernels;
  burst_gpu *gpu = nullptr; // for the tensors
  CUstream copies = nullptr;
  std::map<CUdeviceptr, size_t> tensors;
  std::vector<Device> devices;
  std::unique_ptr<Program> program;
  std::vector<Transport> transports;
  std::vector<Rank> ranks;
  std::vector<Stream> streams;
};

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

TEST_F(Cuda, RunsRanksOnOneGpu) {
  burst_device *device = makeDevice();
  for (int64_t n : {1, 2, 3, 4})
    for (bool checked : {false, true}) {
      SCOPED_TRACE(std::to_string(n) + (checked ? " checked" : ""));
      describe(n);
      make(n, {device}, true, checked);
      start();
      finish();
      for (const Rank &rank : ranks)
        EXPECT_EQ(rank.error, "");
      EXPECT_TRUE(isRight());
      const burst_counters &counters = ranks[0].counters;
      EXPECT_EQ(counters.messages_sent, n - 1);
      EXPECT_EQ(counters.bytes_received, 4 * count * (n - 1));
      EXPECT_EQ(counters.launches, 1 + 1 + n + 3);
      EXPECT_EQ(counters.tasks, n + 2 * (1 + n + 3));
      EXPECT_EQ(counters.tensor_bytes, 3 * 4 * count);
      EXPECT_EQ(counters.peak_bytes[BURST_MEMORY_STATE], 4 * count);
      EXPECT_EQ(counters.peak_bytes[BURST_MEMORY_SLICE], 8 * count);
      EXPECT_EQ(counters.peak_bytes[BURST_MEMORY_SCHEDULE], 8 * n);
      EXPECT_EQ(counters.compute_seconds, 0.5); // as the stand-in says
    }
}

TEST_F(Cuda, WithoutMemoryOfTheHost) {
  describe(2);
  burst_program *shared = program->get();
  std::vector<float> data(3 * count);
  std::vector<burst_tensor> globals;
  for (int i = 0; i < 3; ++i)
    globals.push_back(tensorOf(data.data() + i * count, {count}));
  exhaust([&] {
    burst_device *device = nullptr;
    burst_error *error = burst_device_create_cuda(nullptr, &device);
    burst_run_all_config config = {};
    config.size = sizeof(config);
    config.device = device;
    config.deadline_seconds = 60;
    config.checked = 1;
    if (!error)
      error = burst_run_all(shared, &config, globals.data(), 3, nullptr);
    burst_device_destroy(device);
    return error;
  });
}

TEST_F(Cuda, WithoutAStreamReturnsWhenAllIsDone) {
  describe(2);
  make(2, {makeDevice()}, false);
  start();
  EXPECT_TRUE(isRight()) << ranks[0].error << ranks[1].error;
}

TEST_F(Cuda, WithAStreamReturnsAtOnce) {
  describe(1);
  make(1, {makeDevice()});
  driver.hold();
  start();
  EXPECT_EQ(ranks[0].o[0], -1);
  driver.resume();
  finish();
  EXPECT_TRUE(isRight());
}

TEST_F(Cuda, RunsInTheOrderOfAStream) {
  describe(2);
  make(2, {makeDevice()});
  driver.hold();
  for (int i = 0; i < 3; ++i)
    start();
  driver.resume();
  finish();
  EXPECT_TRUE(isRight());
}

/// A caller's allocator, over the pool of the test.
struct Caller {
  burst_gpu *gpu;
  CUstream stream;
  std::map<void *, int64_t> memory;
  bool full = false;

  static void *allocate(void *context, int64_t bytes, void *stream) {
    auto *caller = static_cast<Caller *>(context);
    EXPECT_EQ(stream, caller->stream);
    CUdeviceptr memory = 0;
    if (!caller->full)
      EXPECT_EQ(take(burst_gpu_allocate(caller->gpu, size_t(bytes),
                                        caller->stream, &memory)),
                "");
    if (memory)
      caller->memory[reinterpret_cast<void *>(memory)] = bytes;
    return reinterpret_cast<void *>(memory);
  }
  static void release(void *context, void *memory, int64_t bytes,
                      void *stream) {
    auto *caller = static_cast<Caller *>(context);
    EXPECT_EQ(stream, caller->stream);
    EXPECT_EQ(caller->memory[memory], bytes);
    caller->memory.erase(memory);
    EXPECT_EQ(
        take(burst_gpu_free(caller->gpu, reinterpret_cast<CUdeviceptr>(memory),
                            caller->stream)),
        "");
  }
};

TEST_F(Cuda, TakesTheCallersStreamAndMemory) {
  Caller caller = {gpu, nullptr, {}, false};
  ASSERT_EQ(take(burst_gpu_stream_create(gpu, &caller.stream)), "");
  burst_cuda_config config = {};
  config.allocate = Caller::allocate;
  config.release = Caller::release;
  config.context = &caller;
  burst_device *device = makeDevice(config);
  describe(1);
  make(1, {device});
  burst_stream *stream = nullptr;
  ASSERT_EQ(take(burst_stream_create_cuda(device, caller.stream, &stream)), "");
  streams[0].reset(stream);
  ranks[0].config.stream = stream;
  start();
  // In the order of the caller's stream.
  std::vector<float> o(count);
  EXPECT_EQ(take(burst_gpu_download(gpu, o.data(),
                                    reinterpret_cast<CUdeviceptr>(ranks[0].o),
                                    count * sizeof(float), caller.stream)),
            "");
  EXPECT_EQ(take(burst_gpu_synchronize(gpu, caller.stream)), "");
  EXPECT_EQ(o[2], 2 + 1002);
  finish();
  EXPECT_TRUE(isRight());
  EXPECT_TRUE(caller.memory.empty());
  caller.full = true;
  start();
  EXPECT_EQ(synchronize(0), "OUT_OF_MEMORY rank 0: the caller's allocate: no "
                            "memory for 20 bytes");
  expectPoison(0);
  EXPECT_TRUE(caller.memory.empty());
  streams.clear();
  burst_gpu_stream_destroy(gpu, caller.stream);
}

/// The table of a mask: on the host, and read there.
TEST_F(Cuda, ReadsTablesOnTheHost) {
  describe(1,
           [](burst_rank *rank, const burst_table *table, void *const *values) {
             const auto *table0 = static_cast<MemRef1 *>(values[0]);
             const auto *empty = static_cast<MemRef1 *>(values[1]);
             const auto *o = static_cast<MemRef1 *>(values[2]);
             auto *copy = static_cast<float *>(
                 table->upload(rank, table0->data, 4 * table0->sizes[0]));
             launch(rank, table, ZERO, {o->data, nullptr, nullptr, 0, count});
             launch(rank, table, ADD, {o->data, copy, nullptr, 0, count});
             // There is something to read where there is nothing.
             launch(rank, table, ADD, {o->data, empty->data, nullptr, 0, 1});
           });
  program->tensor("table", {count}).is_host = 1;
  program->tensor("empty", {0});
  program->tensor("o", {count}, BURST_F32, true);
  make(1, {makeDevice()});
  std::vector<float> mask = {1, 2, 3, 4, 5};
  ranks[0].values[0] = tensorOf(mask.data(), {count});
  ranks[0].values[1] = tensorOf(nullptr, {0});
  driver.hold();
  start();
  mask.assign(count, 0); // it was read
  driver.resume();
  finish();
  EXPECT_EQ(ranks[0].error, "");
  EXPECT_EQ(ranks[0].o[0], 1);
  EXPECT_EQ(ranks[0].o[4], 5);
}

TEST_F(Cuda, RunsAllOnTensorsOfTheHost) {
  const int64_t n = 4, extent = n * count;
  for (Program::Segments segments : {contiguous, striped}) {
    describe(n, bodyOf(n));
    for (const char *name : {"q", "k", "o"}) {
      program->tensor(name, {count}, BURST_F32, *name == 'o');
      program->shard(0, segments, extent);
    }
    std::vector<float> q(extent), k(extent), o(extent);
    std::iota(q.begin(), q.end(), 0.f);
    std::iota(k.begin(), k.end(), 1000.f);
    const burst_tensor globals[] = {tensorOf(q.data(), {extent}),
                                    tensorOf(k.data(), {extent}),
                                    tensorOf(o.data(), {extent})};
    burst_run_all_config config = {};
    config.size = sizeof(config);
    config.device = makeDevice();
    config.deadline_seconds = 60;
    config.checked = 1;
    std::vector<burst_counters> counters(n);
    for (burst_counters &counter : counters)
      counter.size = sizeof(counter);
    EXPECT_EQ(take(burst_run_all(program->get(), &config, globals, 3,
                                 counters.data())),
              "");
    EXPECT_EQ(counters[3].messages_sent, n - 1);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t i = 0; i < count; ++i) {
        auto at = [&](int64_t rank) {
          std::vector<burst_segment> held = segments(rank, n, extent);
          return held[0].begin + i * held[0].step;
        };
        float sum = q[at(r)];
        for (int64_t hop = 0; hop < n; ++hop)
          sum += float(hop + 1) * k[at((r + n - hop) % n)];
        EXPECT_EQ(o[at(r)], sum) << r << ", " << i;
      }
  }
}

/// Ranks on two GPUs in turn.
class CudaPeers : public Cuda {
protected:
  CudaPeers() : Cuda({90, 90}) {}
};

TEST_F(CudaPeers, CopyToEachOther) {
  burst_cuda_config second = {};
  second.ordinal = 1;
  std::vector<burst_device *> both = {makeDevice(), makeDevice(second)};
  describe(4);
  make(4, both, true, true);
  start();
  finish();
  EXPECT_TRUE(isRight()) << ranks[0].error << ranks[1].error;
  // A stream of one is none of the other.
  CUstream mine = nullptr;
  ASSERT_EQ(take(burst_gpu_stream_create(gpu, &mine)), "");
  burst_stream *stream;
  EXPECT_EQ(take(burst_stream_create_cuda(both[1], mine, &stream)),
            "stream: it is not of the primary context of GPU 1: make it there");
  EXPECT_EQ(stream, nullptr);
  burst_gpu_stream_destroy(gpu, mine);
}

TEST_F(Cuda, SeesWaitsThatAreForgotten) {
  // Which ones depends on the stream that is looked at first: some order that
  // is late enough for one is early enough for another.
  burst_device *device = makeDevice();
  describe(3);
  auto isSeen = [&](int wait) {
    make(3, {device}, true, true);
    int astray = driver.astray();
    driver.forgetWait(wait);
    driver.hold();
    start();
    driver.resume();
    finish();
    return !isRight() || driver.astray() > astray;
  };
  EXPECT_FALSE(isSeen(-1));
  int waits = driver.waits(), seen = 0;
  // Of each of 6 messages: two of the copy, and two for it.
  EXPECT_EQ(waits, 6 * 4);
  for (int wait = 0; wait < waits; ++wait)
    seen += isSeen(wait);
  EXPECT_GT(seen, 0);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

TEST_F(Cuda, IsCapturedToAGraph) {
  const burst_driver *table;
  ASSERT_EQ(take(burst_driver_table(&table)), "");
  burst_device *device = makeDevice();
  for (int64_t n : {1, 2}) {
    SCOPED_TRACE(n);
    describe(n);
    make(n, {device});
    std::vector<CUstream> mine(n);
    for (int64_t r = 0; r < n; ++r) {
      ASSERT_EQ(take(burst_gpu_stream_create(gpu, &mine[r])), "");
      burst_stream *stream;
      ASSERT_EQ(take(burst_stream_create_cuda(device, mine[r], &stream)), "");
      streams[r].reset(stream);
      ranks[r].config.stream = stream;
    }
    // The other streams join the capture of the first one.
    CUevent fork = nullptr;
    ASSERT_EQ(take(burst_gpu_event_create(gpu, false, &fork)), "");
    ASSERT_EQ(
        table->cuStreamBeginCapture_v2(mine[0], CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
    EXPECT_EQ(take(burst_gpu_record(gpu, fork, mine[0])), "");
    for (int64_t r = 1; r < n; ++r)
      EXPECT_EQ(take(burst_gpu_wait(gpu, mine[r], fork)), "");
    start();
    finish();
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    ASSERT_EQ(table->cuStreamEndCapture(mine[0], &graph), CUDA_SUCCESS);
    ASSERT_EQ(table->cuGraphInstantiateWithFlags(&executable, graph, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(ranks[0].o[0], -1) << "nothing ran";
    EXPECT_EQ(ranks[0].counters.compute_seconds, 0);
    for (int launch = 0; launch < 2; ++launch) {
      ranks[0].o[0] = -1;
      ASSERT_EQ(table->cuGraphLaunch(executable, mine[0]), CUDA_SUCCESS);
      EXPECT_EQ(take(burst_gpu_synchronize(gpu, mine[0])), "");
      EXPECT_TRUE(isRight()) << ranks[0].error;
    }
    // A run beside the graph takes nothing from it.
    start();
    finish();
    EXPECT_TRUE(isRight());
    ASSERT_EQ(table->cuGraphLaunch(executable, mine[0]), CUDA_SUCCESS);
    EXPECT_EQ(take(burst_gpu_synchronize(gpu, mine[0])), "");
    EXPECT_TRUE(isRight());
    table->cuGraphExecDestroy(executable);
    table->cuGraphDestroy(graph);
    burst_gpu_event_destroy(gpu, fork);
    streams.clear();
    for (CUstream stream : mine)
      burst_gpu_stream_destroy(gpu, stream);
  }
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

TEST_F(Cuda, SaysWhatTheDriverRefused) {
  burst_device *device = makeDevice();
  const struct {
    const char *call;
    CUresult result;
    std::string error;
  } cases[] = {
      {"cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY,
       "OUT_OF_MEMORY rank 0: GPU 0: cuMemAllocFromPoolAsync: "
       "CUDA_ERROR_OUT_OF_MEMORY (2): the stand-in says so"},
      {"cuLaunchKernelEx", CUDA_ERROR_LAUNCH_FAILED,
       "SYSTEM rank 0: kernel zero of 2 blocks: GPU 0: cuLaunchKernelEx: "
       "CUDA_ERROR_LAUNCH_FAILED (719): the stand-in says so"},
      {"cuMemcpyHtoDAsync_v2", CUDA_ERROR_INVALID_VALUE,
       "SYSTEM rank 0: GPU 0: cuMemcpyHtoDAsync_v2: an unknown error (1): the "
       "stand-in says so"},
      {"cuEventQuery", CUDA_ERROR_LAUNCH_FAILED,
       "SYSTEM rank 0: GPU 0: cuEventQuery: CUDA_ERROR_LAUNCH_FAILED (719): "
       "the stand-in says so"},
      {"cuStreamIsCapturing", CUDA_ERROR_INVALID_VALUE,
       "SYSTEM GPU 0: cuStreamIsCapturing: an unknown error (1): the stand-in "
       "says so"},
      {"cuModuleLoadData", CUDA_ERROR_INVALID_IMAGE,
       "SYSTEM rank 0: GPU 0: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE "
       "(200): the stand-in says so"}};
  for (const auto &refused : cases) {
    SCOPED_TRACE(refused.call);
    describe(1); // with kernels that are not yet loaded
    make(1, {device});
    driver.fail(refused.call, refused.result);
    start();
    EXPECT_EQ(ranks[0].error, "");
    EXPECT_EQ(synchronize(0), refused.error);
    EXPECT_EQ(synchronize(0), "") << "it was told";
  }
}

TEST_F(Cuda, PoisonsResultsUntilTheErrorIsTold) {
  describe(1);
  make(1, {makeDevice()});
  driver.fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_FAILED, 3);
  start();
  start(); // is not begun
  expectContains(synchronize(0), {"kernel add of 2 blocks"});
  expectPoison(0);
  start();
  finish();
  EXPECT_TRUE(isRight());
}

TEST_F(Cuda, StopsThePeersOfARankThatFails) {
  describe(3,
           [](burst_rank *rank, const burst_table *table, void *const *values) {
             if (table->index(rank) == 2)
               table->allocate(rank, -8, BURST_MEMORY_STATE);
             forward(rank, table, 3, *static_cast<MemRef1 *>(values[0]),
                     *static_cast<MemRef1 *>(values[1]),
                     *static_cast<MemRef1 *>(values[2]));
           });
  program->tensor("q", {count});
  program->tensor("k", {count});
  program->tensor("o", {count}, BURST_F32, true);
  make(3, {makeDevice()});
  start();
  std::string cause = "rank 2: allocate: -8 bytes, wanted 0 or more";
  EXPECT_EQ(synchronize(2), "PROGRAM_FAULT " + cause);
  for (int64_t r : {0, 1}) {
    expectContains(synchronize(r), {"PEER_STOPPED rank " + std::to_string(r),
                                    "rank 2 stopped: " + cause});
    expectPoison(r);
  }
}

TEST_F(Cuda, NamesTheRankThatNeverSends) {
  describe(
      2, [](burst_rank *rank, const burst_table *table, void *const *values) {
        auto *o = static_cast<MemRef1 *>(values[0]);
        burst_piece piece = pieceOf(o->data, count);
        if (table->index(rank) == 0)
          table->wait(rank, shift(table, rank, 4, 0, 0, nullptr, 1, 1, &piece));
      });
  program->tensor("o", {count}, BURST_F32, true);
  make(2, {makeDevice()});
  for (Rank &rank : ranks) {
    rank.values = {rank.values[2]};
    rank.config.deadline_seconds = 0.2;
  }
  start();
  EXPECT_EQ(synchronize(1), "");
  EXPECT_EQ(synchronize(0), "DEADLINE_EXCEEDED rank 0, hop 1: waited 0.2 s for "
                            "rank 1 on channel 4: it has not sent");
  expectPoison(0);
}

TEST_F(Cuda, EndsARunThatHangs) {
  burst_device *device = makeDevice();
  for (int64_t n : {1, 2}) {
    describe(n);
    make(n, {device});
    for (Rank &rank : ranks)
      rank.config.deadline_seconds = 0.2;
    driver.hold();
    auto begin = std::chrono::steady_clock::now();
    start();
    std::string first = synchronize(0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(20));
    if (n == 1)
      EXPECT_EQ(first, "DEADLINE_EXCEEDED rank 0: waited 0.2 s for GPU 0: the "
                       "run has not ended there");
    else
      EXPECT_EQ(first, "DEADLINE_EXCEEDED rank 0, hop 1: waited 0.2 s for rank "
                       "1 on channel 0: the transfer is not complete on GPU 0");
    EXPECT_EQ(ranks[0].o[0], -1) << "the GPU hangs";
    for (int64_t r = 1; r < n; ++r)
      expectContains(synchronize(r), {"DEADLINE_EXCEEDED rank 1, hop 1"});
    driver.resume();
    streams.clear(); // which makes the stand-in run it
    expectPoison(0);
  }
}

TEST_F(Cuda, RefusesMismatches) {
  describe(2, [](burst_rank *rank, const burst_table *table,
                 void *const *values) {
    auto *o = static_cast<MemRef1 *>(values[0]);
    int64_t r = table->index(rank);
    burst_piece piece = pieceOf(o->data, count - r);
    table->wait(rank, shift(table, rank, 0, 1, 1 - r, &piece, 0, r, &piece));
  });
  program->tensor("o", {count}, BURST_F32, true);
  make(2, {makeDevice()});
  for (Rank &rank : ranks)
    rank.values = {rank.values[2]};
  start();
  expectContains(synchronize(0) + synchronize(1), {"MISMATCH rank "});
  // A copy that the driver refuses.
  transports = makeTransports(2);
  describe(2);
  make(2, {devices[0].get()});
  driver.fail("cuMemcpyDtoDAsync_v2", CUDA_ERROR_INVALID_VALUE);
  start();
  expectContains(synchronize(0) + synchronize(1),
                 {"rank ", "GPU 0: a copy of a message: an unknown error (1)"});
}

TEST_F(Cuda, FindsWhatTouchesMemoryInFlight) {
  describe(2, [](burst_rank *rank, const burst_table *table,
                 void *const *values) {
    auto *o = static_cast<MemRef1 *>(values[0]);
    int64_t r = table->index(rank);
    auto *buffer = static_cast<float *>(
        table->allocate(rank, 4 * count, BURST_MEMORY_SLICE));
    burst_piece send = pieceOf(o->data, count),
                receive = pieceOf(buffer, count);
    int64_t token = shift(table, rank, 0, 1 - r, 1, &send, 1 - r, 1, &receive);
    launch(rank, table, ADD, {o->data, buffer, nullptr, 0, count});
    table->wait(rank, token);
  });
  program->tensor("o", {count}, BURST_F32, true);
  make(2, {makeDevice()}, true, true);
  for (Rank &rank : ranks)
    rank.values = {rank.values[2]};
  start();
  expectContains(synchronize(0) + synchronize(1),
                 {"PROGRAM_FAULT rank ",
                  "hop 1: kernel add writes memory that is being sent to "
                  "rank "});
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

TEST_F(Cuda, RefusesWhatDoesNotFit) {
  burst_device *device = makeDevice();
  describe(1);
  make(1, {device}, false);
  auto run = [&] {
    start();
    return ranks[0].error;
  };
  const std::string invalid = "INVALID_ARGUMENT ";
  driver.setVersion(12020);
  program->image.minimum_driver = 12040;
  burst_device *old = makeDevice();
  ranks[0].config.device = old;
  EXPECT_EQ(run(), invalid + "test: the driver of GPU 0 knows CUDA 12.2, "
                             "wanted 12.4: install a later one");
  ranks[0].config.device = device;
  program->image.minimum_driver = 0;
  EXPECT_EQ(run(), invalid + "test: a program for CPUs, the device is GPU 0: "
                             "run it on a CPU, or compile it for GPUs");
  program->image.minimum_driver = 12000;
  Device cpu = burst::test::makeDevice(1);
  ranks[0].config.device = cpu.get();
  EXPECT_EQ(run(), invalid + "test: a program for GPUs, the device is a CPU: "
                             "run it on a device of burst_device_create_cuda");
  ranks[0].config.device = device;
  Trace trace = makeTrace();
  ranks[0].config.trace = trace.get();
  EXPECT_EQ(run(), invalid + "test: a trace of a run on a GPU, where nothing "
                             "is recorded: leave it out");
  ranks[0].config.trace = nullptr;
  std::vector<float> host(count);
  ranks[0].values[1].data = host.data();
  EXPECT_EQ(run(), invalid + "argument k: memory of the host, wanted that of "
                             "a GPU: copy it there");
  ranks[0].values[1].data = ranks[0].k;
  program->parameters[0].is_host = 1;
  EXPECT_EQ(run(), invalid + "argument q: memory of a GPU, wanted that of the "
                             "host: copy it there");
  program->parameters[0].is_host = 0;
  const int64_t open[] = {-1}, *sizes = program->parameters[1].sizes;
  program->parameters[1].sizes = open;
  ranks[0].values[1].sizes[0] = (int64_t{1} << 30) + 1;
  // Addresses of its own: what it is said to cover overlaps nothing.
  const size_t covered = sizeof(float) << 31;
  void *addresses = mmap(nullptr, covered, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(addresses, MAP_FAILED);
  ranks[0].values[1].data = addresses;
  EXPECT_EQ(run(), invalid + "argument k: size 1073741825 in dimension 0, "
                             "wanted at most 1073741824, as far as kernels of "
                             "GPUs count: split it");
  munmap(addresses, covered);
  program->parameters[1].sizes = sizes;
  ranks[0].values[1].sizes[0] = count;
  ranks[0].values[1].data = ranks[0].k;
  EXPECT_EQ(run(), "");
  EXPECT_TRUE(isRight());

  burst_stream *stream;
  EXPECT_EQ(takeCoded(burst_stream_create_cuda(cpu.get(), nullptr, &stream)),
            invalid + "stream: one of CUDA, the device is a CPU");
  EXPECT_EQ(takeCoded(burst_stream_create_cuda(nullptr, nullptr, &stream)),
            invalid + "burst_stream_create_cuda: device: null");
  burst_device *none;
  burst_cuda_config config = {};
  config.size = sizeof(config);
  config.allocate = Caller::allocate;
  EXPECT_EQ(takeCoded(burst_device_create_cuda(&config, &none)),
            invalid + "burst_cuda_config: allocate without release");
  config.allocate = nullptr;
  config.ordinal = 3;
  EXPECT_EQ(takeCoded(burst_device_create_cuda(&config, &none)),
            invalid + "GPU 3: there are 1, counted from 0");
  EXPECT_EQ(none, nullptr);
}

TEST_F(Cuda, CannotDelayCopies) {
  describe(2);
  make(2, {makeDevice()}, false);
  burst_local_config local = {sizeof(local), 2, 0.5, 0, 0};
  transports = makeTransports(local);
  for (int r : {0, 1})
    ranks[r].config.transport = transports[r].get();
  start();
  expectContains(ranks[0].error + ranks[1].error,
                 {"INVALID_ARGUMENT rank ",
                  ", hop 1: the local transport has latency_seconds 0.5 and "
                  "bytes_per_second 0: copies of a GPU cannot be delayed"});
}

} // namespace
