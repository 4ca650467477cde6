//===- Compiler.cpp - kernels compiled once, and many at a time -----------===//
#include "codegen/cuda/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
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
  return bytes;
}

static std::optional<Binary> decode(StringRef bytes) {
  Binary binary;
  if (take(bytes, binary.cubin) && take(bytes, binary.ptx) &&
      take(bytes, binary.log) && bytes.empty())
    return binary;
  return std::nullopt;
}

Compiler::Compiler(CacheConfig config, unsigned threads)
    : cache(std::move(config)), pool(hardware_concurrency(threads)) {}

Expected<std::unique_ptr<Compiler>> Compiler::create(CacheConfig config,
                                                     unsigned threads) {
  std::unique_ptr<Compiler> compiler(new Compiler(std::move(config), threads));
  const DiskCache &cache = compiler->cache;
  Expected<std::string> nvrtc = identifyNvrtc(
      [&](StringRef file) { return cache.find(("hash of " + file).str()); },
      [&](StringRef file, StringRef hash) {
        cache.put(("hash of " + file).str(), hash);
      });
  if (!nvrtc)
    return nvrtc.takeError();
  compiler->nvrtc = std::move(*nvrtc);
  return compiler;
}

Expected<Binary> Compiler::compile(const Source &source) {
  std::string key = "binary ";
  append(key, nvrtc);
  append(key, source.name); // is in the line information
  append(key, source.text);
  for (const std::string &option : source.allOptions())
    append(key, option);
  if (std::optional<std::string> bytes = cache.find(key))
    if (std::optional<Binary> binary = decode(*bytes)) {
      ++numKnown;
      return std::move(*binary);
    }
  ++numCompiled;
  Expected<Binary> binary = cuda::compile(source);
  if (binary)
    cache.put(key, encode(*binary));
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
