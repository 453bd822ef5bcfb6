#include "sinter/engine/packed_weight.h"

#include <map>
#include <mutex>
#include <tuple>

#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/gemm_operand.h"

namespace sinter {

std::shared_ptr<const PackedWeight> pack_weight(const Tensor& weight) {
  const TensorImpl& w = weight.impl();
  auto type = eager::gemm_type(w.dtype);
  if (!type || w.sizes.size() != 2) return nullptr;
  // A live entry keeps its buffer alive, so an address stands for one buffer.
  using Key = std::tuple<const void*, int64_t, int64_t, int64_t, int64_t, int64_t, uint32_t>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const PackedWeight>> known;
  const uint32_t version = w.buffer->version.load(std::memory_order_relaxed);
  const Key key{w.buffer.get(), w.offset, w.sizes[0], w.sizes[1], w.strides[0], w.strides[1], version};
  std::lock_guard lock(mutex);
  std::erase_if(known, [](auto& entry) { return entry.second.expired(); });
  if (auto found = known[key].lock()) return found;
  runtime::GemmOperand operand{eager::data_of(w), w.strides[0], w.strides[1], *type};
  auto made = std::make_shared<const PackedWeight>(
      PackedWeight{runtime::pack_b(w.sizes[0], w.sizes[1], operand), w.buffer, version});
  known[key] = made;
  return made;
}

}  // namespace sinter
