//===- Program.c - What a compiler made -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/program/Program.h"
#include "burst/internal/error.h"

#include <inttypes.h>
#include <stdlib.h>

burst_error *burst_program_from_image(const burst_image *image,
                                      void (*release)(void *context),
                                      void *context, burst_program **program) {
  BURST_REQUIRE(program);
  *program = NULL;
  burst_error *error = burst_image_check(image);
  if (error)
    return error;
  burst_program *made = calloc(1, sizeof(*made));
  if (!made)
    return burst_error_no_memory(sizeof(*made));
  made->handle.magic = BURST_MAGIC(BURST_KIND_PROGRAM);
  made->image = image;
  made->release = release;
  made->context = context;
  atomic_init(&made->references, 1);
  *program = made;
  return NULL;
}

void burst_program_retain(burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  if (program)
    atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
}

void burst_program_release(burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  if (!program || atomic_fetch_sub(&program->references, 1) > 1)
    return;
  burst_handle_end(&program->handle);
  if (program->release)
    program->release(program->context);
  burst_handle_free(program);
}

const char *burst_program_name(const burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  return program ? program->image->name : "";
}

const char *burst_program_target(const burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  return program ? program->image->target : "";
}

int64_t burst_program_is_gpu(const burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  return program && program->image->minimum_driver != 0;
}

int64_t burst_program_num_ranks(const burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  return program ? program->image->num_ranks : 0;
}

int64_t burst_program_num_parameters(const burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  return program ? program->image->num_parameters : 0;
}

int64_t burst_program_num_arguments(const burst_program *program) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  return program ? program->image->num_arguments : 0;
}

const burst_parameter *burst_program_parameter(const burst_program *program,
                                               int64_t index) {
  BURST_CHECK(program, BURST_KIND_PROGRAM);
  if (!program || index < 0 || index >= program->image->num_parameters)
    return NULL;
  return &program->image->parameters[index];
}

burst_error *burst_program_check(const burst_program *program,
                                 int64_t parameter, int64_t rank) {
  const burst_image *image = program->image;
  if (parameter < 0 || parameter >= image->num_parameters)
    return burst_error_create(
        BURST_INVALID_ARGUMENT, "", "%s: parameter %" PRId64 ", wanted 0 to %d",
        image->name, parameter, image->num_parameters - 1);
  if (rank < 0 || rank >= image->num_ranks)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "%s: rank %" PRId64 ", wanted 0 to %" PRId64,
                              image->name, rank, image->num_ranks - 1);
  return NULL;
}
