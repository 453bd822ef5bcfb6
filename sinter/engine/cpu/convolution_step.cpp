#include "sinter/engine/cpu/convolution_step.h"

#include <algorithm>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/cpu/candidates.h"
#include "sinter/engine/cpu/epilogue.h"
#include "sinter/engine/cpu/convolution.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/engine/step/kernel_parameters.h"

namespace sinter {

namespace {

constexpr int64_t kPieceElements = 16384;  // that an epilogue behind a library works on at a time

class CpuConvolutionStep final : public CompiledStep {
 public:
  CpuConvolutionStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                     std::span<const TensorImpl* const> outputs) {
    ContractionParts read = read_contraction(attrs);
    const Node& node = *read.parts[0].node;
    attrs_ = node.attrs.as<ConvolutionAttrs>();
    name_ = read.name;
    made_by_ = "convolution";
    x_slot_ = read.left;
    weight_slot_ = read.parts[0].right;
    out_slot_ = read.parts[0].result;
    if (read.epilogues[0]) {
      epilogue_ = emit_cpu_epilogue(*read.epilogues[0], inputs, outputs);
      out_slot_ = epilogue_.operands[size_t(epilogue_.back)];
    }
    const TensorImpl &x = *inputs[size_t(x_slot_)], &weight = *inputs[size_t(weight_slot_)];
    const TensorImpl& result = *outputs[size_t(out_slot_) - inputs.size()];
    shape_ = eager::conv_shape(attrs_, x.sizes, weight.sizes, node.types[0].shape.numbers());
    empty_ = result.numel == 0;
    x_ = eager::conv_operand(x);
    operands_ = inputs.size() + outputs.size();
    weight_type_ = *eager::gemm_type(weight.dtype);
    taps_first_ = !weight.contiguous && eager::is_taps_first(weight.sizes, weight.strides);
    out_type_ = *eager::gemm_type(result.dtype);
    for (auto* t : {&x, &weight, &result}) geometries_.push_back(make_intrusive<TensorImpl>(*t));
  }

  void load() override { epilogue_.load(); }
  bool is_loaded() const override { return epilogue_.text.empty() || epilogue_.function; }
  size_t code_length() const override { return epilogue_.text.size(); }

  void launch(const StepArguments& arguments) const override;

  // Our cores read a weight filter by filter, row-major or channels last; one in another order, or for a library, is laid out
  // anew once.
  int64_t rearranged_bytes() const override {
    auto& weight = *geometries_[1];
    return weight.contiguous || (taps_first_ && !by_) ? 0 : weight.numel * item_size(weight.dtype);
  }
  std::vector<int> rearranged_from() const override { return {weight_slot_}; }
  void rearrange(const StepArguments& arguments, void* to) const override {
    copy_row_major(static_cast<const char*>(arguments.address(weight_slot_)), static_cast<char*>(to));
  }

  std::vector<std::shared_ptr<CompiledStep>> other_candidates() const override {
    std::vector<std::shared_ptr<CompiledStep>> out;
    // The library rounds before anything can follow.
    if (!epilogue_.text.empty() && out_type_ != runtime::GemmType::f32) return out;
    for (auto& candidate : convolution_candidates(attrs_, *geometries_[0], *geometries_[1], *geometries_[2])) {
      if (!candidate.onednn) continue;
      auto other = std::make_shared<CpuConvolutionStep>(*this);
      other->by_ = candidate.onednn;
      other->candidate_ = candidate.name;
      out.push_back(std::move(other));
    }
    return out;
  }
  std::string tuning_key() const override { return Attrs(attrs_).text(); }

 private:
  // A weight that training changes is laid out at every launch.
  void copy_row_major(const char* weight, char* to) const {
    const TensorImpl& geometry = *geometries_[1];
    const size_t item = size_t(item_size(geometry.dtype));
    // Dimensions that lie behind each other in memory are one.
    IntList sizes, strides;
    for (size_t d = 0; d < geometry.sizes.size(); ++d) {
      const int64_t size = geometry.sizes[d], stride = geometry.strides[d];
      if (size == 1) continue;
      if (!sizes.empty() && strides.back() == size * stride) {
        sizes.back() *= size;
        strides.back() = stride;
      } else {
        sizes.push_back(size);
        strides.push_back(stride);
      }
    }
    if (sizes.empty()) return void(std::memcpy(to, weight, item));
    const int64_t below = geometry.numel / sizes[0];
    parallel_for(0, sizes[0], std::max<int64_t>(1, kPieceElements / below), [&](int64_t begin, int64_t end) {
      char* at = to + begin * below * int64_t(item);
      for (int64_t i = begin; i < end; ++i) copy_lines(weight + i * strides[0] * int64_t(item), at, sizes, strides, 1, item);
    });
  }

  // The dimensions from `d` on, and `to` behind them.
  static void copy_lines(const char* from, char*& to, const IntList& sizes, const IntList& strides, size_t d, size_t item) {
    if (d == sizes.size() || (d + 1 == sizes.size() && strides[d] == 1)) {
      const size_t bytes = (d == sizes.size() ? 1 : size_t(sizes[d])) * item;
      std::memcpy(to, from, bytes);
      to += bytes;
      return;
    }
    const int64_t step = strides[d] * int64_t(item);
    if (d + 1 < sizes.size()) {
      for (int64_t i = 0; i < sizes[d]; ++i) copy_lines(from + i * step, to, sizes, strides, d + 1, item);
      return;
    }
    auto copy = [&](auto zero) {
      for (int64_t i = 0; i < sizes[d]; ++i, to += sizeof zero) std::memcpy(to, from + i * step, sizeof zero);
    };
    item == 2 ? copy(uint16_t(0)) : item == 4 ? copy(uint32_t(0)) : copy(uint64_t(0));
  }

  ConvolutionAttrs attrs_;
  runtime::ConvShape shape_;
  runtime::ConvOperand x_ = {};
  size_t operands_ = 0;
  runtime::GemmType weight_type_, out_type_;
  int x_slot_, weight_slot_, out_slot_;
  bool empty_ = false, taps_first_ = false;
  CpuEpilogue epilogue_;
  std::vector<IntrusivePtr<TensorImpl>> geometries_;  // of the image, the weight and the result
  std::shared_ptr<const runtime::OnednnConvolutionKernel> by_;  // null: our own cores
};

void CpuConvolutionStep::launch(const StepArguments& arguments) const {
  if (empty_) return;
  struct Context {
    CpuEpilogue::Function function;
    SmallVector<int64_t, 64> args;
  } context{epilogue_.function, {}};
  IndexError error(epilogue_.indexing);
  for (int slot : epilogue_.operands) context.args.push_back(arguments[size_t(slot)]);
  context.args.append({epilogue_.params.data(), epilogue_.params.size()});
  context.args.push_back(error.cell());
  const runtime::Epilogue epilogue{[](void* given, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols,
                                      int64_t stride) {
                                     auto& at = *static_cast<Context*>(given);
                                     at.function(at.args.data(), &tile, row, col, rows, cols, stride);
                                   },
                                   &context};
  runtime::ConvOperand x = x_;
  x.data = arguments.address(x_slot_);
  const char* weight = static_cast<char*>(arguments.address(weight_slot_));
  std::vector<char> copy;
  if (arguments.size() > operands_) {
    weight = static_cast<char*>(arguments.address(int(operands_)));
  } else if (int64_t bytes = rearranged_bytes()) {
    copy.resize(size_t(bytes));
    copy_row_major(weight, copy.data());
    weight = copy.data();
  }
  void* out = arguments.address(out_slot_);
  if (!by_) {
    eager::run_convolution(attrs_, shape_, x, weight, weight_type_, taps_first_, out, out_type_,
                           context.function ? &epilogue : nullptr);
    return error.check();
  }
  by_->run(x.data, weight, out);
  if (!context.function) return;
  // The library stores whole results; what follows works on them where they lie.
  const int64_t planes = shape_.images * shape_.groups * shape_.filters;
  const int64_t positions = shape_.out[0] * shape_.out[1] * shape_.out[2];
  parallel_for(0, planes, std::max<int64_t>(1, kPieceElements / positions), [&](int64_t begin, int64_t end) {
    epilogue.function(epilogue.context, static_cast<float*>(out) + begin * positions, begin, 0, end - begin, positions, positions);
  });
  error.check();
}

}  // namespace

std::unique_ptr<CompiledStep> make_cpu_convolution(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                   std::span<const TensorImpl* const> outputs) {
  return std::make_unique<CpuConvolutionStep>(attrs, inputs, outputs);
}

}  // namespace sinter
