#include "sinter/engine/cpu/product_step.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/cpu/candidates.h"
#include "sinter/engine/cpu/encoded_weight.h"
#include "sinter/engine/cpu/epilogue.h"
#include "sinter/engine/cpu/nest_step.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/engine/step/contraction_parts.h"
#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter {

namespace {

constexpr int64_t kFewRows = 8;  // stream a weight as it lies

int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class CpuProductStep final : public CompiledStep {
 public:
  CpuProductStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                 std::span<const TensorImpl* const> outputs) {
    ContractionParts read = read_contraction(attrs);
    name_ = read.name;
    batch_ = read.batch;
    m_ = read.m;
    k_ = read.k;
    together_ = read.together;
    operands_ = inputs.size() + outputs.size();
    made_by_ = std::min(m_, read.parts[0].columns()) <= kFewRows ? "gemv" : "gemm";
    add_left(read, inputs);
    for (auto& part : read.parts) {
      const TensorImpl& right = *inputs[size_t(part.right)];
      // Pieces that are read and not stored have a type all the same: double, or what is multiplied in float.
      auto type = operand(right).type == runtime::GemmType::f64 ? runtime::GemmType::f64 : runtime::GemmType::f32;
      if (part.encoded) {
        parts_.push_back({part.columns(), {}, {nullptr, 0, 0, type}, part.right, -1, 0});
        parts_.back().encoded.emplace(part, inputs);
        parts_.back().packed_bytes = parts_.back().encoded->bytes();
        encoded_ = true;
        continue;
      }
      parts_.push_back({part.columns(), operand(right), {nullptr, 0, 0, type}, part.right, -1, 0});
      if (m_ > kFewRows && right.sizes.size() == 2) parts_.back().packed_bytes = packed_bytes(parts_.back());
    }
    auto store = [&](size_t p, int slot) {
      // Row-major, its rows counted through the batch.
      auto& part = parts_[p];
      part.c_slot = slot;
      part.c = {nullptr, part.n, 1, *eager::gemm_type(outputs[size_t(slot) - inputs.size()]->dtype), m_ * part.n};
    };
    for (size_t p = 0; p < read.parts.size(); ++p)
      if (read.parts[p].result >= 0) store(p, read.parts[p].result);
    for (size_t e = 0; e < read.epilogues.size(); ++e) {
      auto& epilogue = epilogues_.emplace_back();
      if (!read.epilogues[e]) continue;
      epilogue = emit_cpu_epilogue(*read.epilogues[e], inputs, outputs);
      if (indexing_.empty()) indexing_ = epilogue.indexing;
      store(e, epilogue.operands[size_t(epilogue.back)]);
    }
  }

  void load() override {
    if (prologue_) prologue_->load();
    for (auto& epilogue : epilogues_) epilogue.load();
  }
  bool is_loaded() const override {
    return (!prologue_ || prologue_->is_loaded()) &&
           std::all_of(epilogues_.begin(), epilogues_.end(), [](auto& e) { return e.text.empty() || e.function; });
  }
  size_t code_length() const override {
    size_t length = prologue_ ? prologue_->code_length() : 0;
    for (auto& epilogue : epilogues_) length += epilogue.text.size();
    return length;
  }

  int64_t rearranged_bytes() const override {
    int64_t bytes = 0;
    for (auto& part : parts_) bytes += padded(part.packed_bytes);
    return candidate_runs_elsewhere() ? 0 : bytes;
  }
  std::vector<int> rearranged_from() const override {
    std::vector<int> from;
    for (auto& part : parts_)
      if (part.encoded)
        part.encoded->add_operands(from);
      else if (part.packed_bytes)
        from.push_back(part.b_slot);
    return from;
  }
  void rearrange(const StepArguments& arguments, void* to) const override {
    char* at = static_cast<char*>(to);
    for (auto& part : parts_) {
      if (!part.packed_bytes) continue;
      if (part.encoded) {
        part.encoded->pack(arguments, at);
      } else {
        runtime::GemmOperand b = part.b;
        b.data = arguments.address(part.b_slot);
        runtime::pack_b(k_, part.n, b, at);
      }
      at += padded(part.packed_bytes);
    }
  }
  std::string shared_order() const override {
    std::string order = "packed";
    for (auto& part : parts_)
      if (part.encoded)
        order += part.encoded->text();
      else if (part.packed_bytes)
        order += format(" {} {}x{}*{},{}", int(part.b.type), k_, part.n, part.b.row_stride, part.b.col_stride);
    return order;
  }

  bool needs_rearranged() const override { return encoded_; }

  void launch(const StepArguments& arguments) const override;

  // The library has no joint products, and none of encoded weights.
  std::vector<std::shared_ptr<CompiledStep>> other_candidates() const override {
    std::vector<std::shared_ptr<CompiledStep>> out;
    if (parts_.size() != 1 || parts_[0].encoded) return out;
    auto& part = parts_[0];
    for (auto& candidate : product_candidates({m_, part.n, k_, batch_, left_, part.b, part.c}, !epilogues_[0].text.empty())) {
      if (candidate->name == kDefaultCandidate) continue;
      auto other = std::make_shared<CpuProductStep>(*this);
      other->by_ = candidate;
      other->candidate_ = candidate->name;
      out.push_back(std::move(other));
    }
    return out;
  }

 private:
  struct Part {
    int64_t n;
    runtime::GemmOperand b;
    runtime::GemmOutput c;
    int b_slot, c_slot;    // positions of the operands; c_slot is -1 where only the pieces are read
    int64_t packed_bytes;  // 0: the right operand is read as it lies
    std::optional<EncodedWeight> encoded = {};
  };

  bool candidate_runs_elsewhere() const { return by_ != nullptr; }

  static runtime::GemmOperand operand(const TensorImpl& t) {
    size_t rank = t.sizes.size();
    return {nullptr, t.strides[rank - 2], t.strides[rank - 1], *eager::gemm_type(t.dtype), rank == 3 ? t.strides[0] : 0};
  }
  int64_t packed_bytes(const Part& part) const { return runtime::packed_b_bytes(k_, part.n, part.b.type); }

  void add_left(const ContractionParts& read, std::span<const TensorImpl* const> inputs) {
    if (!read.prologue) {
      left_slot_ = read.left;
      left_ = operand(*inputs[size_t(left_slot_)]);
      return;
    }
    auto& prologue = *read.prologue;
    std::vector<const TensorImpl*> own;
    for (int at : prologue.operands) own.push_back(inputs[size_t(at)]);
    auto result = row_major_of(prologue.node->types[0]);
    const TensorImpl* output = result.get();
    left_ = {nullptr, k_, 1, *eager::gemm_type(result->dtype)};
    prologue_operands_ = prologue.operands;
    prologue_bytes_ = result->numel * item_size(result->dtype);
    prologue_ = std::make_shared<CpuNestStep>(prologue.attrs(), own, std::span(&output, 1));
  }

  // Encoded weights that some step writes: kernels read them packed all the same.
  const char* packed_now(const StepArguments& arguments) const {
    thread_local std::vector<int64_t> memory;
    memory.resize(size_t(rearranged_bytes() + 64) / 8);
    void* at = reinterpret_cast<void*>((uintptr_t(memory.data()) + 63) / 64 * 64);
    rearrange(arguments, at);
    return static_cast<const char*>(at);
  }

  // Few rows: computed by the caller, before the others are woken.
  void* run_prologue(const StepArguments& arguments) const {
    thread_local std::vector<int64_t> memory;
    memory.resize(size_t(prologue_bytes_ + 63 + 64) / 8);
    int64_t at = (int64_t(uintptr_t(memory.data())) + 63) / 64 * 64;
    SmallVector<int64_t, 16> operands;
    for (int slot : prologue_operands_) operands.push_back(arguments[size_t(slot)]);
    operands.push_back(at);
    prologue_->launch({operands.data(), operands.size()});
    return reinterpret_cast<void*>(uintptr_t(at));
  }

  int64_t m_ = 0, k_ = 0, batch_ = 1;
  size_t operands_ = 0;
  runtime::GemmOperand left_ = {};
  int left_slot_ = -1;
  bool together_ = true;  // products of one shape advance together
  bool encoded_ = false;  // all weights are
  std::vector<Part> parts_;
  std::vector<CpuEpilogue> epilogues_;  // one for all that advance together, else one a part
  std::string indexing_;
  std::shared_ptr<const ProductCandidate> by_;  // null: the default
  // Computes the left operand into memory of the call.
  std::shared_ptr<CpuNestStep> prologue_;
  std::vector<int> prologue_operands_;
  int64_t prologue_bytes_ = 0;
};

void CpuProductStep::launch(const StepArguments& arguments) const {
  bool nothing = std::all_of(parts_.begin(), parts_.end(), [](auto& p) { return p.n == 0; });
  if (m_ == 0 || batch_ == 0 || nothing) return;
  struct Context {
    const std::vector<CpuEpilogue>& epilogues;
    SmallVector<size_t, 8> first;  // by part: where its arguments begin
    SmallVector<int64_t, 128> args;
  } context{epilogues_, {}, {}};
  IndexError error(indexing_);
  for (auto& epilogue : epilogues_) {
    context.first.push_back(context.args.size());
    for (int slot : epilogue.operands) context.args.push_back(arguments[size_t(slot)]);
    context.args.append({epilogue.params.data(), epilogue.params.size()});
    context.args.push_back(error.cell());
  }
  SmallVector<runtime::GemmPart, 4> parts;
  std::vector<runtime::PackedB> packed;
  std::vector<runtime::PackedEncoded> encoded;
  const char* rearranged = arguments.size() > operands_ ? static_cast<const char*>(arguments.address(int(operands_))) : nullptr;
  for (auto& p : parts_) {
    runtime::GemmPart part{p.n, p.b, nullptr, p.c};
    if (!p.encoded) part.b.data = arguments.address(p.b_slot);
    part.c.data = arguments.address(p.c_slot);
    parts.push_back(part);
  }
  if (!rearranged && encoded_) rearranged = packed_now(arguments);
  if (rearranged) {
    packed.reserve(parts.size());
    encoded.reserve(parts.size());
    for (size_t p = 0; p < parts.size(); ++p) {
      if (!parts_[p].packed_bytes) continue;
      if (parts_[p].encoded)
        parts[p].encoded = &encoded.emplace_back(runtime::PackedEncoded{parts_[p].encoded->format(), rearranged});
      else
        parts[p].packed = &packed.emplace_back(runtime::PackedB::at(rearranged, k_, parts_[p].n, parts_[p].b.type));
      rearranged += padded(parts_[p].packed_bytes);
    }
  }
  runtime::GemmOperand a = left_;
  a.data = prologue_ ? run_prologue(arguments) : arguments.address(left_slot_);
  bool any = std::any_of(epilogues_.begin(), epilogues_.end(), [](auto& e) { return e.function != nullptr; });
  if (by_) {
    runtime::Epilogue single{[](void* given, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride) {
                               auto& c = *static_cast<Context*>(given);
                               c.epilogues[0].function(c.args.data(), &tile, row, col, rows, cols, stride);
                             },
                             &context};
    runtime::GemmOptions options;
    options.batch = batch_;
    if (any) options.epilogue = &single;
    run_product(*by_, m_, parts[0].n, k_, a, parts[0].b, parts[0].c, options);
    return error.check();
  }
  runtime::JointEpilogue epilogue;
  epilogue.context = &context;
  epilogue.function = [](void* given, void* const* tiles, int64_t part, int64_t row, int64_t col, int64_t rows, int64_t cols,
                         int64_t stride) {
    auto& c = *static_cast<Context*>(given);
    auto function = c.epilogues[size_t(part)].function;
    if (function) function(c.args.data() + c.first[size_t(part)], tiles, row, col, rows, cols, stride);
  };
  runtime::JointOptions options;
  options.batch = batch_;
  options.together = together_;
  if (any) options.epilogue = &epilogue;
  runtime::gemm_joint(m_, k_, a, {parts.data(), parts.size()}, options);
  error.check();
}

}  // namespace

std::unique_ptr<CompiledStep> make_cpu_product(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                               std::span<const TensorImpl* const> outputs) {
  return std::make_unique<CpuProductStep>(attrs, inputs, outputs);
}

}  // namespace sinter
