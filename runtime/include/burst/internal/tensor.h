//===- tensor.h - The caller's tensors --------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_INTERNAL_TENSOR_H
#define BURST_INTERNAL_TENSOR_H

#include "burst/burst.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// An error unless the tensor is one of the parameter's type and rank whose
// elements can be addressed; if `written`, no two of them at the same place.
// `whose` says in errors which one it is, as in "rank 1".
burst_error *burst_tensor_check(const char *whose, const burst_tensor *tensor,
                                const burst_parameter *parameter, bool written);

// An error unless the tensor's size in dimension `d` is `wanted`.
burst_error *burst_tensor_check_size(const char *whose,
                                     const burst_tensor *tensor,
                                     const burst_parameter *parameter,
                                     int32_t d, int64_t wanted);

// Of the elements of a tensor that was checked.
int64_t burst_tensor_bytes(const burst_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif // BURST_INTERNAL_TENSOR_H
