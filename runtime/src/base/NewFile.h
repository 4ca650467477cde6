//===- NewFile.h - A file that is there when it is whole --------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_BASE_NEWFILE_H
#define BURST_RUNTIME_BASE_NEWFILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

// Beside the path that it will have. Where the file system can, it has no name
// until then: a signal that ends the process leaves nothing.
typedef struct burst_new_file {
  int descriptor; // to write to
  bool has_name;
  char path[PATH_MAX], temporary[PATH_MAX + 64];
} burst_new_file;

// Each gives a number of errno, or 0. What was opened has to be kept or
// dropped.
int burst_new_file_open(burst_new_file *file, const char *path, mode_t mode);
// Ends it under its path. Where there is one already: `replaces` it, or leaves
// that one alone.
int burst_new_file_keep(burst_new_file *file, bool replaces);
void burst_new_file_drop(burst_new_file *file);

#endif // BURST_RUNTIME_BASE_NEWFILE_H
