//===- Memref.c - What programs list of tensors ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/run/Rank.h"

// MLIR's memref descriptor: the sizes, then the strides of its dimensions.
typedef struct memref {
  const void *base;
  char *data;
  int64_t offset;
  int64_t sizes_and_strides[];
} memref;

void burst_rank_use(burst_rank *rank, burst_use *use, const void *tensor,
                    int64_t dims, int64_t element_bytes, int64_t mode) {
  (void)rank; // which all functions of the table take
  const memref *from = tensor;
  const int64_t *sizes = from->sizes_and_strides, *strides = sizes + dims;
  int64_t elements = 1; // from the first one to the last one
  bool is_empty = false;
  for (int64_t d = 0; d < dims; ++d) {
    elements += (sizes[d] - 1) * strides[d];
    is_empty |= sizes[d] == 0;
  }
  *use = (burst_use){from->data, 0, mode};
  if (is_empty)
    return;
  use->begin = from->data + from->offset * element_bytes;
  use->bytes = elements * element_bytes;
}

bool burst_sharded_piece(const burst_sharded *sharded, int64_t first,
                         int64_t rows, burst_piece *piece) {
  const memref *from = sharded->tensor;
  int64_t dims = sharded->dims, missing = 4 - dims;
  const int64_t *sizes = from->sizes_and_strides, *strides = sizes + dims;
  bool is_empty = false;
  *piece =
      (burst_piece){NULL, sharded->element_bytes, {1, 1, 1, 1}, {1, 1, 1, 1}};
  for (int64_t d = 0; d < dims; ++d) {
    int64_t size = d == sharded->dim ? rows : sizes[d];
    piece->sizes[missing + d] = size;
    piece->strides[missing + d] = strides[d];
    is_empty |= size == 0;
  }
  int64_t offset = from->offset + first * strides[sharded->dim];
  piece->data = from->data + offset * sharded->element_bytes;
  return !is_empty;
}
