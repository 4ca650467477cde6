//===- Harness.cpp - Programs of tests, and ranks to run them -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <algorithm>
#include <thread>

// Sanitizers end the process where malloc would return null, which is tested.
extern "C" const char *__asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char *__tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace burst::test {

std::string take(burst_error *error) {
  std::string text = error ? burst_error_message(error) : "";
  burst_error_destroy(error);
  return text;
}

std::string takeCoded(burst_error *error) {
  if (!error)
    return "";
  const char *const codes[] = {"",
                               "INVALID_ARGUMENT",
                               "INVALID_PROGRAM",
                               "OUT_OF_MEMORY",
                               "DEADLINE_EXCEEDED",
                               "PEER_STOPPED",
                               "MISMATCH",
                               "PROGRAM_FAULT",
                               "SYSTEM"};
  std::string code = codes[burst_error_code(error)];
  return code + " " + take(error);
}

void expectContains(const std::string &text,
                    const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(text.find(part), text.npos) << part << " not in: " << text;
}

Device makeDevice(int64_t threads) {
  burst_device_config config = {sizeof(config), threads, 0, nullptr};
  burst_device *device;
  EXPECT_EQ(take(burst_device_create_cpu(&config, &device)), "");
  return Device(device);
}

Trace makeTrace() {
  burst_trace *trace;
  EXPECT_EQ(take(burst_trace_create(&trace)), "");
  return Trace(trace);
}

std::vector<Transport> makeTransports(burst_local_config config) {
  std::vector<burst_transport *> handles(config.num_ranks);
  EXPECT_EQ(take(burst_transport_create_local(&config, handles.data())), "");
  return {handles.begin(), handles.end()};
}

std::vector<Transport> makeTransports(int64_t ranks) {
  return makeTransports(
      burst_local_config{sizeof(burst_local_config), ranks, 0, 0, 0});
}

//===----------------------------------------------------------------------===//
// Worlds
//===----------------------------------------------------------------------===//

burst_world_config worldConfig(const char *address, int64_t ranks,
                               int64_t rank) {
  burst_world_config config = {};
  config.size = sizeof(config);
  config.num_ranks = ranks;
  config.rank = rank;
  config.address = address;
  config.timeout_seconds = 20;
  config.heartbeat_seconds = 0.05;
  config.silence_seconds = 5;
  return config;
}

void inParallel(int64_t count, const std::function<void(int64_t)> &function) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (int64_t i = 0; i < count; ++i)
    threads.emplace_back(function, i);
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<World> makeWorlds(int64_t ranks) {
  std::string address = freeAddress();
  std::vector<World> worlds(ranks);
  inParallel(ranks, [&](int64_t rank) {
    burst_world_config config = worldConfig(address.c_str(), ranks, rank);
    burst_world *world;
    EXPECT_EQ(take(burst_world_create(&config, &world)), "");
    worlds[rank].reset(world);
  });
  return worlds;
}

std::vector<Transport> makeTransports(const std::vector<World> &worlds) {
  std::vector<Transport> transports(worlds.size());
  inParallel(int64_t(worlds.size()), [&](int64_t rank) {
    burst_tcp_config config = {sizeof(config), worlds[rank].get()};
    burst_transport *transport;
    EXPECT_EQ(take(burst_transport_create_tcp(&config, &transport)), "");
    transports[rank].reset(transport);
  });
  return transports;
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

namespace {

/// What the functions of the one image find.
Body theBody;
int64_t theRanks;
std::vector<Program::Segments> theSegments;

void run(burst_rank *rank, const burst_table *table, void *const *values) {
  theBody(rank, table, values);
}

void segments(int32_t index, int64_t owner, int64_t extent,
              burst_segment *segments) {
  std::vector<burst_segment> made = theSegments[index](owner, theRanks, extent);
  std::copy(made.begin(), made.end(), segments);
}

} // namespace

Program::Program(int64_t ranks, Body body) {
  theBody = std::move(body);
  theRanks = ranks;
  image = {.size = sizeof(burst_image),
           .version = BURST_ABI_VERSION,
           .name = "test",
           .target = "any",
           .num_ranks = ranks,
           .num_parameters = 0,
           .num_arguments = 0,
           .parameters = nullptr,
           .segments = segments,
           .run = run,
           .hash = 42,
           .minimum_driver = 0,
           .num_gpu_kernels = 0,
           .gpu_kernels = nullptr,
           .features = nullptr,
           .version_major = BURST_VERSION_MAJOR,
           .version_minor = BURST_VERSION_MINOR,
           .num_groups = 0,
           .groups = nullptr};
}

Program::~Program() {
  burst_program_release(program);
  theBody = nullptr;
  theSegments.clear();
}

void Program::add(burst_parameter parameter) {
  parameters.push_back(parameter);
  theSegments.push_back(nullptr);
  ++image.num_parameters;
  image.num_arguments += !parameter.is_result;
}

burst_parameter &Program::tensor(const char *name, std::vector<int64_t> shape,
                                 int32_t type, bool isResult) {
  sizes.push_back(std::move(shape));
  add({name, BURST_TENSOR, type, int32_t(sizes.back().size()), isResult,
       sizes.back().data(), -1, 0, -1, -1, 0, 0, 0, nullptr});
  return parameters.back();
}

burst_parameter &Program::extent(const char *name) {
  add({name, BURST_EXTENT, BURST_I64, 0, 0, nullptr, -1, 0, -1, -1, 0, 0, 0,
       nullptr});
  return parameters.back();
}

void Program::shard(int32_t dim, Segments segments, int64_t extent,
                    int32_t extentParameter) {
  burst_parameter &last = parameters.back();
  last.shard_dim = dim;
  last.num_segments = int32_t(segments(0, theRanks, 0).size());
  last.extent = extent;
  last.extent_parameter = extentParameter;
  theSegments.back() = segments;
}

burst_program *Program::get() {
  if (!program) {
    image.parameters = parameters.data();
    EXPECT_EQ(
        take(burst_program_from_image(&image, nullptr, nullptr, &program)), "");
  }
  return program;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// Where the first `parts` of `count` nearly equal parts end.
static int64_t endOf(int64_t extent, int64_t count, int64_t parts) {
  return extent * parts / count;
}

std::vector<burst_segment> contiguous(int64_t owner, int64_t ranks,
                                      int64_t extent) {
  int64_t begin = endOf(extent, ranks, owner);
  return {{begin, endOf(extent, ranks, owner + 1) - begin, 1, 1}};
}

std::vector<burst_segment> zigzag(int64_t owner, int64_t ranks,
                                  int64_t extent) {
  return {contiguous(owner, 2 * ranks, extent)[0],
          contiguous(2 * ranks - 1 - owner, 2 * ranks, extent)[0]};
}

std::vector<burst_segment> striped(int64_t owner, int64_t ranks,
                                   int64_t extent) {
  return {{owner, std::max<int64_t>(0, (extent - owner + ranks - 1) / ranks),
           ranks, 1}};
}

std::vector<burst_segment> blocked(int64_t owner, int64_t ranks,
                                   int64_t extent) {
  int64_t block = 3, round = ranks * block;
  int64_t rest = std::clamp<int64_t>(extent % round - owner * block, 0, block);
  return {{owner * block, extent / round * block + rest, round, block}};
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

Ranks::Ranks() {
  local.size = sizeof(local);
  config.size = sizeof(config);
  config.deadline_seconds = 60;
}

void Ranks::run(int64_t ranks, const Body &body) {
  Program program(ranks, body);
  Device device = makeDevice(threads);
  local.num_ranks = ranks;
  std::vector<World> worlds = tcp ? makeWorlds(ranks) : std::vector<World>();
  std::vector<Transport> transports =
      tcp ? makeTransports(worlds) : makeTransports(local);
  errors.assign(ranks, "");
  counters.assign(ranks, burst_counters{});
  burst_program *shared = program.get();
  inParallel(ranks, [&](int64_t rank) {
    burst_run_config mine = config;
    mine.rank = rank;
    mine.device = device.get();
    mine.transport = transports[rank].get();
    counters[rank].size = sizeof(burst_counters);
    errors[rank] =
        takeCoded(burst_run(shared, &mine, nullptr, 0, &counters[rank]));
  });
  // Each by itself, as processes would.
  inParallel(ranks, [&](int64_t rank) { transports[rank].reset(); });
}

void Ranks::expectSuccess() const {
  for (size_t rank = 0; rank < errors.size(); ++rank)
    EXPECT_EQ(errors[rank], "") << "of rank " << rank;
}

burst_piece pieceOf(float *data, int64_t count) {
  return {data, sizeof(float), {1, 1, 1, count}, {0, 0, 0, 1}};
}

burst_tensor tensorOf(void *data, const std::vector<int64_t> &sizes,
                      int32_t type) {
  burst_tensor tensor = {};
  tensor.data = data;
  tensor.type = type;
  tensor.rank = int32_t(sizes.size());
  int64_t stride = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    tensor.sizes[d] = sizes[d];
    tensor.strides[d] = stride;
    stride *= sizes[d];
  }
  return tensor;
}

} // namespace burst::test
