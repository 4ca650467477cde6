//===- TraceTest.cpp - Tests of traces ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace burst::test;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

void nothing(const void *, int64_t) {}
const burst_kernel kernel = {"a \"kernel\"\n\xff", nothing};

class Traces : public testing::Test {
protected:
  fs::path directory;
  std::string path;
  Trace trace = makeTrace();

  void SetUp() override {
    std::string name = testing::TempDir() + "burst-trace-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    path = directory / "trace.json";
  }
  void TearDown() override { fs::remove_all(directory); }

  Json write() {
    EXPECT_EQ(take(burst_trace_write(trace.get(), path.c_str())), "");
    std::ifstream stream(path);
    return Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  }
};

/// Events of a phase and category.
std::vector<Json> select(const Json &trace, const std::string &phase,
                         const std::string &category) {
  std::vector<Json> selected;
  for (const Json &event : trace["traceEvents"])
    if (event["ph"] == phase && event.value("cat", "") == category)
      selected.push_back(event);
  return selected;
}

TEST_F(Traces, TellWhatRanksDid) {
  Ranks ranks;
  ranks.config.trace = trace.get();
  ranks.run(2, [](burst_rank *rank, const burst_table *table, void *const *) {
    int64_t peer = 1 - table->index(rank);
    float cells[4] = {};
    for (int hop = 0; hop < 2; ++hop) {
      burst_piece send = pieceOf(cells, 2), receive = pieceOf(cells + 2, 2);
      int64_t token = shift(table, rank, 6, peer, 1, &send, peer, 1, &receive);
      table->launch(rank, &kernel, nullptr, 3, nullptr, 0, nullptr);
      table->wait(rank, token);
    }
  });
  ranks.expectSuccess();
  Json written = write();
  ASSERT_FALSE(written.is_discarded());

  std::vector<Json> launches = select(written, "X", "launch");
  ASSERT_EQ(launches.size(), 4u);
  int ofRank[2] = {};
  for (const Json &launch : launches) {
    EXPECT_EQ(launch["name"], "a \"kernel\"\n\u00ff");
    EXPECT_EQ(launch["args"]["tasks"], 3);
    EXPECT_EQ(launch["tid"], 0);
    EXPECT_GE(launch["ts"].get<double>(), 0);
    EXPECT_GE(launch["dur"].get<double>(), 0);
    ++ofRank[launch["pid"].get<int>()];
  }
  EXPECT_EQ(ofRank[0], 2);
  EXPECT_EQ(ofRank[1], 2);

  // A send and a receive per rank and hop, each begun and ended.
  std::vector<Json> begins = select(written, "b", "transfer");
  std::vector<Json> ends = select(written, "e", "transfer");
  ASSERT_EQ(begins.size(), 8u);
  ASSERT_EQ(ends.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    const Json &begin = begins[i], &arguments = begin["args"];
    int peer = 1 - begin["pid"].get<int>();
    std::string name = begin["name"];
    EXPECT_TRUE(name == "send to rank " + std::to_string(peer) ||
                name == "receive from rank " + std::to_string(peer));
    EXPECT_EQ(arguments["peer"], peer);
    EXPECT_EQ(arguments["channel"], 6);
    EXPECT_EQ(arguments["bytes"], 8);
    EXPECT_TRUE(arguments["hop"] == 1 || arguments["hop"] == 2);
    EXPECT_EQ(begin["tid"], 1);
    EXPECT_EQ(begin["id"], ends[i]["id"]);
    EXPECT_GE(ends[i]["ts"].get<double>(), begin["ts"].get<double>());
  }
  EXPECT_EQ(select(written, "X", "wait").size(), 8u);

  std::vector<std::string> names;
  for (const Json &event : select(written, "M", ""))
    if (event.contains("args"))
      names.push_back(event["args"]["name"]);
  EXPECT_EQ(names,
            (std::vector<std::string>{"rank 0", "compute", "transfers",
                                      "rank 1", "compute", "transfers"}));
}

TEST_F(Traces, TellOfWaitsThatFailed) {
  Ranks ranks;
  ranks.config.trace = trace.get();
  ranks.config.deadline_seconds = 0.01;
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    float cell;
    burst_piece piece = pieceOf(&cell, 1);
    table->wait(rank, shift(table, rank, 0, 0, 0, nullptr, 0, 1, &piece));
  });
  Json written = write();
  EXPECT_EQ(select(written, "X", "wait").size(), 1u);
  EXPECT_EQ(select(written, "b", "transfer").size(), 0u);
}

TEST_F(Traces, ReplaceFilesWhole) {
  std::ofstream(path) << "before";
  Json written = write();
  EXPECT_TRUE(written["traceEvents"].is_array());
  // Nothing else is left there.
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 1);
}

TEST_F(Traces, LeaveNothingWhereASignalEndsTheProcess) {
  int unnamed = ::open(directory.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0 || ::access("/proc/self/fd", X_OK) != 0)
    GTEST_SKIP() << "no files without a name in " << directory;
  ::close(unnamed);
  Ranks ranks;
  ranks.config.trace = trace.get();
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    for (int n = 0; n < 1000; ++n)
      table->launch(rank, &kernel, nullptr, 1, nullptr, 0, nullptr);
  });
  std::ofstream(path) << "before";
  // The signal comes while the file is written.
  auto writeTooMuch = [&] {
    rlimit limit = {16384, 16384};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_DFL);
    (void)burst_trace_write(trace.get(), path.c_str());
  };
  EXPECT_EXIT(writeTooMuch(), testing::KilledBySignal(SIGXFSZ), "");
  EXPECT_EQ(fs::file_size(path), 6u);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 1);
}

TEST_F(Traces, FollowLinks) {
  std::string link = directory / "link";
  std::ofstream(path) << "before";
  fs::create_symlink(path, link);
  EXPECT_EQ(take(burst_trace_write(trace.get(), link.c_str())), "");
  EXPECT_TRUE(fs::is_symlink(link));
  std::ifstream stream(path);
  EXPECT_TRUE(Json::parse(stream, nullptr, false)["traceEvents"].is_array());
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 2);
  // Also to a file that is not there.
  fs::remove(path);
  EXPECT_EQ(take(burst_trace_write(trace.get(), link.c_str())), "");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_GT(fs::file_size(path), 0u);
}

TEST_F(Traces, GoThroughPipes) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  // Open on both sides, so that nobody has to wait for the other.
  int pipe = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(pipe, 0);
  EXPECT_EQ(take(burst_trace_write(trace.get(), path.c_str())), "");
  EXPECT_TRUE(fs::is_fifo(path));
  std::string text(4096, '\0');
  ssize_t bytes = ::read(pipe, text.data(), text.size());
  ::close(pipe);
  ASSERT_GT(bytes, 0);
  text.resize(bytes);
  EXPECT_TRUE(Json::parse(text, nullptr, false)["traceEvents"].is_array());
}

TEST_F(Traces, CannotBeWrittenEverywhere) {
  expectContains(takeCoded(burst_trace_write(trace.get(), directory.c_str())),
                 {"SYSTEM " + directory.string(), "Is a directory"});
  std::string nowhere = directory / "none" / "trace.json";
  expectContains(takeCoded(burst_trace_write(trace.get(), nowhere.c_str())),
                 {"SYSTEM " + nowhere + ": No such file or directory"});
}

} // namespace
