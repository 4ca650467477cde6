//===- DeviceTest.cpp - Tests of the pool ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <numeric>
#include <sched.h>
#include <thread>

using namespace burst::test;

namespace {

/// Counts how often each task ran.
void countTask(const void *arguments, int64_t task) {
  auto *counts = *static_cast<std::atomic<int> *const *>(arguments);
  ++counts[task];
}
const burst_kernel counting = {"counting", countTask};

TEST(Device, RunsEachTaskOnce) {
  for (int64_t threads : {1, 2, 5}) {
    std::atomic<int> counts[4][1000] = {};
    const int64_t tasks[] = {0, 1, 7, 1000};
    Ranks ranks;
    ranks.threads = threads;
    ranks.run(1,
              [&](burst_rank *rank, const burst_table *table, void *const *) {
                for (int i = 0; i < 4; ++i) {
                  std::atomic<int> *argument = counts[i];
                  table->launch(rank, &counting, &argument, tasks[i], nullptr,
                                0, nullptr);
                }
              });
    ranks.expectSuccess();
    for (int i = 0; i < 4; ++i)
      for (int64_t task = 0; task < 1000; ++task)
        EXPECT_EQ(counts[i][task], task < tasks[i]);
    EXPECT_EQ(ranks.counters[0].launches, 4);
    EXPECT_EQ(ranks.counters[0].tasks, 1008);
  }
}

struct Log {
  std::mutex mutex;
  std::vector<int64_t> tasks;
};
void logTask(const void *arguments, int64_t task) {
  Log *log = *static_cast<Log *const *>(arguments);
  std::lock_guard lock(log->mutex);
  log->tasks.push_back(task);
}
const burst_kernel logging = {"logging", logTask};

TEST(Device, BeginsTasksInOrder) {
  Log log, *argument = &log;
  const int32_t order[] = {3, 0, 4, 1, 2};
  Ranks ranks;
  ranks.threads = 1;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    table->launch(rank, &logging, &argument, 5, order, 0, nullptr);
    table->launch(rank, &logging, &argument, 3, nullptr, 0, nullptr);
  });
  ranks.expectSuccess();
  EXPECT_EQ(log.tasks, (std::vector<int64_t>{3, 0, 4, 1, 2, 0, 1, 2}));
}

struct Gauge {
  std::atomic<int> now = 0, most = 0, all = 0;
};
void gaugeTask(const void *arguments, int64_t) {
  Gauge *gauge = *static_cast<Gauge *const *>(arguments);
  int now = ++gauge->now;
  for (int most = gauge->most; now > most;)
    if (gauge->most.compare_exchange_weak(most, now))
      break;
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  --gauge->now;
  ++gauge->all;
}
const burst_kernel gauging = {"gauging", gaugeTask};

TEST(Device, OccupiesNoMoreThreadsThanItHas) {
  for (auto [threads, size] : {std::pair(1, 2), std::pair(3, 8)}) {
    Gauge gauge, *argument = &gauge;
    Ranks ranks;
    ranks.threads = threads;
    ranks.run(size, [&](burst_rank *rank, const burst_table *table,
                        void *const *) {
      for (int64_t i = 0; i < 20; ++i)
        table->launch(rank, &gauging, &argument, i % 4, nullptr, 0, nullptr);
    });
    ranks.expectSuccess();
    EXPECT_LE(gauge.most, threads);
    EXPECT_EQ(gauge.all, size * 30);
  }
}

struct Baton {
  std::atomic<bool> begun = false, release = false;
  std::atomic<int> *finished;
};
void holdTask(const void *arguments, int64_t) {
  Baton *baton = *static_cast<Baton *const *>(arguments);
  baton->begun = true;
  while (!baton->release)
    std::this_thread::yield();
}
const burst_kernel holding = {"holding", holdTask};

TEST(Device, ServesFirstComeFirst) {
  // Rank 0 holds the only thread; ranks 1 and 2 queue in that order.
  Baton baton, *hold = &baton;
  Log log, *argument = &log;
  std::atomic<int> queued = 0;
  Ranks ranks;
  ranks.threads = 1;
  ranks.run(3, [&](burst_rank *rank, const burst_table *table, void *const *) {
    int64_t index = table->index(rank);
    if (index == 0) {
      table->launch(rank, &holding, &hold, 1, nullptr, 0, nullptr);
      return;
    }
    while (!baton.begun || queued < index - 1)
      std::this_thread::yield();
    if (index == 2) // Long enough for rank 1 to be in its launch.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ++queued;
    const int32_t mine[] = {0, 1, 2, 3};
    if (index == 2)
      std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        baton.release = true;
      }).detach();
    table->launch(rank, &logging, &argument, index == 1 ? 4 : 2, mine, 0,
                  nullptr);
  });
  ranks.expectSuccess();
  EXPECT_EQ(log.tasks, (std::vector<int64_t>{0, 1, 2, 3, 0, 1}));
}

void useStack(const void *, int64_t) {
  volatile char tiles[3 << 20];
  for (size_t i = 0; i < sizeof(tiles); i += 4096)
    tiles[i] = char(i);
}
const burst_kernel deep = {"deep", useStack};

TEST(Device, HasStackForTiles) {
  Ranks ranks;
  ranks.run(4, [](burst_rank *rank, const burst_table *table, void *const *) {
    table->launch(rank, &deep, nullptr, 4, nullptr, 0, nullptr);
  });
  ranks.expectSuccess();
}

void noteProcessor(const void *arguments, int64_t) {
  **static_cast<std::atomic<int> *const *>(arguments) = sched_getcpu();
}
const burst_kernel noting = {"noting", noteProcessor};

TEST(Device, IsPinned) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int64_t last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &allowed))
    --last;
  burst_device_config config = {sizeof(config), 0, 1, &last};
  burst_device *device;
  ASSERT_EQ(take(burst_device_create_cpu(&config, &device)), "");
  Device owner(device);
  EXPECT_EQ(burst_device_threads(device), 1);
  std::atomic<int> processor = -1, *argument = &processor;
  Program program(
      1, [&](burst_rank *rank, const burst_table *table, void *const *) {
        table->launch(rank, &noting, &argument, 1, nullptr, 0, nullptr);
      });
  burst_run_config run = {};
  run.size = sizeof(run);
  run.device = device;
  EXPECT_EQ(take(burst_run(program.get(), &run, nullptr, 0, nullptr)), "");
  EXPECT_EQ(processor, last);
}

std::vector<int64_t> allowedCpus() {
  cpu_set_t allowed;
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<int64_t> cpus;
  for (int64_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed))
      cpus.push_back(cpu);
  return cpus;
}

/// Runs `body` as the only rank of a program, on this thread.
void runHere(const std::vector<int64_t> &cpus, int64_t threads,
             const Body &body) {
  burst_device_config config = {sizeof(config), threads, int64_t(cpus.size()),
                                cpus.data()};
  burst_device *device;
  ASSERT_EQ(take(burst_device_create_cpu(&config, &device)), "");
  Device owner(device);
  Program program(1, body);
  burst_run_config run = {};
  run.size = sizeof(run);
  run.device = device;
  EXPECT_EQ(take(burst_run(program.get(), &run, nullptr, 0, nullptr)), "");
}

void noteThread(const void *arguments, int64_t) {
  **static_cast<std::thread::id *const *>(arguments) =
      std::this_thread::get_id();
}
const burst_kernel notingThread = {"noting thread", noteThread};

TEST(Device, RunsOneTaskWhereItMay) {
  std::thread::id ran, *argument = &ran;
  auto launch = [&](burst_rank *rank, const burst_table *table, void *const *) {
    table->launch(rank, &notingThread, &argument, 1, nullptr, 0, nullptr);
  };
  // On a thread of its own: the stack of the main thread may be small.
  inParallel(1, [&](int64_t) {
    std::vector<int64_t> all = allowedCpus();
    runHere({}, 2, launch);
    EXPECT_EQ(ran, std::this_thread::get_id());
    runHere(all, 2, launch);
    EXPECT_EQ(ran, std::this_thread::get_id());
    if (all.size() > 1) { // This thread may run elsewhere.
      runHere({all.front()}, 1, launch);
      EXPECT_NE(ran, std::this_thread::get_id());
    }
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(size_t(all.front()), &first);
    ASSERT_EQ(sched_setaffinity(0, sizeof(first), &first), 0);
    runHere({all.front()}, 1, launch);
    EXPECT_EQ(ran, std::this_thread::get_id());
  });
}

TEST(Device, WakesThreadsThatSleep) {
  // Threads look for work for a while: pauses about as long, and longer ones.
  for (bool pinned : {false, true})
    for (int64_t threads : {1, 2, 5}) {
      std::atomic<int> counts[7] = {}, *argument = counts;
      int launches = 0;
      runHere(pinned ? allowedCpus() : std::vector<int64_t>(), threads,
              [&](burst_rank *rank, const burst_table *table, void *const *) {
                for (int pause : {0, 20, 40, 45, 50, 55, 60, 100, 2000})
                  for (int64_t tasks : {1, 2, 7}) {
                    std::this_thread::sleep_for(
                        std::chrono::microseconds(pause));
                    table->launch(rank, &counting, &argument, tasks, nullptr, 0,
                                  nullptr);
                    ++launches;
                  }
              });
      EXPECT_EQ(counts[0], launches);
      EXPECT_EQ(counts[1], launches / 3 * 2);
      EXPECT_EQ(counts[6], launches / 3);
    }
}

TEST(Device, UsesAllItsThreads) {
  // Each task waits for all others: they must be on as many threads, which are
  // called out of their sleep.
  for (bool pinned : {false, true}) {
    Gauge gauge, *argument = &gauge;
    auto meet = [](const void *arguments, int64_t) {
      Gauge *gauge = *static_cast<Gauge *const *>(arguments);
      ++gauge->all;
      while (gauge->all < 9)
        std::this_thread::yield();
    };
    const burst_kernel meeting = {"meeting", meet};
    runHere(pinned ? allowedCpus() : std::vector<int64_t>(), 9,
            [&](burst_rank *rank, const burst_table *table, void *const *) {
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
              table->launch(rank, &meeting, &argument, 9, nullptr, 0, nullptr);
            });
    EXPECT_EQ(gauge.all, 9);
  }
}

TEST(Device, LeavesProcessorsToOthers) {
  // Seconds that this process used, while it had nothing to do for 0.2 s.
  double used = 0;
  auto now = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  std::atomic<int> counts[8] = {}, *argument = counts;
  runHere({}, 0,
          [&](burst_rank *rank, const burst_table *table, void *const *) {
            table->launch(rank, &counting, &argument, 8, nullptr, 0, nullptr);
            double begin = now();
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            used = now() - begin;
          });
  EXPECT_LT(used, 0.05);
}

std::string create(burst_device_config config) {
  burst_device *device;
  std::string error = take(burst_device_create_cpu(&config, &device));
  burst_device_destroy(device);
  return error;
}

TEST(Device, ChecksItsConfig) {
  size_t size = sizeof(burst_device_config);
  int64_t wrong = -1, many = CPU_SETSIZE;
  expectContains(create({size, -1, 0, nullptr}), {"-1 threads", "0 to"});
  expectContains(create({size, 1 << 20, 0, nullptr}), {"1048576 threads"});
  expectContains(create({size, 1, 2, nullptr}), {"no list of 2 CPUs"});
  expectContains(create({size, 1, 1, &wrong}), {"CPU -1, wanted 0"});
  expectContains(create({size, 1, 1, &many}), {"CPU 1024, wanted 0"});
  expectContains(create({0, 1, 0, nullptr}), {"burst_device_config: size 0"});
  expectContains(create({size + 8, 1, 0, nullptr}), {"size 40", "to 32"});
  expectContains(create({12, 1, 0, nullptr}), {"size 12, wanted a multiple"});
  // A caller that knows less.
  EXPECT_EQ(create({16, 1, -5, nullptr}), "");
  burst_device *device;
  EXPECT_EQ(take(burst_device_create_cpu(nullptr, &device)), "");
  EXPECT_GE(burst_device_threads(device), 1);
  burst_device_destroy(device);
}

TEST(Table, KnowsTheThreadsOfTheDevice) {
  Ranks ranks;
  ranks.threads = 3;
  int64_t threads = 0;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    threads = table->threads(rank);
  });
  ranks.expectSuccess();
  EXPECT_EQ(threads, 3);
}

TEST(Table, SortsByFallingCost) {
  const int64_t costs[] = {5, 9, 5, INT64_MIN, INT64_MAX, 9};
  int32_t order[6] = {};
  Ranks ranks;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    EXPECT_EQ(table->size, sizeof(burst_table));
    EXPECT_EQ(table->version, uint32_t(BURST_ABI_VERSION));
    table->sort(rank, costs, 6, order);
    table->sort(rank, costs, 0, nullptr);
  });
  ranks.expectSuccess();
  const int32_t expected[] = {4, 1, 5, 0, 2, 3};
  EXPECT_EQ(std::memcmp(order, expected, sizeof(order)), 0);
}

/// MLIR's memref descriptor of two dimensions.
struct Matrix {
  float *base, *data;
  int64_t offset, sizes[2], strides[2];
};

TEST(Table, KnowsWhatIsUsedOfTensors) {
  float memory[64];
  Ranks ranks;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    auto use = [&](Matrix matrix, int64_t mode) {
      burst_use use{};
      table->use(rank, &use, &matrix, 2, 4, mode);
      return use;
    };
    // Rows of 3 that lie 8 apart: the last one ends after its 3.
    burst_use found = use({memory, memory, 5, {4, 3}, {8, 1}}, BURST_READS);
    EXPECT_EQ(found.begin, memory + 5);
    EXPECT_EQ(found.bytes, 4 * (3 * 8 + 3));
    EXPECT_EQ(found.mode, BURST_READS);
    found = use({memory, memory, 0, {1, 1}, {8, 1}}, BURST_WRITES);
    EXPECT_EQ(found.bytes, 4);
    EXPECT_EQ(found.mode, BURST_WRITES);
    // One row again and again.
    EXPECT_EQ(use({memory, memory, 0, {9, 3}, {0, 1}}, BURST_READS).bytes, 12);
    for (Matrix empty : {Matrix{memory, memory, 5, {0, 3}, {8, 1}},
                         Matrix{memory, memory, 5, {4, 0}, {8, 1}},
                         Matrix{nullptr, nullptr, 0, {0, 0}, {0, 1}}})
      EXPECT_EQ(use(empty, BURST_READS).bytes, 0);
    burst_use scalar{};
    const Matrix one{memory, memory, 7, {}, {}};
    table->use(rank, &scalar, &one, 0, 4, BURST_READS);
    EXPECT_EQ(scalar.begin, memory + 7);
    EXPECT_EQ(scalar.bytes, 4);
  });
  ranks.expectSuccess();
}

/// Owner o has 2 and o positions in its segments.
static void countsOfTest(int64_t owner, int64_t, int64_t *counts) {
  counts[0] = 2;
  counts[1] = owner;
}

static burst_transfer transferOf(int64_t route, int64_t owner,
                                 const burst_sharded &sends,
                                 const burst_sharded &receives) {
  burst_transfer transfer{};
  transfer.route = route;
  transfer.owner = owner;
  transfer.num_ranks = transfer.num_owners = 3;
  transfer.stride = 1;
  transfer.num_segments = 2;
  transfer.counts = countsOfTest;
  transfer.num_tensors = 1;
  transfer.sends = &sends;
  transfer.receives = &receives;
  return transfer;
}

/// To rank 1, from rank 2, which sends the shard of `received`.
static burst_transfer shiftOf(int64_t owner, int64_t received,
                              const burst_sharded &sends,
                              const burst_sharded &receives) {
  burst_transfer transfer = transferOf(BURST_SHIFT, owner, sends, receives);
  transfer.to = 1;
  transfer.received_owner = received;
  transfer.from = 2;
  return transfer;
}

static void expectPiece(const burst_piece &found, const burst_piece &wanted) {
  EXPECT_EQ(found.data, wanted.data);
  EXPECT_EQ(std::memcmp(&found, &wanted, sizeof(burst_piece)), 0);
}

/// Numbers of a transfer are places in a group of ranks.
TEST(Table, ListsTheMessagesOfAGroup) {
  float memory[64];
  Ranks ranks;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    const Matrix matrix{memory, memory, 0, {9, 3}, {8, 1}};
    const burst_sharded sharded{&matrix, 2, 4, 0, -1};
    burst_transfer transfer = shiftOf(1, 2, sharded, sharded);
    transfer.stride = 2;
    const burst_messages *list = table->messages(rank, &transfer);
    ASSERT_EQ(list->count, 2);
    EXPECT_EQ(list->list[0].peer, 2);
    EXPECT_EQ(list->list[1].peer, 4);
  });
  ranks.expectSuccess();
}

TEST(Table, ListsTheMessagesOfAShift) {
  float memory[64], others[64];
  Ranks ranks;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    // Rank 2's shard goes out of a gathered tensor, rank 0's comes, of which
    // the second segment is empty.
    const Matrix matrix{memory, memory, 5, {9, 3}, {8, 1}};
    const Matrix other{others, others, 0, {3, 2}, {1, 4}};
    const burst_sharded sends{&matrix, 2, 4, 0, -1},
        receives{&other, 2, 4, 1, -1};
    burst_transfer transfer = shiftOf(2, 0, sends, receives);
    transfer.is_of_gathered = 1;
    const burst_messages *list = table->messages(rank, &transfer);
    const burst_message *messages = list->list;
    ASSERT_EQ(list->count, 2);
    EXPECT_EQ(messages[0].peer, 1);
    EXPECT_EQ(messages[0].receives, 0);
    ASSERT_EQ(messages[0].num_pieces, 2);
    char *row = reinterpret_cast<char *>(memory + 5);
    expectPiece(messages[0].pieces[0],
                {row + (2 + 3) * 32, 4, {1, 1, 2, 3}, {1, 1, 8, 1}});
    expectPiece(messages[0].pieces[1],
                {row + (2 + 3 + 2) * 32, 4, {1, 1, 2, 3}, {1, 1, 8, 1}});
    EXPECT_EQ(messages[1].peer, 2);
    EXPECT_EQ(messages[1].receives, 1);
    ASSERT_EQ(messages[1].num_pieces, 1);
    expectPiece(messages[1].pieces[0], {others, 4, {1, 1, 3, 2}, {1, 1, 1, 4}});
    // Flags: by owner, for turn 1, of the second segment only.
    const uint8_t flags[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    transfer.flags = flags;
    transfer.flag_owners = 3;
    transfer.flag_turns = transfer.flag_segments = 2;
    transfer.turn = 1;
    list = table->messages(rank, &transfer);
    messages = list->list;
    ASSERT_EQ(list->count, 1);
    EXPECT_EQ(messages[0].peer, 1);
    EXPECT_EQ(messages[0].num_pieces, 1);
    // All alike.
    const uint8_t one[] = {0};
    transfer.flags = one;
    transfer.flag_owners = transfer.flag_turns = transfer.flag_segments = 1;
    transfer.turn = 0;
    EXPECT_EQ(table->messages(rank, &transfer)->count, 0);
    // Rows of nothing are none.
    const Matrix empty{memory, memory, 5, {6, 0}, {8, 1}};
    const burst_sharded none{&empty, 2, 4, 0, -1};
    transfer.flags = nullptr;
    transfer.sends = transfer.receives = &none;
    EXPECT_EQ(table->messages(rank, &transfer)->count, 0);
  });
  ranks.expectSuccess();
}

/// A tensor of batch, sequence, heads and dim, as `run` takes it.
struct Heads {
  void *base, *data;
  int64_t offset, sizes[4], strides[4];
};

static int64_t stepOfRows; // 1: of neighbours, 2: in turn

/// Three positions of each of two owners.
static void rowsOfThree(int64_t owner, int64_t, burst_segment *rows) {
  *rows = {owner * (stepOfRows == 1 ? 3 : 1), 3, stepOfRows, 1};
}

TEST(Table, ListsTheMessagesOfAnAllToAll) {
  float memory[64], others[64];
  Ranks ranks;
  ranks.run(2, [&](burst_rank *rank, const burst_table *table, void *const *) {
    if (table->index(rank) == 0)
      return;
    // Of 4 heads, each rank gets 2 of all 6 positions.
    Heads shard{memory, memory, 0, {2, 3, 4, 2}, {24, 8, 2, 1}};
    Heads part{others, others, 0, {2, 6, 2, 2}, {24, 4, 2, 1}};
    const burst_sharded outside{&shard, 4, 4, 1, 2}, inside{&part, 4, 4, 1, 2};
    burst_transfer transfer = transferOf(BURST_TO_HEADS, 1, outside, inside);
    transfer.num_ranks = 2;
    transfer.num_segments = 1;
    transfer.groups = 1;
    transfer.in_group = rowsOfThree;
    stepOfRows = 1;
    const burst_messages *list = table->messages(rank, &transfer);
    ASSERT_EQ(list->count, 4);
    EXPECT_EQ(list->pattern, BURST_EXCHANGE_ALL);
    EXPECT_EQ(list->group.num_ranks, 2);
    EXPECT_EQ(list->group.stride, 1);
    EXPECT_EQ(list->list[0].peer, 1); // stays here
    EXPECT_EQ(list->list[2].peer, 0);
    EXPECT_EQ(list->list[2].receives, 0);
    ASSERT_EQ(list->list[2].num_pieces, 1);
    expectPiece(list->list[2].pieces[0],
                {memory, 4, {2, 3, 2, 2}, {24, 8, 2, 1}});
    ASSERT_EQ(list->list[3].num_pieces, 1);
    expectPiece(list->list[3].pieces[0],
                {others, 4, {2, 3, 2, 2}, {24, 4, 2, 1}});
    expectPiece(list->list[1].pieces[0],
                {others + 12, 4, {2, 3, 2, 2}, {24, 4, 2, 1}});
    // Positions in turn are blocks, of each batch on its own.
    stepOfRows = 2;
    list = table->messages(rank, &transfer);
    ASSERT_EQ(list->list[3].num_pieces, 2);
    expectPiece(list->list[3].pieces[1],
                {others + 24, 4, {3, 1, 2, 2}, {8, 4, 2, 1}});
    expectPiece(list->list[2].pieces[1],
                {memory + 24, 4, {3, 1, 2, 2}, {8, 8, 2, 1}});
    // The way back lists the same the other way round.
    transfer = transferOf(BURST_TO_SEQUENCE, 1, inside, outside);
    transfer.num_ranks = 2;
    transfer.num_segments = 1;
    transfer.groups = 1;
    transfer.in_group = rowsOfThree;
    list = table->messages(rank, &transfer);
    EXPECT_EQ(list->list[3].receives, 1);
    expectPiece(list->list[3].pieces[1],
                {memory + 24, 4, {3, 1, 2, 2}, {8, 8, 2, 1}});
    // Of no batch there is nothing to list, nor to write.
    shard.sizes[0] = part.sizes[0] = 0;
    for (stepOfRows = 1; stepOfRows <= 2; ++stepOfRows)
      EXPECT_EQ(table->messages(rank, &transfer)->count, 0);
  });
  ranks.expectSuccess();
}

TEST(Table, ListsTheMessagesOfAGather) {
  float memory[64], others[64];
  Ranks ranks;
  ranks.run(3, [&](burst_rank *rank, const burst_table *table, void *const *) {
    int64_t r = table->index(rank);
    const Matrix matrix{memory, memory, 0, {2 + r, 1}, {1, 1}};
    const Matrix other{others, others, 0, {9, 1}, {1, 1}};
    const burst_sharded sends{&matrix, 2, 4, 0, -1},
        receives{&other, 2, 4, 0, -1};
    burst_transfer transfer = transferOf(BURST_ALL_GATHER, r, sends, receives);
    const burst_messages *list = table->messages(rank, &transfer);
    const burst_message *messages = list->list;
    ASSERT_EQ(list->count, 6);
    EXPECT_EQ(list->pattern, BURST_GATHER_ALL);
    for (int64_t d = 0; d < 3; ++d) {
      int64_t from = (r + 3 - d) % 3;
      EXPECT_EQ(messages[2 * d].peer, (r + d) % 3);
      EXPECT_EQ(messages[2 * d].receives, 0);
      EXPECT_EQ(messages[2 * d].pieces[0].data, memory);
      EXPECT_EQ(messages[2 * d + 1].peer, from);
      EXPECT_EQ(messages[2 * d + 1].receives, 1);
      EXPECT_EQ(messages[2 * d + 1].pieces[0].data,
                others + 2 * from + from * (from - 1) / 2);
      EXPECT_EQ(messages[2 * d + 1].num_pieces, from == 0 ? 1 : 2);
    }
    // One segment stays, of owner 2 for its neighbor: all ranks know.
    uint8_t flags[3][3][2];
    std::fill_n(flags[0][0], sizeof(flags), 1);
    flags[2][1][1] = 0;
    transfer.flags = flags[0][0];
    transfer.flag_owners = transfer.flag_turns = 3;
    transfer.flag_segments = 2;
    list = table->messages(rank, &transfer);
    EXPECT_EQ(list->count, 6);
    EXPECT_EQ(list->pattern, BURST_POINT_TO_POINT);
  });
  ranks.expectSuccess();
}

TEST(Table, RefusesTransfersOfNobody) {
  for (int64_t owner : {-1, 3}) {
    Ranks ranks;
    ranks.run(1, [&](burst_rank *rank, const burst_table *table,
                     void *const *) {
      const burst_sharded none{};
      burst_transfer transfer = transferOf(BURST_ALL_GATHER, owner, none, none);
      table->messages(rank, &transfer);
    });
    expectContains(ranks.errors[0], {"a transfer of the shard of rank",
                                     "as what is sent, wanted 0 to 2"});
  }
}

TEST(Table, RefusesFlagsThatAreNotThere) {
  Ranks ranks;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    const Matrix matrix{nullptr, nullptr, 0, {4, 1}, {1, 1}};
    const burst_sharded sharded{&matrix, 2, 4, 0, -1};
    burst_transfer transfer = transferOf(BURST_SHIFT, 2, sharded, sharded);
    const uint8_t flags[12] = {};
    transfer.flags = flags;
    transfer.flag_owners = 3;
    transfer.flag_turns = transfer.flag_segments = 2;
    transfer.turn = 2;
    table->messages(rank, &transfer);
  });
  expectContains(ranks.errors[0],
                 {"flags of segments of owner 2 for turn 2, wanted owners "
                  "below 3 and turns below 2"});
}

TEST(Table, RefusesNegativeCounts) {
  Ranks ranks;
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    table->launch(rank, &counting, nullptr, -1, nullptr, 0, nullptr);
  });
  EXPECT_EQ(ranks.errors[0], "PROGRAM_FAULT rank 0: kernel counting: -1 tasks, "
                             "wanted 0 or more");
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    table->sort(rank, nullptr, -3, nullptr);
  });
  expectContains(ranks.errors[0], {"PROGRAM_FAULT rank 0: sort: -3 costs"});
}

TEST(Table, EndsRunsWhereThereIsLessThanRequired) {
  bool cameBack = false;
  Ranks ranks;
  auto require = [&](int64_t found, int64_t wanted) {
    cameBack = false;
    ranks.run(1,
              [&](burst_rank *rank, const burst_table *table, void *const *) {
                table->require(rank, found, wanted, "entries of argument ids");
                cameBack = true;
              });
    return ranks.errors[0];
  };
  EXPECT_EQ(require(7, 8), "INVALID_ARGUMENT rank 0: entries of argument ids: "
                           "7, wanted at least 8");
  EXPECT_FALSE(cameBack);
  EXPECT_EQ(require(INT64_MIN, INT64_MAX),
            "INVALID_ARGUMENT rank 0: entries of argument ids: "
            "-9223372036854775808, wanted at least 9223372036854775807");
  EXPECT_FALSE(cameBack);
  for (int64_t found : {int64_t{8}, int64_t{9}, INT64_MAX}) {
    EXPECT_EQ(require(found, 8), "");
    EXPECT_TRUE(cameBack);
  }
}

} // namespace
