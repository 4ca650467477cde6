//===- Order.h - Which operations are ordered -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Happens-before between whole operations: copies, kernels, frees. An agent is
// a stream, or the host (all of its threads together: what orders them is not
// seen). A clock knows of each agent how many of its steps are ordered before.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_STANDINS_ORDER_H
#define BURST_TEST_STANDINS_ORDER_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace burst::standins {

/// An operation of an agent.
struct Step {
  uint32_t agent = 0, tick = 0;
  std::string what; // "copy of 64 bytes to GPU 0, number 3 on stream 1"
};
using StepRef = std::shared_ptr<const Step>;

class Clock {
public:
  void join(const Clock &clock);
  bool covers(const Step &step) const { return at(step.agent) >= step.tick; }
  uint32_t at(uint32_t agent) const {
    return agent < ticks.size() ? ticks[agent] : 0;
  }
  /// Begins the next step of an agent; returns its number.
  uint32_t tick(uint32_t agent);

private:
  std::vector<uint32_t> ticks; // by agent
};

struct Range {
  uint64_t begin = 0, end = 0;
};

/// An access and an earlier one that is not ordered before it.
struct Conflict {
  Range where;
  StepRef earlier;
  bool earlierWrites = false;
};

/// Who touched which bytes last: the last write, and the reads since.
class Accesses {
public:
  std::optional<Conflict> add(Range range, bool writes, const StepRef &step,
                              const Clock &clock);

private:
  struct Segment {
    uint64_t end = 0;
    StepRef writer; // or null
    std::vector<StepRef> readers;
  };
  using Segments = std::map<uint64_t, Segment>; // by their begin

  /// Makes a segment begin at `at`, where one goes across it.
  Segments::iterator split(uint64_t at);
  std::optional<Conflict> read(Range range, const StepRef &step,
                               const Clock &clock);
  std::optional<Conflict> write(Range range, const StepRef &step,
                                const Clock &clock);

  Segments segments;
};

} // namespace burst::standins

#endif // BURST_TEST_STANDINS_ORDER_H
