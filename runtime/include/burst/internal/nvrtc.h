//===- nvrtc.h - The run-time compiler of CUDA ------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What burst calls of NVRTC 12 and later, as nvrtc.h of CUDA 13.0 declares it.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_INTERNAL_NVRTC_H
#define BURST_INTERNAL_NVRTC_H

#include "burst/burst.h"
#include "burst/internal/table.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _nvrtcProgram *nvrtcProgram;

typedef enum {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  NVRTC_ERROR_INTERNAL_ERROR = 11
} nvrtcResult;

#define BURST_NVRTC_FUNCTIONS(F)                                               \
  F(nvrtcResult, nvrtcVersion, (int *major, int *minor))                       \
  F(const char *, nvrtcGetErrorString, (nvrtcResult result))                   \
  F(nvrtcResult, nvrtcGetNumSupportedArchs, (int *number))                     \
  F(nvrtcResult, nvrtcGetSupportedArchs, (int *architectures))                 \
  F(nvrtcResult, nvrtcCreateProgram,                                           \
    (nvrtcProgram * program, const char *text, const char *name,               \
     int num_headers, const char *const *headers, const char *const *names))   \
  F(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram * program))                \
  F(nvrtcResult, nvrtcCompileProgram,                                          \
    (nvrtcProgram program, int num_options, const char *const *options))       \
  F(nvrtcResult, nvrtcGetProgramLogSize,                                       \
    (nvrtcProgram program, size_t *bytes))                                     \
  F(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char *log))        \
  F(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram program, size_t *bytes))       \
  F(nvrtcResult, nvrtcGetPTX, (nvrtcProgram program, char *ptx))               \
  F(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t *bytes))     \
  F(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char *cubin))

typedef struct burst_nvrtc {
  const char *path; // of the library; null in a stand-in
  BURST_NVRTC_FUNCTIONS(BURST_TABLE_MEMBER)
} burst_nvrtc;

/* BURST_NVRTC_LIBRARY names the library. */
burst_error *burst_nvrtc_table(const burst_nvrtc **nvrtc);

/* Its file, as burst_library_locate finds it. */
char *burst_nvrtc_locate(void);

void burst_nvrtc_stand_in(const burst_nvrtc *nvrtc);

#ifdef __cplusplus
}
#endif

#endif // BURST_INTERNAL_NVRTC_H
