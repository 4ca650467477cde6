//===- Links.cpp - Ranks of the emulated NCCL in processes ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Links.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace burst::standins;

/// A name that is in no folder.
static socklen_t nameOf(uint64_t id, int rank, sockaddr_un &name) {
  name = {};
  name.sun_family = AF_UNIX;
  int length =
      snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
               "burst-nccl-%llx-%d", static_cast<unsigned long long>(id), rank);
  return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + size_t(length));
}

static bool readAll(int fd, void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t count = recv(fd, static_cast<char *>(to) + done, bytes - done, 0);
    if (count <= 0)
      return false;
    done += size_t(count);
  }
  return true;
}

static bool writeAll(int fd, const void *from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t count = ::send(fd, static_cast<const char *>(from) + done,
                           bytes - done, MSG_NOSIGNAL);
    if (count <= 0)
      return false;
    done += size_t(count);
  }
  return true;
}

Links::Links(uint64_t id, int rank, int ranks, int gpu)
    : id(id), rank(rank), ranks(ranks), gpu(gpu), sockets(size_t(ranks), -1),
      ordinals(size_t(ranks), -1) {
  sockaddr_un name;
  socklen_t length = nameOf(id, rank, name);
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, reinterpret_cast<sockaddr *>(&name), length) != 0 ||
      listen(listener, ranks) != 0)
    perror("burst-emulated-nccl");
  ordinals[size_t(rank)] = gpu;
  reader = std::thread([this] { run(); });
}

Links::~Links() {
  isEnded = true;
  reader.join();
  for (int fd : sockets)
    if (fd >= 0)
      close(fd);
  close(listener);
}

/// Who is who: the rank, and its GPU.
bool Links::greet(int fd, int &peer) {
  int own[] = {rank, gpu}, other[2];
  if (!writeAll(fd, own, sizeof(own)) || !readAll(fd, other, sizeof(other)) ||
      other[0] < 0 || other[0] >= ranks)
    return false;
  peer = other[0];
  sockets[size_t(peer)] = fd;
  ordinals[size_t(peer)] = other[1];
  return true;
}

/// To those before this rank, and from those behind it.
bool Links::connectAll() {
  for (int peer = 0; peer < rank;) {
    sockaddr_un name;
    socklen_t length = nameOf(id, peer, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<sockaddr *>(&name), length) == 0) {
      int found;
      if (!greet(fd, found))
        return false;
      ++peer;
      continue;
    }
    close(fd); // it is not there yet
    if (isEnded)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (int left = ranks - 1 - rank; left > 0;) {
    pollfd waited = {listener, POLLIN, 0};
    if (isEnded)
      return false;
    if (poll(&waited, 1, 10) != 1)
      continue;
    int found, fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 || !greet(fd, found))
      return false;
    --left;
  }
  return true;
}

void Links::run() {
  if (!connectAll())
    return;
  ready = true;
  std::vector<pollfd> waited;
  for (int fd : sockets)
    waited.push_back({fd, POLLIN, 0});
  while (!isEnded) {
    if (poll(waited.data(), waited.size(), 10) <= 0)
      continue;
    for (int peer = 0; peer < ranks; ++peer)
      if (waited[size_t(peer)].revents != 0 && !readFrame(peer))
        waited[size_t(peer)].fd = -1; // it has ended
  }
}

bool Links::readFrame(int peer) {
  Frame frame;
  int fd = sockets[size_t(peer)];
  if (!readAll(fd, &frame, sizeof(frame)))
    return false;
  std::vector<char> data(frame.bytes);
  if (!readAll(fd, data.data(), data.size()))
    return false;
  std::lock_guard lock(mutex);
  if (frame.isTaken)
    taken[{peer, frame.number}] = true;
  else
    come[{peer, frame.number}] = {NcclCall{frame.call}, std::move(data)};
  return true;
}

void Links::write(int peer, const Frame &frame, const std::vector<char> &data) {
  int fd = sockets[size_t(peer)];
  // A process that has ended takes nothing, as NCCL would hang.
  if (writeAll(fd, &frame, sizeof(frame)))
    (void)writeAll(fd, data.data(), data.size());
}

void Links::send(int peer, uint64_t number, NcclCall call,
                 std::vector<char> data) {
  write(peer, {number, data.size(), 0, uint32_t(call)}, data);
}

bool Links::isTaken(int peer, uint64_t number) {
  std::lock_guard lock(mutex);
  return taken.erase({peer, number}) != 0;
}

std::optional<Links::Message> Links::take(int peer, uint64_t number) {
  std::optional<Message> message;
  {
    std::lock_guard lock(mutex);
    auto found = come.find({peer, number});
    if (found == come.end())
      return message;
    message = std::move(found->second);
    come.erase(found);
  }
  write(peer, {number, 0, 1, 0}, {});
  return message;
}
