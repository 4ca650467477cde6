//===- limits.h - What others than a device have to know of it --*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_INTERNAL_LIMITS_H
#define BURST_INTERNAL_LIMITS_H

enum {
  // Bytes of stack that a thread must have left to run kernels.
  BURST_KERNEL_STACK = 4 << 20,
  // Of which blocks of a kernel may take these; functions and registers need
  // some.
  BURST_MOST_BLOCKS = 3 << 20,
  // Of a device.
  BURST_MOST_THREADS = 1 << 16
};

#endif // BURST_INTERNAL_LIMITS_H
