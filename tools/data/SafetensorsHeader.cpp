//===- SafetensorsHeader.cpp - What a file says of its tensors ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/SafetensorsHeader.h"

#include <nlohmann/json.hpp>

using namespace burst::data;

namespace {

constexpr size_t maxRank = 16;

/// Text that a file can choose, fit for a message: short, plain characters.
std::string plain(std::string_view text, size_t limit) {
  std::string result;
  for (char c : text.substr(0, limit))
    result += c >= ' ' && c <= '~' ? std::string(1, c)
                                   : fmt::format("\\x{:02x}", uint8_t(c));
  return result + (text.size() > limit ? "..." : "");
}

} // namespace

std::string burst::data::show(std::string_view text) {
  return "'" + plain(text, 80) + "'";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Takes the header apart, event by event. The parser behind it keeps no call
/// stack, so no nesting can exhaust one; nesting that does not belong is
/// refused where it begins.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
public:
  using List = std::optional<std::vector<int64_t>>;
  struct Entry {
    std::optional<DType> dtype;
    List shape, offsets;
  };
  std::map<std::string, Entry> entries;
  Metadata metadata;

  explicit HeaderReader(std::string &error) : error(error) {}

  bool start_object(size_t) override {
    if (place == Outside)
      place = InHeader;
    else if (place == InHeader)
      place = name == metadataKey ? InMetadata : InEntry;
    else
      return unexpected("an object");
    return true;
  }

  bool key(std::string &text) override {
    (place == InHeader ? name : field) = text;
    bool isNew;
    if (place == InHeader && name == metadataKey) {
      isNew = !std::exchange(sawMetadata, true);
    } else if (place == InHeader) {
      isNew = entries.try_emplace(name).second;
    } else if (place == InMetadata) {
      isNew = !metadata.contains(field);
    } else if (field == "dtype") {
      isNew = !entries[name].dtype;
    } else if (const List *known = findList()) {
      isNew = !*known;
    } else {
      return fail(fmt::format("tensor {}: unknown key {}, wanted 'dtype', "
                              "'shape' and 'data_offsets'",
                              show(name), show(field)));
    }
    return isNew || fail(fmt::format("{}: found twice, wanted once", where()));
  }

  bool string(std::string &text) override {
    if (place == InMetadata) {
      metadata.emplace(field, text);
      return true;
    }
    if (place != InEntry || field != "dtype")
      return unexpected(show(text));
    entries[name].dtype = dtypeNamed(text);
    if (entries[name].dtype)
      return true;
    std::string known;
    for (DType dtype : allDTypes)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", nameOf(dtype));
    return fail(fmt::format("{}: found {}, wanted one of {}", where(),
                            show(text), known));
  }

  bool start_array(size_t) override {
    if (place != InEntry || !findList())
      return unexpected("an array");
    list = &findList()->emplace();
    place = InList;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (place != InList || value > INT64_MAX)
      return unexpected(fmt::format("{}", value));
    size_t limit = field == "shape" ? maxRank : 2;
    if (list->size() == limit)
      return fail(fmt::format("{}: found more than {} numbers, wanted {}{}",
                              where(), limit,
                              field == "shape" ? "at most " : "", limit));
    list->push_back(int64_t(value));
    return true;
  }

  // Everything with a minus sign, "-0" too, comes here.
  bool number_integer(int64_t value) override {
    return unexpected(fmt::format("-{}", -uint64_t(value)));
  }

  bool number_float(double, const std::string &text) override {
    return unexpected(show(text));
  }
  bool boolean(bool value) override {
    return unexpected(value ? "true" : "false");
  }
  bool null() override { return unexpected("null"); }
  bool binary(binary_t &) override { return unexpected("binary"); }

  bool end_object() override {
    place = place == InHeader ? Outside : InHeader;
    return true;
  }
  bool end_array() override {
    place = InEntry;
    return true;
  }

  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &problem) override {
    std::string_view text = problem.what(); // "[library's number] text"
    text.remove_prefix(std::min(text.find(' ') + 1, text.size()));
    return fail(
        fmt::format("header: {}, wanted a JSON object", plain(text, 200)));
  }

private:
  std::string &error;
  enum Place : uint8_t { Outside, InHeader, InMetadata, InEntry, InList };
  Place place = Outside;
  std::string name, field; // The keys that lead to the current value.
  std::vector<int64_t> *list = nullptr; // The one that InList is in.
  bool sawMetadata = false;

  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }

  /// The list that the current field is, if it is one.
  List *findList() {
    return field == "shape"          ? &entries[name].shape
           : field == "data_offsets" ? &entries[name].offsets
                                     : nullptr;
  }

  std::string where() const {
    std::string text = name == metadataKey ? name : "tensor " + show(name);
    if (place == InMetadata)
      text += ": " + show(field);
    else if (place != InHeader)
      text += ": " + field;
    return text;
  }

  bool unexpected(std::string_view found) {
    std::string_view wanted = place == InHeader     ? "an object"
                              : place == InMetadata ? "a string"
                              : place == InList     ? "an integer in [0, 2^63)"
                              : field == "dtype"    ? "a string"
                                                    : "an array of integers";
    return fail(fmt::format("{}: found {}, wanted {}", where(), found, wanted));
  }
};

/// One tensor's entry checked on its own; its error names no tensor.
std::optional<Extent> checkEntry(const HeaderReader::Entry &entry,
                                 uint64_t dataSize, std::string &error) {
  if (!entry.dtype || !entry.shape || !entry.offsets) {
    error = fmt::format("found no '{}', wanted 'dtype', 'shape' and "
                        "'data_offsets'",
                        !entry.dtype   ? "dtype"
                        : !entry.shape ? "shape"
                                       : "data_offsets");
    return std::nullopt;
  }
  std::string offsets = shapeText(*entry.offsets);
  if (entry.offsets->size() != 2) {
    error = fmt::format("data_offsets: found {}, wanted 2 numbers", offsets);
    return std::nullopt;
  }
  int64_t begin = entry.offsets->front(), end = entry.offsets->back();
  if (begin > end || uint64_t(end) > dataSize) {
    error = fmt::format(
        "data_offsets: found {}, wanted begin <= end <= {}, the data's size",
        offsets, dataSize);
    return std::nullopt;
  }
  std::optional<int64_t> size = byteSize(*entry.dtype, *entry.shape);
  if (!size) {
    error = fmt::format("shape: found {} of {}, wanted fewer than 2^63 bytes",
                        shapeText(*entry.shape), nameOf(*entry.dtype));
    return std::nullopt;
  }
  if (end - begin != *size) {
    error = fmt::format(
        "data_offsets: found {}, {} bytes, wanted {} bytes for {} of {}",
        offsets, end - begin, *size, shapeText(*entry.shape),
        nameOf(*entry.dtype));
    return std::nullopt;
  }
  return Extent{
      {}, *entry.dtype, *entry.shape, uint64_t(begin), uint64_t(*size)};
}

} // namespace

std::optional<Header> burst::data::parseHeader(std::string_view text,
                                               uint64_t dataSize,
                                               std::string &error) {
  // The format wants these outer bytes. JSON's own rules are laxer, and the
  // parser takes a zero byte for the end of its input.
  std::string_view trimmed = text.substr(0, text.find_last_not_of(' ') + 1);
  if (!trimmed.starts_with('{') || !trimmed.ends_with('}') ||
      trimmed.find('\0') != std::string_view::npos) {
    error = fmt::format("header: found {}, wanted a JSON object from the first "
                        "byte, without zero bytes, followed only by spaces",
                        show(text));
    return std::nullopt;
  }
  HeaderReader reader(error);
  if (!nlohmann::json::sax_parse(trimmed, &reader))
    return std::nullopt;

  Header header;
  header.metadata = std::move(reader.metadata);
  for (const auto &[name, entry] : reader.entries) {
    std::optional<Extent> extent = checkEntry(entry, dataSize, error);
    if (!extent) {
      error = fmt::format("tensor {}: {}", show(name), error);
      return std::nullopt;
    }
    extent->name = name;
    header.extents.push_back(std::move(*extent));
  }

  // Empty tensors come before the one that starts where they lie.
  std::ranges::sort(header.extents, {}, [](const Extent &extent) {
    return std::pair(extent.begin, extent.size);
  });
  uint64_t covered = 0;
  for (const Extent &extent : header.extents) {
    if (extent.begin != covered) {
      error = fmt::format(
          "tensor {}: data_offsets: found begin {}, {}, wanted {}, where the "
          "tensor before ends",
          show(extent.name), extent.begin,
          extent.begin < covered ? "an overlap" : "a hole", covered);
      return std::nullopt;
    }
    covered += extent.size;
  }
  if (covered != dataSize) {
    error = fmt::format("data: found {} bytes, wanted {}, where the last "
                        "tensor ends",
                        dataSize, covered);
    return std::nullopt;
  }
  return header;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static std::string jsonString(std::string_view text) {
  std::string result = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (uint8_t(c) < ' ')
      result += fmt::format("\\u{:04x}", uint8_t(c));
    else
      result += c;
  return result + '"';
}

std::string burst::data::headerText(std::span<const NamedTensor *const> tensors,
                                    const Metadata &metadata) {
  std::string text;
  for (const auto &[key, value] : metadata)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", jsonString(key),
                        jsonString(value));
  if (!metadata.empty())
    text = fmt::format("\"{}\":{{{}}}", metadataKey, text);
  uint64_t begin = 0;
  for (const NamedTensor *named : tensors) {
    const auto &[name, tensor] = *named;
    uint64_t end = begin + tensor.bytes.size();
    text += fmt::format(
        R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
        text.empty() ? "" : ",", jsonString(name), nameOf(tensor.dtype),
        shapeText(tensor.shape), begin, end);
    begin = end;
  }
  text = "{" + text + "}";
  // Padded like the reference writer's, so that the data is aligned.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}
