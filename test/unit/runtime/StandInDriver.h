//===- StandInDriver.h - GPUs in this process's memory ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

/// A binary that holds the kernels of a list; see StandInDriver::addKernel.
burst_gpu_binary binaryOf(const char *architecture, const char *names);

/// What a tensor map was made of, innermost dimension first: what the stand-in
/// puts in the place of one.
struct Map {
  void *address;
  uint32_t type, rank;
  uint64_t sizes[5], strides[4];
  uint8_t box[4], lastBox, swizzle;
};

/// Takes the place of the driver of CUDA while it lives. What is put on a
/// stream runs as late as is legal: when the stream is waited for, or an event
/// of it is asked for the second time, or another stream has to run that waits
/// for such an event. So a missing wait is seen. What is captured runs in the
/// order in which it was captured. Memory is the host's, filled with 0xa5.
/// Touching what is not allocated makes all later calls fail, as on a GPU.
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

  /// Makes a call of a function fail: the next one, or the one after so many.
  void fail(const std::string &function, CUresult result, int after = 0);

  /// Asking for an event makes nothing run from here on, until `resume`.
  void hold();
  void resume();

  /// How many waits for events there were since forgetWait; the one with this
  /// number, from 0, is forgotten. From then on it costs no device to touch
  /// what is not allocated; it is counted.
  int waits() const;
  void forgetWait(int number);
  int astray() const;

  /// What the driver says that it knows of CUDA; 13000 at first.
  void setVersion(int version);

  /// What exists: contexts held, streams, events, modules and allocations.
  int alive() const;

  /// The ordinal of the device whose context this thread has, or -1.
  int current() const;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_RUNTIME_STANDINDRIVER_H
