//===- NcclTest.cpp - The emulated NCCL, and faults planted for it --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Harness.h"

#include <chrono>
#include <functional>
#include <thread>

using namespace burst::standins;

namespace {

constexpr int ranks = 4;
constexpr size_t bytes = 64;

class EmulatedNccl : public Emulated {
protected:
  explicit EmulatedNccl(std::map<std::string, std::string> environment =
                            {{"BURST_EMULATED_GPUS", "4"}})
      : Emulated(std::move(environment)) {
    EXPECT_EQ(nccl->ncclGetUniqueId(&id), ncclSuccess);
  }

  struct Rank {
    int index = 0;
    ncclComm_t communicator = nullptr;
    CUstream stream = nullptr;
    CUdeviceptr sent = 0, received = 0;
    void *send() const { return reinterpret_cast<void *>(sent); }
    void *receive() const { return reinterpret_cast<void *>(received); }
    int next() const { return (index + 1) % ranks; }
    int last() const { return (index + ranks - 1) % ranks; }
  };

  /// Runs ranks as threads, each on its GPU with a communicator and memory of
  /// which the first is filled with its number.
  void runRanks(const std::function<void(Rank &)> &run, bool blocking = true,
                int count = ranks) {
    std::vector<std::thread> threads;
    threads.reserve(size_t(count));
    for (int i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        Rank rank;
        rank.index = i;
        enter(i);
        rank.stream = stream();
        rank.sent = memory(bytes);
        rank.received = memory(bytes);
        OK(cu->cuMemsetD8Async(rank.sent, static_cast<unsigned char>(i), bytes,
                               rank.stream));
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = blocking;
        ncclResult_t made = nccl->ncclCommInitRankConfig(&rank.communicator,
                                                         count, id, i, &config);
        if (!blocking) {
          EXPECT_EQ(made, ncclInProgress);
          made = settle(rank);
        }
        EXPECT_EQ(made, ncclSuccess);
        run(rank);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  /// Asks until a communicator is no longer in progress.
  ncclResult_t settle(const Rank &rank) {
    ncclResult_t result = ncclInProgress;
    while (result == ncclInProgress)
      EXPECT_EQ(nccl->ncclCommGetAsyncError(rank.communicator, &result),
                ncclSuccess);
    return result;
  }
  ncclResult_t exchange(const Rank &rank, size_t sendBytes = bytes,
                        size_t receiveBytes = bytes) {
    EXPECT_EQ(nccl->ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(nccl->ncclSend(rank.send(), sendBytes, ncclInt8, rank.next(),
                             rank.communicator, rank.stream),
              ncclSuccess);
    EXPECT_EQ(nccl->ncclRecv(rank.receive(), receiveBytes, ncclInt8,
                             rank.last(), rank.communicator, rank.stream),
              ncclSuccess);
    return nccl->ncclGroupEnd();
  }
  int first(const Rank &rank, CUstream stream) {
    std::vector<char> result(bytes);
    EXPECT_EQ(
        cu->cuMemcpyDtoHAsync_v2(result.data(), rank.received, bytes, stream),
        CUDA_SUCCESS);
    EXPECT_EQ(cu->cuStreamSynchronize(stream), CUDA_SUCCESS);
    return result[0];
  }
  /// Whether a stream is still busy when it has had the time to end.
  bool isStuck(const Rank &rank) {
    for (int i = 0; i < 50; ++i) {
      if (cu->cuStreamQuery(rank.stream) != CUDA_ERROR_NOT_READY)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  ncclUniqueId id;
};

TEST_F(EmulatedNccl, SendsRoundARing) {
  runRanks([&](Rank &rank) {
    int count = 0, index = -1;
    OK(nccl->ncclCommCount(rank.communicator, &count));
    OK(nccl->ncclCommUserRank(rank.communicator, &index));
    EXPECT_EQ(count, ranks);
    EXPECT_EQ(index, rank.index);
    for (int hop = 1; hop < ranks; ++hop) {
      OK(exchange(rank));
      OK(cu->cuMemcpyDtoDAsync_v2(rank.sent, rank.received, bytes,
                                  rank.stream));
    }
    EXPECT_EQ(first(rank, rank.stream), rank.next());
    OK(nccl->ncclCommDestroy(rank.communicator));
  });
}

TEST_F(EmulatedNccl, DoesNotBlock) {
  runRanks(
      [&](Rank &rank) {
        EXPECT_EQ(exchange(rank), ncclInProgress);
        EXPECT_EQ(settle(rank), ncclSuccess);
        EXPECT_EQ(first(rank, rank.stream), rank.last());
        OK(nccl->ncclCommAbort(rank.communicator));
      },
      /*blocking=*/false);
}

TEST_F(EmulatedNccl, Splits) {
  runRanks([&](Rank &rank) {
    // The even and the odd ranks, backwards.
    Rank half = rank;
    OK(nccl->ncclCommSplit(rank.communicator, rank.index % 2, -rank.index,
                           &half.communicator, nullptr));
    int index = -1;
    OK(nccl->ncclCommUserRank(half.communicator, &index));
    EXPECT_EQ(index, 1 - rank.index / 2);
    OK(nccl->ncclGroupStart());
    OK(nccl->ncclSend(half.send(), bytes, ncclInt8, 1 - index,
                      half.communicator, rank.stream));
    OK(nccl->ncclRecv(half.receive(), bytes, ncclInt8, 1 - index,
                      half.communicator, rank.stream));
    OK(nccl->ncclGroupEnd());
    EXPECT_EQ(first(rank, rank.stream), (rank.index + 2) % ranks);
    OK(nccl->ncclCommDestroy(half.communicator));
    OK(nccl->ncclCommDestroy(rank.communicator));
  });
}

TEST_F(EmulatedNccl, ReplaysGraphs) {
  runRanks([&](Rank &rank) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    OK(cu->cuStreamBeginCapture_v2(rank.stream,
                                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(exchange(rank));
    OK(cu->cuMemcpyDtoDAsync_v2(rank.sent, rank.received, bytes, rank.stream));
    OK(cu->cuStreamEndCapture(rank.stream, &graph));
    OK(cu->cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int hop = 1; hop < ranks; ++hop)
      OK(cu->cuGraphLaunch(executable, rank.stream));
    EXPECT_EQ(first(rank, rank.stream), rank.next());
    OK(nccl->ncclCommDestroy(rank.communicator));
  });
}

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

using PlantedNcclFault = EmulatedNccl;

TEST_F(PlantedNcclFault, SizesDiffer) {
  runRanks([&](Rank &rank) {
    OK(exchange(rank, rank.index == 1 ? bytes / 2 : bytes));
    if (rank.index == 1 || rank.index == 2)
      EXPECT_TRUE(isStuck(rank));
    ncclResult_t result = ncclSuccess;
    OK(nccl->ncclCommGetAsyncError(rank.communicator, &result));
    if (rank.index == 1 || rank.index == 2)
      EXPECT_EQ(result, ncclInvalidUsage);
    OK(nccl->ncclCommAbort(rank.communicator));
  });
  expectReport("rank 1 sends 32 bytes to rank 2, which receives 64");
}

TEST_F(PlantedNcclFault, DeadlockIsEndedByAbort) {
  // Each sends before it receives, without a group.
  runRanks([&](Rank &rank) {
    OK(nccl->ncclSend(rank.send(), bytes, ncclInt8, rank.next(),
                      rank.communicator, rank.stream));
    OK(nccl->ncclRecv(rank.receive(), bytes, ncclInt8, rank.last(),
                      rank.communicator, rank.stream));
    EXPECT_TRUE(isStuck(rank));
    OK(nccl->ncclCommAbort(rank.communicator));
    EXPECT_EQ(cu->cuStreamSynchronize(rank.stream), CUDA_SUCCESS);
  });
}

TEST_F(PlantedNcclFault, SendThatNeverComes) {
  burst_emulated_fail("ncclSend@2", 1, BURST_EMULATED_NEVER);
  runRanks([&](Rank &rank) {
    OK(exchange(rank));
    EXPECT_EQ(isStuck(rank), rank.index == 2 || rank.index == 3);
    OK(nccl->ncclCommAbort(rank.communicator));
  });
}

TEST_F(PlantedNcclFault, AbortReleasesWhoWaits) {
  runRanks([&](Rank &rank) {
    if (rank.index == 0)
      OK(exchange(rank));
    std::thread other;
    if (rank.index == 0)
      other = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(nccl->ncclCommAbort(rank.communicator), ncclSuccess);
      });
    EXPECT_EQ(cu->cuStreamSynchronize(rank.stream), CUDA_SUCCESS);
    if (rank.index == 0)
      other.join();
    else
      OK(nccl->ncclCommAbort(rank.communicator));
  });
}

TEST_F(PlantedNcclFault, WorkOfAnUnfinishedGroup) {
  // What is put on the stream before the group is done is before the group.
  runRanks(
      [&](Rank &rank) {
        OK(cu->cuMemsetD8Async(rank.received, 77, bytes, rank.stream));
        EXPECT_EQ(exchange(rank), ncclInProgress);
        EXPECT_EQ(first(rank, rank.stream), 77);
        EXPECT_EQ(nccl->ncclSend(rank.send(), bytes, ncclInt8, rank.next(),
                                 rank.communicator, rank.stream),
                  ncclInvalidArgument);
        EXPECT_EQ(settle(rank), ncclSuccess);
        EXPECT_EQ(first(rank, rank.stream), rank.last());
        OK(nccl->ncclCommAbort(rank.communicator));
      },
      /*blocking=*/false);
}

// A GPU that has failed leaves the others waiting, until they abort.
TEST_F(PlantedNcclFault, ReceivedIsReadTooEarly) {
  runRanks([&](Rank &rank) {
    OK(exchange(rank));
    CUstream other = stream();
    std::vector<char> result(bytes);
    if (rank.index == 0) {
      OK(cu->cuMemcpyDtoHAsync_v2(result.data(), rank.received, bytes, other));
      cu->cuStreamSynchronize(other);
      EXPECT_EQ(cu->cuStreamSynchronize(rank.stream), CUDA_ERROR_LAUNCH_FAILED);
    } else {
      isStuck(rank);
    }
    OK(nccl->ncclCommAbort(rank.communicator));
  });
  expectReport("race: ");
}

TEST_F(PlantedNcclFault, SentIsOverwritten) {
  runRanks([&](Rank &rank) {
    OK(cu->cuStreamSynchronize(rank.stream));
    OK(exchange(rank));
    CUstream other = stream();
    if (rank.index == 3) {
      OK(cu->cuMemsetD8Async(rank.sent, 5, bytes, other));
      cu->cuStreamSynchronize(other);
      EXPECT_EQ(cu->cuStreamSynchronize(rank.stream), CUDA_ERROR_LAUNCH_FAILED);
    } else {
      isStuck(rank);
    }
    OK(nccl->ncclCommAbort(rank.communicator));
  });
  expectReport("race: ");
}

TEST_F(PlantedNcclFault, SendsWhatItReceives) {
  runRanks([&](Rank &rank) {
    if (rank.index == 1)
      rank.received = rank.sent;
    exchange(rank);
    OK(nccl->ncclCommAbort(rank.communicator));
  });
  expectReport("in one group rank 1 receives from rank 0 where it sends to "
               "rank 2");
}

TEST_F(PlantedNcclFault, TwoRanksOfAGpu) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      enter(0);
      ncclComm_t communicator = nullptr;
      EXPECT_EQ(nccl->ncclCommInitRankConfig(&communicator, 2, id, i, nullptr),
                ncclInvalidUsage);
      EXPECT_EQ(nccl->ncclCommAbort(communicator), ncclSuccess);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(PlantedNcclFault, RankThatNeverComes) {
  burst_emulated_fail("ncclCommInitRankConfig@1", 1, BURST_EMULATED_NEVER);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      enter(i);
      ncclComm_t communicator = nullptr;
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      EXPECT_EQ(nccl->ncclCommInitRankConfig(&communicator, 2, id, i, &config),
                ncclInProgress);
      ncclResult_t result = ncclSuccess;
      for (int round = 0; round < 20; ++round) {
        EXPECT_EQ(nccl->ncclCommGetAsyncError(communicator, &result),
                  ncclSuccess);
        EXPECT_EQ(result, ncclInProgress);
      }
      EXPECT_EQ(nccl->ncclCommAbort(communicator), ncclSuccess);
    });
  for (std::thread &thread : threads)
    thread.join();
}

class FromTheEnvironment : public EmulatedNccl {
protected:
  FromTheEnvironment()
      : EmulatedNccl(
            {{"BURST_EMULATED_GPUS", "4"},
             {"BURST_EMULATED_FAIL", "cuMemAlloc_v2@1:3:2,ncclRecv@0:1:3"}}) {}
};

TEST_F(FromTheEnvironment, FailuresArePlanted) {
  runRanks([&](Rank &rank) {
    CUdeviceptr third = 0;
    EXPECT_EQ(cu->cuMemAlloc_v2(&third, 64),
              rank.index == 1 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
    if (rank.index == 0)
      EXPECT_EQ(nccl->ncclRecv(rank.receive(), bytes, ncclInt8, 1,
                               rank.communicator, rank.stream),
                ncclInternalError);
    OK(nccl->ncclCommAbort(rank.communicator));
  });
}

} // namespace
