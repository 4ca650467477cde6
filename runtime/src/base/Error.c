//===- Error.c - Making errors --------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "burst/internal/error.h"
#include "burst/internal/handle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Behind it in memory: its texts.
struct burst_error {
  burst_handle handle;
  burst_code code;
  const char *location, *message;
};

static burst_error out_of_memory = {
    {BURST_MAGIC(BURST_KIND_ERROR)}, BURST_OUT_OF_MEMORY, "", "out of memory"};

burst_error *burst_error_create(burst_code code, const char *location,
                                const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  size_t prefix = strlen(location);
  burst_error *error = NULL;
  if (length >= 0) // location, zero, location, colon, space, text, zero
    error = malloc(sizeof(*error) + 2 * prefix + 3 + (size_t)length + 1);
  if (error) {
    char *copy = (char *)(error + 1), *message = copy + prefix + 1;
    memcpy(copy, location, prefix + 1);
    int begin = prefix ? sprintf(message, "%s: ", location) : 0;
    vsnprintf(message + begin, (size_t)length + 1, format, again);
    *error =
        (burst_error){{BURST_MAGIC(BURST_KIND_ERROR)}, code, copy, message};
  }
  va_end(again);
  return error ? error : &out_of_memory;
}

burst_error *burst_error_no_memory(size_t bytes) {
  return burst_error_create(BURST_OUT_OF_MEMORY, "",
                            "out of memory: wanted %zu bytes", bytes);
}

const char *burst_error_message(const burst_error *error) {
  BURST_CHECK(error, BURST_KIND_ERROR);
  return error ? error->message : "";
}

const char *burst_error_location(const burst_error *error) {
  BURST_CHECK(error, BURST_KIND_ERROR);
  return error ? error->location : "";
}

burst_code burst_error_code(const burst_error *error) {
  BURST_CHECK(error, BURST_KIND_ERROR);
  return error ? error->code : (burst_code)0;
}

void burst_error_destroy(burst_error *error) {
  BURST_CHECK(error, BURST_KIND_ERROR);
  if (!error || error == &out_of_memory)
    return;
  burst_handle_end(&error->handle);
  burst_handle_free(error);
}
