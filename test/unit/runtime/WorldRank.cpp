//===- WorldRank.cpp - A rank that ProcessTest starts ---------------------===//
//
// WorldRank WHAT [RANK HOP]: runs a ring as the rank that the environment says,
// in which rank RANK does WHAT at hop HOP, and prints its error.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

using namespace burst::test;

namespace {

constexpr int64_t hops = 6, count = 1 << 16;

std::string what;
int64_t culprit = -1, when = -1;

void misbehave() {
  if (what == "die")
    raise(SIGKILL);
  if (what == "stop")
    raise(SIGSTOP);
  if (what == "exit")
    _exit(0);
  if (what == "sleep")
    std::this_thread::sleep_for(std::chrono::seconds(600));
}

/// Between two runs, for so long that all have heard of it; rank RANK ends.
void rest(int64_t rank) {
  std::this_thread::sleep_for(std::chrono::seconds(rank == culprit ? 1 : 3));
  if (rank == culprit)
    raise(SIGKILL);
}

void ring(burst_rank *rank, const burst_table *table, void *const *values) {
  int64_t r = table->index(rank), size = *static_cast<int64_t *>(values[0]);
  auto *cells = static_cast<float *>(
      table->allocate(rank, 8 * count, BURST_MEMORY_SLICE));
  std::fill_n(cells, count, float(r));
  for (int64_t hop = 1; hop <= hops; ++hop) {
    float *now = cells + (hop % 2 ? 0 : count),
          *next = cells + (hop % 2 ? count : 0);
    burst_piece send = pieceOf(now, count), receive = pieceOf(next, count);
    int64_t token = table->start(rank, 0, (r + 1) % size, 1, &send,
                                 (r + size - 1) % size, 1, &receive);
    if (r == culprit && hop == when)
      misbehave();
    table->wait(rank, token);
    float from = float((r + hop * (size - 1)) % size);
    for (int64_t i = 0; i < count; ++i)
      if (next[i] != from)
        table->require(rank, 0, 1, "the right data");
  }
}

std::string runRing(burst_world *world, double deadline) {
  int64_t rank = burst_world_rank(world), size = burst_world_num_ranks(world);
  burst_tcp_config tcp = {sizeof(tcp), world};
  burst_transport *made;
  if (burst_error *error = burst_transport_create_tcp(&tcp, &made))
    return takeCoded(error);
  Transport transport(made);
  Device device = makeDevice(1);
  Program program(size, ring);
  program.parameters.reserve(1);
  program.extent("size");
  if (what == "mismatch" && rank == culprit)
    program.image.hash = 43;
  burst_run_config config = {};
  config.size = sizeof(config);
  config.rank = rank;
  config.device = device.get();
  config.transport = transport.get();
  config.deadline_seconds = deadline;
  burst_tensor values[] = {tensorOf(&size, {}, BURST_I64)};
  std::string error;
  for (int i = 0; i < 3 && error.empty(); ++i) {
    error = takeCoded(burst_run(program.get(), &config, values, 1, nullptr));
    if (what == "rest" && i == 1)
      rest(rank);
  }
  return error;
}

} // namespace

int main(int argc, char **argv) {
  what = argc > 1 ? argv[1] : "";
  if (argc > 3) {
    culprit = atoll(argv[2]);
    when = atoll(argv[3]);
  }
  burst_world_config config = {};
  config.size = sizeof(config);
  config.timeout_seconds = what == "absent" ? 1 : 20;
  config.heartbeat_seconds = what == "stop" ? 0.5 : 0.1;
  config.silence_seconds = what == "stop" || what == "rest" ? 1 : 10;
  burst_world *made;
  std::string error = takeCoded(burst_world_create(&config, &made));
  if (error.empty()) {
    World world(made);
    error = runRing(world.get(), what == "sleep" ? 1 : 60);
  }
  printf("%s\n", error.empty() ? "ok" : error.c_str());
  return 0;
}
