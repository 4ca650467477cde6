//===- Safetensors.cpp - Reading and writing tensors ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/SafetensorsHeader.h"

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

std::string errnoText() {
  return std::error_code(errno, std::generic_category()).message();
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
