//===- IpcTest.cpp - Ranks on GPUs of one machine -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Harness.h"
#include "test/standins/Ring.h"
#include "test/unit/runtime/Harness.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace burst::standins;
using namespace burst::test;

/// Whether a process dies as soon as it has made shared memory.
static bool diesOfSharing = false;

/// In front of the C library's.
int shm_open(const char *name, int flags, mode_t mode) {
  static auto real =
      reinterpret_cast<decltype(&shm_open)>(dlsym(RTLD_NEXT, "shm_open"));
  int fd = real(name, flags, mode);
  if (diesOfSharing && (flags & O_CREAT) != 0)
    raise(SIGKILL);
  return fd;
}

namespace {

std::set<std::string> namesOfSharedMemory() {
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator("/dev/shm"))
    names.insert(entry.path().filename());
  return names;
}

/// Of programs that were killed before these tests ran: their processes may
/// have had the numbers of those here.
const std::set<std::string> namesBefore = namesOfSharedMemory();

/// Shared memory that a process has made and not unlinked.
int64_t leftovers(pid_t process) {
  std::string prefix = "burst-" + std::to_string(process) + "-";
  return std::ranges::count_if(
      namesOfSharedMemory(), [&](const std::string &name) {
        return name.starts_with(prefix) && !namesBefore.contains(name);
      });
}

/// What the driver does for a call, where a test plants a fault.
CUresult (*realWait)(CUstream, CUdeviceptr, uint32_t, unsigned);
CUresult (*realAttribute)(int *, CUdevice_attribute, CUdevice);

class Ipc : public RingTest {
protected:
  explicit Ipc(const char *seed = "0", const char *races = "1")
      : RingTest({{"BURST_EMULATED_GPUS", "4"},
                  {"BURST_EMULATED_SEED", seed},
                  {"BURST_EMULATED_RACES", races}}) {}
  ~Ipc() override { burst_driver_stand_in(nullptr); }

  burst_driver changed = {};
  int64_t bufferBytes = 1024;

  std::string connect(const Task &task, burst_device *device,
                      burst_transport **transport) override {
    burst_ipc_config how = {};
    how.size = sizeof(how);
    how.device = device;
    how.world = task.world;
    how.buffer_bytes = bufferBytes;
    return takeCoded(burst_transport_create_ipc(&how, transport));
  }

  /// Puts a changed driver in the place of the emulated one.
  void plant(const std::function<void(burst_driver &)> &change) {
    changed = *cu;
    change(changed);
    burst_driver_stand_in(&changed);
  }

  /// Runs each rank on a thread; all that they make is gone then.
  void run(const Body &body) {
    int alive = burst_emulated_alive();
    runThreads(makeWorlds(common.ranks), body);
    EXPECT_EQ(leftovers(getpid()), 0);
    if (!broken)
      EXPECT_EQ(burst_emulated_alive(), alive);
  }

  /// Runs a ring with a fault. Threads of ranks may happen to come in an order
  /// in which it does no harm, so that there is nothing to report, but not
  /// again and again.
  void expectRace(const std::function<void()> &plantFault) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      plantFault();
      run(ring);
      const char *report = burst_emulated_take_report();
      if (!report)
        continue;
      EXPECT_NE(std::string(report).find("race: "), std::string::npos)
          << report;
      while (burst_emulated_take_report()) {
      }
      return;
    }
    ADD_FAILURE() << "five runs with a fault, and no race was found";
  }
};

TEST_F(Ipc, RanksRunARing) {
  common.runs = 3;
  for (int64_t bytes : {1024, 1 << 16}) {
    bufferBytes = bytes;
    run(ring);
    expectRing();
  }
  common.checked = true;
  run(ring);
  expectRing();
}

TEST_F(Ipc, RanksGather) {
  common.runs = 3;
  for (int64_t bytes : {1024, 1 << 16}) {
    bufferBytes = bytes;
    run(gather);
    expectRing();
  }
  common.checked = true;
  run(gather);
  expectRing();
}

class IpcInAnyOrder : public Ipc, public testing::WithParamInterface<int> {
protected:
  IpcInAnyOrder() : Ipc(std::to_string(GetParam()).c_str()) {}
};

TEST_P(IpcInAnyOrder, RanksRunARing) {
  common.runs = 3;
  run(ring);
  expectRing();
}
INSTANTIATE_TEST_SUITE_P(Seeds, IpcInAnyOrder, testing::Values(1, 2, 3));

/// Streams that are let go read what others may be writing: it is no result.
class IpcThatFails : public Ipc {
protected:
  IpcThatFails() : Ipc("0", "0") {}
};

TEST_F(IpcThatFails, FailureOfOneRankEndsAll) {
  run([](burst_rank *rank, const burst_table *table, void *const *values) {
    if (table->index(rank) == 2)
      table->require(rank, 1, 2, "luck");
    ring(rank, table, values);
  });
  EXPECT_EQ(errors[2], "INVALID_ARGUMENT rank 2: luck: 1, wanted at least 2");
  for (int64_t rank : {0, 1, 3})
    expectContains(errors[rank], {"PEER_STOPPED rank " + std::to_string(rank),
                                  "rank 2 stopped: rank 2: luck: 1"});
}

TEST_F(IpcThatFails, RankThatDoesNotSendIsLate) {
  common.deadline = 0.5;
  run([](burst_rank *rank, const burst_table *table, void *const *values) {
    if (table->index(rank) != 1)
      ring(rank, table, values);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  });
  for (int64_t rank : {0, 2, 3})
    expectContains(errors[rank], {"waited 0.5 s for rank ", "hop "});
  // What was let go is not taken for a result.
  for (int64_t rank : {0, 2, 3})
    for (int64_t i = 0; i < count; ++i)
      ASSERT_NE(results[rank][i], results[rank][i]);
}

TEST_F(IpcThatFails, FailuresOfTheDriverReachAllRanks) {
  const std::pair<const char *, const char *> calls[] = {
      {"cuMemAlloc_v2@2", "cuMemAlloc"},
      {"cuIpcGetMemHandle@1", "cuIpcGetMemHandle"},
      {"cuMemHostRegister_v2@3", "cuMemHostRegister"},
      {"cuMemHostGetDevicePointer_v2@0", "cuMemHostGetDevicePointer"},
      {"cuCtxEnablePeerAccess@1", "cannot reach memory of rank "},
      {"cuDeviceCanAccessPeer", "cannot reach memory of rank "},
      {"cuStreamWaitValue32_v2@1", "cuStreamWaitValue32"},
      {"cuStreamWriteValue32_v2@2", "cuStreamWriteValue32"},
      {"cuMemcpyDtoDAsync_v2@0", "a copy of a message"}};
  for (auto [planted, name] : calls) {
    burst_emulated_fail(planted, 1, CUDA_ERROR_INVALID_VALUE);
    run(ring);
    for (const std::string &error : errors)
      EXPECT_NE(error, "") << planted;
    std::string all;
    for (const std::string &error : errors)
      all += error;
    expectContains(all, {"SYSTEM ", name, "invalid argument"});
  }
  // All of that has left the driver as it was.
  run(ring);
  expectRing();
}

TEST_F(IpcThatFails, RefusesToBeCaptured) {
  common.captured = true;
  run([](burst_rank *rank, const burst_table *table, void *const *values) {
    int64_t r = table->index(rank);
    burst_piece in = blockOf(static_cast<MemRef3 *>(values[0])->data,
                             rows * columns),
                out = blockOf(static_cast<MemRef3 *>(values[1])->data,
                              rows * columns);
    table->wait(rank, shift(table, rank, 0, (r + 1) % ranks, 1, &in,
                            (r + ranks - 1) % ranks, 1, &out));
  });
  for (const std::string &error : errors)
    expectContains(error,
                   {"ipc transport: the stream is captured to a graph, which "
                    "would count the same messages again: use "
                    "burst_transport_create_nccl"});
  // Nothing was sent that a later run could receive.
  common.captured = false;
  run(ring);
  expectRing();
}

TEST_F(Ipc, SaysWhatAGpuLacks) {
  realAttribute = cu->cuDeviceGetAttribute;
  plant([](burst_driver &driver) {
    driver.cuDeviceGetAttribute = [](int *value, CUdevice_attribute attribute,
                                     CUdevice device) {
      CUresult result = realAttribute(value, attribute, device);
      if (attribute == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS &&
          device == 1)
        *value = 0;
      return result;
    };
  });
  run(ring);
  EXPECT_EQ(errors[1],
            "SYSTEM ipc transport: GPU 1: its streams cannot wait for values: "
            "burst_transport_create_nccl needs less of GPUs");
  for (int64_t rank : {0, 2, 3})
    EXPECT_EQ(errors[rank], "SYSTEM rank 1: " + errors[1].substr(7));
}

TEST_F(Ipc, SaysWhichGpusDoNotReachEachOther) {
  plant([](burst_driver &driver) {
    driver.cuDeviceCanAccessPeer = [](int *can, CUdevice device,
                                      CUdevice peer) {
      *can = device != 2 || peer != 3;
      return CUDA_SUCCESS;
    };
  });
  run(ring);
  EXPECT_EQ(errors[2],
            "SYSTEM ipc transport: cannot reach memory of rank 3 on its GPU 3: "
            "GPU 2 cannot reach the memory of GPU 3: "
            "burst_transport_create_nccl needs less of GPUs");
  EXPECT_EQ(errors[0], "SYSTEM rank 2: " + errors[2].substr(7));
}

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

/// Leaves out one of the waits of all ranks, of those that have to wait.
class IpcWithoutAWait : public Ipc, public testing::WithParamInterface<int> {};

TEST_P(IpcWithoutAWait, FindsIt) {
  static std::atomic<int> left;
  broken = true;
  realWait = cu->cuStreamWaitValue32_v2;
  plant([](burst_driver &driver) {
    driver.cuStreamWaitValue32_v2 = [](CUstream stream, CUdeviceptr memory,
                                       uint32_t value, unsigned flags) {
      return int32_t(value) > 0 && --left == 0
                 ? CUDA_SUCCESS
                 : realWait(stream, memory, value, flags);
    };
  });
  expectRace([] { left = GetParam(); });
}
INSTANTIATE_TEST_SUITE_P(Numbers, IpcWithoutAWait,
                         testing::Values(1, 6, 11, 16));

TEST_F(Ipc, FindsAWaitForTheMessageBefore) {
  broken = true;
  realWait = cu->cuStreamWaitValue32_v2;
  plant([](burst_driver &driver) {
    driver.cuStreamWaitValue32_v2 = [](CUstream stream, CUdeviceptr memory,
                                       uint32_t value, unsigned flags) {
      return realWait(stream, memory, value - 1, flags);
    };
  });
  expectRace([] {});
}

//===----------------------------------------------------------------------===//
// Configs
//===----------------------------------------------------------------------===//

TEST_F(Ipc, ChecksItsConfig) {
  std::vector<World> worlds = makeWorlds(2);
  burst_ipc_config config = {};
  config.size = sizeof(config);
  config.world = worlds[0].get();
  burst_transport *transport;
  EXPECT_EQ(takeCoded(burst_transport_create_ipc(&config, &transport)),
            "INVALID_ARGUMENT ipc transport: no CUDA device");
  burst_cuda_config where = {};
  where.size = sizeof(where);
  burst_device *device;
  ASSERT_EQ(takeCoded(burst_device_create_cuda(&where, &device)), "");
  Device owned(device);
  config.device = device;
  config.world = nullptr;
  EXPECT_EQ(takeCoded(burst_transport_create_ipc(&config, &transport)),
            "INVALID_ARGUMENT ipc transport: no world");
  config.world = worlds[0].get();
  config.buffer_bytes = 1023;
  EXPECT_EQ(takeCoded(burst_transport_create_ipc(&config, &transport)),
            "INVALID_ARGUMENT ipc transport: buffer_bytes 1023, wanted 1024 to "
            "1099511627776");
  // Ranks that disagree.
  std::vector<std::string> found(2);
  inParallel(2, [&](int64_t rank) {
    burst_ipc_config mine = config;
    mine.world = worlds[rank].get();
    mine.buffer_bytes = rank ? 4096 : 2048;
    burst_transport *none;
    found[rank] = takeCoded(burst_transport_create_ipc(&mine, &none));
  });
  expectContains(found[0], {"INVALID_ARGUMENT", "rank 1 has buffer_bytes 4096, "
                                                "wanted 2048 as here"});
  expectContains(found[1], {"INVALID_ARGUMENT", "rank 0 has buffer_bytes 2048, "
                                                "wanted 4096 as here"});
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

class IpcProcesses : public Ipc {
protected:
  int64_t doomed = -1; ///< the rank that dies when it opens what is shared

  /// Runs each rank in a process, which emulates all GPUs for itself.
  void runProcesses(const Body &body,
                    const std::map<int64_t, std::string> &planted = {}) {
    std::string address = freeAddress();
    std::vector<std::pair<pid_t, int>> children;
    for (int64_t rank = 0; rank < common.ranks; ++rank) {
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) {
        setenv("BURST_EMULATED_GPUS", "4", 1);
        setenv("BURST_EMULATED_PROCESSES", "1", 1);
        if (planted.contains(rank))
          setenv("BURST_EMULATED_FAIL", planted.at(rank).c_str(), 1);
        std::string error = runChild(rank, address, body);
        ssize_t written = write(ends[1], error.data(), error.size());
        _exit(written == ssize_t(error.size()) ? 0 : 1);
      }
      close(ends[1]);
      children.emplace_back(pid, ends[0]);
    }
    for (int64_t rank = 0; rank < common.ranks; ++rank) {
      auto [pid, end] = children[rank];
      char text[1024];
      errors[rank].clear();
      for (ssize_t got; (got = read(end, text, sizeof(text))) > 0;)
        errors[rank].append(text, size_t(got));
      close(end);
      int status = 0;
      waitpid(pid, &status, 0);
      if (WIFSIGNALED(status))
        errors[rank] = "signal " + std::to_string(WTERMSIG(status));
      else
        EXPECT_EQ(WEXITSTATUS(status), 0) << "of rank " << rank;
    }
    for (auto [pid, end] : children)
      EXPECT_EQ(leftovers(pid), 0);
  }

  std::string runChild(int64_t rank, const std::string &address,
                       const Body &body) {
    burst_emulated_reset();
    EXPECT_EQ(cu->cuInit(0), CUDA_SUCCESS);
    if (rank == doomed)
      plant([](burst_driver &driver) {
        driver.cuMemHostRegister_v2 = [](void *, size_t, unsigned) {
          raise(SIGKILL);
          return CUDA_SUCCESS;
        };
      });
    burst_world_config config =
        worldConfig(address.c_str(), common.ranks, rank);
    burst_world *world = nullptr;
    std::string error = takeCoded(burst_world_create(&config, &world));
    if (!error.empty())
      return error;
    World owned(world);
    Program program(common.ranks, body);
    describe(program);
    Task task = common;
    task.rank = rank;
    task.world = world;
    task.program = program.get();
    error = runRank(task);
    if (!error.empty())
      return error;
    for (int64_t i = 0; i < count; ++i)
      if (results[rank][i] != float((rank + 1) % common.ranks * 1000 + i))
        return "wrong at " + std::to_string(i);
    if (const char *report = burst_emulated_take_report())
      return report;
    return burst_emulated_alive() ? "something is left" : "";
  }
};

TEST_F(IpcProcesses, RunARing) {
  common.runs = 3;
  for (int64_t number : {2, 4}) {
    common.ranks = number;
    runProcesses(
        [number](burst_rank *rank, const burst_table *table,
                 void *const *values) { ringOf(number, rank, table, values); });
    for (int64_t rank = 0; rank < number; ++rank)
      EXPECT_EQ(errors[rank], "");
  }
}

TEST_F(IpcProcesses, NameTheOneThatDied) {
  runProcesses(
      [](burst_rank *rank, const burst_table *table, void *const *values) {
        if (table->index(rank) == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          raise(SIGKILL);
        }
        ring(rank, table, values);
      });
  EXPECT_EQ(errors[1], "signal 9");
  for (int64_t rank : {0, 2, 3})
    expectContains(errors[rank],
                   {"PEER_STOPPED rank " + std::to_string(rank), "rank 1"});
}

TEST_F(IpcProcesses, NameTheOneThatDiedBeforeItRan) {
  for (int64_t rank : {0, 2}) {
    doomed = rank;
    runProcesses(ring);
    EXPECT_EQ(errors[rank], "signal 9");
    for (int64_t other = 0; other < common.ranks; ++other)
      if (other != rank)
        expectContains(
            errors[other],
            {"PEER_STOPPED", "rank " + std::to_string(rank) + " died"});
  }
}

TEST_F(IpcProcesses, UnlinkWhatTheOneMadeThatDiedThen) {
  diesOfSharing = true;
  // What it has said by then, all must have heard.
  for (int time = 0; time < 20; ++time) {
    runProcesses(ring);
    EXPECT_EQ(errors[0], "signal 9");
    for (int64_t rank : {1, 2, 3})
      expectContains(errors[rank], {"PEER_STOPPED", "rank 0 died"});
  }
  diesOfSharing = false;
}

TEST_F(IpcProcesses, SayWhichMemoryTheyCannotOpen) {
  runProcesses(ring, {{2, "cuIpcOpenMemHandle_v2:1:217"}});
  EXPECT_EQ(errors[2],
            "SYSTEM ipc transport: cannot reach memory of rank 0 on its GPU 0: "
            "GPU 2: cuIpcOpenMemHandle: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED "
            "(217): peer access is not supported between these two devices: "
            "burst_transport_create_nccl needs less of GPUs");
  for (int64_t rank : {0, 1, 3})
    EXPECT_EQ(errors[rank], "SYSTEM rank 2: " + errors[2].substr(7));
}

} // namespace
