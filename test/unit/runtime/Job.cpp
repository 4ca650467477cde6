//===- Job.cpp - Ranks that are processes, as a launcher starts them ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Job.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace burst::test {

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

Job::Job(int64_t size)
    : variables({"BURST_RANK=%r", "BURST_NUM_RANKS=" + std::to_string(size),
                 "BURST_ADDRESS=127.0.0.1:%p"}),
      ranks(size) {}

Job::~Job() {
  send(SIGKILL);
  for (pid_t pid : pids)
    if (pid > 0)
      waitpid(pid, nullptr, 0);
  for (const std::vector<int> *files : {&outputs, &errors})
    for (int fd : *files)
      close(fd);
}

void Job::start(int64_t rank, const std::vector<std::string> &arguments) {
  std::vector<std::string> words = {TEST_RANK};
  words.insert(words.end(), arguments.begin(), arguments.end());
  startCommand(words, rank);
}

void Job::startAll(const std::vector<std::string> &arguments) {
  for (int64_t rank = 0; rank < ranks; ++rank)
    start(rank, arguments);
}

void Job::startCommand(const std::vector<std::string> &given, int64_t rank) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::vector<std::string> environment, words = given;
  for (std::string variable : variables) {
    replace(variable, "%r", std::to_string(rank));
    replace(variable, "%p", std::to_string(port));
    environment.push_back(variable);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  int said =
      log.empty()
          ? memfd_create("stderr", MFD_CLOEXEC)
          : open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(said, 0);
  posix_spawn_file_actions_adddup2(&actions, said, 2);
  pid_t pid;
  ASSERT_EQ(posix_spawn(&pid, words[0].c_str(), &actions, nullptr,
                        pointers(words).data(), pointers(environment).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  pids.push_back(pid);
  outputs.push_back(ends[0]);
  errors.push_back(said);
}

void Job::send(int signal) {
  for (size_t i = 0; i < pids.size(); ++i)
    send(i, signal);
}

void Job::send(size_t index, int signal) {
  if (pids[index] > 0)
    kill(pids[index], signal);
}

std::string Job::hearAll(size_t index) {
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
  return text.empty() ? "nothing, and " + howItEnded(index) : text;
}

std::string Job::howItEnded(size_t index) {
  int status = 0;
  if (waitpid(pids[index], &status, 0) != pids[index])
    return "cannot be waited for";
  pids[index] = -1;
  std::string how =
      WIFSIGNALED(status)
          ? "was killed by signal " + std::to_string(WTERMSIG(status))
          : "exited with status " + std::to_string(WEXITSTATUS(status));
  char bytes[4096];
  ssize_t got = pread(errors[index], bytes, sizeof(bytes), 0);
  return got > 0 ? how + ": " + std::string(bytes, size_t(got)) : how;
}

std::string Job::hear(size_t index) {
  std::string text = hearAll(index);
  bool isReport = text.starts_with("nothing, ");
  return isReport ? text : text.substr(0, text.find('\n'));
}

} // namespace burst::test
