//===- TransportTest.cpp - Ranks on GPUs, over NCCL -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Harness.h"
#include "test/standins/Ring.h"
#include "test/unit/runtime/Harness.h"

#include <chrono>
#include <thread>

using namespace burst::standins;
using namespace burst::test;

namespace {

class Nccl : public RingTest {
protected:
  Nccl() : RingTest({{"BURST_EMULATED_GPUS", "4"}}) {}

  std::vector<World> worlds = makeWorlds(ranks);
  std::vector<ncclComm_t> given;
  bool watched = true;
  std::function<void(int64_t)> before = [](int64_t) {};

  std::string connect(const Task &task, burst_device *device,
                      burst_transport **transport) override {
    before(task.rank);
    burst_nccl_config how = {};
    how.size = sizeof(how);
    how.device = device;
    how.world = watched ? task.world : nullptr;
    how.communicator = given.empty() ? nullptr : given[task.rank];
    return takeCoded(burst_transport_create_nccl(&how, transport));
  }

  void run(const Body &body, int64_t runs = 1) {
    common.runs = runs;
    runThreads(worlds, body);
  }

  /// Communicators that someone else has made.
  void giveCommunicators() {
    ncclUniqueId id;
    EXPECT_EQ(nccl->ncclGetUniqueId(&id), ncclSuccess);
    given.resize(ranks);
    inParallel(ranks, [&](int64_t rank) {
      enter(int(rank));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      EXPECT_EQ(nccl->ncclCommInitRankConfig(&given[rank], ranks, id, int(rank),
                                             &config),
                ncclSuccess);
    });
  }
};

TEST_F(Nccl, RanksRunARing) {
  run(ring, 3);
  expectRing();
}

TEST_F(Nccl, RanksGather) {
  run(gather, 3);
  expectRing();
}

TEST_F(Nccl, GathersOfAllAreOneCall) {
  run(gatherAll, 3);
  expectRing();
  burst_emulated_fail("ncclAllGather@1", 1, ncclSystemError);
  run(gatherAll);
  expectContains(errors[1],
                 {"SYSTEM ", "ncclAllGather", "unhandled system error"});
}

TEST_F(Nccl, ExchangesOfAllAreOneCall) {
  run(exchangeAll, 3);
  expectRing();
  burst_emulated_fail("ncclAlltoAll@1", 1, ncclSystemError);
  run(exchangeAll);
  expectContains(errors[1],
                 {"SYSTEM ", "ncclAlltoAll", "unhandled system error"});
}

TEST_F(Nccl, CommunicatorOfTheCallerIsSplit) {
  giveCommunicators();
  for (bool withWorld : {false, true}) {
    watched = withWorld;
    run(ring, 2);
    expectRing();
  }
  for (ncclComm_t communicator : given)
    EXPECT_EQ(nccl->ncclCommDestroy(communicator), ncclSuccess);
}

TEST_F(Nccl, FailureOfOneRankEndsAll) {
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

TEST_F(Nccl, CommunicatorOfTheCallerIsNotAborted) {
  giveCommunicators();
  run([](burst_rank *rank, const burst_table *table, void *const *) {
    if (table->index(rank) == 2)
      table->require(rank, 1, 2, "luck");
  });
  for (ncclComm_t communicator : given) {
    ncclResult_t state = ncclInProgress;
    EXPECT_EQ(nccl->ncclCommGetAsyncError(communicator, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(nccl->ncclCommDestroy(communicator), ncclSuccess);
  }
}

TEST_F(Nccl, RankThatDoesNotSendIsLate) {
  common.deadline = 0.5;
  run([](burst_rank *rank, const burst_table *table, void *const *values) {
    if (table->index(rank) != 1)
      ring(rank, table, values);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  });
  for (int64_t rank : {0, 2, 3})
    expectContains(errors[rank], {"waited 0.5 s for rank "});
}

TEST_F(Nccl, FailuresOfTheLibraryNameTheCall) {
  const std::pair<const char *, const char *> calls[] = {
      {"ncclGetUniqueId", "ncclGetUniqueId"},
      {"ncclCommInitRankConfig@1", "ncclCommInitRankConfig"},
      {"ncclSend@1", "ncclSend"},
      {"ncclGroupEnd@1", "ncclGroupEnd"}};
  for (auto [planted, name] : calls) {
    burst_emulated_fail(planted, 1, ncclSystemError);
    worlds.clear();
    worlds = makeWorlds(ranks);
    run(ring);
    std::string all;
    for (const std::string &error : errors) {
      EXPECT_NE(error, "") << planted;
      all += error;
    }
    expectContains(all, {"SYSTEM ", name, "unhandled system error"});
  }
}

TEST_F(Nccl, ChecksItsConfig) {
  burst_nccl_config config = {};
  config.size = sizeof(config);
  config.world = worlds[0].get();
  burst_transport *transport;
  EXPECT_EQ(takeCoded(burst_transport_create_nccl(&config, &transport)),
            "INVALID_ARGUMENT nccl transport: no CUDA device");
  burst_cuda_config where = {};
  where.size = sizeof(where);
  burst_device *device;
  ASSERT_EQ(takeCoded(burst_device_create_cuda(&where, &device)), "");
  Device owned(device);
  config.device = device;
  config.world = nullptr;
  EXPECT_EQ(takeCoded(burst_transport_create_nccl(&config, &transport)),
            "INVALID_ARGUMENT nccl transport: no world and no communicator, "
            "wanted one of them or both");
}

} // namespace
