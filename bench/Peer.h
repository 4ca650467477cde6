//===- Peer.h - programs that burst is compared with ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_PEER_H
#define BURST_BENCH_PEER_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace burst::bench {

/// A child that is asked for timings: a question is one line of JSON, and so is
/// the answer, {"seconds": 0.12} or {"error": "why not"}. Its first line is a
/// greeting, {"name": "PyTorch 2.13.0"}. It is started again after it died or
/// was ended.
class Peer {
public:
  /// `command` with its arguments, as many threads as burst has on the same
  /// processors, and the seconds that an answer may take. No command: `missing`
  /// is the error of every question.
  Peer(std::vector<std::string> command, std::string missing, int64_t threads,
       double timeout);
  ~Peer() { stop(); }
  Peer(const Peer &) = delete;
  Peer &operator=(const Peer &) = delete;

  /// Seconds of one run of what `question` describes.
  llvm::Expected<double> ask(const llvm::json::Object &question);
  /// Starts it; its name, or "missing: " and why.
  std::string greet();

private:
  llvm::Error start();
  void stop();
  llvm::Error say(llvm::StringRef line);
  llvm::Expected<llvm::json::Object> hear();
  /// Ends the child; what it was and the last line of its standard error.
  llvm::Error broken(const llvm::Twine &what);

  std::vector<std::string> command;
  std::string missing;
  int64_t threads;
  double timeout;
  std::string name;  ///< what the greeting said
  std::string heard; ///< bytes behind the last answer
  int child = -1, channel = -1, errors = -1;
  int failures = 0; ///< in a row
};

} // namespace burst::bench

#endif // BURST_BENCH_PEER_H
