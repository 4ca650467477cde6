/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Runs a shared object that burst-compile made, where no compiler is installed:
   all arguments are filled with small numbers, and the sum of each result is
   printed.

     cc run_bundle.c $(pkg-config --cflags --libs burst-runtime)
     ./a.out attention.so */
#include <burst/burst.h>

#include <stdio.h>
#include <stdlib.h>

static int fail(burst_error *error) {
  fprintf(stderr, "%s\n", burst_error_message(error));
  burst_error_destroy(error);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: run_bundle FILE.so\n");
    return 2;
  }
  burst_program *program;
  burst_device *device;
  burst_error *error = burst_program_load(argv[1], &program);
  if (!error)
    error = burst_device_create_cpu(NULL, &device);
  if (error)
    return fail(error);

  int64_t count = burst_program_num_parameters(program);
  burst_tensor *globals = calloc((size_t)count, sizeof(*globals));
  for (int64_t i = 0; i < count; ++i) {
    const burst_parameter *p = burst_program_parameter(program, i);
    burst_tensor *tensor = &globals[i];
    int64_t elements = 1;
    tensor->type = p->type;
    tensor->rank = p->rank;
    for (int d = p->rank; d-- > 0; elements *= tensor->sizes[d]) {
      tensor->sizes[d] = burst_parameter_global_size(p, d);
      tensor->strides[d] = elements;
    }
    if (p->type != BURST_F32 || elements < 0) {
      fprintf(stderr, "'%s': type %d, wanted static tensors of f32\n", p->name,
              p->type);
      return 1;
    }
    float *data = calloc((size_t)elements, sizeof(float));
    for (int64_t e = 0; e < elements && !p->is_result; ++e)
      data[e] = (float)((e * 7 + i) % 13) / 13;
    tensor->data = data;
  }

  burst_run_all_config config = {
      .size = sizeof(config), .device = device, .deadline_seconds = 30};
  error = burst_run_all(program, &config, globals, count, NULL);
  if (error)
    return fail(error);
  printf("%s on %d ranks, for %s\n", burst_program_name(program),
         (int)burst_program_num_ranks(program), burst_program_target(program));
  for (int64_t i = burst_program_num_arguments(program); i < count; ++i) {
    int64_t elements = globals[i].sizes[0] * globals[i].strides[0];
    double sum = 0;
    for (int64_t e = 0; e < elements; ++e)
      sum += ((const float *)globals[i].data)[e];
    printf("%s: sum %.4f\n", burst_program_parameter(program, i)->name, sum);
  }
  for (int64_t i = 0; i < count; ++i)
    free(globals[i].data);
  free(globals);
  burst_program_release(program);
  burst_device_destroy(device);
  return 0;
}
