//===- PairSet.cpp - pairs of segments, by rank ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Prove/PairSet.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace burst;

PairMask burst::pairsOfQueries(uint64_t segments, int64_t numA, int64_t numB) {
  PairMask pairs = 0;
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b)
      pairs |= (segments >> a & 1) * pairBit(a, b, numB);
  return pairs;
}

PairMask burst::pairsOfKeys(uint64_t segments, int64_t numA, int64_t numB) {
  PairMask pairs = 0;
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b)
      pairs |= (segments >> b & 1) * pairBit(a, b, numB);
  return pairs;
}

PairMask PairSet::at(int64_t owner) const {
  const Run *run =
      llvm::partition_point(runs, [&](const Run &r) { return r.end <= owner; });
  return run != runs.end() && run->begin <= owner ? run->pairs : 0;
}

void PairSet::append(int64_t begin, int64_t end, PairMask pairs) {
  if (pairs == 0)
    return;
  if (!runs.empty() && runs.back().end == begin && runs.back().pairs == pairs)
    runs.back().end = end;
  else
    runs.push_back({begin, end, pairs});
}

/// Mostly that of the rank behind those that are there, or in front of them.
PairMask PairSet::add(int64_t owner, PairMask pairs) {
  if (pairs == 0)
    return 0;
  Run *run =
      llvm::partition_point(runs, [&](const Run &r) { return r.end < owner; });
  if (run == runs.end()) {
    runs.push_back({owner, owner + 1, pairs});
    return 0;
  }
  bool isFirst = run == runs.begin(), isLast = run + 1 == runs.end();
  if (run->pairs == pairs && run->end == owner && isLast) {
    ++run->end;
    return 0;
  }
  if (run->pairs == pairs && run->begin == owner + 1 && isFirst) {
    --run->begin;
    return 0;
  }
  return unite(Run{owner, owner + 1, pairs}, ~PairMask{0});
}

PairMask PairSet::unite(const PairSet &other, PairMask mask) {
  if (other.runs.empty())
    return 0;
  if (runs.empty()) {
    *this = other.restricted(mask);
    return 0;
  }
  return unite(other.runs, mask);
}

/// Goes through both, from one rank at which either changes to the next.
PairMask PairSet::unite(llvm::ArrayRef<Run> others, PairMask mask) {
  llvm::SmallVector<Run, 4> own;
  own.swap(runs);
  PairMask common = 0;
  const Run *a = own.begin(), *b = others.begin();
  int64_t at = std::numeric_limits<int64_t>::min();
  while (a != own.end() || b != others.end()) {
    int64_t next = std::numeric_limits<int64_t>::max();
    auto pairsHere = [&](const Run *run, const Run *end) -> PairMask {
      if (run == end)
        return 0;
      next = std::min(next, run->begin <= at ? run->end : run->begin);
      return run->begin <= at ? run->pairs : 0;
    };
    PairMask first = pairsHere(a, own.end());
    PairMask second = pairsHere(b, others.end()) & mask;
    common |= first & second;
    append(at, next, first | second);
    at = next;
    a += a != own.end() && a->end <= at;
    b += b != others.end() && b->end <= at;
  }
  return common;
}

PairSet PairSet::restricted(PairMask mask) const {
  PairSet result;
  for (const Run &run : runs)
    result.append(run.begin, run.end, run.pairs & mask);
  return result;
}
