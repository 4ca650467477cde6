//===- AbiTest.cpp - burst's declarations of CUDA against CUDA's own ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the headers of CUDA and NCCL are, what the runtime declares is compared
// with them: sizes, constants and the parameters of every function.
//
//===----------------------------------------------------------------------===//
#include "runtime/src/cuda/Library.h"

#include <climits>
#include <cstddef>

// First ours, before the headers of CUDA define macros of the same names.
namespace ours {
#include "burst/internal/nvrtc.h"
#include "runtime/src/cuda/Driver.h"
#include "runtime/src/cuda/Nccl.h"
[[maybe_unused]] const ncclConfig_t ncclConfig = NCCL_CONFIG_INITIALIZER;
[[maybe_unused]] const int ncclUndefined = NCCL_CONFIG_UNDEF_INT;
} // namespace ours
#undef NCCL_CONFIG_INITIALIZER
#undef NCCL_CONFIG_UNDEF_INT
#undef NCCL_SPLIT_NOCOLOR

#if __has_include(<cuda.h>)
#include <cuda.h>
#undef cuEventElapsedTime // which is the second version here, called alike
extern "C" decltype(cuEventElapsedTime_v2) cuEventElapsedTime;
static const int hostRegisterPortable = CU_MEMHOSTREGISTER_PORTABLE,
                 hostRegisterMapped = CU_MEMHOSTREGISTER_DEVICEMAP;
#undef CU_MEMHOSTREGISTER_PORTABLE
#undef CU_MEMHOSTREGISTER_DEVICEMAP
#endif
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#endif
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#define HAS_NCCL
#endif

#include <gtest/gtest.h>

#include <type_traits>

namespace {

/// Whether two types are passed alike.
template <typename A, typename B>
constexpr bool alike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
    std::is_class_v<A> == std::is_class_v<B> &&
    std::is_floating_point_v<A> == std::is_floating_point_v<B>;

template <typename A, typename B>
struct Same : std::false_type {};
template <typename RA, typename... A, typename RB, typename... B>
struct Same<RA (*)(A...), RB (*)(B...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return alike<RA, RB> && (alike<A, B> && ...);
    return false;
  }
  static constexpr bool value = check();
};

static_assert(
    Same<int (*)(int, char *), unsigned (*)(unsigned, void *)>::value);
static_assert(!Same<int (*)(int, char *), int (*)(int, long)>::value);
static_assert(!Same<int (*)(int), int (*)(int, int)>::value);

#define CHECK_FUNCTION(result, name, parameters)                               \
  EXPECT_TRUE((Same<decltype(table.name), decltype(&::name)>::value)) << #name;
#define CHECK_VALUE(name)                                                      \
  EXPECT_EQ(static_cast<long>(ours::name), static_cast<long>(::name)) << #name;
#define CHECK_OFFSET(type, field)                                              \
  EXPECT_EQ(offsetof(ours::type, field), offsetof(::type, field));

TEST(AbiTest, Driver) {
#ifdef CUDA_VERSION
  [[maybe_unused]] ours::burst_driver table = {};
  BURST_DRIVER_FUNCTIONS(CHECK_FUNCTION)
  EXPECT_EQ(sizeof(ours::CUlaunchConfig), sizeof(::CUlaunchConfig));
  CHECK_OFFSET(CUlaunchConfig, sharedMemBytes)
  CHECK_OFFSET(CUlaunchConfig, hStream)
  CHECK_OFFSET(CUlaunchConfig, attrs)
  CHECK_OFFSET(CUlaunchConfig, numAttrs)
  EXPECT_EQ(sizeof(ours::CUlaunchAttribute), sizeof(::CUlaunchAttribute));
  CHECK_OFFSET(CUlaunchAttribute, value)
  EXPECT_EQ(sizeof(ours::CUtensorMap), sizeof(::CUtensorMap));
  // 64 from CUDA 12 on, 128 from CUDA 13 on.
  EXPECT_GE(alignof(ours::CUtensorMap), alignof(::CUtensorMap));
  EXPECT_EQ(sizeof(ours::CUDA_MEMCPY2D), sizeof(::CUDA_MEMCPY2D));
  CHECK_OFFSET(CUDA_MEMCPY2D, srcDevice)
  CHECK_OFFSET(CUDA_MEMCPY2D, srcPitch)
  CHECK_OFFSET(CUDA_MEMCPY2D, dstDevice)
  CHECK_OFFSET(CUDA_MEMCPY2D, dstPitch)
  CHECK_OFFSET(CUDA_MEMCPY2D, WidthInBytes)
  CHECK_OFFSET(CUDA_MEMCPY2D, Height)
  EXPECT_EQ(sizeof(ours::CUmemPoolProps), sizeof(::CUmemPoolProps));
  CHECK_OFFSET(CUmemPoolProps, location)
  CHECK_OFFSET(CUmemPoolProps, maxSize)
  EXPECT_EQ(sizeof(ours::CUmemAccessDesc), sizeof(::CUmemAccessDesc));
  EXPECT_EQ(sizeof(ours::CUipcMemHandle), sizeof(::CUipcMemHandle));
  EXPECT_EQ(sizeof(ours::CUipcEventHandle), sizeof(::CUipcEventHandle));
  CHECK_VALUE(CUDA_SUCCESS)
  CHECK_VALUE(CUDA_ERROR_INVALID_VALUE)
  CHECK_VALUE(CUDA_ERROR_OUT_OF_MEMORY)
  CHECK_VALUE(CUDA_ERROR_NOT_INITIALIZED)
  CHECK_VALUE(CUDA_ERROR_NO_DEVICE)
  CHECK_VALUE(CUDA_ERROR_INVALID_DEVICE)
  CHECK_VALUE(CUDA_ERROR_INVALID_IMAGE)
  CHECK_VALUE(CUDA_ERROR_INVALID_CONTEXT)
  CHECK_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU)
  CHECK_VALUE(CUDA_ERROR_INVALID_HANDLE)
  CHECK_VALUE(CUDA_ERROR_NOT_FOUND)
  CHECK_VALUE(CUDA_ERROR_NOT_READY)
  CHECK_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS)
  CHECK_VALUE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
  CHECK_VALUE(CUDA_ERROR_LAUNCH_FAILED)
  CHECK_VALUE(CU_MEMORYTYPE_HOST)
  CHECK_VALUE(CU_MEMORYTYPE_DEVICE)
  CHECK_VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
  CHECK_VALUE(CU_MEM_ALLOCATION_TYPE_PINNED)
  CHECK_VALUE(CU_MEM_HANDLE_TYPE_NONE)
  CHECK_VALUE(CU_MEM_LOCATION_TYPE_DEVICE)
  CHECK_VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
  CHECK_VALUE(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
  CHECK_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
  CHECK_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
  CHECK_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
  CHECK_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
  CHECK_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
  CHECK_VALUE(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
  CHECK_VALUE(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED)
  CHECK_VALUE(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
  CHECK_VALUE(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
  CHECK_VALUE(CU_FUNC_ATTRIBUTE_NUM_REGS)
  CHECK_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
  CHECK_VALUE(CU_STREAM_NON_BLOCKING)
  CHECK_VALUE(CU_EVENT_DISABLE_TIMING)
  CHECK_VALUE(CU_EVENT_INTERPROCESS)
  CHECK_VALUE(CU_STREAM_WAIT_VALUE_GEQ)
  CHECK_VALUE(CU_STREAM_WAIT_VALUE_EQ)
  CHECK_VALUE(CU_STREAM_WRITE_VALUE_DEFAULT)
  CHECK_VALUE(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
  EXPECT_EQ(int(ours::CU_MEMHOSTREGISTER_PORTABLE), hostRegisterPortable);
  EXPECT_EQ(int(ours::CU_MEMHOSTREGISTER_DEVICEMAP), hostRegisterMapped);
  CHECK_VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL)
  CHECK_VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
  CHECK_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED)
  CHECK_VALUE(CU_STREAM_CAPTURE_STATUS_NONE)
  CHECK_VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE)
  CHECK_VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED)
  CHECK_VALUE(CU_LAUNCH_ATTRIBUTE_IGNORE)
  CHECK_VALUE(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
  CHECK_VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_UINT8)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_UINT16)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_INT32)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_INT64)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_FLOAT16)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_FLOAT32)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_FLOAT64)
  CHECK_VALUE(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16)
  CHECK_VALUE(CU_TENSOR_MAP_INTERLEAVE_NONE)
  CHECK_VALUE(CU_TENSOR_MAP_SWIZZLE_NONE)
  CHECK_VALUE(CU_TENSOR_MAP_SWIZZLE_32B)
  CHECK_VALUE(CU_TENSOR_MAP_SWIZZLE_64B)
  CHECK_VALUE(CU_TENSOR_MAP_SWIZZLE_128B)
  CHECK_VALUE(CU_TENSOR_MAP_L2_PROMOTION_NONE)
  CHECK_VALUE(CU_TENSOR_MAP_L2_PROMOTION_L2_64B)
  CHECK_VALUE(CU_TENSOR_MAP_L2_PROMOTION_L2_128B)
  CHECK_VALUE(CU_TENSOR_MAP_L2_PROMOTION_L2_256B)
  CHECK_VALUE(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
  CHECK_VALUE(CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
#else
  GTEST_SKIP() << "no cuda.h";
#endif
}

TEST(AbiTest, Nvrtc) {
#ifdef __NVRTC_H__
  [[maybe_unused]] ours::burst_nvrtc table = {};
  BURST_NVRTC_FUNCTIONS(CHECK_FUNCTION)
  CHECK_VALUE(NVRTC_SUCCESS)
  CHECK_VALUE(NVRTC_ERROR_OUT_OF_MEMORY)
  CHECK_VALUE(NVRTC_ERROR_PROGRAM_CREATION_FAILURE)
  CHECK_VALUE(NVRTC_ERROR_INVALID_INPUT)
  CHECK_VALUE(NVRTC_ERROR_INVALID_PROGRAM)
  CHECK_VALUE(NVRTC_ERROR_INVALID_OPTION)
  CHECK_VALUE(NVRTC_ERROR_COMPILATION)
  CHECK_VALUE(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)
  CHECK_VALUE(NVRTC_ERROR_INTERNAL_ERROR)
#else
  GTEST_SKIP() << "no nvrtc.h";
#endif
}

TEST(AbiTest, Nccl) {
#ifdef HAS_NCCL
  [[maybe_unused]] ours::burst_nccl table = {};
  BURST_NCCL_FUNCTIONS(CHECK_FUNCTION)
#if NCCL_VERSION_CODE >= 22800
  BURST_NCCL_NEW_FUNCTIONS(CHECK_FUNCTION)
#endif
  EXPECT_EQ(sizeof(ours::ncclUniqueId), sizeof(::ncclUniqueId));
  CHECK_OFFSET(ncclConfig_t, magic)
  CHECK_OFFSET(ncclConfig_t, version)
  CHECK_OFFSET(ncclConfig_t, blocking)
  CHECK_OFFSET(ncclConfig_t, cgaClusterSize)
  CHECK_OFFSET(ncclConfig_t, minCTAs)
  CHECK_OFFSET(ncclConfig_t, maxCTAs)
  CHECK_OFFSET(ncclConfig_t, netName)
  CHECK_OFFSET(ncclConfig_t, splitShare)
  ::ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(ours::ncclConfig.magic, theirs.magic);
  EXPECT_LE(ours::ncclConfig.version, theirs.version);
  EXPECT_EQ(ours::ncclConfig.splitShare, theirs.splitShare);
  EXPECT_EQ(ours::ncclUndefined, NCCL_CONFIG_UNDEF_INT);
  CHECK_VALUE(ncclSuccess)
  CHECK_VALUE(ncclUnhandledCudaError)
  CHECK_VALUE(ncclSystemError)
  CHECK_VALUE(ncclInternalError)
  CHECK_VALUE(ncclInvalidArgument)
  CHECK_VALUE(ncclInvalidUsage)
  CHECK_VALUE(ncclRemoteError)
  CHECK_VALUE(ncclInProgress)
  CHECK_VALUE(ncclInt8)
  CHECK_VALUE(ncclUint8)
#else
  GTEST_SKIP() << "no nccl.h";
#endif
}

} // namespace
