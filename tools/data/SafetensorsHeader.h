//===- SafetensorsHeader.h - What a file says of its tensors ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The JSON object in front of the data of a safetensors file, as text and as
// what it means.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TOOLS_DATA_SAFETENSORSHEADER_H
#define BURST_TOOLS_DATA_SAFETENSORSHEADER_H

#include "tools/data/Safetensors.h"

namespace burst::data {

/// The name of what is no tensor.
constexpr std::string_view metadataKey = "__metadata__";

/// What the header says of one tensor; `begin` counts from the end of it.
struct Extent {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t begin, size;
};

struct Header {
  std::vector<Extent> extents; // In the order of the data.
  Metadata metadata;
};

/// Reads and checks the whole header: afterwards every extent lies within the
/// data, has the size of its shape, and together they cover each byte once.
std::optional<Header> parseHeader(std::string_view text, uint64_t dataSize,
                                  std::string &error);

using NamedTensor = Tensors::value_type;

/// The header of tensors whose bytes follow in this order.
std::string headerText(std::span<const NamedTensor *const> tensors,
                       const Metadata &metadata);

/// Text that a file can choose, in quotes and fit for a message: short, plain
/// characters.
std::string show(std::string_view text);

} // namespace burst::data

#endif // BURST_TOOLS_DATA_SAFETENSORSHEADER_H
