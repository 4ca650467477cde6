//===- Problem.cpp - attentions with their tensors ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

#include <cmath>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>

using namespace burst;
using namespace burst::test;

const burst_axis *burst::test::axis(int64_t ranks, const char *order) {
  static std::deque<burst_axis> axes;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  return &axes.emplace_back(burst_axis{ranks, order, nullptr});
}

burst_attention burst::test::smallAttention() {
  auto attention = api::make<burst_attention>();
  attention.axes = axis(3, "zigzag");
  attention.num_axes = 1;
  attention.type = BURST_F32;
  attention.batch = 2;
  attention.query_length = attention.key_length = 29;
  attention.query_heads = 4;
  attention.key_heads = 2;
  attention.head_dim = 8;
  attention.mask = "causal";
  return attention;
}

std::string burst::test::take(burst_error *error) {
  if (!error)
    return "";
  std::string text = burst_error_message(error);
  burst_error_destroy(error);
  return text;
}

void burst::test::expectSuccess(const api::Status &status) {
  EXPECT_TRUE(status) << status.message();
}

static api::Program own(api::Result<api::Program> program) {
  EXPECT_TRUE(program) << program.error().message();
  return program ? *program : api::Program();
}

api::Program burst::test::compiled(const burst_attention &attention,
                                   const burst_compile_config &config) {
  return own(api::Program::compile(attention, config));
}

api::Program burst::test::compiled(std::string_view text,
                                   const burst_compile_config &config) {
  return own(api::Program::compile(text, config));
}

const api::Program &burst::test::smallProgram() {
  static api::Program program = compiled(smallAttention());
  return program;
}

/// Numbers in [-1, 1) that repeat after more elements than there are.
static std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = float((i * 7919 + seed * 131) % 2003) / 1001.5F - 1;
  return values;
}

/// Rising ids, four in all.
static std::vector<int32_t> ids(int64_t count) {
  std::vector<int32_t> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = int32_t(i * 4 / count);
  return values;
}

/// The number behind `what`; infinite if it is not there.
static double numberBehind(std::string_view text, std::string_view what) {
  size_t at = text.find(what);
  return at == text.npos ? INFINITY
                         : std::strtod(text.data() + at + what.size(), nullptr);
}

Problem::Problem(const burst_attention &given, int64_t queries, int64_t keys)
    : attention(given),
      valueDim(given.value_dim ? given.value_dim : given.head_dim) {
  if (attention.batch < 0)
    attention.batch = 2;
  if (attention.query_length < 0)
    attention.query_length = queries;
  if (attention.key_length < 0)
    attention.key_length = keys;
  const burst_attention &a = attention;
  extents[0] = a.query_length;
  extents[1] = a.key_length;
  q = numbers(a.batch * a.query_length * a.query_heads * a.head_dim, 1);
  k = numbers(a.batch * a.key_length * a.key_heads * a.head_dim, 2);
  v = numbers(a.batch * a.key_length * a.key_heads * valueDim, 3);
  o.resize(a.batch * a.query_length * a.query_heads * valueDim);
  lse.resize(a.batch * a.query_heads * a.query_length);
  slopes = numbers(a.query_heads, 4);
  bias = numbers(a.query_length * a.key_length, 6);
  maxScores.resize(lse.size());
  outGrad = numbers(static_cast<int64_t>(o.size()), 5);
  lseGrad = numbers(static_cast<int64_t>(lse.size()), 7);
  slopeGrad.resize(slopes.size());
  biasGrad.resize(bias.size());
  dq.resize(q.size());
  dk.resize(k.size());
  dv.resize(v.size());
  queryIds = ids(a.query_length);
  keyIds = ids(a.key_length);
  std::string_view mask = a.mask ? a.mask : "", score = a.score ? a.score : "";
  isCausal = mask.find("causal") != mask.npos;
  hasDocuments = mask.find("documents") != mask.npos;
  left = numberBehind(mask, "left = ");
  right = numberBehind(mask, "right = ");
  prefix = numberBehind(mask, "prefix<");
  cap = numberBehind(score, "softcap<");
  capAt = score.find("softcap");
  alibiAt = score.find("alibi");
  biasAt = score.find("bias");
  clearResults();
}

void Problem::clearResults() {
  for (std::vector<float> *gradient : {&dq, &dk, &dv, &slopeGrad, &biasGrad})
    std::fill(gradient->begin(), gradient->end(), NAN);
  if (attention.pass == BURST_BACKWARD)
    return; // which takes the others
  std::fill(o.begin(), o.end(), NAN);
  std::fill(lse.begin(), lse.end(), NAN);
  std::fill(maxScores.begin(), maxScores.end(), NAN);
}

std::vector<burst_tensor> Problem::globals(const api::Program &program) {
  const burst_attention &a = attention;
  std::vector<burst_tensor> tensors;
  int64_t extent = 0;
  for (int64_t index = 0; index < program.numParameters(); ++index) {
    const burst_parameter &parameter = program.parameter(index);
    std::string name = parameter.name;
    auto tensor = [&](auto &data, std::initializer_list<int64_t> sizes) {
      return api::dense(data.data(), parameter.type, sizes);
    };
    if (parameter.kind == BURST_EXTENT)
      tensors.push_back(api::dense(&extents[extent++], BURST_I64, {}));
    else if (name == "q")
      tensors.push_back(
          tensor(q, {a.batch, a.query_length, a.query_heads, a.head_dim}));
    else if (name == "k")
      tensors.push_back(
          tensor(k, {a.batch, a.key_length, a.key_heads, a.head_dim}));
    else if (name == "v")
      tensors.push_back(
          tensor(v, {a.batch, a.key_length, a.key_heads, valueDim}));
    else if (name == "do")
      tensors.push_back(
          tensor(outGrad, {a.batch, a.query_length, a.query_heads, valueDim}));
    else if (name == "dq")
      tensors.push_back(
          tensor(dq, {a.batch, a.query_length, a.query_heads, a.head_dim}));
    else if (name == "dk")
      tensors.push_back(
          tensor(dk, {a.batch, a.key_length, a.key_heads, a.head_dim}));
    else if (name == "dv")
      tensors.push_back(
          tensor(dv, {a.batch, a.key_length, a.key_heads, valueDim}));
    else if (name == "o")
      tensors.push_back(
          tensor(o, {a.batch, a.query_length, a.query_heads, valueDim}));
    else if (name == "lse")
      tensors.push_back(tensor(lse, {a.batch, a.query_heads, a.query_length}));
    else if (name == "max_scores")
      tensors.push_back(
          tensor(maxScores, {a.batch, a.query_heads, a.query_length}));
    else if (name == "dlse")
      tensors.push_back(
          tensor(lseGrad, {a.batch, a.query_heads, a.query_length}));
    else if (name == "slopes" || name == "dslopes")
      tensors.push_back(
          tensor(name == "slopes" ? slopes : slopeGrad, {a.query_heads}));
    else if (name == "bias" || name == "dbias")
      tensors.push_back(tensor(name == "bias" ? bias : biasGrad,
                               {a.query_length, a.key_length}));
    else if (name == "query_ids")
      tensors.push_back(tensor(queryIds, {a.query_length}));
    else if (name == "key_ids")
      tensors.push_back(tensor(keyIds, {a.key_length}));
    else
      ADD_FAILURE() << "no tensor for " << name;
  }
  return tensors;
}

std::vector<burst_tensor> Problem::arguments(const api::Program &program) {
  std::vector<burst_tensor> tensors = globals(program);
  tensors.resize(program.numArguments());
  return tensors;
}

api::Status Problem::run(const api::Program &program) {
  clearResults();
  auto device = api::Device::cpu(2);
  if (!device)
    return api::Status(burst_device_create_cpu(nullptr, nullptr));
  auto config = api::make<burst_run_all_config>();
  config.device = device->get();
  config.deadline_seconds = 60;
  config.checked = 1;
  return program.runAll(config, globals(program));
}

//===----------------------------------------------------------------------===//
// The definition
//===----------------------------------------------------------------------===//

bool Problem::keeps(int64_t i, int64_t j) const {
  const burst_attention &a = attention;
  auto d = double(i + a.key_length - a.query_length - j);
  if ((isCausal && d < 0) || d > left || -d > right)
    return false;
  // Without a prefix, it is infinite.
  if (double(j) >= prefix && d < 0)
    return false;
  return !hasDocuments || queryIds[i] == keyIds[j];
}

double Problem::score(double s, int64_t h, int64_t i, int64_t j) const {
  const burst_attention &a = attention;
  size_t none = std::string_view::npos;
  auto d = double(i + a.key_length - a.query_length - j);
  // In the order of the list.
  for (size_t at : std::set{capAt, alibiAt, biasAt}) {
    if (at != none && at == capAt)
      s = cap * std::tanh(s / cap);
    if (at != none && at == alibiAt)
      s -= slopes[h] * std::abs(d);
    if (at != none && at == biasAt)
      s += bias[i * a.key_length + j];
  }
  return s;
}

void Problem::expectResults() const {
  const burst_attention &a = attention;
  double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(double(a.head_dim));
  int64_t group = a.query_heads / a.key_heads, wrong = 0;
  auto differ = [](double found, double wanted) {
    return std::isinf(wanted) ? found != wanted
                              : !(std::abs(found - wanted) < 2e-5);
  };
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t i = 0; i < a.query_length; ++i)
      for (int64_t h = 0; h < a.query_heads; ++h) {
        int64_t row = (b * a.query_length + i) * a.query_heads + h;
        double sum = 0, largest = -INFINITY;
        std::vector<double> out(valueDim, 0);
        for (int64_t j = 0; j < a.key_length; ++j) {
          if (!keeps(i, j))
            continue;
          int64_t key = (b * a.key_length + j) * a.key_heads + h / group;
          double s = 0;
          for (int64_t d = 0; d < a.head_dim; ++d)
            s += double(q[row * a.head_dim + d]) * k[key * a.head_dim + d];
          s = score(scale * s, h, i, j);
          double p = std::exp(s);
          largest = std::max(largest, s);
          sum += p;
          for (int64_t d = 0; d < valueDim; ++d)
            out[d] += p * v[key * valueDim + d];
        }
        int64_t at = (b * a.query_heads + h) * a.query_length + i;
        wrong += differ(lse[at], std::log(sum));
        if (a.max_scores)
          wrong += differ(maxScores[at], largest);
        for (int64_t d = 0; d < valueDim; ++d)
          wrong += differ(o[row * valueDim + d], sum > 0 ? out[d] / sum : 0);
      }
  EXPECT_EQ(wrong, 0) << "elements are far from the definition";
}

void Problem::expectGradients() const {
  const burst_attention &a = attention;
  double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(double(a.head_dim));
  int64_t group = a.query_heads / a.key_heads;
  std::vector<double> byQuery(q.size()), byKey(k.size()), byValue(v.size()),
      bySlope(slopes.size()), byBias(bias.size());
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t i = 0; i < a.query_length; ++i)
      for (int64_t h = 0; h < a.query_heads; ++h) {
        int64_t row = (b * a.query_length + i) * a.query_heads + h;
        int64_t at = (b * a.query_heads + h) * a.query_length + i;
        double logSum = lse[at];
        double delta = a.lse_gradient ? -lseGrad[at] : 0;
        for (int64_t d = 0; d < valueDim; ++d)
          delta += double(o[row * valueDim + d]) * outGrad[row * valueDim + d];
        for (int64_t j = 0; j < a.key_length; ++j) {
          if (!keeps(i, j))
            continue;
          int64_t key = (b * a.key_length + j) * a.key_heads + h / group;
          double t = 0, dp = 0;
          for (int64_t d = 0; d < a.head_dim; ++d)
            t += scale * q[row * a.head_dim + d] * k[key * a.head_dim + d];
          for (int64_t d = 0; d < valueDim; ++d)
            dp += double(outGrad[row * valueDim + d]) * v[key * valueDim + d];
          double p = std::exp(score(t, h, i, j) - logSum), step = 1e-5;
          double slope =
              (score(t + step, h, i, j) - score(t - step, h, i, j)) / step / 2;
          double w = p * (dp - delta), u = w * slope * scale;
          // Tables are added behind what bends scores.
          auto distance = double(i + a.key_length - a.query_length - j);
          bySlope[h] -= w * std::abs(distance);
          byBias[i * a.key_length + j] += w;
          for (int64_t d = 0; d < a.head_dim; ++d) {
            byQuery[row * a.head_dim + d] += u * k[key * a.head_dim + d];
            byKey[key * a.head_dim + d] += u * q[row * a.head_dim + d];
          }
          for (int64_t d = 0; d < valueDim; ++d)
            byValue[key * valueDim + d] += p * outGrad[row * valueDim + d];
        }
      }
  auto compare = [](const std::vector<float> &found,
                    const std::vector<double> &wanted, const char *name) {
    int64_t wrong = 0;
    for (size_t at = 0; at < found.size(); ++at)
      wrong += !(std::abs(found[at] - wanted[at]) <
                 5e-5 + 1e-5 * std::abs(wanted[at]));
    EXPECT_EQ(wrong, 0) << "elements of " << name
                        << " are far from the definition";
  };
  compare(dq, byQuery, "dq");
  compare(dk, byKey, "dk");
  compare(dv, byValue, "dv");
  std::string_view wanted = a.gradients ? a.gradients : "";
  if (wanted.find("slopes") != wanted.npos)
    compare(slopeGrad, bySlope, "dslopes");
  if (wanted.find("bias") != wanted.npos)
    compare(biasGrad, byBias, "dbias");
}
