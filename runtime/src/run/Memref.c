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

// A piece that lists all of a tensor, without its data.
static burst_piece piece_of(const burst_sharded *sharded) {
  const memref *from = sharded->tensor;
  int64_t dims = sharded->dims, missing = 4 - dims;
  const int64_t *sizes = from->sizes_and_strides, *strides = sizes + dims;
  burst_piece piece = {
      NULL, sharded->element_bytes, {1, 1, 1, 1}, {1, 1, 1, 1}};
  for (int64_t d = 0; d < dims; ++d) {
    piece.sizes[missing + d] = sizes[d];
    piece.strides[missing + d] = strides[d];
  }
  return piece;
}

// Whether a piece that begins so many elements behind the first one has any.
static bool finish_piece(const burst_sharded *sharded, int64_t elements,
                         burst_piece *piece) {
  const memref *from = sharded->tensor;
  piece->data = from->data + (from->offset + elements) * sharded->element_bytes;
  for (int d = 0; d < 4; ++d)
    if (piece->sizes[d] == 0)
      return false;
  return true;
}

bool burst_sharded_piece(const burst_sharded *sharded, int64_t first,
                         int64_t rows, burst_piece *piece) {
  int64_t dim = 4 - sharded->dims + sharded->dim;
  *piece = piece_of(sharded);
  piece->sizes[dim] = rows;
  return finish_piece(sharded, first * piece->strides[dim], piece);
}

int64_t burst_sharded_heads(const burst_sharded *sharded) {
  return piece_of(sharded).sizes[4 - sharded->dims + sharded->heads_dim];
}

int64_t burst_sharded_blocks(const burst_sharded *sharded) {
  int64_t outer = piece_of(sharded).sizes[0];
  return 2 * (outer > 0 ? outer : 1); // one without elements is tried, too
}

// `blocks` blocks of so many rows in place of the rows of a piece, from row
// `first` on, and a row as far behind the first one of the block before as
// `step` says: of a piece without a dimension of one, for each of the first
// dimension on its own.
static burst_piece *list_blocks(const burst_sharded *sharded, burst_piece whole,
                                int64_t offset, int64_t first, int64_t blocks,
                                int64_t block, int64_t step,
                                burst_piece *pieces) {
  int64_t dim = 4 - sharded->dims + sharded->dim;
  int64_t stride = whole.strides[dim], outer = 1, outer_stride = 0;
  offset += first * stride;
  if (blocks == 1) {
    whole.sizes[dim] = block;
  } else {
    outer = whole.sizes[0];
    outer_stride = whole.strides[0];
    for (int64_t d = 0; d + 1 < dim; ++d) {
      whole.sizes[d] = whole.sizes[d + 1];
      whole.strides[d] = whole.strides[d + 1];
    }
    whole.sizes[dim - 1] = blocks;
    whole.strides[dim - 1] = step * stride;
    whole.sizes[dim] = block;
  }
  for (int64_t i = 0; i < outer; ++i) {
    *pieces = whole;
    pieces += finish_piece(sharded, offset + i * outer_stride, pieces);
  }
  return pieces;
}

burst_piece *burst_sharded_part(const burst_sharded *sharded,
                                const burst_segment *rows, int64_t first_head,
                                int64_t heads, burst_piece *pieces) {
  burst_piece whole = piece_of(sharded);
  int64_t heads_dim = 4 - sharded->dims + sharded->heads_dim;
  int64_t offset = first_head * whole.strides[heads_dim];
  whole.sizes[heads_dim] = heads;
  int64_t blocks = rows->count / rows->block, rest = rows->count % rows->block;
  if (blocks > 0)
    pieces = list_blocks(sharded, whole, offset, rows->begin, blocks,
                         rows->block, rows->step, pieces);
  if (rest > 0)
    pieces =
        list_blocks(sharded, whole, offset, rows->begin + blocks * rows->step,
                    1, rest, rest, pieces);
  return pieces;
}
