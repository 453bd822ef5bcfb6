#include "sinter/engine/cuda/product_step.h"

#include <algorithm>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/function_ref.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/codegen/cuda/gemv.h"
#include "sinter/engine/cuda/library_epilogue.h"
#include "sinter/engine/cuda/loops.h"
#include "sinter/engine/cuda/nest_step.h"
#include "sinter/engine/cuda/staging.h"
#include "sinter/engine/cuda/tile_step.h"
#include "sinter/engine/step/contraction_parts.h"
#include "sinter/ops/known_ops.h"
#include "sinter/runtime/cuda/cublaslt.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {

namespace {

// A matrix operand by its geometry: the last two dimensions, and one before them for the batch.
struct Matrix {
  int64_t rows, columns, row_stride, column_stride, batch_stride;
  DType dtype;

  explicit Matrix(const TensorImpl& t) : dtype(t.dtype) {
    size_t rank = t.sizes.size();
    rows = t.sizes[rank - 2];
    columns = t.sizes[rank - 1];
    row_stride = t.strides[rank - 2];
    column_stride = t.strides[rank - 1];
    batch_stride = rank == 3 ? t.strides[0] : 0;
  }
  // The elements of a row, or of a column, lie side by side.
  bool is_dense() const { return column_stride == 1 || columns == 1 || row_stride == 1 || rows == 1; }
};

// Lays the rows of k elements that a row-major tensor consists of so far apart, where its dimensions end where they do. Gives
// how far apart they are.
int64_t spread_rows(TensorImpl& t, int64_t k, int64_t stride) {
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (t.strides[d] % k != 0 && t.strides[d] * t.sizes[d] > k) return k;
  for (auto& s : t.strides)
    if (s % k == 0) s = s / k * stride;
  t.contiguous = false;
  return stride;
}

bool is_streamable(DType dtype) { return dtype == kBFloat16 || dtype == kFloat16 || dtype == kFloat32; }

const std::string& skinny_prelude() {
  static const std::string text = codegen::cuda_prelude() + codegen::gemv_prelude();
  return text;
}

// Few rows: one kernel that reads each right operand once, computes the left one and finishes elements on the way.
class SkinnyStep final : public CudaStep {
 public:
  // Null where the kernel does not take these operands. `library` makes the other way to do it, for those who try both.
  static std::unique_ptr<SkinnyStep> make(const ContractionParts& read, std::span<const TensorImpl* const> inputs,
                                          std::span<const TensorImpl* const> outputs, Device device,
                                          std::function<std::shared_ptr<CudaStep>()> library) {
    if (read.batch != 1 || read.m > kSkinnyRows || read.m == 0 || read.k == 0) return nullptr;
    if (!is_streamable(read.left_dtype)) return nullptr;
    if (!read.prologue && Matrix(*inputs[size_t(read.left)]).column_stride != 1) return nullptr;
    for (auto& part : read.parts) {
      Matrix b(*inputs[size_t(part.right)]), first(*inputs[size_t(read.parts[0].right)]);
      bool rows = b.row_stride == 1, columns = b.column_stride == 1;
      if (!is_streamable(b.dtype) || b.dtype != first.dtype || !(rows || columns) || part.columns() == 0) return nullptr;
      if ((b.row_stride == 1) != (first.row_stride == 1)) return nullptr;
    }
    auto step = std::unique_ptr<SkinnyStep>(new SkinnyStep(device));
    if (read.m > kRowsForTheLibrary) step->library_ = std::move(library);
    return step->build(read, inputs, outputs) ? std::move(step) : nullptr;
  }

  void launch(const StepArguments& slots) const override {
    StepArguments all;
    for (auto& piece : pieces_) {
      for (int at : piece.operands) at < 0 ? all.add_number(0) : all.add_from(slots, size_t(at));
      if (piece.nest) piece.nest->add_rest(all, device_);
    }
    // Right operands are read before the kernel in front has ended.
    runtime::CudaGrid grid = grid_;
    for (int at : weights_) grid.overlaps_previous = grid.overlaps_previous && slots.stays(size_t(at));
    cuda_launch(kernels_[0]->function, device_, grid, 0, all);
  }

  std::vector<std::shared_ptr<CompiledStep>> other_candidates() const override {
    std::vector<std::shared_ptr<CompiledStep>> out;
    for (auto& tuning : codegen::gemv_candidates(spec_, gemv_device())) {
      auto other = std::shared_ptr<SkinnyStep>(new SkinnyStep(*this));
      if (to_string(tuning) != candidate_ && other->write(tuning)) out.push_back(std::move(other));
    }
    if (library_) out.push_back(library_());
    return out;
  }

 private:
  // A run of slots: operands of the node (-1: memory of the kernel's own), then what a nest adds.
  struct Piece {
    std::vector<int> operands;
    std::optional<CudaNest> nest;
  };

  explicit SkinnyStep(Device device) : CudaStep(device) { made_by_ = "gemv"; }

  codegen::GemvDevice gemv_device() const {
    auto& info = runtime::cuda_device_info(device_.index());
    return {.multiprocessors = info.multiprocessors, .clusters = info.major >= 9};
  }

  int add(Piece piece) {
    int first = slots_;
    slots_ += piece.nest ? piece.nest->kernel.slots : int(piece.operands.size());
    pieces_.push_back(std::move(piece));
    return first;
  }

  bool build(const ContractionParts& read, std::span<const TensorImpl* const> inputs,
             std::span<const TensorImpl* const> outputs) {
    codegen::GemvSpec spec;
    spec.m = int(read.m);
    spec.k = read.k;
    spec.a = read.left_dtype;
    spec.together = read.together;
    std::string texts;
    // Names inside the kernel, unique by what they are about.
    uint64_t id = hash_text(read.name);
    for (auto* list : {&inputs, &outputs})
      for (auto* t : *list)
        if (t) id = hash_bytes(t->strides.data(), t->strides.size() * 8, hash_bytes(t->sizes.data(), t->sizes.size() * 8, id + uint64_t(t->dtype)));
    for (auto& follow : read.epilogues)
      if (follow) id = hash_mix(id, follow->attrs().body->hash());
    if (read.prologue) id = hash_mix(id, read.prologue->attrs().body->hash());
    std::string base = format("{}_{}", kernel_name(read.name).substr(0, 80), hash_hex(std::to_string(id)).substr(0, 12));
    if (read.prologue) {
      auto result = row_major_of(read.prologue->node->types[0]);
      spec.prologue_stride = spread_rows(*result, read.k, codegen::gemv_prologue_stride(read.k));
      const TensorImpl* output = result.get();
      std::vector<const TensorImpl*> own;
      for (int at : read.prologue->operands) own.push_back(inputs[size_t(at)]);
      spec.prologue = base + "_p";
      CudaNest nest = emit_cuda_prologue(read.prologue->attrs(), own, {&output, 1}, spec.prologue);
      texts += nest.kernel.text;
      spec.prologue_output = int(own.size());
      spec.prologue_range = nest.range;
      std::vector<int> operands = read.prologue->operands;
      operands.push_back(-1);
      spec.prologue_slot = add({std::move(operands), std::move(nest)});
    } else {
      spec.a_slot = add({{read.left}, {}});
      spec.a_stride.value = Matrix(*inputs[size_t(read.left)]).row_stride;
    }
    for (size_t p = 0; p < read.parts.size(); ++p) {
      auto& part = read.parts[p];
      Matrix b(*inputs[size_t(part.right)]);
      weights_.push_back(part.right);
      codegen::GemvSpec::Part out{.n = part.columns(),
                                  .b_slot = add({{part.right}, {}}),
                                  .k_contiguous = b.row_stride == 1,
                                  .b_stride = {},
                                  .epilogue = {},
                                  .c_stride = {}};
      out.b_stride.value = out.k_contiguous ? b.column_stride : b.row_stride;
      spec.b = b.dtype;
      spec.c = read.left_dtype;
      if (part.result >= 0) {
        spec.c = outputs[size_t(part.result) - inputs.size()]->dtype;
        out.c_slot = add({{part.result}, {}});
        out.c_stride.value = part.columns();
      }
      if (p < read.epilogues.size() && read.epilogues[p]) {
        auto& follow = *read.epilogues[p];
        auto geometries = geometries_of(follow.operands, inputs, outputs);
        out.epilogue = format("{}_e{}", base, p);
        CudaNest nest = emit_cuda_follow(follow.attrs(), geometries.inputs, geometries.outputs, out.epilogue);
        texts += nest.kernel.text;
        out.epilogue_slot = add({follow.operands, std::move(nest)});
      }
      spec.parts.push_back(std::move(out));
    }
    spec.slots = slots_;
    if (slots_ > 128) return false;
    if (!codegen::gemv_fits(spec, runtime::cuda_device_info(device_.index()).shared_bytes)) return false;
    auto candidates = codegen::gemv_candidates(spec, gemv_device());
    if (candidates.empty()) return false;
    name_ = read.name;
    spec.name = base;
    spec_ = std::move(spec);
    texts_ = std::move(texts);
    return write(candidates[0]);
  }

  // False where the kernel does not fit the device with this tuning.
  bool write(const codegen::GemvTuning& tuning) {
    codegen::GemvSpec spec = spec_;
    spec.tuning = tuning;
    if (!codegen::gemv_fits(spec, runtime::cuda_device_info(device_.index()).shared_bytes)) return false;
    candidate_ = to_string(tuning);
    spec.name += "_" + hash_hex(candidate_).substr(0, 6);
    // Prologue and epilogues belong to one kernel each: a program may hold several tunings.
    auto renamed = [&](std::string text) {
      for (size_t at = 0; (at = text.find(spec_.name, at)) != std::string::npos; at += spec.name.size())
        text.replace(at, spec_.name.size(), spec.name);
      return text;
    };
    spec.prologue = renamed(spec.prologue);
    for (auto& part : spec.parts) part.epilogue = renamed(part.epilogue);
    codegen::GemvText text = codegen::emit_gemv(spec);
    std::string all = renamed(texts_) + text.text;
    if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", all);
    kernels_ = {std::make_shared<CudaKernel>(CudaKernel{{spec.name, std::move(all), int(text.shared_bytes)}, skinny_prelude})};
    grid_.blocks[0] = text.blocks;
    grid_.threads[0] = text.threads;
    grid_.shared_bytes = text.shared_bytes;
    grid_.overlaps_previous = true;
    return true;
  }

  // From more rows on the library is as fast.
  static constexpr int64_t kRowsForTheLibrary = 16;

  std::function<std::shared_ptr<CudaStep>()> library_;
  codegen::GemvSpec spec_;
  std::string texts_;  // of prologue and epilogues
  std::vector<Piece> pieces_;
  std::vector<int> weights_;
  int slots_ = 0;
  runtime::CudaGrid grid_;
};

// Many rows: the library, then what follows as a kernel over its results.
class LibraryStep final : public CudaStep {
 public:
  // `tiles` makes the step of our own kernel, or null, for those who try both.
  LibraryStep(const ContractionParts& read, std::span<const TensorImpl* const> inputs,
              std::span<const TensorImpl* const> outputs, Device device, std::function<std::shared_ptr<CudaStep>()> tiles)
      : CudaStep(device), batch_(read.batch), m_(read.m), k_(read.k), dtype_(read.left_dtype), tiles_(std::move(tiles)) {
    name_ = read.name;
    candidate_ = "library";
    made_by_ = "gemm";
    for (auto& part : read.parts) {
      const int64_t n = part.columns();
      parts_.push_back({n, stored(part.right, *inputs[size_t(part.right)]), part.result, m_ * n * batch_});
    }
    if (read.prologue) {
      auto result = row_major_of(read.prologue->node->types[0]);
      const TensorImpl* output = result.get();
      std::vector<const TensorImpl*> own;
      for (int at : read.prologue->operands) own.push_back(inputs[size_t(at)]);
      prologue_ = make_nest_step(emit_cuda_nest(read.prologue->attrs(), own, {&output, 1}), device);
      prologue_operands_ = read.prologue->operands;
      left_ = {-1, k_, 1, m_ * k_, m_ * k_ * batch_};
      kernels_.insert(kernels_.end(), prologue_->kernels().begin(), prologue_->kernels().end());
    } else {
      left_ = stored(read.left, *inputs[size_t(read.left)]);
    }
    for (size_t f = 0; f < read.epilogues.size(); ++f) {
      if (!read.epilogues[f]) continue;
      auto& follow = *read.epilogues[f];
      auto geometries = geometries_of(follow.operands, inputs, outputs);
      bool alone = !read.together || parts_.size() == 1;
      auto epilogue = alone && k_ > 0 ? library_epilogue(follow, parts_[f].n, inputs, outputs) : std::nullopt;
      bool only_adds = epilogue && epilogue->bias < 0 && !epilogue->relu;
      if (epilogue && (only_adds || (batch_ == 1 && dtype_ != kFloat64))) {
        parts_[f].epilogue = *epilogue;
        parts_[f].result = follow.operands.back();
        continue;
      }
      Follow out{f, read.together ? parts_.size() : 1, follow.operands,
                 emit_cuda_follow(follow.attrs(), geometries.inputs, geometries.outputs, dtype_), {}, {}};
      if (out.nest.range == 0) continue;
      out.kernel = std::make_shared<CudaKernel>(CudaKernel{{out.nest.kernel.name, out.nest.kernel.text, 0}});
      int processors = runtime::cuda_device_info(device.index()).multiprocessors;
      out.grid = grid_of(codegen::gpu_geometry(out.nest.spread(), out.nest.range, out.nest.work, processors));
      kernels_.push_back(out.kernel);
      follows_.push_back(std::move(out));
    }
  }

  void launch(const StepArguments& slots) const override {
    run(slots, [&](const runtime::CudaMatmul& product) { runtime::cuda_matmul(device_.index(), product); });
  }

  // Pairs wait: how far apart they lie is part of their shape.
  void prepare() const override {
    if (m_ == 0 || batch_ == 0) return;
    auto paired = [&](const Part& part) {
      return std::any_of(parts_.begin(), parts_.end(), [&](auto& other) { return &other != &part && can_pair(part, other); });
    };
    // As memory is aligned.
    void* anywhere = reinterpret_cast<void*>(uintptr_t(1) << 20);
    auto prepare = [&](const runtime::CudaMatmul& product) { runtime::prepare_cuda_matmul(device_.index(), product); };
    for (auto& part : parts_)
      if (part.n != 0 && !paired(part))
        multiply(prepare, anywhere, anywhere, part, anywhere, part.epilogue.added < 0 ? nullptr : anywhere,
                 part.epilogue.bias < 0 ? nullptr : anywhere, 0, 0);
  }

  void tune_libraries(const StepArguments& slots, double seconds) const override {
    run(slots, [&](const runtime::CudaMatmul& product) { runtime::tune_cuda_matmul(device_.index(), product, seconds); });
  }

  std::vector<std::shared_ptr<CompiledStep>> other_candidates() const override {
    std::shared_ptr<CudaStep> first = tiles_ ? tiles_() : nullptr;
    if (!first) return {};
    auto out = first->other_candidates();
    out.insert(out.begin(), std::move(first));
    return out;
  }

 private:
  using Multiply = FunctionRef<void(const runtime::CudaMatmul& product)>;

  void run(const StepArguments& slots, Multiply by) const {
    if (m_ == 0 || batch_ == 0) return;
    // Results that something follows, and a computed left operand, live for the time of this step.
    const int64_t item = item_size(dtype_);
    int64_t bytes = prologue_ || left_.copy ? padded(left_.elements * item) : 0;
    for (auto& part : parts_) {
      bytes += part.result < 0 ? padded(part.elements * item) : 0;
      bytes += part.right.copy ? padded(part.right.elements * item) : 0;
    }
    CudaScratch memory(device_, size_t(bytes));
    char* scratch = static_cast<char*>(memory.data());
    CudaStaging staging(device_);
    void* left = nullptr;
    if (prologue_) {
      StepArguments own;
      for (int at : prologue_operands_) own.add_from(slots, size_t(at));
      own.add_address(int64_t(reinterpret_cast<uintptr_t>(scratch)));
      prologue_->launch(own);
      left = scratch;
      scratch += padded(left_.elements * item);
    } else {
      left = read(left_, slots, staging, scratch);
    }
    std::vector<char*> rights, results(parts_.size());
    std::vector<size_t> order;
    for (auto& part : parts_) {
      rights.push_back(static_cast<char*>(read(part.right, slots, staging, scratch)));
      order.push_back(order.size());
    }
    // Two products of one shape are a batch, whose matrices lie as far apart as the operands happen to.
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return parts_[a].n != parts_[b].n ? parts_[a].n < parts_[b].n : rights[a] < rights[b];
    });
    for (size_t p : order) {
      results[p] = scratch;
      if (parts_[p].result < 0)
        scratch += padded(parts_[p].elements * item);
      else
        results[p] = static_cast<char*>(staging.write(slots, size_t(parts_[p].result), parts_[p].elements * item));
    }
    for (size_t i = 0; i < order.size(); ++i) {
      auto& part = parts_[order[i]];
      if (part.n == 0) continue;
      bool pair = i + 1 < order.size() && can_pair(part, parts_[order[i + 1]]) && results[order[i]] < results[order[i + 1]];
      int64_t apart = pair ? (rights[order[i + 1]] - rights[order[i]]) / item : 0,
              results_apart = pair ? (results[order[i + 1]] - results[order[i]]) / item : 0;
      auto& [added_at, bias_at, relu] = part.epilogue;
      const void* added = added_at < 0 ? nullptr : staging.read(slots, size_t(added_at), part.elements * item);
      const void* bias = bias_at < 0 ? nullptr : staging.read(slots, size_t(bias_at), part.n * item);
      multiply(by, left, rights[order[i]], part, results[order[i]], added, bias, apart, results_apart);
      i += pair;
    }
    for (auto& follow : follows_) {
      StepArguments all;
      for (int at : follow.operands) all.add_from(slots, size_t(at));
      follow.nest.add_rest(all, device_);
      for (size_t p = follow.first; p < follow.first + follow.parts; ++p) {
        all.add_address(int64_t(reinterpret_cast<uintptr_t>(results[p])));
        all.add_number(parts_[p].n);
      }
      cuda_launch(follow.kernel->function, device_, follow.grid, follow.nest.range, all);
    }
    staging.finish();
  }

  // Where an operand lies, and over how many elements it reaches; `copy` lays it out anew where the library would not take it.
  struct Stored {
    int slot = -1;
    int64_t row_stride = 0, column_stride = 1, batch_stride = 0, elements = 0;
    std::shared_ptr<CudaStep> copy = {};
  };
  struct Part {
    int64_t n;
    Stored right;
    int result;
    int64_t elements;
    LibraryEpilogue epilogue = {};
    // Whether the library does more than multiply.
    bool finishes() const { return epilogue.added >= 0 || epilogue.bias >= 0 || epilogue.relu; }
  };
  struct Follow {
    size_t first, parts;
    std::vector<int> operands;
    CudaNest nest;
    std::shared_ptr<CudaKernel> kernel;
    runtime::CudaGrid grid;
  };

  Stored stored(int slot, const TensorImpl& t) {
    Matrix m(t);
    if (t.numel > 0 && !runtime::cuda_matmul_takes(m.rows, m.columns, m.row_stride, m.column_stride)) {
      std::shared_ptr<CudaStep> copy = copy_step(t);
      kernels_.insert(kernels_.end(), copy->kernels().begin(), copy->kernels().end());
      return {slot, m.columns, 1, m.rows * m.columns, t.numel, std::move(copy)};
    }
    int64_t elements = 1;
    for (size_t d = 0; d < t.sizes.size(); ++d) elements += (t.sizes[d] - 1) * t.strides[d];
    return {slot, m.row_stride, m.column_stride, m.batch_stride, elements};
  }

  std::unique_ptr<CudaStep> copy_step(const TensorImpl& t) const {
    const Op& clone = known_ops().clone;
    Type type{t.dtype, Shape(std::span<const int64_t>(t.sizes)), t.device};
    Graph body;
    Value operand = body.add_input(type);
    body.set_outputs({body.add(clone, {operand}).result()});
    auto result = row_major_of(type);
    const TensorImpl *from = &t, *to = result.get();
    FusedAttrs attrs{.body = SubGraph(std::move(body)), .domain = type.shape};
    return make_nest_step(emit_cuda_nest(attrs, {&from, 1}, {&to, 1}), device_);
  }

  // The address of an operand, or of its copy in `scratch`, which then begins behind it.
  void* read(const Stored& operand, const StepArguments& slots, CudaStaging& staging, char*& scratch) const {
    const int64_t bytes = operand.elements * item_size(dtype_);
    if (!operand.copy) return staging.read(slots, size_t(operand.slot), bytes);
    StepArguments own;
    own.add_from(slots, size_t(operand.slot));
    own.add_address(int64_t(reinterpret_cast<uintptr_t>(scratch)));
    operand.copy->launch(own);
    return std::exchange(scratch, scratch + padded(bytes));
  }
  static int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

  bool can_pair(const Part& a, const Part& b) const {
    return batch_ == 1 && a.n == b.n && a.right.row_stride == b.right.row_stride &&
           a.right.column_stride == b.right.column_stride && !a.finishes() && !b.finishes();
  }

  // `apart`: how far behind its right operand and its result those of a second product lie; 0: there is none.
  void multiply(Multiply by, void* left, void* right, const Part& part, void* to, const void* added, const void* bias,
                int64_t apart, int64_t results_apart) const {
    using Epilogue = runtime::CudaMatmulEpilogue;
    Epilogue plain = part.epilogue.relu ? Epilogue::kRelu : Epilogue::kNone;
    Epilogue biased = part.epilogue.relu ? Epilogue::kReluBias : Epilogue::kBias;
    runtime::CudaMatmul product{.batch = batch_,
                                .m = m_,
                                .n = part.n,
                                .k = k_,
                                .dtype = dtype_,
                                .a = {left, left_.row_stride, left_.column_stride, left_.batch_stride},
                                .b = {right, part.right.row_stride, part.right.column_stride, part.right.batch_stride},
                                .c = {to, part.n, 1, m_ * part.n},
                                .added = added,
                                .beta = added ? 1.0f : 0.0f,
                                .epilogue = bias ? biased : plain,
                                .bias = bias};
    if (apart) {
      product.batch = 2;
      product.a.batch_stride = 0;
      product.b.batch_stride = apart;
      product.c.batch_stride = results_apart;
    }
    by(product);
  }

  int64_t batch_, m_, k_;
  DType dtype_;
  std::function<std::shared_ptr<CudaStep>()> tiles_;
  Stored left_;
  std::vector<Part> parts_;
  std::vector<Follow> follows_;
  std::unique_ptr<CudaStep> prologue_;
  std::vector<int> prologue_operands_;
};

}  // namespace

std::unique_ptr<CudaStep> make_product_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs, Device device) {
  auto read = std::make_shared<const ContractionParts>(read_contraction(attrs));
  // The other way to do it may be asked for when the caller's geometries are gone.
  struct Kept {
    std::shared_ptr<const ContractionParts> read;
    std::vector<IntrusivePtr<TensorImpl>> all;
    std::vector<const TensorImpl*> inputs, outputs;
  };
  auto kept = std::make_shared<Kept>();
  kept->read = read;
  for (auto* list : {&inputs, &outputs})
    for (auto* t : *list) {
      kept->all.push_back(t ? make_intrusive<TensorImpl>(*t) : IntrusivePtr<TensorImpl>());
      (list == &inputs ? kept->inputs : kept->outputs).push_back(kept->all.back().get());
    }
  auto library = [kept, device]() -> std::shared_ptr<CudaStep> {
    return std::make_shared<LibraryStep>(*kept->read, kept->inputs, kept->outputs, device, nullptr);
  };
  auto tiles = [kept, device]() -> std::shared_ptr<CudaStep> {
    return make_tile_step(*kept->read, kept->inputs, kept->outputs, device, true, nullptr);
  };
  if (auto step = SkinnyStep::make(*read, inputs, outputs, device, library)) return step;
  if (auto step = make_tile_step(*read, inputs, outputs, device, false, library)) return step;
  return std::make_unique<LibraryStep>(*read, inputs, outputs, device, tiles);
}

}  // namespace sinter
