//===- Interpreter.cpp - what ring programs mean --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/Binding.h"
#include "passes/Simulation/Interpret/InterpretPairs.h"

#include "mlir/IR/Threading.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

using namespace mlir;
using namespace burst;
using namespace burst::interpreting;

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

StateShapes::StateShapes(RankedTensorType o, const Tensor &query)
    : values(query.shape),
      rows({query.shape[0], query.shape[2], query.shape[1]}) {
  values[3] = o.getDimSize(3);
  element = o.getElementType();
}

State burst::makeState(RankedTensorType o, const Tensor &query) {
  StateShapes shapes(o, query);
  return {std::make_shared<Tensor>(shapes.values, shapes.element),
          std::make_shared<Tensor>(shapes.rows, shapes.element),
          std::make_shared<Tensor>(shapes.rows, shapes.element)};
}

State Interpreter::init(RankedTensorType o, const Tensor &query) {
  State state = makeState(o, query);
  state.o->floats.assign(state.o->size(), 0.0);
  state.m->floats.assign(state.m->size(), minusInfinity);
  state.l->floats.assign(state.l->size(), 0.0);
  return state;
}

void burst::makeUnique(TensorRef &tensor) {
  if (tensor.use_count() == 1)
    return;
  auto copy = std::make_shared<Tensor>(tensor->shape, tensor->element);
  copy->labelLike(*tensor);
  copy->floats = tensor->floats;
  tensor = std::move(copy);
}

void burst::makeUnique(State &state) {
  for (TensorRef *part : {&state.o, &state.m, &state.l})
    makeUnique(*part);
}

TensorRef burst::makeLike(Type element, const Tensor &like) {
  return std::make_shared<Tensor>(like.shape, element);
}

//===----------------------------------------------------------------------===//
// Attend
//===----------------------------------------------------------------------===//

namespace {

/// One query head of one batch attends all slices.
class HeadAttention {
public:
  HeadAttention(const Attend &attend, State &state, int64_t b, int64_t h,
                std::optional<RegionEvaluator> mask,
                std::optional<RegionEvaluator> score)
      : attend(attend), state(state), b(b), h(h), mask(std::move(mask)),
        score(std::move(score)) {}

  /// False where a region could not be evaluated.
  bool run();
  /// Writes the scores of the one slice, whose keys begin at `first`.
  bool store(Tensor &into, int64_t first);
  std::optional<Fault> fault;

private:
  bool runPair(const Slice &slice, const Segment &rows, int64_t row0,
               const Segment &columns, int64_t column0);
  bool scores(const Slice &slice, int64_t x, int64_t i, const Segment &columns,
              int64_t column0);
  void absorb(const Slice &slice, int64_t x, int64_t column0, int64_t count);

  const Attend &attend;
  State &state;
  int64_t b, h;
  std::optional<RegionEvaluator> mask, score;
  std::vector<double> s; ///< scores of a row, then its probabilities
};

} // namespace

bool HeadAttention::scores(const Slice &slice, int64_t x, int64_t i,
                           const Segment &columns, int64_t column0) {
  int64_t group = attend.query->shape[2] / slice.key->shape[2];
  const double *q = row(*attend.query, b, x, h);
  s.resize(columns.count);
  for (int64_t y = 0; y < columns.count; ++y) {
    const double *k = row(*slice.key, b, column0 + y, h / group);
    s[y] = attend.scale * dot(q, k, attend.query->shape[3]);
    if (!applyRegions(attend, mask, score, {b, h, i, columns.position(y)}, s[y],
                      fault))
      return false;
  }
  return true;
}

/// What is not a number shows: it must not pass for a key that is masked.
static double larger(double a, double b) {
  return std::isnan(b) || b > a ? b : a;
}

/// The recurrence of the online softmax, for one row.
void HeadAttention::absorb(const Slice &slice, int64_t x, int64_t column0,
                           int64_t count) {
  int64_t rows = state.m->shape[2], heads = state.m->shape[1];
  int64_t at = (b * heads + h) * rows + x;
  int64_t group = attend.query->shape[2] / slice.value->shape[2];
  int64_t dims = state.o->shape[3];
  double &m = state.m->floats[at], &l = state.l->floats[at];
  double *o = row(*state.o, b, x, h);
  double reference = m;
  for (int64_t y = 0; y < count; ++y)
    reference = larger(reference, s[y]);
  if (reference == minusInfinity)
    return; // Nothing was attended yet, and nothing is now.
  double factor = std::exp(m - reference);
  l *= factor;
  for (int64_t d = 0; d < dims; ++d)
    o[d] *= factor;
  for (int64_t y = 0; y < count; ++y) {
    double p = std::exp(s[y] - reference);
    if (p == 0)
      continue;
    l += p;
    const double *v = row(*slice.value, b, column0 + y, h / group);
    for (int64_t d = 0; d < dims; ++d)
      o[d] += p * v[d];
  }
  m = reference;
}

bool HeadAttention::runPair(const Slice &slice, const Segment &rows,
                            int64_t row0, const Segment &columns,
                            int64_t column0) {
  for (int64_t x = 0; x < rows.count; ++x) {
    if (!scores(slice, row0 + x, rows.position(x), columns, column0))
      return false;
    absorb(slice, row0 + x, column0, columns.count);
  }
  return true;
}

bool HeadAttention::run() {
  auto rows = attend.queryLayout.getValue().segments(attend.queryOwner,
                                                     attend.queryExtent);
  for (auto [index, slice] : llvm::enumerate(attend.slices)) {
    auto columns =
        attend.keyLayout.getValue().segments(slice.owner, attend.keyExtent);
    int64_t row0 = 0;
    for (auto [a, segmentA] : llvm::enumerate(rows)) {
      int64_t column0 = 0;
      for (auto [c, segmentB] : llvm::enumerate(columns)) {
        if (attend.isComputed(index, a, c) &&
            !runPair(slice, segmentA, row0, segmentB, column0))
          return false;
        column0 += segmentB.count;
      }
      row0 += segmentA.count;
    }
  }
  return true;
}

bool HeadAttention::store(Tensor &into, int64_t first) {
  const Slice &slice = attend.slices.front();
  int64_t x = 0, rows = into.shape[2], keys = into.shape[3];
  for (auto [a, segmentA] :
       llvm::enumerate(attend.queryLayout.getValue().segments(
           attend.queryOwner, attend.queryExtent)))
    for (int64_t y = 0; y < segmentA.count; ++y, ++x) {
      int64_t column = 0;
      for (auto [c, segmentB] :
           llvm::enumerate(attend.keyLayout.getValue().segments(
               slice.owner, attend.keyExtent))) {
        if (attend.isComputed(0, a, c)) {
          if (!scores(slice, x, segmentA.position(y), segmentB, column))
            return false;
          int64_t row = (b * into.shape[1] + h) * rows + x;
          llvm::copy(s, into.floats.begin() + row * keys + first + column);
        }
        column += segmentB.count;
      }
    }
  return true;
}

bool Interpreter::attend(Attend &attend, State &result, std::string &message) {
  if (!checkSizes(attend, attend.slices, message))
    return false;
  poisonAbsent(attend.query);
  for (const Slice &slice : attend.slices)
    poisonAbsent({slice.key, slice.value});
  std::optional<RegionEvaluator> mask, score;
  if (!makeEvaluator(*attend.mask, attend.maskCaptures, mask, message) ||
      !makeEvaluator(*attend.score, attend.scoreCaptures, score, message))
    return false;
  result = std::move(attend.state);
  makeUnique(result);
  int64_t batch = attend.query->shape[0], heads = attend.query->shape[2];
  std::mutex mutex;
  std::optional<Fault> fault;
  parallelFor(attend.at->getContext(), 0, batch * heads, [&](size_t task) {
    HeadAttention head(attend, result, task / heads, task % heads, mask, score);
    if (head.run())
      return;
    std::lock_guard<std::mutex> lock(mutex);
    fault = head.fault;
  });
  if (progress)
    progress();
  if (fault)
    message = "a region " + fault->message;
  return !fault;
}

//===----------------------------------------------------------------------===//
// Stored scores
//===----------------------------------------------------------------------===//

TensorRef burst::makeScores(Type element, const Tensor &query, int64_t keys) {
  int64_t shape[] = {query.shape[0], query.shape[2], query.shape[1], keys};
  return std::make_shared<Tensor>(shape, element);
}

TensorRef Interpreter::scores(Type element, const Tensor &query, int64_t keys) {
  TensorRef made = makeScores(element, query, keys);
  made->floats.assign(made->size(), minusInfinity);
  return made;
}

/// Where the keys of `owner` begin among those of all ranks.
static int64_t firstKey(const Layout &layout, int64_t owner, int64_t extent) {
  int64_t first = 0;
  for (int64_t before = 0; before < owner; ++before)
    first += layout.count(before, extent);
  return first;
}

/// A row of scores or weights: all keys.
static double *rowOfScores(Tensor &scores, int64_t b, int64_t h, int64_t x) {
  return scores.floats.data() +
         ((b * scores.shape[1] + h) * scores.shape[2] + x) * scores.shape[3];
}

bool Interpreter::score(Score &score, std::string &message) {
  Attend attend;
  static_cast<AttendInputs &>(attend) = score;
  attend.slices = {{score.key, score.key, score.keyOwner}};
  if (!checkSizes(attend, attend.slices, message))
    return false;
  poisonAbsent(score.key);
  std::optional<RegionEvaluator> mask, region;
  if (!makeEvaluator(*score.mask, score.maskCaptures, mask, message) ||
      !makeEvaluator(*score.score, score.scoreCaptures, region, message))
    return false;
  makeUnique(score.scores);
  int64_t batch = score.query->shape[0], heads = score.query->shape[2];
  int64_t first =
      firstKey(score.keyLayout.getValue(), score.keyOwner, score.keyExtent);
  std::mutex mutex;
  std::optional<Fault> fault;
  parallelFor(score.at->getContext(), 0, batch * heads, [&](size_t task) {
    int64_t b = static_cast<int64_t>(task) / heads,
            h = static_cast<int64_t>(task) % heads;
    HeadAttention head(attend, attend.state, b, h, mask, region);
    if (head.store(*score.scores, first))
      return;
    std::lock_guard<std::mutex> lock(mutex);
    fault = head.fault;
  });
  if (progress)
    progress();
  if (fault)
    message = "a region " + fault->message;
  return !fault;
}

bool Interpreter::softmax(TensorRef &scores, State &state, std::string &) {
  makeUnique(scores);
  makeUnique(state);
  int64_t keys = scores->shape[3];
  for (int64_t at = 0; at < state.m->size(); ++at) {
    double *s = scores->floats.data() + at * keys;
    double &m = state.m->floats[at], &l = state.l->floats[at];
    for (int64_t j = 0; j < keys; ++j)
      m = larger(m, s[j]);
    for (int64_t j = 0; j < keys; ++j) {
      s[j] = m == minusInfinity ? 0 : std::exp(s[j] - m);
      l += s[j];
    }
  }
  return true;
}

bool Interpreter::weigh(Weigh &weigh, std::string &message) {
  Layout layout = weigh.keyLayout.getValue();
  int64_t count = layout.count(weigh.owner, weigh.keyExtent);
  if (weigh.value->shape[1] != count) {
    message = "weighs a slice of " + std::to_string(weigh.value->shape[1]) +
              " values, its layout says " + std::to_string(count);
    return false;
  }
  poisonAbsent(weigh.value);
  makeUnique(weigh.state);
  Tensor &o = *weigh.state.o;
  int64_t first = firstKey(layout, weigh.owner, weigh.keyExtent);
  int64_t heads = o.shape[2], group = heads / weigh.value->shape[2];
  for (int64_t b = 0; b < o.shape[0]; ++b)
    for (int64_t x = 0; x < o.shape[1]; ++x)
      for (int64_t h = 0; h < heads; ++h) {
        const double *p = rowOfScores(*weigh.weights, b, h, x) + first;
        double *sum = row(o, b, x, h);
        for (int64_t y = 0; y < count; ++y) {
          if (p[y] == 0)
            continue;
          const double *v = row(*weigh.value, b, y, h / group);
          for (int64_t d = 0; d < o.shape[3]; ++d)
            sum[d] += p[y] * v[d];
        }
      }
  return true;
}

bool Interpreter::probabilities(TensorRef &scores, const TensorRef &lse,
                                std::string &) {
  makeUnique(scores);
  int64_t keys = scores->shape[3];
  for (int64_t at = 0; at < scores->size(); ++at) {
    double &s = scores->floats[at], row = lse->floats[at / keys];
    bool isNone = s == minusInfinity || row == minusInfinity;
    s = isNone ? 0 : std::exp(s - row);
  }
  return true;
}

/// Emits what is done for every pair of a row and of a key of `owner`, of which
/// `stored` has a number that is not 0: the batch, head and row, the head and
/// number of the key, and the number. False where the slice is another one.
static bool
eachStored(Tensor &stored, const Tensor &slice, const Layout &layout,
           int64_t owner, int64_t extent, std::string &message,
           llvm::function_ref<void(int64_t b, int64_t h, int64_t x,
                                   int64_t keyHead, int64_t y, double &number)>
               body) {
  int64_t count = layout.count(owner, extent);
  if (slice.shape[1] != count) {
    message = "takes a slice of " + std::to_string(slice.shape[1]) +
              " keys, its layout says " + std::to_string(count);
    return false;
  }
  int64_t first = firstKey(layout, owner, extent);
  int64_t heads = stored.shape[1], group = heads / slice.shape[2];
  for (int64_t b = 0; b < stored.shape[0]; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t x = 0; x < stored.shape[2]; ++x) {
        double *numbers = rowOfScores(stored, b, h, x) + first;
        for (int64_t y = 0; y < count; ++y)
          if (numbers[y] != 0)
            body(b, h, x, h / group, y, numbers[y]);
      }
  return true;
}

/// sum += factor * vector.
static void addTo(double *sum, double factor, const double *vector,
                  int64_t dim) {
  for (int64_t d = 0; d < dim; ++d)
    sum[d] += factor * vector[d];
}

bool Interpreter::weighGrad(WeighGrad &weigh, std::string &message) {
  poisonAbsent({weigh.outGrad.get(), weigh.delta.get(), weigh.value});
  makeUnique(weigh.weights);
  makeUnique(weigh.grad);
  int64_t dim = weigh.value->shape[3];
  int64_t heads = weigh.outGrad->shape[2], rows = weigh.outGrad->shape[1];
  return eachStored(*weigh.weights, *weigh.value, weigh.keyLayout.getValue(),
                    weigh.owner, weigh.keyExtent, message,
                    [&](int64_t b, int64_t h, int64_t x, int64_t keyHead,
                        int64_t y, double &p) {
                      const double *outGrad = row(*weigh.outGrad, b, x, h);
                      const double *v = row(*weigh.value, b, y, keyHead);
                      addTo(row(*weigh.grad, b, y, keyHead), p, outGrad, dim);
                      double delta =
                          weigh.delta->floats[(b * heads + h) * rows + x];
                      p *= weigh.scale * (dot(outGrad, v, dim) - delta);
                    });
}

bool Interpreter::scoreGrad(ScoreGrad &score, std::string &message) {
  poisonAbsent({score.query, score.key});
  makeUnique(score.queryGrad);
  makeUnique(score.keyGrad);
  int64_t dim = score.query->shape[3];
  return eachStored(*score.weights, *score.key, score.keyLayout.getValue(),
                    score.owner, score.keyExtent, message,
                    [&](int64_t b, int64_t h, int64_t x, int64_t keyHead,
                        int64_t y, double &u) {
                      addTo(row(*score.queryGrad, b, x, h), u,
                            row(*score.key, b, y, keyHead), dim);
                      addTo(row(*score.keyGrad, b, y, keyHead), u,
                            row(*score.query, b, x, h), dim);
                    });
}

//===----------------------------------------------------------------------===//
// Merge and finalize
//===----------------------------------------------------------------------===//

/// Merges row x of a batch and a head.
static void mergeRow(State &into, const State &from, int64_t b, int64_t h,
                     int64_t x) {
  int64_t heads = into.m->shape[1], rows = into.m->shape[2];
  int64_t at = (b * heads + h) * rows + x;
  double &m = into.m->floats[at];
  double other = from.m->floats[at];
  double reference = larger(m, other);
  if (reference == minusInfinity)
    return;
  double a1 = std::exp(m - reference), a2 = std::exp(other - reference);
  into.l->floats[at] = a1 * into.l->floats[at] + a2 * from.l->floats[at];
  double *o1 = row(*into.o, b, x, h), *o2 = row(*from.o, b, x, h);
  for (int64_t d = 0; d < into.o->shape[3]; ++d)
    o1[d] = a1 * o1[d] + a2 * o2[d];
  m = reference;
}

bool Interpreter::merge(Merge &merge, std::string &) {
  makeUnique(merge.into);
  poisonAbsent({merge.from.o.get(), merge.from.m.get(), merge.from.l.get()});
  int64_t batch = merge.into.m->shape[0], heads = merge.into.m->shape[1];
  int64_t begin = 0;
  for (auto [s, segment] : llvm::enumerate(
           merge.layout.getValue().segments(merge.owner, merge.extent))) {
    if (merge.segments >> s & 1)
      for (int64_t head = 0; head < batch * heads; ++head)
        for (int64_t x = begin; x < begin + segment.count; ++x)
          mergeRow(merge.into, merge.from, head / heads, head % heads, x);
    begin += segment.count;
  }
  return true;
}

bool Interpreter::finalize(Finalize &finalize, std::string &) {
  State &state = finalize.state;
  makeUnique(state);
  int64_t heads = state.m->shape[1], rows = state.m->shape[2];
  for (int64_t at = 0; at < state.m->size(); ++at) {
    double l = state.l->floats[at];
    int64_t b = at / (heads * rows), h = at / rows % heads, x = at % rows;
    double *o = row(*state.o, b, x, h);
    for (int64_t d = 0; d < state.o->shape[3]; ++d)
      o[d] = l == 0 ? 0.0 : o[d] / l;
    double &m = state.m->floats[at];
    state.l->floats[at] = m;
    m = l == 0 ? minusInfinity : m + std::log(l);
  }
  finalize.lse = state.m;
  if (finalize.hasMaxScores)
    finalize.maxScores = state.l;
  // The state's memory serves the result where the types agree.
  TensorRef &out = finalize.out;
  out = state.o;
  if (out->element != finalize.element) {
    out = std::make_shared<Tensor>(state.o->shape, finalize.element);
    out->floats = std::move(state.o->floats);
  }
  for (const TensorRef &made : {out, finalize.lse, finalize.maxScores})
    if (made)
      for (double &value : made->floats)
        value = roundTo(value, made->element);
  return true;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// The positions, within the owner's shard, of the masked segments.
static std::vector<int64_t> maskedPositions(const Transfer &transfer,
                                            int64_t owner, uint64_t mask) {
  std::vector<int64_t> result;
  int64_t begin = 0;
  for (auto [s, segment] :
       llvm::enumerate(transfer.layout.segments(owner, transfer.extent))) {
    if (mask >> s & 1)
      for (int64_t x = 0; x < segment.count; ++x)
        result.push_back(begin + x);
    begin += segment.count;
  }
  return result;
}

/// Data that nobody may read.
static void poison(Tensor &tensor) {
  if (isa<FloatType>(tensor.element))
    tensor.floats.assign(tensor.size(), std::nan(""));
  else
    tensor.ints.assign(tensor.size(), std::numeric_limits<int64_t>::min());
}

TensorRef Interpreter::deliver(const Transfer &from, const Transfer &to,
                               size_t index) {
  const Tensor &source = *from.tensors[index];
  TensorRef received = to.makeReceived(index);
  Tensor &target = *received;
  poison(target); // What is not sent stays so.
  ring::TransferOpInterface op = to.start;
  copyPositions(source, maskedPositions(from, from.owner, from.sendMask),
                target, maskedPositions(to, to.receivedOwner, to.receiveMask),
                op.getDims()[index]);
  return received;
}

/// Where the positions of the shard of `owner` are in that of its group.
static std::vector<int64_t> rowsInGroup(const Layout &layout, int64_t owner,
                                        int64_t extent, int64_t members) {
  std::vector<int64_t> rows;
  for (int64_t s = 0; s < layout.numSegments(); ++s) {
    Segment segment = layout.segmentInGroup(owner, s, extent, members);
    for (int64_t x = 0; x < segment.count; ++x)
      rows.push_back(segment.position(x));
  }
  return rows;
}

static std::vector<int64_t> rowsFrom(int64_t first, int64_t count) {
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

void Interpreter::exchange(const Transfer &from, const Transfer &to,
                           size_t index) {
  const Tensor &source = *from.tensors[index];
  Tensor &target = *to.received[index];
  if (!target.hasData())
    poison(target);
  ring::TransferOpInterface op = from.start;
  auto members = static_cast<int64_t>(op.getMembers());
  int64_t dim = from.dims[index];
  int64_t headsDim = source.headsDim();
  bool toHeads = op.getRoute() == ring::Route::ToHeads;
  // Cut out along one of the dimensions, place along the other one.
  auto [first, heads] =
      headsInBetween(op, source, target, (toHeads ? to : from).place);
  std::vector<int64_t> ofPart = rowsFrom(first, heads),
                       allHeads = rowsFrom(0, heads);
  const Transfer &outside = toHeads ? from : to;
  std::vector<int64_t> inGroup = rowsInGroup(
      op.getLayout().getValue(),
      toHeads ? outside.owner : outside.receivedOwner, from.extent, members);
  std::vector<int64_t> ofShard =
      rowsFrom(0, static_cast<int64_t>(inGroup.size()));
  auto shape = source.shape;
  shape[toHeads ? headsDim : dim] =
      toHeads ? target.shape[headsDim] : ofShard.size();
  Tensor part(shape, source.element);
  poison(part);
  if (toHeads) {
    copyPositions(source, ofPart, part, allHeads, headsDim);
    copyPositions(part, ofShard, target, inGroup, dim);
    return;
  }
  copyPositions(source, inGroup, part, ofShard, dim);
  copyPositions(part, allHeads, target, ofPart, headsDim);
}

//===----------------------------------------------------------------------===//
// Chunks of heads
//===----------------------------------------------------------------------===//

/// The heads of a chunk among all.
static std::vector<int64_t> headsOf(const HeadChunk &of, int64_t count) {
  std::vector<int64_t> heads(count);
  for (auto [index, head] : llvm::enumerate(heads))
    head = of.chunk + static_cast<int64_t>(index) * of.count;
  return heads;
}

TensorRef Interpreter::takeHeads(const Tensor &whole, const HeadChunk &of) {
  TensorRef taken = Semantics::takeHeads(whole, of);
  poison(*taken);
  int64_t dim = whole.headsDim(), heads = taken->shape[dim];
  copyPositions(whole, headsOf(of, heads), *taken, rowsFrom(0, heads), dim);
  return taken;
}

TensorRef Interpreter::joinHeads(ArrayRef<TensorRef> chunks) {
  TensorRef joined = Semantics::joinHeads(chunks);
  poison(*joined);
  int64_t dim = joined->headsDim(), heads = chunks.front()->shape[dim];
  auto count = static_cast<int>(chunks.size());
  for (auto [number, chunk] : llvm::enumerate(chunks))
    copyPositions(*chunk, rowsFrom(0, heads), *joined,
                  headsOf({0, static_cast<int>(number), count}, heads), dim);
  return joined;
}
