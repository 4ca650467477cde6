//===- Driver.h - The driver of CUDA ----------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What burst calls of the driver of CUDA 12 and later, as cuda.h of CUDA 13.0
// declares it. The names are those of the library: cuda.h makes cuMemAlloc
// cuMemAlloc_v2.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_RUNTIME_CUDA_DRIVER_H
#define BURST_RUNTIME_CUDA_DRIVER_H

#include "burst/burst.h"
#include "burst/internal/table.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray; // of which burst has none
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

// Results that burst tells apart.
typedef enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_LAUNCH_FAILED = 719
} CUresult;

typedef enum {
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
  CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
  CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127
} CUdevice_attribute;

typedef enum {
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
} CUfunction_attribute;

enum { CU_STREAM_NON_BLOCKING = 1 };
enum {
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_EVENT_INTERPROCESS = 4
};
enum { CU_STREAM_WAIT_VALUE_GEQ = 0, CU_STREAM_WAIT_VALUE_EQ = 1 };
enum { CU_STREAM_WRITE_VALUE_DEFAULT = 0 };
enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };
enum { CU_MEMHOSTREGISTER_PORTABLE = 1, CU_MEMHOSTREGISTER_DEVICEMAP = 2 };

typedef enum {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
} CUstreamCaptureMode;

typedef enum {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
} CUstreamCaptureStatus;

typedef enum {
  CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
} CUlaunchAttributeID;

typedef union {
  char pad[64];
  struct {
    unsigned int x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
} CUlaunchAttributeValue;

typedef struct {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

enum { CU_IPC_HANDLE_SIZE = 64 };
typedef struct {
  char reserved[CU_IPC_HANDLE_SIZE];
} CUipcMemHandle;
typedef struct {
  char reserved[CU_IPC_HANDLE_SIZE];
} CUipcEventHandle;

typedef enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 } CUmemorytype;
typedef enum { CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2 } CUpointer_attribute;

// `height` rows of `width` bytes; a pitch is the distance of two rows.
typedef struct {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 } CUmemAllocationType;
typedef enum { CU_MEM_HANDLE_TYPE_NONE = 0 } CUmemAllocationHandleType;
typedef enum { CU_MEM_LOCATION_TYPE_DEVICE = 1 } CUmemLocationType;
typedef enum { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 } CUmemAccess_flags;
typedef enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 } CUmemPool_attribute;
typedef struct {
  CUmemLocationType type;
  int id;
} CUmemLocation;
typedef struct {
  CUmemLocation location;
  CUmemAccess_flags flags;
} CUmemAccessDesc;
typedef struct {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

enum { CU_TENSOR_MAP_NUM_QWORDS = 16 };
typedef struct {
  uint64_t opaque[CU_TENSOR_MAP_NUM_QWORDS];
} __attribute__((aligned(128))) CUtensorMap;

typedef enum {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
  CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
  CU_TENSOR_MAP_DATA_TYPE_INT64 = 5,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9
} CUtensorMapDataType;
typedef enum { CU_TENSOR_MAP_INTERLEAVE_NONE = 0 } CUtensorMapInterleave;
typedef enum {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B = 1,
  CU_TENSOR_MAP_SWIZZLE_64B = 2,
  CU_TENSOR_MAP_SWIZZLE_128B = 3
} CUtensorMapSwizzle;
typedef enum {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3
} CUtensorMapL2promotion;
typedef enum {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA = 1
} CUtensorMapFloatOOBfill;

#define BURST_DRIVER_FUNCTIONS(F)                                              \
  F(CUresult, cuGetErrorName, (CUresult result, const char **name))            \
  F(CUresult, cuGetErrorString, (CUresult result, const char **text))          \
  F(CUresult, cuInit, (unsigned int flags))                                    \
  F(CUresult, cuDriverGetVersion, (int *version))                              \
  /* devices */                                                                \
  F(CUresult, cuDeviceGetCount, (int *count))                                  \
  F(CUresult, cuDeviceGet, (CUdevice * device, int ordinal))                   \
  F(CUresult, cuDeviceGetName, (char *name, int bytes, CUdevice device))       \
  F(CUresult, cuDeviceGetAttribute,                                            \
    (int *value, CUdevice_attribute attribute, CUdevice device))               \
  F(CUresult, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))           \
  F(CUresult, cuDevicePrimaryCtxRetain,                                        \
    (CUcontext * context, CUdevice device))                                    \
  F(CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                 \
  F(CUresult, cuCtxSetCurrent, (CUcontext context))                            \
  F(CUresult, cuCtxGetCurrent, (CUcontext * context))                          \
  F(CUresult, cuDeviceCanAccessPeer,                                           \
    (int *can, CUdevice device, CUdevice peer))                                \
  F(CUresult, cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags))     \
  /* kernels */                                                                \
  F(CUresult, cuModuleLoadData, (CUmodule * module, const void *image))        \
  F(CUresult, cuModuleUnload, (CUmodule module))                               \
  F(CUresult, cuModuleGetFunction,                                             \
    (CUfunction * function, CUmodule module, const char *name))                \
  F(CUresult, cuFuncGetAttribute,                                              \
    (int *value, CUfunction_attribute attribute, CUfunction function))         \
  F(CUresult, cuFuncSetAttribute,                                              \
    (CUfunction function, CUfunction_attribute attribute, int value))          \
  F(CUresult, cuOccupancyMaxActiveBlocksPerMultiprocessor,                     \
    (int *blocks, CUfunction function, int threads, size_t shared_bytes))      \
  F(CUresult, cuLaunchKernelEx,                                                \
    (const CUlaunchConfig *config, CUfunction function, void **parameters,     \
     void **extra))                                                            \
  F(CUresult, cuTensorMapEncodeTiled,                                          \
    (CUtensorMap * map, CUtensorMapDataType type, uint32_t rank,               \
     void *address, const uint64_t *sizes, const uint64_t *strides,            \
     const uint32_t *box, const uint32_t *element_strides,                     \
     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,             \
     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill))          \
  /* memory */                                                                 \
  F(CUresult, cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes))             \
  F(CUresult, cuMemFree_v2, (CUdeviceptr memory))                              \
  F(CUresult, cuMemPoolCreate,                                                 \
    (CUmemoryPool * pool, const CUmemPoolProps *properties))                   \
  F(CUresult, cuMemPoolDestroy, (CUmemoryPool pool))                           \
  F(CUresult, cuMemPoolSetAttribute,                                           \
    (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))           \
  F(CUresult, cuMemPoolSetAccess,                                              \
    (CUmemoryPool pool, const CUmemAccessDesc *accesses, size_t count))        \
  F(CUresult, cuMemAllocFromPoolAsync,                                         \
    (CUdeviceptr * memory, size_t bytes, CUmemoryPool pool, CUstream stream))  \
  F(CUresult, cuMemFreeAsync, (CUdeviceptr memory, CUstream stream))           \
  F(CUresult, cuMemAllocHost_v2, (void **memory, size_t bytes))                \
  F(CUresult, cuMemFreeHost, (void *memory))                                   \
  F(CUresult, cuMemHostRegister_v2,                                            \
    (void *memory, size_t bytes, unsigned int flags))                          \
  F(CUresult, cuMemHostUnregister, (void *memory))                             \
  F(CUresult, cuMemHostGetDevicePointer_v2,                                    \
    (CUdeviceptr * mapped, void *memory, unsigned int flags))                  \
  F(CUresult, cuMemcpyHtoDAsync_v2,                                            \
    (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))         \
  F(CUresult, cuMemcpyDtoHAsync_v2,                                            \
    (void *to, CUdeviceptr from, size_t bytes, CUstream stream))               \
  F(CUresult, cuMemcpyDtoDAsync_v2,                                            \
    (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))         \
  F(CUresult, cuMemcpy2DAsync_v2,                                              \
    (const CUDA_MEMCPY2D *copy, CUstream stream))                              \
  F(CUresult, cuMemcpyPeerAsync,                                               \
    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,                   \
     CUcontext from_context, size_t bytes, CUstream stream))                   \
  F(CUresult, cuPointerGetAttribute,                                           \
    (void *value, CUpointer_attribute attribute, CUdeviceptr memory))          \
  F(CUresult, cuMemsetD8Async,                                                 \
    (CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream))  \
  F(CUresult, cuIpcGetMemHandle,                                               \
    (CUipcMemHandle * handle, CUdeviceptr memory))                             \
  F(CUresult, cuIpcOpenMemHandle_v2,                                           \
    (CUdeviceptr * memory, CUipcMemHandle handle, unsigned int flags))         \
  F(CUresult, cuIpcCloseMemHandle, (CUdeviceptr memory))                       \
  /* streams and events */                                                     \
  F(CUresult, cuStreamCreate, (CUstream * stream, unsigned int flags))         \
  F(CUresult, cuStreamCreateWithPriority,                                      \
    (CUstream * stream, unsigned int flags, int priority))                     \
  F(CUresult, cuStreamDestroy_v2, (CUstream stream))                           \
  F(CUresult, cuStreamSynchronize, (CUstream stream))                          \
  F(CUresult, cuStreamQuery, (CUstream stream))                                \
  F(CUresult, cuStreamGetCtx, (CUstream stream, CUcontext * context))          \
  F(CUresult, cuStreamWaitEvent,                                               \
    (CUstream stream, CUevent event, unsigned int flags))                      \
  F(CUresult, cuStreamWriteValue32_v2,                                         \
    (CUstream stream, CUdeviceptr memory, uint32_t value, unsigned int flags)) \
  F(CUresult, cuStreamWaitValue32_v2,                                          \
    (CUstream stream, CUdeviceptr memory, uint32_t value, unsigned int flags)) \
  F(CUresult, cuEventCreate, (CUevent * event, unsigned int flags))            \
  F(CUresult, cuEventRecord, (CUevent event, CUstream stream))                 \
  F(CUresult, cuEventQuery, (CUevent event))                                   \
  F(CUresult, cuEventSynchronize, (CUevent event))                             \
  F(CUresult, cuEventElapsedTime,                                              \
    (float *milliseconds, CUevent begin, CUevent end))                         \
  F(CUresult, cuEventDestroy_v2, (CUevent event))                              \
  F(CUresult, cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event)) \
  F(CUresult, cuIpcOpenEventHandle,                                            \
    (CUevent * event, CUipcEventHandle handle))                                \
  /* graphs */                                                                 \
  F(CUresult, cuStreamBeginCapture_v2,                                         \
    (CUstream stream, CUstreamCaptureMode mode))                               \
  F(CUresult, cuStreamEndCapture, (CUstream stream, CUgraph * graph))          \
  F(CUresult, cuStreamIsCapturing,                                             \
    (CUstream stream, CUstreamCaptureStatus * status))                         \
  F(CUresult, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode)) \
  F(CUresult, cuGraphInstantiateWithFlags,                                     \
    (CUgraphExec * executable, CUgraph graph, unsigned long long flags))       \
  F(CUresult, cuGraphLaunch, (CUgraphExec executable, CUstream stream))        \
  F(CUresult, cuGraphExecDestroy, (CUgraphExec executable))                    \
  F(CUresult, cuGraphDestroy, (CUgraph graph))

typedef struct burst_driver {
  const char *path; // of the library; null in a stand-in
  BURST_DRIVER_FUNCTIONS(BURST_TABLE_MEMBER)
} burst_driver;

/* BURST_CUDA_DRIVER_LIBRARY names the library. */
burst_error *burst_driver_table(const burst_driver **driver);

void burst_driver_stand_in(const burst_driver *driver);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_CUDA_DRIVER_H
