#include "sinter/engine/cuda/convolution_step.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/engine/cuda/convolution_epilogue.h"
#include "sinter/engine/cuda/nest_step.h"
#include "sinter/engine/cuda/staging.h"
#include "sinter/engine/cuda/tile_convolution.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/step/contraction_parts.h"
#include "sinter/graph/extract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

namespace {

using eager::at_address;
using eager::copy;
using Geometry = IntrusivePtr<TensorImpl>;

void* pointer(int64_t address) { return reinterpret_cast<void*>(uintptr_t(address)); }
int64_t address_of(const void* at) { return int64_t(reinterpret_cast<uintptr_t>(at)); }
int64_t bytes_of(const TensorImpl& dense) { return dense.numel * item_size(dense.dtype); }
// Cut into pieces, memory stays aligned for every kernel.
int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

Geometry formatted(DType dtype, const IntList& sizes, MemoryFormat format, Device device) {
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = dtype;
  impl->device = device;
  impl->sizes = sizes;
  impl->strides = format_strides("convolution", sizes, format);
  for (int64_t n : sizes) impl->numel *= n;
  impl->contiguous = has_format(sizes, impl->strides, MemoryFormat::kContiguous);
  return impl;
}

// Memory for the time of one launch.
class Pieces {
 public:
  Pieces(Device device, int64_t bytes) : scratch_(std::in_place, device, size_t(bytes)), next_(static_cast<char*>(scratch_->data())) {}
  explicit Pieces(BufferPtr given) : own_(std::move(given)), next_(static_cast<char*>(own_->data())) {}
  void* take(int64_t bytes) { return std::exchange(next_, next_ + padded(bytes)); }

 private:
  std::optional<CudaScratch> scratch_;
  BufferPtr own_;
  char* next_ = nullptr;
};

// An epilogue as a kernel by itself, over the convolution's result in memory: its first operand.
struct Follow {
  FusedAttrs attrs;
  std::vector<int> operands;  // positions among those of the whole: further operands, then results
};
Follow follow_of(const ContractionParts::Inner& epilogue) {
  const Graph& body = *epilogue.attrs().body;
  Follow out{{.domain = epilogue.attrs().domain}, {}};
  const size_t inputs = body.inputs().size();
  out.operands.assign(epilogue.operands.begin(), epilogue.operands.begin() + int64_t(inputs) - 1);
  std::vector<Value> results;
  for (size_t j = 0; j < body.outputs().size(); ++j) {
    if (body.outputs()[j] == body.inputs()[0]) continue;  // the convolution's own
    results.push_back(body.outputs()[j]);
    out.operands.push_back(epilogue.operands[inputs - 1 + j]);
  }
  out.attrs.body = SubGraph(begin_copy(body).finish(results));
  return out;
}

class ConvolutionStep final : public CudaStep {
 public:
  ConvolutionStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                  std::span<const TensorImpl* const> outputs, Device device)
      : CudaStep(device),
        read_(read_contraction(attrs)),
        node_(*read_.parts[0].node),
        inputs_(inputs.size()),
        outputs_(outputs.size()) {
    name_ = read_.name;
    made_by_ = "convolution";
    for (auto* list : {&inputs, &outputs})
      for (auto* t : *list) geometries_.push_back(t ? make_intrusive<TensorImpl>(*t) : Geometry());
    x_ = read_.left;
    weight_ = read_.parts[0].right;
    plain_result_ = read_.parts[0].result;
    if (auto& epilogue = read_.epilogues[0]) {
      auto& body = *epilogue->attrs().body;
      for (size_t j = 0; j < body.outputs().size(); ++j)
        if (body.outputs()[j] == body.inputs()[0]) plain_result_ = epilogue->operands[body.inputs().size() - 1 + j];
    }
    DType dtype = node_.types[0].dtype;
    const IntList sizes = node_.types[0].shape.numbers();
    // The planner's choice, for results that something follows as well.
    format_ = cuda_convolution_format(dtype, sizes.size());
    x_in_format_ = formatted(dtype, inputs[size_t(x_)]->sizes, format_, device);
    weight_in_format_ = formatted(dtype, inputs[size_t(weight_)]->sizes, format_, device);
    result_in_format_ = formatted(dtype, sizes, format_, device);
    problem_ = cuda_convolution_problem(*node_.op, node_.attrs, dtype, x_in_format_->sizes, weight_in_format_->sizes, sizes,
                                        format_);
    if (outputs.size() == 1 && is_in_format(int(inputs_)))
      epilogue_ = read_.epilogues[0] ? find_epilogue(*read_.epilogues[0]->attrs().body) : ConvolutionEpilogue();
    refused_ = by_loops_ = x_in_format_->numel == 0;  // nothing but padding
    if (!epilogue_) return;
    whole_ = problem_;
    if (epilogue_->relu) whole_.activation = runtime::CudaConvActivation::kRelu;
  }

  bool changes_channels() const { return epilogue_ && !epilogue_->changes.empty(); }

  int64_t rearranged_bytes() const override {
    if (changes_channels()) return padded(bytes_of(*weight_in_format_)) + result_in_format_->sizes[1] * 4;
    return is_in_format(weight_) ? 0 : bytes_of(*weight_in_format_);
  }
  std::vector<int> rearranged_from() const override {
    std::vector<int> from{weight_};
    if (changes_channels())
      for (int input : epilogue_->channel_inputs) from.push_back(position(input));
    return from;
  }
  // The weight in the format of the convolution, times the scale of its channel, then the shifts. Rounding the weight once
  // more stands for the rounding of the convolution's result, which there is none of.
  void rearrange(const StepArguments& slots, void* to) const override {
    Tensor weight = tensor(slots, weight_);
    Tensor kept = at_address(*weight_in_format_, address_of(to));
    if (!changes_channels()) return copy(weight, kept);
    const Graph& body = *read_.epilogues[0]->attrs().body;
    std::vector<Tensor> inputs(body.inputs().size());
    for (int input : epilogue_->channel_inputs) inputs[size_t(input)] = tensor(slots, position(input));
    const int64_t channels = result_in_format_->sizes[1];
    auto [scale, shift] = channel_numbers(*epilogue_, body, inputs, channels, device_);
    IntList each(weight_in_format_->sizes.size(), 1);
    each[0] = channels;
    copy(scale.defined() ? weight.to(kFloat32) * scale.reshape(Shape(each)) : weight, kept);
    auto numbers = formatted(weight_in_format_->dtype, {channels}, MemoryFormat::kContiguous, device_);
    copy(shift.defined() ? shift : zeros({channels}, TensorOptions(kFloat32).device(device_)),
         at_address(*numbers, address_of(to) + padded(bytes_of(*weight_in_format_))));
  }

  void launch(const StepArguments& slots) const override {
    if (result_in_format_->numel == 0) return;
    const int64_t kept = slots.size() > inputs_ + outputs_ ? slots[inputs_ + outputs_] : 0;
    if (epilogue_ && (kept || !rearranged_bytes()) && !refused_ && by_library(slots, kept)) return;
    // A kept weight that has the epilogue's numbers in it is of no use to what computes the epilogue itself.
    step_by_step(slots, changes_channels() ? 0 : kept);
  }

  // Of what the library does in one, on memory of its own: it takes operands that are kept.
  void tune_libraries(const StepArguments&, double seconds) const override {
    if (!epilogue_ || refused_ || result_in_format_->numel == 0 || !runtime::cudnn_problem().empty()) return;
    auto problem = whole_;
    const int64_t result = padded(bytes_of(*result_in_format_)), x = padded(bytes_of(*x_in_format_)),
                  weight = padded(bytes_of(*weight_in_format_));
    // Small numbers: what lies there may be slow, or be read as nothing but NaN.
    Tensor memory = full({2 * result + x + 2 * weight}, 0x3c, TensorOptions(kUInt8).device(device_));
    Pieces pieces(memory.impl().buffer);
    problem.x.data = pieces.take(x);
    problem.w.data = pieces.take(weight);
    problem.y.data = pieces.take(result);
    if (changes_channels()) problem.bias = pieces.take(weight);
    if (epilogue_->residual >= 0) problem.residual = pieces.take(result);
    if (!runtime::prepare_cuda_convolution(device_.index(), problem)) return;
    double microseconds = runtime::tune_cuda_convolution(device_.index(), problem, seconds);
    log(LogTopic::kAutotune, "{}: {} µs", name_, microseconds);
  }

 private:
  // An input of the epilogue's body among the operands of the whole; the first one is the convolution.
  int position(int input) const { return read_.epilogues[0]->operands[size_t(input) - 1]; }
  bool is_in_format(int at) const {
    auto& t = *geometries_[size_t(at)];
    return has_format(t.sizes, t.strides, format_);
  }
  Tensor tensor(const StepArguments& slots, int at) const { return at_address(*geometries_[size_t(at)], slots[size_t(at)]); }
  int64_t copied_bytes(int at) const { return is_in_format(at) ? 0 : padded(bytes_of(*geometries_[size_t(at)])); }

  // Operand `at` at an address, in the format of the convolution.
  void* operand(const StepArguments& slots, int at, const TensorImpl& in_format, Pieces& pieces, CudaStaging& staging) const {
    if (is_in_format(at)) return staging.read(slots, size_t(at), bytes_of(in_format));
    void* to = pieces.take(bytes_of(in_format));
    copy(tensor(slots, at), at_address(in_format, address_of(to)));
    return to;
  }

  // False where the library does not do all of it.
  bool by_library(const StepArguments& slots, int64_t kept) const {
    auto problem = whole_;
    const int residual = epilogue_->residual < 0 ? -1 : position(epilogue_->residual);
    Pieces pieces(device_, copied_bytes(x_) + (residual < 0 ? 0 : copied_bytes(residual)));
    CudaStaging staging(device_);
    problem.x.data = operand(slots, x_, *x_in_format_, pieces, staging);
    problem.w.data = kept ? pointer(kept) : staging.read(slots, size_t(weight_), bytes_of(*weight_in_format_));
    if (changes_channels()) problem.bias = pointer(kept + padded(bytes_of(*weight_in_format_)));
    if (residual >= 0) problem.residual = operand(slots, residual, *result_in_format_, pieces, staging);
    problem.y.data = staging.write(slots, inputs_, bytes_of(*result_in_format_));
    if (!CudaRecording::current() && !prepare_convolution(device_.index(), problem)) {
      log(LogTopic::kPerf, "{}: no library takes what follows the convolution; a kernel of its own does", name_);
      refused_ = true;
      return false;
    }
    queue_convolution(device_.index(), problem);
    staging.finish();
    return true;
  }

  void step_by_step(const StepArguments& slots, int64_t kept) const {
    auto problem = problem_;
    const bool stored = plain_result_ >= 0 && is_in_format(plain_result_);
    const int64_t result_bytes = bytes_of(*result_in_format_);
    Pieces pieces(device_, copied_bytes(x_) + (kept ? 0 : copied_bytes(weight_)) + 2 * padded(result_bytes));
    CudaStaging staging(device_);
    problem.x.data = operand(slots, x_, *x_in_format_, pieces, staging);
    problem.w.data = kept ? pointer(kept) : operand(slots, weight_, *weight_in_format_, pieces, staging);
    problem.y.data = stored ? staging.write(slots, size_t(plain_result_), result_bytes) : pieces.take(result_bytes);
    if (!CudaRecording::current() && !by_loops_) by_loops_ = !prepare_convolution(device_.index(), problem);
    if (by_loops_)
      run_loops(problem, pieces);
    else
      queue_convolution(device_.index(), problem);
    Tensor result = at_address(*result_in_format_, address_of(problem.y.data));
    if (plain_result_ >= 0 && !stored) copy(result, tensor(slots, plain_result_));
    run_follow(slots, address_of(problem.y.data));
    staging.finish();
  }

  // The op's own loops write row by row.
  void run_loops(const runtime::CudaConvolution& problem, Pieces& pieces) const {
    TensorArg operands[] = {at_address(*x_in_format_, address_of(problem.x.data)),
                            at_address(*weight_in_format_, address_of(problem.w.data))};
    auto rows = formatted(result_in_format_->dtype, result_in_format_->sizes, MemoryFormat::kContiguous, device_);
    Tensor out = at_address(*rows, address_of(pieces.take(bytes_of(*rows))));
    eager::run_loops(*node_.op, operands, node_.attrs, &out);
    copy(out, at_address(*result_in_format_, address_of(problem.y.data)));
  }

  // Few convolutions need it, so it is compiled when the first one does: never in a call that is recorded, which comes second.
  void run_follow(const StepArguments& slots, int64_t result) const {
    if (!read_.epilogues[0]) return;
    std::call_once(follow_made_, [&] {
      follow_ = follow_of(*read_.epilogues[0]);
      std::vector<const TensorImpl*> inputs{result_in_format_.get()}, outputs;
      for (int at : follow_.operands) (size_t(at) < inputs_ ? inputs : outputs).push_back(geometries_[size_t(at)].get());
      follow_step_ = make_nest_step(emit_cuda_nest(follow_.attrs, inputs, outputs), device_);
      follow_step_->load();
    });
    StepArguments own;
    own.add_address(result);
    for (int at : follow_.operands) own.add_from(slots, size_t(at));
    follow_step_->launch(own);
  }

  const ContractionParts read_;
  const Node& node_;  // the convolution
  size_t inputs_, outputs_;
  std::vector<Geometry> geometries_;  // inputs, then outputs; null for numbers
  int x_, weight_, plain_result_ = -1;
  MemoryFormat format_;
  Geometry x_in_format_, weight_in_format_, result_in_format_;
  runtime::CudaConvolution problem_;  // the convolution by itself
  std::optional<ConvolutionEpilogue> epilogue_;
  // With what follows it, where that is an epilogue_.
  runtime::CudaConvolution whole_;
  mutable std::atomic<bool> refused_ = false, by_loops_ = false;
  mutable std::once_flag follow_made_;
  mutable Follow follow_;
  mutable std::unique_ptr<CudaStep> follow_step_;
};

}  // namespace

MemoryFormat cuda_convolution_format(DType dtype, size_t rank) {
  return rank == 4 && item_size(dtype) == 2 ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous;
}

runtime::CudaConvolution cuda_convolution_problem(const Op& op, const Attrs& attrs, DType dtype, const IntList& left,
                                                  const IntList& right, const IntList& result, MemoryFormat format) {
  runtime::CudaConvolution problem;
  problem.dtype = dtype;
  problem.spatial = int(left.size()) - 2;
  auto set = [&](auto& a) {
    std::copy(a.stride.begin(), a.stride.end(), problem.stride.begin());
    std::copy(a.padding.begin(), a.padding.end(), problem.padding.begin());
    std::copy(a.dilation.begin(), a.dilation.end(), problem.dilation.begin());
  };
  if (&op == &convolution_weight_grad_op()) {
    problem.kind = runtime::CudaConvKind::kFilter;
    set(attrs.as<ConvolutionWeightGradAttrs>());
  } else {
    auto& a = attrs.as<ConvolutionAttrs>();
    problem.kind = a.transposed ? runtime::CudaConvKind::kData : runtime::CudaConvKind::kForward;
    set(a);
  }
  auto lay_out = [&](runtime::CudaConvTensor& to, const IntList& sizes) {
    IntList strides = format_strides("convolution", sizes, format);
    std::copy(sizes.begin(), sizes.end(), to.sizes.begin());
    std::copy(strides.begin(), strides.end(), to.strides.begin());
  };
  lay_out(problem.left(), left);
  lay_out(problem.right(), right);
  lay_out(problem.result(), result);
  return problem;
}

std::unique_ptr<CudaStep> make_convolution_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                std::span<const TensorImpl* const> outputs, Device device) {
  return std::make_unique<ConvolutionStep>(attrs, inputs, outputs, device);
}

}  // namespace sinter
