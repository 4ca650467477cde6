//===- Program.h - What a compiler made -------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_PROGRAM_PROGRAM_H
#define BURST_RUNTIME_PROGRAM_PROGRAM_H

#include "burst/internal/handle.h"

#include <stdatomic.h>

struct burst_program {
  burst_handle handle;
  const burst_image *image;
  void (*release)(void *context);
  void *context;
  _Atomic int64_t references;
};

// What makes an image unusable, or null.
burst_error *burst_image_check(const burst_image *image);

// An error unless the program has such a parameter and such a rank.
burst_error *burst_program_check(const burst_program *program,
                                 int64_t parameter, int64_t rank);

#endif // BURST_RUNTIME_PROGRAM_PROGRAM_H
