//===- Nvrtc.c - The run-time compiler of CUDA ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/nvrtc.h"
#include "runtime/src/cuda/Library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* NVRTC opens its built-in functions by name when it first compiles, and has no
   search path of its own. What is already open is found. */
static void open_builtins(void *table) {
  const burst_nvrtc *nvrtc = table;
  int major, minor;
  char path[PATH_MAX];
  const char *slash = nvrtc->path ? strrchr(nvrtc->path, '/') : NULL;
  if (!slash || nvrtc->nvrtcVersion(&major, &minor) != NVRTC_SUCCESS)
    return;
  int length = snprintf(path, sizeof(path), "%.*s/libnvrtc-builtins.so.%d.%d",
                        (int)(slash - nvrtc->path), nvrtc->path, major, minor);
  if (length > 0 && (size_t)length < sizeof(path))
    (void)dlopen(path, RTLD_NOW | RTLD_LOCAL); // NVRTC says what it lacks
}

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so", NULL};
static const char *const functions[] = {BURST_NVRTC_FUNCTIONS(BURST_TABLE_NAME)
                                            NULL};
_Static_assert(sizeof(burst_nvrtc) == sizeof(functions),
               "a path and the functions, and nothing else");

static burst_library library = {.what = "NVRTC",
                                .variable = "BURST_NVRTC_LIBRARY",
                                .names = names,
                                .wheel = "nvidia/cu13/lib",
                                .functions = functions,
                                .opened = open_builtins,
                                .table_bytes = sizeof(burst_nvrtc),
                                .mutex = PTHREAD_MUTEX_INITIALIZER};

burst_error *burst_nvrtc_table(const burst_nvrtc **nvrtc) {
  const void *table;
  burst_error *error = burst_library_table(&library, &table);
  *nvrtc = table;
  return error;
}

char *burst_nvrtc_locate(void) { return burst_library_locate(&library); }

void burst_nvrtc_stand_in(const burst_nvrtc *nvrtc) {
  burst_library_stand_in(&library, nvrtc);
}
