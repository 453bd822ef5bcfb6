// The store of compiled code: many processes, damage, limits, keys and archives.
#include "sinter/runtime/code_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/runtime/store_file.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::runtime {
namespace {

namespace fs = std::filesystem;

std::string key_of(const std::string& source, const std::string& compiler = "clang 19",
                   const std::string& kind = "cpu-code") {
  return make_key({{"kind", kind}, {"source", source}, {"compiler", compiler}, {"target", "skylake"}});
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
void write(const fs::path& path, const std::string& text) {
  fs::remove(path);  // some file systems wait for the disk where a file is overwritten
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// With other bits there, or where none are given cut off.
std::string damaged(std::string bytes, size_t at, size_t bits) {
  if (bits == 0)
    bytes.resize(at);
  else
    bytes[at] = char(bytes[at] ^ bits);
  return bytes;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What `function` writes to stderr.
std::string said(auto&& function) {
  testing::internal::CaptureStderr();
  function();
  return testing::internal::GetCapturedStderr();
}

class CodeStoreTest : public testing::Test {
 protected:
  std::string path() const { return (directory_ / "cache").string(); }
  void age(const std::string& file, int64_t seconds) const {
    timespec times[2] = {{std::time(nullptr) - seconds, 0}, {std::time(nullptr) - seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  }

  OwnDirectory own_;
  const fs::path directory_ = own_.path();
};

// A child that runs `body` and ends with its answer.
pid_t start(auto&& body) {
  pid_t child = fork();
  if (child != 0) return child;
  int status = 99;
  try {
    status = body();
  } catch (...) {
  }
  _exit(status);
}
int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// As a toolchain does it; compiles are noted in a file.
std::string get_or_make(const CodeStore& store, const std::string& key, const fs::path& compiles) {
  if (auto bytes = store.load(key)) return *bytes;
  auto lock = store.lock(key);
  if (auto bytes = store.load(key)) return *bytes;
  store.note_miss(key, "kernel");
  store_file::Descriptor file(open(compiles.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  store_file::write_all(file.fd, std::string(key_part(key, "source")) + "\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  store.save(key, "code of " + key, "kernel");
  return "code of " + key;
}

TEST_F(CodeStoreTest, TwoHundredProcessesMakeEachEntryOnce) {
  std::vector<pid_t> children;
  int gate[2];  // all begin when the parent closes it
  ASSERT_EQ(pipe(gate), 0);
  for (int i = 0; i < 200; ++i)
    children.push_back(start([&] {
      char byte;
      close(gate[1]);
      if (::read(gate[0], &byte, 1) != 0) return 2;
      CodeStore store(path());
      for (auto source : {"a", "b", "c", "d"})
        if (get_or_make(store, key_of(source), directory_ / "compiles") != "code of " + key_of(source)) return 1;
      return 0;
    }));
  close(gate[1]);
  for (pid_t child : children) EXPECT_EQ(end_of(child), 0);
  close(gate[0]);
  std::string compiles = content(directory_ / "compiles");
  EXPECT_EQ(std::count(compiles.begin(), compiles.end(), '\n'), 4) << compiles;
  for (auto source : {"a\n", "b\n", "c\n", "d\n"}) EXPECT_TRUE(contains(compiles, source)) << compiles;
  for (auto& item : fs::directory_iterator(path())) EXPECT_NE(item.path().extension(), ".tmp");
}

TEST_F(CodeStoreTest, ThreadsTakeTurnsToo) {
  CodeStore store(path());
  int inside = 0, most = 0;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      auto lock = store.lock("k");
      EXPECT_TRUE(lock.held());
      {
        std::lock_guard guard(mutex);
        most = std::max(most, ++inside);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::lock_guard guard(mutex);
      --inside;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  auto one = store.lock("one"), two = store.lock("two");  // keys do not wait for each other
  EXPECT_TRUE(one.held() && two.held());
}

TEST_F(CodeStoreTest, AKilledHolderBlocksNobody) {
  CodeStore store(path());
  for (int round = 0; round < 5; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    pid_t holder = start([&] {
      auto lock = store.lock("k");
      bool told = ::write(ready[1], "x", 1) == 1;
      while (told) pause();
      return 1;
    });
    char byte;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    pid_t waiter = start([&] { return store.lock("k").held() ? 0 : 1; });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(waitpid(waiter, nullptr, WNOHANG), 0) << "the lock was free";
    kill(holder, SIGKILL);
    EXPECT_EQ(end_of(holder), 1000 + SIGKILL);
    EXPECT_EQ(end_of(waiter), 0);
    close(ready[0]);
    close(ready[1]);
  }
}

TEST_F(CodeStoreTest, KilledWritersLeaveAStoreThatWorks) {
  std::string large(200000, 'x');
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    pid_t writer = start([&] {
      CodeStore store(path());
      for (;;) {
        auto lock = store.lock("k");
        store.save("k", large);
      }
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 4000));
    kill(writer, SIGKILL);
    end_of(writer);
    CodeStore store(path());
    auto bytes = store.load("k");
    EXPECT_TRUE(!bytes || *bytes == large);
    EXPECT_TRUE(store.lock("k").held());
  }
  CodeStore(path()).save("k", "new");
  EXPECT_EQ(CodeStore(path()).load("k"), "new");
}

TEST_F(CodeStoreTest, ThousandDamagesNeverGiveWrongBytes) {
  CodeStore store(path());
  std::string key = key_of("text"), bytes = "the machine code of a kernel";
  store.save(key, bytes, "k1_add");
  std::string file = store.path_of(key), good = content(file);
  std::mt19937 random(3);
  std::string messages = said([&] {
    for (int i = 0; i < 1000; ++i) {
      size_t at = random() % good.size();
      write(file, damaged(good, at, i % 3 == 0 ? 0 : 1 + random() % 255));
      ASSERT_EQ(store.load(key), std::nullopt) << at;
      if (i % 10 == 0) {
        store.note_miss(key, "k1_add");
        EXPECT_LE(store.entries().size(), 1u);
        EXPECT_NE(store.why_miss(key), "");
      }
    }
  });
  size_t first = messages.find("cannot be read");
  EXPECT_NE(first, std::string::npos) << messages;
  EXPECT_EQ(messages.find("cannot be read", first + 1), std::string::npos) << messages;
  store.save(key, bytes, "k1_add");
  EXPECT_EQ(store.load(key), bytes);
}

TEST_F(CodeStoreTest, DamagedBookkeepingHarmsNothing) {
  std::mt19937 random(5);
  CodeStore store(path(), 1 << 20);
  store.save("k", "bytes");
  for (int i = 0; i < 50; ++i) {
    for (auto name : {"/usage", "/misses", "/locks"}) {
      std::string noise(random() % 40, 0);
      for (char& c : noise) c = char(random());
      write(path() + name, noise);
    }
    store.recent_misses();
    store.note_miss("kind=x\n", "x");
    store.save("k", "bytes");
    EXPECT_EQ(store.load("k"), "bytes");
  }
}

TEST_F(CodeStoreTest, LeastRecentlyUsedEntriesGo) {
  CodeStore store(path(), 100000);
  std::string bytes(9000, 'x');
  for (int i = 0; i < 10; ++i) {
    store.save(format("{}", i), bytes);
    age(store.path_of(format("{}", i)), 100000 - i);
  }
  EXPECT_EQ(store.entries().size(), 10u);
  EXPECT_TRUE(store.load("0"));  // used just now
  write(path() + "/half.code.1.0.tmp", "left by a dead process");
  age(path() + "/half.code.1.0.tmp", 10000);
  store.save("10", bytes), store.save("11", bytes);  // the second one is beyond the limit
  EXPECT_FALSE(fs::exists(path() + "/half.code.1.0.tmp"));
  EXPECT_TRUE(store.load("0"));
  EXPECT_TRUE(store.load("11"));
  EXPECT_FALSE(store.load("1"));
  EXPECT_FALSE(store.load("2"));
  EXPECT_TRUE(store.load("9"));
  uint64_t total = 0;
  for (auto& entry : store.entries()) total += entry.size;
  EXPECT_LE(total, 80000u);
  CodeStore unlimited(path(), 0);
  for (int i = 20; i < 40; ++i) unlimited.save(format("{}", i), bytes);
  EXPECT_GT(unlimited.entries().size(), 20u);
}

TEST_F(CodeStoreTest, TheLimitComesFromTheEnvironment) {
  setenv("SINTER_CACHE_LIMIT_MB", "3", 1);
  EXPECT_EQ(CodeStore(path()).limit(), 3u << 20);
  setenv("SINTER_CACHE_LIMIT_MB", "lots", 1);
  std::string warning = said([&] { EXPECT_EQ(CodeStore(path()).limit(), uint64_t(4096) << 20); });
  EXPECT_TRUE(contains(warning, "'lots'")) << warning;
  unsetenv("SINTER_CACHE_LIMIT_MB");
}

TEST_F(CodeStoreTest, AReadOnlyDirectoryIsRead) {
  fs::create_directory(path());
  // Permissions do not bind root, so the child is somebody else.
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path().c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  }
  pid_t child = start([&] {
    if (geteuid() == 0 && setuid(kNobody) != 0) return 9;
    CodeStore writer(path());
    writer.save("k", "bytes");
    if (chmod(path().c_str(), 0500) != 0) return 8;
    unlink((path() + "/locks").c_str());
    CodeStore store(path());
    if (store.load("k") != "bytes") return 1;
    store.save("new", "bytes");
    if (store.load("new")) return 2;
    store.lock("new");
    store.note_miss("new", "new");
    store.clear();
    return store.load("k") == "bytes" ? 0 : 3;
  });
  EXPECT_EQ(end_of(child), 0);
}

TEST_F(CodeStoreTest, AFullDiskIsTolerated) {
  CodeStore store(path());
  store.save("small", "bytes");
  pid_t child = start([&] {
    // The nearest thing to a full disk: files may not grow beyond a size.
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 9;
    store.save("large", std::string(100000, 'x'));
    if (store.load("large")) return 1;
    for (auto& item : fs::directory_iterator(path()))
      if (item.path().extension() == ".tmp") return 2;
    return store.load("small") == "bytes" ? 0 : 3;
  });
  EXPECT_EQ(end_of(child), 0);
}

TEST_F(CodeStoreTest, FilesThatOthersMayWriteAreRefused) {
  CodeStore store(path());
  for (auto key : {"open", "foreign", "link", "fifo"}) store.save(key, "bytes");
  chmod(store.path_of("open").c_str(), 0666);
  fs::rename(store.path_of("link"), directory_ / "elsewhere");
  fs::create_symlink(directory_ / "elsewhere", store.path_of("link"));
  unlink(store.path_of("fifo").c_str());
  ASSERT_EQ(mkfifo(store.path_of("fifo").c_str(), 0600), 0);
  std::string warning = said([&] {
    EXPECT_FALSE(store.load("open"));
    EXPECT_FALSE(store.load("link"));
    EXPECT_FALSE(store.load("fifo"));
  });
  EXPECT_TRUE(contains(warning, "everyone may write to it")) << warning;
  EXPECT_TRUE(contains(store.why_miss("open"), "everyone may write")) << store.why_miss("open");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(store.path_of("foreign").c_str(), 65534, 65534), 0);
    EXPECT_FALSE(store.load("foreign"));
  }
  for (auto key : {"open", "foreign", "link", "fifo"}) {
    store.save(key, "own");
    EXPECT_EQ(store.load(key), "own") << key;
  }
  fs::create_directory(directory_ / "open");
  chmod((directory_ / "open").c_str(), 0777);
  EXPECT_TRUE(contains(said([&] { EXPECT_EQ(CodeStore(directory_ / "open").directory(), ""); }), "everyone may write"));
}

TEST_F(CodeStoreTest, OtherVersionsAreLeftAlone) {
  CodeStore store(path());
  std::string key = key_of("text");
  store.save(key, "bytes");
  std::string file = content(store.path_of(key));
  uint32_t version = store_file::kVersion + 1;
  std::memcpy(file.data() + 8, &version, sizeof version);
  for (auto& other : {file, "SINTERC1" + std::string(100, 'x')}) {
    write(store.path_of(key), other);
    EXPECT_EQ(said([&] { EXPECT_FALSE(store.load(key)); }), "");
    EXPECT_TRUE(contains(store.why_miss(key), "another version"));
    EXPECT_EQ(store.entries().at(0).problem, "another version");
  }
}

TEST_F(CodeStoreTest, WhyMissNamesThePartsThatDiffer) {
  CodeStore store(path());
  EXPECT_TRUE(contains(store.why_miss(key_of("a")), "no other entry of kind cpu-code"));
  store.save(key_of("a", "clang 18"), "", "k1_add");
  store.save(key_of("b", "clang 19"), "", "k2_mul");
  store.save(key_of("a", "clang 19", "cuda-code"), "", "other kind");
  // Two entries differ in one part each: the one with the same source is nearer.
  EXPECT_EQ(store.why_miss(key_of("a")),
            "it differs from the nearest entry (k1_add) in compiler: clang 19, there clang 18");
  EXPECT_EQ(store.why_miss(key_of("b")),
            "it differs from the nearest entry (k1_add) in source: b, there a; "
            "compiler: clang 19, there clang 18");
  EXPECT_TRUE(contains(store.why_miss(key_of("c")), "(k2_mul) in source: c, there b")) << store.why_miss(key_of("c"));
  EXPECT_TRUE(contains(store.why_miss(key_of("b") + "lanes=16\n"), "in lanes: 16, there none"));

  set_logs("cache");
  std::string log = said([&] { store.note_miss(key_of("a"), "k9_add"); });
  set_logs("");
  EXPECT_TRUE(contains(log, "k9_add is not in the cache")) << log;
  EXPECT_TRUE(contains(log, "clang 18")) << log;
  auto misses = store.recent_misses();
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].key, key_of("a"));
  EXPECT_EQ(misses[0].label, "k9_add");
  EXPECT_EQ(misses[0].problem, "");
}

TEST_F(CodeStoreTest, TheListOfMissesIsBounded) {
  CodeStore store(path());
  for (int i = 0; i < 3000; ++i) store.note_miss(key_of(format("{}", i), std::string(100, 'c')), "label");
  EXPECT_LT(fs::file_size(path() + "/misses"), 300000u);
  auto misses = store.recent_misses();
  EXPECT_GT(misses.size(), 300u);
  EXPECT_EQ(key_part(misses.back().key, "source"), "2999");
}

TEST_F(CodeStoreTest, KeysAreNamedParts) {
  EXPECT_EQ(make_key({{"kind", "x"}, {"a", "1\n2"}}), "kind=x\na=1 2\n");
  std::string key = make_key({{"kind", "x"}, {"ab", "=1"}, {"a", "2"}});
  EXPECT_EQ(key_part(key, "a"), "2");
  EXPECT_EQ(key_part(key, "ab"), "=1");
  EXPECT_EQ(key_part(key, "b"), "");
  EXPECT_EQ(key_part("", "b"), "");
  EXPECT_NE(text_part("one"), text_part("two"));
}

TEST_F(CodeStoreTest, ArchivesTravel) {
  CodeStore from(path());
  std::map<std::string, std::string> all;
  for (int i = 0; i < 20; ++i)
    all[key_of(format("{}", i), "c", i % 2 ? "odd" : "even")] = std::string(size_t(i * 37), char(i));
  for (auto& [key, bytes] : all) from.save(key, bytes, "label");
  std::string file = directory_ / "archive";
  EXPECT_EQ(from.export_to(file), 20u);

  CodeStore to(directory_ / "other");
  to.save(all.begin()->first, "stays", "mine");
  EXPECT_EQ(to.import_from(file), 19u);
  EXPECT_EQ(to.import_from(file), 0u);
  for (auto& [key, bytes] : all) EXPECT_EQ(to.load(key), key == all.begin()->first ? "stays" : bytes);
  EXPECT_EQ(to.entries().at(0).label.empty(), false);

  EXPECT_EQ(from.export_to(file, "odd"), 10u);
  CodeStore third(directory_ / "third");
  EXPECT_EQ(third.import_from(file), 10u);
  EXPECT_EQ(third.clear("even"), 0u);
  EXPECT_EQ(third.clear("odd"), 10u);
  EXPECT_TRUE(contains(error_of([&] { from.export_to(directory_ / "no" / "where"); }), "cannot be written"));
}

TEST_F(CodeStoreTest, BadArchivesAreRefusedWhole) {
  CodeStore from(path());
  for (int i = 0; i < 5; ++i) from.save(key_of(format("{}", i)), std::string(40, char('a' + i)), "label");
  std::string file = directory_ / "archive";
  from.export_to(file);
  std::string good = content(file);
  CodeStore to(directory_ / "other");
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    size_t at = random() % good.size();
    write(file, damaged(good, at, i % 3 == 0 ? 0 : 1 + random() % 255));
    ASSERT_THROW(to.import_from(file), Error) << at;
    ASSERT_TRUE(to.entries().empty()) << at;
  }
  write(file, good + "x");
  EXPECT_TRUE(contains(error_of([&] { to.import_from(file); }), "damaged"));
  std::string newer = good;
  newer[8] = 9;
  write(file, newer);
  EXPECT_TRUE(contains(error_of([&] { to.import_from(file); }), "version 9.2, this Sinter reads 1.2"));
  write(file, "something else entirely, and long enough to be a header");
  EXPECT_TRUE(contains(error_of([&] { to.import_from(file); }), "no artifacts"));
  EXPECT_TRUE(contains(error_of([&] { to.import_from(directory_ / "none"); }), "No such file"));
  EXPECT_TRUE(contains(error_of([&] { to.import_from(directory_); }), "not a plain file"));
  write(file, good);
  EXPECT_EQ(to.import_from(file), 5u);
}

TEST_F(CodeStoreTest, NoDirectoryMeansNoStore) {
  CodeStore store("");
  store.save("k", "bytes");
  EXPECT_FALSE(store.load("k"));
  EXPECT_FALSE(store.lock("k").held());
  store.note_miss("k", "k");
  EXPECT_TRUE(store.entries().empty());
  EXPECT_EQ(store.clear(), 0u);
  EXPECT_TRUE(contains(error_of([&] { store.export_to("x"); }), "no cache directory"));
}

}  // namespace
}  // namespace sinter::runtime
