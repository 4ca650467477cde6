//===- TransportTest.cpp - Tests of what all transports have in common ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"
#include "Mailbox.h"
#include "test/unit/Sanitizers.h"

using namespace burst::test;

namespace {

/// What a check of all ranks said, coded; empty where all was well. The last
/// rank begins `late` milliseconds after the others.
std::string check(const std::vector<Transport> &transports, int64_t what,
                  int64_t seed = 0, double deadline = 30, int64_t late = 0) {
  Device device = makeDevice(2);
  std::vector<std::string> errors(transports.size());
  inParallel(int64_t(transports.size()), [&](int64_t rank) {
    if (rank + 1 == int64_t(transports.size()))
      std::this_thread::sleep_for(std::chrono::milliseconds(late));
    burst_check_config config = {};
    config.size = sizeof(config);
    config.transport = transports[rank].get();
    config.device = device.get();
    config.what = what;
    config.seed = seed;
    config.deadline_seconds = deadline;
    errors[rank] = takeCoded(burst_transport_check(&config));
  });
  std::string all;
  for (const std::string &error : errors)
    all += error.empty() ? "" : error + "\n";
  return all;
}

std::vector<Transport> overMailboxes(Mailboxes &boxes, int64_t ranks) {
  std::vector<Transport> made(ranks);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    burst_transport_table table = boxes.table(rank);
    burst_transport *transport;
    EXPECT_EQ(takeCoded(burst_transport_create(&table, &transport)), "");
    made[rank].reset(transport);
  }
  return made;
}

void destroy(std::vector<Transport> &transports) {
  inParallel(int64_t(transports.size()),
             [&](int64_t rank) { transports[rank].reset(); });
}

enum class Kind { Local, Checked, Tcp, Host };

/// Ranks that are threads, over each transport for CPUs.
struct Connected {
  std::vector<World> worlds;
  std::unique_ptr<Mailboxes> boxes;
  std::vector<Transport> transports;

  Connected(Kind kind, int64_t ranks) {
    if (kind == Kind::Tcp) {
      worlds = makeWorlds(ranks);
      transports = makeTransports(worlds);
    } else if (kind == Kind::Host) {
      boxes = std::make_unique<Mailboxes>(ranks);
      transports = overMailboxes(*boxes, ranks);
    } else {
      transports = makeTransports(burst_local_config{
          sizeof(burst_local_config), ranks, 0, 0, kind == Kind::Checked});
    }
  }
  ~Connected() { destroy(transports); }
};

class Conformance : public testing::TestWithParam<Kind> {};

TEST_P(Conformance, KeepsTheRules) {
  for (int64_t ranks : {1, 2, 5}) {
    Connected connected(GetParam(), ranks);
    EXPECT_EQ(check(connected.transports, BURST_CHECK_MESSAGES), "")
        << ranks << " ranks";
  }
}

TEST_P(Conformance, FailsAsItShould) {
  for (int64_t what :
       {BURST_CHECK_MISMATCH, BURST_CHECK_DEADLINE, BURST_CHECK_STOP}) {
    Connected connected(GetParam(), 3);
    EXPECT_EQ(check(connected.transports, what), "") << what;
  }
}

/// A rank that has no part in what fails may begin after the failure.
TEST_P(Conformance, TellsARankThatIsLate) {
  for (int64_t what : {BURST_CHECK_MISMATCH, BURST_CHECK_DEADLINE}) {
    Connected connected(GetParam(), 3);
    EXPECT_EQ(check(connected.transports, what, 0, 30, 600), "") << what;
  }
}

/// Also where both sides of a message come later.
TEST_P(Conformance, MovesNothingBehindAStop) {
  Connected connected(GetParam(), 2);
  burst_transport_stop(connected.transports[0].get(), "luck");
  Device device = makeDevice(2);
  Program program(2, [](burst_rank *rank, const burst_table *table,
                        void *const *) {
    int64_t other = 1 - table->index(rank);
    float cells[2] = {};
    burst_piece send = pieceOf(&cells[0], 1), receive = pieceOf(&cells[1], 1);
    int64_t token = shift(table, rank, 0, other, 1, &send, other, 1, &receive);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    table->wait(rank, token);
  });
  burst_program *shared = program.get();
  inParallel(2, [&](int64_t rank) {
    burst_run_config config = {};
    config.size = sizeof(config);
    config.rank = rank;
    config.device = device.get();
    config.transport = connected.transports[rank].get();
    expectContains(takeCoded(burst_run(shared, &config, nullptr, 0, nullptr)),
                   {"PEER_STOPPED", "luck"});
  });
}

std::string nameOf(const testing::TestParamInfo<Kind> &info) {
  const char *names[] = {"Local", "Checked", "Tcp", "Host"};
  return names[int(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Transports, Conformance,
                         testing::Values(Kind::Local, Kind::Checked, Kind::Tcp,
                                         Kind::Host),
                         nameOf);

struct Planted {
  Fault fault;
  int64_t what;
  const char *found;
};

TEST(TransportCheck, FindsEveryPlantedFault) {
  const Planted faults[] = {
      {Fault::Reorders, BURST_CHECK_MESSAGES, "INVALID_ARGUMENT|MISMATCH"},
      {Fault::MixesChannels, BURST_CHECK_MESSAGES, "INVALID_ARGUMENT|MISMATCH"},
      {Fault::WritesGaps, BURST_CHECK_MESSAGES,
       "of its memory, of no message, was written"},
      {Fault::Truncates, BURST_CHECK_MISMATCH,
       "the run of rank 1 succeeded, wanted error 6"},
      {Fault::WritesLate, BURST_CHECK_DEADLINE,
       "memory of a message that it had given up was written"},
      {Fault::NeverLate, BURST_CHECK_DEADLINE,
       "the run of rank 1 succeeded, wanted error 4"},
      {Fault::ForgetsAbort, BURST_CHECK_STOP,
       "the run of rank 1 failed with error 4, wanted 5"}};
  for (const Planted &planted : faults) {
    // Which a sanitizer finds by itself: it is a race.
    if (isSanitized && planted.fault == Fault::WritesLate)
      continue;
    Mailboxes boxes(2, planted.fault);
    std::vector<Transport> transports = overMailboxes(boxes, 2);
    std::string text = check(transports, planted.what, 0, 2);
    std::string wanted = planted.found;
    size_t bar = wanted.find('|');
    bool found = text.find(wanted.substr(0, bar)) != std::string::npos ||
                 (bar != std::string::npos &&
                  text.find(wanted.substr(bar + 1)) != std::string::npos);
    EXPECT_TRUE(found) << int(planted.fault) << ": " << text;
    destroy(transports);
  }
}

TEST(TransportCheck, ChecksItsConfig) {
  Device device = makeDevice(1);
  std::vector<Transport> transports = makeTransports(1);
  burst_check_config config = {};
  config.size = sizeof(config);
  EXPECT_EQ(takeCoded(burst_transport_check(&config)),
            "INVALID_ARGUMENT burst_transport_check: no transport");
  config.transport = transports[0].get();
  EXPECT_EQ(takeCoded(burst_transport_check(&config)),
            "INVALID_ARGUMENT burst_transport_check: no device");
  config.device = device.get();
  config.what = 4;
  EXPECT_EQ(takeCoded(burst_transport_check(&config)),
            "INVALID_ARGUMENT burst_transport_check: what is 4, wanted 0 to 3");
  config.what = BURST_CHECK_STOP;
  EXPECT_EQ(takeCoded(burst_transport_check(&config)),
            "INVALID_ARGUMENT burst_transport_check: stop of 1 rank, wanted 2 "
            "or more");
}

TEST(HostTransport, ChecksItsTable) {
  Mailboxes boxes(2);
  burst_transport *transport;
  auto create =
      [&](const std::function<void(burst_transport_table &)> &change) {
        burst_transport_table table = boxes.table(0);
        change(table);
        return takeCoded(burst_transport_create(&table, &transport));
      };
  EXPECT_EQ(create([](auto &table) { table.size = 8; }),
            "INVALID_ARGUMENT burst_transport_table: size 8, wanted a multiple "
            "of 8 from 72 to 88");
  EXPECT_EQ(create([](auto &table) { table.cancel = nullptr; }),
            "INVALID_ARGUMENT burst_transport_table: no function cancel");
  EXPECT_EQ(create([](auto &table) { table.rank = 2; }),
            "INVALID_ARGUMENT burst_transport_table: rank 2 of 2, wanted one "
            "from 0 on, of more ranks");
  EXPECT_EQ(create([](auto &table) { table.reaches = 2; }),
            "INVALID_ARGUMENT burst_transport_table: reaches 2, wanted "
            "BURST_REACHES_HOST or BURST_REACHES_GPU");
  EXPECT_EQ(takeCoded(burst_transport_create(nullptr, &transport)),
            "INVALID_ARGUMENT burst_transport_table: null");
  EXPECT_EQ(boxes.destroyed, 0);
  // What is not covered is optional.
  ASSERT_EQ(create([](auto &table) { table.size = 72; }), "");
  burst_transport_destroy(transport);
  EXPECT_EQ(boxes.destroyed, 0);
  ASSERT_EQ(create([](auto &) {}), "");
  burst_transport_destroy(transport);
  EXPECT_EQ(boxes.destroyed, 1);
}

TEST(HostTransport, TellsOfGathers) {
  Mailboxes boxes(3);
  std::vector<Transport> transports = overMailboxes(boxes, 3);
  EXPECT_EQ(check(transports, BURST_CHECK_MESSAGES), "");
  EXPECT_EQ(boxes.gathers, 3 * 12);
}

/// Errors have the rank, the hop, and with whom the message was.
TEST(HostTransport, SaysWhereItFailed) {
  Ranks ranks;
  Mailboxes boxes(2);
  std::vector<Transport> transports = overMailboxes(boxes, 2);
  Program program(2, [](burst_rank *rank, const burst_table *table,
                        void *const *) {
    float cell = 0;
    burst_piece piece = pieceOf(&cell, 1);
    if (table->index(rank) == 1)
      table->wait(rank, shift(table, rank, 5, -1, 0, nullptr, 0, 1, &piece));
  });
  Device device = makeDevice(1);
  burst_run_config config = {};
  config.size = sizeof(config);
  config.rank = 1;
  config.device = device.get();
  config.transport = transports[1].get();
  config.deadline_seconds = 0.1;
  EXPECT_EQ(takeCoded(burst_run(program.get(), &config, nullptr, 0, nullptr)),
            "DEADLINE_EXCEEDED rank 1, hop 1: waited 0.1 s for rank 0 on "
            "channel 5: it has not sent");
  // For good, and for the other rank.
  config.rank = 0;
  config.transport = transports[0].get();
  std::string error =
      takeCoded(burst_run(program.get(), &config, nullptr, 0, nullptr));
  EXPECT_EQ(error, "");
}

} // namespace
