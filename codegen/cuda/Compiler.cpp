//===- Compiler.cpp - kernels compiled once, and many at a time -----------===//
#include "codegen/cuda/Compiler.h"

#include "codegen/cuda/CompileLog.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"

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

/// Calls a function for each item at a time; its results in order.
template <typename Result, typename Item, typename Function>
static std::vector<Result> mapConcurrently(DefaultThreadPool &pool,
                                           ArrayRef<Item> items,
                                           Function function) {
  std::vector<std::optional<Result>> results(items.size());
  ThreadPoolTaskGroup group(pool);
  for (auto [item, result] : zip_equal(items, results))
    group.async(
        [&function, &item, &result] { result.emplace(function(item)); });
  group.wait();
  std::vector<Result> values;
  values.reserve(results.size());
  for (std::optional<Result> &result : results)
    values.push_back(std::move(*result));
  return values;
}

std::vector<Expected<Binary>> Compiler::compileAll(ArrayRef<Source> sources) {
  return mapConcurrently<Expected<Binary>>(
      pool, sources, [this](const Source &source) { return compile(source); });
}

Expected<Choice> Compiler::compileFirstClean(ArrayRef<Source> variants) {
  Choice choice;
  for (auto [index, variant] : enumerate(variants)) {
    Expected<Binary> binary = compile(variant);
    std::string reason = binary ? CompileLog::read(binary->log).complaint()
                                : toString(binary.takeError());
    if (reason.empty()) {
      choice.index = index;
      choice.binary = std::move(*binary);
      return choice;
    }
    choice.refused.push_back({variant.name, std::move(reason)});
  }
  std::string message =
      formatv("none of {0} variants of a kernel can be taken", variants.size());
  for (const Choice::Refused &refused : choice.refused)
    message += "\n" + refused.name + ": " + refused.reason;
  return createStringError(message);
}

std::vector<Expected<Choice>>
Compiler::compileFirstCleanEach(ArrayRef<std::vector<Source>> kernels) {
  return mapConcurrently<Expected<Choice>>(
      pool, kernels, [this](const std::vector<Source> &variants) {
        return compileFirstClean(variants);
      });
}
