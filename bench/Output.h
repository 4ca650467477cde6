//===- Output.h - files that are whole or not there -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_OUTPUT_H
#define BURST_BENCH_OUTPUT_H

#include <string>

namespace burst::bench {

/// Whether `path` can become a file: its folder is there and can be written to,
/// and it is no device, folder or pipe, which a file must not replace;
/// /dev/null takes everything. An error message or nothing.
std::string checkOutput(const std::string &path);

/// Writes under a temporary name, then renames: what was there stays until the
/// new text is whole. Through a symbolic link, what it points to is replaced.
std::string writeOutput(const std::string &path, const std::string &text);

} // namespace burst::bench

#endif // BURST_BENCH_OUTPUT_H
