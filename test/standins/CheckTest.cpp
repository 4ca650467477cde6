//===- CheckTest.cpp - Whether transports of GPUs keep the rules ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Harness.h"
#include "test/standins/Ring.h"
#include "test/unit/runtime/Harness.h"
#include "test/unit/runtime/Mailbox.h"

using namespace burst::standins;
using namespace burst::test;

namespace {

/// A transport of the host's own between GPUs.
class GpuMailboxes : public Mailboxes {
public:
  GpuMailboxes(int64_t ranks, const burst_driver *cu)
      : Mailboxes(ranks), cu(cu) {
    reaches = BURST_REACHES_GPU;
  }

private:
  void load(char *to, const char *from, size_t bytes, void *stream) override {
    EXPECT_EQ(cu->cuMemcpyDtoHAsync_v2(to, CUdeviceptr(from), bytes,
                                       static_cast<CUstream>(stream)),
              CUDA_SUCCESS);
    EXPECT_EQ(cu->cuStreamSynchronize(static_cast<CUstream>(stream)),
              CUDA_SUCCESS);
  }
  void store(char *to, const char *from, size_t bytes, void *stream) override {
    EXPECT_EQ(cu->cuMemcpyHtoDAsync_v2(CUdeviceptr(to), from, bytes,
                                       static_cast<CUstream>(stream)),
              CUDA_SUCCESS);
    EXPECT_EQ(cu->cuStreamSynchronize(static_cast<CUstream>(stream)),
              CUDA_SUCCESS);
  }
  const burst_driver *cu;
};

enum class Kind { Nccl, Ipc, Local, Host };

class Check : public RingTest, public testing::WithParamInterface<Kind> {
protected:
  // Streams that are let go read what others may be writing: it is no result.
  Check()
      : RingTest(
            {{"BURST_EMULATED_GPUS", "4"}, {"BURST_EMULATED_RACES", "0"}}) {}

  std::unique_ptr<GpuMailboxes> boxes;
  std::vector<burst_transport *> locals;

  std::string connect(const Task &task, burst_device *device,
                      burst_transport **transport) override {
    if (GetParam() == Kind::Local) {
      *transport = locals[task.rank];
      return "";
    }
    if (GetParam() == Kind::Host) {
      burst_transport_table table = boxes->table(task.rank);
      return takeCoded(burst_transport_create(&table, transport));
    }
    if (GetParam() == Kind::Nccl) {
      burst_nccl_config how = {};
      how.size = sizeof(how);
      how.device = device;
      how.world = task.world;
      return takeCoded(burst_transport_create_nccl(&how, transport));
    }
    burst_ipc_config how = {};
    how.size = sizeof(how);
    how.device = device;
    how.world = task.world;
    return takeCoded(burst_transport_create_ipc(&how, transport));
  }

  void check(int64_t what) {
    bool needsWorlds = GetParam() == Kind::Nccl || GetParam() == Kind::Ipc;
    auto worlds = needsWorlds ? makeWorlds(ranks) : std::vector<World>(ranks);
    boxes = std::make_unique<GpuMailboxes>(ranks, cu);
    locals.resize(ranks);
    if (GetParam() == Kind::Local) {
      burst_local_config config = {sizeof(config), ranks, 0, 0, 0};
      ASSERT_EQ(takeCoded(burst_transport_create_local(&config, locals.data())),
                "");
    }
    common.check = what;
    common.inOrder = needsWorlds;
    runThreads(worlds, nullptr);
    for (int64_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(errors[rank], "") << "of rank " << rank << ", " << what;
  }
};

TEST_P(Check, KeepsTheRules) { check(BURST_CHECK_MESSAGES); }

/// What is of all ranks of a group is one call, on a communicator of these: of
/// so many calls the last one fails.
TEST_P(Check, TakesCollectives) {
  const std::pair<const char *, int> calls[] = {
      {"ncclAllGather@1", 6}, {"ncclAlltoAll@1", 6}, {"ncclCommSplit@1", 2}};
  common.check = BURST_CHECK_MESSAGES;
  common.inOrder = true;
  for (auto [name, count] : calls) {
    if (GetParam() != Kind::Nccl)
      continue;
    burst_emulated_fail(name, count, ncclSystemError);
    auto worlds = makeWorlds(ranks);
    runThreads(worlds, nullptr);
    expectContains(errors[1], {"unhandled system error"});
  }
}

TEST_P(Check, FailsWhereOneIsLate) { check(BURST_CHECK_DEADLINE); }

TEST_P(Check, FailsWhereOneStops) { check(BURST_CHECK_STOP); }

std::string nameOf(const testing::TestParamInfo<Kind> &info) {
  const char *names[] = {"Nccl", "Ipc", "Local", "Host"};
  return names[int(info.param)];
}

/// Where the sizes of the other side are known before data moves: what ranks
/// run is compared for the others.
class CheckOfSizes : public Check {};

TEST_P(CheckOfSizes, FailsWhereRanksDisagree) { check(BURST_CHECK_MISMATCH); }

INSTANTIATE_TEST_SUITE_P(Transports, CheckOfSizes,
                         testing::Values(Kind::Local, Kind::Host), nameOf);
INSTANTIATE_TEST_SUITE_P(Transports, Check,
                         testing::Values(Kind::Nccl, Kind::Ipc, Kind::Local,
                                         Kind::Host),
                         nameOf);

} // namespace
