//===- Scratch.h - for tests of the compiler of CUDA ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_CUDA_SCRATCH_H
#define BURST_TEST_UNIT_CUDA_SCRATCH_H

#include "codegen/cuda/DiskCache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace burst::test {

/// A directory of a test's own.
struct Scratch {
  std::filesystem::path path;

  Scratch() {
    std::string name = testing::TempDir() + "burst-cuda-XXXXXX";
    if (!::mkdtemp(name.data()))
      ADD_FAILURE() << "no directory " << name;
    path = name;
  }
  Scratch(const Scratch &) = delete;
  ~Scratch() { std::filesystem::remove_all(path); }
};

/// A cache there, and the warnings it gave.
struct ScratchCache : Scratch {
  std::vector<std::string> warnings;

  cuda::CacheConfig config(uint64_t bytes = 1 << 20) {
    return {(path / "cache").string(), bytes, [this](llvm::StringRef message) {
              warnings.push_back(message.str());
            }};
  }

  /// The entries, without what else the cache keeps.
  std::vector<std::filesystem::path> entries() const {
    std::vector<std::filesystem::path> found;
    if (std::filesystem::exists(path / "cache"))
      for (const auto &entry :
           std::filesystem::directory_iterator(path / "cache"))
        if (entry.path().filename().string().starts_with("llvmcache-"))
          found.push_back(entry.path());
    return found;
  }
};

/// Lets texts that do not compile be written to a directory of a test's own.
class ScratchTexts {
public:
  ScratchTexts() {
    if (const char *value = getenv("TMPDIR"))
      before = value;
    setenv("TMPDIR", scratch.path.c_str(), 1);
  }
  ScratchTexts(const ScratchTexts &) = delete;
  ~ScratchTexts() {
    if (before)
      setenv("TMPDIR", before->c_str(), 1);
    else
      unsetenv("TMPDIR");
  }

  /// What was written to the file that a message names.
  static std::string read(const std::string &message) {
    size_t begin = message.find("is in ") + 6;
    std::ifstream stream(message.substr(begin, message.find('\n') - begin));
    return {std::istreambuf_iterator<char>(stream), {}};
  }

private:
  Scratch scratch;
  std::optional<std::string> before;
};

inline void expectHas(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "text: " << text << "\npart: " << part;
}

} // namespace burst::test

#endif // BURST_TEST_UNIT_CUDA_SCRATCH_H
