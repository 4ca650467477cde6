//===- InterpretGradients.cpp - what backward steps mean ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Interpret/InterpretPairs.h"
#include "passes/Simulation/Interpret/Interpreter.h"

#include "mlir/IR/Threading.h"

#include <cmath>
#include <mutex>

using namespace mlir;
using namespace burst;
using namespace burst::interpreting;

TensorRef Interpreter::zero(Type element, const Tensor &like) {
  TensorRef zero = makeLike(element, like);
  zero->floats.assign(zero->size(), 0.0);
  return zero;
}

bool Interpreter::delta(Type element, const TensorRef &out,
                        const TensorRef &outGrad, const TensorRef &lseGrad,
                        TensorRef &result, std::string &) {
  int64_t batch = out->shape[0], rows = out->shape[1], heads = out->shape[2];
  int64_t shape[] = {batch, heads, rows};
  result = std::make_shared<Tensor>(shape, element);
  result->floats.resize(result->size());
  for (int64_t at = 0; at < result->size(); ++at) {
    int64_t b = at / (heads * rows), h = at / rows % heads, x = at % rows;
    double sum = dot(row(*out, b, x, h), row(*outGrad, b, x, h), out->shape[3]);
    result->floats[at] = sum - (lseGrad ? lseGrad->floats[at] : 0);
  }
  return true;
}

namespace {

/// The gradients of one key head of one batch, by all query heads that share
/// it.
class HeadGradient {
public:
  HeadGradient(const AttendGrad &attend, int64_t b, int64_t keyHead,
               std::optional<RegionEvaluator> mask,
               std::optional<RegionEvaluator> score,
               std::optional<RegionEvaluator> gradient)
      : attend(attend), b(b), keyHead(keyHead), mask(std::move(mask)),
        score(std::move(score)), gradient(std::move(gradient)) {}

  /// False where a region could not be evaluated.
  bool run();
  std::optional<Fault> fault;

private:
  bool runPair(int64_t h, int64_t x, int64_t i, int64_t y, int64_t j);

  const AttendGrad &attend;
  int64_t b, keyHead;
  std::optional<RegionEvaluator> mask, score, gradient;
};

} // namespace

bool HeadGradient::runPair(int64_t h, int64_t x, int64_t i, int64_t y,
                           int64_t j) {
  const Tensor &query = *attend.query;
  int64_t queryDim = query.shape[3], valueDim = attend.outGrad->shape[3];
  const double *q = row(*attend.query, b, x, h);
  const double *k = row(*attend.slice.key, b, y, keyHead);
  const double *v = row(*attend.slice.value, b, y, keyHead);
  const double *outGrad = row(*attend.outGrad, b, x, h);
  int64_t at = (b * query.shape[2] + h) * query.shape[1] + x;
  double lse = attend.lse->floats[at];
  double t = attend.scale * dot(q, k, queryDim), s = t;
  if (!applyRegions(attend, mask, score, {b, h, i, j}, s, fault))
    return false;
  if (s == minusInfinity || lse == minusInfinity)
    return true;
  double p = std::exp(s - lse);
  double w = p * (dot(outGrad, v, valueDim) - attend.delta->floats[at]);
  double u = w;
  if (gradient) {
    if (!gradient->evaluate(regionArguments(attend, {b, h, i, j}, t, w))) {
      fault = gradient->getFault();
      return false;
    }
    u = gradient->result(0).f;
  }
  double *dq = row(*attend.grads[0], b, x, h);
  double *dk = row(*attend.grads[1], b, y, keyHead);
  double *dv = row(*attend.grads[2], b, y, keyHead);
  for (int64_t d = 0; d < queryDim; ++d) {
    dq[d] += attend.scale * u * k[d];
    dk[d] += attend.scale * u * q[d];
  }
  for (int64_t d = 0; d < valueDim; ++d)
    dv[d] += p * outGrad[d];
  return true;
}

bool HeadGradient::run() {
  auto rows = attend.queryLayout.getValue().segments(attend.queryOwner,
                                                     attend.queryExtent);
  auto columns = attend.keyLayout.getValue().segments(attend.slice.owner,
                                                      attend.keyExtent);
  int64_t group = attend.query->shape[2] / attend.slice.key->shape[2];
  for (int64_t h = keyHead * group; h < (keyHead + 1) * group; ++h) {
    int64_t row0 = 0;
    for (auto [a, segmentA] : llvm::enumerate(rows)) {
      int64_t column0 = 0;
      for (auto [c, segmentB] : llvm::enumerate(columns)) {
        for (int64_t x = 0; attend.isComputed(0, a, c) && x < segmentA.count;
             ++x)
          for (int64_t y = 0; y < segmentB.count; ++y)
            if (!runPair(h, row0 + x, segmentA.position(x), column0 + y,
                         segmentB.position(y)))
              return false;
        column0 += segmentB.count;
      }
      row0 += segmentA.count;
    }
  }
  return true;
}

bool Interpreter::attendGrad(AttendGrad &attend, std::string &message) {
  if (!checkSizes(attend, attend.slice, message))
    return false;
  poisonAbsent({attend.query, attend.outGrad, attend.lse, attend.delta,
                attend.slice.key, attend.slice.value});
  for (TensorRef &grad : attend.grads)
    makeUnique(grad);
  std::optional<RegionEvaluator> mask, score, gradient;
  if (!makeEvaluator(*attend.mask, attend.maskCaptures, mask, message) ||
      !makeEvaluator(*attend.score, attend.scoreCaptures, score, message) ||
      !makeEvaluator(*attend.gradient, attend.scoreCaptures, gradient, message))
    return false;
  int64_t batch = attend.query->shape[0], heads = attend.slice.key->shape[2];
  std::mutex mutex;
  std::optional<Fault> fault;
  auto runHead = [&](size_t task) {
    HeadGradient head(attend, task / heads, task % heads, mask, score,
                      gradient);
    if (head.run())
      return;
    std::lock_guard<std::mutex> lock(mutex);
    fault = head.fault;
  };
  ArrayRef<int64_t> captures = attend.captures;
  for (auto [index, n] : llvm::enumerate(captures))
    gradient->setGradient(n, attend.grads[3 + index]);
  if (captures.empty())
    parallelFor(attend.at->getContext(), 0, batch * heads, runHead);
  else // heads contribute to the same tables
    for (int64_t task = 0; task < batch * heads; ++task)
      runHead(task);
  if (progress)
    progress();
  if (fault)
    message = "a region " + fault->message;
  return !fault;
}

bool Interpreter::add(Sum &sum, std::string &) {
  makeUnique(sum.a);
  poisonAbsent(sum.b);
  int64_t begin = 0;
  for (auto [s, segment] :
       llvm::enumerate(sum.layout.getValue().segments(sum.owner, sum.extent))) {
    if (sum.segments >> s & 1)
      for (int64_t b = 0; b < sum.a->shape[0]; ++b) {
        int64_t positions = sum.a->shape[1];
        int64_t size = sum.a->size() / (sum.a->shape[0] * positions);
        int64_t first = (b * positions + begin) * size;
        for (int64_t at = first; at < first + segment.count * size; ++at)
          sum.a->floats[at] += sum.b->floats[at];
      }
    begin += segment.count;
  }
  return true;
}

bool Interpreter::round(Type element, int64_t heads, const TensorRef &gradient,
                        TensorRef &result, std::string &) {
  result = makeLike(element, *gradient);
  result->floats = gradient->floats;
  if (heads != 0) {
    result->shape[2] = heads;
    int64_t parts = gradient->shape[2] / heads, dim = gradient->shape[3];
    result->floats.assign(result->size(), 0.0);
    for (int64_t at = 0; at < gradient->size(); ++at)
      result->floats[at / (parts * dim) * dim + at % dim] +=
          gradient->floats[at];
  }
  for (double &value : result->floats)
    value = roundTo(value, result->element);
  return true;
}
