//===- Segments.c - What a rank holds of a tensor -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/program/Segments.h"
#include "burst/internal/error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int64_t position(const burst_segment *segment, int64_t x) {
  return segment->begin + x / segment->block * segment->step +
         x % segment->block;
}

// Whether the positions of a segment rise and lie in [0, extent).
static bool is_valid(const burst_segment *segment, int64_t extent) {
  if (segment->count == 0)
    return true;
  if (segment->begin < 0 || segment->begin >= extent || segment->count < 0 ||
      segment->count > extent || segment->block < 1)
    return false;
  int64_t blocks = (segment->count - 1) / segment->block;
  int64_t jump;
  if (blocks > 0 && segment->step < segment->block)
    return false;
  return !__builtin_mul_overflow(blocks, segment->step, &jump) &&
         jump < extent && position(segment, segment->count - 1) < extent;
}

static burst_error *check(const burst_parameter *parameter, int64_t rank,
                          int64_t extent, burst_holding *holding) {
  for (int32_t i = 0; i < holding->num_segments; ++i) {
    const burst_segment *s = &holding->segments[i];
    if (!is_valid(s, extent) || s->count > extent - holding->size)
      return burst_error_create(BURST_INVALID_PROGRAM, "",
                                "%s: segment %d of rank %" PRId64
                                " (begin %" PRId64 ", count %" PRId64
                                ", step %" PRId64 ", block %" PRId64
                                ") leaves the extent %" PRId64,
                                parameter->name, i, rank, s->begin, s->count,
                                s->step, s->block, extent);
    holding->size += s->count;
  }
  return NULL;
}

static burst_error *check_extent(const burst_parameter *parameter,
                                 int64_t extent) {
  const int64_t most = INT64_MAX / 4; // sums of positions do not overflow
  if (parameter->shard_dim < 0)
    return burst_error_create(BURST_INVALID_ARGUMENT, "", "%s is not sharded",
                              parameter->name);
  if (extent < 0 || extent > most)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "%s: extent %" PRId64 ", wanted 0 to %" PRId64,
                              parameter->name, extent, most);
  if (parameter->extent >= 0 && parameter->extent != extent)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "%s: extent %" PRId64 ", wanted %" PRId64,
                              parameter->name, extent, parameter->extent);
  return NULL;
}

burst_error *burst_holding_create(const burst_program *program,
                                  int64_t parameter, int64_t rank,
                                  int64_t extent, burst_holding *holding) {
  burst_error *error = burst_program_check(program, parameter, rank);
  if (error)
    return error;
  const burst_parameter *described = &program->image->parameters[parameter];
  error = check_extent(described, extent);
  if (error)
    return error;
  size_t bytes = (size_t)described->num_segments * sizeof(burst_segment);
  holding->num_segments = described->num_segments;
  holding->segments = calloc(1, bytes + 1);
  holding->size = 0;
  if (!holding->segments)
    return burst_error_no_memory(bytes);
  program->image->segments((int32_t)parameter, rank, extent, holding->segments);
  error = check(described, rank, extent, holding);
  if (error)
    free(holding->segments);
  return error;
}

burst_error *burst_program_local_size(const burst_program *program,
                                      int64_t parameter, int64_t rank,
                                      int64_t extent, int64_t *size) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  BURST_REQUIRE(size);
  burst_holding holding;
  burst_error *error =
      burst_holding_create(program, parameter, rank, extent, &holding);
  if (error)
    return error;
  *size = holding.size;
  free(holding.segments);
  return NULL;
}

static burst_error *wrong_count(const char *what, int64_t count,
                                int64_t wanted) {
  return burst_error_create(BURST_INVALID_ARGUMENT, "",
                            "room for %" PRId64 " %s, wanted %" PRId64, count,
                            what, wanted);
}

burst_error *burst_program_segments(const burst_program *program,
                                    int64_t parameter, int64_t rank,
                                    int64_t extent, int64_t count,
                                    burst_segment *segments) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  if (count > 0)
    BURST_REQUIRE(segments);
  burst_holding holding;
  burst_error *error =
      burst_holding_create(program, parameter, rank, extent, &holding);
  if (error)
    return error;
  if (count != holding.num_segments)
    error = wrong_count("segments", count, holding.num_segments);
  else if (count > 0)
    memcpy(segments, holding.segments, (size_t)count * sizeof(*segments));
  free(holding.segments);
  return error;
}

static void write_positions(const burst_holding *holding, int64_t *positions) {
  for (int32_t i = 0; i < holding->num_segments; ++i)
    for (int64_t x = 0; x < holding->segments[i].count; ++x)
      *positions++ = position(&holding->segments[i], x);
}

burst_error *burst_program_positions(const burst_program *program,
                                     int64_t parameter, int64_t rank,
                                     int64_t extent, int64_t count,
                                     int64_t *positions) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  if (count > 0)
    BURST_REQUIRE(positions);
  burst_holding holding;
  burst_error *error =
      burst_holding_create(program, parameter, rank, extent, &holding);
  if (error)
    return error;
  if (count != holding.size)
    error = wrong_count("positions", count, holding.size);
  else
    write_positions(&holding, positions);
  free(holding.segments);
  return error;
}
