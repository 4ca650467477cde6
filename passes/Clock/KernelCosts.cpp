//===- KernelCosts.cpp - how long the steps of a rank take ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Clock/KernelCosts.h"

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// A mask is asked about boxes down to tiles, until so many were asked about;
/// then only until a segment has so many of them.
static constexpr int64_t mostAsked = int64_t{1} << 24, mostLeaves = 64;
/// Of a partial tile, down to such parts of its sides.
static constexpr int64_t partsOfTile = 8;
/// Fewer rows than a tile has are padded to a multiple of these.
static constexpr double smallestRows = 16;

/// Tiles along `count` positions: of few rows the part that they take.
static double tilesOf(int64_t count, double tile, bool areRows) {
  auto exact = static_cast<double>(count);
  if (!areRows || exact >= tile)
    return std::ceil(exact / tile);
  return std::ceil(exact / smallestRows) * smallestRows / tile;
}

Tiles TileCounter::allOf(Range queries, Range keys) const {
  Tiles all;
  all.full = tilesOf(queries.count(), tile, /*areRows=*/true) *
             tilesOf(keys.count(), tile, /*areRows=*/false);
  all.kept =
      static_cast<double>(queries.count()) * static_cast<double>(keys.count());
  return all;
}

Tiles TileCounter::count(const AttendInputs &inputs, const Segment &queries,
                         const Segment &keys) {
  int64_t longest = std::max(queries.count, keys.count);
  return count(inputs, {queries, 0, queries.count}, {keys, 0, keys.count},
               numAsked < mostAsked
                   ? static_cast<int64_t>(tile)
                   : std::max<int64_t>(static_cast<int64_t>(tile),
                                       llvm::divideCeil(longest, mostLeaves)));
}

PairClass TileCounter::classify(const AttendInputs &inputs, Range queries,
                                Range keys) {
  ++numAsked;
  return classifier.classify(inputs, headsOf(inputs), queries.hull(),
                             keys.hull());
}

/// The pairs that a mask keeps of a box, of which it keeps some: of the
/// smallest boxes that it cuts, half.
double TileCounter::kept(const AttendInputs &inputs, Range queries, Range keys,
                         int64_t leaf) {
  double all =
      static_cast<double>(queries.count()) * static_cast<double>(keys.count());
  if (queries.count() <= leaf || keys.count() <= leaf)
    return all / 2;
  double sum = 0;
  auto [above, below] = queries.halves();
  auto [left, right] = keys.halves();
  for (const Range &row : {above, below})
    for (const Range &column : {left, right}) {
      PairClass found = classify(inputs, row, column);
      if (found == PairClass::Full)
        sum += static_cast<double>(row.count()) *
               static_cast<double>(column.count());
      else if (found == PairClass::Partial)
        sum += kept(inputs, row, column, leaf);
    }
  return sum;
}

Tiles TileCounter::count(const AttendInputs &inputs, Range queries, Range keys,
                         int64_t leaf) {
  if (queries.count() == 0 || keys.count() == 0)
    return {};
  PairClass found = classify(inputs, queries, keys);
  if (found == PairClass::Empty)
    return {};
  Tiles all = allOf(queries, keys);
  if (found == PairClass::Full)
    return all;
  if (queries.count() <= leaf && keys.count() <= leaf) {
    // The mask's edge is taken to run through it from corner to corner.
    double edge = std::max(tilesOf(queries.count(), tile, /*areRows=*/true),
                           tilesOf(keys.count(), tile, /*areRows=*/false));
    Tiles cut;
    cut.partial = std::min(edge, all.full);
    cut.full = (all.full - cut.partial) / 2;
    cut.kept =
        kept(inputs, queries, keys, std::max<int64_t>(1, leaf / partsOfTile));
    return cut;
  }
  SmallVector<Range, 2> rows{queries}, columns{keys};
  if (queries.count() > leaf) {
    auto [first, second] = queries.halves();
    rows = {first, second};
  }
  if (keys.count() > leaf) {
    auto [first, second] = keys.halves();
    columns = {first, second};
  }
  Tiles sum;
  for (const Range &row : rows)
    for (const Range &column : columns)
      sum += count(inputs, row, column, leaf);
  return sum;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static double sizeOf(const Tensor *tensor) {
  return tensor ? static_cast<double>(tensor->bytes()) : 0;
}

double KernelCosts::headsOf(const AttendInputs &inputs) {
  return static_cast<double>(inputs.query->shape[0] *
                             counter.headsOf(inputs).count());
}

/// Adds the pairs of segments that are computed of a slice.
void KernelCosts::addPairs(const AttendInputs &inputs, size_t slice,
                           int64_t owner, AttendWork &work) {
  Layout rows = inputs.queryLayout.getValue();
  Layout columns = inputs.keyLayout.getValue();
  for (int64_t a = 0; a < rows.numSegments(); ++a) {
    Segment q = rows.segment(inputs.queryOwner, a, inputs.queryExtent);
    double tasks = tilesOf(q.count, kernels.tile, /*areRows=*/true);
    double most = 0, least = 0;
    for (int64_t b = 0; b < columns.numSegments(); ++b) {
      if (!inputs.isComputed(slice, a, b))
        continue;
      Segment k = columns.segment(owner, b, inputs.keyExtent);
      Tiles tiles = counter.count(inputs, q, k);
      work.tiles += tiles;
      double across = tilesOf(k.count, kernels.tile, /*areRows=*/false);
      bool isFull = tiles.full >= tasks * across;
      most += std::min(across, tiles.computed());
      least += isFull ? across : 0;
    }
    if (most == 0)
      continue;
    double share = std::min(tasks, 1.0); // of a tile, that few rows take
    least *= share;
    work.shortest = work.rows == 0 ? least : std::min(work.shortest, least);
    work.rows += std::ceil(tasks);
    work.longest = std::max(work.longest, most * share);
  }
}

double KernelCosts::keptPairs(const AttendInputs &inputs, int64_t owner) {
  AttendWork work;
  addPairs(inputs, /*slice=*/0, owner, work);
  return work.tiles.kept * headsOf(inputs);
}

AttendWork KernelCosts::workOf(const Attend &attend) {
  AttendWork work;
  for (auto [index, slice] : llvm::enumerate(attend.slices)) {
    double before = work.tiles.computed();
    addPairs(attend, index, slice.owner, work);
    if (work.tiles.computed() != before)
      work.bytes += sizeOf(slice.key) + sizeOf(slice.value);
  }
  if (work.tiles.computed() == 0)
    return work;
  const Tensor &query = *attend.query;
  work.heads = headsOf(attend);
  // Products with keys and with values.
  work.operations =
      2 * static_cast<double>(query.shape[3] + attend.state.o->shape[3]);
  // The state is read and written.
  work.bytes += sizeOf(&query) + 2 * sizeOf(attend.state.o.get());
  return work;
}

AttendWork KernelCosts::workOf(const AttendGrad &attend) {
  AttendWork work;
  addPairs(attend, 0, attend.slice.owner, work);
  if (work.tiles.computed() == 0)
    return work;
  const Tensor &query = *attend.query, &value = *attend.slice.value;
  work.heads = headsOf(attend);
  // Scores, dq and dk are products over the dimension of queries, and
  // gradients of weights and dv over that of values.
  work.operations =
      2 * static_cast<double>(3 * query.shape[3] + 2 * value.shape[3]);
  work.bytes = sizeOf(&query) + sizeOf(attend.outGrad) +
               sizeOf(attend.slice.key) + sizeOf(&value);
  for (const TensorRef &grad : attend.grads)
    work.bytes += 2 * sizeOf(grad.get());
  return work;
}

double KernelCosts::rate(Type element, int64_t headDim,
                         Products products) const {
  auto [found, isNew] =
      rates[static_cast<size_t>(products)].try_emplace({element, headDim});
  if (isNew)
    found->second = kernels.rate(element, headDim, products);
  return found->second;
}

double KernelCosts::seconds(const AttendWork &work, Type element,
                            int64_t headDim, bool isBackward) const {
  double tasks = work.rows * work.heads, processors = kernels.processors;
  double tiles = work.tiles.computed() * work.heads;
  double ofProcessor = tiles / processors;
  if (tasks >= processors)
    ofProcessor = std::max({ofProcessor, work.longest,
                            std::ceil(tasks / processors) * work.shortest});
  double ofTile = kernels.tile * kernels.tile * work.operations * processors /
                  rate(element, headDim,
                       isBackward ? Products::Backward : Products::Forward);
  double moved = work.bytes / kernels.memoryBandwidth;
  return std::max(ofProcessor * ofTile, moved) + kernels.staged * moved;
}

double KernelCosts::seconds(double pairs, double operations, double bytes,
                            Type element, int64_t headDim) const {
  return kernels.launch +
         std::max(pairs * operations / rate(element, headDim, Products::Stored),
                  bytes / kernels.memoryBandwidth);
}
