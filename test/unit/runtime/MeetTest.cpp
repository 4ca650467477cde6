//===- MeetTest.cpp - Tests of how ranks find each other ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"
#include "Stranger.h"
#include "runtime/src/world/Socket.h"

#include <arpa/inet.h>
#include <chrono>
#include <functional>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace burst::test;

namespace {

std::string create(const burst_world_config &config) {
  burst_world *world;
  std::string error = takeCoded(burst_world_create(&config, &world));
  burst_world_destroy(world);
  return error;
}

void sleepFor(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

int portOf(const std::string &address) {
  return std::stoi(address.substr(address.find(':') + 1));
}

//===----------------------------------------------------------------------===//
// Strangers
//===----------------------------------------------------------------------===//

/// What rank 0 of 2 says when a stranger has said this, and nobody else came;
/// and what the stranger hears.
std::string disturb(const std::string &address, const std::string &text,
                    double timeout = 1, std::string *heard = nullptr) {
  std::string error;
  std::thread rank0([&] {
    burst_world_config config = worldConfig(address.c_str(), 2, 0);
    config.timeout_seconds = timeout;
    error = create(config);
  });
  {
    Stranger stranger(portOf(address));
    stranger.say(text);
    if (heard)
      *heard = stranger.hear();
    rank0.join();
  }
  return error;
}

using Words = std::function<std::string(const std::string &address)>;

TEST(Meet, StrangersAreIgnored) {
  const char *other = "which does not have the token of this job";
  const char *noHello = "which does not say hello";
  auto token = [](const std::string &address) {
    return helloToken(address, 2);
  };
  const std::pair<Words, const char *> cases[] = {
      {[](auto &) { return "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"; },
       other},
      {[](auto &) { return std::string(100000, 'x'); }, other},
      {[](auto &) { return std::string(32, 0) + header(2, 1, 40); }, other},
      // Another number of ranks, and another address.
      {[](auto &address) { return hello(address, 3, 1); }, other},
      {[](auto &address) {
         return hello("localhost" + address.substr(9), 2, 1);
       },
       other},
      // What the rank itself would answer.
      {[](auto &address) { return answerToken(address, 2) + header(2, 1, 40); },
       other},
      // The first byte differs, and the last one.
      {[&](auto &address) {
         std::string text = token(address);
         text[0] ^= 1;
         return text;
       },
       other},
      {[&](auto &address) {
         std::string text = token(address);
         text[31] ^= 1;
         return text;
       },
       other},
      {[&](auto &address) { return token(address) + header(2, 77, 40); },
       noHello},
      {[&](auto &address) {
         return token(address) + header(2, 1, uint64_t(-1));
       },
       noHello},
      {[&](auto &address) { return token(address) + std::string(16, 'x'); },
       noHello},
      {[](auto &address) { return hello(address, 2, 1, 7); },
       "which is of another start of this job"},
  };
  inParallel(std::size(cases), [&](int64_t i) {
    std::string address = freeAddress(), heard;
    expectContains(
        disturb(address, cases[i].first(address), 1, &heard),
        {"DEADLINE_EXCEEDED rank 0: world: waited 1.0 s at " + address,
         "1 ranks have not come: 1 (1 connections were ignored, the last from "
         "127.0.0.1:",
         cases[i].second});
    EXPECT_EQ(heard, "") << cases[i].second;
  });
}

TEST(Meet, WaitsForTheRestOfAHello) {
  std::string address = freeAddress(), all = hello(address, 2, 1);
  for (size_t bytes : {0, 20, 40, 60})
    expectContains(disturb(address, all.substr(0, bytes), 0.3),
                   {"1 ranks have not come: 1"});
}

TEST(Meet, EndsWhereRanksWereStartedWrongly) {
  std::string address = freeAddress();
  const std::pair<std::string, const char *> texts[] = {
      {hello(address, 2, 1, 0, 9), "speaks version 9 of burst, wanted 2"},
      {hello(address, 2, 0), "says that it is rank 0, wanted one of the ranks "
                             "1 to 1"},
      {hello(address, 2, 2), "says that it is rank 2"},
      {hello(address, 2, -5), "says that it is rank -5"},
      {hello(address, 2, INT64_MAX), "says that it is rank 922337203685477580"},
  };
  for (const auto &[text, why] : texts) {
    std::string heard;
    expectContains(disturb(address, text, 0.3, &heard),
                   {"MISMATCH rank 0: world: a process at 127.0.0.1:", why});
    expectContains(heard, {"world: a process at 127.0.0.1:", why});
  }
}

TEST(Meet, SucceedsInSpiteOfStrangers) {
  std::string address = freeAddress(), errors[3];
  auto start = [&](int64_t rank) {
    errors[rank] = create(worldConfig(address.c_str(), 3, rank));
  };
  std::thread rank0(start, 0);
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 100; ++i)
    silent.push_back(std::make_unique<Stranger>(portOf(address)));
  Stranger garbage(portOf(address));
  garbage.say("garbage, and more of it than a header has");
  Stranger other(portOf(address));
  other.say(hello(address, 4, 1));
  std::thread rank1(start, 1), rank2(start, 2);
  rank0.join();
  rank1.join();
  rank2.join();
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
}

/// What rank 1 of 2 says of a stranger that listens where rank 0 should.
std::string answered(const std::string &address, const std::string &text) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  sockaddr_in bound = {};
  bound.sin_family = AF_INET;
  bound.sin_port = htons(portOf(address));
  bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr *>(&bound), sizeof(bound)),
            0);
  EXPECT_EQ(listen(listener, 4), 0);
  std::string error;
  std::thread rank1([&] {
    burst_world_config config = worldConfig(address.c_str(), 2, 1);
    config.timeout_seconds = 0.3;
    error = create(config);
  });
  int fd = accept(listener, nullptr, nullptr);
  send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  rank1.join();
  close(fd);
  close(listener);
  return error;
}

TEST(Meet, SaysWhatListensInPlaceOfRank0) {
  std::string address = freeAddress(), token = answerToken(address, 2);
  const std::string none = "SYSTEM rank 1: world: what listens at " + address +
                           " is not rank 0 of this job: it begins with ";
  expectContains(answered(address, "HTTP/1.1 400 Bad Request\r\n\r\n"),
                 {none + "48 54 54 50"});
  expectContains(answered(address, std::string(100, 'x')), {none + "78"});
  expectContains(answered(address, ""),
                 {"DEADLINE_EXCEEDED rank 1: world: rank 1 cannot reach rank 0 "
                  "at " +
                  address + " in time: Connection timed out"});
  expectContains(
      answered(address, token + header(2, 3, 13) + bytesOf({5}) + "no, 1"),
      {"PEER_STOPPED rank 1: world: rank 0 refused: no, 1"});
  expectContains(answered(address, token + header(7, 2, 8) + bytesOf({5})),
                 {"MISMATCH rank 1: world: rank 0 speaks version 7 of burst, "
                  "wanted 2"});
  // What this rank has said itself.
  expectContains(answered(address, hello(address, 2, 1)), {none});
  // Sizes that would be too large.
  for (uint16_t kind : {2, 3})
    expectContains(
        answered(address, token + header(2, kind, 1u << 30) + bytesOf({5})),
        {none + "42 52 53 54"});
}

//===----------------------------------------------------------------------===//
// Ranks that come twice
//===----------------------------------------------------------------------===//

TEST(Meet, RankThatComesTwiceIsToldToAll) {
  // Also to those who come when rank 0 knows it already.
  std::string address = freeAddress(), errors[4];
  std::vector<std::thread> threads;
  for (int64_t rank : {0, 1, 1, 2}) {
    threads.emplace_back([&, rank, index = threads.size()] {
      errors[index] = create(worldConfig(address.c_str(), 3, rank));
    });
    if (rank == 1)
      sleepFor(300);
  }
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &error : errors)
    expectContains(error, {"world: a process at 127.0.0.1:",
                           " says that it is rank 1, as another one at "
                           "127.0.0.1:"});
}

TEST(Meet, WorldsGoOnWhereARankComesTwiceLater) {
  std::string address = freeAddress();
  World worlds[2];
  inParallel(2, [&](int64_t rank) {
    burst_world_config config = worldConfig(address.c_str(), 2, rank);
    burst_world *world;
    EXPECT_EQ(take(burst_world_create(&config, &world)), "");
    worlds[rank].reset(world);
  });
  expectContains(
      create(worldConfig(address.c_str(), 2, 1)),
      {"PEER_STOPPED rank 1: world: rank 0 refused: world: a process "
       "at 127.0.0.1:",
       "says that it is rank 1, as another one at 127.0.0.1:"});
  inParallel(2, [&](int64_t rank) {
    EXPECT_EQ(take(burst_world_barrier(worlds[rank].get(), 20)), "");
  });
}

/// The first rank that has its transport ends all: others hear of it while they
/// make theirs, or behind that.
TEST(Meet, WorldsMayFailWhileTransportsAreMade) {
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<World> worlds = makeWorlds(3);
    inParallel(3, [&](int64_t rank) {
      burst_tcp_config config = {sizeof(config), worlds[size_t(rank)].get()};
      burst_transport *made;
      std::string error = take(burst_transport_create_tcp(&config, &made));
      EXPECT_EQ(error.empty(), made != nullptr);
      if (!error.empty())
        expectContains(error, {" stopped: enough"});
      Transport transport(made);
      if (made)
        burst_transport_stop(made, "enough");
    });
  }
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

TEST(Meet, NeedsItsPort) {
  std::string address = freeAddress();
  std::thread first([&] {
    burst_world_config config = worldConfig(address.c_str(), 2, 0);
    config.timeout_seconds = 3;
    create(config);
  });
  Stranger until(portOf(address));
  EXPECT_EQ(create(worldConfig(address.c_str(), 2, 0)),
            "SYSTEM rank 0: world: cannot listen at " + address +
                ": Address already in use");
  first.join();
}

TEST(Meet, ListensAtTheNamedAddressOnly) {
  std::string address = "127.0.0.2:" + std::to_string(freePort()), errors[2];
  int port = portOf(address), failure = 0, fd;
  inParallel(3, [&](int64_t rank) {
    if (rank < 2) {
      burst_world_config config = worldConfig(address.c_str(), 2, rank);
      config.timeout_seconds = 1;
      // Rank 1 does not come: rank 0 listens for all of its time.
      if (rank == 0)
        errors[rank] = create(config);
      return;
    }
    burst_wait wait = {INT64_MAX, -1};
    burst_address other, named;
    sleepFor(300);
    EXPECT_EQ(take(burst_address_resolve("127.0.0.1", port, &other)), "");
    EXPECT_EQ(take(burst_address_resolve("127.0.0.2", port, &named)), "");
    failure = burst_socket_connect(&other, &wait, &fd);
    EXPECT_EQ(burst_socket_connect(&named, &wait, &fd), 0);
    close(fd);
  });
  EXPECT_EQ(failure, ECONNREFUSED);
  expectContains(errors[0], {"have not come: 1"});
}

/// A port such as the system gives to connections, at which nobody listens.
burst_address portOfAConnection() {
  burst_address address;
  burst_wait wait = {INT64_MAX, -1};
  int listener, fd;
  EXPECT_EQ(take(burst_address_resolve("127.0.0.1", 0, &address)), "");
  EXPECT_EQ(burst_socket_listen(&address, &listener), 0);
  burst_address bound = burst_socket_local(listener);
  EXPECT_EQ(burst_socket_connect(&bound, &wait, &fd), 0);
  burst_address local = burst_socket_local(fd);
  close(listener);
  close(fd);
  return local;
}

// The system gives a socket any free port, also the one that it connects to.
TEST(Meet, SocketsDoNotConnectToThemselves) {
  burst_address address = portOfAConnection();
  burst_wait wait = {INT64_MAX, -1};
  for (int i = 0; i < 60000; ++i) {
    int fd;
    ASSERT_EQ(burst_socket_connect(&address, &wait, &fd), ECONNREFUSED) << i;
    ASSERT_EQ(fd, -1);
  }
}

} // namespace
