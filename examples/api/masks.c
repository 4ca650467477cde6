/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Masks and scores through the C API: by name in a description, with tables,
   and as regions in MLIR's text, which capture tables of their own.

     cc masks.c $(pkg-config --cflags --libs burst) -lm */
#include <burst/burst.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, LENGTH = 128, HEADS = 2, DIM = 16, DISTANCES = 8 };

static float q[LENGTH][HEADS][DIM], k[LENGTH][HEADS][DIM],
    v[LENGTH][HEADS][DIM], o[LENGTH][HEADS][DIM], lse[HEADS][LENGTH];
/* The tables: what document a position belongs to, and whether it is padding;
   the slope of a head, and what a head adds to scores by distance. */
static int32_t ids[LENGTH], padding[LENGTH];
static float slopes[HEADS], bias[HEADS][DISTANCES];

static void check(burst_error *error) {
  if (!error)
    return;
  fprintf(stderr, "%s\n", burst_error_message(error));
  exit(1);
}

static void fill(void) {
  for (int i = 0; i < LENGTH * HEADS * DIM; ++i) {
    q[0][0][i] = (float)((i * 37) % 101) / 50 - 1;
    k[0][0][i] = (float)((i * 53) % 97) / 48 - 1;
    v[0][0][i] = (float)((i * 29) % 89) / 44 - 1;
  }
  for (int i = 0; i < LENGTH; ++i) {
    ids[i] = i / 50;
    padding[i] = i % 10 == 9;
  }
  for (int h = 0; h < HEADS; ++h) {
    slopes[h] = 0.25f / (float)(1 + h);
    for (int d = 0; d < DISTANCES; ++d)
      bias[h][d] = (float)(h + d) / 8;
  }
}

/*----------------------------------------------------------------------------*/
/* By name                                                                    */
/*----------------------------------------------------------------------------*/

static burst_program *compile_names(void) {
  const burst_axis axis = {.num_ranks = RANKS};
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
                               .mask =
                                   "[window<left = 20, right = 0>, documents]",
                               .score = "[softcap<2.0>, alibi]"};
  burst_program *program;
  check(burst_compile_attention(&attention, NULL, &program));
  return program;
}

static int keeps_named(int i, int j) {
  return j <= i && j >= i - 20 && ids[i] == ids[j];
}

static double score_named(double s, int h, int i, int j) {
  return 2 * tanh(s / 2) - slopes[h] * abs(i - j);
}

/*----------------------------------------------------------------------------*/
/* As regions                                                                 */
/*----------------------------------------------------------------------------*/

/* Arguments have the names that `burst.name` gives them. A score has a value
   for every pair, kept or not, so its table has an entry for each: bias is
   indexed by |i - j|. */
static const char text[] =
    "shard.grid @ranks(shape = 4)\n"
    "!qkv = tensor<1x128x2x16xf32>\n"
    "!lse = tensor<1x2x128xf32>\n"
    "func.func @attention(%q: !qkv {burst.name = \"q\"},\n"
    "                     %k: !qkv {burst.name = \"k\"},\n"
    "                     %v: !qkv {burst.name = \"v\"},\n"
    "                     %padding: tensor<128xi32> {burst.name = "
    "\"padding\"},\n"
    "                     %bias: tensor<2x8xf32> {burst.name = \"bias\"})\n"
    "    -> (!qkv {burst.name = \"o\"}, !lse {burst.name = \"lse\"}) {\n"
    "  %o, %lse = burst.attention %q, %k, %v\n"
    "      mask(%b, %h, %i, %j, %sq, %sk, %t = %padding : tensor<128xi32>) {\n"
    "        %zero = arith.constant 0 : i32\n"
    "        %id = tensor.extract %t[%j] : tensor<128xi32>\n"
    "        %real = arith.cmpi eq, %id, %zero : i32\n"
    "        %past = arith.cmpi sle, %j, %i : index\n"
    "        %keep = arith.andi %real, %past : i1\n"
    "        burst.yield %keep : i1\n"
    "      }\n"
    "      score(%s : f32, %b, %h, %i, %j, %sq, %sk,\n"
    "            %t = %bias : tensor<2x8xf32>) {\n"
    "        %c16 = arith.constant 16 : index\n"
    "        %distance = arith.subi %i, %j : index\n"
    "        %apart = math.absi %distance : index\n"
    "        %bucket = arith.floordivsi %apart, %c16 : index\n"
    "        %add = tensor.extract %t[%h, %bucket] : tensor<2x8xf32>\n"
    "        %new = arith.addf %s, %add : f32\n"
    "        burst.yield %new : f32\n"
    "      }\n"
    "      sequence <@ranks, zigzag>\n"
    "      : (!qkv, !qkv, !qkv) -> (!qkv, !lse)\n"
    "  return %o, %lse : !qkv, !lse\n"
    "}\n";

static burst_program *compile_regions(void) {
  burst_program *program;
  check(burst_compile_text(text, sizeof(text) - 1, NULL, &program));
  return program;
}

static int keeps_region(int i, int j) { return j <= i && !padding[j]; }

static double score_region(double s, int h, int i, int j) {
  return s + bias[h][(i - j) / 16];
}

/*----------------------------------------------------------------------------*/
/* Running                                                                    */
/*----------------------------------------------------------------------------*/

static burst_tensor dense(void *data, int type, int rank,
                          const int64_t *sizes) {
  burst_tensor tensor = {.data = data, .type = type, .rank = rank};
  int64_t stride = 1;
  for (int d = rank; d-- > 0; stride *= sizes[d]) {
    tensor.sizes[d] = sizes[d];
    tensor.strides[d] = stride;
  }
  return tensor;
}

/* The tensor of a parameter. Tables are whole on every rank. */
static burst_tensor named(const char *name) {
  const int64_t qkv[] = {1, LENGTH, HEADS, DIM}, rows[] = {1, HEADS, LENGTH},
                positions[] = {LENGTH}, heads[] = {HEADS},
                distances[] = {HEADS, DISTANCES};
  const struct {
    const char *name;
    burst_tensor tensor;
  } all[] = {{"q", dense(q, BURST_F32, 4, qkv)},
             {"k", dense(k, BURST_F32, 4, qkv)},
             {"v", dense(v, BURST_F32, 4, qkv)},
             {"query_ids", dense(ids, BURST_I32, 1, positions)},
             {"key_ids", dense(ids, BURST_I32, 1, positions)},
             {"slopes", dense(slopes, BURST_F32, 1, heads)},
             {"padding", dense(padding, BURST_I32, 1, positions)},
             {"bias", dense(bias, BURST_F32, 2, distances)},
             {"o", dense(o, BURST_F32, 4, qkv)},
             {"lse", dense(lse, BURST_F32, 3, rows)}};
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); ++i)
    if (strcmp(all[i].name, name) == 0)
      return all[i].tensor;
  fprintf(stderr, "no tensor for the parameter '%s'\n", name);
  exit(1);
}

static void run(burst_program *program, burst_device *device) {
  burst_tensor globals[10];
  int64_t count = burst_program_num_parameters(program);
  for (int64_t i = 0; i < count; ++i)
    globals[i] = named(burst_program_parameter(program, i)->name);
  /* What a table keeps is known now only: the proof looks at it. */
  check(burst_program_prove(program, globals,
                            burst_program_num_arguments(program)));
  burst_run_all_config config = {
      .size = sizeof(config), .device = device, .deadline_seconds = 30};
  check(burst_run_all(program, &config, globals, count, NULL));
}

/* The largest error of the first element of a row, by the definition. */
static double largest_error(int (*keeps)(int i, int j),
                            double (*score)(double s, int h, int i, int j)) {
  double largest = 0;
  for (int h = 0; h < HEADS; ++h)
    for (int i = 0; i < LENGTH; ++i) {
      double sum = 0, out = 0;
      for (int j = 0; j < LENGTH; ++j) {
        if (!keeps(i, j))
          continue;
        double s = 0;
        for (int d = 0; d < DIM; ++d)
          s += (double)q[i][h][d] * k[j][h][d];
        double p = exp(score(s / sqrt(DIM), h, i, j));
        sum += p;
        out += p * v[j][h][0];
      }
      double error = fabs(o[i][h][0] - out / sum);
      largest = error <= largest ? largest : error; /* NaN stays */
    }
  return largest;
}

int main(void) {
  fill();
  burst_device *device;
  check(burst_device_create_cpu(NULL, &device));

  burst_program *names = compile_names();
  run(names, device);
  double by_name = largest_error(keeps_named, score_named);
  printf("names: largest error %.1e\n", by_name);

  burst_program *regions = compile_regions();
  run(regions, device);
  double by_region = largest_error(keeps_region, score_region);
  printf("regions: largest error %.1e\n", by_region);

  burst_program_release(names);
  burst_program_release(regions);
  burst_device_destroy(device);
  return by_name < 1e-5 && by_region < 1e-5 ? 0 : 1;
}
