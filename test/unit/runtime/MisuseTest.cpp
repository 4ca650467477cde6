//===- MisuseTest.cpp - Calls that are wrong ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a host does wrong is an error that names the argument, or is ignored
// where a function returns no error. Nothing ends the host, but for handles
// that are none, which end a debug build with a message.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

#include <climits>
#include <future>
#include <thread>

using namespace burst::test;

namespace {

constexpr int64_t absurd = INT64_C(1) << 62;

/// A program of a rank that copies 4 floats.
struct Misuse : testing::Test {
  Program copy{1, [](burst_rank *, const burst_table *, void *const *) {}};
  Device device = makeDevice(1);
  float in[4] = {}, out[4] = {};
  std::vector<burst_tensor> values = {tensorOf(in, {4}), tensorOf(out, {4})};
  burst_run_config config = {};
  burst_run_all_config all = {};

  Misuse() {
    copy.tensor("in", {4});
    copy.shard(0, contiguous, 4);
    copy.tensor("out", {4}, BURST_F32, /*isResult=*/true);
    copy.shard(0, contiguous, 4);
    config.size = sizeof(config);
    config.device = device.get();
    all.size = sizeof(all);
    all.device = device.get();
  }
  std::string run() {
    return take(burst_run(copy.get(), &config, values.data(),
                          int64_t(values.size()), nullptr));
  }
};

/// Of a function of the API, that `argument` was null.
void expectNull(burst_error *error, const std::string &function,
                const std::string &argument) {
  EXPECT_EQ(takeCoded(error),
            "INVALID_ARGUMENT " + function + ": " + argument + ": null");
}
#define EXPECT_NULL(argument, function, ...)                                   \
  expectNull(function(__VA_ARGS__), #function, argument)

//===----------------------------------------------------------------------===//
// NULL
//===----------------------------------------------------------------------===//

TEST_F(Misuse, NullOfMakers) {
  EXPECT_NULL("device", burst_device_create_cpu, nullptr, nullptr);
  EXPECT_NULL("device", burst_device_create_cuda, nullptr, nullptr);
  EXPECT_NULL("stream", burst_stream_create, device.get(), nullptr);
  EXPECT_NULL("stream", burst_stream_create_cuda, device.get(), nullptr,
              nullptr);
  burst_stream *stream;
  EXPECT_NULL("device", burst_stream_create, nullptr, &stream);
  EXPECT_NULL("device", burst_stream_create_cuda, nullptr, nullptr, &stream);
  EXPECT_NULL("stream", burst_stream_synchronize, nullptr);
  burst_local_config local = {sizeof(local), 1, 0, 0, 0};
  EXPECT_NULL("handles", burst_transport_create_local, &local, nullptr);
  EXPECT_NULL("transport", burst_transport_create_tcp, nullptr, nullptr);
  EXPECT_NULL("transport", burst_transport_create_nccl, nullptr, nullptr);
  EXPECT_NULL("transport", burst_transport_create_ipc, nullptr, nullptr);
  EXPECT_NULL("world", burst_world_create, nullptr, nullptr);
  EXPECT_NULL("trace", burst_trace_create, nullptr);
  EXPECT_NULL("path", burst_trace_write, makeTrace().get(), nullptr);
  EXPECT_NULL("trace", burst_trace_write, nullptr, "x");
}

TEST_F(Misuse, NullOfWorlds) {
  int64_t number = 0;
  EXPECT_NULL("world", burst_world_barrier, nullptr, 1);
  EXPECT_NULL("world", burst_world_gather, nullptr, &number, 8, &number, 1);
  std::vector<World> worlds = makeWorlds(1);
  EXPECT_NULL("mine", burst_world_gather, worlds[0].get(), nullptr, 8, &number,
              1);
  EXPECT_NULL("all", burst_world_gather, worlds[0].get(), &number, 8, nullptr,
              1);
  expectContains(
      take(burst_world_gather(worlds[0].get(), &number, SIZE_MAX, &number, 1)),
      {"18446744073709551615 bytes, wanted at most"});
  EXPECT_EQ(take(burst_world_gather(worlds[0].get(), nullptr, 0, nullptr, 1)),
            "");
}

TEST_F(Misuse, NullOfPrograms) {
  burst_program *program = copy.get(), *made;
  int64_t size;
  burst_segment segment;
  EXPECT_NULL("program", burst_program_from_image, &copy.image, nullptr,
              nullptr, nullptr);
  EXPECT_EQ(take(burst_program_from_image(nullptr, nullptr, nullptr, &made)),
            "no image");
  EXPECT_NULL("program", burst_program_load, "x", nullptr);
  EXPECT_NULL("path", burst_program_load, nullptr, &made);
  EXPECT_NULL("program", burst_program_local_size, nullptr, 0, 0, 4, &size);
  EXPECT_NULL("size", burst_program_local_size, program, 0, 0, 4, nullptr);
  EXPECT_NULL("program", burst_program_segments, nullptr, 0, 0, 4, 1, &segment);
  EXPECT_NULL("segments", burst_program_segments, program, 0, 0, 4, 1, nullptr);
  EXPECT_NULL("program", burst_program_positions, nullptr, 0, 0, 4, 1, &size);
  EXPECT_NULL("positions", burst_program_positions, program, 0, 0, 4, 4,
              nullptr);
}

TEST_F(Misuse, NullOfRuns) {
  burst_program *program = copy.get();
  const burst_tensor *tensor = values.data();
  EXPECT_NULL("program", burst_run, nullptr, &config, tensor, 2, nullptr);
  EXPECT_NULL("values", burst_run, program, &config, nullptr, 2, nullptr);
  EXPECT_NULL("program", burst_run_all, nullptr, &all, tensor, 2, nullptr);
  EXPECT_NULL("globals", burst_run_all, program, &all, nullptr, 2, nullptr);
  EXPECT_NULL("program", burst_shard, nullptr, 0, 0, tensor, tensor);
  EXPECT_NULL("global", burst_shard, program, 0, 0, nullptr, tensor);
  EXPECT_NULL("local", burst_shard, program, 0, 0, tensor, nullptr);
  EXPECT_NULL("program", burst_gather, nullptr, 0, 0, tensor, tensor);
  EXPECT_NULL("local", burst_gather, program, 0, 0, nullptr, tensor);
  EXPECT_NULL("global", burst_gather, program, 0, 0, tensor, nullptr);
  EXPECT_EQ(take(burst_run(program, nullptr, tensor, 2, nullptr)),
            "burst_run: no device, no stream");
  EXPECT_EQ(take(burst_run_all(program, nullptr, tensor, 2, nullptr)),
            "burst_run_all_config: null");
}

TEST_F(Misuse, NullWhereNoErrorIsReturned) {
  EXPECT_STREQ(burst_error_message(nullptr), "");
  EXPECT_STREQ(burst_error_location(nullptr), "");
  EXPECT_EQ(int(burst_error_code(nullptr)), 0);
  burst_error_destroy(nullptr);
  EXPECT_EQ(burst_device_threads(nullptr), 0);
  burst_device_trim(nullptr);
  burst_device_destroy(nullptr);
  burst_stream_destroy(nullptr);
  burst_transport_stop(nullptr, "reason");
  burst_transport_destroy(nullptr);
  EXPECT_EQ(burst_world_rank(nullptr), 0);
  EXPECT_EQ(burst_world_num_ranks(nullptr), 0);
  EXPECT_EQ(burst_world_local_rank(nullptr), 0);
  burst_world_destroy(nullptr);
  burst_program_retain(nullptr);
  burst_program_release(nullptr);
  EXPECT_STREQ(burst_program_name(nullptr), "");
  EXPECT_STREQ(burst_program_target(nullptr), "");
  EXPECT_EQ(burst_program_num_ranks(nullptr), 0);
  EXPECT_EQ(burst_program_is_gpu(nullptr), 0);
  EXPECT_EQ(burst_program_num_parameters(nullptr), 0);
  EXPECT_EQ(burst_program_num_arguments(nullptr), 0);
  EXPECT_EQ(burst_program_parameter(nullptr, 0), nullptr);
  burst_trace_destroy(nullptr);
}

TEST_F(Misuse, StopsWithoutAReason) {
  std::vector<Transport> transports = makeTransports(2);
  burst_transport_stop(transports[1].get(), nullptr);
  Program receives(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        float data;
        burst_piece piece = pieceOf(&data, 1);
        table->wait(rank, shift(table, rank, 0, 0, 0, nullptr, 1, 1, &piece));
      });
  config.transport = transports[0].get();
  expectContains(take(burst_run(receives.get(), &config, nullptr, 0, nullptr)),
                 {"rank 1 stopped", "no reason was given"});
}

//===----------------------------------------------------------------------===//
// Numbers without sense
//===----------------------------------------------------------------------===//

TEST_F(Misuse, AbsurdNumbers) {
  burst_program *program = copy.get();
  int64_t number = 0;
  for (int64_t count : {INT64_MIN, INT64_C(-1), absurd, INT64_MAX}) {
    SCOPED_TRACE(count);
    expectContains(
        take(burst_run(program, &config, values.data(), count, nullptr)),
        {"values, wanted 2"});
    expectContains(
        take(burst_run_all(program, &all, values.data(), count, nullptr)),
        {"values, wanted 2"});
    expectContains(
        take(burst_program_local_size(program, count, 0, 4, &number)),
        {"parameter", "wanted 0 to 1"});
    expectContains(
        take(burst_program_local_size(program, 0, count, 4, &number)),
        {"rank", "wanted 0 to 0"});
    expectContains(
        take(burst_program_local_size(program, 0, 0, count, &number)),
        {"extent", "wanted"});
    expectContains(
        take(burst_program_positions(program, 0, 0, 4, count, &number)),
        {"positions, wanted 4"});
    EXPECT_EQ(burst_program_parameter(program, count), nullptr);
    burst_local_config local = {sizeof(local), count, 0, 0, 0};
    burst_transport *handles[1];
    expectContains(take(burst_transport_create_local(&local, handles)),
                   {"ranks, wanted 1 to 65536"});
    burst_device_config threads = {sizeof(threads), count, 0, nullptr};
    burst_device *made;
    expectContains(take(burst_device_create_cpu(&threads, &made)),
                   {"threads, wanted 0 to 65536"});
  }
}

TEST_F(Misuse, AbsurdTensors) {
  EXPECT_EQ(run(), "");
  for (int64_t number : {INT64_MIN, INT64_C(-1), absurd, INT64_MAX}) {
    SCOPED_TRACE(number);
    for (burst_tensor &tensor : values) {
      burst_tensor before = tensor;
      tensor.sizes[0] = number;
      EXPECT_NE(run(), "");
      EXPECT_NE(take(burst_shard(copy.get(), 0, 0, &tensor, &tensor)), "");
      tensor = before;
      tensor.strides[0] = number;
      EXPECT_NE(run(), "");
      EXPECT_NE(take(burst_shard(copy.get(), 0, 0, &tensor, &tensor)), "");
      tensor = before;
      tensor.rank = int32_t(number);
      EXPECT_NE(run(), "");
      tensor = before;
      tensor.type = int32_t(number);
      EXPECT_NE(run(), "");
      tensor = before;
    }
  }
  EXPECT_EQ(run(), "");
}

/// Of so many ranks there is no transport.
TEST_F(Misuse, ProgramsOfAbsurdlyManyRanks) {
  for (int64_t ranks : {INT64_C(1) << 60, INT64_C(1) << 33, INT64_MAX}) {
    copy.image.num_ranks = ranks;
    copy.image.parameters = copy.parameters.data();
    burst_program *program;
    ASSERT_EQ(
        take(burst_program_from_image(&copy.image, nullptr, nullptr, &program)),
        "");
    EXPECT_NE(take(burst_run_all(program, &all, values.data(), 2, nullptr)),
              "");
    burst_program_release(program);
  }
}

//===----------------------------------------------------------------------===//
// Two runs on one transport
//===----------------------------------------------------------------------===//

/// The second is refused and the first goes on.
TEST_F(Misuse, TwoRunsOnOneTransport) {
  std::promise<void> entered, leave;
  std::shared_future<void> left = leave.get_future().share();
  Program waits(1, [&](burst_rank *, const burst_table *, void *const *) {
    entered.set_value();
    left.wait();
  });
  burst_program *program = waits.get();
  std::vector<Transport> transports = makeTransports(1);
  config.transport = transports[0].get();
  std::string first, second;
  std::thread other(
      [&] { first = take(burst_run(program, &config, nullptr, 0, nullptr)); });
  entered.get_future().wait();
  second = take(burst_run(program, &config, nullptr, 0, nullptr));
  leave.set_value();
  other.join();
  EXPECT_EQ(first, "");
  EXPECT_EQ(second, "test: the transport of rank 0 is in use by another run");
}

//===----------------------------------------------------------------------===//
// Handles that are none
//===----------------------------------------------------------------------===//

#ifndef NDEBUG
struct MisuseDeathTest : Misuse {
  MisuseDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(MisuseDeathTest, DestroyedTwice) {
  EXPECT_DEATH(
      {
        burst_error *error = burst_trace_create(nullptr);
        burst_error_destroy(error);
        burst_error_destroy(error);
      },
      "burst_error_destroy: the error was destroyed before");
  EXPECT_DEATH(
      {
        burst_device *raw = device.release();
        burst_device_destroy(raw);
        burst_device_destroy(raw);
      },
      "burst_device_destroy: the device was destroyed before");
  EXPECT_DEATH(
      {
        burst_program *program = copy.get();
        burst_program_release(program);
        burst_program_release(program);
      },
      "burst_program_release: the program was destroyed before");
  EXPECT_DEATH(
      {
        burst_stream *stream;
        burst_stream_create(device.get(), &stream);
        burst_stream_destroy(stream);
        burst_stream_destroy(stream);
      },
      "burst_stream_destroy: the stream was destroyed before");
  EXPECT_DEATH(
      {
        burst_transport *raw = makeTransports(1)[0].release();
        burst_transport_destroy(raw);
        burst_transport_destroy(raw);
      },
      "burst_transport_destroy: the transport was destroyed before");
  EXPECT_DEATH(
      {
        burst_trace *raw = makeTrace().release();
        burst_trace_destroy(raw);
        burst_trace_destroy(raw);
      },
      "burst_trace_destroy: the trace was destroyed before");
  EXPECT_DEATH(
      {
        burst_world *raw = makeWorlds(1)[0].release();
        burst_world_destroy(raw);
        burst_world_destroy(raw);
      },
      "burst_world_destroy: the world was destroyed before");
}

TEST_F(MisuseDeathTest, UsedWhenDestroyed) {
  EXPECT_DEATH(
      {
        burst_program *program = copy.get();
        burst_program_release(program);
        burst_run(program, &config, values.data(), 2, nullptr);
      },
      "burst_run: the program was destroyed before");
  EXPECT_DEATH(
      {
        copy.get();
        burst_device_destroy(device.release());
        run();
      },
      "the device was destroyed before");
  EXPECT_DEATH(
      {
        burst_error *error = burst_trace_create(nullptr);
        burst_error_destroy(error);
        burst_error_message(error);
      },
      "burst_error_message: the error was destroyed before");
}

TEST_F(MisuseDeathTest, OfAnotherKind) {
  EXPECT_DEATH(
      burst_program_name(reinterpret_cast<burst_program *>(device.get())),
      "burst_program_name: found a handle of kind device, wanted "
      "program");
  EXPECT_DEATH(burst_program_name(reinterpret_cast<burst_program *>(in)),
               "burst_program_name: what was given is no program");
}
#endif

} // namespace
