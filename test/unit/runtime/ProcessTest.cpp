//===- ProcessTest.cpp - Tests of ranks that are processes ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"
#include "Job.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace burst::test;

namespace {

std::string codeOf(const std::string &error) {
  return error.substr(0, error.find(' '));
}

TEST(Process, RanksRunARing) {
  Job job(4);
  job.startAll({"ring"});
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(job.hear(rank), "ok") << rank;
}

TEST(Process, AnyLauncherStartsThem) {
  const std::vector<std::string> launchers[] = {
      {"OMPI_COMM_WORLD_RANK=%r", "OMPI_COMM_WORLD_SIZE=2",
       "OMPI_COMM_WORLD_LOCAL_RANK=%r", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
       "BURST_PORT=%p"},
      {"RANK=%r", "WORLD_SIZE=2", "LOCAL_RANK=%r", "MASTER_ADDR=localhost",
       "MASTER_PORT=12345", "BURST_PORT=%p"},
      {"PMI_RANK=%r", "PMI_SIZE=2", "MPI_LOCALNRANKS=2", "BURST_PORT=%p"},
      {"SLURM_PROCID=%r", "SLURM_NTASKS=2", "SLURM_LOCALID=%r",
       "SLURM_STEP_NODELIST=localhost", "BURST_PORT=%p"},
  };
  for (const std::vector<std::string> &variables : launchers) {
    Job job(2);
    job.variables = variables;
    job.startAll({"ring"});
    EXPECT_EQ(job.hear(0), "ok") << variables[0];
    EXPECT_EQ(job.hear(1), "ok") << variables[0];
  }
}

TEST(Process, RankThatDiesIsNamedByAll) {
  for (int culprit : {0, 3}) {
    Job job(4);
    job.startAll({"die", std::to_string(culprit), "2"});
    for (int rank = 0; rank < 4; ++rank) {
      std::string heard = job.hear(rank);
      if (rank == culprit) {
        EXPECT_EQ(heard, "nothing, and was killed by signal 9");
        continue;
      }
      EXPECT_EQ(codeOf(heard), "PEER_STOPPED");
      std::string self = "rank " + std::to_string(rank);
      std::string death = "rank " + std::to_string(culprit) + " died";
      // It may hear that before it is at a hop itself.
      if (heard.find(self + ": ") != std::string::npos)
        expectContains(heard, {self + ": " + death + "; 0.",
                               " s before, it was in front of its first hop"});
      else
        expectContains(heard, {self + ", hop ", death});
    }
  }
}

TEST(Process, RankThatExitsIsNamedByAll) {
  Job job(4);
  job.startAll({"exit", "1", "3"});
  for (int rank : {0, 2, 3})
    expectContains(job.hear(rank), {"PEER_STOPPED", "rank 1 died"});
}

TEST(Process, RankThatDiesBetweenRunsIsNamedByAll) {
  Job job(3);
  job.startAll({"rest", "1", "0"});
  for (int rank : {0, 2})
    expectContains(job.hear(rank), {"PEER_STOPPED", "rank 1 died; 0.",
                                    " s before, it was in no run"});
}

TEST(Process, RankThatFallsSilentIsNamedByAll) {
  // The fewest heartbeats that may be missed, also where nobody else is heard.
  for (auto [size, culprit] :
       {std::pair(4, 0), std::pair(4, 2), std::pair(2, 1)}) {
    Job job(size);
    job.startAll({"stop", std::to_string(culprit), "2"});
    for (int rank = 0; rank < size; ++rank)
      if (rank != culprit)
        expectContains(job.hear(rank),
                       {"PEER_STOPPED", "rank " + std::to_string(culprit) +
                                            " has been silent for 1."});
  }
}

TEST(Process, RanksThatAreAllStoppedGoOn) {
  Job job(3);
  job.startAll({"rest"});
  std::this_thread::sleep_for(std::chrono::seconds(1));
  job.send(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  job.send(SIGCONT);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(job.hear(rank), "ok") << rank;
}

TEST(Process, RankThatIsLateIsNamedByAll) {
  // Its heart beats; its neighbour waits for it, the others for that one.
  Job job(4);
  job.startAll({"sleep", "2", "2"});
  for (int rank : {0, 1, 3})
    expectContains(job.hear(rank),
                   {"waited 1.0 s", "rank 2 computes, its last hop was 2"});
}

TEST(Process, PlansAreCompared) {
  Job job(4);
  job.startAll({"mismatch", "2", "0"});
  for (int rank = 0; rank < 4; ++rank) {
    std::string heard = job.hear(rank);
    EXPECT_EQ(codeOf(heard), "MISMATCH");
    expectContains(heard, {"rank 2", " plan ", " runs plan "});
  }
}

TEST(Process, RankThatNeverComesIsNamedByAll) {
  Job job(4);
  for (int rank : {0, 1, 2})
    job.start(rank, {"absent"});
  for (int index : {0, 1, 2})
    expectContains(job.hear(index), {"1 ranks have not come: 3"});
}

TEST(Process, RankThatEndsWhileRanksMeetIsNamedByAll) {
  const std::pair<int, const char *> ends[] = {
      {SIGKILL, "rank 1 died before its first run"},
      {SIGSTOP, "rank 1 has been silent for "}};
  for (auto [signal, sentence] : ends) {
    Job job(4);
    for (int rank : {0, 1, 2}) // the others wait for rank 3
      job.start(rank, {"loop"});
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    job.send(1, signal);
    std::this_thread::sleep_for(
        std::chrono::seconds(signal == SIGSTOP ? 4 : 0));
    job.start(3, {"loop"}); // and is told as well
    for (int index : {0, 2, 3})
      expectContains(job.hear(index), {sentence});
  }
}

//===----------------------------------------------------------------------===//
// Descriptors and tokens
//===----------------------------------------------------------------------===//

TEST(Process, SoftLimitOfOpenFilesIsRaised) {
  Job job(4);
  job.startAll({"soft", "1", "0", "8"});
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(job.hear(rank), "ok") << rank;
}

/// A home of a test, and what jobs write beside their answers.
class Home {
public:
  std::filesystem::path path;

  Home() {
    std::string name = testing::TempDir() + "burst-home-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path = name;
  }
  Home(const Home &) = delete;
  ~Home() { std::filesystem::remove_all(path); }

  std::string log() const { return path / "log"; }
  std::string readLog() const {
    std::ifstream stream(log());
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

TEST(Process, RanksShareTheTokenOfTheirUser) {
  Home home;
  for (int round = 0; round < 2; ++round) {
    Job job(3);
    job.variables.push_back("HOME=" + home.path.string());
    job.startAll({"ring"});
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_EQ(job.hear(rank), "ok") << rank;
    EXPECT_TRUE(std::filesystem::exists(home.path / ".cache/burst/token"));
  }
}

TEST(Process, RankWithAnotherTokenIsAStranger) {
  Home home;
  Job job(2);
  job.log = home.log();
  job.variables.emplace_back("BURST_TOKEN=secret %r");
  job.startAll({"absent"});
  expectContains(job.hear(0), {"1 ranks have not come: 1 (",
                               " connections were ignored, the last from "
                               "127.0.0.1:",
                               "which does not have the token of this job"});
  expectContains(job.hear(1), {"rank 1 cannot reach rank 0 at 127.0.0.1:",
                               "the same BURST_TOKEN, address of rank 0 and "
                               "number of ranks"});
  // It tries again and again, and is told of once.
  std::string log = home.readLog();
  expectContains(log, {"burst: rank 0 ignores a connection from 127.0.0.1:"});
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
}

} // namespace
