//===- DiskCache.cpp - results that outlive a process ---------------------===//
#include "codegen/cuda/DiskCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Caching.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"

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

/// The prefix of all files of the cache, temporary ones too: pruning leaves
/// others alone.
static constexpr StringLiteral prefix = "llvmcache-";

/// Upstream's cache of one directory; it hands `found` what it finds.
static Expected<FileCache> open(const CacheConfig &config,
                                std::unique_ptr<MemoryBuffer> &found) {
  return localCache(
      "burst", prefix + "new", config.directory,
      [&found](size_t, const Twine &, std::unique_ptr<MemoryBuffer> buffer) {
        found = std::move(buffer);
      });
}

void DiskCache::warn(Error error) const {
  std::string message =
      "cache " + config.directory + ": " + toString(std::move(error));
  if (config.warn)
    config.warn(message);
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
  std::unique_ptr<MemoryBuffer> found;
  Expected<FileCache> cache = open(config, found);
  if (!cache) {
    warn(cache.takeError());
    return std::nullopt;
  }
  std::string name = hashed(key);
  Expected<AddStreamFn> add = (*cache)(0, name, "");
  if (!add) {
    warn(add.takeError());
    return std::nullopt;
  }
  if (!found)
    return std::nullopt;
  SmallString<128> path(config.directory);
  sys::path::append(path, prefix + name);
  if (!isWhole(found->getBuffer(), key)) {
    warn(createStringError("removed a damaged entry, " + prefix + name));
    std::ignore = sys::fs::remove(path);
    return std::nullopt;
  }
  touch(path);
  return found->getBuffer().drop_front(headerBytes).str();
}

void DiskCache::put(StringRef key, StringRef bytes) const {
  if (config.bytes == 0)
    return;
  std::unique_ptr<MemoryBuffer> found;
  Expected<FileCache> cache = open(config, found);
  if (!cache)
    return warn(cache.takeError());
  Expected<AddStreamFn> add = (*cache)(0, hashed(key), "");
  if (!add)
    return warn(add.takeError());
  if (!*add) // another thread or process was faster
    return;
  Expected<std::unique_ptr<CachedFileStream>> stream = (*add)(0, "");
  if (!stream)
    return warn(stream.takeError());
  *(*stream)->OS << magic << checksum(key, bytes) << bytes;
  if (Error error = (*stream)->commit())
    return warn(std::move(error));
  CachePruningPolicy policy;
  policy.Interval = std::chrono::seconds(0);
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeBytes = config.bytes;
  policy.MaxSizeFiles = 0;
  pruneCache(config.directory, policy);
}
