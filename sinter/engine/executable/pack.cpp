#include "sinter/engine/executable/pack.h"

#include <algorithm>
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

}  // namespace

// Large blocks first: small ones fit into what they leave, not the other way round.
int64_t pack(std::span<Block* const> blocks) {
  std::vector<Block*> order(blocks.begin(), blocks.end());
  std::stable_sort(order.begin(), order.end(), [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
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

}  // namespace sinter
