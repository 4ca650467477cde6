//===- RanksTest.cpp - ranks on the caller's strided memory ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

#include <cmath>
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

/// What ranks that run by themselves gather in their order has the bits of a
/// run of all: the gradient by ALiBi's slopes.
TEST(Ranks, addUpTheGradientOfATable) {
  api::Program program = compiled(R"(
    shard.grid @g(shape = 3)
    !q = tensor<1x20x4x8xf32>
    !l = tensor<1x4x20xf32>
    !t = tensor<4xf32>
    func.func @f(%q: !q, %k: !q, %v: !q, %do: !q, %t: !t) -> !t {
      %o, %l = burst.attention %q, %k, %v mask causal score alibi(%t : !t)
          sequence <@g, zigzag> : (!q, !q, !q) -> (!q, !l)
      %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %o, %l, %do
          mask causal score alibi(%t : !t) sequence <@g, zigzag> gradients [0]
          : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
      return %dt : !t
    })");
  ASSERT_TRUE(program.get());
  EXPECT_EQ(program.parameter(0).is_partial, 0);
  EXPECT_EQ(program.parameter(5).is_partial, 1);
  std::vector<std::vector<float>> data(6);
  std::vector<burst_tensor> globals(6);
  for (int64_t i = 0; i < 6; ++i) {
    const burst_parameter &parameter = program.parameter(i);
    burst_tensor &tensor = globals[i];
    tensor.type = BURST_F32;
    tensor.rank = parameter.rank;
    int64_t stride = 1;
    for (int32_t d = parameter.rank; d-- > 0; stride *= tensor.sizes[d]) {
      tensor.sizes[d] = burst_parameter_global_size(&parameter, d);
      tensor.strides[d] = stride;
    }
    for (int64_t x = 0; x < stride; ++x)
      data[i].push_back(std::sin(static_cast<float>((i + 1) * x + 1)));
    tensor.data = data[i].data();
  }
  auto device = api::Device::cpu(2);
  auto transports = api::Transport::local(3);
  ASSERT_TRUE(device && transports);
  std::vector<std::vector<Strided>> locals(3);
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      std::vector<burst_tensor> values;
      for (int64_t i = 0; i < 6; ++i) {
        int32_t dim = program.parameter(i).shard_dim;
        int64_t size = 0;
        if (dim >= 0)
          size = *program.localSize(i, rank, 20);
        locals[rank].emplace_back(globals[i], dim, size);
        values.push_back(locals[rank].back().tensor);
        if (i < 5)
          expectSuccess(program.shard(i, rank, globals[i], values[i]));
      }
      auto config = api::make<burst_run_config>();
      config.rank = rank;
      config.device = device->get();
      config.transport = (*transports)[rank].get();
      config.deadline_seconds = 60;
      expectSuccess(program.run(config, values));
    });
  threads.clear();
  for (int64_t rank = 0; rank < 3; ++rank)
    expectSuccess(program.gather(5, rank, locals[rank][5].tensor, globals[5]));
  std::vector<float> gathered = data[5];
  auto config = api::make<burst_run_all_config>();
  config.device = device->get();
  data[5].assign(4, 7);
  expectSuccess(program.runAll(config, globals));
  EXPECT_EQ(data[5], gathered);
  // Every rank has a share in it.
  for (int64_t rank = 0; rank < 3; ++rank)
    for (int64_t x = 0; x < 4; ++x) {
      EXPECT_NE(locals[rank][5].data[x], 0);
      EXPECT_NE(locals[rank][5].data[x], gathered[x]);
    }
}
