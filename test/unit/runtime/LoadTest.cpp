//===- LoadTest.cpp - Tests of shared objects -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <algorithm>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace burst::test;
namespace fs = std::filesystem;

namespace {

class Load : public testing::Test {
protected:
  fs::path directory;
  std::string path;

  void SetUp() override {
    std::string name = testing::TempDir() + "burst-load-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    path = directory / "program.so";
  }
  void TearDown() override { fs::remove_all(directory); }

  static std::string read(const std::string &file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator(stream), {}};
  }
  std::string loadBytes(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return load(path);
  }
  static std::string load(const std::string &path) {
    burst_program *program;
    std::string error = takeCoded(burst_program_load(path.c_str(), &program));
    EXPECT_EQ(program == nullptr, !error.empty());
    burst_program_release(program);
    return error;
  }
};

TEST_F(Load, RunsWhatItLoaded) {
  burst_program *program;
  ASSERT_EQ(take(burst_program_load(TEST_PROGRAM, &program)), "");
  EXPECT_STREQ(burst_program_name(program), "sum");
  Device device = makeDevice(1);
  burst_run_config config = {};
  config.size = sizeof(config);
  config.device = device.get();
  float in[] = {1, 2, 3}, out = 0;
  burst_tensor values[] = {tensorOf(in, {3}), tensorOf(&out, {1})};
  EXPECT_EQ(take(burst_run(program, &config, values, 2, nullptr)), "");
  EXPECT_EQ(out, 6.f);
  burst_program_release(program);
}

/// Of one file, and of some that others replace meanwhile.
TEST_F(Load, ByThreadsAtOnce) {
  inParallel(4, [&](int64_t i) {
    fs::path mine = directory / (std::to_string(i % 2) + ".so");
    for (int round = 0; round < 10; ++round) {
      fs::path made = directory / (std::to_string(i) + ".new");
      fs::copy_file(TEST_PROGRAM, made, fs::copy_options::overwrite_existing);
      fs::rename(made, mine);
      for (const std::string &file : {std::string(TEST_PROGRAM), mine.string()})
        EXPECT_EQ(load(file), "");
      expectContains(load(directory / "none"), {"No such file"});
    }
  });
}

TEST_F(Load, FindsFilesWithoutASlash) {
  fs::path before = fs::current_path();
  fs::copy_file(TEST_PROGRAM, path);
  fs::current_path(directory);
  EXPECT_EQ(load("program.so"), "");
  fs::current_path(before);
}

TEST_F(Load, NeedsAFile) {
  EXPECT_EQ(load(path), "SYSTEM " + path + ": No such file or directory");
  EXPECT_EQ(load(directory),
            "INVALID_PROGRAM " + directory.string() + ": not a file");
  burst_program *program;
  EXPECT_EQ(take(burst_program_load(nullptr, &program)),
            "burst_program_load: path: null");
  EXPECT_EQ(take(burst_program_load("", &program)),
            "burst_program_load: path: empty, wanted that of a shared object");
}

TEST_F(Load, RefusesOtherFiles) {
  EXPECT_EQ(loadBytes(""), "INVALID_PROGRAM " + path + ": not a shared object");
  EXPECT_EQ(loadBytes("#!/bin/sh\nexit 1\n"),
            "INVALID_PROGRAM " + path + ": not a shared object");
  std::string bytes = read(TEST_PROGRAM);
  auto *header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
  header->e_machine = EM_SPARC;
  expectContains(loadBytes(bytes),
                 {"INVALID_PROGRAM", "for machine 2, wanted"});
  bytes = read(TEST_PROGRAM);
  header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
  header->e_type = ET_REL;
  expectContains(loadBytes(bytes), {"ELF type 1, wanted 3: a shared object"});
}

TEST_F(Load, RefusesTruncatedFiles) {
  std::string bytes = read(TEST_PROGRAM);
  ASSERT_GT(bytes.size(), 1000u);
  EXPECT_EQ(loadBytes(bytes), "");
  for (size_t size = 4; size < bytes.size(); size += 97)
    expectContains(loadBytes(bytes.substr(0, size)),
                   {"INVALID_PROGRAM " + path + ": truncated"});
  expectContains(loadBytes(bytes.substr(0, bytes.size() - 1)), {"truncated"});
  // Section headers are at the end, and not everyone keeps them.
  auto *header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
  header->e_shoff = header->e_shnum = 0;
  EXPECT_EQ(loadBytes(bytes), "");
  expectContains(loadBytes(bytes.substr(0, header->e_phoff + 500)),
                 {"truncated: ", " bytes, wanted "});
}

TEST_F(Load, RefusesSharedObjectsThatAreNoPrograms) {
  std::string bytes = read(TEST_PROGRAM);
  std::string symbol = BURST_IMAGE_SYMBOL, other = "burst_program_imago";
  for (size_t at = 0; (at = bytes.find(symbol, at)) != bytes.npos;)
    bytes.replace(at, symbol.size(), other);
  EXPECT_EQ(loadBytes(bytes),
            "INVALID_PROGRAM " + path +
                ": not a program: it has no symbol burst_program_image");
}

} // namespace
