//===- Processor.h - What this processor can do -----------------*- C -*-===//
#ifndef BURST_PROCESSOR_H
#define BURST_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

// Whether this processor, and the system that saves its registers, have the
// feature that LLVM calls `name`, of `length` bytes. No, where the name is not
// known here.
bool burst_processor_has(const char *name, size_t length);

#endif // BURST_PROCESSOR_H
