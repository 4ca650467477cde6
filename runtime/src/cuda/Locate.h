//===- Locate.h - Libraries by name, not opened -----------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_CUDA_LOCATE_H
#define BURST_RUNTIME_CUDA_LOCATE_H

#ifdef __cplusplus
extern "C" {
#endif

/* The file that the loader would open by a name, as realpath spells it, as far
   as can be told without opening it: what is open, then the folders that the
   loader searches, then its cache. Folders for some processors alone, and what
   is broken, are not looked at. Null if there is none, or no regular file. The
   caller frees it. */
char *burst_locate(const char *name);

/* What a path leads to that no library can be, as "a device"; null for a
   regular file, or nothing. To open a pipe waits, and a device may have no end.
 */
const char *burst_found_no_file(const char *path);

/* The file of what dlopen gave, or null. The caller frees it. */
char *burst_path_of(void *object);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_CUDA_LOCATE_H
