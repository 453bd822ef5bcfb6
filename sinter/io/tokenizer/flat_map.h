#pragma once
// A hash table from 64-bit keys to small values: open addressing, grown by doubling, nothing is ever erased.
#include <cstdint>
#include <vector>

#include "sinter/base/hash.h"

namespace sinter::tokenizers {

template <class Value>
class FlatMap {
 public:
  // Null when the key is not there. No key is ~0.
  const Value* find(uint64_t key) const {
    if (slots_.empty()) return nullptr;
    for (size_t at = place(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at].value;
      if (slots_[at].key == kEmpty) return nullptr;
    }
  }
  // The value of the key; a new key gets `Value()`.
  Value& operator[](uint64_t key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    size_t at = place(key);
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask_;
    if (slots_[at].key == kEmpty) {
      slots_[at] = {key, Value()};
      ++count_;
    }
    return slots_[at].value;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t(0);
  struct Slot {
    uint64_t key;
    Value value;
  };

  size_t place(uint64_t key) const { return hash_mix(key, 0) & mask_; }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : 2 * old.size(), {kEmpty, Value()});
    mask_ = slots_.size() - 1;
    count_ = 0;
    for (auto& slot : old)
      if (slot.key != kEmpty) (*this)[slot.key] = slot.value;
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0, count_ = 0;
};

}  // namespace sinter::tokenizers
