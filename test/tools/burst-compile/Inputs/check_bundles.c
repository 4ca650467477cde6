/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Runs a forward and a backward bundle of causal attention, f32 and static, and
   compares them with naive loops in fp64: on processors that have no burst-run.

     check_bundles FORWARD.so BACKWARD.so */
#include <burst/burst.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(burst_error *error) {
  if (!error)
    return;
  fprintf(stderr, "%s\n", burst_error_message(error));
  exit(1);
}

/* batch 1 x sequence x heads x dim */
typedef struct {
  int64_t sequence, heads, dim;
  float *data;
} tensor;

static double at(tensor t, int64_t i, int64_t h, int64_t d) {
  return t.data[(i * t.heads + h) * t.dim + d];
}

static double dot(tensor a, int64_t i, int64_t h, tensor b, int64_t j,
                  int64_t g) {
  double sum = 0;
  for (int64_t d = 0; d < a.dim; ++d)
    sum += at(a, i, h, d) * at(b, j, g, d);
  return sum;
}

/* Runs the program on `count` tensors; makes those that have no data, filled
   with numbers between -1 and 1 where they are arguments. */
static void run(const char *path, burst_device *device, tensor *tensors,
                int64_t count) {
  burst_program *program;
  check(burst_program_load(path, &program));
  if (burst_program_num_parameters(program) != count)
    exit(fprintf(stderr, "%s: wanted %d parameters\n", path, (int)count));
  burst_tensor views[9] = {0};
  for (int64_t p = 0; p < count; ++p) {
    const burst_parameter *parameter = burst_program_parameter(program, p);
    int64_t elements = 1;
    views[p].type = parameter->type;
    views[p].rank = parameter->rank;
    for (int d = parameter->rank; d-- > 0; elements *= views[p].sizes[d]) {
      views[p].sizes[d] = burst_parameter_global_size(parameter, d);
      views[p].strides[d] = elements;
    }
    if (!tensors[p].data) {
      uint32_t state = 12345 + (uint32_t)p;
      float *data = malloc((size_t)elements * sizeof(float));
      for (int64_t e = 0; e < elements; ++e) {
        state = state * 1664525 + 1013904223;
        data[e] = parameter->is_result ? NAN : (int32_t)state / 2147483648.0f;
      }
      tensors[p] = (tensor){views[p].sizes[1], views[p].sizes[2],
                            views[p].sizes[3], data};
    }
    views[p].data = tensors[p].data;
  }
  burst_run_all_config config = {
      .size = sizeof(config), .device = device, .deadline_seconds = 60};
  check(burst_run_all(program, &config, views, count, NULL));
  burst_program_release(program);
}

static void compare(const char *name, const double *wanted, const float *found,
                    int64_t count) {
  double worst = 0, most = 0;
  for (int64_t e = 0; e < count; ++e) {
    double error = fabs(wanted[e] - found[e]);
    worst = error <= worst ? worst : error; /* NaN stays */
    most = fmax(most, fabs(wanted[e]));
  }
  int ok = worst <= 1e-5 * most;
  printf("%s: largest number %.3f, largest error %.1e: %s\n", name, most, worst,
         ok ? "ok" : "WRONG");
  if (!ok)
    exit(1);
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  burst_device *device;
  check(burst_device_create_cpu(NULL, &device));
  enum { Q, K, V, O, LSE, DO, DQ, DK, DV };
  tensor t[9] = {0};
  run(argv[1], device, t, 5);
  run(argv[2], device, t, 9);

  int64_t rows = t[Q].sequence, heads = t[Q].heads, keys = t[K].sequence,
          dim = t[Q].dim, group = heads / t[K].heads;
  int64_t of_queries = rows * heads * dim, of_keys = keys * t[K].heads * dim;
  double *o = calloc((size_t)of_queries, sizeof(double)),
         *lse = calloc((size_t)(rows * heads), sizeof(double)),
         *dq = calloc((size_t)of_queries, sizeof(double)),
         *dk = calloc((size_t)of_keys, sizeof(double)),
         *dv = calloc((size_t)of_keys, sizeof(double)),
         *p = calloc((size_t)keys, sizeof(double));
  double scale = 1 / sqrt((double)dim);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < rows; ++i) {
      int64_t g = h / group;
      double sum = 0, delta = 0;
      for (int64_t j = 0; j <= i; ++j)
        sum += p[j] = exp(scale * dot(t[Q], i, h, t[K], j, g));
      lse[h * rows + i] = log(sum);
      for (int64_t j = 0; j <= i; ++j) {
        p[j] /= sum;
        delta += p[j] * dot(t[DO], i, h, t[V], j, g);
      }
      for (int64_t j = 0; j <= i; ++j) {
        double ds = p[j] * (dot(t[DO], i, h, t[V], j, g) - delta) * scale;
        for (int64_t d = 0; d < dim; ++d) {
          int64_t row = (i * heads + h) * dim + d,
                  column = (j * t[K].heads + g) * dim + d;
          o[row] += p[j] * at(t[V], j, g, d);
          dq[row] += ds * at(t[K], j, g, d);
          dk[column] += ds * at(t[Q], i, h, d);
          dv[column] += p[j] * at(t[DO], i, h, d);
        }
      }
    }
  compare("o", o, t[O].data, of_queries);
  compare("lse", lse, t[LSE].data, rows * heads);
  compare("dq", dq, t[DQ].data, of_queries);
  compare("dk", dk, t[DK].data, of_keys);
  compare("dv", dv, t[DV].data, of_keys);
  return 0;
}
