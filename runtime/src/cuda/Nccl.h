//===- Nccl.h - Sending between GPUs ----------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What burst calls of NCCL 2.18 and later, as nccl.h of NCCL 2.28 declares it.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_CUDA_NCCL_H
#define BURST_RUNTIME_CUDA_NCCL_H

#include "runtime/src/cuda/Driver.h"

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm *ncclComm_t;

enum { NCCL_UNIQUE_ID_BYTES = 128 };
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;

typedef enum { ncclInt8 = 0, ncclUint8 = 1 } ncclDataType_t;

/* The config of NCCL 2.18; newer versions take it and set their own fields to
   the defaults. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char *netName;
  int splitShare;
} ncclConfig_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_SPLIT_NOCOLOR (-1)
// clang-format off
#define NCCL_CONFIG_INITIALIZER                                                \
  {sizeof(ncclConfig_t),  0xcafebeef,            21800,                        \
   NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,        \
   NCCL_CONFIG_UNDEF_INT, NULL,                  NCCL_CONFIG_UNDEF_INT}
// clang-format on

#define BURST_NCCL_FUNCTIONS(F)                                                \
  F(ncclResult_t, ncclGetVersion, (int *version))                              \
  F(const char *, ncclGetErrorString, (ncclResult_t result))                   \
  F(const char *, ncclGetLastError, (ncclComm_t communicator))                 \
  F(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id))                        \
  F(ncclResult_t, ncclCommInitRankConfig,                                      \
    (ncclComm_t * communicator, int ranks, ncclUniqueId id, int rank,          \
     ncclConfig_t *config))                                                    \
  F(ncclResult_t, ncclCommSplit,                                               \
    (ncclComm_t communicator, int color, int key, ncclComm_t *made,            \
     ncclConfig_t *config))                                                    \
  F(ncclResult_t, ncclCommCount, (const ncclComm_t communicator, int *ranks))  \
  F(ncclResult_t, ncclCommUserRank,                                            \
    (const ncclComm_t communicator, int *rank))                                \
  F(ncclResult_t, ncclCommGetAsyncError,                                       \
    (ncclComm_t communicator, ncclResult_t * result))                          \
  F(ncclResult_t, ncclCommFinalize, (ncclComm_t communicator))                 \
  F(ncclResult_t, ncclCommDestroy, (ncclComm_t communicator))                  \
  F(ncclResult_t, ncclCommAbort, (ncclComm_t communicator))                    \
  F(ncclResult_t, ncclGroupStart, (void))                                      \
  F(ncclResult_t, ncclGroupEnd, (void))                                        \
  F(ncclResult_t, ncclSend,                                                    \
    (const void *buffer, size_t count, ncclDataType_t type, int peer,          \
     ncclComm_t communicator, CUstream stream))                                \
  F(ncclResult_t, ncclRecv,                                                    \
    (void *buffer, size_t count, ncclDataType_t type, int peer,                \
     ncclComm_t communicator, CUstream stream))                                \
  F(ncclResult_t, ncclAllGather,                                               \
    (const void *own, void *all, size_t count, ncclDataType_t type,            \
     ncclComm_t communicator, CUstream stream))

// Null where the library is older: of NCCL 2.28.
#define BURST_NCCL_NEW_FUNCTIONS(F)                                            \
  F(ncclResult_t, ncclAlltoAll,                                                \
    (const void *sent, void *received, size_t count, ncclDataType_t type,      \
     ncclComm_t communicator, CUstream stream))

typedef struct burst_nccl {
  const char *path; // of the library; null in a stand-in
  BURST_NCCL_FUNCTIONS(BURST_TABLE_MEMBER)
  BURST_NCCL_NEW_FUNCTIONS(BURST_TABLE_MEMBER)
} burst_nccl;

/* BURST_NCCL_LIBRARY names the library. */
burst_error *burst_nccl_table(const burst_nccl **nccl);

void burst_nccl_stand_in(const burst_nccl *nccl);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_CUDA_NCCL_H
