//===- Messages.c - What is sent over MPI ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/mpi/Messages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is in front of the elements.
typedef struct header {
  uint64_t program;
  int64_t num_pieces;
  struct {
    int64_t element_bytes, sizes[4];
  } shapes[];
} header;

int burst_mpi_fail(burst_transport_failure *failure, int code, int64_t peer,
                   const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  failure->code = code;
  failure->peer = peer;
  vsnprintf(failure->message, sizeof(failure->message), format, arguments);
  va_end(arguments);
  return 1;
}

int burst_mpi_fail_memory(burst_transport_failure *failure, int64_t bytes) {
  return burst_mpi_fail(failure, OUT_OF_MEMORY, -1,
                        "out of memory: wanted %" PRId64 " bytes", bytes);
}

static int64_t elements_of(const burst_piece *piece) {
  return piece->sizes[0] * piece->sizes[1] * piece->sizes[2] * piece->sizes[3];
}

static int64_t header_bytes(int64_t num_pieces) {
  header *none = NULL;
  return (int64_t)(sizeof(header) +
                   (size_t)num_pieces * sizeof(none->shapes[0]));
}

static int64_t bytes_of(const side *side) {
  int64_t bytes = header_bytes(side->num_pieces);
  for (int64_t i = 0; i < side->num_pieces; ++i)
    bytes += elements_of(&side->pieces[i]) * side->pieces[i].element_bytes;
  return (bytes + 7) / 8 * 8; // headers of a gather are aligned
}

static void write_header(const side *side, uint64_t program, header *to) {
  *to = (header){program, side->num_pieces};
  for (int64_t i = 0; i < side->num_pieces; ++i) {
    to->shapes[i].element_bytes = side->pieces[i].element_bytes;
    memcpy(to->shapes[i].sizes, side->pieces[i].sizes,
           sizeof(side->pieces[i].sizes));
  }
}

// Copies a piece to where its elements lie without gaps, or back.
static char *move_piece(const burst_piece *piece, char *packed, bool back) {
  const int64_t *sizes = piece->sizes, *strides = piece->strides;
  int64_t row = sizes[3] * piece->element_bytes;
  bool is_dense = strides[3] == 1 || sizes[3] == 1;
  for (int64_t i = 0; i < sizes[0] * sizes[1] * sizes[2]; ++i) {
    int64_t at = i / (sizes[2] * sizes[1]) * strides[0] +
                 i / sizes[2] % sizes[1] * strides[1] +
                 i % sizes[2] * strides[2];
    char *data = (char *)piece->data + at * piece->element_bytes;
    int64_t step = is_dense ? row : piece->element_bytes;
    for (int64_t done = 0; done < row; done += step) {
      memcpy(back ? data : packed, back ? packed : data, (size_t)step);
      packed += step;
      data += strides[3] * piece->element_bytes;
    }
  }
  return packed;
}

void burst_mpi_pack(const side *side, uint64_t program) {
  char *next = side->memory + header_bytes(side->num_pieces);
  write_header(side, program, (header *)side->memory);
  for (int64_t i = 0; i < side->num_pieces; ++i)
    next = move_piece(&side->pieces[i], next, false);
}

static int check_header(const side *side, uint64_t program,
                        burst_transport_failure *failure) {
  const header *found = (const header *)side->memory;
  if (found->program != program)
    return burst_mpi_fail(failure, MISMATCH, side->peer,
                          "it runs program %016" PRIx64 ", wanted %016" PRIx64,
                          found->program, program);
  if (found->num_pieces != side->num_pieces)
    return burst_mpi_fail(failure, MISMATCH, side->peer,
                          "it sends %" PRId64 " pieces, wanted %" PRId64,
                          found->num_pieces, side->num_pieces);
  for (int64_t i = 0; i < side->num_pieces; ++i) {
    const int64_t *f = found->shapes[i].sizes, *w = side->pieces[i].sizes;
    if (found->shapes[i].element_bytes != side->pieces[i].element_bytes ||
        memcmp(f, w, sizeof(side->pieces[i].sizes)) != 0)
      return burst_mpi_fail(
          failure, MISMATCH, side->peer,
          "piece %" PRId64 " is %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
          " elements of %" PRId64 " bytes there, wanted "
          "%" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " of %" PRId64,
          i, f[0], f[1], f[2], f[3], found->shapes[i].element_bytes, w[0], w[1],
          w[2], w[3], side->pieces[i].element_bytes);
  }
  return 0;
}

int burst_mpi_unpack(const side *side, uint64_t program,
                     burst_transport_failure *failure) {
  if (check_header(side, program, failure))
    return 1;
  char *next = side->memory + header_bytes(side->num_pieces);
  for (int64_t i = 0; i < side->num_pieces; ++i)
    next = move_piece(&side->pieces[i], next, true);
  return 0;
}

bool burst_mpi_make_side(const burst_message *message, side *side) {
  size_t bytes = (size_t)message->num_pieces * sizeof(burst_piece);
  side->peer = (int)message->peer;
  side->receives = message->receives != 0;
  side->pieces = malloc(bytes);
  if (!side->pieces)
    return false;
  memcpy(side->pieces, message->pieces, bytes);
  side->num_pieces = message->num_pieces;
  side->bytes = bytes_of(side);
  return true;
}
