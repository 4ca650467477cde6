//===- Tensor.c - The caller's tensors ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/tensor.h"
#include "burst/internal/error.h"

#include <inttypes.h>

static const char *type_name(int32_t type) {
  static const char *const names[] = {
      [BURST_F64] = "f64", [BURST_F32] = "f32", [BURST_BF16] = "bf16",
      [BURST_F16] = "f16", [BURST_I64] = "i64", [BURST_I32] = "i32",
      [BURST_I16] = "i16", [BURST_I8] = "i8",   [BURST_I1] = "i1"};
  return burst_type_bytes(type) ? names[type] : "unknown";
}

#define INVALID(format, ...)                                                   \
  burst_error_create(BURST_INVALID_ARGUMENT, whose, "%s %s: " format,          \
                     parameter->is_result ? "result" : "argument",             \
                     parameter->name, __VA_ARGS__)

static bool has_elements(const burst_tensor *tensor) {
  for (int32_t d = 0; d < tensor->rank; ++d)
    if (tensor->sizes[d] == 0)
      return false;
  return true;
}

// Bytes from the first to behind the last element; counts elements too, which
// may be more than that where strides are 0. -1 if that overflows.
static int64_t span(const burst_tensor *tensor) {
  int64_t size = burst_type_bytes(tensor->type);
  int64_t elements = size, bytes = size, step;
  for (int32_t d = 0; d < tensor->rank; ++d)
    if (__builtin_mul_overflow(elements, tensor->sizes[d], &elements) ||
        __builtin_mul_overflow(tensor->sizes[d] - 1, tensor->strides[d],
                               &step) ||
        __builtin_mul_overflow(step, size, &step) ||
        __builtin_add_overflow(bytes, step, &bytes))
      return -1;
  return bytes;
}

// Each dimension must step over all elements of those with smaller strides.
static burst_error *check_places(const char *whose, const burst_tensor *tensor,
                                 const burst_parameter *parameter) {
  for (int32_t d = 0; d < tensor->rank; ++d) {
    int64_t inner = 1; // elements from the first to behind the last
    for (int32_t e = 0; e < tensor->rank; ++e)
      if (e != d && tensor->sizes[e] > 1 &&
          (tensor->strides[e] < tensor->strides[d] ||
           (tensor->strides[e] == tensor->strides[d] && e > d)))
        inner += (tensor->sizes[e] - 1) * tensor->strides[e];
    if (tensor->sizes[d] > 1 && tensor->strides[d] < inner)
      return INVALID("stride %" PRId64 " in dimension %d, wanted at least "
                     "%" PRId64 ": elements overlap",
                     tensor->strides[d], d, inner);
  }
  return NULL;
}

burst_error *burst_tensor_check(const char *whose, const burst_tensor *tensor,
                                const burst_parameter *parameter,
                                bool written) {
  if (tensor->type != parameter->type)
    return INVALID("type %s (%d), wanted %s", type_name(tensor->type),
                   tensor->type, type_name(parameter->type));
  if (tensor->rank != parameter->rank)
    return INVALID("%d dimensions, wanted %d", tensor->rank, parameter->rank);
  for (int32_t d = 0; d < tensor->rank; ++d) {
    if (tensor->sizes[d] < 0)
      return INVALID("size %" PRId64 " in dimension %d, wanted 0 or more",
                     tensor->sizes[d], d);
    if (tensor->strides[d] < 0)
      return INVALID("stride %" PRId64 " in dimension %d, wanted 0 or more",
                     tensor->strides[d], d);
  }
  if (!has_elements(tensor))
    return NULL;
  if (span(tensor) < 0)
    return INVALID("more than %" PRId64 " bytes", INT64_MAX);
  if (!tensor->data)
    return INVALID("no data, wanted %" PRId64 " bytes",
                   burst_tensor_bytes(tensor));
  int64_t alignment = burst_type_bytes(tensor->type);
  if ((uintptr_t)tensor->data % (uintptr_t)alignment != 0)
    return INVALID("data at %p, wanted a multiple of %" PRId64, tensor->data,
                   alignment);
  return written ? check_places(whose, tensor, parameter) : NULL;
}

burst_error *burst_tensor_check_size(const char *whose,
                                     const burst_tensor *tensor,
                                     const burst_parameter *parameter,
                                     int32_t d, int64_t wanted) {
  if (tensor->sizes[d] == wanted)
    return NULL;
  return INVALID("size %" PRId64 " in dimension %d, wanted %" PRId64,
                 tensor->sizes[d], d, wanted);
}

int64_t burst_tensor_bytes(const burst_tensor *tensor) {
  // Beside a 0 the other sizes may be as large as they like.
  if (!has_elements(tensor))
    return 0;
  int64_t bytes = burst_type_bytes(tensor->type);
  for (int32_t d = 0; d < tensor->rank; ++d)
    bytes *= tensor->sizes[d];
  return bytes;
}
