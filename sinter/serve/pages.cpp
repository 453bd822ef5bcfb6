#include "sinter/serve/pages.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"

namespace sinter::serve {

PagePool::PagePool(int64_t pages, int64_t page) : total_(pages), page_(page), slots_(size_t(pages) + 1) {
  for (int64_t p = pages; p >= 1; --p) empty_.push_back(p);
}

uint64_t PagePool::key_of(uint64_t before, std::span<const int64_t> tokens) {
  return hash_bytes(tokens.data(), tokens.size_bytes(), before);
}

int64_t PagePool::find(uint64_t before, std::span<const int64_t> tokens) const {
  auto [at, end] = published_.equal_range(key_of(before, tokens));
  for (; at != end; ++at) {
    const Slot& slot = slots_[size_t(at->second)];
    if (slot.before == before && std::ranges::equal(slot.tokens, tokens)) return at->second;
  }
  return 0;
}

void PagePool::forget(int64_t page) {
  Slot& slot = slots_[size_t(page)];
  auto [at, end] = published_.equal_range(key_of(slot.before, slot.tokens));
  while (at != end && at->second != page) ++at;
  SINTER_INTERNAL_ASSERT(at != end, "a published page is known");
  published_.erase(at);
  slot.self = slot.before = 0;
  slot.tokens.clear();
}

std::optional<int64_t> PagePool::take() {
  int64_t page = 0;
  if (!empty_.empty()) {
    page = empty_.back();
    empty_.pop_back();
  } else if (!idle_.empty()) {
    page = idle_.front();
    idle_.pop_front();
    forget(page);
  } else {
    return {};
  }
  slots_[size_t(page)].holders = 1;
  return page;
}

void PagePool::hold(int64_t page) {
  Slot& slot = slots_[size_t(page)];
  if (slot.holders++ == 0) idle_.erase(slot.idle);
}

void PagePool::release(int64_t page) {
  Slot& slot = slots_[size_t(page)];
  SINTER_INTERNAL_ASSERT(page >= 1 && slot.holders > 0, "a page that is released was held");
  if (--slot.holders > 0) return;
  if (slot.self == 0)
    empty_.push_back(page);
  else
    slot.idle = idle_.insert(idle_.end(), page);
}

uint64_t PagePool::root(const std::string& tenant) {
  auto [at, is_new] = roots_.try_emplace(tenant, 0);
  if (is_new) at->second = ++last_;
  return at->second;
}

PagePool::Match PagePool::match(uint64_t root, std::span<const int64_t> tokens, int64_t most) {
  Match out{.pages = {}, .end = root};
  while (int64_t(out.pages.size()) < most) {
    const int64_t page = find(out.end, tokens.subspan(out.pages.size() * size_t(page_), size_t(page_)));
    if (page == 0) break;
    hold(page);
    out.pages.push_back(page);
    out.end = slots_[size_t(page)].self;
  }
  return out;
}

uint64_t PagePool::publish(uint64_t before, std::span<const int64_t> tokens, int64_t page) {
  SINTER_INTERNAL_ASSERT(int64_t(tokens.size()) == page_, "a published page is full");
  if (int64_t known = find(before, tokens)) return slots_[size_t(known)].self;
  Slot& slot = slots_[size_t(page)];
  SINTER_INTERNAL_ASSERT(slot.holders > 0 && slot.self == 0, "a page is published once, by who has it");
  slot.before = before;
  slot.self = ++last_;
  slot.tokens.assign(tokens.begin(), tokens.end());
  published_.emplace(key_of(before, tokens), page);
  return slot.self;
}

}  // namespace sinter::serve
