//===- ProcessTest.cpp - Tests of ranks that are processes ----------------===//

#include "Harness.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace burst::test;

namespace {

/// The ranks of a job, as a launcher would start them.
class Job {
public:
  explicit Job(int64_t size)
      : variables({"BURST_RANK=%r", "BURST_NUM_RANKS=" + std::to_string(size),
                   "BURST_ADDRESS=127.0.0.1:%p"}),
        size(size) {}
  Job(const Job &) = delete;
  ~Job() {
    for (pid_t pid : pids) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    for (int fd : outputs)
      close(fd);
  }

  /// Variables of all ranks, with %r for the rank and %p for a free port.
  std::vector<std::string> variables;
  int port = freePort();

  void start(int64_t rank, const std::vector<std::string> &arguments) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::vector<std::string> environment;
    for (std::string variable : variables) {
      replace(variable, "%r", std::to_string(rank));
      replace(variable, "%p", std::to_string(port));
      environment.push_back(variable);
    }
    std::vector<std::string> words = {TEST_RANK};
    words.insert(words.end(), arguments.begin(), arguments.end());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    pid_t pid;
    ASSERT_EQ(posix_spawn(&pid, TEST_RANK, &actions, nullptr,
                          pointers(words).data(), pointers(environment).data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    pids.push_back(pid);
    outputs.push_back(ends[0]);
  }

  void startAll(const std::vector<std::string> &arguments) {
    for (int64_t rank = 0; rank < size; ++rank)
      start(rank, arguments);
  }

  void send(int signal) {
    for (pid_t pid : pids)
      kill(pid, signal);
  }

  /// What rank `index` of those that were started has said; "nothing" if it
  /// ended without, "late" after 60 seconds.
  std::string hear(size_t index) {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::string text;
    char bytes[4096];
    for (;;) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd polled = {outputs[index], POLLIN, 0};
      if (left.count() <= 0 || poll(&polled, 1, int(left.count())) == 0)
        return "late";
      ssize_t got = read(outputs[index], bytes, sizeof(bytes));
      if (got <= 0)
        break;
      text.append(bytes, got);
    }
    return text.empty() ? "nothing" : text.substr(0, text.find('\n'));
  }

private:
  int64_t size;
  std::vector<pid_t> pids;
  std::vector<int> outputs;

  static void replace(std::string &text, const std::string &from,
                      const std::string &to) {
    size_t at = text.find(from);
    if (at != text.npos)
      text.replace(at, from.size(), to);
  }

  static std::vector<char *> pointers(std::vector<std::string> &words) {
    std::vector<char *> list;
    for (std::string &word : words)
      list.push_back(word.data());
    list.push_back(nullptr);
    return list;
  }
};

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
        EXPECT_EQ(heard, "nothing");
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

TEST(Process, RankThatComesTwiceIsNamed) {
  Job job(4);
  for (int rank : {2, 2, 0})
    job.start(rank, {"ring"});
  for (int index = 0; index < 3; ++index)
    expectContains(job.hear(index),
                   {"says that it is rank 2, as another one at 127.0.0.1"});
}

} // namespace
