//===- WorldTest.cpp - Tests of how ranks find and hear each other --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/world/World.h"
#include "Harness.h"
#include "Stranger.h"
#include "runtime/src/world/Launcher.h"

#include <chrono>
#include <cmath>
#include <thread>

using namespace burst::test;

namespace {

//===----------------------------------------------------------------------===//
// The environment
//===----------------------------------------------------------------------===//

/// Variables of launchers, and none that the test itself was started with.
class Environment {
public:
  explicit Environment(
      const std::vector<std::pair<std::string, std::string>> &variables) {
    for (const char *name : {"BURST_RANK",
                             "BURST_NUM_RANKS",
                             "BURST_LOCAL_RANK",
                             "BURST_ADDRESS",
                             "BURST_PORT",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_LOCALID",
                             "SLURM_STEP_NODELIST",
                             "SLURM_NODELIST",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID"})
      unsetenv(name);
    for (const auto &[name, value] : variables) {
      setenv(name.c_str(), value.c_str(), 1);
      names.push_back(name);
    }
  }
  Environment(const Environment &) = delete;
  ~Environment() {
    for (const std::string &name : names)
      unsetenv(name.c_str());
  }

private:
  std::vector<std::string> names;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// "rank of num_ranks (local_rank) at host:port", or the error.
std::string find(const Variables &variables,
                 burst_world_config config = {sizeof(config), 0, 0, nullptr, 0,
                                              0, 0}) {
  Environment environment(variables);
  burst_place place;
  burst_error *error = burst_place_find(&config, &place);
  if (error)
    return take(error);
  return std::to_string(place.rank) + " of " + std::to_string(place.num_ranks) +
         " (" + std::to_string(place.local_rank) + ") at " + place.host + ":" +
         std::to_string(place.port);
}

TEST(Launcher, IsFoundInTheEnvironment) {
  EXPECT_EQ(find({{"BURST_RANK", "2"},
                  {"BURST_NUM_RANKS", "4"},
                  {"BURST_ADDRESS", "node:99"}}),
            "2 of 4 (-1) at node:99");
  EXPECT_EQ(find({{"RANK", "5"},
                  {"WORLD_SIZE", "8"},
                  {"LOCAL_RANK", "1"},
                  {"MASTER_ADDR", "10.0.0.1"},
                  {"MASTER_PORT", "29500"}}),
            "5 of 8 (1) at 10.0.0.1:29501");
  EXPECT_EQ(find({{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "2"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                  {"BURST_ADDRESS", "[::1]:77"}}),
            "1 of 2 (1) at ::1:77");
}

TEST(Launcher, OfSlurmNamesTheFirstHost) {
  const std::pair<const char *, const char *> lists[] = {
      {"gpu[07-09,12],login", "gpu07"},
      {"gpu[3]-ib", "gpu3-ib"},
      {"a,b[1-2]", "a"},
      {"n[11,13]x,m", "n11x"},
      {"gpu-1", "gpu-1"},
  };
  for (auto [list, first] : lists) {
    std::string found = find({{"SLURM_PROCID", "0"},
                              {"SLURM_NTASKS", "2"},
                              {"SLURM_LOCALID", "0"},
                              {"SLURM_NODELIST", list},
                              {"BURST_PORT", "4000"}});
    EXPECT_EQ(found, "0 of 2 (0) at " + std::string(first) + ":4000");
  }
  EXPECT_EQ(find({{"SLURM_PROCID", "0"},
                  {"SLURM_NTASKS", "2"},
                  {"SLURM_NODELIST", "gpu[07"}}),
            "world: SLURM_NODELIST is \"gpu[07\", wanted hosts such as "
            "gpu[07-09,12]");
}

TEST(Launcher, OfTorchGoesBeforeSlurm) {
  EXPECT_EQ(find({{"RANK", "1"},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "x"},
                  {"MASTER_PORT", "1"},
                  {"SLURM_PROCID", "0"},
                  {"SLURM_NTASKS", "1"}}),
            "1 of 2 (-1) at x:2");
}

TEST(Launcher, JobsHavePortsOfTheirOwn) {
  auto portOf = [](const char *job) {
    return find({{"SLURM_PROCID", "0"},
                 {"SLURM_NTASKS", "1"},
                 {"SLURM_NODELIST", "a"},
                 {"SLURM_JOB_ID", job}});
  };
  EXPECT_EQ(portOf("71"), portOf("71"));
  EXPECT_NE(portOf("71"), portOf("72"));
}

TEST(Launcher, ErrorsNameTheVariable) {
  EXPECT_EQ(find({}), "world: no num_ranks, and none of BURST_RANK, "
                      "OMPI_COMM_WORLD_RANK, RANK, PMI_RANK and SLURM_PROCID "
                      "is set");
  EXPECT_EQ(find({{"RANK", "0"}}), "world: WORLD_SIZE is not set, but RANK is");
  for (const char *rank :
       {"two", "", "2 ", "4", "-1", "0x1", "99999999999999999999"})
    EXPECT_EQ(find({{"RANK", rank}, {"WORLD_SIZE", "4"}}),
              "world: RANK is \"" + std::string(rank) +
                  "\", wanted a number from 0 to 3");
  EXPECT_EQ(find({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "world: WORLD_SIZE is \"0\", wanted a number from 1 to 65536");
  EXPECT_EQ(find({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
            "world: MASTER_ADDR is not set, but RANK is");
  EXPECT_EQ(find({{"BURST_RANK", "0"},
                  {"BURST_NUM_RANKS", "2"},
                  {"BURST_ADDRESS", "node"}}),
            "world: BURST_ADDRESS is \"node\", wanted host:port with a port "
            "from 1 to 65535");
  expectContains(find({{"OMPI_COMM_WORLD_RANK", "0"},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
                 {"mpirun does not say where rank 0 listens", "2 of 4 ranks",
                  "set BURST_ADDRESS to host:port"});
}

TEST(Launcher, ConfigGoesBeforeTheEnvironment) {
  burst_world_config config = {};
  config.size = sizeof(config);
  config.num_ranks = 3;
  config.rank = 1;
  config.address = "here:5";
  EXPECT_EQ(find({{"RANK", "0"}, {"WORLD_SIZE", "8"}}, config),
            "1 of 3 (-1) at here:5");
  config.address = nullptr;
  EXPECT_EQ(find({}, config), "world: no address, and BURST_ADDRESS is not "
                              "set, wanted host:port of rank 0");
  config.rank = 3;
  EXPECT_EQ(find({}, config), "world: rank 3, wanted 0 to 2");
  config.num_ranks = -1;
  EXPECT_EQ(find({}, config), "world: -1 ranks, wanted 1 to 65536");
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

std::string create(const burst_world_config &config) {
  burst_world *world;
  std::string error = takeCoded(burst_world_create(&config, &world));
  burst_world_destroy(world);
  return error;
}

TEST(World, ChecksItsConfig) {
  burst_world_config config = worldConfig("127.0.0.1:1", 1, 0);
  config.timeout_seconds = -1;
  expectContains(create(config), {"world: timeout_seconds: -1, wanted"});
  config.timeout_seconds = 1;
  config.heartbeat_seconds = NAN;
  expectContains(create(config), {"world: heartbeat_seconds: nan, wanted"});
  config.heartbeat_seconds = 3;
  expectContains(create(config),
                 {"world: silence_seconds: 5, wanted at least 6"});
  config = worldConfig("host.invalid:1", 2, 1);
  expectContains(create(config),
                 {"world: cannot find the host \"host.invalid\": "});
  burst_tcp_config none = {sizeof(none), nullptr};
  burst_transport *transport;
  EXPECT_EQ(take(burst_transport_create_tcp(&none, &transport)),
            "tcp transport: no world");
}

//===----------------------------------------------------------------------===//
// Calls of all ranks
//===----------------------------------------------------------------------===//

TEST(World, Gathers) {
  for (int64_t size : {1, 2, 5}) {
    std::vector<World> worlds = makeWorlds(size);
    inParallel(size, [&](int64_t rank) {
      burst_world *world = worlds[rank].get();
      EXPECT_EQ(burst_world_rank(world), rank);
      EXPECT_EQ(burst_world_num_ranks(world), size);
      EXPECT_EQ(burst_world_local_rank(world), rank);
      for (int64_t round = 0; round < 20; ++round) {
        size_t count = round == 7 ? (1 << 17) : size_t(round);
        std::vector<int64_t> mine(count, rank * 100 + round),
            all(count * size + 1, -1);
        ASSERT_EQ(take(burst_world_gather(world, mine.data(), count * 8,
                                          all.data(), 20)),
                  "");
        for (int64_t from = 0; from < size; ++from)
          for (size_t i = 0; i < count; ++i)
            ASSERT_EQ(all[from * count + i], from * 100 + round);
        ASSERT_EQ(take(burst_world_barrier(world, 20)), "");
      }
    });
  }
}

TEST(World, GathersOnlyWhatIsEquallyLarge) {
  std::vector<World> worlds = makeWorlds(2);
  std::string errors[2];
  inParallel(2, [&](int64_t rank) {
    int64_t mine[2] = {}, all[4];
    errors[rank] = takeCoded(
        burst_world_gather(worlds[rank].get(), mine, rank ? 16 : 8, all, 20));
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error.substr(0, 8), "MISMATCH");
  expectContains(errors[0] + errors[1], {"world: rank ", " gathers "});
  char mine = 0;
  EXPECT_EQ(take(burst_world_gather(worlds[0].get(), &mine, (1 << 20) + 1,
                                    nullptr, 1)),
            "burst_world_gather: 1048577 bytes, wanted at most 1048576");
}

TEST(World, BarrierHasADeadline) {
  std::vector<World> worlds = makeWorlds(3);
  std::string errors[3];
  inParallel(2, [&](int64_t rank) {
    errors[rank] =
        takeCoded(burst_world_barrier(worlds[rank].get(), 0.2 + double(rank)));
  });
  EXPECT_EQ(errors[0], "DEADLINE_EXCEEDED rank 0: world: waited 0.2 s for rank "
                       "2 to gather");
  // The first deadline ends it for all.
  EXPECT_EQ(errors[1], "DEADLINE_EXCEEDED rank 1: rank 0: world: waited 0.2 s "
                       "for rank 2 to gather");
}

TEST(World, RankThatLeavesIsMissedOnlyByWhoWaits) {
  std::vector<World> worlds = makeWorlds(3);
  worlds[0].reset();
  std::string errors[3];
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  burst_code code;
  EXPECT_EQ(burst_world_failure(worlds[1].get(), &code), nullptr);
  inParallel(2, [&](int64_t index) {
    errors[index] = takeCoded(burst_world_barrier(worlds[index + 1].get(), 20));
  });
  EXPECT_EQ(errors[0], "PEER_STOPPED rank 1: world: rank 0 has left, wanted it "
                       "to gather");
}

//===----------------------------------------------------------------------===//
// Transports
//===----------------------------------------------------------------------===//

TEST(World, HasOneTransportAtATime) {
  std::vector<World> worlds = makeWorlds(2);
  for (int round = 0; round < 3; ++round) {
    std::vector<Transport> transports = makeTransports(worlds);
    burst_tcp_config config = {sizeof(config), worlds[1].get()};
    burst_transport *second;
    EXPECT_EQ(take(burst_transport_create_tcp(&config, &second)),
              "world: it has a transport, wanted none");
    EXPECT_EQ(second, nullptr);
  }
}

TEST(World, FailureEndsTheCreationOfTransports) {
  std::vector<World> worlds = makeWorlds(2);
  burst_world_stop(worlds[1].get(), "no such file");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  burst_tcp_config config = {sizeof(config), worlds[0].get()};
  burst_transport *transport;
  EXPECT_EQ(takeCoded(burst_transport_create_tcp(&config, &transport)),
            "PEER_STOPPED rank 0: rank 1 stopped: no such file");
}

/// Runs without parameters on transports over worlds.
std::vector<std::string> runAll(int64_t ranks, Program &program,
                                const std::vector<Transport> &transports,
                                double deadline = 30) {
  Device device = makeDevice(1);
  std::vector<std::string> errors(ranks);
  burst_program *shared = program.get();
  inParallel(ranks, [&](int64_t rank) {
    burst_run_config config = {};
    config.size = sizeof(config);
    config.rank = rank;
    config.device = device.get();
    config.transport = transports[rank].get();
    config.deadline_seconds = deadline;
    errors[rank] = takeCoded(burst_run(shared, &config, nullptr, 0, nullptr));
  });
  return errors;
}

int64_t startHop(burst_rank *rank, const burst_table *table, int64_t size,
                 int64_t count = 1) {
  int64_t r = table->index(rank);
  auto *cells = static_cast<float *>(
      table->allocate(rank, 8 * count, BURST_MEMORY_SLICE));
  burst_piece send = pieceOf(cells, count);
  burst_piece receive = pieceOf(cells + count, count);
  return shift(table, rank, 0, (r + 1) % size, 1, &send, (r + size - 1) % size,
               1, &receive);
}

TEST(Tcp, FailureOfOneRankEndsAll) {
  std::vector<World> worlds = makeWorlds(4);
  std::vector<Transport> transports = makeTransports(worlds);
  Program program(
      4, [](burst_rank *rank, const burst_table *table, void *const *) {
        table->wait(rank, startHop(rank, table, 4, 1 << 18));
        if (table->index(rank) == 3)
          table->require(rank, 1, 2, "luck");
        for (int hop = 0; hop < 3; ++hop)
          table->wait(rank, startHop(rank, table, 4, 1 << 18));
      });
  std::vector<std::string> errors = runAll(4, program, transports);
  EXPECT_EQ(errors[3], "INVALID_ARGUMENT rank 3: luck: 1, wanted at least 2");
  for (int rank : {0, 1, 2})
    expectContains(errors[rank], {"PEER_STOPPED rank " + std::to_string(rank),
                                  "rank 3 stopped: rank 3: luck: 1"});
  // It is for good, with the same sentence.
  errors = runAll(4, program, transports);
  for (const std::string &error : errors)
    expectContains(error, {"PEER_STOPPED", "rank 3 stopped: rank 3: luck"});
}

TEST(Tcp, RankThatDestroysItsTransportIsMissed) {
  std::vector<World> worlds = makeWorlds(2);
  std::vector<Transport> transports = makeTransports(worlds);
  Program program(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        for (int hop = 0; hop < 1 + (table->index(rank) == 0); ++hop)
          table->wait(rank, startHop(rank, table, 2));
      });
  Device device = makeDevice(1);
  burst_program *shared = program.get();
  std::string errors[2];
  inParallel(2, [&](int64_t rank) {
    burst_run_config config = {};
    config.size = sizeof(config);
    config.rank = rank;
    config.device = device.get();
    config.transport = transports[rank].get();
    errors[rank] = takeCoded(burst_run(shared, &config, nullptr, 0, nullptr));
    transports[rank].reset();
  });
  EXPECT_EQ(errors[0],
            "PEER_STOPPED rank 0, hop 2: receive from rank 1: rank 1 stopped: "
            "its transport is destroyed");
  EXPECT_EQ(errors[1], "");
}

TEST(Tcp, MessagesThatDisagreeAreRefused) {
  Ranks ranks;
  ranks.tcp = true;
  float memory[32];
  burst_piece wide = {memory, 4, {1, 1, 2, 4}, {0, 0, 4, 1}};
  burst_piece tall = {memory + 16, 4, {1, 1, 3, 4}, {0, 0, 4, 1}};
  ranks.run(2, [&](burst_rank *rank, const burst_table *table, void *const *) {
    bool sender = table->index(rank) == 0;
    table->wait(rank,
                shift(table, rank, 3, 1, sender, &wide, 0, !sender, &tall));
  });
  // Who sees it first tells, and the other one may hear that first.
  expectContains(ranks.errors[0] + ranks.errors[1],
                 {"MISMATCH rank ", ", hop 1: ", "on channel 3: piece 0 has "});
}

TEST(Tcp, DeadlineNamesWhoIsWaitedFor) {
  std::vector<World> worlds = makeWorlds(3);
  std::vector<Transport> transports = makeTransports(worlds);
  // Rank 0 waits for rank 2, and that for rank 1, which computes.
  Program program(3, [](burst_rank *rank, const burst_table *table,
                        void *const *) {
    float cell = 0;
    burst_piece piece = pieceOf(&cell, 1);
    if (table->index(rank) == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
      return;
    }
    int64_t from = table->index(rank) ? 1 : 2;
    table->wait(rank, shift(table, rank, 0, 0, 0, nullptr, from, 1, &piece));
  });
  std::vector<std::string> errors = runAll(3, program, transports, 0.4);
  for (int rank : {0, 2})
    expectContains(errors[rank],
                   {"waited 0.4 s for rank ", "it has not sent; rank 1 "
                                              "computes, its last hop was 0"});
}

TEST(Tcp, NonsenseFromAPeerNamesIt) {
  // A stranger that met the ranks rightly, as a rank of another build would.
  int port = freePort();
  std::string address = "127.0.0.1:" + std::to_string(port), error;
  std::thread rank0(
      [&] { error = create(worldConfig(address.c_str(), 2, 0)); });
  Stranger stranger(port);
  stranger.say(hello(address, 2, 1) + header(2, 16, 1u << 30));
  expectContains(stranger.hear(), {"BRST"});
  rank0.join();
  expectContains(error, {"PEER_STOPPED rank 0: rank 1 sent what makes no sense",
                         "kind 16 of 1073741824 bytes"});
}

TEST(World, PlansMayChangeBetweenRuns) {
  std::vector<World> worlds = makeWorlds(3);
  inParallel(3, [&](int64_t rank) {
    burst_world *world = worlds[rank].get();
    for (uint64_t run = 0; run < 200; ++run) {
      ASSERT_EQ(take(burst_world_begin_run(world, run / 3, 20)), "");
      burst_world_end_run(world);
    }
  });
}

TEST(World, PlanThatOnlyOneRankChangesIsFound) {
  std::vector<World> worlds = makeWorlds(3);
  std::string errors[3];
  inParallel(3, [&](int64_t rank) {
    burst_world *world = worlds[rank].get();
    errors[rank] = take(burst_world_begin_run(world, 7, 20));
    errors[rank] +=
        takeCoded(burst_world_begin_run(world, rank == 1 ? 8 : 7, 20));
    burst_code code;
    while (!burst_world_failure(world, &code))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(code, BURST_MISMATCH);
  });
  // Whichever is heard first.
  expectContains(errors[1], {"MISMATCH rank 1: rank ",
                             " runs plan 0000000000000007, rank 1 plan "
                             "0000000000000008"});
}

TEST(World, RankThatDoesNotBeginIsNamed) {
  std::vector<World> worlds = makeWorlds(2);
  EXPECT_EQ(takeCoded(burst_world_begin_run(worlds[0].get(), 7, 0.1)),
            "DEADLINE_EXCEEDED rank 0: world: waited 0.1 s for rank 1 to begin "
            "a run");
}

} // namespace
