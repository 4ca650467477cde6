//===- DriverTest.cpp - The emulated driver, and faults planted for it ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Harness.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

using namespace burst::standins;

namespace {

class EmulatedDriver : public Emulated {
protected:
  using Emulated::Emulated;

  std::vector<float> host = std::vector<float>(64);
  size_t bytes = 256;
  void SetUp() override {
    std::iota(host.begin(), host.end(), 0.F);
    a = memory(bytes);
    s = stream();
    t = stream();
  }
  void fill(CUdeviceptr to, CUstream on) {
    OK(cu->cuMemcpyHtoDAsync_v2(to, host.data(), bytes, on));
  }
  std::vector<float> got(CUdeviceptr from, CUstream on) {
    std::vector<float> result(64);
    EXPECT_EQ(cu->cuMemcpyDtoHAsync_v2(result.data(), from, bytes, on), 0);
    EXPECT_EQ(cu->cuStreamSynchronize(on), 0);
    return result;
  }
  CUdeviceptr a = 0;
  CUstream s = nullptr, t = nullptr;
};

TEST_F(EmulatedDriver, AddsVectors) {
  CUdeviceptr b = memory(bytes), out = memory(bytes);
  fill(a, s);
  fill(b, s);
  unsigned n = 64;
  OK(launch("add", 32, s, {&a, &b, &out, &n}, 3));
  std::vector<float> result = got(out, s);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(result[i], 2 * float(i));
}

TEST_F(EmulatedDriver, IsLate) {
  std::vector<float> result(64, -1);
  CUevent done = event();
  fill(a, s);
  OK(cu->cuMemcpyDtoHAsync_v2(result.data(), a, bytes, s));
  OK(cu->cuEventRecord(done, s));
  EXPECT_EQ(result[5], -1);
  EXPECT_EQ(cu->cuEventQuery(done), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cu->cuStreamQuery(t), CUDA_SUCCESS);
  int queries = 0;
  while (cu->cuEventQuery(done) == CUDA_ERROR_NOT_READY)
    ++queries;
  EXPECT_EQ(queries, 2);
  EXPECT_EQ(result[5], 5);
}

TEST_F(EmulatedDriver, WaitsForEvents) {
  CUdeviceptr b = memory(bytes);
  CUevent filled = event();
  fill(a, s);
  OK(cu->cuEventRecord(filled, s));
  OK(cu->cuStreamWaitEvent(t, filled, 0));
  OK(cu->cuEventDestroy_v2(filled));
  OK(cu->cuMemcpyDtoDAsync_v2(b, a, bytes, t));
  EXPECT_EQ(got(b, t), host);
}

TEST_F(EmulatedDriver, CopiesRows) {
  // Rows 1 and 2 of 16 floats of the host become columns 4 to 19 of 32.
  OK(cu->cuMemsetD8Async(a, 0, bytes, s));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcY = 1;
  copy.srcPitch = 64;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstXInBytes = 16;
  copy.dstPitch = 128;
  copy.WidthInBytes = 64;
  copy.Height = 2;
  OK(cu->cuMemcpy2DAsync_v2(&copy, s));
  std::vector<float> result = got(a, s);
  for (size_t row = 0; row < 2; ++row)
    for (size_t column = 0; column < 32; ++column)
      EXPECT_EQ(result[row * 32 + column],
                column >= 4 && column < 20 ? float((row + 1) * 16 + column - 4)
                                           : 0);
}

TEST_F(EmulatedDriver, TakesPtxThatFits) {
  CUmodule loaded = nullptr;
  EXPECT_EQ(cu->cuModuleLoadData(&loaded, "\177ELF..."),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string text = kernels;
  text.replace(text.find("sm_80"), 5, "sm_90");
  EXPECT_EQ(cu->cuModuleLoadData(&loaded, text.c_str()), 218);
  text.replace(text.find("sm_90"), 5, "sm_75");
  OK(cu->cuModuleLoadData(&loaded, text.c_str()));
  CUfunction found = nullptr;
  EXPECT_EQ(cu->cuModuleGetFunction(&found, loaded, "none"),
            CUDA_ERROR_NOT_FOUND);
  OK(cu->cuModuleUnload(loaded));
  text.replace(text.find("add.f32"), 7, "odd.f32");
  EXPECT_EQ(cu->cuModuleLoadData(&loaded, text.c_str()), 218);
}

TEST_F(EmulatedDriver, ReplaysGraphs) {
  CUdeviceptr b = memory(bytes), out = memory(bytes);
  fill(a, s);
  OK(cu->cuMemsetD8Async(b, 0, bytes, s));
  unsigned n = 64;
  CUevent forked = event(), joined = event();
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUstreamCaptureStatus status;
  OK(cu->cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cu->cuEventRecord(forked, s));
  OK(cu->cuStreamWaitEvent(t, forked, 0));
  OK(cu->cuStreamIsCapturing(t, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(launch("add", 64, t, {&a, &b, &out, &n}));
  OK(cu->cuEventRecord(joined, t));
  OK(cu->cuStreamWaitEvent(s, joined, 0));
  OK(cu->cuMemcpyDtoDAsync_v2(b, out, bytes, s));
  OK(cu->cuStreamEndCapture(s, &graph));
  OK(cu->cuStreamIsCapturing(t, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cu->cuGraphInstantiateWithFlags(&executable, graph, 0));
  OK(cu->cuGraphDestroy(graph));
  for (int i = 0; i < 3; ++i)
    OK(cu->cuGraphLaunch(executable, s));
  EXPECT_EQ(got(b, s)[7], 21);
  OK(cu->cuGraphExecDestroy(executable));
}

TEST_F(EmulatedDriver, RefusesWhatCaptureDoes) {
  CUgraph graph = nullptr;
  CUevent forked = event();
  OK(cu->cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(cu->cuStreamSynchronize(s), 900);
  EXPECT_EQ(cu->cuStreamEndCapture(s, &graph), 901);
  OK(cu->cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cu->cuEventRecord(forked, s));
  OK(cu->cuStreamWaitEvent(t, forked, 0));
  OK(cu->cuMemsetD8Async(a, 0, bytes, t));
  EXPECT_EQ(cu->cuStreamEndCapture(s, &graph), 904); // t was not joined
}

TEST_F(EmulatedDriver, OrdersByValues) {
  CUdeviceptr flag = memory(4), b = memory(bytes);
  OK(cu->cuMemsetD8Async(flag, 0, 4, s));
  OK(cu->cuStreamSynchronize(s));
  OK(cu->cuStreamWaitValue32_v2(t, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cu->cuMemcpyDtoDAsync_v2(b, a, bytes, t));
  fill(a, s);
  OK(cu->cuStreamWriteValue32_v2(s, flag, 3, CU_STREAM_WRITE_VALUE_DEFAULT));
  EXPECT_EQ(got(b, t), host);
}

TEST_F(EmulatedDriver, CountsWhatIsAlive) {
  int before = burst_emulated_alive();
  CUevent made = event();
  CUdeviceptr ordered = memoryOn(s, 64);
  EXPECT_EQ(burst_emulated_alive(), before + 2);
  OK(cu->cuEventDestroy_v2(made));
  OK(cu->cuMemFreeAsync(ordered, s));
  EXPECT_EQ(burst_emulated_alive(), before + 1);
  OK(cu->cuStreamSynchronize(s));
  EXPECT_EQ(burst_emulated_alive(), before);
}

TEST_F(EmulatedDriver, RunsThreadsOfTheirOwn) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  CUcontext context = nullptr;
  OK(cu->cuCtxGetCurrent(&context));
  kernel("scale");
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      cu->cuCtxSetCurrent(context);
      CUstream own = stream();
      for (int round = 0; round < 10; ++round) {
        CUdeviceptr buffer = memoryOn(own, bytes);
        cu->cuMemcpyHtoDAsync_v2(buffer, host.data(), bytes, own);
        launch("scale", 64, own, {&buffer});
        right += got(buffer, own)[9] == 18;
        cu->cuMemFreeAsync(buffer, own);
      }
      cu->cuStreamDestroy_v2(own);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 40);
}

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

using PlantedFault = EmulatedDriver;

TEST_F(PlantedFault, MissingEventWait) {
  CUdeviceptr b = memory(bytes);
  fill(a, s);
  OK(cu->cuMemcpyDtoDAsync_v2(b, a, bytes, t));
  EXPECT_EQ(cu->cuStreamSynchronize(t), CUDA_SUCCESS); // too early
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race: copy of 256 bytes from host to GPU (operation 1 of "
               "stream 2 of GPU 0) writes bytes 0 to 256 of buffer 1");
}

TEST_F(PlantedFault, EventRecordedTooEarly) {
  CUdeviceptr b = memory(bytes);
  CUevent filled = event();
  OK(cu->cuEventRecord(filled, s));
  fill(a, s);
  OK(cu->cuStreamWaitEvent(t, filled, 0));
  OK(cu->cuMemcpyDtoDAsync_v2(b, a, bytes, t));
  OK(cu->cuStreamSynchronize(t));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("is not ordered after copy of 256 bytes from GPU to GPU");
}

TEST_F(PlantedFault, KernelOverlapsCopy) {
  fill(a, s);
  OK(cu->cuStreamSynchronize(s));
  OK(launch("scale", 32, s, {&a}));
  // The kernel does not touch the second half.
  OK(cu->cuMemsetD8Async(a + 128, 0, 128, t));
  OK(cu->cuStreamSynchronize(t));
  OK(cu->cuStreamSynchronize(s));
  OK(launch("scale", 33, s, {&a}));
  OK(cu->cuMemsetD8Async(a + 128, 0, 128, t));
  OK(cu->cuStreamSynchronize(t));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("writes bytes 128 to 132 of buffer 1");
}

TEST_F(PlantedFault, HostMemoryIsUsedAgain) {
  fill(a, s);
  host[3] = 7;
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("changed too early: copy of 256 bytes from host to GPU");
}

TEST_F(PlantedFault, TwoCopiesToTheHost) {
  fill(a, s);
  OK(cu->cuStreamSynchronize(s));
  std::vector<float> result(64);
  OK(cu->cuMemcpyDtoHAsync_v2(result.data(), a, bytes, s));
  OK(cu->cuMemcpyDtoHAsync_v2(result.data() + 60, a, 16, t));
  OK(cu->cuStreamSynchronize(t));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("writes bytes 240 to 256 of the host's memory");
}

TEST_F(PlantedFault, FreeWhileInUse) {
  fill(a, s);
  EXPECT_EQ(cu->cuMemFree_v2(a), CUDA_SUCCESS); // too early
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("which was freed by cuMemFree (by the host)");
}

TEST_F(PlantedFault, FreeOnAnotherStream) {
  CUdeviceptr b = memoryOn(s, bytes);
  fill(b, s);
  OK(cu->cuStreamSynchronize(s));
  OK(launch("scale", 64, s, {&b}));
  OK(cu->cuMemFreeAsync(b, t));
  OK(cu->cuStreamSynchronize(t));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("which was freed by free (operation 1 of stream 3 of GPU 0)");
}

TEST_F(PlantedFault, FreeNotAfterUse) {
  CUdeviceptr b = memoryOn(s, bytes);
  fill(b, s);
  OK(cu->cuStreamSynchronize(s));
  OK(cu->cuMemFreeAsync(b, s));
  OK(launch("scale", 64, t, {&b}));
  OK(cu->cuStreamSynchronize(t));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race: free (operation 3 of stream 2 of GPU 0)");
}

TEST_F(PlantedFault, UseAfterFree) {
  CUdeviceptr b = memoryOn(s, bytes);
  OK(cu->cuMemFreeAsync(b, s));
  fill(b, s);
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("use after free: copy of 256 bytes from host to GPU");
}

TEST_F(PlantedFault, UseBeforeAllocation) {
  CUdeviceptr b = memoryOn(s, bytes);
  fill(b, t);
  OK(cu->cuStreamSynchronize(t));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race: allocation of 256 bytes");
}

TEST_F(PlantedFault, CopyPastTheEnd) {
  OK(cu->cuMemsetD8Async(a + 128, 0, bytes, s));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("out of bounds: fill of 256 bytes (operation 1 of stream 2 of "
               "GPU 0) writes bytes 128 to 384 of buffer 1");
  EXPECT_EQ(cu->cuMemsetD8Async(a, 0, bytes, t), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(PlantedFault, KernelPastTheEnd) {
  fill(a, s);
  OK(launch("scale", 65, s, {&a}));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("out of bounds: read of 4 bytes at 256 of buffer 1");
}

TEST_F(PlantedFault, KernelReadsWhatNothingWrote) {
  CUdeviceptr b = memory(bytes);
  OK(cu->cuMemcpyDtoDAsync_v2(b, a, bytes, s));
  OK(launch("scale", 64, s, {&b}));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("uninitialised: read of bytes that nothing has written");
}

TEST_F(PlantedFault, KernelRaces) {
  OK(launch("collide", 64, s, {&a}));
  EXPECT_EQ(cu->cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
  expectReport("race: write is not ordered with an earlier write");
}

TEST_F(PlantedFault, AllocationFails) {
  burst_emulated_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY);
  memory(64);
  CUdeviceptr none = 0;
  EXPECT_EQ(cu->cuMemAlloc_v2(&none, 64), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu->cuMemAlloc_v2(&none, size_t(5) << 30),
            CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(PlantedFault, KernelNeverEnds) {
  fill(a, s);
  burst_emulated_fail("cuLaunchKernelEx@0", 1, BURST_EMULATED_NEVER);
  OK(launch("scale", 64, s, {&a}));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(cu->cuStreamQuery(s), CUDA_ERROR_NOT_READY);
}

class TwoGpus : public EmulatedDriver {
protected:
  TwoGpus() : EmulatedDriver({{"BURST_EMULATED_GPUS", "2"}}) {}
};

TEST_F(TwoGpus, PeerAccessMustBeEnabled) {
  fill(a, s);
  OK(cu->cuStreamSynchronize(s));
  CUcontext first = nullptr;
  OK(cu->cuCtxGetCurrent(&first));
  enter(1);
  module = nullptr;
  CUstream own = stream();
  CUdeviceptr b = memory(bytes);
  OK(cu->cuMemcpyDtoDAsync_v2(b, a, bytes, own));
  EXPECT_EQ(got(b, own), host);
  OK(cu->cuCtxEnablePeerAccess(first, 0));
  OK(launch("scale", 64, own, {&a}));
  EXPECT_EQ(got(a, own)[9], 18);
}

TEST_F(TwoGpus, PeerAccessIsNot) {
  fill(a, s);
  OK(cu->cuStreamSynchronize(s));
  enter(1);
  module = nullptr;
  CUstream own = stream();
  OK(launch("scale", 64, own, {&a}));
  EXPECT_EQ(cu->cuStreamSynchronize(own), CUDA_ERROR_ILLEGAL_ADDRESS);
  expectReport("no peer access: kernel scale");
}

/// What is right stays right in any order that is legal.
class AnyOrder : public EmulatedDriver,
                 public testing::WithParamInterface<int> {
protected:
  AnyOrder()
      : EmulatedDriver({{"BURST_EMULATED_SEED", std::to_string(GetParam())}}) {}
};

TEST_P(AnyOrder, GivesTheSame) {
  CUdeviceptr b = memory(bytes), out = memory(bytes);
  CUevent filled = event(), added = event();
  unsigned n = 64;
  for (int round = 0; round < 5; ++round) {
    fill(a, s);
    OK(cu->cuEventRecord(filled, s));
    OK(cu->cuMemcpyHtoDAsync_v2(b, host.data(), bytes, t));
    OK(cu->cuStreamWaitEvent(t, filled, 0));
    OK(launch("add", 32, t, {&a, &b, &out, &n}, 2));
    OK(cu->cuEventRecord(added, t));
    OK(cu->cuStreamWaitEvent(s, added, 0));
  }
  EXPECT_EQ(got(out, s)[9], 18);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyOrder, testing::Values(1, 2, 3, 4));

} // namespace
