//===- GpuTest.cpp - Tests of what runs on GPUs ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/cuda/Gpu.h"
#include "Harness.h"
#include "StandInDriver.h"

#include <filesystem>
#include <numeric>

using namespace burst::test;

namespace {

/// The arguments of a kernel that multiplies numbers by a factor.
struct ScaleArguments {
  CUdeviceptr numbers;
  float factor;
  int count;
};
constexpr burst_gpu_parameter scaleParameters[] = {
    {offsetof(ScaleArguments, numbers), sizeof(CUdeviceptr), nullptr},
    {offsetof(ScaleArguments, factor), sizeof(float), nullptr},
    {offsetof(ScaleArguments, count), sizeof(int), nullptr}};

class Gpu : public testing::Test {
protected:
  explicit Gpu(std::vector<int> capabilities = {90})
      : driver(std::move(capabilities)) {
    scale.name = "scale";
    scale.threads = 128;
    scale.argument_bytes = sizeof(ScaleArguments);
    scale.num_parameters = 3;
    scale.parameters = scaleParameters;
    scale.num_binaries = 1;
    scale.binaries = &binary;
    driver.addKernel("scale", {8, 4, 4}, [this](const Launch &launch) {
      launches.push_back(launch);
      auto *numbers =
          reinterpret_cast<float *>(launch.parameter<CUdeviceptr>(0));
      for (int i = 0; i < launch.parameter<int>(2); ++i)
        numbers[i] *= launch.parameter<float>(1);
    });
  }

  void SetUp() override { ASSERT_EQ(take(burst_gpu_create(0, &gpu)), ""); }
  void TearDown() override {
    burst_gpu_destroy(gpu);
    EXPECT_EQ(driver.alive(), 0);
    EXPECT_EQ(driver.current(), -1);
  }

  CUstream makeStream() {
    CUstream stream = nullptr;
    EXPECT_EQ(take(burst_gpu_stream_create(gpu, &stream)), "");
    return stream;
  }

  StandInDriver driver;
  burst_gpu *gpu = nullptr;
  burst_gpu_binary binary = binaryOf("compute_80", "scale ");
  burst_gpu_kernel scale = {};
  std::vector<Launch> launches;
};

TEST_F(Gpu, TellsWhatItIs) {
  const burst_gpu_properties *properties = burst_gpu_get_properties(gpu);
  EXPECT_EQ(properties->ordinal, 0);
  EXPECT_STREQ(properties->name, "stand-in 0");
  EXPECT_EQ(properties->major, 9);
  EXPECT_EQ(properties->minor, 0);
  EXPECT_EQ(properties->multiprocessors, 132);
  EXPECT_EQ(properties->shared_bytes, 227 << 10);
  EXPECT_TRUE(properties->tensor_maps);
}

TEST_F(Gpu, RunsAKernelOnUploadedNumbers) {
  CUstream stream = makeStream();
  burst_gpu_module *module;
  ASSERT_EQ(take(burst_gpu_module_load(gpu, 1, &scale, &module)), "");
  std::vector<float> in(100), out(100);
  std::iota(in.begin(), in.end(), 0.f);
  size_t bytes = in.size() * sizeof(float);
  CUdeviceptr memory;
  ASSERT_EQ(take(burst_gpu_allocate(gpu, bytes, stream, &memory)), "");
  EXPECT_EQ(take(burst_gpu_upload(gpu, memory, in.data(), bytes, stream)), "");
  ScaleArguments arguments = {memory, 3, 100};
  EXPECT_EQ(take(burst_gpu_launch(module, 0, 8, &arguments, stream)), "");
  arguments = {}; // they were copied
  EXPECT_EQ(take(burst_gpu_download(gpu, out.data(), memory, bytes, stream)),
            "");
  EXPECT_EQ(take(burst_gpu_free(gpu, memory, stream)), "");
  EXPECT_EQ(out[2], 0) << "nothing was waited for";
  EXPECT_EQ(take(burst_gpu_synchronize(gpu, stream)), "");
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], 3 * in[i]);
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches[0].config.gridDimX, 8U);
  EXPECT_EQ(launches[0].config.gridDimY, 1U);
  EXPECT_EQ(launches[0].config.blockDimX, 128U);
  EXPECT_EQ(launches[0].config.hStream, stream);
  EXPECT_TRUE(launches[0].attributes.empty());
  burst_gpu_module_unload(module);
  burst_gpu_stream_destroy(gpu, stream);
}

TEST_F(Gpu, OrdersStreamsByEvents) {
  CUstream first = makeStream(), second = makeStream();
  CUevent event;
  ASSERT_EQ(take(burst_gpu_event_create(gpu, false, &event)), "");
  CUdeviceptr memory;
  ASSERT_EQ(take(burst_gpu_allocate(gpu, 2, first, &memory)), "");
  EXPECT_EQ(take(burst_gpu_fill(gpu, memory, 7, 1, first)), "");
  EXPECT_EQ(take(burst_gpu_record(gpu, event, first)), "");
  EXPECT_EQ(take(burst_gpu_fill(gpu, memory + 1, 8, 1, first)), "");
  bool done = true;
  EXPECT_EQ(take(burst_gpu_is_done(gpu, event, &done)), "");
  EXPECT_FALSE(done);
  EXPECT_EQ(take(burst_gpu_wait(gpu, second, event)), "");
  unsigned char bytes[2] = {};
  EXPECT_EQ(take(burst_gpu_download(gpu, bytes, memory, 2, second)), "");
  EXPECT_EQ(take(burst_gpu_synchronize(gpu, second)), "");
  EXPECT_EQ(bytes[0], 7) << "before the event";
  EXPECT_EQ(bytes[1], 0xa5) << "behind the event";
  EXPECT_EQ(take(burst_gpu_is_done(gpu, event, &done)), "");
  EXPECT_TRUE(done);
  EXPECT_EQ(take(burst_gpu_free(gpu, memory, first)), "");
  burst_gpu_event_destroy(gpu, event);
  burst_gpu_stream_destroy(gpu, first);
  burst_gpu_stream_destroy(gpu, second);
}

TEST_F(Gpu, MeasuresTime) {
  CUevent begin, end, plain;
  ASSERT_EQ(take(burst_gpu_event_create(gpu, true, &begin)), "");
  ASSERT_EQ(take(burst_gpu_event_create(gpu, true, &end)), "");
  ASSERT_EQ(take(burst_gpu_event_create(gpu, false, &plain)), "");
  double seconds = 0;
  EXPECT_EQ(take(burst_gpu_elapsed(gpu, begin, end, &seconds)), "");
  EXPECT_EQ(seconds, 0.5);
  EXPECT_EQ(take(burst_gpu_elapsed(gpu, begin, plain, &seconds)),
            "GPU 0: cuEventElapsedTime: an unknown error (400): the stand-in "
            "says so");
  for (CUevent event : {begin, end, plain})
    burst_gpu_event_destroy(gpu, event);
}

TEST_F(Gpu, CopiesOnTheDevice) {
  CUstream stream = makeStream();
  CUdeviceptr a, b, none;
  ASSERT_EQ(take(burst_gpu_allocate(gpu, 4, stream, &a)), "");
  ASSERT_EQ(take(burst_gpu_allocate(gpu, 4, stream, &b)), "");
  ASSERT_EQ(take(burst_gpu_allocate(gpu, 0, stream, &none)), "");
  EXPECT_EQ(none, 0U);
  EXPECT_EQ(take(burst_gpu_copy(gpu, none, a, 0, stream)), "");
  EXPECT_EQ(take(burst_gpu_fill(gpu, a, 9, 4, stream)), "");
  EXPECT_EQ(take(burst_gpu_copy(gpu, b, a, 3, stream)), "");
  unsigned char bytes[4];
  EXPECT_EQ(take(burst_gpu_download(gpu, bytes, b, 4, stream)), "");
  EXPECT_EQ(take(burst_gpu_synchronize(gpu, stream)), "");
  EXPECT_EQ(bytes[2], 9);
  EXPECT_EQ(bytes[3], 0xa5);
  for (CUdeviceptr memory : {a, b, none})
    EXPECT_EQ(take(burst_gpu_free(gpu, memory, stream)), "");
  burst_gpu_stream_destroy(gpu, stream);
}

TEST_F(Gpu, AsksForSharedMemory) {
  CUstream stream = makeStream();
  scale.shared_bytes = 200 << 10;
  burst_gpu_module *module;
  ASSERT_EQ(take(burst_gpu_module_load(gpu, 1, &scale, &module)), "");
  ScaleArguments arguments = {};
  EXPECT_EQ(take(burst_gpu_launch(module, 0, 4, &arguments, stream)), "");
  EXPECT_EQ(take(burst_gpu_launch(module, 0, 0, &arguments, stream)), "");
  EXPECT_EQ(take(burst_gpu_synchronize(gpu, stream)), "");
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches[0].config.sharedMemBytes, 200U << 10);
  burst_gpu_module_unload(module);
  burst_gpu_stream_destroy(gpu, stream);
}

/// A buffer of two dimensions and the map of it.
struct MapArguments {
  int64_t before;
  void *data;
  int64_t steps[2];
  int32_t sizes[2];
};

TEST_F(Gpu, EncodesTensorMaps) {
  std::vector<Map> maps;
  driver.addKernel("mapped", {sizeof(CUtensorMap), 8},
                   [&](const Launch &launch) {
                     CUtensorMap bytes = launch.parameter<CUtensorMap>(0);
                     memcpy(&maps.emplace_back(), &bytes, sizeof(Map));
                     EXPECT_EQ(launch.parameter<int64_t>(1), 77);
                   });
  burst_gpu_map map = {
      offsetof(MapArguments, data), BURST_BF16, 2, {64, 32}, 128};
  const burst_gpu_parameter parameters[] = {{0, 0, &map}, {0, 8, nullptr}};
  binary = binaryOf("sm_90a", "mapped ");
  burst_gpu_kernel kernel = scale;
  kernel.name = "mapped";
  kernel.argument_bytes = sizeof(MapArguments);
  kernel.num_parameters = 2;
  kernel.parameters = parameters;
  burst_gpu_module *module;
  CUstream stream = makeStream();
  ASSERT_EQ(take(burst_gpu_module_load(gpu, 1, &kernel, &module)), "");
  alignas(16) char memory[32];
  auto launch = [&](MapArguments arguments) {
    return takeCoded(burst_gpu_launch(module, 0, 1, &arguments, stream));
  };
  EXPECT_EQ(launch({77, memory, {96, 1}, {100, 80}}), "");
  // Of one row the stride does not matter, and of no rows there is no map.
  EXPECT_EQ(launch({77, memory, {3, 1}, {1, 20}}), "");
  EXPECT_EQ(launch({77, nullptr, {96, 1}, {0, 80}}), "");
  EXPECT_EQ(take(burst_gpu_synchronize(gpu, stream)), "");
  ASSERT_EQ(maps.size(), 3U);
  EXPECT_EQ(maps[0].address, memory);
  EXPECT_EQ(maps[0].type, uint32_t(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
  EXPECT_EQ(maps[0].rank, 2U);
  EXPECT_EQ(maps[0].sizes[0], 80U);
  EXPECT_EQ(maps[0].sizes[1], 100U);
  EXPECT_EQ(maps[0].strides[0], 192U);
  EXPECT_EQ(maps[0].box[0], 32U);
  EXPECT_EQ(maps[0].box[1], 64U);
  EXPECT_EQ(maps[0].swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(maps[1].strides[0], 48U);
  EXPECT_EQ(maps[2].rank, 0U);
  expectContains(
      launch({77, memory + 8, {96, 1}, {100, 80}}),
      {"INVALID_ARGUMENT kernel mapped of 1 blocks: kernel mapped: a "
       "buffer at 0x",
       "wanted a multiple of 16: align the tensor"});
  EXPECT_EQ(launch({77, memory, {90, 1}, {100, 80}}),
            "INVALID_ARGUMENT kernel mapped of 1 blocks: kernel mapped: a "
            "stride of 180 bytes in dimension 0, wanted a multiple of 16");
  burst_gpu_module_unload(module);

  auto refuse = [&](burst_gpu_map wrong) {
    std::swap(map, wrong);
    std::string error =
        takeCoded(burst_gpu_module_load(gpu, 1, &kernel, &module));
    std::swap(map, wrong);
    return error;
  };
  const std::string begin = "INVALID_PROGRAM kernel mapped: a tensor map ";
  EXPECT_EQ(refuse({8, BURST_BF16, 6, {1, 1, 1, 1, 1}, 0}),
            begin + "of 6 dimensions, wanted 1 to 5");
  EXPECT_EQ(refuse({16, BURST_BF16, 2, {64, 32}, 0}),
            begin + "of 32 bytes at byte 16 of 40");
  EXPECT_EQ(refuse({8, 77, 2, {64, 32}, 0}), begin + "of type 77");
  EXPECT_EQ(refuse({8, BURST_BF16, 2, {64, 257}, 0}),
            begin + "with boxes of 257 elements in dimension 1, wanted 1 to "
                    "256");
  EXPECT_EQ(refuse({8, BURST_BF16, 2, {64, 32}, 16}),
            begin + "swizzled over 16 bytes, wanted 0, 32, 64 or 128");
  burst_gpu_stream_destroy(gpu, stream);
}

TEST_F(Gpu, TakesTheFirstBinaryThatFits) {
  // Only in the one wanted there is the kernel.
  auto load = [&](std::vector<burst_gpu_binary> binaries) {
    scale.num_binaries = static_cast<int64_t>(binaries.size());
    scale.binaries = binaries.data();
    burst_gpu_module *module;
    std::string error =
        takeCoded(burst_gpu_module_load(gpu, 1, &scale, &module));
    EXPECT_EQ(module == nullptr, !error.empty());
    burst_gpu_module_unload(module);
    return error;
  };
  const char *other = "other ", *wanted = "scale ";
  // The GPU is 9.0.
  EXPECT_EQ(load({binaryOf("sm_80", other), binaryOf("sm_90a", wanted)}), "");
  EXPECT_EQ(load({binaryOf("sm_90", wanted), binaryOf("sm_90a", other)}), "");
  EXPECT_EQ(load({binaryOf("sm_92", other), binaryOf("compute_80", wanted)}),
            "");
  EXPECT_EQ(load({binaryOf("sm_100a", other), binaryOf("compute_100", other),
                  binaryOf("compute_90", wanted)}),
            "");
  EXPECT_EQ(load({binaryOf("sm_90", "!refused"), binaryOf("sm_89", other),
                  binaryOf("compute_80", wanted)}),
            "");
  EXPECT_EQ(load({binaryOf("sm_90", "!refused")}),
            "SYSTEM GPU 0: cuModuleLoadData: an unknown error (209): the "
            "stand-in says so");
  EXPECT_EQ(load({binaryOf("sm_80", other), binaryOf("gfx90a", other)}),
            "INVALID_PROGRAM kernel scale: GPU 0 has compute capability 9.0, "
            "there are binaries for: sm_80, gfx90a");
  EXPECT_EQ(load({}),
            "INVALID_PROGRAM kernel scale: GPU 0 has compute capability 9.0, "
            "there are binaries for: none");
  burst_gpu_binary damaged = binaryOf("sm_90", wanted);
  ++damaged.checksum;
  expectContains(load({damaged}),
                 {"INVALID_PROGRAM kernel scale: the binary for sm_90 is "
                  "damaged: its checksum is not "});
}

TEST_F(Gpu, TakesKernelsOfADirectoryFirst) {
  char directory[] = "/tmp/burst-cubins-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  std::string file = std::string(directory) + "/scale.cubin";
  setenv("BURST_GPU_CUBINS", directory, 1);
  auto load = [&](const char *own) {
    burst_gpu_binary binary = binaryOf("sm_90", own);
    scale.num_binaries = 1;
    scale.binaries = &binary;
    burst_gpu_module *module;
    std::string error =
        takeCoded(burst_gpu_module_load(gpu, 1, &scale, &module));
    burst_gpu_module_unload(module);
    return error;
  };
  auto write = [&](const char *content) {
    FILE *stream = fopen(file.c_str(), "wb");
    fputs(content, stream);
    fclose(stream);
  };
  // Only in the one that is loaded there is the kernel.
  EXPECT_EQ(load("scale "), ""); // there is no such file
  write("scale ");
  EXPECT_EQ(load("other "), "");
  write("other ");
  EXPECT_EQ(load("scale "),
            "INVALID_PROGRAM GPU 0: the binary has no kernel scale");
  write("!refused");
  expectContains(load("scale "), {"INVALID_PROGRAM " + file +
                                  " (of BURST_GPU_CUBINS): GPU 0: "
                                  "cuModuleLoadData: "});
  write("");
  EXPECT_EQ(load("scale "), "INVALID_PROGRAM " + file +
                                " (of BURST_GPU_CUBINS): cannot be read: it is "
                                "empty");
  setenv("BURST_GPU_CUBINS", std::string(5000, 'd').c_str(), 1);
  expectContains(load("scale "), {"INVALID_PROGRAM BURST_GPU_CUBINS: the path "
                                  "of a kernel has 5012 bytes"});
  unsetenv("BURST_GPU_CUBINS");
  std::filesystem::remove_all(directory);
}

TEST_F(Gpu, RefusesWhatItCannotLaunch) {
  auto load = [&](const burst_gpu_kernel &kernel) {
    burst_gpu_module *module;
    std::string error =
        takeCoded(burst_gpu_module_load(gpu, 1, &kernel, &module));
    EXPECT_EQ(module, nullptr);
    return error;
  };
  const std::string invalid = "INVALID_PROGRAM ";
  burst_gpu_kernel kernel = scale;
  kernel.shared_bytes = (227 << 10) + 1;
  EXPECT_EQ(load(kernel), invalid + "kernel scale: 232449 bytes of shared "
                                    "memory, GPU 0 has 232448");
  kernel = scale;
  kernel.threads = 1025;
  EXPECT_EQ(load(kernel),
            invalid + "kernel scale: 1025 threads, wanted 1 to 1024");
  kernel = scale;
  kernel.num_parameters = BURST_GPU_PARAMETERS + 1;
  EXPECT_EQ(load(kernel),
            invalid + "kernel scale: 65 parameters, wanted 0 to 64");
  kernel = scale;
  kernel.argument_bytes = 15;
  EXPECT_EQ(load(kernel),
            invalid + "kernel scale: parameter 2 of 4 bytes at byte 12 of 15");
  kernel = scale;
  kernel.name = "other";
  EXPECT_EQ(load(kernel), invalid + "GPU 0: the binary has no kernel other");
}

TEST_F(Gpu, SaysWhatTheDriverSaid) {
  burst_gpu_module *module;
  driver.fail("cuModuleLoadData", CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(take(burst_gpu_module_load(gpu, 1, &scale, &module)),
            "GPU 0: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE (200): the "
            "stand-in says so");
  driver.fail("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE);
  scale.shared_bytes = 1;
  EXPECT_EQ(take(burst_gpu_module_load(gpu, 1, &scale, &module)),
            "GPU 0: cuFuncSetAttribute: an unknown error (1): the stand-in "
            "says so");
  CUdeviceptr memory;
  driver.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(takeCoded(burst_gpu_allocate(gpu, 8, nullptr, &memory)),
            "OUT_OF_MEMORY"
            " GPU 0: cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY (2): "
            "the stand-in says so");
  ASSERT_EQ(take(burst_gpu_module_load(gpu, 1, &scale, &module)), "");
  ScaleArguments arguments = {};
  driver.fail("cuLaunchKernelEx", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(take(burst_gpu_launch(module, 0, 6, &arguments, nullptr)),
            "kernel scale of 6 blocks: GPU 0: cuLaunchKernelEx: "
            "CUDA_ERROR_OUT_OF_MEMORY (2): the stand-in says so");
  EXPECT_EQ(take(burst_gpu_launch(module, 1, 6, &arguments, nullptr)),
            "kernel 1: there are 1, counted from 0");
  EXPECT_EQ(take(burst_gpu_launch(module, 0, -1, &arguments, nullptr)),
            "kernel scale: -1 blocks, wanted 0 to 2147483647");
  burst_gpu_module_unload(module);
}

TEST_F(Gpu, TellsOfMemoryThatIsNotThere) {
  CUstream stream = makeStream();
  CUdeviceptr memory;
  ASSERT_EQ(take(burst_gpu_allocate(gpu, 8, stream, &memory)), "");
  EXPECT_EQ(take(burst_gpu_free(gpu, memory, stream)), "");
  EXPECT_EQ(take(burst_gpu_fill(gpu, memory, 0, 8, stream)), "");
  EXPECT_EQ(take(burst_gpu_synchronize(gpu, stream)),
            "GPU 0: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): the "
            "stand-in says so");
  burst_gpu_stream_destroy(gpu, stream);
}

/// Several devices, in a thread that uses another one itself.
class Gpus : public Gpu {
protected:
  Gpus() : Gpu({80, 90}) {}
};

TEST_F(Gpus, LeaveTheContextOfTheThread) {
  burst_gpu *other;
  ASSERT_EQ(take(burst_gpu_create(1, &other)), "");
  EXPECT_EQ(driver.current(), -1);
  const burst_driver *table;
  ASSERT_EQ(take(burst_driver_table(&table)), "");
  CUcontext context;
  ASSERT_EQ(table->cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
  ASSERT_EQ(table->cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUstream stream = makeStream();
  EXPECT_EQ(driver.current(), 1);
  driver.fail("cuStreamSynchronize", CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(take(burst_gpu_synchronize(gpu, stream)), "");
  EXPECT_EQ(driver.current(), 1);
  burst_gpu_stream_destroy(gpu, stream);
  ASSERT_EQ(table->cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  table->cuDevicePrimaryCtxRelease_v2(1);
  burst_gpu_destroy(other);
}

TEST_F(Gpus, HaveNoTensorMapsBeforeHopper) {
  EXPECT_FALSE(burst_gpu_get_properties(gpu)->tensor_maps);
  const burst_gpu_map map = {0, BURST_F32, 1, {1}, 0};
  const burst_gpu_parameter parameter = {0, 0, &map};
  scale.num_parameters = 1;
  scale.parameters = &parameter;
  burst_gpu_module *module;
  EXPECT_EQ(take(burst_gpu_module_load(gpu, 1, &scale, &module)),
            "kernel scale: tensor maps, which GPU 0 (compute capability 8.0) "
            "does not have");
}

TEST_F(Gpus, AreCounted) {
  int count = 0;
  EXPECT_EQ(take(burst_gpu_count(&count)), "");
  EXPECT_EQ(count, 2);
  burst_gpu *none;
  EXPECT_EQ(take(burst_gpu_create(2, &none)),
            "GPU 2: there are 2, counted from 0");
  EXPECT_EQ(take(burst_gpu_create(-1, &none)),
            "GPU -1: there are 2, counted from 0");
  driver.fail("cuInit", CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(take(burst_gpu_count(&count)),
            "cuInit: CUDA_ERROR_NO_DEVICE (100): the stand-in says so");
  EXPECT_EQ(count, 0);
}

} // namespace
