//===- Harness.h - Programs of tests, and ranks to run them -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_RUNTIME_HARNESS_H
#define BURST_TEST_UNIT_RUNTIME_HARNESS_H

#include "burst/burst.h"
#include "test/unit/FreePort.h"

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace burst::test {

/// What a rank does. Where a function of the table fails it does not come back:
/// nothing that needs a destructor may live across a call.
using Body =
    std::function<void(burst_rank *, const burst_table *, void *const *)>;

/// The text of an error, which it destroys; empty for success.
std::string take(burst_error *error);

/// The same, with the code in front: "DEADLINE_EXCEEDED rank 1, hop 2: ...".
std::string takeCoded(burst_error *error);

void expectContains(const std::string &text,
                    const std::vector<std::string> &parts);

/// Starts to send pieces to one rank and to receive others from one.
inline int64_t shift(const burst_table *table, burst_rank *rank,
                     int64_t channel, int64_t to, int64_t numSends,
                     const burst_piece *sends, int64_t from,
                     int64_t numReceives, const burst_piece *receives) {
  const burst_message messages[] = {
      {to, /*receives=*/0, numSends, sends},
      {from, /*receives=*/1, numReceives, receives}};
  const burst_messages list = {2, BURST_POINT_TO_POINT, messages, {}};
  return table->start(rank, channel, &list);
}

template <typename T, void (*destroy)(T *)>
struct Destroyer {
  void operator()(T *object) const { destroy(object); }
};
template <typename T, void (*destroy)(T *)>
using Handle = std::unique_ptr<T, Destroyer<T, destroy>>;
using Device = Handle<burst_device, burst_device_destroy>;
using Stream = Handle<burst_stream, burst_stream_destroy>;
using Transport = Handle<burst_transport, burst_transport_destroy>;
using Trace = Handle<burst_trace, burst_trace_destroy>;

Device makeDevice(int64_t threads);
Trace makeTrace();
std::vector<Transport> makeTransports(burst_local_config config);
std::vector<Transport> makeTransports(int64_t ranks);

/// A world of this process for each rank, which hear each other often, so that
/// tests are quick; and a transport over each.
using World = Handle<burst_world, burst_world_destroy>;
burst_world_config worldConfig(const char *address, int64_t ranks,
                               int64_t rank);
std::vector<World> makeWorlds(int64_t ranks);
std::vector<Transport> makeTransports(const std::vector<World> &worlds);

/// Calls a function for each number below `count`, on threads of their own.
void inParallel(int64_t count, const std::function<void(int64_t)> &function);

/// A program whose ranks run `body`. Images have no context: whichever program
/// was made last, its body is run.
class Program {
public:
  burst_image image = {};
  std::vector<burst_parameter> parameters;
  std::vector<std::vector<int64_t>> sizes;

  Program(int64_t ranks, Body body);
  Program(const Program &) = delete;
  ~Program();

  /// Adds a tensor; results come behind all arguments.
  burst_parameter &tensor(const char *name, std::vector<int64_t> sizes,
                          int32_t type = BURST_F32, bool isResult = false);
  burst_parameter &extent(const char *name);

  using Segments = std::vector<burst_segment> (*)(int64_t owner, int64_t ranks,
                                                  int64_t extent);
  /// Shards dimension `dim` of the last tensor.
  void shard(int32_t dim, Segments segments, int64_t extent,
             int32_t extentParameter = -1);

  /// The program of what was added until now.
  burst_program *get();

private:
  burst_program *program = nullptr;
  void add(burst_parameter parameter);
};

/// Layouts of sequences.
std::vector<burst_segment> contiguous(int64_t owner, int64_t ranks,
                                      int64_t extent);
std::vector<burst_segment> zigzag(int64_t owner, int64_t ranks, int64_t extent);
std::vector<burst_segment> striped(int64_t owner, int64_t ranks,
                                   int64_t extent);
/// In blocks of 3 positions.
std::vector<burst_segment> blocked(int64_t owner, int64_t ranks,
                                   int64_t extent);

/// Runs all ranks of a program without parameters, each on a thread.
struct Ranks {
  burst_local_config local = {};
  burst_run_config config = {};
  int64_t threads = 2;
  bool tcp = false; /// over connections, not the hub of a process
  /// Of each rank, coded; empty for success.
  std::vector<std::string> errors;
  std::vector<burst_counters> counters;

  Ranks();
  void run(int64_t ranks, const Body &body);
  void expectSuccess() const;
};

/// A piece of contiguous floats.
burst_piece pieceOf(float *data, int64_t count);

/// A tensor of contiguous elements.
burst_tensor tensorOf(void *data, const std::vector<int64_t> &sizes,
                      int32_t type = BURST_F32);

} // namespace burst::test

#endif // BURST_TEST_UNIT_RUNTIME_HARNESS_H
