//===- ExhaustTest.cpp - Entries of the runtime without memory ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Exhaust.h"
#include "Harness.h"

#include <filesystem>
#include <unistd.h>

using namespace burst::test;

namespace {

TEST(Exhaust, Devices) {
  const int64_t cpus[] = {0};
  exhaust([&] {
    burst_device_config config = {sizeof(config), 3, 1, cpus};
    burst_device *device = nullptr;
    burst_error *error = burst_device_create_cpu(&config, &device);
    burst_device_trim(device);
    burst_device_destroy(device);
    return error;
  });
}

TEST(Exhaust, LocalTransports) {
  exhaust([] {
    burst_local_config config = {sizeof(config), 3, 0, 1e9, 1};
    burst_transport *handles[3] = {};
    burst_error *error = burst_transport_create_local(&config, handles);
    burst_transport_stop(handles[1], "a reason");
    for (burst_transport *handle : handles)
      burst_transport_destroy(handle);
    return error;
  });
}

TEST(Exhaust, LoadedPrograms) {
  exhaust([] {
    burst_program *program = nullptr;
    burst_error *error = burst_program_load(TEST_PROGRAM, &program);
    burst_program_release(program);
    return error;
  });
}

TEST(Exhaust, Shards) {
  Program program(2, nullptr);
  program.tensor("x", {-1, 2});
  program.shard(0, zigzag, 8);
  burst_program *made = program.get();
  float global[16] = {}, local[8] = {};
  burst_tensor globalTensor = tensorOf(global, {8, 2}),
               localTensor = tensorOf(local, {4, 2});
  exhaust([&] {
    int64_t size, positions[4];
    burst_segment segments[2];
    burst_error *error = burst_program_local_size(made, 0, 1, 8, &size);
    if (!error)
      error = burst_program_segments(made, 0, 1, 8, 2, segments);
    if (!error)
      error = burst_program_positions(made, 0, 1, 8, 4, positions);
    if (!error)
      error = burst_shard(made, 0, 1, &globalTensor, &localTensor);
    if (!error)
      error = burst_gather(made, 0, 1, &localTensor, &globalTensor);
    return error;
  });
}

void nothing(const void *, int64_t) {}
constexpr burst_kernel idle = {"idle", nothing};

/// Allocates of each kind, sorts, launches in an order, sends round a ring.
void useAll(burst_rank *rank, const burst_table *table, int64_t ranks) {
  auto *data =
      static_cast<float *>(table->allocate(rank, 64, BURST_MEMORY_SLICE));
  void *large = table->allocate(rank, 3 << 20, BURST_MEMORY_STATE);
  const int64_t costs[] = {1, 3, 2};
  int32_t order[3];
  table->sort(rank, costs, 3, order);
  table->launch(rank, &idle, nullptr, 3, order, 0, nullptr);
  if (ranks > 1) {
    int64_t me = table->index(rank);
    burst_piece send = pieceOf(data, 4), receive = pieceOf(data + 4, 4);
    int64_t token = shift(table, rank, 0, (me + 1) % ranks, 1, &send,
                          (me + ranks - 1) % ranks, 1, &receive);
    table->wait(rank, token);
  }
  table->release(rank, large);
}

TEST(Exhaust, Runs) {
  Program program(1, [](burst_rank *rank, const burst_table *table,
                        void *const *) { useAll(rank, table, 1); });
  burst_program *made = program.get();
  Device device = makeDevice(1);
  exhaust([&] {
    burst_run_config config = {};
    config.size = sizeof(config);
    config.device = device.get();
    config.checked = 1;
    burst_error *error = burst_run(made, &config, nullptr, 0, nullptr);
    burst_device_trim(device.get());
    return error;
  });
}

TEST(Exhaust, RunsInStreams) {
  Program program(1, [](burst_rank *rank, const burst_table *table,
                        void *const *) { useAll(rank, table, 1); });
  burst_program *made = program.get();
  Device device = makeDevice(1);
  exhaust([&] {
    burst_stream *stream = nullptr;
    burst_error *error = burst_stream_create(device.get(), &stream);
    burst_run_config config = {};
    config.size = sizeof(config);
    config.stream = stream;
    if (!error)
      error = burst_run(made, &config, nullptr, 0, nullptr);
    if (!error)
      error = burst_stream_synchronize(stream);
    burst_stream_destroy(stream);
    burst_device_trim(device.get());
    return error;
  });
}

TEST(Exhaust, RunsOfAllRanks) {
  Program program(2, [](burst_rank *rank, const burst_table *table,
                        void *const *) { useAll(rank, table, 2); });
  program.tensor("in", {-1});
  program.shard(0, contiguous, 8);
  program.tensor("out", {-1}, BURST_F32, /*isResult=*/true);
  program.shard(0, contiguous, 8);
  burst_program *made = program.get();
  Device device = makeDevice(1);
  float in[8] = {}, out[8] = {};
  burst_tensor globals[] = {tensorOf(in, {8}), tensorOf(out, {8})};
  exhaust([&] {
    burst_run_all_config config = {};
    config.size = sizeof(config);
    config.device = device.get();
    config.deadline_seconds = 60;
    config.checked = 1;
    burst_error *error = burst_run_all(made, &config, globals, 2, nullptr);
    burst_device_trim(device.get());
    return error;
  });
}

TEST(Exhaust, Traces) {
  Program program(1, [](burst_rank *rank, const burst_table *table,
                        void *const *) { useAll(rank, table, 1); });
  burst_program *made = program.get();
  Device device = makeDevice(1);
  std::string folder = testing::TempDir() + "burst-trace-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::string path = folder + "/trace.json";
  exhaust([&] {
    burst_trace *trace = nullptr;
    burst_error *error = burst_trace_create(&trace);
    burst_run_config config = {};
    config.size = sizeof(config);
    config.device = device.get();
    config.trace = trace;
    if (!error)
      error = burst_run(made, &config, nullptr, 0, nullptr);
    if (!error)
      error = burst_trace_write(trace, path.c_str());
    burst_trace_destroy(trace);
    burst_device_trim(device.get());
    return error;
  });
  // Nothing beside the last that was written.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder),
                          std::filesystem::directory_iterator()),
            1);
  std::filesystem::remove_all(folder);
}

TEST(Exhaust, WorldsAndTheirTransports) {
  Program program(1, [](burst_rank *rank, const burst_table *table,
                        void *const *) { useAll(rank, table, 1); });
  burst_program *made = program.get();
  Device device = makeDevice(1);
  exhaust([&] {
    std::string address = freeAddress();
    burst_world_config where = worldConfig(address.c_str(), 1, 0);
    burst_world *world = nullptr;
    burst_transport *transport = nullptr;
    burst_error *error = burst_world_create(&where, &world);
    burst_tcp_config how = {sizeof(how), world};
    if (!error)
      error = burst_world_barrier(world, 20);
    if (!error)
      error = burst_transport_create_tcp(&how, &transport);
    burst_run_config config = {};
    config.size = sizeof(config);
    config.device = device.get();
    config.transport = transport;
    if (!error)
      error = burst_run(made, &config, nullptr, 0, nullptr);
    burst_transport_destroy(transport);
    burst_world_destroy(world);
    burst_device_trim(device.get());
    return error;
  });
}

} // namespace
