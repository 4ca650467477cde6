//===- Ring.h - Ranks on GPUs that hand tensors round -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_STANDINS_RING_H
#define BURST_TEST_STANDINS_RING_H

#include "test/standins/Harness.h"
#include "test/unit/runtime/Harness.h"

#include <numeric>

namespace burst::standins {

inline constexpr int64_t ranks = 4, batch = 3, rows = 5, columns = 7, gap = 2;
inline constexpr int64_t count = batch * rows * columns;

/// MLIR's descriptor of a memref of 3 dimensions.
struct MemRef3 {
  char *base, *data;
  int64_t offset, sizes[3], strides[3];
};

inline burst_piece blockOf(char *data, int64_t outer) {
  return {data, 4, {1, batch, rows, columns}, {0, outer, columns, 1}};
}

/// Hands `in` all the way round but one: `out` is that of the next rank. In
/// between, odd hops leave gaps.
inline void ringOf(int64_t ranks, burst_rank *rank, const burst_table *table,
                   void *const *values) {
  int64_t r = table->index(rank);
  const auto *in = static_cast<const MemRef3 *>(values[0]),
             *out = static_cast<const MemRef3 *>(values[1]);
  int64_t dense = rows * columns, gapped = (rows + gap) * columns;
  burst_piece now = blockOf(in->data, in->strides[0]);
  for (int64_t hop = 1; hop < ranks; ++hop) {
    burst_piece next = blockOf(out->data, dense);
    if (hop + 1 < ranks)
      next = blockOf(static_cast<char *>(table->allocate(
                         rank, 4 * batch * gapped, BURST_MEMORY_SLICE)),
                     hop % 2 ? gapped : dense);
    table->wait(rank, test::shift(table, rank, 0, (r + 1) % ranks, 1, &now,
                                  (r + ranks - 1) % ranks, 1, &next));
    now = next;
  }
}

inline void ring(burst_rank *rank, const burst_table *table,
                 void *const *values) {
  ringOf(ranks, rank, table, values);
}

/// The same with one start: all ranks send `in` to all others. Half of what is
/// received has gaps.
inline void gatherAs(int64_t pattern, burst_rank *rank,
                     const burst_table *table, void *const *values) {
  int64_t r = table->index(rank);
  const auto *in = static_cast<const MemRef3 *>(values[0]),
             *out = static_cast<const MemRef3 *>(values[1]);
  int64_t dense = rows * columns, gapped = (rows + gap) * columns;
  const burst_piece own = blockOf(in->data, in->strides[0]);
  burst_piece pieces[ranks];
  burst_message messages[2 * (ranks - 1)];
  for (int64_t distance = 1; distance < ranks; ++distance) {
    int64_t from = (r + ranks - distance) % ranks;
    pieces[from] =
        from == (r + 1) % ranks
            ? blockOf(out->data, dense)
            : blockOf(static_cast<char *>(table->allocate(
                          rank, 4 * batch * gapped, BURST_MEMORY_SLICE)),
                      distance % 2 ? gapped : dense);
    messages[2 * distance - 2] = {(r + distance) % ranks, 0, 1, &own};
    messages[2 * distance - 1] = {from, 1, 1, &pieces[from]};
  }
  const burst_messages list = {
      2 * (ranks - 1), pattern, messages, {standins::ranks, 1}};
  table->wait(rank, table->start(rank, 0, &list));
}

inline void gather(burst_rank *rank, const burst_table *table,
                   void *const *values) {
  gatherAs(BURST_POINT_TO_POINT, rank, table, values);
}

/// The same, said to be that.
inline void gatherAll(burst_rank *rank, const burst_table *table,
                      void *const *values) {
  gatherAs(BURST_GATHER_ALL, rank, table, values);
}

/// The same as an exchange, of which each sends one and the same to all.
inline void exchangeAll(burst_rank *rank, const burst_table *table,
                        void *const *values) {
  gatherAs(BURST_EXCHANGE_ALL, rank, table, values);
}

/// What a rank is to do: to run a program, or a check of its transport.
struct Task {
  int64_t rank = 0, ranks = standins::ranks, runs = 1;
  double deadline = 20;
  bool checked = false, captured = false; ///< to a graph
  burst_world *world = nullptr;
  burst_program *program = nullptr;
  int64_t check = -1;
  bool inOrder = false;
};

/// Ranks that run a program each on a GPU of their own, over a transport that
/// is tested.
class RingTest : public Emulated {
protected:
  using Emulated::Emulated;

  virtual std::string connect(const Task &task, burst_device *device,
                              burst_transport **transport) = 0;

  std::vector<std::string> errors{size_t(ranks)};
  std::vector<std::vector<float>> results{size_t(ranks)};
  std::vector<burst_counters> counters{size_t(ranks)};
  Task common;
  bool broken = false; // a GPU was given up

  /// What one rank does, from its device on.
  std::string runRank(const Task &task) {
    using test::takeCoded, test::tensorOf;
    burst_cuda_config where = {};
    where.size = sizeof(where);
    where.ordinal = task.rank;
    burst_device *device = nullptr;
    std::string error = takeCoded(burst_device_create_cuda(&where, &device));
    if (!error.empty())
      return error;
    test::Device owned(device);
    burst_transport *made = nullptr;
    error = connect(task, device, &made);
    if (!error.empty())
      return error;
    test::Transport transport(made);
    if (task.check >= 0) {
      burst_check_config config = {sizeof(config), made, device,
                                   task.check,     1,    task.deadline,
                                   task.inOrder};
      return takeCoded(burst_transport_check(&config));
    }
    enter(int(task.rank));
    CUdeviceptr in = memory(4 * count), out = memory(4 * count);
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), float(task.rank * 1000));
    CUstream copies = stream();
    EXPECT_EQ(cu->cuMemcpyHtoDAsync_v2(in, values.data(), 4 * count, copies),
              0);
    EXPECT_EQ(cu->cuStreamSynchronize(copies), 0);
    burst_run_config config = {};
    config.size = sizeof(config);
    config.rank = task.rank;
    config.device = device;
    config.transport = made;
    config.deadline_seconds = task.deadline;
    config.checked = task.checked;
    burst_tensor tensors[] = {
        tensorOf(reinterpret_cast<void *>(in), {batch, rows, columns}),
        tensorOf(reinterpret_cast<void *>(out), {batch, rows, columns})};
    counters[task.rank].size = sizeof(burst_counters);
    if (task.captured) {
      EXPECT_EQ(
          takeCoded(burst_stream_create_cuda(device, copies, &config.stream)),
          "");
      EXPECT_EQ(cu->cuStreamBeginCapture_v2(
                    copies, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                0);
    }
    for (int64_t i = 0; i < task.runs && error.empty(); ++i)
      error = takeCoded(
          burst_run(task.program, &config, tensors, 2, &counters[task.rank]));
    if (task.captured) {
      CUgraph graph = nullptr;
      EXPECT_EQ(cu->cuStreamEndCapture(copies, &graph), 0);
      EXPECT_EQ(cu->cuGraphDestroy(graph), 0);
      error = takeCoded(burst_stream_synchronize(config.stream));
      burst_stream_destroy(config.stream);
    }
    results[task.rank].resize(count);
    if (!broken) {
      EXPECT_EQ(cu->cuMemcpyDtoHAsync_v2(results[task.rank].data(), out,
                                         4 * count, copies),
                0);
      EXPECT_EQ(cu->cuStreamSynchronize(copies), 0);
      EXPECT_EQ(cu->cuMemFree_v2(in), 0);
      EXPECT_EQ(cu->cuMemFree_v2(out), 0);
    }
    EXPECT_EQ(cu->cuStreamDestroy_v2(copies), 0);
    transport.reset();
    owned.reset();
    EXPECT_EQ(cu->cuDevicePrimaryCtxRelease_v2(int(task.rank)), 0);
    return error;
  }

  static void describe(test::Program &program) {
    program.image.minimum_driver = 12000;
    program.parameters.reserve(2);
    program.tensor("in", {batch, rows, columns});
    program.tensor("out", {batch, rows, columns}, BURST_F32, true);
  }

  /// Runs each rank on a thread.
  void runThreads(const std::vector<test::World> &worlds,
                  const test::Body &body) {
    test::Program program(common.ranks, body);
    describe(program);
    burst_program *shared = program.get();
    test::inParallel(common.ranks, [&](int64_t rank) {
      Task task = common;
      task.rank = rank;
      task.world = worlds[rank].get();
      task.program = shared;
      errors[rank] = runRank(task);
    });
  }

  void expectRing() {
    for (int64_t rank = 0; rank < common.ranks; ++rank) {
      EXPECT_EQ(errors[rank], "");
      EXPECT_EQ(counters[rank].bytes_sent, (common.ranks - 1) * 4 * count);
      ASSERT_EQ(results[rank].size(), size_t(count));
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(results[rank][i],
                  float((rank + 1) % common.ranks * 1000 + i));
    }
  }
};

} // namespace burst::standins

#endif // BURST_TEST_STANDINS_RING_H
