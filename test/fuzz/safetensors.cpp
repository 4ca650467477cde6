//===- safetensors.cpp - Fuzzes the reader of safetensors files -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Besides not crashing, the reader keeps its promises: a message with every
// refusal, and no tensor of a size that its shape does not have.
//
//===----------------------------------------------------------------------===//

#include "tools/data/Safetensors.h"

#include <cstdlib>

using namespace burst::data;

static void check(bool promise) {
  if (!promise)
    std::abort();
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  std::string error;
  std::optional<Archive> archive =
      parse(std::as_bytes(std::span(bytes, size)), error);
  check(archive.has_value() == error.empty());
  check(error.size() < 1200);
  if (!archive)
    return 0;
  for (const auto &[name, tensor] : archive->tensors) {
    std::optional<int64_t> wanted = byteSize(tensor.dtype, tensor.shape);
    check(wanted && uint64_t(*wanted) == tensor.bytes.size());
    check(tensor.bytes.size() <= size);
  }
  return 0;
}
