//===- Symmetry.cpp - ranks that do the same at the same time -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Clock/Symmetry.h"

using namespace mlir;
using namespace burst;

Symmetry::Symmetry(shard::GridOp grid) {
  for (int64_t axis : llvm::seq(grid.getRank())) {
    RankGroup group = groupOf(grid, axis);
    axes.push_back({group.size, group.stride, /*period=*/group.size});
  }
}

Symmetry::Symmetry(shard::GridOp grid, const Recorded &recorded,
                   ArrayRef<std::vector<size_t>> parts)
    : Symmetry(grid) {
  for (Axis &axis : axes)
    for (int64_t period = 1; period < axis.period; ++period)
      if (axis.size % period == 0 && maps(axis, period, recorded, parts))
        axis.period = period; // the least
  isTrivial = size() == 1;
}

bool Symmetry::maps(const Axis &axis, int64_t steps, const Recorded &recorded,
                    ArrayRef<std::vector<size_t>> parts) const {
  auto ranks = static_cast<int64_t>(recorded.ranks.size());
  // Parts that are one become one, and parts that are two become two.
  for (const std::vector<size_t> &part : parts) {
    llvm::DenseMap<size_t, size_t> to, from;
    for (int64_t rank : llvm::seq(ranks)) {
      size_t source = part[rank], target = part[axis.move(rank, steps)];
      if (to.try_emplace(source, target).first->second != target ||
          from.try_emplace(target, source).first->second != source)
        return false;
    }
  }
  auto moved = [&](int64_t peer) {
    return peer < 0 ? peer : axis.move(peer, steps);
  };
  for (int64_t rank : llvm::seq(ranks))
    if (!llvm::equal(recorded.ranks[rank],
                     recorded.ranks[axis.move(rank, steps)],
                     [&](const RankEvent &a, const RankEvent &b) {
                       if (a.kind != b.kind || a.step != b.step ||
                           a.channel != b.channel || a.amount != b.amount)
                         return false;
                       if (a.kind != RankEvent::Kind::Start)
                         return a.to == b.to && a.from == b.from;
                       return moved(a.to) == b.to && moved(a.from) == b.from;
                     }))
      return false;
  return true;
}

int64_t Symmetry::move(int64_t rank, int64_t by, int64_t times) const {
  if (isTrivial)
    return rank;
  for (const Axis &axis : axes) {
    int64_t place = axis.placeOf(by);
    rank = axis.move(rank, times * (place - place % axis.period));
  }
  return rank;
}

int64_t Symmetry::size() const {
  int64_t size = 1;
  for (const Axis &axis : axes)
    size *= axis.size / axis.period;
  return size;
}

SmallVector<int64_t> Symmetry::orbit(int64_t rank) const {
  SmallVector<int64_t> orbit{rank};
  for (const Axis &axis : axes) {
    SmallVector<int64_t> more;
    for (int64_t other : orbit)
      for (int64_t steps = 0; steps < axis.size; steps += axis.period)
        more.push_back(axis.move(other, steps));
    orbit = std::move(more);
  }
  return orbit;
}
