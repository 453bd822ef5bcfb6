#pragma once
// What was compiled or chosen, on disk: one file per key, shared by any number of processes.
//
// A key is text made of named parts, a line each ("kind=cpu-code", "source=<hash>", "compiler=clang 19"), the most
// telling first, so that a miss can be explained. Nothing in it may depend on where files lie, on time or on addresses:
// entries outlive moves and travel between machines (export_to, import_from).
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinter::runtime {

// "name=value" lines; line breaks in a value become spaces. The first part is the kind.
std::string make_key(std::initializer_list<std::pair<std::string_view, std::string_view>> parts);
// How a key names a long text: its hash and its length.
std::string text_part(std::string_view text);
// The value of one part of a key; empty when it has none of that name.
std::string_view key_part(std::string_view key, std::string_view name);

// Never throws for what the disk does, except where a function says so: a store that cannot be read or written behaves
// as an empty one. Thread-safe.
class CodeStore {
 public:
  // The directory is created (0700) when missing. It is not used, with one warning, unless it belongs to this user and
  // is not writable by everyone: its files are executed. An empty path means no store. Beyond `limit` bytes the entries
  // that were not used for longest are removed; 0 means no limit.
  explicit CodeStore(std::string directory, uint64_t limit = default_limit());

  // SINTER_CACHE_DIR, else $XDG_CACHE_HOME/sinter, else ~/.cache/sinter; empty when none is known.
  static std::string default_directory();
  // SINTER_CACHE_LIMIT_MB, else 4096 MB.
  static uint64_t default_limit();

  // The bytes last saved under `key`. A file of another version, or one that holds another key of the same hash, counts
  // as absent; so does, with one warning for all, one that is damaged, belongs to another user or is writable by
  // everyone.
  std::optional<std::string> load(std::string_view key) const;

  // Replaces the entry of `key` in one step: readers see the old bytes or the new ones. `label` is for people.
  void save(std::string_view key, std::string_view bytes, std::string_view label = {}) const;

  // The right to make the entry of a key; gone with this object, or with the process whatever ends it.
  class Lock {
   public:
    Lock() = default;
    Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)), offset_(other.offset_) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock();
    bool held() const { return fd_ >= 0; }

   private:
    friend class CodeStore;
    int fd_ = -1;
    int64_t offset_ = 0;
  };
  // Waits until no other thread or process has the lock of `key`. Whoever gets it looks for the entry once more, since
  // the one before may have made it. Not held where locks do not work, or when a holder sleeps for half a minute: then
  // the work is done twice, which harms nobody.
  Lock lock(std::string_view key) const;

  // To be told when the entry of `key` was not found and has been made, before it is saved. Kept for recent_misses()
  // and explained in SINTER_LOGS=cache.
  void note_miss(std::string_view key, std::string_view label) const;
  // Why `key` is not found: what is wrong with its file, or which parts differ from the nearest other entry, which is
  // of the same kind, has the most equal parts, and of those the first ones.
  std::string why_miss(std::string_view key) const;

  struct Entry {
    std::string path, key, label;
    uint64_t size = 0;     // of the file
    int64_t last_use = 0;  // seconds since 1970, to the hour
    std::string problem;   // why it cannot be used; empty when it can, as far as its header and its owner tell
    std::string_view kind() const { return key_part(key, "kind"); }
  };
  // By last use, the latest first. Reads no contents.
  std::vector<Entry> entries() const;
  // The second half of why_miss(), for many keys and entries() read once.
  static std::string differences(std::string_view key, const std::vector<Entry>& entries);

  struct Miss {
    std::string run;  // one process
    int64_t time = 0;
    std::string key, label, problem;  // of the file that was there; empty when there was none
  };
  // The last few hundred, the latest last.
  std::vector<Miss> recent_misses() const;

  // Removes the entries of a kind (empty: all, and what is not an entry of this version); gives their number.
  size_t clear(std::string_view kind = {}) const;

  // Writes the usable entries of a kind (empty: all) into one file and gives their number. Throws Error when the file
  // cannot be written.
  size_t export_to(const std::string& file, std::string_view kind = {}) const;
  // Adds what export_to wrote; entries that are here stay as they are. Gives the number of those added. The file is
  // checked whole before the first is added: damage or another version is an Error. It holds native code: trust it as
  // you would a program.
  size_t import_from(const std::string& file) const;

  // --- entries that come with a package
  // Keys of what load() has found and save() has written in this process, in any store.
  static std::vector<std::string> used_keys();
  // The entries of these keys as export_to would write them; an Error names one that is gone.
  std::string archive(std::span<const std::string> keys) const;
  // From now on the entries of an archive are found before those on disk, by every store of the process. Gives their
  // number; an Error, with `name` for the archive, says what is wrong with it. It holds native code, as above.
  static size_t mount(std::string_view archive, const std::string& name);
  // A mounted key that differs from this one at most in its part "compiler": where code was made elsewhere, it need not
  // have been made by a compiler that is here.
  static std::optional<std::string> mounted_key(std::string_view key);
  // For errors: " It was not exported into 'a.sinter'." where something is mounted; empty elsewhere.
  static std::string mounted_note();

  // Empty when the store is not in use.
  const std::string& directory() const { return directory_; }
  uint64_t limit() const { return limit_; }
  // Where the entry of `key` is kept.
  std::string path_of(std::string_view key) const;

 private:
  static std::optional<std::string> mounted(std::string_view key);
  static void note_use(std::string_view key);
  Lock lock_range(int64_t offset, double seconds) const;
  // Adds to the estimate of the store's size; beyond the limit, trims.
  void count_bytes(uint64_t added) const;
  // Removes what is beyond the limit and what writers that died left behind; gives the bytes of the entries that stay.
  uint64_t trim() const;

  std::string directory_;
  uint64_t limit_;
};

// The store of the process, in the default directory.
CodeStore& process_store();

}  // namespace sinter::runtime
