//===- Safetensors.h - Reading and writing tensors --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The safetensors format: eight bytes of little-endian header length, a JSON
// object of {name: {dtype, shape, data_offsets}}, then the bytes of the
// tensors. Files are not trusted: whatever breaks a rule of the format is
// refused with a message, and no number in a file is believed before it was
// checked against the file's size.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TOOLS_DATA_SAFETENSORS_H
#define BURST_TOOLS_DATA_SAFETENSORS_H

#include "tools/data/Tensor.h"

#include <map>

namespace burst::data {

using Tensors = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

/// What a file holds.
struct Archive {
  Tensors tensors;
  Metadata metadata;
};

/// Reads a file. On failure returns nothing and puts into `error` the path,
/// the tensor, what was found and what was wanted.
std::optional<Archive> read(const std::string &path, std::string &error);

/// Reads a file that is in memory already; its errors name no path.
std::optional<Archive> parse(std::span<const std::byte> file,
                             std::string &error);

/// Writes a file, all or nothing: the bytes go to a temporary file in the same
/// directory, which replaces `path` once they are on the disk. On failure the
/// temporary is removed, what was at `path` stays, and `error` says why. A
/// `path` that names a device or a pipe is written to directly. The same
/// tensors and metadata always make the same bytes.
bool write(const std::string &path, const Tensors &tensors,
           const Metadata &metadata, std::string &error);

} // namespace burst::data

#endif // BURST_TOOLS_DATA_SAFETENSORS_H
