//===- Ring.h - A program that hands tensors round --------------*- C++ -*-===//
#ifndef BURST_TEST_STANDINS_RING_H
#define BURST_TEST_STANDINS_RING_H

#include "burst/burst.h"

namespace burst::standins {

inline constexpr int64_t ranks = 4, batch = 3, rows = 5, columns = 7, gap = 2;
inline constexpr int64_t count = batch * rows * columns;

/// MLIR's descriptor of a memref of 3 dimensions.
struct MemRef3 {
  char *base, *data;
  int64_t offset, sizes[3], strides[3];
};

inline burst_piece blockOf(char *data, int64_t outer) {
  return {data, 4, {1, batch, rows, columns}, {0, outer, columns, 1}};
}

/// Hands `in` all the way round but one: `out` is that of the next rank. In
/// between, odd hops leave gaps.
inline void ringOf(int64_t ranks, burst_rank *rank, const burst_table *table,
                   void *const *values) {
  int64_t r = table->index(rank);
  const auto *in = static_cast<const MemRef3 *>(values[0]),
             *out = static_cast<const MemRef3 *>(values[1]);
  int64_t dense = rows * columns, gapped = (rows + gap) * columns;
  burst_piece now = blockOf(in->data, in->strides[0]);
  for (int64_t hop = 1; hop < ranks; ++hop) {
    burst_piece next = blockOf(out->data, dense);
    if (hop + 1 < ranks)
      next = blockOf(static_cast<char *>(table->allocate(
                         rank, 4 * batch * gapped, BURST_MEMORY_SLICE)),
                     hop % 2 ? gapped : dense);
    table->wait(rank, table->start(rank, 0, (r + 1) % ranks, 1, &now,
                                   (r + ranks - 1) % ranks, 1, &next));
    now = next;
  }
}

inline void ring(burst_rank *rank, const burst_table *table,
                 void *const *values) {
  ringOf(ranks, rank, table, values);
}

} // namespace burst::standins

#endif // BURST_TEST_STANDINS_RING_H
