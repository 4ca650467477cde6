//===- TokenTest.cpp - Tests of what ranks know each other by -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/Token.h"
#include "Harness.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sys/stat.h>

using namespace burst::test;

namespace {

/// An environment with a home of its own.
class JobToken : public testing::Test {
protected:
  std::filesystem::path home, file;

  void SetUp() override {
    std::string name = testing::TempDir() + "burst-home-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home = name;
    file = home / ".cache" / "burst" / "token";
    set("HOME", home.c_str());
    set("XDG_CACHE_HOME", nullptr);
    set("BURST_TOKEN", nullptr);
  }

  void TearDown() override {
    for (const auto &[name, value] : before)
      change(name.c_str(), value ? value->c_str() : nullptr);
    std::filesystem::remove_all(home);
  }

  void set(const char *name, const char *value) {
    const char *old = std::getenv(name);
    before.insert(before.begin(),
                  {name, old ? std::optional<std::string>(old) : std::nullopt});
    change(name, value);
  }

  std::string read() const {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  void write(const std::string &text, mode_t mode = 0600) const {
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::remove(file);
    std::ofstream(file) << text;
    ASSERT_EQ(chmod(file.c_str(), mode), 0);
  }

private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before;

  static void change(const char *name, const char *value) {
    if (value)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
};

burst_place placeOf(int64_t rank, const char *host = "127.0.0.1",
                    int64_t port = 4000, int64_t ranks = 4) {
  burst_place place = {rank, ranks, -1, {}, port};
  std::string(host).copy(place.host, sizeof(place.host) - 1);
  return place;
}

std::string find(const burst_place &place, burst_token *token) {
  burst_address address;
  EXPECT_EQ(take(burst_address_resolve(place.host, place.port, &address)), "");
  return takeCoded(burst_token_find(&place, &address, token));
}

/// The two hashes, or the error.
std::string tokenOf(const burst_place &place) {
  burst_token token;
  std::string error = find(place, &token);
  return error.empty()
             ? std::string(reinterpret_cast<char *>(&token), sizeof(token))
             : error;
}

TEST_F(JobToken, IsMadeByRank0ForItsUserAlone) {
  tokenOf(placeOf(1));
  EXPECT_FALSE(std::filesystem::exists(file));
  std::string token = tokenOf(placeOf(0));
  struct stat status;
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::string text = read();
  EXPECT_EQ(text.size(), 65u);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), 64u);
  // Nothing else is left, and it is the same for all, now and later.
  auto folder = std::filesystem::directory_iterator(file.parent_path());
  EXPECT_EQ(std::distance(begin(folder), end(folder)), 1);
  for (int64_t rank : {0, 1, 3})
    EXPECT_EQ(tokenOf(placeOf(rank)), token);
  EXPECT_EQ(read(), text);
}

TEST_F(JobToken, IsTheSameForAllWhoMakeItAtOnce) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> tokens(8);
    inParallel(8, [&](int64_t i) { tokens[i] = tokenOf(placeOf(0)); });
    EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), 1u);
    EXPECT_EQ(tokens[0], tokenOf(placeOf(1)));
    std::filesystem::remove(file);
  }
}

TEST_F(JobToken, DiffersFromJobToJob) {
  std::set<std::string> tokens;
  for (const char *secret : {"one", "two", "none"}) {
    set("BURST_TOKEN", secret);
    for (const burst_place &place :
         {placeOf(0), placeOf(0, "localhost"), placeOf(0, "127.0.0.1", 4001),
          placeOf(0, "127.0.0.1", 4000, 5)})
      tokens.insert(tokenOf(place));
    EXPECT_EQ(tokenOf(placeOf(0)), tokenOf(placeOf(3)));
  }
  EXPECT_EQ(tokens.size(), 12u);
  burst_token token;
  EXPECT_EQ(find(placeOf(0), &token), "");
  EXPECT_FALSE(burst_token_equal(token.hello, token.answer));
  EXPECT_TRUE(burst_token_equal(token.hello, token.hello));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(JobToken, FileOfOthersIsRefused) {
  auto expect = [&](const std::vector<std::string> &parts) {
    for (int64_t rank : {0, 1}) {
      std::string error = tokenOf(placeOf(rank));
      expectContains(error, {"INVALID_ARGUMENT world: " + file.string()});
      expectContains(error, parts);
    }
  };
  for (mode_t mode : {0640, 0602, 0666}) {
    write("secret", mode);
    expect({"wanted 600: others could read or write the token; remove it"});
  }
  write(" \n");
  expect({"is empty, wanted a token: remove it"});
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expect({"is no regular file"});
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  expect({"is no regular file"});
  if (geteuid() != 0)
    return;
  std::filesystem::remove(file);
  write("secret");
  ASSERT_EQ(chown(file.c_str(), 1234, 1234), 0);
  expect({"belongs to user 1234, wanted 0"});
}

TEST_F(JobToken, WithoutOneOnlyThisMachineIsAccepted) {
  set("HOME", "/dev/null/home");
  EXPECT_EQ(tokenOf(placeOf(0)), tokenOf(placeOf(1)));
  for (int64_t rank : {0, 1})
    expectContains(tokenOf(placeOf(rank, "10.9.9.9")),
                   {"INVALID_ARGUMENT world: no token that the ranks of this "
                    "job know each other by: BURST_TOKEN is not set, and "
                    "/dev/null/home/.cache/burst/token: Not a directory; set "
                    "BURST_TOKEN to the same secret on all ranks, or to "
                    "\"none\" where the network is trusted",
                    "such as 127.0.0.1, not at 10.9.9.9:4000"});
  set("HOME", nullptr);
  expectContains(tokenOf(placeOf(1, "10.9.9.9")),
                 {"BURST_TOKEN is not set, and neither is HOME"});
  for (const char *secret : {"none", "secret"}) {
    set("BURST_TOKEN", secret);
    EXPECT_EQ(tokenOf(placeOf(0, "10.9.9.9")), tokenOf(placeOf(1, "10.9.9.9")));
  }
  set("BURST_TOKEN", "");
  expectContains(tokenOf(placeOf(1)),
                 {"BURST_TOKEN has 0 characters, wanted 1 to 4096"});
}

TEST_F(JobToken, IsInTheCacheOfTheUser) {
  set("XDG_CACHE_HOME", (home / "elsewhere").c_str());
  std::string token = tokenOf(placeOf(0));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(home / "elsewhere/burst/token"));
}

} // namespace
