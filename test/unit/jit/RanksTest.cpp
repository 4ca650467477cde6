//===- RanksTest.cpp - ranks on the caller's strided memory ---------------===//
#include "Problem.h"

#include <thread>

using namespace burst;
using namespace burst::test;

namespace {
/// A tensor whose elements lie apart: every dimension but the last is padded.
struct Strided {
  std::vector<float> data;
  burst_tensor tensor;

  Strided(const burst_tensor &like, int32_t dim, int64_t size) : tensor(like) {
    if (dim >= 0)
      tensor.sizes[dim] = size;
    int64_t stride = 1;
    for (int32_t d = tensor.rank; d-- > 0;) {
      tensor.strides[d] = stride;
      stride = stride * tensor.sizes[d] + 3;
    }
    data.assign(stride, 7);
    tensor.data = data.data();
  }
};

/// Shards, runs and gathers one rank.
void runRank(const api::Program &program, std::span<const burst_tensor> globals,
             const burst_run_config &config) {
  std::vector<Strided> locals;
  std::vector<burst_tensor> values;
  for (int64_t i = 0; i < program.numParameters(); ++i) {
    int32_t dim = program.parameter(i).shard_dim;
    auto size =
        program.localSize(i, config.rank, globals[i].sizes[std::max(dim, 0)]);
    ASSERT_TRUE(size) << size.error().message();
    locals.emplace_back(globals[i], dim, *size);
  }
  for (int64_t i = 0; i < program.numParameters(); ++i) {
    values.push_back(locals[i].tensor);
    if (i < program.numArguments())
      expectSuccess(program.shard(i, config.rank, globals[i], values[i]));
  }
  expectSuccess(program.run(config, values));
  if (config.stream)
    expectSuccess(api::Status(burst_stream_synchronize(config.stream)));
  for (int64_t i = program.numArguments(); i < program.numParameters(); ++i)
    expectSuccess(program.gather(i, config.rank, values[i], globals[i]));
}
} // namespace

TEST(Ranks, stridedShards) {
  burst_attention attention = smallAttention();
  const api::Program &program = smallProgram();
  ASSERT_TRUE(program.get());
  Problem problem(attention);
  std::vector<burst_tensor> globals = problem.globals(program);
  auto device = api::Device::cpu(2);
  auto transports = api::Transport::local(3);
  ASSERT_TRUE(device && transports);
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      auto config = api::make<burst_run_config>();
      config.rank = rank;
      config.device = device->get();
      config.transport = (*transports)[rank].get();
      config.deadline_seconds = 60;
      runRank(program, globals, config);
    });
  threads.clear();
  problem.expectResults();
}

TEST(Ranks, onStreams) {
  burst_attention attention = smallAttention();
  const api::Program &program = smallProgram();
  ASSERT_TRUE(program.get());
  Problem problem(attention);
  std::vector<burst_tensor> globals = problem.globals(program);
  auto device = api::Device::cpu(2);
  auto transports = api::Transport::local(3);
  ASSERT_TRUE(device && transports);
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      auto stream = api::Stream::create(*device);
      ASSERT_TRUE(stream);
      auto config = api::make<burst_run_config>();
      config.rank = rank;
      config.stream = stream->get();
      config.transport = (*transports)[rank].get();
      config.deadline_seconds = 60;
      runRank(program, globals, config);
    });
  threads.clear();
  problem.expectResults();
}

TEST(Ranks, positionsAreThoseOfTheOrder) {
  const api::Program &program = smallProgram();
  auto positions = program.positions(0, 2, 29);
  ASSERT_TRUE(positions);
  // Zigzag over 3 ranks: chunks 2 and 3 of 6.
  EXPECT_EQ(positions->front(), 9);
  EXPECT_EQ(positions->back(), 18);
}
