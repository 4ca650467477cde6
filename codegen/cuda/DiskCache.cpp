//===- DiskCache.cpp - results that outlive a process ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/DiskCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

using namespace llvm;
using namespace burst;
using namespace burst::cuda;

Expected<CacheConfig> CacheConfig::fromEnvironment() {
  CacheConfig config;
  SmallString<128> directory;
  if (std::optional<std::string> given =
          sys::Process::GetEnv("BURST_CACHE_DIR"))
    directory = *given;
  else if (sys::path::cache_directory(directory))
    sys::path::append(directory, "burst", "compiled");
  config.directory = directory.str();
  config.bytes = config.directory.empty() ? 0 : uint64_t(512) << 20;
  if (std::optional<std::string> given =
          sys::Process::GetEnv("BURST_CACHE_BYTES"))
    if (StringRef(*given).getAsInteger(10, config.bytes))
      return createStringError("BURST_CACHE_BYTES: '" + *given +
                               "', wanted a number of bytes");
  config.warn = [](StringRef message) {
    WithColor::warning() << message << '\n';
  };
  return config;
}

/// Before the bytes of an entry.
static constexpr StringLiteral magic = "burst 1\n";
static constexpr size_t headerBytes = magic.size() + LLVM_BLAKE3_OUT_LEN;

static std::string hashed(StringRef text) {
  return toHex(BLAKE3::hash(arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

/// Of the key too: an entry under the name of another one is damaged.
static std::string checksum(StringRef key, StringRef bytes) {
  BLAKE3 hasher;
  hasher.update(key);
  hasher.update(StringRef("\0", 1));
  hasher.update(bytes);
  return toStringRef(hasher.final()).str();
}

static bool isWhole(StringRef entry, StringRef key) {
  return entry.size() >= headerBytes && entry.starts_with(magic) &&
         entry.substr(magic.size(), LLVM_BLAKE3_OUT_LEN) ==
             checksum(key, entry.drop_front(headerBytes));
}

/// The prefix of all files of the cache, temporary ones too: upstream prunes
/// these and leaves others alone.
static constexpr StringLiteral prefix = "llvmcache-";

static SmallString<128> pathOf(const CacheConfig &config, StringRef key) {
  SmallString<128> path(config.directory);
  sys::path::append(path, prefix + hashed(key));
  return path;
}

void DiskCache::warn(Error error) const {
  std::string message =
      "cache " + config.directory + ": " + toString(std::move(error));
  if (config.warn)
    config.warn(message);
}

void DiskCache::warnOnce(Error error) const {
  if (hasWarned.exchange(true))
    consumeError(std::move(error));
  else
    warn(std::move(error));
}

//===----------------------------------------------------------------------===//
// Who may write
//===----------------------------------------------------------------------===//

static std::error_code lastError() { return {errno, std::generic_category()}; }

/// Code that others could have written is not run.
static Error checkOwner(StringRef path, const struct stat &status) {
  if (status.st_uid != geteuid())
    return createStringError(formatv("{0} belongs to user {1}, wanted {2}: it "
                                     "is not used",
                                     path, status.st_uid, geteuid()));
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return createStringError(formatv("{0} can be written by others: it is not "
                                     "used until chmod go-w",
                                     path));
  return Error::success();
}

/// Whether the directory is there, and this user's alone.
static Expected<bool> isThere(const std::string &directory) {
  struct stat status;
  if (stat(directory.c_str(), &status)) {
    if (errno == ENOENT)
      return false;
    return createFileError(directory, lastError());
  }
  if (!S_ISDIR(status.st_mode))
    return createFileError(directory,
                           std::make_error_code(std::errc::not_a_directory));
  if (Error error = checkOwner("it", status))
    return std::move(error);
  return true;
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

namespace {
/// An open file.
class Entry {
public:
  /// Neither through a link nor, where it is a pipe, waiting for a writer.
  explicit Entry(const char *path)
      : file(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  Entry(const Entry &) = delete;
  ~Entry() {
    if (file >= 0)
      close(file);
  }

  bool isOpen() const { return file >= 0; }
  Expected<std::unique_ptr<MemoryBuffer>> read(StringRef name) const;
  void touch() const;

private:
  int file;
};
} // namespace

Expected<std::unique_ptr<MemoryBuffer>> Entry::read(StringRef name) const {
  struct stat status;
  if (fstat(file, &status))
    return createFileError(name, lastError());
  if (!S_ISREG(status.st_mode))
    return createStringError(name + " is no file: it is not used");
  if (Error error = checkOwner(name, status))
    return std::move(error);
  auto bytes =
      MemoryBuffer::getOpenFile(file, name, static_cast<uint64_t>(-1),
                                /*RequiresNullTerminator=*/false,
                                /*IsVolatile=*/true); // read, not mapped
  if (!bytes)
    return createFileError(name, bytes.getError());
  return std::move(*bytes);
}

/// Makes it the one that was used last. The system does not, where times of
/// access are switched off.
void Entry::touch() const {
  auto now = std::chrono::time_point_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now());
  // An entry that cannot be touched is only pruned earlier.
  std::ignore = sys::fs::setLastAccessAndModificationTime(file, now);
}

bool DiskCache::isUsable() const {
  Expected<bool> found = isThere(config.directory);
  if (found)
    return *found;
  warnOnce(found.takeError());
  return false;
}

std::optional<std::string> DiskCache::find(StringRef key) const {
  if (config.bytes == 0 || !isUsable())
    return std::nullopt;
  SmallString<128> path = pathOf(config, key);
  StringRef name = sys::path::filename(path);
  Entry file(path.c_str());
  if (!file.isOpen()) {
    if (errno != ENOENT)
      warnOnce(createFileError(path, lastError()));
    return std::nullopt;
  }
  auto bytes = file.read(name);
  if (!bytes) {
    warnOnce(bytes.takeError());
    return std::nullopt;
  }
  StringRef entry = (*bytes)->getBuffer();
  if (!isWhole(entry, key)) {
    warn(createStringError("removed a damaged entry, " + name));
    std::ignore = sys::fs::remove(path);
    return std::nullopt;
  }
  file.touch();
  return entry.drop_front(headerBytes).str();
}

//===----------------------------------------------------------------------===//
// Putting
//===----------------------------------------------------------------------===//

/// Writes strings to a new file, whose path is made of a model. What is not
/// whole is removed.
static Error writeNew(StringRef model, SmallVectorImpl<char> &path,
                      ArrayRef<StringRef> strings) {
  int file = -1;
  if (std::error_code error =
          sys::fs::createUniqueFile(model, file, path, sys::fs::OF_None,
                                    /*Mode=*/0600))
    return createFileError(sys::path::parent_path(model), error);
  raw_fd_ostream stream(file, /*shouldClose=*/true);
  for (StringRef string : strings)
    stream << string;
  stream.close();
  std::error_code error = stream.error();
  stream.clear_error();
  if (!error)
    return Error::success();
  std::ignore = sys::fs::remove(path);
  return createFileError(StringRef(path.data(), path.size()), error);
}

Error DiskCache::write(StringRef key, StringRef bytes) const {
  if (std::error_code error = sys::fs::create_directories(
          config.directory, /*IgnoreExisting=*/true, sys::fs::owner_all))
    return createFileError(config.directory, error);
  if (Expected<bool> found = isThere(config.directory); !found)
    return found.takeError();
  SmallString<128> model(config.directory), path;
  sys::path::append(model, prefix + "new-%%%%%%%%");
  if (Error error = writeNew(model, path, {magic, checksum(key, bytes), bytes}))
    return error;
  if (std::error_code error = sys::fs::rename(path, pathOf(config, key))) {
    std::ignore = sys::fs::remove(path);
    return createFileError(path, error);
  }
  return Error::success();
}

void DiskCache::put(StringRef key, StringRef bytes) const {
  if (config.bytes == 0)
    return;
  if (Error error = write(key, bytes))
    return warnOnce(std::move(error));
  CachePruningPolicy policy;
  policy.Interval = std::chrono::seconds(0);
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeBytes = config.bytes;
  policy.MaxSizeFiles = 0;
  // Where upstream would write when that was done last: in a pipe it would wait
  // for a reader.
  SmallString<128> stamp(config.directory);
  sys::path::append(stamp, "llvmcache.timestamp");
  if (sys::fs::is_regular_file(stamp) || !sys::fs::exists(stamp))
    pruneCache(config.directory, policy);
  else
    warnOnce(createStringError(stamp + " is no file: nothing is dropped"));
}
