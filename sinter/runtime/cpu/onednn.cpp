#include "sinter/runtime/cpu/onednn.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/flush_denormals.h"
#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

namespace {

// --- the plugin ------------------------------------------------------------------------------------------------------

// SINTER_ONEDNN_PLUGIN, or where this installation has it.
std::string onednn_plugin_path() {
  const char* path = std::getenv("SINTER_ONEDNN_PLUGIN");
  return path && *path ? path : plugin_path("libsinter_onednn.so");
}

// An OpenMP runtime may bind the thread that loads it, which is a thread of ours.
class KeepAffinity {
 public:
  KeepAffinity() : known_(pthread_getaffinity_np(pthread_self(), sizeof mask_, &mask_) == 0) {}
  ~KeepAffinity() {
    if (known_) pthread_setaffinity_np(pthread_self(), sizeof mask_, &mask_);
  }

 private:
  cpu_set_t mask_;
  bool known_;
};

struct Plugin {
  std::optional<DynamicLibrary> library;
  const OnednnApi* api = nullptr;
  std::string version, problem;
};

const Plugin& plugin() {
  // Never unloaded: pieces of work may be under way at exit.
  static const Plugin* loaded = [] {
    auto* plugin = new Plugin;
    KeepAffinity keep;
    plugin->library = DynamicLibrary::try_open(onednn_plugin_path(), /*lazy=*/true, &plugin->problem);
    if (!plugin->library) return plugin;
    auto open = reinterpret_cast<OnednnOpen>(plugin->library->find_symbol(kOnednnOpenSymbol));
    if (!open) {
      plugin->problem = format("{} is of another version of Sinter", plugin->library->path());
      return plugin;
    }
    const char* problem = "";
    plugin->api = open(&problem);
    if (plugin->api)
      plugin->version = plugin->api->version;
    else
      plugin->problem = problem;
    return plugin;
  }();
  return *loaded;
}

// --- primitives, by shape --------------------------------------------------------------------------------------------

// Plans of equal layers share theirs, and so do the equal pieces of one product.
template <class Shape>
std::shared_ptr<const void> find_primitive(const Shape& shape, void* (*make)(const Shape*)) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<std::string, std::weak_ptr<const void>>;
  std::string key(reinterpret_cast<const char*>(&shape), sizeof shape);
  std::lock_guard lock(mutex);
  if (auto found = (*known)[key].lock()) return found;
  void* made = make(&shape);
  if (!made) {
    known->erase(key);
    return nullptr;
  }
  std::erase_if(*known, [&](auto& entry) { return entry.second.expired() && entry.first != key; });
  std::shared_ptr<const void> out(made, [](const void* p) { plugin().api->free(const_cast<void*>(p)); });
  (*known)[key] = out;
  return out;
}

void run_primitive(const void* primitive, const void* a, const void* b, void* c) {
  FlushDenormals flush;
  check(plugin().api->run(primitive, a, b, c), "oneDNN could not run a primitive that it had made");
}

int64_t size_of(GemmType type) { return type == GemmType::f64 ? 8 : type == GemmType::f32 ? 4 : 2; }
int64_t onednn_type(GemmType type) {
  return type == GemmType::bf16 ? kOnednnBf16 : type == GemmType::f16 ? kOnednnF16 : kOnednnF32;
}
const char* at(const void* data, int64_t elements, GemmType type) {
  return static_cast<const char*>(data) + elements * size_of(type);
}
char* at(void* data, int64_t elements, GemmType type) { return static_cast<char*>(data) + elements * size_of(type); }

// A layout that oneDNN's fast code reads: one of the two strides is 1.
bool is_plain(const GemmOperand& o, int64_t rows, int64_t cols) {
  return (o.col_stride == 1 && o.row_stride >= cols) || (o.row_stride == 1 && o.col_stride >= rows);
}

// [begin, end) of piece i of `count` over [0, size), in whole steps but for the last.
std::pair<int64_t, int64_t> part(int64_t size, int64_t step, int64_t count, int64_t i) {
  int64_t steps = (size + step - 1) / step;
  return {std::min(size, steps * i / count * step), std::min(size, steps * (i + 1) / count * step)};
}

float* widened_memory(size_t elements) {
  static thread_local std::vector<float> memory;
  if (memory.size() < elements) memory.resize(elements);
  return memory.data();
}

// As BFloat16 rounds, in line and without branches: to the nearest, ties to even, a NaN stays one.
uint16_t round_bfloat16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, nan = (bits >> 16) | 0x40;
  return uint16_t((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

void round_row(const float* from, int64_t count, uint16_t* to) {
  constexpr int64_t kLanes = 16;  // a fixed count becomes vector instructions
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) to[i + j] = round_bfloat16(from[i + j]);
  for (; i < count; ++i) to[i] = round_bfloat16(from[i]);
}

void round_row(const float* from, int64_t count, Half* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = Half(from[i]);
}

template <class Narrow>
void round_rows(const float* from, int64_t rows, int64_t cols, Narrow* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r) round_row(from + r * cols, cols, to + r * to_stride);
}

constexpr int64_t kStep = 16;  // rows and columns are cut at multiples of it
// Of a piece in f32. Small ones would keep to a core's second cache, but oneDNN rearranges B anew for each piece.
constexpr int64_t kWidenedBytes = 4 * 1024 * 1024;

}  // namespace

const std::string& onednn_version(std::string* problem) {
  if (problem) *problem = plugin().problem;
  return plugin().version;
}

// --- products --------------------------------------------------------------------------------------------------------

std::shared_ptr<const OnednnProduct> OnednnProduct::make(int64_t m, int64_t n, int64_t k, const GemmOperand& a,
                                                         const GemmOperand& b, const GemmOutput& c,
                                                         const GemmOptions& options, int threads) {
  int64_t batch = options.batch;
  bool fits = a.type == b.type && a.type == c.type && a.type != GemmType::f64 && options.alpha == 1 &&
              !options.accumulate && m > 0 && n > 0 && k > 0 && batch > 0 && c.col_stride == 1 && c.row_stride >= n &&
              is_plain(a, m, k) && is_plain(b, k, n);
  if (!fits || !plugin().api) return nullptr;
  auto out = std::make_shared<OnednnProduct>();
  out->m_ = m;
  out->widened_ = options.epilogue && c.type != GemmType::f32;

  // Batches to a thread where there are enough; else the longer side is cut.
  bool by_batch = batch >= threads, by_rows = !by_batch && m >= n;
  int64_t count = by_batch ? threads : std::clamp<int64_t>((by_rows ? m : n) / kStep, 1, threads);
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    auto [b0, b1] = by_batch ? part(batch, 1, count, i) : std::pair<int64_t, int64_t>(0, batch);
    auto [r0, r1] = by_rows ? part(m, kStep, count, i) : std::pair<int64_t, int64_t>(0, m);
    auto [c0, c1] = !by_batch && !by_rows ? part(n, kStep, count, i) : std::pair<int64_t, int64_t>(0, n);
    if (b0 == b1 || r0 == r1 || c0 == c1) continue;
    if (!out->widened_) {
      pieces.push_back({b0, b1 - b0, r0, r1 - r0, c0, c1 - c0, nullptr});
      continue;
    }
    int64_t rows = std::max<int64_t>(kStep, kWidenedBytes / 4 / (c1 - c0) / kStep * kStep);
    for (int64_t at = b0; at < b1; ++at)
      for (int64_t r = r0; r < r1; r += rows)
        pieces.push_back({at, 1, r, std::min(rows, r1 - r), c0, c1 - c0, nullptr});
  }
  for (auto& piece : pieces) {
    OnednnMatmul shape{};
    shape.type = onednn_type(a.type);
    shape.out_type = out->widened_ ? kOnednnF32 : onednn_type(c.type);
    shape.batch = piece.batches;
    shape.m = piece.rows;
    shape.n = piece.cols;
    shape.k = k;
    auto strides = [&](int64_t* to, int64_t outer, int64_t row, int64_t col) {
      to[0] = piece.batches > 1 ? outer : 0;
      to[1] = row;
      to[2] = col;
    };
    strides(shape.a, a.batch_stride, a.row_stride, a.col_stride);
    strides(shape.b, b.batch_stride, b.row_stride, b.col_stride);
    strides(shape.c, c.batch_stride, out->widened_ ? piece.cols : c.row_stride, 1);
    // A shared operand under a batch has no memory description of its own.
    if (piece.batches > 1 && (a.batch_stride == 0 || b.batch_stride == 0)) return nullptr;
    piece.primitive = find_primitive(shape, plugin().api->make_matmul);
    if (!piece.primitive) return nullptr;
  }
  out->pieces_ = std::move(pieces);
  return out;
}

void OnednnProduct::run(const GemmOperand& a, const GemmOperand& b, const GemmOutput& c,
                        const Epilogue* epilogue) const {
  parallel_for(0, int64_t(pieces_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run(pieces_[size_t(i)], a, b, c, epilogue);
  });
}

void OnednnProduct::run(const Piece& piece, const GemmOperand& a, const GemmOperand& b, const GemmOutput& c,
                        const Epilogue* epilogue) const {
  const char* from_a = at(a.data, piece.batch * a.batch_stride + piece.row * a.row_stride, a.type);
  const char* from_b = at(b.data, piece.batch * b.batch_stride + piece.col * b.col_stride, b.type);
  char* to = at(c.data, piece.batch * c.batch_stride + piece.row * c.row_stride + piece.col, c.type);
  SINTER_INTERNAL_ASSERT(widened_ == (epilogue && c.type != GemmType::f32),
                         "the product was made for another epilogue");
  if (widened_) {
    float* wide = widened_memory(size_t(piece.rows * piece.cols));
    run_primitive(piece.primitive.get(), from_a, from_b, wide);
    FlushDenormals flush;
    epilogue->function(epilogue->context, wide, piece.batch * m_ + piece.row, piece.col, piece.rows, piece.cols,
                       piece.cols);
    if (c.type == GemmType::bf16)
      round_rows(wide, piece.rows, piece.cols, reinterpret_cast<uint16_t*>(to), c.row_stride);
    else
      round_rows(wide, piece.rows, piece.cols, reinterpret_cast<Half*>(to), c.row_stride);
    return;
  }
  run_primitive(piece.primitive.get(), from_a, from_b, to);
  if (!epilogue) return;
  FlushDenormals flush;
  for (int64_t i = 0; i < piece.batches; ++i)
    epilogue->function(epilogue->context, at(static_cast<void*>(to), i * c.batch_stride, c.type),
                       (piece.batch + i) * m_ + piece.row, piece.col, piece.rows, piece.cols, c.row_stride);
}

// --- convolutions ----------------------------------------------------------------------------------------------------

std::shared_ptr<const OnednnConvolutionKernel> OnednnConvolutionKernel::make(const OnednnConvolution& shape,
                                                                             int threads) {
  if (!plugin().api) return nullptr;
  auto volume = [](const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; };
  int64_t plane = volume(shape.in), taps = volume(shape.kernel), positions = volume(shape.out);
  if (shape.images * shape.groups * shape.channels * shape.filters * plane * taps * positions == 0) return nullptr;
  int64_t bytes = shape.type == kOnednnF32 ? 4 : 2;
  auto out = std::make_shared<OnednnConvolutionKernel>();
  auto add = [&](const OnednnConvolution& one, int64_t image, int64_t group, int64_t filter) {
    int64_t map = image * shape.groups + group;
    Piece piece{map * shape.channels * plane * bytes, (group * shape.filters + filter) * shape.channels * taps * bytes,
                (map * shape.filters + filter) * positions * bytes,
                find_primitive(one, plugin().api->make_convolution)};
    out->pieces_.push_back(std::move(piece));
    return out->pieces_.back().primitive != nullptr;
  };
  // Images to a thread where there are enough; else one image after another, its groups or its filters to a thread.
  bool by_image = shape.images >= threads, by_group = shape.groups > 1;
  int64_t size = by_image ? shape.images : by_group ? shape.groups : shape.filters;
  int64_t step = by_image || by_group ? 1 : kStep, count = std::clamp<int64_t>(size / step, 1, threads);
  for (int64_t i = 0; i < count; ++i) {
    auto [begin, end] = part(size, step, count, i);
    if (begin == end) continue;
    OnednnConvolution one = shape;
    (by_image ? one.images : by_group ? one.groups : one.filters) = end - begin;
    if (by_image) {
      if (!add(one, begin, 0, 0)) return nullptr;
      continue;
    }
    one.images = 1;
    for (int64_t image = 0; image < shape.images; ++image)
      if (!add(one, image, by_group ? begin : 0, by_group ? 0 : begin)) return nullptr;
  }
  return out;
}

void OnednnConvolutionKernel::run(const void* x, const void* weight, void* out) const {
  parallel_for(0, int64_t(pieces_.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto& piece = pieces_[size_t(i)];
      run_primitive(piece.primitive.get(), static_cast<const char*>(x) + piece.x,
                    static_cast<const char*>(weight) + piece.weight, static_cast<char*>(out) + piece.out);
    }
  });
}

}  // namespace sinter::runtime
