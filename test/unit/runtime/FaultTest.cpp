//===- FaultTest.cpp - Trials of ranks that misbehave ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each kind of fault a few trials, and 200 where BURST_TEST_FULL is set: in
// each, the error of every rank that is left names the right rank or cause.
// BURST_SEED and BURST_COUNT set the first seed and the number of trials.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Job.h"
#include "Stranger.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace burst::test;

namespace {

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

using Random = std::mt19937_64;
/// Draws what happens. Returns what was wrong, or nothing.
using Trial = std::string (*)(Random &random);

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, nullptr, 10) : otherwise;
}

int64_t draw(Random &random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

void sleepFor(int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// They wait most of the time: several at once.
void runTrials(const char *kind, Trial trial) {
  const char *full = getenv("BURST_TEST_FULL");
  bool isFull = full && *full && std::string(full) != "0";
  uint64_t seed = fromEnvironment("BURST_SEED", std::random_device()());
  uint64_t count = fromEnvironment("BURST_COUNT", isFull ? 200 : 2);
  std::atomic<uint64_t> next = 0, wrong = 0;
  inParallel(int64_t(std::min<uint64_t>(count, 6)), [&](int64_t) {
    for (uint64_t i = next++; i < count; i = next++) {
      Random random(seed + i);
      std::string error = trial(random);
      if (error.empty())
        continue;
      ++wrong;
      ADD_FAILURE() << kind << ", seed " << seed + i << ": " << error;
    }
  });
  printf("%s: %llu of %llu trials name the right rank or cause, seeds from "
         "%llu\n",
         kind, (unsigned long long)(count - wrong), (unsigned long long)count,
         (unsigned long long)seed);
}

std::string text(int64_t number) { return std::to_string(number); }

/// Unless one of the parts is in what was said.
std::string unless(const std::vector<std::string> &parts, int64_t rank,
                   const std::string &said) {
  for (const std::string &part : parts)
    if (said.find(part) != said.npos)
      return "";
  return "rank " + text(rank) + " says \"" + said + "\", wanted \"" + parts[0] +
         "\"\n";
}

/// All but `except` say one of the parts.
std::string unlessAll(Job &job, int64_t count, int64_t except,
                      const std::vector<std::string> &parts) {
  std::string wrong;
  for (int64_t i = 0; i < count; ++i)
    if (i != except)
      wrong += unless(parts, i, job.hear(size_t(i)));
  return wrong;
}

//===----------------------------------------------------------------------===//
// Ranks that are killed or stopped
//===----------------------------------------------------------------------===//

/// What may be said of a rank that does not even come.
std::vector<std::string> absent(int64_t rank, const std::string &otherwise) {
  return {otherwise, "1 ranks have not come: " + text(rank),
          "cannot reach rank " + text(rank) + " at"};
}

/// At a hop, or from outside at any time.
std::string end(Random &random, const char *how, int signal,
                const char *sentence) {
  int64_t ranks = draw(random, 2, 5), culprit = draw(random, 0, ranks - 1);
  std::string expected = "rank " + text(culprit) + sentence;
  Job job(ranks);
  if (draw(random, 0, 1)) {
    job.startAll({how, text(culprit), text(draw(random, 1, 6)),
                  text(draw(random, 0, 5))});
    return unlessAll(job, ranks, culprit, {expected});
  }
  job.startAll({"loop"});
  sleepFor(draw(random, 0, 300));
  job.send(size_t(culprit), signal);
  return unlessAll(job, ranks, culprit, absent(culprit, expected));
}

TEST(Fault, Killed) {
  runTrials("killed", [](Random &random) {
    return end(random, "die-later", SIGKILL, " died");
  });
}

TEST(Fault, Stopped) {
  runTrials("stopped", [](Random &random) {
    return end(random, "stop-later", SIGSTOP, " has been silent for ");
  });
}

//===----------------------------------------------------------------------===//
// Networks
//===----------------------------------------------------------------------===//

/// Whether this user may make networks of its own.
bool hasNamespaces() {
  static const bool has =
      system("unshare -Urnm ip link set lo up >/dev/null 2>&1") == 0;
  return has;
}

/// Runs one of the scripts in Inputs. All ranks say one of the parts.
std::string script(int64_t ranks, std::vector<std::string> words,
                   const std::vector<std::string> &parts) {
  Job job(0);
  job.variables = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  words.insert(words.begin(), {"/usr/bin/env", "unshare", "-Urnm"});
  job.startCommand(words);
  std::string said = job.hearAll(0), line, wrong;
  std::vector<bool> heard(ranks);
  for (std::istringstream lines(said); std::getline(lines, line);) {
    int64_t rank = line[0] - '0';
    if (rank < 0 || rank >= ranks || heard[rank])
      continue;
    heard[rank] = true;
    wrong += unless(parts, rank, line);
  }
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (!heard[rank])
      wrong += "rank " + text(rank) + " says nothing\n";
  return wrong;
}

std::string selfConnect(Random &random) {
  int64_t ranks = draw(random, 2, 5);
  // The system prefers ports of this kind for connections.
  std::string port = text(40000 + 2 * draw(random, 0, 7));
  std::string seconds = "0." + text(draw(random, 3, 9));
  return script(ranks,
                {TEST_INPUTS "/self-connect", text(ranks), port, seconds,
                 TEST_RANK, "ring"},
                {": ok"});
}

TEST(Fault, SelfConnect) {
  if (!hasNamespaces())
    GTEST_SKIP() << "no network namespaces: unshare -Urnm";
  runTrials("self-connect", selfConnect);
}

std::string unreachable(Random &random) {
  int64_t ranks = draw(random, 3, 5), low = draw(random, 1, ranks - 2);
  int64_t high = draw(random, low + 1, ranks - 1);
  bool back = draw(random, 0, 1);
  const char *how[] = {"blackhole", "unreachable", "prohibit"};
  return script(ranks,
                {TEST_INPUTS "/unreachable", text(ranks),
                 text(back ? low : high), text(back ? high : low),
                 how[draw(random, 0, 2)], TEST_RANK, "loop"},
                {"rank " + text(high) + " cannot reach rank " + text(low) +
                 " at 10.0." + text(low) + ".2:"});
}

TEST(Fault, UnreachablePair) {
  if (!hasNamespaces())
    GTEST_SKIP() << "no network namespaces: unshare -Urnm";
  runTrials("unreachable pair", unreachable);
}

/// How long it took a rank to tell, if that was too long.
std::string unlessSoon(int64_t rank, const std::string &said) {
  constexpr std::string_view before = " (told after ";
  size_t at = said.find(before);
  double seconds =
      at == said.npos ? INFINITY : std::stod(said.substr(at + before.size()));
  return seconds < 2 ? "" : "rank " + text(rank) + " is late: " + said + "\n";
}

/// Both ends live, and all ranks name the same two.
std::string breakLink(Random &random) {
  int64_t ranks = draw(random, 2, 5), culprit = draw(random, 0, ranks - 1);
  Job job(ranks);
  job.startAll({"shut", text(culprit), text(draw(random, 1, 6)),
                text(draw(random, 0, 1000))});
  std::string first = job.hear(0), wrong;
  size_t at = first.find("the connection ");
  std::string sentence =
      at == first.npos ? "" : first.substr(at, first.find(" (told") - at);
  std::vector<std::string> parts;
  for (int64_t other = 0; other < ranks; ++other)
    if (other != culprit)
      parts.push_back("the connection between ranks " +
                      text(std::min(culprit, other)) + " and " +
                      text(std::max(culprit, other)) + " broke");
  wrong = unless(parts, 0, first);
  wrong += culprit == 0 ? unlessSoon(0, first) : "";
  for (int64_t rank = 1; rank < ranks; ++rank) {
    std::string said = job.hear(size_t(rank));
    wrong += unless({sentence.empty() ? parts[0] : sentence}, rank, said);
    wrong += culprit == rank ? unlessSoon(rank, said) : "";
  }
  return wrong;
}

TEST(Fault, BrokenLink) { runTrials("broken link", breakLink); }

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

std::string fewDescriptors(Random &random) {
  int64_t ranks = draw(random, 2, 6), culprit = draw(random, 0, ranks - 1);
  std::string expected =
      "rank " + text(culprit) + " has too many open files (limit ";
  Job job(ranks);
  if (draw(random, 0, 3) == 0) {
    // Sometimes when all is open already.
    job.startAll({"hog", text(culprit), "0", text(draw(random, 0, 40))});
    std::vector<std::string> parts = absent(culprit, expected);
    parts.emplace_back("ok");
    return unlessAll(job, ranks, -1, parts);
  }
  // Three are open from the start; with four more it can say so.
  std::string limit = text(draw(random, 7, 3 + 2 * ranks + 7));
  job.startAll({"few", text(culprit), "0", limit});
  return unlessAll(job, ranks, -1, {expected + limit + ", needed about 2 P"});
}

TEST(Fault, FewDescriptors) { runTrials("few descriptors", fewDescriptors); }

//===----------------------------------------------------------------------===//
// Processes that should not come
//===----------------------------------------------------------------------===//

std::string duplicate(Random &random) {
  int64_t ranks = draw(random, 3, 5), twice = draw(random, 1, ranks - 1);
  int64_t last = twice == ranks - 1 ? 1 : ranks - 1;
  Job job(ranks);
  std::vector<int64_t> order = {twice};
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (rank != last)
      order.push_back(rank);
  std::shuffle(order.begin(), order.end(), random);
  for (int64_t rank : order)
    job.start(rank, {"loop"});
  sleepFor(draw(random, 200, 1500)); // it is a duplicate while ranks meet
  job.start(last, {"loop"});
  return unlessAll(job, ranks + 1, -1,
                   {"says that it is rank " + text(twice) +
                    ", as another one at 127.0.0.1:"});
}

/// Ranks that run already go on.
std::string lateDuplicate(Random &random) {
  int64_t ranks = draw(random, 2, 4), twice = draw(random, 1, ranks - 1);
  Job job(ranks);
  job.startAll({"rest", "-1", "0", "7"}); // seconds, in which it comes
  sleepFor(draw(random, 2000, 3000));
  job.start(twice, {"loop"});
  std::string wrong = unless({"says that it is rank " + text(twice) +
                              ", as another one at 127.0.0.1:"},
                             ranks, job.hear(size_t(ranks)));
  return wrong + unlessAll(job, ranks, -1, {"ok"});
}

TEST(Fault, Duplicate) {
  runTrials("duplicate", [](Random &random) {
    return draw(random, 0, 3) ? duplicate(random) : lateDuplicate(random);
  });
}

std::string noise(Random &random) {
  std::string bytes(size_t(draw(random, 0, 200)), 0);
  for (char &byte : bytes)
    byte = char(draw(random, 0, 255));
  return bytes;
}

/// What strangers say who do not know the token, or belong to another job.
std::string strange(Random &random, const std::string &address, int64_t ranks) {
  std::string right = hello(address, ranks, draw(random, 1, ranks - 1));
  switch (draw(random, 0, 4)) {
  case 0:
    return noise(random);
  case 1: // another secret
    right[size_t(draw(random, 0, 31))] ^= char(1 << draw(random, 0, 7));
    return right;
  case 2:
    return hello(address, ranks + 1, 1);
  case 3:
    return right.substr(32); // none
  default:
    return hello(address, ranks, 1, draw(random, 1, INT64_MAX));
  }
}

std::string stranger(Random &random) {
  int64_t ranks = draw(random, 2, 5), last = draw(random, 1, ranks - 1);
  Job job(ranks);
  job.variables.emplace_back("BURST_TOKEN=of tests");
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (rank != last)
      job.start(rank, {"ring"});
  std::string wrong;
  for (int64_t i = draw(random, 1, 5); i > 0; --i) {
    Stranger stranger(job.port);
    std::string said = strange(random, job.address(), ranks);
    stranger.say(said);
    if (said.size() >= 32 && !stranger.hear().empty())
      wrong += "a stranger was answered\n";
  }
  job.start(last, {"ring"});
  return wrong + unlessAll(job, ranks, -1, {"ok"});
}

TEST(Fault, Stranger) { runTrials("stranger", stranger); }

std::string wrongVersion(Random &random) {
  int64_t ranks = draw(random, 2, 5), wrong = draw(random, 1, ranks - 1);
  uint16_t version = uint16_t(draw(random, 3, 65535));
  std::string expected =
      "speaks version " + text(version) + " of burst, wanted 2";
  Job job(ranks);
  job.variables.emplace_back("BURST_TOKEN=of tests");
  int64_t started = 0;
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (rank != wrong) {
      job.start(rank, {"loop"});
      ++started;
    }
  sleepFor(draw(random, 0, 200));
  Stranger other(job.port);
  other.say(hello(job.address(), ranks, wrong, 0, version));
  return unless({expected}, wrong, other.hear()) +
         unlessAll(job, started, -1, {expected});
}

TEST(Fault, WrongVersion) { runTrials("wrong version", wrongVersion); }

/// The one that is different and the one that has seen it are named.
std::string mismatch(Random &random) {
  int64_t ranks = draw(random, 2, 5), culprit = draw(random, 0, ranks - 1);
  Job job(ranks);
  job.startAll({"mismatch", text(culprit), "0"});
  std::string wrong;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::string said = job.hear(size_t(rank));
    wrong += unless({" runs plan "}, rank, said);
    wrong += unless({"rank " + text(culprit) + " runs plan ",
                     ", rank " + text(culprit) + " plan "},
                    rank, said);
  }
  return wrong;
}

TEST(Fault, Mismatch) { runTrials("mismatch", mismatch); }

} // namespace
