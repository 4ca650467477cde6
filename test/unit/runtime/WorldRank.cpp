//===- WorldRank.cpp - A rank that ProcessTest starts ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// WorldRank WHAT [RANK HOP [NUMBER]]: runs rings as the rank that the
// environment says, in which rank RANK does WHAT at hop HOP, and prints its
// error. It runs three, or where WHAT is one of these, as many as it can in 20
// seconds:
//
//   loop                 nothing happens, unless from outside
//   die-later            dies at a hop of the run NUMBER
//   stop-later           is stopped there
//   shut                 shuts one of its connections, which NUMBER chooses,
//   and
//                        says how long it was until that was told
//   few                  may open only NUMBER files
//   soft                 may open only NUMBER files, unless it asks for more;
//                        three runs
//   hog                  opens all files that it can, after NUMBER
//   milliseconds;
//                        200 runs
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

using namespace burst::test;

namespace {

constexpr int64_t hops = 6, count = 1 << 16;

std::string what;
int64_t culprit = -1, when = -1, number = 0, runs = 0;
std::chrono::steady_clock::time_point shutAt;

bool isOneOf(std::initializer_list<const char *> names) {
  return std::find(names.begin(), names.end(), what) != names.end();
}

bool isLong() {
  return isOneOf({"loop", "die-later", "stop-later", "shut", "few", "hog"});
}

void shutOne() {
  std::vector<int> connections;
  for (int fd = 3; fd < 1000; ++fd) {
    sockaddr_in other = {};
    socklen_t bytes = sizeof(other);
    if (getpeername(fd, reinterpret_cast<sockaddr *>(&other), &bytes) == 0 &&
        other.sin_family == AF_INET)
      connections.push_back(fd);
  }
  const int ways[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};
  shutAt = std::chrono::steady_clock::now();
  shutdown(connections[number / 3 % connections.size()], ways[number % 3]);
}

void limitFiles(rlim_t count) {
  rlimit limit = {count, count};
  setrlimit(RLIMIT_NOFILE, &limit);
}

void hogFiles() {
  std::this_thread::sleep_for(std::chrono::milliseconds(number));
  limitFiles(64);
  while (open("/dev/null", O_RDONLY) >= 0)
    ;
}

void misbehave() {
  if (what == "die" || (what == "die-later" && runs == number))
    raise(SIGKILL);
  if (what == "stop" || (what == "stop-later" && runs == number))
    raise(SIGSTOP);
  if (what == "shut" && runs == 2)
    shutOne();
  if (what == "exit")
    _exit(0);
  if (what == "sleep")
    std::this_thread::sleep_for(std::chrono::seconds(600));
}

/// Between two runs, for so long that all have heard of it, or for NUMBER
/// seconds; rank RANK ends.
void rest(int64_t rank) {
  int64_t seconds = number ? number : 3;
  std::this_thread::sleep_for(
      std::chrono::seconds(rank == culprit ? 1 : seconds));
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
    int64_t token = shift(table, rank, 0, (r + 1) % size, 1, &send,
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

/// Whether there is another run.
bool goesOn() {
  static const auto began = std::chrono::steady_clock::now();
  if (what == "hog")
    return runs < 200;
  return isLong() ? std::chrono::steady_clock::now() - began <
                        std::chrono::seconds(20)
                  : runs < 3;
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
  for (; error.empty() && goesOn(); ++runs) {
    error = takeCoded(burst_run(program.get(), &config, values, 1, nullptr));
    if (what == "rest" && runs == 1)
      rest(rank);
  }
  if (what == "shut" && rank == culprit) {
    std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - shutAt;
    error += " (told after " + std::to_string(passed.count()) + " s)";
  }
  return error;
}

/// Few heartbeats may be missed, where a rank is to be found silent.
burst_world_config configOf() {
  burst_world_config config = {};
  config.size = sizeof(config);
  config.timeout_seconds = what == "absent" ? 1 : isLong() ? 8 : 20;
  config.heartbeat_seconds = what == "stop" ? 0.5 : 0.1;
  config.silence_seconds = what == "stop" || what == "rest" ? 1
                           : isLong()                       ? 3
                                                            : 10;
  return config;
}

void prepare() {
  const char *rank = getenv("BURST_RANK");
  if (!rank || atoll(rank) != culprit)
    return;
  if (what == "few")
    limitFiles(number);
  if (what == "soft") {
    rlimit limit = {rlim_t(number), 4096};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (what == "hog")
    std::thread(hogFiles).detach();
}

} // namespace

int main(int argc, char **argv) {
  what = argc > 1 ? argv[1] : "";
  if (argc > 3) {
    culprit = atoll(argv[2]);
    when = atoll(argv[3]);
  }
  number = argc > 4 ? atoll(argv[4]) : 0;
  prepare();
  burst_world_config config = configOf();
  burst_world *made;
  std::string error = takeCoded(burst_world_create(&config, &made));
  if (error.empty()) {
    World world(made);
    error = runRing(world.get(), what == "sleep" ? 1 : 60);
  }
  printf("%s\n", error.empty() ? "ok" : error.c_str());
  return 0;
}
