#include "sinter/engine/cuda/tile_step.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/codegen/cuda/tile.h"
#include "sinter/engine/cuda/nest_step.h"
#include "sinter/loops/fused.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {

namespace {

constexpr int kMostTileSlots = 128;
constexpr size_t kMostCandidates = 5;  // that are tried: each costs a compilation
// Names inside the text until what it says is known.
const std::string kKernel = "tile_kernel", kEpilogue = "tile_epilogue";

codegen::TileDevice tile_device(Device device) {
  auto& info = runtime::cuda_device_info(device.index());
  return {.major = info.major, .multiprocessors = info.multiprocessors, .shared_bytes = info.shared_bytes};
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

class TileStep final : public CudaStep {
 public:
  TileStep(Device device, std::function<std::shared_ptr<CudaStep>()> library)
      : CudaStep(device), library_(std::move(library)) {
    made_by_ = "gemm";
  }

  // False where the kernel does not take these operands, or, unless `anyway`, where nobody asked for it.
  bool build(const ContractionParts& read, std::span<const TensorImpl* const> inputs,
             std::span<const TensorImpl* const> outputs, bool anyway) {
    if (!describe(read, inputs, outputs)) return false;
    tunings_ = codegen::tile_candidates(spec_, m_, tile_device(device_));
    if (tunings_.empty() || !(anyway || is_wanted())) return false;
    spec_.m_slot = slots_++;
    spec_.a_slot = add({{read.left}, {}});
    for (size_t p = 0; p < read.parts.size(); ++p) {
      auto& part = spec_.parts[p];
      part.b_slot = add({{read.parts[p].right}, {}});
      if (read.parts[p].result >= 0) part.c_slot = add({{read.parts[p].result}, {}});
      if (p >= read.epilogues.size() || !read.epilogues[p]) continue;
      auto& follow = *read.epilogues[p];
      auto geometries = geometries_of(follow.operands, inputs, outputs);
      part.epilogue = format("{}{}", kEpilogue, p);
      CudaNest nest = emit_cuda_follow(follow.attrs(), geometries.inputs, geometries.outputs, part.epilogue, true);
      part.lanes = nest.kernel.lanes;
      texts_ += nest.kernel.text;
      part.epilogue_slot = add({follow.operands, std::move(nest)});
    }
    if (slots_ > kMostTileSlots) return false;
    if (tunings_.size() > kMostCandidates) tunings_.resize(kMostCandidates);
    write(tunings_[0]);
    return true;
  }

  void launch(const StepArguments& slots) const override {
    StepArguments all;
    all.add_number(m_);
    for (auto& piece : pieces_) {
      for (int at : piece.operands) all.add_from(slots, size_t(at));
      if (piece.nest) piece.nest->add_rest(all, device_);
    }
    cuda_launch(kernels_[0]->function, device_, grid_, 0, all);
  }

  std::vector<std::shared_ptr<CompiledStep>> other_candidates() const override {
    std::vector<std::shared_ptr<CompiledStep>> out;
    for (auto& tuning : tunings_) {
      if (tuning == spec_.tuning) continue;
      auto other = std::make_shared<TileStep>(*this);
      other->write(tuning);
      out.push_back(std::move(other));
    }
    if (library_) out.push_back(library_());
    return out;
  }

 private:
  // A run of slots: operands of the node, then what a nest adds.
  struct Piece {
    std::vector<int> operands;
    std::optional<CudaNest> nest;
  };
  // Types and sizes.
  bool describe(const ContractionParts& read, std::span<const TensorImpl* const> inputs,
                std::span<const TensorImpl* const> outputs) {
    if (read.batch != 1 || read.m == 0 || read.k == 0 || read.prologue) return false;
    name_ = read.name;
    m_ = read.m;
    spec_.name = kKernel;
    spec_.k = read.k;
    spec_.dtype = read.left_dtype;
    spec_.together = read.together && read.parts.size() > 1 && !read.epilogues.empty() && read.epilogues[0];
    if (!set_left(*inputs[size_t(read.left)])) return false;
    std::optional<DType> stored;
    for (size_t p = 0; p < read.parts.size(); ++p) {
      auto& part = read.parts[p];
      codegen::TileSpec::Part out{.n = part.columns(), .c_stride = part.columns()};
      if (!set_right(*inputs[size_t(part.right)], p == 0, out)) return false;
      if (part.result >= 0) {
        DType c = outputs[size_t(part.result) - inputs.size()]->dtype;
        if (stored && *stored != c) return false;
        stored = c;
      } else if (!spec_.together && (p >= read.epilogues.size() || !read.epilogues[p])) {
        return false;
      }
      spec_.parts.push_back(std::move(out));
    }
    spec_.c = stored.value_or(spec_.dtype);
    return true;
  }

  // On no shape measured was it faster than the library, so only tuning finds where it is, or one asks for it.
  static bool is_wanted() {
    const char* named = std::getenv("SINTER_CUDA_PRODUCTS");
    return named && std::string_view(named) == "tiles";
  }

  int add(Piece piece) {
    int first = slots_;
    slots_ += piece.nest ? piece.nest->kernel.slots : int(piece.operands.size());
    pieces_.push_back(std::move(piece));
    return first;
  }

  // Rows that 16-byte copies can take; where only an address is odd, the kernel manages.
  bool set_left(const TensorImpl& t) {
    size_t rank = t.sizes.size();
    spec_.a_stride = t.strides[rank - 2];
    return t.strides[rank - 1] == 1 && spec_.a_stride % 8 == 0 && spec_.k % 8 == 0;
  }
  bool set_right(const TensorImpl& t, bool first, codegen::TileSpec::Part& part) {
    size_t rank = t.sizes.size();
    const int64_t down = t.strides[rank - 2], along = t.strides[rank - 1];
    const bool k_contiguous = down == 1;
    if (first) spec_.k_contiguous = k_contiguous;
    part.b_stride = k_contiguous ? along : down;
    return t.dtype == spec_.dtype && (k_contiguous || along == 1) && k_contiguous == spec_.k_contiguous &&
           part.b_stride % 8 == 0 && (k_contiguous || part.n % 8 == 0);
  }

  void write(const codegen::TileTuning& tuning) {
    spec_.tuning = tuning;
    candidate_ = to_string(tuning);
    spec_.slots = slots_;
    codegen::TileText text = codegen::emit_tile(spec_);
    std::string all = texts_ + text.text;
    const std::string name = format("{}_{}", kernel_name(name_).substr(0, 80), hash_hex(all).substr(0, 12));
    replace_all(all, kKernel, name);
    replace_all(all, kEpilogue, name + "_e");
    if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", all);
    kernels_ = {std::make_shared<CudaKernel>(CudaKernel{{name, std::move(all), int(text.shared_bytes)}})};
    grid_.blocks[0] = codegen::tile_blocks(spec_, m_, tile_device(device_));
    grid_.threads[0] = text.threads;
    grid_.shared_bytes = text.shared_bytes;
    grid_.overlaps_previous = true;
  }

  std::function<std::shared_ptr<CudaStep>()> library_;
  int64_t m_ = 0;
  codegen::TileSpec spec_;
  std::vector<codegen::TileTuning> tunings_;
  std::string texts_;  // of epilogues
  std::vector<Piece> pieces_;
  int slots_ = 0;
  runtime::CudaGrid grid_;
};

}  // namespace

std::unique_ptr<CudaStep> make_tile_step(const ContractionParts& read, std::span<const TensorImpl* const> inputs,
                                         std::span<const TensorImpl* const> outputs, Device device, bool anyway,
                                         std::function<std::shared_ptr<CudaStep>()> library) {
  auto step = std::make_unique<TileStep>(device, std::move(library));
  return step->build(read, inputs, outputs, anyway) ? std::move(step) : nullptr;
}

}  // namespace sinter
