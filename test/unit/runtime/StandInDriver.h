//===- StandInDriver.h - GPUs in this process's memory ----------*- C++ -*-===//
#ifndef BURST_TEST_UNIT_RUNTIME_STANDINDRIVER_H
#define BURST_TEST_UNIT_RUNTIME_STANDINDRIVER_H

#include "runtime/src/cuda/Driver.h"

#include <gtest/gtest.h>

#include <cstring>

#include <functional>
#include <string>
#include <vector>

namespace burst::test {

/// What a launch gives to a kernel.
struct Launch {
  CUlaunchConfig config;
  std::vector<CUlaunchAttribute> attributes;
  std::vector<std::string> parameters; ///< their bytes

  template <typename T>
  T parameter(size_t i) const {
    T value;
    EXPECT_EQ(parameters.at(i).size(), sizeof(T));
    memcpy(&value, parameters[i].data(), sizeof(T));
    return value;
  }
};

/// Takes the place of the driver of CUDA while it lives; for one thread. What
/// is put on a stream runs as late as is legal: when the stream is waited for,
/// or another one that waits for an event of it. So a missing wait is seen.
/// Memory is the host's, filled with 0xa5. Touching what is not allocated makes
/// all later calls fail, as on a GPU.
class StandInDriver {
public:
  /// Of these compute capabilities, times 10.
  explicit StandInDriver(std::vector<int> capabilities = {90});
  StandInDriver(const StandInDriver &) = delete;
  ~StandInDriver();

  /// A kernel that images may have: an image is a list of names, each ended by
  /// a space.
  void addKernel(const std::string &name, std::vector<size_t> parameterBytes,
                 std::function<void(const Launch &)> run);

  /// Makes the next call of a function fail.
  void fail(const std::string &function, CUresult result);

  /// What exists: contexts held, streams, events, modules and allocations.
  int alive() const;

  /// The ordinal of the device whose context this thread has, or -1.
  int current() const;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_RUNTIME_STANDINDRIVER_H
