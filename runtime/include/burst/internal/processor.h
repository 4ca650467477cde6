//===- processor.h - What this processor can do -----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_INTERNAL_PROCESSOR_H
#define BURST_INTERNAL_PROCESSOR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// 1 where this processor, and the system that saves its registers, have the
// feature that LLVM calls `name`, of `length` bytes; 0 where they have not, -1
// where the name is not known here.
int burst_processor_has(const char *name, size_t length);

#ifdef __cplusplus
}
#endif

#endif // BURST_INTERNAL_PROCESSOR_H
