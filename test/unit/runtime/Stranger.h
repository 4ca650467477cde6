//===- Stranger.h - Whoever may call a rank ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_RUNTIME_STRANGER_H
#define BURST_TEST_UNIT_RUNTIME_STRANGER_H

#include <cstdint>
#include <string>
#include <vector>

namespace burst::test {

/// A connection to a port of this machine, as soon as somebody listens.
class Stranger {
public:
  explicit Stranger(int port);
  Stranger(const Stranger &) = delete;
  ~Stranger();

  void say(const std::string &text) const;
  /// All that is said until the connection ends, or "late" after 60 seconds.
  std::string hear() const;

private:
  int fd = -1;
};

/// What ranks of a job show that call rank 0 at "host:port", and what who
/// answers shows: by the secret in the environment of this process.
std::string helloToken(const std::string &address, int64_t ranks);
std::string answerToken(const std::string &address, int64_t ranks);

/// In front of a message.
std::string header(uint16_t version, uint16_t kind, uint64_t bytes);
std::string bytesOf(const std::vector<int64_t> &numbers);

/// A hello to rank 0 with the token of the job.
std::string hello(const std::string &address, int64_t ranks, int64_t rank,
                  int64_t world = 0, uint16_t version = 2);

} // namespace burst::test

#endif // BURST_TEST_UNIT_RUNTIME_STRANGER_H
