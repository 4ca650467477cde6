//===- SafetensorsFileTest.cpp - Tests of reading and writing files -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/data/Random.h"
#include "tools/data/Safetensors.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace burst::data;
namespace fs = std::filesystem;

namespace {

class SafetensorsFile : public testing::Test {
protected:
  fs::path directory;
  std::string path, error;

  void SetUp() override {
    // Not in TMPDIR: a test plays another user, whom lit's directory of
    // temporary files is closed to.
    std::string name = "/tmp/burst-data-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    path = directory / "file.safetensors";
  }
  void TearDown() override { fs::remove_all(directory); }

  /// Names in the directory; a temporary file would be among them.
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(directory))
      names.push_back(entry.path().filename());
    return names;
  }

  Archive readBack() {
    std::optional<Archive> archive = read(path, error);
    EXPECT_TRUE(archive) << error;
    return archive.value_or(Archive());
  }

  std::string contents(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator(stream), {}};
  }

  void expectError(const std::vector<std::string> &parts) {
    for (const std::string &part : parts)
      EXPECT_NE(error.find(part), error.npos) << part << " not in: " << error;
  }
};

/// Root may read and write everything; for a while be someone who may not.
struct AsNobody {
  bool isRoot = ::geteuid() == 0;
  bool works = !isRoot || ::seteuid(65534) == 0;
  ~AsNobody() {
    if (isRoot && works) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
};

Tensors someTensors() {
  Tensors tensors;
  for (DType dtype : allDTypes)
    tensors[std::string(nameOf(dtype))] =
        Tensor::of(dtype, {3, 5}, normal(1, nameOf(dtype), 15));
  tensors["scalar"] = Tensor::zeros(DType::F32, {});
  tensors["empty"] = Tensor::zeros(DType::F16, {2, 0});
  tensors["na\"me\\\n\x01 caf\xc3\xa9"] = Tensor::zeros(DType::U8, {1});
  return tensors;
}

TEST_F(SafetensorsFile, RoundTrip) {
  Tensors tensors = someTensors();
  Metadata metadata = {{"format", "pt"}, {"\"\n\t", "\\ \x7f caf\xc3\xa9"}};
  ASSERT_TRUE(write(path, tensors, metadata, error)) << error;
  Archive archive = readBack();
  EXPECT_EQ(archive.tensors, tensors);
  EXPECT_EQ(archive.metadata, metadata);
  EXPECT_EQ(names(), std::vector<std::string>{"file.safetensors"});
}

TEST_F(SafetensorsFile, RoundTripOfNothing) {
  ASSERT_TRUE(write(path, {}, {}, error)) << error;
  EXPECT_EQ(contents(path), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  Archive archive = readBack();
  EXPECT_TRUE(archive.tensors.empty());
}

// The bytes that the reference implementation writes.
TEST_F(SafetensorsFile, Bytes) {
  Tensors tensors = {{"a", Tensor::zeros(DType::U8, {1})},
                     {"b", Tensor::of(DType::F32, {}, std::vector{1.0})}};
  ASSERT_TRUE(write(path, tensors, {{"k", "v"}}, error)) << error;
  std::string header =
      R"({"__metadata__":{"k":"v"},)"
      R"("b":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})";
  header.resize(136, ' ');
  EXPECT_EQ(contents(path), std::string("\x88\0\0\0\0\0\0\0", 8) + header +
                                std::string("\0\0\x80\x3f\0", 5));
}

TEST_F(SafetensorsFile, ReadMissing) {
  EXPECT_FALSE(read(path, error));
  expectError({path, "cannot open", "No such file or directory"});
  EXPECT_FALSE(read("", error));
  expectError({"No such file or directory"});
}

TEST_F(SafetensorsFile, ReadDirectory) {
  EXPECT_FALSE(read(directory, error));
  expectError({directory, "found a directory", "wanted a regular file"});
}

TEST_F(SafetensorsFile, ReadPipeAndDevice) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(read(path, error)); // And does not wait for a writer.
  expectError({path, "a pipe", "wanted a regular file"});
  EXPECT_FALSE(read("/dev/zero", error));
  expectError({"/dev/zero", "a device", "wanted a regular file"});
}

TEST_F(SafetensorsFile, ReadUnreadable) {
  ASSERT_TRUE(write(path, {}, {}, error)) << error;
  fs::permissions(path, fs::perms::none);
  AsNobody nobody;
  if (!nobody.works)
    GTEST_SKIP() << "cannot become another user";
  EXPECT_FALSE(read(path, error));
  expectError({path, "cannot open", "Permission denied"});
}

TEST_F(SafetensorsFile, ReadBroken) {
  std::ofstream(path) << "1234567";
  EXPECT_FALSE(read(path, error));
  expectError({path, "found 7 bytes"});
  std::ofstream(path) << "no such format";
  EXPECT_FALSE(read(path, error));
  expectError({path, "header length", "at most 6"});
}

// Files of the kernel claim a page and hold less.
TEST_F(SafetensorsFile, ReadShort) {
  const char *online = "/sys/devices/system/cpu/online";
  std::error_code ignored;
  if (fs::file_size(online, ignored) != 4096 || contents(online).size() >= 8)
    GTEST_SKIP() << "no file that is shorter than it says";
  EXPECT_FALSE(read(online, error));
  expectError({online, "the end of the file at byte", "wanted 4096"});
}

TEST_F(SafetensorsFile, ReadLargerThanMemory) {
  std::ofstream(path) << "";
  if (::truncate(path.c_str(), off_t{1} << 42) != 0)
    GTEST_SKIP() << "the file system has no files this large";
  EXPECT_FALSE(read(path, error));
  expectError({path, "found 4398046511104 bytes", "the machine's memory"});
}

TEST_F(SafetensorsFile, WriteReplaces) {
  std::ofstream(path) << "old";
  ASSERT_TRUE(write(path, someTensors(), {}, error)) << error;
  EXPECT_TRUE(read(path, error)) << error;
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(SafetensorsFile, WriteHonoursUmask) {
  mode_t old = ::umask(027);
  EXPECT_TRUE(write(path, {}, {}, error)) << error;
  ::umask(old);
  EXPECT_EQ(int(fs::status(path).permissions()), 0640);
}

TEST_F(SafetensorsFile, WriteKeepsLinks) {
  std::string link = directory / "link";
  std::ofstream(path) << "old";
  fs::create_symlink(path, link);
  ASSERT_TRUE(write(link, {}, {}, error)) << error;
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(read(path, error)) << error;
  // Also one to a file that is not there, or not any more.
  fs::remove(path);
  ASSERT_TRUE(write(link, {}, {}, error)) << error;
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(read(path, error)) << error;
  std::string open = directory / "open";
  int file = ::open(open.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  fs::remove(open);
  fs::remove(link);
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), link);
  ASSERT_TRUE(write(link, {}, {}, error)) << error;
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_GT(::lseek(file, 0, SEEK_END), 0);
  ::close(file);
}

TEST_F(SafetensorsFile, WriteLongestName) {
  path = directory / std::string(255, 'x');
  EXPECT_TRUE(write(path, {}, {}, error)) << error;
  path += 'x';
  EXPECT_FALSE(write(path, {}, {}, error));
  expectError({"cannot write", "File name too long"});
  EXPECT_EQ(names().size(), 1u);
}

TEST_F(SafetensorsFile, WriteSkipsForeignTemporaries) {
  std::string taken = fmt::format(".burst-{}-0.tmp", ::getpid());
  std::ofstream(directory / taken) << "mine";
  ASSERT_TRUE(write(path, {}, {}, error)) << error;
  EXPECT_EQ(contents(directory / taken), "mine");
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(SafetensorsFile, WriteToRelativePath) {
  fs::path old = fs::current_path();
  fs::current_path(directory);
  EXPECT_TRUE(write("plain", {}, {}, error)) << error;
  EXPECT_FALSE(write("", {}, {}, error));
  expectError({"No such file or directory"});
  fs::current_path(old);
  EXPECT_EQ(names(), std::vector<std::string>{"plain"});
}

TEST_F(SafetensorsFile, WriteIntoMissingDirectory) {
  path = directory / "missing" / "file";
  EXPECT_FALSE(write(path, {}, {}, error));
  expectError({path, "cannot create", "No such file or directory"});
}

TEST_F(SafetensorsFile, WriteIntoUnwritableDirectory) {
  ASSERT_EQ(::chmod(directory.c_str(), 0555), 0);
  AsNobody nobody;
  if (!nobody.works)
    GTEST_SKIP() << "cannot become another user";
  EXPECT_FALSE(write(path, {}, {}, error));
  expectError({path, "cannot create", "Permission denied"});
  EXPECT_TRUE(names().empty());
}

TEST_F(SafetensorsFile, WriteOverDirectory) {
  EXPECT_FALSE(write(directory, {}, {}, error));
  expectError({directory, "found a directory", "wanted a file"});
  EXPECT_TRUE(names().empty());
}

TEST_F(SafetensorsFile, WriteToDevice) {
  AsNobody nobody; // Who could not replace a device, should the test fail.
  if (!nobody.works || !fs::is_character_file("/dev/full"))
    GTEST_SKIP() << "cannot become another user, or no /dev/full";
  EXPECT_FALSE(write("/dev/full", someTensors(), {}, error));
  expectError({"/dev/full", "cannot write", "No space left on device"});
  EXPECT_TRUE(write("/dev/null", someTensors(), {}, error)) << error;
}

// The disk is full halfway: the file that was there stays, whole and alone.
TEST_F(SafetensorsFile, WriteHalfway) {
  std::ofstream(path) << "old";
  rlimit old, low;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  low = old;
  low.rlim_cur = 1000;
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  bool written =
      write(path, {{"x", Tensor::zeros(DType::F32, {1000})}}, {}, error);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  expectError({path, "cannot write", "File too large"});
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(names().size(), 1u);
}

// Whatever ends the process: nothing has a name until it is whole.
TEST_F(SafetensorsFile, WriteKilled) {
  int nameless = ::open(directory.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (nameless < 0)
    GTEST_SKIP() << "no files without names in " << directory;
  ::close(nameless);
  std::ofstream(path) << "old";
  pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_DFL);
    rlimit low = {1000, 1000}, none = {0, 0};
    ::setrlimit(RLIMIT_FSIZE, &low);
    ::setrlimit(RLIMIT_CORE, &none);
    write(path, {{"x", Tensor::zeros(DType::F32, {1000})}}, {}, error);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(names().size(), 1u);
}

// What could not be read back is not written.
TEST_F(SafetensorsFile, WriteRefusesBrokenTensors) {
  Tensor tensor = Tensor::zeros(DType::F32, {2, 3});
  tensor.bytes.pop_back();
  EXPECT_FALSE(write(path, {{"q", tensor}}, {}, error));
  expectError({path, "tensor 'q'", "23 bytes", "wanted 24", "[2, 3] of F32"});
  EXPECT_FALSE(write(path, {{"q", {DType::U8, {-1}, {}}}}, {}, error));
  expectError({"tensor 'q'", "shape", "found -1"});
  EXPECT_FALSE(
      write(path, {{"q", {DType::BOOL, {1}, {std::byte{7}}}}}, {}, error));
  expectError({"tensor 'q'", "byte 7", "wanted 0 or 1"});
  EXPECT_FALSE(
      write(path, {{"__metadata__", {DType::U8, {0}, {}}}}, {}, error));
  expectError({"tensor '__metadata__'", "reserved"});
  EXPECT_FALSE(write(path, {{"\xff", {DType::U8, {0}, {}}}}, {}, error));
  expectError({path, "UTF-8"});
  EXPECT_FALSE(write(path, {}, {{"k", "\xc3"}}, error));
  expectError({path, "UTF-8"});
  EXPECT_FALSE(write(path, {}, {{"k", std::string(100'000'000, 'x')}}, error));
  expectError({"header length", "at most 100000000"});
  EXPECT_TRUE(names().empty());
}

} // namespace
