//===- RunTest.cpp - Tests of what burst_run checks and tells -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <array>
#include <cmath>
#include <numeric>

using namespace burst::test;

namespace {

/// MLIR's descriptor of a memref of 3 dimensions.
struct MemRef3 {
  float *base, *data;
  int64_t offset, sizes[3], strides[3];
};

/// q[2][s][4], s of them in all and sharded in stripes; the extent s; a scalar;
/// and o like q.
class Run : public testing::Test {
protected:
  MemRef3 seen = {};
  int64_t seenExtent = 0;
  float seenScalar = 0;
  int runs = 0;
  Program program{
      2, [this](burst_rank *rank, const burst_table *, void *const *values) {
        ++runs;
        seen = *static_cast<MemRef3 *>(values[0]);
        seenExtent = *static_cast<int64_t *>(values[1]);
        seenScalar = *static_cast<float *>(values[2]);
        static_cast<MemRef3 *>(values[3])->data[0] = 7;
      }};
  Device device = makeDevice(1);
  std::vector<Transport> transports = makeTransports(2);
  burst_run_config config = {};

  int64_t extent = 5;
  float scalar = 0.5f;
  std::array<float, 64> q = {}, o = {};
  std::array<burst_tensor, 4> values;

  void SetUp() override {
    program.parameters.reserve(4);
    program.tensor("q", {2, -1, 4});
    program.shard(1, striped, -1, 1);
    program.extent("s");
    program.tensor("scale", {}).kind = BURST_SCALAR;
    program.tensor("o", {2, -1, 4}, BURST_F32, true);
    program.shard(1, striped, -1, 1);
    config.size = sizeof(config);
    config.rank = 1;
    config.device = device.get();
    config.transport = transports[1].get();
    values = {tensorOf(q.data(), {2, 2, 4}), tensorOf(&extent, {}, BURST_I64),
              tensorOf(&scalar, {}), tensorOf(o.data(), {2, 2, 4})};
  }

  std::string run(burst_counters *counters = nullptr) {
    return takeCoded(
        burst_run(program.get(), &config, values.data(), 4, counters));
  }

  /// The error after a change, which is then undone; with transports anew,
  /// because errors stop them.
  template <typename T>
  std::string with(T &place, T value) {
    std::swap(place, value);
    std::string error = run();
    std::swap(place, value);
    transports = makeTransports(2);
    config.transport = transports[1].get();
    return error;
  }
};

TEST_F(Run, HandsOverDescriptors) {
  values[0].strides[0] = 20;
  values[0].strides[1] = 6;
  EXPECT_EQ(run(), "");
  EXPECT_EQ(seen.base, q.data());
  EXPECT_EQ(seen.data, q.data());
  EXPECT_EQ(seen.offset, 0);
  const int64_t sizes[] = {2, 2, 4}, strides[] = {20, 6, 1};
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(seen.sizes[d], sizes[d]);
    EXPECT_EQ(seen.strides[d], strides[d]);
  }
  EXPECT_EQ(seenExtent, 5);
  EXPECT_EQ(seenScalar, 0.5f);
  EXPECT_EQ(o[0], 7.f);
}

TEST_F(Run, ChecksTensors) {
  burst_tensor &q = values[0], &o = values[3];
  std::string invalid = "INVALID_ARGUMENT rank 1: argument q: ";
  EXPECT_EQ(with<int32_t>(q.type, BURST_BF16),
            invalid + "type bf16 (3), wanted f32");
  EXPECT_EQ(with<int32_t>(q.type, 77),
            invalid + "type unknown (77), wanted f32");
  EXPECT_EQ(with<int32_t>(q.rank, 2), invalid + "2 dimensions, wanted 3");
  EXPECT_EQ(with<int64_t>(q.sizes[0], 3),
            invalid + "size 3 in dimension 0, wanted 2");
  EXPECT_EQ(with<int64_t>(q.sizes[1], 3),
            invalid + "size 3 in dimension 1, wanted 2");
  EXPECT_EQ(with<int64_t>(q.sizes[2], -1),
            invalid + "size -1 in dimension 2, wanted 0 or more");
  EXPECT_EQ(with<int64_t>(q.strides[0], -8),
            invalid + "stride -8 in dimension 0, wanted 0 or more");
  EXPECT_EQ(with<int64_t>(q.strides[2], 2),
            invalid + "stride 2 in dimension 2, wanted 1");
  EXPECT_EQ(with<void *>(q.data, nullptr),
            invalid + "no data, wanted 64 bytes");
  expectContains(with<void *>(q.data, static_cast<char *>(q.data) + 2),
                 {invalid + "data at 0x", "wanted a multiple of 4"});
  expectContains(with<int64_t>(q.sizes[0], INT64_MAX), {invalid + "more than"});
  expectContains(with<int64_t>(q.strides[0], INT64_MAX),
                 {invalid + "more than 9223372036854775807 bytes"});
  EXPECT_EQ(
      with<int64_t>(o.strides[0], 7),
      "INVALID_ARGUMENT rank 1: result o: stride 7 in dimension 0, wanted "
      "at least 8: elements overlap");
  EXPECT_EQ(
      with<int64_t>(o.strides[1], 0),
      "INVALID_ARGUMENT rank 1: result o: stride 0 in dimension 1, wanted "
      "at least 1: elements overlap");
  EXPECT_EQ(with<int32_t>(values[1].type, BURST_I32),
            "INVALID_ARGUMENT rank 1: argument s: type i32 (6), wanted i64");
  EXPECT_EQ(with<int64_t>(extent, 9),
            invalid + "size 2 in dimension 1, wanted 4");
  expectContains(with<int64_t>(extent, -1),
                 {"q: extent -1, wanted 0 to 2305843009213693951"});
  EXPECT_EQ(runs, 0);
  // Broadcast arguments are fine.
  EXPECT_EQ(with<int64_t>(q.strides[0], 0), "");
}

TEST_F(Run, RefusesOverlaps) {
  EXPECT_EQ(with<void *>(values[3].data, q.data() + 15),
            "INVALID_ARGUMENT rank 1: result o overlaps q");
  EXPECT_EQ(with<void *>(values[3].data, q.data() + 16), "");
  // Interleaved rows do not overlap.
  for (int i : {0, 3}) {
    values[i].strides[0] = 16;
    values[i].strides[1] = 8;
  }
  EXPECT_EQ(with<void *>(values[3].data, q.data() + 4), "");
  expectContains(with<void *>(values[3].data, q.data() + 3), {"overlaps q"});
}

TEST_F(Run, AcceptsEmptyShards) {
  // Of one position, rank 1 holds nothing.
  extent = 1;
  for (int i : {0, 3}) {
    values[i].sizes[1] = 0;
    values[i].data = nullptr;
  }
  Program idle(2, [](burst_rank *, const burst_table *, void *const *) {});
  EXPECT_EQ(run(), "");
}

TEST_F(Run, AcceptsAnySizesBesideZero) {
  Program idle(1, [](burst_rank *, const burst_table *, void *const *) {});
  idle.parameters.reserve(1);
  idle.tensor("q", {-1, -1, 4});
  config.rank = 0;
  config.transport = nullptr;
  burst_tensor nothing = tensorOf(nullptr, {INT64_MAX, 0, 4});
  burst_counters counters = {};
  counters.size = sizeof(counters);
  EXPECT_EQ(takeCoded(burst_run(idle.get(), &config, &nothing, 1, &counters)),
            "");
  EXPECT_EQ(counters.tensor_bytes, 0);
}

TEST_F(Run, ChecksItsConfig) {
  EXPECT_EQ(with<burst_device *>(config.device, nullptr),
            "INVALID_ARGUMENT burst_run: no device, no stream");
  EXPECT_EQ(with<int64_t>(config.rank, 2),
            "INVALID_ARGUMENT test: rank 2, wanted 0 to 1");
  EXPECT_EQ(with<int64_t>(config.rank, -1),
            "INVALID_ARGUMENT test: rank -1, wanted 0 to 1");
  EXPECT_EQ(
      with<int64_t>(config.rank, 0),
      "INVALID_ARGUMENT test: the transport of rank 1, wanted that of rank 0");
  EXPECT_EQ(with<burst_transport *>(config.transport, nullptr),
            "INVALID_ARGUMENT test: no transport, wanted one of 2 ranks");
  std::vector<Transport> three = makeTransports(3);
  EXPECT_EQ(with(config.transport, three[1].get()),
            "INVALID_ARGUMENT test: a transport of 3 ranks, wanted 2");
  EXPECT_EQ(with(config.deadline_seconds, -1.0),
            "INVALID_ARGUMENT burst_run: deadline_seconds: -1, wanted a number "
            "from 0");
  expectContains(with(config.deadline_seconds, std::nan("")), {"nan, wanted"});
  expectContains(with<size_t>(config.size, 4), {"burst_run_config: size 4"});
  expectContains(with<size_t>(config.size, 1000),
                 {"burst_run_config: size 1000"});
  expectContains(with<size_t>(config.size, 8), {"no device, no stream"});
  EXPECT_EQ(
      takeCoded(burst_run(program.get(), &config, values.data(), 3, nullptr)),
      "INVALID_ARGUMENT test: 3 values, wanted 4");
  burst_counters counters = {};
  expectContains(run(&counters), {"burst_counters: size 0"});
  EXPECT_EQ(runs, 0);
}

TEST_F(Run, CountsTensorsAndFillsWhatTheCallerKnows) {
  burst_counters counters = {};
  counters.size = sizeof(counters);
  EXPECT_EQ(run(&counters), "");
  EXPECT_EQ(counters.tensor_bytes, 2 * 64);
  EXPECT_EQ(counters.peak_total, 2 * 64);
  counters = {};
  counters.size = offsetof(burst_counters, peak_total);
  counters.peak_total = -3;
  EXPECT_EQ(run(&counters), "");
  EXPECT_EQ(counters.size, offsetof(burst_counters, peak_total));
  EXPECT_EQ(counters.tensor_bytes, 2 * 64);
  EXPECT_EQ(counters.peak_total, -3);
}

TEST_F(Run, PoisonsResultsIfChecked) {
  config.checked = 1;
  EXPECT_EQ(run(), "");
  EXPECT_EQ(o[0], 7.f);
  for (int i = 1; i < 16; ++i)
    EXPECT_TRUE(std::isnan(o[i]));
  EXPECT_EQ(o[16], 0.f);
}

TEST_F(Run, NeedsItsTransportForItself) {
  std::string second;
  Program nested(2, [&](burst_rank *, const burst_table *, void *const *) {
    second =
        takeCoded(burst_run(program.get(), &config, values.data(), 4, nullptr));
  });
  EXPECT_EQ(run(), "");
  EXPECT_EQ(second, "INVALID_ARGUMENT test: the transport of rank 1 is in use "
                    "by another run");
}

TEST_F(Run, TellsPeersOfWrongArguments) {
  extent = 6;
  EXPECT_NE(run(), "");
  Program waiting(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        float cell;
        burst_piece piece = pieceOf(&cell, 1);
        table->wait(rank, shift(table, rank, 0, 0, 0, nullptr, 1, 1, &piece));
      });
  config.rank = 0;
  config.transport = transports[0].get();
  EXPECT_EQ(takeCoded(burst_run(waiting.get(), &config, nullptr, 0, nullptr)),
            "PEER_STOPPED rank 0, hop 1: receive from rank 1: rank 1 stopped: "
            "rank 1: argument q: size 2 in dimension 1, wanted 3");
}

TEST(Types, HaveSizes) {
  const int64_t bytes[] = {0, 8, 4, 2, 2, 8, 4, 2, 1, 1, 0};
  for (int32_t type = 0; type <= 10; ++type)
    EXPECT_EQ(burst_type_bytes(type), bytes[type]);
  EXPECT_EQ(burst_type_bytes(-1), 0);
}

} // namespace
