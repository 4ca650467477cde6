//===- Version.c - which versions fit -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/base/Version.h"
#include "burst/internal/error.h"

#define INVALID(...) burst_error_create(BURST_INVALID_ARGUMENT, "", __VA_ARGS__)

const char *burst_version(void) { return BURST_VERSION; }

int burst_version_fits(int major, int minor) {
  return major == BURST_VERSION_MAJOR &&
         (major > 0 || minor == BURST_VERSION_MINOR);
}

burst_error *burst_check_version(int major, int minor) {
  if (burst_version_fits(major, minor))
    return NULL;
  return INVALID("the host was compiled for burst %d.%d, this library is %s: "
                 "compile it with this library's headers, or load libburst of "
                 "its version",
                 major, minor, BURST_VERSION);
}
