//===- Version.h - which versions fit ---------------------------*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_RUNTIME_BASE_VERSION_H
#define BURST_RUNTIME_BASE_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

// Whether what was made for this version fits the library, see burst/version.h.
int burst_version_fits(int major, int minor);

#ifdef __cplusplus
}
#endif

#endif // BURST_RUNTIME_BASE_VERSION_H
