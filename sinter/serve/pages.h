#pragma once
// Who has which page of a cache, and what is known to lie in pages that nobody has at the moment. Not thread-safe: the
// engine's thread alone uses it.
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace sinter::serve {

// A page whose tokens are all computed is *published*: it is found again by these tokens and by what is in front of
// them. What is in front is named by a number that no other beginning ever had, so that two texts are never taken for
// each other. A published page that nobody has keeps its contents until the page is needed; the one that was not used
// for longest goes first.
class PagePool {
 public:
  // Pages 1 to `pages` of so many positions; page 0 is never given.
  PagePool(int64_t pages, int64_t page);

  int64_t page_size() const { return page_; }
  int64_t total() const { return total_; }
  // Pages that nobody has.
  int64_t free() const { return int64_t(empty_.size() + idle_.size()); }

  // One more page; nothing where all are in use.
  std::optional<int64_t> take();
  void release(int64_t page);

  // The beginning of all texts of a tenant, who shares pages with nobody else.
  uint64_t root(const std::string& tenant);
  struct Match {
    std::vector<int64_t> pages;  // one holder more
    uint64_t end;                // stands for all that is in them
  };
  // The longest beginning of these tokens that is published, at most `most` whole pages of it.
  Match match(uint64_t root, std::span<const int64_t> tokens, int64_t most);
  // Says that the page holds these tokens, behind what `before` stands for. Gives what stands for both.
  uint64_t publish(uint64_t before, std::span<const int64_t> tokens, int64_t page);

 private:
  struct Slot {
    int64_t holders = 0;
    uint64_t before = 0, self = 0;  // self: 0 where it is not published
    std::vector<int64_t> tokens = {};
    std::list<int64_t>::iterator idle = {};
  };
  static uint64_t key_of(uint64_t before, std::span<const int64_t> tokens);
  // The published page of these tokens; 0: there is none.
  int64_t find(uint64_t before, std::span<const int64_t> tokens) const;
  void hold(int64_t page);
  void forget(int64_t page);

  int64_t total_, page_;
  std::vector<Slot> slots_;
  std::vector<int64_t> empty_;
  std::list<int64_t> idle_;  // published, without holders; used longest ago first
  std::unordered_multimap<uint64_t, int64_t> published_;
  std::unordered_map<std::string, uint64_t> roots_;
  uint64_t last_ = 0;
};

}  // namespace sinter::serve
