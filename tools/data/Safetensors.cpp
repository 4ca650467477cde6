//===- Safetensors.cpp - Reading and writing tensors ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/Safetensors.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

using namespace burst::data;

namespace fs = std::filesystem;

namespace {

constexpr uint64_t maxHeaderSize = 100'000'000; // As the reference reader's.
constexpr size_t maxRank = 16;
constexpr std::string_view metadataKey = "__metadata__";

/// Text that a file can choose, fit for a message: short, plain characters.
std::string plain(std::string_view text, size_t limit) {
  std::string result;
  for (char c : text.substr(0, limit))
    result += c >= ' ' && c <= '~' ? std::string(1, c)
                                   : fmt::format("\\x{:02x}", uint8_t(c));
  return result + (text.size() > limit ? "..." : "");
}

std::string show(std::string_view text) { return "'" + plain(text, 80) + "'"; }

std::string errnoText() {
  return std::error_code(errno, std::generic_category()).message();
}

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

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

/// Reads and checks the whole header: afterwards every extent lies within the
/// data, has the size of its shape, and together they cover each byte once.
std::optional<Header> parseHeader(std::string_view text, uint64_t dataSize,
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

bool checkHeaderSize(uint64_t size, std::string &error) {
  if (size <= maxHeaderSize)
    return true;
  error = fmt::format("header length: found {}, wanted at most {}", size,
                      maxHeaderSize);
  return false;
}

bool checkBools(const std::string &name, const Tensor &tensor,
                std::string &error) {
  if (tensor.dtype != DType::BOOL)
    return true;
  auto bad = std::ranges::find_if(tensor.bytes,
                                  [](std::byte b) { return b > std::byte{1}; });
  if (bad == tensor.bytes.end())
    return true;
  error = fmt::format("tensor {}: found byte {} in element {} of BOOL, wanted "
                      "0 or 1",
                      show(name), int(*bad), bad - tensor.bytes.begin());
  return false;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Fills `into` from that offset of a file, or says why not.
using ReadAt = std::function<bool(uint64_t offset, std::span<std::byte> into,
                                  std::string &error)>;

std::optional<Archive> readArchive(uint64_t fileSize, const ReadAt &readAt,
                                   std::string &error) {
  uint64_t headerSize;
  if (fileSize < sizeof(headerSize)) {
    error = fmt::format("found {} bytes, wanted at least the 8 of the header "
                        "length",
                        fileSize);
    return std::nullopt;
  }
  if (!readAt(0, std::as_writable_bytes(std::span(&headerSize, 1)), error))
    return std::nullopt;
  uint64_t room = fileSize - sizeof(headerSize);
  if (headerSize > room) {
    error = fmt::format("header length: found {}, wanted at most {}, the rest "
                        "of the file",
                        headerSize, room);
    return std::nullopt;
  }
  if (!checkHeaderSize(headerSize, error))
    return std::nullopt;

  std::string text(headerSize, '\0');
  if (!readAt(sizeof(headerSize), std::as_writable_bytes(std::span(text)),
              error))
    return std::nullopt;
  std::optional<Header> header = parseHeader(text, room - headerSize, error);
  if (!header)
    return std::nullopt;

  Archive archive{{}, std::move(header->metadata)};
  for (Extent &extent : header->extents) {
    Tensor tensor{extent.dtype, std::move(extent.shape),
                  std::vector<std::byte>(extent.size)};
    if (!readAt(sizeof(headerSize) + headerSize + extent.begin, tensor.bytes,
                error) ||
        !checkBools(extent.name, tensor, error))
      return std::nullopt;
    archive.tensors.emplace(std::move(extent.name), std::move(tensor));
  }
  return archive;
}

/// A file descriptor, closed at the end of the scope.
struct Descriptor {
  int fd;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

std::optional<Archive> readFile(const std::string &path, std::string &error) {
  // Without O_NONBLOCK, opening a pipe would wait for someone to write to it.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) {
    error = "cannot open: " + errnoText();
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    error = fmt::format("found {}, wanted a regular file",
                        S_ISDIR(status.st_mode) ? "a directory"
                                                : "a device or a pipe");
    return std::nullopt;
  }
  // A sparse file can claim more bytes than there is memory for.
  uint64_t size = uint64_t(status.st_size);
  uint64_t memory =
      uint64_t(::sysconf(_SC_PHYS_PAGES)) * uint64_t(::sysconf(_SC_PAGESIZE));
  if (size > memory) {
    error = fmt::format("found {} bytes, wanted at most {}, the machine's "
                        "memory",
                        size, memory);
    return std::nullopt;
  }
  auto readAt = [&](uint64_t offset, std::span<std::byte> into,
                    std::string &error) {
    while (!into.empty()) {
      ssize_t count = ::pread(file.fd, into.data(), into.size(), off_t(offset));
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0) {
        error = "cannot read: " + errnoText();
        return false;
      }
      if (count == 0) {
        error = fmt::format("found the end of the file at byte {}, wanted {} "
                            "bytes",
                            offset, size);
        return false;
      }
      into = into.subspan(size_t(count));
      offset += uint64_t(count);
    }
    return true;
  };
  return readArchive(size, readAt, error);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string jsonString(std::string_view text) {
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

using NamedTensor = Tensors::value_type;

/// The header of tensors whose bytes follow in this order.
std::string headerText(std::span<const NamedTensor *const> tensors,
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

bool writeAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    bytes = bytes.subspan(size_t(count));
  }
  return true;
}

/// Calls `make` with names of temporary files beside `path`, until one is free.
/// Not named after `path`, whose name may have no room for a suffix.
bool nameTemporary(const fs::path &path, fs::path &temporary,
                   const std::function<bool(const char *)> &make) {
  for (int attempt = 0;; ++attempt) {
    temporary = path.parent_path() /
                fmt::format(".burst-{}-{}.tmp", ::getpid(), attempt);
    if (make(temporary.c_str()))
      return true;
    if (errno != EEXIST)
      return false;
  }
}

/// Puts what `emit` writes in the place of `path`, or leaves `path` alone.
bool replaceFile(const fs::path &path, const std::function<bool(int)> &emit,
                 std::string &error) {
  fs::path temporary, folder = path.parent_path();
  // Without a name, where the file system has such and /proc can give it one:
  // whatever ends the process, nothing is left.
  int fd = ::access("/proc/self/fd", X_OK) != 0
               ? -1
               : ::open(folder.empty() ? "." : folder.c_str(),
                        O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  bool hasName = fd < 0;
  if (hasName && !nameTemporary(path, temporary, [&](const char *name) {
        fd = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return fd >= 0;
      })) {
    error =
        fmt::format("cannot create {}: {}", temporary.string(), errnoText());
    return false;
  }
  Descriptor file(fd);
  std::string self = fmt::format("/proc/self/fd/{}", fd);
  auto giveName = [&](const char *name) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name,
                    AT_SYMLINK_FOLLOW) == 0;
  };
  bool isWhole = emit(fd) && ::fsync(fd) == 0;
  if (isWhole && !hasName)
    isWhole = hasName = nameTemporary(path, temporary, giveName);
  if (isWhole && ::rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  error = "cannot write: " + errnoText();
  if (hasName)
    ::unlink(temporary.c_str());
  return false;
}

bool writeFile(const std::string &path, const Tensors &tensors,
               const Metadata &metadata, std::string &error) {
  // Wide elements first: with the padded header, each tensor is aligned.
  std::vector<const NamedTensor *> ordered;
  uint64_t dataSize = 0;
  for (const NamedTensor &named : tensors) {
    ordered.push_back(&named);
    dataSize += named.second.bytes.size();
    if (named.first == metadataKey) {
      error = fmt::format("tensor '{}': found a reserved name, wanted another",
                          metadataKey);
      return false;
    }
    if (!checkBools(named.first, named.second, error))
      return false;
  }
  std::ranges::sort(ordered, {}, [](const NamedTensor *named) {
    return std::pair(-int(sizeOf(named->second.dtype)),
                     std::string_view(named->first));
  });

  // Only what the reader takes is written. That finds shapes that disagree
  // with their bytes, and names that are not UTF-8.
  std::string text = headerText(ordered, metadata);
  uint64_t headerSize = text.size();
  if (!checkHeaderSize(headerSize, error) ||
      !parseHeader(text, dataSize, error))
    return false;

  auto emit = [&](int fd) {
    return writeAll(fd, std::as_bytes(std::span(&headerSize, 1))) &&
           writeAll(fd, std::as_bytes(std::span(text))) &&
           std::ranges::all_of(ordered, [&](const NamedTensor *named) {
             return writeAll(fd, named->second.bytes);
           });
  };

  std::error_code ignored;
  fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    error = "found a directory, wanted a file to write";
    return false;
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (device.fd >= 0 && emit(device.fd))
      return true;
    error = "cannot write: " + errnoText();
    return false;
  }
  // A link stays, and the file it leads to is replaced, or made; also one that
  // has no name, as standard output may.
  fs::path target = fs::canonical(path, ignored);
  if (target.empty() && fs::is_symlink(path, ignored)) {
    Descriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.fd >= 0 && emit(file.fd))
      return true;
    error = "cannot write: " + errnoText();
    return false;
  }
  return replaceFile(target.empty() ? fs::path(path) : target, emit, error);
}

} // namespace

std::optional<Archive> burst::data::read(const std::string &path,
                                         std::string &error) {
  std::optional<Archive> archive = readFile(path, error);
  if (!archive)
    error = path + ": " + error;
  return archive;
}

std::optional<Archive> burst::data::parse(std::span<const std::byte> file,
                                          std::string &error) {
  auto readAt = [&](uint64_t offset, std::span<std::byte> into, std::string &) {
    std::ranges::copy(file.subspan(offset, into.size()), into.begin());
    return true;
  };
  return readArchive(file.size(), readAt, error);
}

bool burst::data::write(const std::string &path, const Tensors &tensors,
                        const Metadata &metadata, std::string &error) {
  if (writeFile(path, tensors, metadata, error))
    return true;
  error = path + ": " + error;
  return false;
}
