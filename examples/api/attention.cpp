// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles a sliding window whose length is known at run time, and runs it for
// two lengths: the program is compiled once.
//
//   c++ -std=c++20 attention.cpp $(pkg-config --cflags --libs burst)
#include <burst/burst.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace api = burst::api;

static constexpr int64_t heads = 2, dim = 16, left = 5;

static bool failed(const api::Status &status) {
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().data());
  return !status;
}

/// Row `i` of head 0, first element, by the definition.
static double expected(const std::vector<float> &q, const std::vector<float> &k,
                       const std::vector<float> &v, int64_t i) {
  double sum = 0, out = 0;
  for (int64_t j = std::max<int64_t>(0, i - left); j <= i; ++j) {
    double s = 0;
    for (int64_t d = 0; d < dim; ++d)
      s += double(q[i * heads * dim + d]) * k[j * heads * dim + d];
    double p = std::exp(s / std::sqrt(dim));
    sum += p;
    out += p * v[j * heads * dim];
  }
  return out / sum;
}

static bool runFor(const api::Program &program, const api::Device &device,
                   int64_t length) {
  auto fill = [&](int64_t factor) {
    std::vector<float> values(length * heads * dim);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = float(i * factor % 101) / 50 - 1;
    return values;
  };
  std::vector<float> q = fill(37), k = fill(53), v = fill(29);
  std::vector<float> o(q.size()), lse(length * heads);
  auto global = [&](std::vector<float> &data) {
    return api::dense(data.data(), BURST_F32, {1, length, heads, dim});
  };
  // Behind q, k and v come the lengths that the description left open.
  int64_t lengths[] = {length, length};
  std::vector<burst_tensor> globals = {
      global(q),
      global(k),
      global(v),
      api::dense(&lengths[0], BURST_I64, {}),
      api::dense(&lengths[1], BURST_I64, {}),
      global(o),
      api::dense(lse.data(), BURST_F32, {1, heads, length})};

  // The schedule for this length: proved once, without computing anything.
  if (failed(program.prove(std::span(globals).first(program.numArguments()))))
    return false;
  auto config = api::make<burst_run_all_config>();
  config.device = device.get();
  config.deadline_seconds = 30;
  if (failed(program.runAll(config, globals)))
    return false;
  int64_t row = length - 1;
  double found = o[row * heads * dim], wanted = expected(q, k, v, row);
  std::printf("length %d: o is %.6f, by the definition %.6f\n", int(length),
              found, wanted);
  return std::fabs(found - wanted) < 1e-5;
}

int main() {
  auto attention = api::make<burst_attention>();
  burst_axis axis{.num_ranks = 3, .order = "contiguous"};
  attention.axes = &axis;
  attention.num_axes = 1;
  attention.type = BURST_F32;
  attention.batch = 1;
  attention.query_length = attention.key_length = -1;
  attention.query_heads = attention.key_heads = heads;
  attention.head_dim = dim;
  std::string mask = "window<left = " + std::to_string(left) + ", right = 0>";
  attention.mask = mask.c_str();

  auto program = api::Program::compile(attention);
  if (!program)
    return failed(program.error());
  auto device = api::Device::cpu();
  if (!device)
    return failed(device.error());
  return runFor(*program, *device, 96) && runFor(*program, *device, 1000) ? 0
                                                                          : 1;
}
