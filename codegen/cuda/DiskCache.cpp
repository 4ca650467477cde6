//===- DiskCache.cpp - results that outlive a process ---------------------===//
#include "codegen/cuda/DiskCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

#include <tuple>

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

/// Makes a file the one that was used last. The system does not, where times of
/// access are switched off.
static void touch(StringRef path) {
  int file = -1;
  if (sys::fs::openFileForWrite(path, file, sys::fs::CD_OpenExisting))
    return;
  auto now = std::chrono::time_point_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now());
  // An entry that cannot be touched is only pruned earlier.
  std::ignore = sys::fs::setLastAccessAndModificationTime(file, now);
  std::ignore = sys::Process::SafelyCloseFileDescriptor(file);
}

std::optional<std::string> DiskCache::find(StringRef key) const {
  if (config.bytes == 0)
    return std::nullopt;
  SmallString<128> path = pathOf(config, key);
  ErrorOr<std::unique_ptr<MemoryBuffer>> found = MemoryBuffer::getFile(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!found) {
    if (found.getError() != std::errc::no_such_file_or_directory)
      warnOnce(createFileError(path, found.getError()));
    return std::nullopt;
  }
  StringRef entry = (*found)->getBuffer();
  if (!isWhole(entry, key)) {
    warn(createStringError("removed a damaged entry, " +
                           sys::path::filename(path)));
    std::ignore = sys::fs::remove(path);
    return std::nullopt;
  }
  touch(path);
  return entry.drop_front(headerBytes).str();
}

/// Writes strings to a new file, whose path is made of a model. What is not
/// whole is removed.
static Error writeNew(StringRef model, SmallVectorImpl<char> &path,
                      ArrayRef<StringRef> strings) {
  int file = -1;
  if (std::error_code error = sys::fs::createUniqueFile(model, file, path))
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
  if (std::error_code error = sys::fs::create_directories(config.directory))
    return createFileError(config.directory, error);
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
  pruneCache(config.directory, policy);
}
