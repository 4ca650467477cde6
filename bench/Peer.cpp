//===- Peer.cpp - programs that burst is compared with --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Peer.h"

#include "bench/Bound.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using namespace burst::bench;

/// A child that failed as often is not started again.
static constexpr int patience = 3;

Peer::Peer(std::vector<std::string> command, std::string missing,
           int64_t threads, double timeout)
    : command(std::move(command)), missing(std::move(missing)),
      threads(threads), timeout(timeout) {}

static llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

llvm::Error Peer::start() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return failure(llvm::Twine("cannot make a channel: ") +
                   std::strerror(errno));
  channel = pair[0];
  errors = memfd_create("peer", MFD_CLOEXEC);

  // Threads as burst's: each on a processor of its own, from the first on. And
  // as burst writes to memory that is there, results are not mapped anew.
  std::string places;
  for (int64_t i = 0; i < threads; ++i)
    places += (i == 0 ? "{" : ",{") + std::to_string(i) + "}";
  std::vector<std::string> environment{
      "OMP_NUM_THREADS=" + std::to_string(threads), "OMP_PLACES=" + places,
      "OMP_PROC_BIND=true", "MALLOC_MMAP_MAX_=0",
      "MALLOC_TRIM_THRESHOLD_=" + std::to_string(int64_t(1) << 40)};
  for (char **variable = environ; *variable; ++variable)
    if (llvm::StringRef name(*variable);
        !name.starts_with("OMP_") && !name.starts_with("MALLOC_"))
      environment.emplace_back(*variable);
  auto pointers = [](std::vector<std::string> &strings) {
    std::vector<char *> pointers;
    pointers.reserve(strings.size() + 1);
    for (std::string &string : strings)
      pointers.push_back(string.data());
    pointers.push_back(nullptr);
    return pointers;
  };

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  int status =
      posix_spawnp(&child, command.front().c_str(), &actions, nullptr,
                   pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  if (status != 0) {
    child = -1;
    stop();
    return failure("cannot start " + command.front() + ": " +
                   std::strerror(status));
  }
  llvm::Expected<llvm::json::Object> hello = hear();
  if (!hello)
    return hello.takeError();
  std::optional<llvm::StringRef> said = hello->getString("name");
  if (!said)
    return broken("the peer did not say its name first");
  name = said->str();
  return llvm::Error::success();
}

void Peer::stop() {
  for (int *descriptor : {&channel, &errors})
    if (*descriptor >= 0)
      close(std::exchange(*descriptor, -1));
  heard.clear();
  if (child < 0)
    return;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  child = -1;
}

llvm::Error Peer::broken(const llvm::Twine &what) {
  std::string message = what.str();
  std::string text(4096, '\0');
  off_t end = lseek(errors, 0, SEEK_END);
  ssize_t size = pread(errors, text.data(), text.size(),
                       std::max<off_t>(0, end - ssize_t(text.size())));
  text.resize(std::max<ssize_t>(size, 0));
  llvm::StringRef line = llvm::StringRef(text).rtrim();
  line = line.substr(line.rfind('\n') + 1);
  if (!line.empty())
    message += ": " + line.str();
  stop();
  return failure(message);
}

llvm::Error Peer::say(llvm::StringRef line) {
  while (!line.empty()) {
    ssize_t sent = send(channel, line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0)
      return broken("the peer ended");
    line = line.drop_front(sent);
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::json::Object> Peer::hear() {
  double end = now() + timeout;
  while (!llvm::StringRef(heard).contains('\n')) {
    pollfd ready{channel, POLLIN, 0};
    double left = std::max(0.0, end - now());
    int count = poll(&ready, 1, static_cast<int>(std::min(left, 1e6) * 1e3));
    if (count < 0 && errno == EINTR)
      continue;
    if (count == 0)
      return broken("no answer of the peer in " +
                    llvm::formatv("{0:f1} s", timeout).str());
    char buffer[4096];
    ssize_t size = recv(channel, buffer, sizeof(buffer), 0);
    if (size <= 0) {
      int status = 0;
      pid_t ended = 0;
      for (int i = 0; i < 100 && ended == 0; ++i) {
        ended = waitpid(child, &status, WNOHANG);
        if (ended == 0)
          usleep(10000);
      }
      if (ended == 0)
        return broken("the peer closed its output");
      child = -1;
      return broken(WIFEXITED(status) ? "the peer ended with status " +
                                            std::to_string(WEXITSTATUS(status))
                                      : "the peer was ended by signal " +
                                            std::to_string(WTERMSIG(status)));
    }
    heard.append(buffer, size);
  }
  size_t length = heard.find('\n');
  std::string line = heard.substr(0, length);
  heard.erase(0, length + 1);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
  llvm::json::Object *object = value ? value->getAsObject() : nullptr;
  if (object)
    return std::move(*object);
  if (!value)
    llvm::consumeError(value.takeError());
  return broken("the peer answered " + line.substr(0, 60));
}

std::string Peer::greet() {
  if (!missing.empty())
    return "missing: " + missing;
  if (child < 0)
    if (llvm::Error error = start())
      return "missing: " + llvm::toString(std::move(error));
  return name;
}

llvm::Expected<double> Peer::ask(const llvm::json::Object &question) {
  if (!missing.empty())
    return failure(missing);
  auto talk = [&]() -> llvm::Expected<llvm::json::Object> {
    if (child < 0)
      if (llvm::Error error = start())
        return std::move(error);
    std::string line =
        llvm::formatv("{0}\n", llvm::json::Value(llvm::json::Object(question)));
    if (llvm::Error error = say(line))
      return std::move(error);
    return hear();
  };
  llvm::Expected<llvm::json::Object> answer = talk();
  if (answer) {
    if (std::optional<llvm::StringRef> why = answer->getString("error")) {
      failures = 0;
      return failure(*why);
    }
    std::optional<double> seconds = answer->getNumber("seconds");
    if (seconds && *seconds > 0) {
      failures = 0;
      return *seconds;
    }
    answer = broken(llvm::formatv("the peer answered {0}",
                                  llvm::json::Value(std::move(*answer))));
  }
  std::string message = llvm::toString(answer.takeError());
  if (++failures == patience)
    missing = "given up: " + message;
  return failure(message);
}
