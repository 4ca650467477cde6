//===- StandIn.h - a compiler that makes nothing ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_CUDA_STANDIN_H
#define BURST_TEST_UNIT_CUDA_STANDIN_H

#include <string>

namespace burst::test {

/// Takes the place of NVRTC while it lives; one at a time. What it "compiles"
/// says in its text what becomes of it: "fails", "spills", "serialised".
struct StandIn {
  StandIn();
  ~StandIn();

  /// How many programs were compiled, how many were so at the same time at
  /// most, and how many are still there.
  static int compiled(), atOnce(), alive();
  /// From now on, another version of NVRTC.
  static void setMinorVersion(int minor);
  /// From now on, one that was opened from a file, which may hold anything.
  static void setLibrary(const char *path);
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_CUDA_STANDIN_H
