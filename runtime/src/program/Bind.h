//===- Bind.h - The caller's tensors as a program wants them ----*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_PROGRAM_BIND_H
#define BURST_RUNTIME_PROGRAM_BIND_H

#include "burst/burst.h"

// A pointer per parameter, and what it points to.
typedef struct burst_binding burst_binding;

// An error unless the tensors, one per parameter, are of its type and rank, and
// no result overlaps another one.
burst_error *burst_values_check(const burst_program *program, const char *whose,
                                const burst_tensor *values);

// Checks the tensors of a rank. `nothing` is memory of the GPU for tensors
// there that have no elements; null: it is a CPU.
burst_error *burst_binding_create(const burst_program *program, int64_t rank,
                                  const burst_tensor *values, void *nothing,
                                  burst_binding **binding);
void burst_binding_destroy(burst_binding *binding);

// As burst_image::run wants them.
void *const *burst_binding_values(const burst_binding *binding);

// Of all parameters that are tensors.
int64_t burst_binding_bytes(const burst_program *program,
                            const burst_tensor *values);

// The global size of the sharded dimension of a parameter.
int64_t burst_extent_of(const burst_program *program, int64_t parameter,
                        const burst_tensor *values);

#endif // BURST_RUNTIME_PROGRAM_BIND_H
