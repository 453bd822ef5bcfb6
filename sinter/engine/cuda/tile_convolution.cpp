#include "sinter/engine/cuda/tile_convolution.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/codegen/cuda/tile.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/passes/target_kernels.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/refusal.h"

namespace sinter {

namespace {

using runtime::CudaConvolution;
using runtime::CudaConvTensor;

enum Slot : int { kImage, kWeight, kResult, kRows, kBias, kResidual, kSlots };

bool is_half(DType dtype) { return dtype == kBFloat16 || dtype == kFloat16; }

// Batch, height, width, channels, without gaps.
bool is_channels_last(const CudaConvTensor& t) {
  return t.strides[1] == 1 && t.strides[3] == t.sizes[1] && t.strides[2] == t.sizes[3] * t.sizes[1] &&
         (t.sizes[0] == 1 || t.strides[0] == t.sizes[2] * t.sizes[3] * t.sizes[1]);
}
int64_t elements(const CudaConvTensor& t) { return t.sizes[0] * t.sizes[1] * t.sizes[2] * t.sizes[3]; }

// A convolution as a product, ready to be launched.
struct TileConvolution {
  runtime::CudaFunction function;
  runtime::CudaGrid grid;
  int64_t rows = 0;
};

std::shared_ptr<const TileConvolution> make(int device, const CudaConvolution& p) {
  if (p.spatial != 2 || !is_half(p.dtype) || p.x.sizes[1] != p.w.sizes[1]) return nullptr;
  for (auto* t : {&p.x, &p.w, &p.y})
    if (!is_channels_last(*t) || elements(*t) == 0 || elements(*t) >= int64_t(1) << 30) return nullptr;
  auto& info = runtime::cuda_device_info(device);
  codegen::TileDevice where{
      .major = info.major, .multiprocessors = info.multiprocessors, .shared_bytes = info.shared_bytes};
  auto out = std::make_shared<TileConvolution>();
  out->rows = p.y.sizes[0] * p.y.sizes[2] * p.y.sizes[3];
  codegen::TileSpec spec{
      .name = "tile_kernel", .dtype = p.dtype, .c = p.dtype, .slots = kSlots, .m_slot = kRows, .a_slot = kImage};
  spec.k = p.w.sizes[1] * p.w.sizes[2] * p.w.sizes[3];
  spec.a_stride = p.x.sizes[1];
  spec.parts.push_back({.n = p.w.sizes[0],
                        .b_slot = kWeight,
                        .b_stride = spec.k,
                        .epilogue = "channels",
                        .epilogue_slot = 0,
                        .lanes = 8});
  // A filter of one place that skips nothing is a plain product.
  bool plain = p.w.sizes[2] == 1 && p.w.sizes[3] == 1 && p.stride[0] == 1 && p.stride[1] == 1 && p.padding[0] == 0 &&
               p.padding[1] == 0;
  if (!plain)
    spec.image = codegen::TileImage{.channels = p.x.sizes[1],
                                    .height = p.x.sizes[2],
                                    .width = p.x.sizes[3],
                                    .result_height = p.y.sizes[2],
                                    .result_width = p.y.sizes[3],
                                    .filter_height = p.w.sizes[2],
                                    .filter_width = p.w.sizes[3],
                                    .stride = {p.stride[0], p.stride[1]},
                                    .padding = {p.padding[0], p.padding[1]},
                                    .dilation = {p.dilation[0], p.dilation[1]}};
  auto candidates = codegen::tile_candidates(spec, out->rows, where);
  if (candidates.empty()) return nullptr;
  spec.tuning = candidates[0];
  codegen::TileText text = codegen::emit_tile(spec);
  codegen::TileChannels channels{.dtype = p.dtype, .n = p.w.sizes[0], .c_slot = kResult};
  if (p.bias) channels.bias_slot = kBias;
  if (p.residual) channels.residual_slot = kResidual;
  channels.relu = p.activation == runtime::CudaConvActivation::kRelu;
  std::string all = codegen::emit_tile_channels(channels, "channels") + text.text;
  std::string name = "k_convolution_" + hash_hex(all).substr(0, 12);
  for (auto& [from, to] : {std::pair<std::string, std::string>{"tile_kernel", name}, {"channels_run", name + "_run"}})
    for (size_t at = 0; (at = all.find(from, at)) != std::string::npos; at += to.size())
      all.replace(at, from.size(), to);
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", all);
  std::vector<runtime::CudaSource> sources{{name, all, int(text.shared_bytes)}};
  out->function = runtime::load_cuda(sources, codegen::cuda_prelude(), device)[0];
  out->grid.blocks[0] = codegen::tile_blocks(spec, out->rows, where);
  out->grid.threads[0] = text.threads;
  out->grid.shared_bytes = text.shared_bytes;
  out->grid.overlaps_previous = true;
  return out;
}

std::atomic<bool> is_used = false;

// By shape and what is added; made once, null where it cannot be.
std::shared_ptr<const TileConvolution> find(int device, const CudaConvolution& p) {
  if (p.kind != runtime::CudaConvKind::kForward) return nullptr;
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const TileConvolution>> known;
  std::string key = format("{} {} {}", device, p.dtype, p.spatial);
  for (auto* t : {&p.x, &p.w, &p.y})
    for (int d = 0; d < p.spatial + 2; ++d) key += format(" {}*{}", t->sizes[size_t(d)], t->strides[size_t(d)]);
  for (int d = 0; d < p.spatial; ++d)
    key += format(" {},{},{}", p.stride[size_t(d)], p.padding[size_t(d)], p.dilation[size_t(d)]);
  key += format(" {}{}{}", int(p.activation), p.bias != nullptr, p.residual != nullptr);
  std::lock_guard lock(mutex);
  auto [it, fresh] = known.try_emplace(key);
  if (fresh) {
    try {
      it->second = make(device, p);
    } catch (const runtime::Refused& refusal) {
      if (runtime::is_strict()) throw;
      runtime::warn_refused(refusal, "the convolution runs by loops");
    }
  }
  if (it->second) is_used = true;
  return it->second;
}

bool by_library(int device, const CudaConvolution& p) {
  return runtime::cudnn_problem().empty() && runtime::prepare_cuda_convolution(device, p);
}

}  // namespace

Target::Convolutions cuda_convolutions() {
  if (runtime::cudnn_problem().empty()) return {.dtypes = {kFloat32, kBFloat16, kFloat16}, .grouped = true};
  return {.dtypes = {kBFloat16, kFloat16}, .least_spatial = 2, .most_spatial = 2};
}

bool has_cuda_convolution(const Op& op, DType dtype, const Attrs& attrs) {
  Target::Convolutions facts = cuda_convolutions();
  const bool weight_grad = &op == &convolution_weight_grad_op();
  if (!weight_grad && !attrs.as<ConvolutionAttrs>().transposed)
    return takes_convolution(facts, dtype, attrs.as<ConvolutionAttrs>());
  return runtime::cudnn_problem().empty() && facts.dtypes.contains(dtype);
}

bool prepare_convolution(int device, const CudaConvolution& problem) {
  return by_library(device, problem) || find(device, problem) != nullptr;
}

void queue_convolution(int device, const CudaConvolution& problem) {
  if (!is_used || by_library(device, problem)) return runtime::cuda_convolution(device, problem);
  auto convolution = find(device, problem);
  SINTER_INTERNAL_ASSERT(convolution, "a convolution that was not prepared");
  StepArguments slots;
  auto add = [&](const void* address) { slots.add_address(int64_t(reinterpret_cast<uintptr_t>(address))); };
  add(problem.x.data);
  add(problem.w.data);
  add(problem.y.data);
  slots.add_number(convolution->rows);
  add(problem.bias);
  add(problem.residual);
  cuda_launch(convolution->function, cuda(device), convolution->grid, 0, slots);
}

}  // namespace sinter
