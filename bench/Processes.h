//===- Processes.h - ranks as processes of this machine ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_PROCESSES_H
#define BURST_BENCH_PROCESSES_H

#include "bench/Bound.h"

#include <sys/types.h>

namespace burst::bench {

/// A process for each rank of a program, which transfers over TCP. They are
/// forked with the program and its shards as they are.
class Processes {
public:
  /// Each has a device of `threads` threads of its own.
  Processes(Bound &program, int64_t threads);
  ~Processes();
  Processes(const Processes &) = delete;
  Processes &operator=(const Processes &) = delete;

  /// Seconds of one run, from where the first rank begins to where the last one
  /// ends.
  double run();
  struct Link {
    double bandwidth, latency;
    double busy; ///< the share of a process's threads that a hop takes
  };
  /// The line through the times of hops of small and of large messages, of all
  /// ranks at once.
  Link measureLink();

private:
  /// What a process is to do, and what it says of it.
  struct Task {
    int64_t bytes = 0; ///< of hops; 0: run
    int64_t count = 0; ///< of hops
  };
  struct Times {
    double begin = 0, end = 0; ///< on the clock of the machine
    double hop = 0;            ///< seconds
    double processor = 0;      ///< seconds of all threads
  };
  struct Process {
    pid_t pid = -1;
    int tasks = -1, times = -1; ///< pipes
  };

  [[noreturn]] static void serve(Bound &program, int64_t rank, int64_t threads,
                                 const std::string &address, int tasks,
                                 int times);
  std::vector<Times> order(const Task &task);

  std::vector<Process> processes;
  int64_t threads;
};

} // namespace burst::bench

#endif // BURST_BENCH_PROCESSES_H
