//===- LibraryTest.cpp - tables of libraries that may be missing ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/cuda/Library.h"
#include "Harness.h"
#include "burst/internal/nvrtc.h"
#include "runtime/src/cuda/Driver.h"
#include "runtime/src/cuda/Locate.h"
#include "runtime/src/cuda/Nccl.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

#define FAKE_FUNCTIONS(F)                                                      \
  F(int, fake_add, (int a, int b))                                             \
  F(const char *, fake_name, ())

struct Fake {
  const char *path;
  FAKE_FUNCTIONS(BURST_TABLE_MEMBER)
};

const char *const functions[] = {FAKE_FUNCTIONS(BURST_TABLE_NAME) nullptr};
const char *const tooMany[] = {"fake_add", "fake_multiply", nullptr};
const char *const names[] = {"libburst-fake.so.2", "libburst-fake.so", nullptr};

void expectHas(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "text: " << text << "\npart: " << part;
}

/// An environment variable, for the time of a test.
class Variable {
public:
  Variable(const char *name, const std::string &value) : name(name) {
    if (const char *old = getenv(name))
      before = old;
    hadValue = getenv(name);
    setenv(name, value.c_str(), 1);
  }
  Variable(const Variable &) = delete;
  ~Variable() {
    if (hadValue)
      setenv(name, before.c_str(), 1);
    else
      unsetenv(name);
  }

private:
  const char *name;
  std::string before;
  bool hadValue;
};

class LibraryTest : public testing::Test {
protected:
  LibraryTest() {
    library.what = "the fake";
    library.variable = "BURST_FAKE_LIBRARY";
    library.names = names;
    library.wheel = "fake/lib";
    library.functions = functions;
    library.table_bytes = sizeof(Fake);
    pthread_mutex_init(&library.mutex, nullptr);
  }

  ~LibraryTest() override {
    fs::remove_all(folder);
    if (library.table) {
      auto *table = static_cast<Fake *>(library.table);
      free(const_cast<char *>(table->path));
      free(table);
    }
    pthread_mutex_destroy(&library.mutex);
  }

  /// The table, or the text of the error.
  const Fake *get(std::string *message = nullptr) {
    const void *table = nullptr;
    burst_error *error = burst_library_table(&library, &table);
    if (error) {
      EXPECT_EQ(burst_error_code(error), BURST_SYSTEM);
      EXPECT_EQ(table, nullptr);
      if (message)
        *message = burst_error_message(error);
      else
        ADD_FAILURE() << burst_error_message(error);
      burst_error_destroy(error);
    }
    return static_cast<const Fake *>(table);
  }

  /// Where it is, before it is opened.
  std::string locate() {
    char *path = burst_library_locate(&library);
    EXPECT_FALSE(library.table);
    std::string found = path ? path : "";
    free(path);
    return found;
  }

  /// Copies the library to a folder below the test's own.
  std::string put(const std::string &below, const std::string &name) {
    fs::create_directories(folder / below);
    fs::copy_file(TEST_LIBRARY, folder / below / name);
    return fs::canonical(folder / below / name);
  }

  burst_library library = {};
  fs::path folder =
      fs::temp_directory_path() /
      ("burst-library-" + std::to_string(getpid()) + "-" +
       testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(LibraryTest, CallsFunctionsOfTheNamedLibrary) {
  Variable variable("BURST_FAKE_LIBRARY", TEST_LIBRARY);
  EXPECT_EQ(locate(), fs::canonical(TEST_LIBRARY).string());
  const Fake *fake = get();
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->fake_add(2, 3), 5);
  EXPECT_STREQ(fake->fake_name(), "fake");
  EXPECT_EQ(fake->path, fs::canonical(TEST_LIBRARY).string());
}

TEST_F(LibraryTest, OpensOnce) {
  static int opened;
  opened = 0;
  library.opened = [](void *) { ++opened; };
  Variable variable("BURST_FAKE_LIBRARY", TEST_LIBRARY);
  const void *tables[4] = {};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (const void *&table : tables)
    threads.emplace_back(
        [&] { burst_error_destroy(burst_library_table(&library, &table)); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(opened, 1);
  EXPECT_TRUE(tables[0]);
  for (const void *table : tables)
    EXPECT_EQ(table, tables[0]);
}

TEST_F(LibraryTest, FindsItInFoldersOfCuda) {
  std::string path = put("cuda/lib64", "libburst-fake.so");
  Variable variable("CUDA_HOME", folder / "cuda");
  EXPECT_EQ(locate(), path);
  const Fake *fake = get();
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->path, path);
}

TEST_F(LibraryTest, PrefersTheFirstName) {
  put("cuda/lib64", "libburst-fake.so");
  std::string path = put("cuda/lib64", "libburst-fake.so.2");
  Variable variable("CUDA_PATH", folder / "cuda");
  EXPECT_EQ(locate(), path);
  const Fake *fake = get();
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->path, path);
}

TEST_F(LibraryTest, FindsWhatSetupInstalled) {
  std::string path = put("cache/burst/cuda/fake/lib", "libburst-fake.so.2");
  Variable variable("XDG_CACHE_HOME", folder / "cache");
  EXPECT_EQ(locate(), path);
  const Fake *fake = get();
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->path, path);
}

TEST_F(LibraryTest, FindsWhatSetupInstalledBelowHome) {
  std::string path =
      put("home/.cache/burst/cuda/fake/lib", "libburst-fake.so.2");
  Variable cache("XDG_CACHE_HOME", ""), home("HOME", folder / "home");
  EXPECT_EQ(locate(), path);
  const Fake *fake = get();
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->path, path);
}

TEST_F(LibraryTest, SaysAllThatWasTried) {
  Variable cuda("CUDA_HOME", "/no/cuda"), cache("XDG_CACHE_HOME", "/no/cache");
  EXPECT_EQ(locate(), "");
  std::string message;
  EXPECT_FALSE(get(&message));
  expectHas(message, "the fake: not found; BURST_FAKE_LIBRARY can name it; "
                     "tried: libburst-fake.so.2, libburst-fake.so, ");
  expectHas(message, ", /no/cuda/lib64/libburst-fake.so.2, "
                     "/no/cuda/lib64/libburst-fake.so, ");
  expectHas(message, ", /usr/local/cuda/lib64/libburst-fake.so, "
                     "/no/cache/burst/cuda/fake/lib/");
}

TEST_F(LibraryTest, SaysWhyAFileWasNotTaken) {
  fs::create_directories(folder / "cuda/lib64");
  fs::path path = folder / "cuda/lib64/libburst-fake.so";
  std::ofstream(path) << "no library";
  Variable cuda("CUDA_HOME", folder / "cuda");
  std::string message;
  EXPECT_FALSE(get(&message));
  expectHas(message, path.string() + " (" + path.string() + ": ");
  // Nothing is remembered of a search that failed.
  fs::remove(path);
  put("cuda/lib64", "libburst-fake.so");
  EXPECT_TRUE(get());
}

/// What has no end, or waits for who writes to it, is not opened.
TEST_F(LibraryTest, TakesRegularFilesAlone) {
  fs::create_directories(folder);
  fs::path pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string message;
  for (auto [path, kind] :
       {std::pair(fs::path("/dev/zero"), "a device"), std::pair(pipe, "a pipe"),
        std::pair(folder, "a directory")}) {
    Variable variable("BURST_FAKE_LIBRARY", path);
    EXPECT_EQ(locate(), "");
    EXPECT_FALSE(get(&message));
    EXPECT_EQ(message, "the fake: cannot open what BURST_FAKE_LIBRARY names: " +
                           path.string() + " (found " + kind +
                           ", wanted a regular file)");
  }
}

TEST_F(LibraryTest, TriesNothingElseThanTheNamedLibrary) {
  put("cuda/lib64", "libburst-fake.so");
  Variable cuda("CUDA_HOME", folder / "cuda");
  Variable variable("BURST_FAKE_LIBRARY", "/no/library.so");
  EXPECT_EQ(locate(), "");
  std::string message;
  EXPECT_FALSE(get(&message));
  EXPECT_EQ(message, "the fake: cannot open what BURST_FAKE_LIBRARY names: "
                     "/no/library.so");
}

TEST_F(LibraryTest, NamesTheMissingFunction) {
  library.functions = tooMany;
  Variable variable("BURST_FAKE_LIBRARY", TEST_LIBRARY);
  std::string message;
  EXPECT_FALSE(get(&message));
  EXPECT_EQ(message, "the fake: " + fs::canonical(TEST_LIBRARY).string() +
                         " has no function fake_multiply");
}

TEST_F(LibraryTest, TakesAStandIn) {
  Fake standIn = {nullptr, [](int a, int b) { return a * b; }, nullptr};
  burst_library_stand_in(&library, &standIn);
  const Fake *fake = get();
  ASSERT_EQ(fake, &standIn);
  EXPECT_EQ(fake->fake_add(2, 3), 6);
  burst_library_stand_in(&library, nullptr);
  Variable variable("BURST_FAKE_LIBRARY", TEST_LIBRARY);
  fake = get();
  ASSERT_TRUE(fake);
  EXPECT_EQ(fake->fake_add(2, 3), 5);
}

TEST_F(LibraryTest, IsLocatedWhereItIsOpen) {
  Variable variable("BURST_FAKE_LIBRARY", TEST_LIBRARY);
  ASSERT_TRUE(get());
  Variable other("BURST_FAKE_LIBRARY", "/no/library.so");
  char *path = burst_library_locate(&library);
  ASSERT_TRUE(path);
  EXPECT_EQ(fs::canonical(TEST_LIBRARY), path);
  free(path);
}

// In a folder of the system, in one that only the loader's cache may name, and
// open already.
TEST(LocateTest, FindsWhatTheLoaderOpens) {
  for (const char *name :
       {"libBrokenLocale.so.1", "libcudart.so.13", "libc.so.6"}) {
    char *located = burst_locate(name), *opened = nullptr;
    if (void *object = dlopen(name, RTLD_LAZY)) {
      opened = burst_path_of(object);
      dlclose(object);
    }
    EXPECT_STREQ(located, opened) << name;
    free(located);
    free(opened);
  }
  EXPECT_EQ(burst_locate("libburst-fake.so.2"), nullptr);
}

/// What is said of each of CUDA's libraries when another one is named.
template <typename Table>
void expectMissing(burst_error *get(const Table **), const char *variable,
                   const std::string &what, const std::string &function) {
  Variable named(variable, TEST_LIBRARY);
  const Table *table = nullptr;
  burst_error *error = get(&table);
  ASSERT_TRUE(error);
  EXPECT_EQ(burst_error_message(error),
            what + ": " + fs::canonical(TEST_LIBRARY).string() +
                " has no function " + function);
  EXPECT_FALSE(table);
  burst_error_destroy(error);
}

TEST(CudaLibrariesTest, HaveVariables) {
  expectMissing(burst_nvrtc_table, "BURST_NVRTC_LIBRARY", "NVRTC",
                "nvrtcVersion");
  expectMissing(burst_nccl_table, "BURST_NCCL_LIBRARY", "NCCL",
                "ncclGetVersion");
  expectMissing(burst_driver_table, "BURST_CUDA_DRIVER_LIBRARY",
                "the driver of CUDA", "cuGetErrorName");
}

TEST(CudaLibrariesTest, TakeStandIns) {
  burst_nvrtc nvrtc = {};
  burst_nccl nccl = {};
  burst_driver driver = {};
  burst_nvrtc_stand_in(&nvrtc);
  burst_nccl_stand_in(&nccl);
  burst_driver_stand_in(&driver);
  const burst_nvrtc *nvrtcTable = nullptr;
  const burst_nccl *ncclTable = nullptr;
  const burst_driver *driverTable = nullptr;
  EXPECT_FALSE(burst_nvrtc_table(&nvrtcTable));
  EXPECT_FALSE(burst_nccl_table(&ncclTable));
  EXPECT_FALSE(burst_driver_table(&driverTable));
  EXPECT_EQ(nvrtcTable, &nvrtc);
  EXPECT_EQ(ncclTable, &nccl);
  EXPECT_EQ(driverTable, &driver);
  burst_nvrtc_stand_in(nullptr);
  burst_nccl_stand_in(nullptr);
  burst_driver_stand_in(nullptr);
}

} // namespace
