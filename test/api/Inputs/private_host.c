/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A host that loads libburst for itself and shares no symbol with it, as an
   interpreter does with its modules; it does not link libm. */
#include "burst/burst.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (argc != 2 || !library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  burst_error *(*compile)(const burst_attention *, const burst_compile_config *,
                          burst_program **) =
      (__typeof__(compile))dlsym(library, "burst_compile_attention");
  const char *(*message)(const burst_error *) =
      (__typeof__(message))dlsym(library, "burst_error_message");
  /* tanh is libm's. */
  burst_axis axis = {.num_ranks = 2};
  burst_attention attention = {.size = sizeof(attention),
                               .axes = &axis,
                               .num_axes = 1,
                               .type = BURST_F64,
                               .batch = 1,
                               .query_length = 8,
                               .key_length = 8,
                               .query_heads = 1,
                               .key_heads = 1,
                               .head_dim = 4,
                               .score = "softcap<2.0>"};
  burst_program *program;
  burst_error *error = compile(&attention, NULL, &program);
  if (error) {
    fprintf(stderr, "%s\n", message(error));
    return 1;
  }
  printf("compiled\n");
  return 0;
}
