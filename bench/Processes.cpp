//===- Processes.cpp - ranks as processes of this machine -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Processes.h"

#include "bench/Table.h"
#include "tools/harness/Hops.h"

#include <arpa/inet.h>
#include <csignal>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace burst;
using namespace burst::bench;

/// An address of this machine at which nobody listens.
static std::string freeAddress() {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  if (listener < 0 || bind(listener, generic, size) != 0 ||
      getsockname(listener, generic, &size) != 0)
    fail("no port of 127.0.0.1 can be had");
  close(listener);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

/// Of a pipe, all of `value`; false at its end.
template <typename T>
static bool readAll(int pipe, T &value) {
  auto *at = reinterpret_cast<char *>(&value);
  for (size_t left = sizeof(T); left != 0;) {
    ssize_t count = read(pipe, at, left);
    if (count <= 0)
      return false;
    at += count;
    left -= count;
  }
  return true;
}

/// Small values go to a pipe at once.
template <typename T>
static bool writeAll(int pipe, const T &value) {
  return write(pipe, &value, sizeof(T)) == static_cast<ssize_t>(sizeof(T));
}

Processes::Processes(Bound &program, int64_t threads) : threads(threads) {
  (void)std::signal(SIGPIPE, SIG_IGN); // the end of a process is seen by read
  std::string address = freeAddress();
  int64_t ranks = program.numRanks();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int tasks[2], times[2];
    if (pipe(tasks) != 0 || pipe(times) != 0)
      fail("no pipe to a process can be had");
    pid_t pid = fork();
    if (pid < 0)
      fail("no process for a rank can be had");
    if (pid == 0) {
      // Else others would never see the end of these.
      for (const Process &other : processes) {
        close(other.tasks);
        close(other.times);
      }
      close(tasks[1]);
      close(times[0]);
      serve(program, rank, threads, address, tasks[0], times[1]);
    }
    close(tasks[0]);
    close(times[1]);
    processes.push_back({pid, tasks[1], times[0]});
  }
}

Processes::~Processes() {
  for (const Process &process : processes) {
    close(process.tasks);
    close(process.times);
  }
  for (const Process &process : processes)
    (void)waitpid(process.pid, nullptr, 0);
}

void Processes::serve(Bound &program, int64_t rank, int64_t threads,
                      const std::string &address, int tasks, int times) {
  Device device(threads, /*isPinned=*/false);
  burst_world_config where{};
  where.size = sizeof(where);
  where.num_ranks = program.numRanks();
  where.rank = rank;
  where.address = address.c_str();
  burst_world *world = nullptr;
  check(burst_world_create(&where, &world));
  burst_tcp_config how{sizeof(how), world};
  burst_transport *transport = nullptr;
  check(burst_transport_create_tcp(&how, &transport));

  CompiledRun hops;
  hops.device = device.handle;
  hops.transport = transport;
  Task task;
  while (readAll(tasks, task)) {
    check(burst_world_barrier(world, /*deadline_seconds=*/0));
    Times said;
    said.begin = now();
    double processor = cpuNow();
    if (task.bytes == 0)
      check(program.runRank(rank, device.handle, transport));
    else if (auto error = timeHops({where.num_ranks, where.num_ranks, 1},
                                   task.bytes, task.count, hops, said.hop))
      fail(*error);
    said.end = now();
    said.processor = cpuNow() - processor;
    if (!writeAll(times, said))
      break;
  }
  burst_transport_destroy(transport);
  burst_world_destroy(world);
  _exit(0); // what the parent has opened is its own to close
}

std::vector<Processes::Times> Processes::order(const Task &task) {
  for (const Process &process : processes)
    if (!writeAll(process.tasks, task))
      fail("a process of a rank has ended");
  std::vector<Times> all(processes.size());
  for (auto [process, times] : llvm::zip_equal(processes, all))
    if (!readAll(process.times, times))
      fail("a process of a rank has ended");
  return all;
}

double Processes::run() {
  std::vector<Times> all = order({});
  double begin = all.front().begin, end = all.front().end;
  for (const Times &times : all) {
    begin = std::min(begin, times.begin);
    end = std::max(end, times.end);
  }
  return end - begin;
}

Processes::Link Processes::measureLink() {
  constexpr int64_t smallBytes = 64, largeBytes = int64_t{1} << 20;
  double small = 0, large = 0;
  for (const Times &times : order({smallBytes, 101}))
    small = std::max(small, times.hop);
  std::vector<double> shares;
  for (const Times &times : order({largeBytes, 51})) {
    large = std::max(large, times.hop);
    shares.push_back(times.processor / (times.end - times.begin) /
                     static_cast<double>(threads));
  }
  constexpr double least = 1e-9;
  return {static_cast<double>(largeBytes) / std::max(large - small, least),
          small, median(shares)};
}
