//===- Job.h - Ranks that are processes, as launched ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_RUNTIME_JOB_H
#define BURST_TEST_UNIT_RUNTIME_JOB_H

#include "test/unit/FreePort.h"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace burst::test {

/// Processes of TEST_RANK, which are killed at the end.
class Job {
public:
  explicit Job(int64_t size);
  Job(const Job &) = delete;
  ~Job();

  /// Variables of all ranks, with %r for the rank and %p for the port; no
  /// others are set.
  std::vector<std::string> variables;
  int port = freePort();
  /// Where they write what is no answer; empty: where only `hear` reads it.
  std::string log;

  int64_t size() const { return ranks; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port); }

  void start(int64_t rank, const std::vector<std::string> &arguments);
  void startAll(const std::vector<std::string> &arguments);
  /// Runs a command in place of a rank.
  void startCommand(const std::vector<std::string> &words, int64_t rank = 0);

  /// To all, or to one in the order in which they were started.
  void send(int signal);
  void send(size_t index, int signal);

  /// The first line that a process, in the order in which they were started,
  /// has said; "nothing" and why if it ended without, "late" after 60 seconds.
  std::string hear(size_t index);
  /// All of it.
  std::string hearAll(size_t index);

private:
  std::string howItEnded(size_t index);

  int64_t ranks;
  std::vector<pid_t> pids; // -1: has been waited for
  std::vector<int> outputs, errors;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_RUNTIME_JOB_H
