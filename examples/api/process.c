/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* One rank of causal attention: each rank is a process, on this machine or
   another, and holds its own shards only, as in training. A launcher starts all
   of them with the same arguments:

     cc process.c $(pkg-config --cflags --libs burst) -lm -o process
     mpirun -n 4 ./process [LENGTH [RUNS]]

   Or without one, each with BURST_RANK, BURST_NUM_RANKS and BURST_ADDRESS. */
#include <burst/burst.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 2, DIM = 32, Q = 0, K = 1, V = 2, O = 3, LSE = 4, COUNT = 5 };

static void check(burst_error *error) {
  if (!error)
    return;
  fprintf(stderr, "%s\n", burst_error_message(error));
  exit(1);
}

/* What a model would compute: an element of q, k or v at a position. */
static float value(int of, int64_t position, int head, int d) {
  int64_t i = (position * HEADS + head) * DIM + d;
  return (float)((i * 37 + of * 29) % 101) / 50 - 1;
}

/* This rank's shard of a parameter, of which position x is at positions[x]. */
static burst_tensor make_shard(int of, const int64_t *positions,
                               int64_t count) {
  int64_t elements = count * HEADS * (of == LSE ? 1 : DIM);
  float *data = calloc((size_t)elements + 1, sizeof(float));
  burst_tensor shard = {.data = data, .type = BURST_F32};
  if (!data)
    exit(1);
  if (of == LSE) {
    shard.rank = 3; /* batch, heads, positions */
    const int64_t sizes[] = {1, HEADS, count}, strides[] = {elements, count, 1};
    for (int d = 0; d < 3; ++d) {
      shard.sizes[d] = sizes[d];
      shard.strides[d] = strides[d];
    }
    return shard;
  }
  shard.rank = 4; /* batch, positions, heads, elements */
  const int64_t sizes[] = {1, count, HEADS, DIM};
  const int64_t strides[] = {elements, HEADS * DIM, DIM, 1};
  for (int d = 0; d < 4; ++d) {
    shard.sizes[d] = sizes[d];
    shard.strides[d] = strides[d];
  }
  for (int64_t x = 0; x < count && of <= V; ++x)
    for (int h = 0; h < HEADS; ++h)
      for (int d = 0; d < DIM; ++d)
        data[(x * HEADS + h) * DIM + d] = value(of, positions[x], h, d);
  return shard;
}

/* The first element of a row of o, by the definition. */
static double expected(int64_t position, int head) {
  double sum = 0, out = 0;
  for (int64_t j = 0; j <= position; ++j) {
    double s = 0;
    for (int d = 0; d < DIM; ++d)
      s += (double)value(Q, position, head, d) * value(K, j, head, d);
    double p = exp(s / sqrt(DIM));
    sum += p;
    out += p * value(V, j, head, 0);
  }
  return out / sum;
}

static burst_program *compile(int64_t length, int64_t ranks) {
  const burst_axis axis = {.num_ranks = ranks, .order = "zigzag"};
  burst_attention attention = {.size = sizeof(attention),
                               .axes = &axis,
                               .num_axes = 1,
                               .type = BURST_F32,
                               .batch = 1,
                               .query_length = length,
                               .key_length = length,
                               .query_heads = HEADS,
                               .key_heads = HEADS,
                               .head_dim = DIM,
                               .mask = "causal"};
  burst_program *program;
  check(burst_compile_attention(&attention, NULL, &program));
  return program;
}

int main(int argc, char **argv) {
  int64_t length = argc > 1 ? atoll(argv[1]) : 1000;
  int runs = argc > 2 ? atoi(argv[2]) : 1;
  if (length < 0 || runs < 1) {
    fprintf(stderr, "usage: process [LENGTH from 0 [RUNS from 1]]\n");
    return 2;
  }

  burst_world *world;
  check(burst_world_create(NULL, &world));
  int64_t rank = burst_world_rank(world), ranks = burst_world_num_ranks(world);

  burst_program *program = compile(length, ranks);
  /* Ranks of one machine share its processors. */
  burst_device_config threads = {.size = sizeof(threads), .threads = 1};
  burst_device *device;
  check(burst_device_create_cpu(&threads, &device));
  burst_tcp_config how = {.size = sizeof(how), .world = world};
  burst_transport *transport;
  check(burst_transport_create_tcp(&how, &transport));

  int64_t count;
  check(burst_program_local_size(program, Q, rank, length, &count));
  int64_t *positions = malloc(sizeof(int64_t) * (size_t)(count + 1));
  if (!positions)
    return 1;
  check(burst_program_positions(program, Q, rank, length, count, positions));
  burst_tensor shards[COUNT];
  for (int i = 0; i < COUNT; ++i)
    shards[i] = make_shard(i, positions, count);

  burst_run_config config = {.size = sizeof(config),
                             .rank = rank,
                             .device = device,
                             .transport = transport,
                             .deadline_seconds = 60};
  burst_counters counters = {.size = sizeof(counters)};
  for (int i = 0; i < runs; ++i)
    check(burst_run(program, &config, shards, COUNT, &counters));

  /* Some rows of each rank. What is no number is wrong as well. */
  double worst = 0;
  for (int64_t x = 0; x < count; x += 1 + count / 8) {
    const float *row = (const float *)shards[O].data + x * HEADS * DIM;
    for (int h = 0; h < HEADS; ++h) {
      double error = fabs(row[h * DIM] - expected(positions[x], h));
      worst = isnan(error) ? INFINITY : fmax(worst, error);
    }
  }
  double *all = malloc(sizeof(double) * (size_t)ranks);
  if (!all)
    return 1;
  check(burst_world_gather(world, &worst, sizeof(worst), all, 0));
  for (int64_t r = 0; r < ranks; ++r)
    worst = fmax(worst, all[r]);
  if (rank == 0)
    printf("%" PRId64 " ranks, %" PRId64 " positions: rank 0 has %" PRId64
           " and sent %" PRId64 " bytes; %s\n",
           ranks, length, count, counters.bytes_sent,
           worst < 1e-5 ? "o is as by the definition" : "o is WRONG");

  for (int i = 0; i < COUNT; ++i)
    free(shards[i].data);
  free(positions);
  free(all);
  burst_transport_destroy(transport);
  burst_world_destroy(world);
  burst_program_release(program);
  burst_device_destroy(device);
  return worst < 1e-5 ? 0 : 1;
}
