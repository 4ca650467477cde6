//===- DiskCacheTest.cpp - results that outlive a process -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Scratch.h"

#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace burst::cuda;
using namespace burst::test;
namespace fs = std::filesystem;

namespace {

std::string readFile(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator(stream), {}};
}

void writeFile(const fs::path &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(DiskCacheTest, FindsWhatWasPut) {
  ScratchCache scratch;
  DiskCache cache(scratch.config());
  std::string binary("\0\1\n\xff", 4);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.put("key", binary);
  cache.put("other", "");
  EXPECT_EQ(cache.find("key"), binary);
  EXPECT_EQ(cache.find("other"), "");
  EXPECT_EQ(cache.find("third"), std::nullopt);
  // Another process would begin so.
  EXPECT_EQ(DiskCache(scratch.config()).find("key"), binary);
  EXPECT_EQ(scratch.entries().size(), 2U);
  EXPECT_TRUE(scratch.warnings.empty());
}

TEST(DiskCacheTest, NoticesDamage) {
  ScratchCache scratch;
  DiskCache cache(scratch.config());
  cache.put("key", "value");
  ASSERT_EQ(scratch.entries().size(), 1U);
  fs::path path = scratch.entries()[0];
  const std::string whole = readFile(path);
  std::vector<std::string> damaged = {"", whole.substr(0, 7), whole + "x"};
  for (size_t i = 0; i < whole.size(); ++i) {
    damaged.push_back(whole.substr(0, i));
    damaged.push_back(whole);
    damaged.back()[i] ^= 1;
  }
  for (const std::string &bytes : damaged) {
    writeFile(path, bytes);
    scratch.warnings.clear();
    EXPECT_EQ(cache.find("key"), std::nullopt) << llvm::toHex(bytes);
    ASSERT_EQ(scratch.warnings.size(), 1U);
    expectHas(scratch.warnings[0],
              "removed a damaged entry, " + path.filename().string());
    EXPECT_FALSE(fs::exists(path));
    cache.put("key", "value");
    EXPECT_EQ(cache.find("key"), "value");
  }
}

TEST(DiskCacheTest, NoticesAnEntryUnderTheNameOfAnother) {
  ScratchCache scratch;
  DiskCache cache(scratch.config());
  cache.put("key", "value");
  fs::path key = scratch.entries()[0];
  std::string bytes = readFile(key);
  fs::remove(key);
  cache.put("other", "value");
  writeFile(scratch.entries()[0], bytes);
  EXPECT_EQ(cache.find("other"), std::nullopt);
  EXPECT_EQ(scratch.warnings.size(), 1U);
}

TEST(DiskCacheTest, LeavesSignalsToTheHost) {
  // Whoever runs the tests may ignore some.
  auto handlers = [] {
    std::vector<void (*)(int)> handlers;
    for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) {
      struct sigaction action = {};
      EXPECT_EQ(sigaction(signal, nullptr, &action), 0);
      handlers.push_back(action.sa_handler);
    }
    return handlers;
  };
  auto before = handlers();
  ScratchCache scratch;
  DiskCache cache(scratch.config());
  cache.put("key", "value");
  EXPECT_EQ(cache.find("key"), "value");
  EXPECT_EQ(handlers(), before);
}

TEST(DiskCacheTest, DropsWhatIsUsedLeast) {
  ScratchCache scratch;
  DiskCache cache(scratch.config(10000));
  std::string value(3000, 'x');
  auto put = [&](const std::string &key) {
    // The clock of a file system is coarse.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    cache.put(key, value);
  };
  put("a");
  put("b");
  put("c");
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(cache.find("a"), value);
  put("d");
  EXPECT_EQ(cache.find("b"), std::nullopt);
  EXPECT_EQ(cache.find("a"), value);
  EXPECT_EQ(cache.find("c"), value);
  EXPECT_EQ(cache.find("d"), value);
  EXPECT_EQ(scratch.entries().size(), 3U);
}

TEST(DiskCacheTest, DropsWhatAKilledProcessLeft) {
  ScratchCache scratch;
  DiskCache cache(scratch.config(10000));
  fs::create_directories(scratch.path / "cache");
  fs::path left = scratch.path / "cache" / "llvmcache-new-1a2b3c4d";
  writeFile(left, std::string(9000, 'x'));
  writeFile(scratch.path / "cache" / "notes.txt", std::string(9000, 'x'));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  cache.put("key", std::string(3000, 'x'));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(scratch.path / "cache" / "notes.txt"));
  EXPECT_TRUE(cache.find("key"));
}

TEST(DiskCacheTest, IsOffWithoutBytes) {
  ScratchCache scratch;
  DiskCache cache(scratch.config(0));
  cache.put("key", "value");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_FALSE(fs::exists(scratch.path / "cache"));
}

TEST(DiskCacheTest, WarnsWhereItCannotWrite) {
  ScratchCache scratch;
  writeFile(scratch.path / "cache", "a file where the directory would be");
  DiskCache cache(scratch.config());
  cache.put("key", "value");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.put("other", "value");
  std::string directory = scratch.path / "cache";
  EXPECT_EQ(scratch.warnings,
            std::vector<std::string>{"cache " + directory + ": '" + directory +
                                     "': Not a directory"});
}

TEST(DiskCacheTest, WarnsOnceOfAFullDisk) {
  ScratchCache scratch;
  DiskCache cache(scratch.config());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit few = {100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  cache.put("key", std::string(200, 'x'));
  cache.put("other", std::string(200, 'x'));
  std::signal(SIGXFSZ, handler);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_EQ(scratch.warnings.size(), 1U);
  expectHas(scratch.warnings[0], ": File too large");
  EXPECT_TRUE(scratch.entries().empty());
  cache.put("key", "value");
  EXPECT_EQ(cache.find("key"), "value");
}

/// Puts and finds keys that others put and find too. Whether all that was found
/// was right.
bool hammer(const CacheConfig &config, unsigned seed) {
  DiskCache cache(config);
  for (unsigned i = 0; i < 300; ++i) {
    unsigned key = (i * 7 + seed) % 20;
    std::string value(500 + 40 * key, static_cast<char>('a' + key));
    std::string name = "key " + std::to_string(key);
    if (std::optional<std::string> found = cache.find(name)) {
      if (*found != value)
        return false;
    } else {
      cache.put(name, value);
    }
  }
  return true;
}

TEST(DiskCacheTest, ServesProcessesAtATime) {
  ScratchCache scratch;
  CacheConfig config = scratch.config(12000); // of about 18000
  static bool warned;
  warned = false;
  config.warn = [](llvm::StringRef message) {
    // An entry may be pruned before its writer reads it back.
    if (message.contains("damaged"))
      warned = true;
  };
  std::vector<pid_t> children;
  for (unsigned seed = 0; seed < 4; ++seed) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      _exit(hammer(config, seed) && !warned ? 0 : 1);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  uintmax_t bytes = 0;
  for (const fs::path &entry : scratch.entries())
    bytes += fs::file_size(entry);
  EXPECT_GT(bytes, 0U);
  EXPECT_LE(bytes, 12000U);
}

TEST(DiskCacheTest, ServesThreadsAtATime) {
  ScratchCache scratch;
  CacheConfig config = scratch.config();
  config.warn = [](llvm::StringRef message) { ADD_FAILURE() << message.str(); };
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] { EXPECT_TRUE(hammer(config, seed)); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(scratch.entries().size(), 20U);
}

/// Whether a cache that is not used says so once, and costs nothing else.
void expectUnused(const ScratchCache &scratch, const DiskCache &cache,
                  const std::string &why) {
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_EQ(cache.find("other"), std::nullopt);
  cache.put("third", "value");
  ASSERT_EQ(scratch.warnings.size(), 1U);
  expectHas(scratch.warnings[0], why);
}

TEST(DiskCacheTest, MakesWhatIsItsUsersAlone) {
  ScratchCache scratch;
  mode_t before = umask(0);
  DiskCache(scratch.config()).put("key", "value");
  umask(before);
  EXPECT_EQ(fs::status(scratch.entries()[0]).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(scratch.config().directory).permissions(),
            fs::perms::owner_all);
}

TEST(DiskCacheTest, DoesNotUseWhatOthersCanWrite) {
  for (fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
    ScratchCache scratch;
    DiskCache(scratch.config()).put("key", "value");
    fs::path entry = scratch.entries()[0];
    fs::permissions(entry, others, fs::perm_options::add);
    DiskCache cache(scratch.config());
    EXPECT_EQ(cache.find("key"), std::nullopt);
    ASSERT_EQ(scratch.warnings.size(), 1U);
    expectHas(scratch.warnings[0], "can be written by others");
    cache.put("key", "value"); // replaces it
    EXPECT_EQ(cache.find("key"), "value");
    scratch.warnings.clear();
    fs::permissions(scratch.config().directory, others, fs::perm_options::add);
    expectUnused(
        scratch, DiskCache(scratch.config()),
        "it can be written by others: it is not used until chmod go-w");
    EXPECT_EQ(scratch.entries().size(), 1U);
  }
}

TEST(DiskCacheTest, DoesNotUseWhatIsOfAnotherUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  ScratchCache scratch;
  DiskCache(scratch.config()).put("key", "value");
  ASSERT_EQ(chown(scratch.entries()[0].c_str(), 12345, 0), 0);
  DiskCache cache(scratch.config());
  EXPECT_EQ(cache.find("key"), std::nullopt);
  ASSERT_EQ(scratch.warnings.size(), 1U);
  expectHas(scratch.warnings[0], "belongs to user 12345, wanted 0");
  scratch.warnings.clear();
  ASSERT_EQ(chown(scratch.config().directory.c_str(), 12345, 0), 0);
  expectUnused(scratch, DiskCache(scratch.config()),
               "belongs to user 12345, wanted 0: it is not used");
}

TEST(DiskCacheTest, DoesNotWaitForPipesNorFollowLinks) {
  ScratchCache scratch;
  DiskCache cache(scratch.config());
  cache.put("key", "value");
  fs::path entry = scratch.entries()[0];
  const std::string whole = readFile(entry);
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.put("key", "value");
  EXPECT_EQ(cache.find("key"), "value");
  fs::remove(entry);
  writeFile(scratch.path / "elsewhere", whole);
  fs::create_symlink(scratch.path / "elsewhere", entry);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  fs::path stamp = fs::path(scratch.config().directory) / "llvmcache.timestamp";
  fs::remove(stamp);
  ASSERT_EQ(mkfifo(stamp.c_str(), 0600), 0);
  cache.put("key", "value");
  EXPECT_EQ(cache.find("key"), "value");
  EXPECT_EQ(scratch.warnings.size(), 1U);
}

/// What the environment says where only these variables of burst are set.
std::string fromEnvironment(const std::map<std::string, std::string> &set) {
  std::map<std::string, std::optional<std::string>> before;
  for (const char *name :
       {"BURST_CACHE_DIR", "BURST_CACHE_BYTES", "XDG_CACHE_HOME"}) {
    const char *value = getenv(name);
    before[name] = value ? std::optional(std::string(value)) : std::nullopt;
    auto given = set.find(name);
    if (given == set.end())
      unsetenv(name);
    else
      setenv(name, given->second.c_str(), 1);
  }
  llvm::Expected<CacheConfig> config = CacheConfig::fromEnvironment();
  for (const auto &[name, value] : before) {
    if (value)
      setenv(name.c_str(), value->c_str(), 1);
    else
      unsetenv(name.c_str());
  }
  if (!config)
    return toString(config.takeError());
  return config->directory + ", " + std::to_string(config->bytes);
}

TEST(CacheConfigTest, ReadsTheEnvironment) {
  EXPECT_EQ(fromEnvironment({{"BURST_CACHE_DIR", "/a/b"}}), "/a/b, 536870912");
  EXPECT_EQ(fromEnvironment(
                {{"BURST_CACHE_DIR", "/a/b"}, {"BURST_CACHE_BYTES", "1000"}}),
            "/a/b, 1000");
  EXPECT_EQ(fromEnvironment({{"XDG_CACHE_HOME", "/x"}}),
            "/x/burst/compiled, 536870912");
  EXPECT_EQ(
      fromEnvironment({{"XDG_CACHE_HOME", "/x"}, {"BURST_CACHE_BYTES", "0"}}),
      "/x/burst/compiled, 0");
  EXPECT_EQ(fromEnvironment({{"BURST_CACHE_BYTES", "many"}}),
            "BURST_CACHE_BYTES: 'many', wanted a number of bytes");
}

} // namespace
