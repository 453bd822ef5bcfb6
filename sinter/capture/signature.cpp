#include "sinter/capture/signature.h"

#include <bit>
#include <span>

#include "sinter/tensor/autocast.h"
#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/base/hash.h"

namespace sinter::capture {

uint64_t hash_state(const void* data, size_t bytes, uint64_t seed) { return hash_bytes(data, bytes, seed); }

namespace {

constexpr int64_t kRowMajor = 0, kStrided = -1;

bool same_tensor(const TensorImpl& a, const TensorImpl& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype;
}

int64_t properties(const Tensor& tensor, bool grad_enabled) {
  const TensorImpl& impl = tensor.impl();
  bool is_leaf = grad_enabled && impl.requires_grad;
  // Into a leaf a backward() inside writes; through a history it goes on.
  bool has_history = grad_enabled && !is_leaf && impl.autograd && autograd::needs_gradient(tensor);
  return 1 | int64_t(impl.sizes.size()) << 1 | int64_t(impl.dtype) << 8 | int64_t(impl.device.type()) << 16 |
         int64_t(impl.device.index()) << 24 | int64_t(is_leaf || has_history) << 40 | int64_t(has_history) << 41 |
         (is_leaf ? int64_t(autograd::hooks_version(impl) & 0xfffff) << 42 : 0);
}

// Dense tensors are told by the order of their dimensions, four bits each; others by their strides.
int64_t layout(const TensorImpl& impl) {
  if (impl.contiguous) return kRowMajor;
  size_t rank = impl.sizes.size();
  if (rank > 12) return kStrided;
  int64_t code = 1, expected = 1;
  uint64_t used = 0;
  for (size_t step = 0; step < rank; ++step) {
    size_t found = rank;
    for (size_t d = rank; d-- > 0;)
      if (!(used >> d & 1) && (impl.sizes[d] == 1 || impl.strides[d] == expected)) {
        found = d;
        break;
      }
    if (found == rank) return kStrided;
    used |= uint64_t(1) << found;
    expected *= impl.sizes[found];
    code = code << 4 | int64_t(found);
  }
  return code;
}

// Whether no two arguments have one buffer, by a table: there may be hundreds of them.
bool are_all_apart(std::span<const Tensor* const> tensors) {
  const size_t places = std::bit_ceil(2 * tensors.size());
  SmallVector<const Buffer*, 512> table(places, nullptr);
  for (auto* tensor : tensors) {
    if (!tensor->defined()) continue;
    const Buffer* buffer = tensor->impl().buffer.get();
    size_t at = size_t(hash_mix(uint64_t(reinterpret_cast<uintptr_t>(buffer)), 0)) & (places - 1);
    for (; table[at]; at = (at + 1) & (places - 1))
      if (table[at] == buffer) return false;
    table[at] = buffer;
  }
  return true;
}

// How the arguments share memory: 0 when no two of them do.
int64_t sharing(const Invocation& invocation) {
  constexpr size_t kFew = 12;
  uint64_t code = 0;
  auto& tensors = invocation.tensors;
  if (tensors.size() > kFew && are_all_apart({tensors.data(), tensors.size()})) return 0;
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    const TensorImpl& a = tensors[i]->impl();
    for (size_t j = 0; j < i; ++j) {
      if (!tensors[j]->defined()) continue;
      const TensorImpl& b = tensors[j]->impl();
      if (a.buffer.get() != b.buffer.get()) [[likely]]
        continue;
      code = hash_mix(code, i * 64 + j + 1);
      if (same_tensor(a, b)) continue;
      for (auto* t : {&a, &b}) {
        code = hash_mix(code, uint64_t(t->offset));
        for (size_t d = 0; d < t->sizes.size(); ++d)
          code = hash_mix(code, hash_mix(uint64_t(t->sizes[d]), uint64_t(t->strides[d])));
      }
    }
  }
  return int64_t(code);
}

class Describer final : public LeafVisitor {
 public:
  explicit Describer(const Invocation& invocation) : invocation_(invocation) {}

  void tensor(Tensor&) override { tensors_.push_back(path()); }
  void size(Dim&) override { numbers_.push_back({Word::Kind::kSize, path()}); }
  void number(Scalar& number) override {
    numbers_.push_back(
        {.kind = Word::Kind::kExact, .name = "the type of " + path(), .text = to_string(number.dtype())});
    numbers_.push_back({Word::Kind::kNumber, path()});
  }
  void exact(LeafKind kind, size_t words, const std::string& text) override {
    std::string name = kind == LeafKind::kCount ? "the length of " + path() : path();
    auto its = kind == LeafKind::kObject ? Word::Kind::kIdentity : Word::Kind::kExact;
    for (size_t i = 0; i < words; ++i) numbers_.push_back({.kind = its, .name = name, .text = text});
  }
  void enter(const std::string& part) override { parts_.push_back(part); }
  void leave() override { parts_.pop_back(); }

  std::vector<Word> words() const {
    std::vector<Word> out{{Word::Kind::kCounts, "the arguments"},
                          {Word::Kind::kFlag, "gradients enabled"},
                          {Word::Kind::kIdentity, "memory shared by arguments"},
                          {Word::Kind::kIdentity, "the types of the arguments"},
                          {Word::Kind::kIdentity, "the state of the function object"},
                          {Word::Kind::kIdentity, "autocast"},
                          {.kind = Word::Kind::kExact, .name = "the default dtype", .text = to_string(get_default_dtype())}};
    SINTER_INTERNAL_ASSERT(out.size() == kHeaderWords, "the header of a signature has {} words", kHeaderWords);
    out.insert(out.end(), numbers_.begin(), numbers_.end());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const std::string& name = tensors_[i];
      out.push_back({Word::Kind::kProperties, name, int(i)});
      const Tensor& tensor = *invocation_.tensors[i];
      if (!tensor.defined()) continue;
      const TensorImpl& impl = tensor.impl();
      out.push_back({Word::Kind::kLayout, name, int(i)});
      for (size_t d = 0; d < impl.sizes.size(); ++d)
        out.push_back({Word::Kind::kSize, format("{}.size({})", name, d), int(i), int(d)});
      if (layout(impl) == kStrided)
        for (size_t d = 0; d < impl.sizes.size(); ++d)
          out.push_back({Word::Kind::kExact, format("{}.stride({})", name, d), int(i), int(d)});
    }
    return out;
  }

 private:
  std::string path() const {
    std::string out;
    for (auto& part : parts_) out += part;
    return out;
  }

  const Invocation& invocation_;
  std::vector<std::string> parts_, tensors_;
  std::vector<Word> numbers_;
};

}  // namespace

void sign(const Invocation& invocation, Signature& out) {
  bool grad_enabled = autograd::grad_enabled();
  out.push_back(int64_t(invocation.tensors.size() << 16 | invocation.words.size()));
  out.push_back(int64_t(grad_enabled) | int64_t(autograd::AnomalyMode::is_enabled()) << 1);
  out.push_back(sharing(invocation));
  out.push_back(invocation.types);
  out.push_back(invocation.state);
  out.push_back(autocast::fingerprint());
  out.push_back(int64_t(get_default_dtype()));
  out.append({invocation.words.data(), invocation.words.size()});
  for (auto* tensor : invocation.tensors) {
    if (!tensor->defined()) {
      out.push_back(0);
      continue;
    }
    const TensorImpl& impl = tensor->impl();
    check(!impl.traced, "a traced tensor is used outside the capture that made it; return it from the captured function instead");
    out.push_back(properties(*tensor, grad_enabled));
    int64_t order = layout(impl);
    out.push_back(order);
    for (int64_t size : impl.sizes) out.push_back(size);
    if (order == kStrided) out.append({impl.strides.data(), impl.strides.size()});
  }
}

std::vector<Word> describe(Invocation& invocation) {
  Describer describer(invocation);
  invocation.describe(describer);
  return describer.words();
}

std::string exact_text(LeafKind kind, int64_t bits) {
  switch (kind) {
    case LeafKind::kFloat:
      return double_to_string(std::bit_cast<double>(bits));
    case LeafKind::kBool:
      return bits ? "true" : "false";
    case LeafKind::kPresent:
      return bits ? "given" : "none";
    case LeafKind::kObject:
      return {};
    default:
      return std::to_string(bits);
  }
}

std::string word_text(const Word& word, int64_t value) {
  if (!word.text.empty()) return word.text;
  if (word.kind == Word::Kind::kFlag) return std::string(value & 1 ? "true" : "false") + (value & 2 ? ", looking for NaN" : "");
  if (word.kind == Word::Kind::kProperties) {
    if (value == 0) return "undefined";
    std::string text = format("{}, rank {}, {}", DType(value >> 8 & 0xff), value >> 1 & 0x7f,
                              Device(DeviceType(value >> 16 & 0xff), int(value >> 24 & 0xff)));
    if (value >> 42) text += format(", hooks #{}", value >> 42);
    return value >> 41 & 1 ? text + ", has a history" : value >> 40 & 1 ? text + ", requires grad" : text;
  }
  if (word.kind == Word::Kind::kCounts) return format("{} tensors and {} numbers", value >> 16, value & 0xffff);
  // Enough of it to see that it differs.
  if (word.kind == Word::Kind::kIdentity) return value == 0 ? "none" : "#" + std::to_string(uint64_t(value) % 10000);
  if (word.kind == Word::Kind::kLayout) {
    if (value == kRowMajor) return "contiguous";
    if (value == kStrided) return "strided";
    std::string order;
    for (int64_t code = value; code > 1; code >>= 4) order += (order.empty() ? "" : ", ") + std::to_string(code & 15);
    return "dense in the order [" + order + "]";
  }
  return std::to_string(value);
}

std::string difference(const Word& before, int64_t value_before, const Word& now, int64_t value_now) {
  if (before.kind == Word::Kind::kIdentity) return before.name + ": not the same as when it was captured";
  return format("{} was {}, now {}", before.name, word_text(before, value_before), word_text(now, value_now));
}

int overlap_leader(const Invocation& invocation, size_t tensor) {
  if (!invocation.tensors[tensor]->defined()) return -1;
  const TensorImpl& own = invocation.tensors[tensor]->impl();
  int leader = -1;
  bool differs = false;
  for (size_t i = 0; i < invocation.tensors.size(); ++i) {
    if (!invocation.tensors[i]->defined() || invocation.tensors[i]->impl().buffer != own.buffer) continue;
    if (leader < 0) leader = int(i);
    differs = differs || !same_tensor(invocation.tensors[i]->impl(), own);
  }
  return differs ? leader : -1;
}

bool has_overlaps(const Invocation& invocation) {
  for (size_t i = 0; i < invocation.tensors.size(); ++i)
    if (overlap_leader(invocation, i) >= 0) return true;
  return false;
}

}  // namespace sinter::capture
