/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* In front of burst_run of a host: rank 1 computes no numbers. */
#define _GNU_SOURCE
#include <burst/burst.h>

#include <dlfcn.h>
#include <math.h>

burst_error *burst_run(burst_program *program, const burst_run_config *config,
                       const burst_tensor *tensors, int64_t count,
                       burst_counters *counters) {
  enum { O = 3 };
  __typeof__(&burst_run) real =
      (__typeof__(&burst_run))dlsym(RTLD_NEXT, "burst_run");
  burst_error *error = real(program, config, tensors, count, counters);
  const burst_tensor *o = &tensors[O];
  if (config->rank == 1)
    for (int64_t i = 0; i < o->sizes[1] * o->strides[1]; ++i)
      ((float *)o->data)[i] = NAN;
  return error;
}
