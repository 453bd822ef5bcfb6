#pragma once
// Compiled code on disk: one file per key, safe when several processes share the directory.
#include <optional>
#include <string>
#include <string_view>

namespace sinter::runtime {

// Never throws for what the disk does: a store that cannot be read or written behaves as an empty one.
class CodeStore {
 public:
  // The directory is created (0700) when missing. It is not used, with one warning, unless it belongs to this user and
  // is not writable by everyone: its files are executed. An empty path means no store.
  explicit CodeStore(std::string directory);

  // SINTER_CACHE_DIR, else $XDG_CACHE_HOME/sinter, else ~/.cache/sinter; empty when none is known.
  static std::string default_directory();

  // The bytes last saved under `key`. A file that is damaged, or holds another key of the same hash, counts as absent.
  std::optional<std::string> load(std::string_view key) const;

  // Replaces the entry of `key` in one step: readers see the old bytes or the new ones.
  void save(std::string_view key, std::string_view bytes) const;

  // Empty when the store is not in use.
  const std::string& directory() const { return directory_; }
  // Where the entry of `key` is kept.
  std::string path_of(std::string_view key) const;

 private:
  std::string directory_;
};

}  // namespace sinter::runtime
