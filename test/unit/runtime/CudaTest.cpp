//===- CudaTest.cpp - Tests of runs on GPUs -------------------------------===//

#include "Harness.h"
#include "StandInDriver.h"
#include "runtime/src/cuda/Gpu.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
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
      token = table->start(rank, 0, (r + 1) % ranks, 1, &send,
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

} // namespace
