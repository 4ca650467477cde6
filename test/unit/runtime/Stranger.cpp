//===- Stranger.cpp - Whoever may call a rank -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Stranger.h"
#include "Harness.h"
#include "runtime/src/world/Token.h"

#include <chrono>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace burst::test {

// Worlds of this process do not depend on the user's token, nor make one.
[[maybe_unused]] static const int theToken =
    setenv("BURST_TOKEN", "of tests", 0);

Stranger::Stranger(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 1000; ++i) {
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) ==
        0) {
      timeval most = {60, 0};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
      return;
    }
    close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fd = -1;
  ADD_FAILURE() << "nobody listens";
}

Stranger::~Stranger() { close(fd); }

void Stranger::say(const std::string &text) const {
  send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string Stranger::hear() const {
  std::string text;
  char bytes[512];
  ssize_t got;
  while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0)
    text.append(bytes, got);
  return got < 0 && errno == EAGAIN ? "late" : text;
}

static burst_token tokenOf(const std::string &address, int64_t ranks) {
  burst_world_config config = {};
  config.size = sizeof(config);
  config.num_ranks = ranks;
  config.address = address.c_str();
  burst_place place;
  burst_address resolved;
  burst_token token = {};
  EXPECT_EQ(take(burst_place_find(&config, &place)), "");
  EXPECT_EQ(take(burst_address_resolve(place.host, place.port, &resolved)), "");
  EXPECT_EQ(take(burst_token_find(&place, &resolved, &token)), "");
  return token;
}

std::string helloToken(const std::string &address, int64_t ranks) {
  burst_token token = tokenOf(address, ranks);
  return {reinterpret_cast<const char *>(token.hello), sizeof(token.hello)};
}

std::string answerToken(const std::string &address, int64_t ranks) {
  burst_token token = tokenOf(address, ranks);
  return {reinterpret_cast<const char *>(token.answer), sizeof(token.answer)};
}

std::string header(uint16_t version, uint16_t kind, uint64_t bytes) {
  std::string text = "BRST";
  text.append(reinterpret_cast<const char *>(&version), 2);
  text.append(reinterpret_cast<const char *>(&kind), 2);
  text.append(reinterpret_cast<const char *>(&bytes), 8);
  return text;
}

std::string bytesOf(const std::vector<int64_t> &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()), numbers.size() * 8};
}

std::string hello(const std::string &address, int64_t ranks, int64_t rank,
                  int64_t world, uint16_t version) {
  return helloToken(address, ranks) + header(version, 1, 40) +
         bytesOf({world, rank, 0, 0, 1});
}

} // namespace burst::test
