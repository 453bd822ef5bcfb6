#include "sinter/engine/executable/pack.h"

#include <algorithm>
#include <map>
#include <vector>

namespace sinter {

namespace {

int64_t aligned(int64_t bytes) { return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment; }

// The tightest gap between blocks in use at the same time that holds this one; behind them all when none does.
int64_t best_fit(const Block& block, const std::vector<const Block*>& placed) {
  int64_t need = aligned(block.bytes), end = 0, best = -1, best_room = 0;
  for (auto* other : placed) {  // by offset
    if (other->last < block.first || block.last < other->first) continue;
    int64_t room = other->offset - end;
    if (room >= need && (best < 0 || room < best_room)) {
      best = end;
      best_room = room;
    }
    end = std::max(end, other->offset + aligned(other->bytes));
  }
  return best < 0 ? end : best;
}

int64_t place(const std::vector<Block*>& order) {
  std::vector<const Block*> placed;
  int64_t total = 0;
  for (auto* block : order) {
    block->offset = best_fit(*block, placed);
    total = std::max(total, block->offset + aligned(block->bytes));
    auto behind = std::upper_bound(placed.begin(), placed.end(), block,
                                   [](const Block* a, const Block* b) { return a->offset < b->offset; });
    placed.insert(behind, block);
  }
  return total;
}

}  // namespace

int64_t largest_live(std::span<const Block* const> blocks) {
  // By step: what comes into use there, and what has gone out of it.
  std::map<int, int64_t> changes;
  for (auto* block : blocks) {
    changes[block->first] += aligned(block->bytes);
    changes[block->last + 1] -= aligned(block->bytes);
  }
  int64_t live = 0, most = 0;
  for (auto& [step, change] : changes) most = std::max(most, live += change);
  return most;
}

// No order is best for all programs: the first that reaches the bound is taken, else the one that needs least.
int64_t pack(std::span<Block* const> blocks) {
  using Before = bool (*)(const Block* a, const Block* b);
  static constexpr auto area = [](const Block* b) { return double(b->bytes) * (double(b->last) - b->first + 1); };
  static constexpr Before kOrders[] = {
      // Large blocks first: small ones fit into what they leave, not the other way round.
      [](const Block* a, const Block* b) { return a->bytes > b->bytes; },
      [](const Block* a, const Block* b) { return area(a) > area(b); },
      [](const Block* a, const Block* b) { return a->last - a->first > b->last - b->first; },
      [](const Block* a, const Block* b) { return a->first < b->first; },
  };
  int64_t bound = largest_live({blocks.data(), blocks.size()}), best = -1;
  std::vector<int64_t> offsets(blocks.size());
  for (Before before : kOrders) {
    std::vector<Block*> order(blocks.begin(), blocks.end());
    std::stable_sort(order.begin(), order.end(), before);
    int64_t total = place(order);
    if (best < 0 || total < best) {
      best = total;
      for (size_t i = 0; i < blocks.size(); ++i) offsets[i] = blocks[i]->offset;
    }
    if (best == bound) break;
  }
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i]->offset = offsets[i];
  return std::max<int64_t>(best, 0);
}

}  // namespace sinter
