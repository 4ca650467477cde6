//===- FreePort.h - Addresses at which nobody listens -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_FREEPORT_H
#define BURST_TEST_FREEPORT_H

#include <mutex>
#include <netinet/in.h>
#include <random>
#include <set>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace burst::test {

/// A port of this machine that nobody listens at, another one each time. It is
/// drawn below those that the system gives to connections: one of these could
/// take it in between.
inline int freePort() {
  static std::mutex mutex;
  static std::set<int> given;
  std::lock_guard<std::mutex> guard(mutex);
  std::random_device random;
  std::uniform_int_distribution<int> ports(15000, 32000);
  for (;;) {
    // A process that another thread starts meanwhile must not keep the port.
    int port = ports(random),
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(uint16_t(port));
    bool isFree =
        bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0;
    close(fd);
    if (isFree && given.insert(port).second)
      return port;
  }
}

inline std::string freeAddress() {
  return "127.0.0.1:" + std::to_string(freePort());
}

} // namespace burst::test

#endif // BURST_TEST_FREEPORT_H
