//===- Compiler.cpp - kernels compiled once, and many at a time -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

#include <optional>

using namespace llvm;
using namespace burst;
using namespace burst::cuda;

/// Appends strings so that none can be mistaken for two.
static void append(std::string &list, StringRef string) {
  char bytes[sizeof(uint64_t)];
  support::endian::write64le(bytes, string.size());
  list.append(bytes, sizeof(bytes));
  list += string;
}

/// Takes the first string of such a list; false if there is none.
static bool take(StringRef &list, std::string &string) {
  if (list.size() < sizeof(uint64_t))
    return false;
  uint64_t bytes = support::endian::read64le(list.data());
  list = list.drop_front(sizeof(uint64_t));
  if (list.size() < bytes)
    return false;
  string = list.take_front(bytes);
  list = list.drop_front(bytes);
  return true;
}

static std::string encode(const Binary &binary) {
  std::string bytes;
  append(bytes, binary.cubin);
  append(bytes, binary.ptx);
  append(bytes, binary.log);
  append(bytes, std::to_string(binary.minimumDriver));
  return bytes;
}

static std::optional<Binary> decode(StringRef bytes) {
  Binary binary;
  std::string driver;
  if (take(bytes, binary.cubin) && take(bytes, binary.ptx) &&
      take(bytes, binary.log) && take(bytes, driver) && bytes.empty() &&
      to_integer(driver, binary.minimumDriver))
    return binary;
  return std::nullopt;
}

Compiler::Compiler(CacheConfig config, unsigned threads)
    : cache(std::move(config)), pool(hardware_concurrency(threads)) {}

/// The key of what identifies the NVRTC that compiled last.
static constexpr StringLiteral lastNvrtc = "last NVRTC";

Expected<std::string>
Compiler::identify(Expected<std::string> (&identifyNvrtc)(FileHashes)) {
  // A file is hashed once, also where nothing is kept on disk.
  std::lock_guard<std::mutex> lock(mutex);
  auto find = [&](StringRef file) -> std::optional<std::string> {
    if (auto known = hashes.find(file); known != hashes.end())
      return known->second;
    return cache.find(("hash of " + file).str());
  };
  auto put = [&](StringRef file, StringRef hash) {
    hashes[file] = hash.str();
    cache.put(("hash of " + file).str(), hash);
  };
  return identifyNvrtc({find, put});
}

Expected<std::unique_ptr<Compiler>> Compiler::create(CacheConfig config,
                                                     unsigned threads) {
  std::unique_ptr<Compiler> compiler(new Compiler(std::move(config), threads));
  Expected<std::string> nvrtc = compiler->identify(identifyNvrtcUnopened);
  if (nvrtc) {
    compiler->nvrtc = std::move(*nvrtc);
    return compiler;
  }
  std::optional<std::string> last = compiler->cache.find(lastNvrtc);
  if (!last)
    return nvrtc.takeError();
  consumeError(nvrtc.takeError());
  compiler->nvrtc = std::move(*last);
  return compiler;
}

static std::string keyOf(StringRef nvrtc, const Source &source) {
  std::string key = "binary ";
  append(key, nvrtc);
  append(key, source.name); // is in the line information
  append(key, source.text);
  for (const std::string &option : source.allOptions())
    append(key, option);
  return key;
}

std::optional<Binary> Compiler::find(StringRef key) {
  std::optional<std::string> bytes = cache.find(key);
  std::optional<Binary> binary = bytes ? decode(*bytes) : std::nullopt;
  numKnown += binary.has_value();
  return binary;
}

Expected<Binary> Compiler::compile(const Source &source) {
  std::string key = keyOf(nvrtc, source);
  if (std::optional<Binary> binary = find(key))
    return std::move(*binary);
  // What opens may be another one than was expected.
  Expected<std::string> opened = identify(identifyNvrtc);
  if (!opened)
    return opened.takeError();
  if (*opened != nvrtc) {
    key = keyOf(*opened, source);
    if (std::optional<Binary> binary = find(key))
      return std::move(*binary);
  }
  ++numCompiled;
  Expected<Binary> binary = cuda::compile(source);
  if (!binary)
    return binary;
  cache.put(key, encode(*binary));
  if (cache.find(lastNvrtc) != *opened)
    cache.put(lastNvrtc, *opened);
  return binary;
}

std::vector<Expected<Binary>> Compiler::compileAll(ArrayRef<Source> sources) {
  auto order = to_vector(seq<size_t>(sources.size()));
  sort(order, [&](size_t a, size_t b) {
    return sources[a].text.size() > sources[b].text.size();
  });
  std::vector<std::optional<Expected<Binary>>> results(sources.size());
  ThreadPoolTaskGroup group(pool);
  for (size_t n : order)
    group.async([&, n] { results[n].emplace(compile(sources[n])); });
  group.wait();
  std::vector<Expected<Binary>> binaries;
  binaries.reserve(results.size());
  for (std::optional<Expected<Binary>> &result : results)
    binaries.push_back(std::move(*result));
  return binaries;
}
