/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Compiles causal attention from a description and runs it as 4 ranks, each a
   thread with its own shards, as a framework does whose ranks hold theirs.

     cc attention.c $(pkg-config --cflags --libs burst) -pthread -lm */
#include <burst/burst.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 4, LENGTH = 256, HEADS = 2, DIM = 32 };

static void check(burst_error *error) {
  if (!error)
    return;
  fprintf(stderr, "%s\n", burst_error_message(error));
  exit(1);
}

static burst_tensor dense(float *data, int rank, const int64_t *sizes) {
  burst_tensor tensor = {.data = data, .type = BURST_F32, .rank = rank};
  int64_t stride = 1;
  for (int d = rank; d-- > 0; stride *= sizes[d]) {
    tensor.sizes[d] = sizes[d];
    tensor.strides[d] = stride;
  }
  return tensor;
}

static burst_program *program;
static burst_device *device;
static burst_tensor globals[5]; /* q, k, v, o, lse */

struct rank {
  int64_t number;
  burst_transport *transport;
};

/* One rank: takes its shards, runs, and gives its part of the results. */
static void *run(void *argument) {
  struct rank *rank = argument;
  burst_tensor values[5];
  float *data[5];
  for (int i = 0; i < 5; ++i) {
    int dim = burst_program_parameter(program, i)->shard_dim;
    int64_t sizes[4];
    for (int d = 0; d < globals[i].rank; ++d)
      sizes[d] = globals[i].sizes[d];
    check(burst_program_local_size(program, i, rank->number, sizes[dim],
                                   &sizes[dim]));
    int64_t count = 1;
    for (int d = 0; d < globals[i].rank; ++d)
      count *= sizes[d];
    data[i] = malloc((size_t)count * sizeof(float));
    values[i] = dense(data[i], globals[i].rank, sizes);
    if (i < 3)
      check(burst_shard(program, i, rank->number, &globals[i], &values[i]));
  }
  burst_run_config config = {.size = sizeof(config),
                             .rank = rank->number,
                             .device = device,
                             .transport = rank->transport,
                             .deadline_seconds = 30};
  burst_counters counters = {.size = sizeof(counters)};
  check(burst_run(program, &config, values, 5, &counters));
  printf("rank %d sent %d bytes\n", (int)rank->number,
         (int)counters.bytes_sent);
  for (int i = 3; i < 5; ++i)
    check(burst_gather(program, i, rank->number, &values[i], &globals[i]));
  for (int i = 0; i < 5; ++i)
    free(data[i]);
  return NULL;
}

/* Row `i` of head 0, first element, by the definition. */
static double expected(const float *q, const float *k, const float *v, int i) {
  double sum = 0, out = 0;
  for (int j = 0; j <= i; ++j) {
    double s = 0;
    for (int d = 0; d < DIM; ++d)
      s += (double)q[i * HEADS * DIM + d] * k[j * HEADS * DIM + d];
    double p = exp(s / sqrt(DIM));
    sum += p;
    out += p * v[j * HEADS * DIM];
  }
  return out / sum;
}

int main(void) {
  const burst_axis axis = {.num_ranks = RANKS, .order = "zigzag"};
  burst_attention attention = {.size = sizeof(attention),
                               .axes = &axis,
                               .num_axes = 1,
                               .type = BURST_F32,
                               .batch = 1,
                               .query_length = LENGTH,
                               .key_length = LENGTH,
                               .query_heads = HEADS,
                               .key_heads = HEADS,
                               .head_dim = DIM,
                               .mask = "causal"};
  check(burst_compile_attention(&attention, NULL, &program));
  check(burst_device_create_cpu(NULL, &device));

  static float q[LENGTH * HEADS * DIM], k[LENGTH * HEADS * DIM],
      v[LENGTH * HEADS * DIM], o[LENGTH * HEADS * DIM], lse[HEADS * LENGTH];
  for (int i = 0; i < LENGTH * HEADS * DIM; ++i) {
    q[i] = (float)((i * 37) % 101) / 50 - 1;
    k[i] = (float)((i * 53) % 97) / 48 - 1;
    v[i] = (float)((i * 29) % 89) / 44 - 1;
  }
  float *data[5] = {q, k, v, o, lse};
  for (int i = 0; i < 4; ++i)
    globals[i] = dense(data[i], 4, (int64_t[]){1, LENGTH, HEADS, DIM});
  globals[4] = dense(lse, 3, (int64_t[]){1, HEADS, LENGTH});

  burst_local_config local = {.size = sizeof(local), .num_ranks = RANKS};
  burst_transport *transports[RANKS];
  check(burst_transport_create_local(&local, transports));
  pthread_t threads[RANKS];
  struct rank ranks[RANKS];
  for (int r = 0; r < RANKS; ++r) {
    ranks[r] = (struct rank){r, transports[r]};
    pthread_create(&threads[r], NULL, run, &ranks[r]);
  }
  for (int r = 0; r < RANKS; ++r) {
    pthread_join(threads[r], NULL);
    burst_transport_destroy(transports[r]);
  }

  int row = 200;
  double found = o[row * HEADS * DIM], wanted = expected(q, k, v, row);
  printf("o[%d] is %.6f, by the definition %.6f\n", row, found, wanted);
  burst_program_release(program);
  burst_device_destroy(device);
  return fabs(found - wanted) < 1e-5 ? 0 : 1;
}
