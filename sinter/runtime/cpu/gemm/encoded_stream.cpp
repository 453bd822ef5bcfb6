// Products of few rows with encoded weights: each code is read once and decoded in registers.
#include <algorithm>
#include <vector>

#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/flush_denormals.h"
#include "sinter/runtime/cpu/gemm/encoded_layout.h"

namespace sinter::runtime::gemm_detail {

namespace {

const EncodedCore* integer_core([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  static const EncodedCore* const best = host_target().avx512_vnni ? avx512_vnni_encoded_core() : nullptr;
  if (isa == CpuIsa::kAvx512) return best;
#endif
  return nullptr;
}

// Integers of 16 bits stand for what has fewer digits than they.
const EncodedCore* streaming_core(CpuIsa isa, GemmType a, int kind) {
  const EncodedCore* integers = a == GemmType::bf16 || a == GemmType::f16 ? integer_core(isa) : nullptr;
  return integers && integers->rows[kind][0] ? integers : core_f32(isa)->encoded;
}

Storage storage_of(GemmType type) {
  return type == GemmType::bf16 ? kBFloat16 : type == GemmType::f16 ? kHalf : kNative;
}

}  // namespace

bool streams_integers(CpuIsa isa, GemmType a, CodeKind kind) { return streaming_core(isa, a, int(kind))->integers; }

namespace {

// A run of codes of one group or of some whole ones.
struct CodeBlock {
  int64_t k, group;       // the first
  int64_t groups, depth;  // of each; the last one of all may have fewer codes and is then by itself
  int64_t sum;            // the first sum of its groups, counted from the row's
};

std::vector<CodeBlock> blocks_of(const EncodedLayout& layout) {
  std::vector<CodeBlock> out;
  int64_t sums = 0;
  for (int64_t k = 0; k < layout.depth;) {
    const int64_t group = k / layout.group, left = layout.depth - k;
    CodeBlock block{k, group, 1, std::min({int64_t(kCodeBlock), (group + 1) * layout.group - k, left}), sums};
    if (block.depth == layout.group)
      block.groups = std::max<int64_t>(1, std::min<int64_t>(kCodeBlock, left) / layout.group);
    k += block.groups * block.depth;
    sums += block.groups;
    out.push_back(block);
  }
  return out;
}

// A as the kernels of a core read it, in memory of the calling thread.
struct PreparedRows {
  const void* a;
  int64_t row_stride, low;  // elements, and bytes between halves
  const float* scale;       // by block
  int64_t scale_stride;
  const float* sum;  // by group of a block
  int64_t sum_stride;
};

// One part of a call with what its kernels need.
struct StreamedPart {
  EncodedReader reader;
  const EncodedCore* core;
  std::vector<CodeBlock> blocks;
  PreparedRows rows;
};

constexpr int64_t kUnitPanels = 4;  // columns between two epilogues
constexpr int64_t kUnitColumns = kUnitPanels * EncodedFormat::kPanel;
constexpr int64_t kUnitRows = 36;  // whose prepared elements of a block stay in the first cache

class Stream {
 public:
  Stream(int64_t m, int64_t k, const GemmOperand& a, std::span<const GemmPart> parts, const JointOptions& options)
      : m_(m), parts_(parts), options_(options), core_(*core_f32(options.isa)) {
    for (auto& part : parts) {
      EncodedReader reader(*part.encoded);
      const EncodedCore* core = streaming_core(options.isa, a.type, reader.kind());
      streamed_.push_back({reader, core, blocks_of(reader.layout()), {}});
    }
    prepare(k, a);
  }

  void run() {
    int64_t units = 0, codes = 0;
    std::vector<int64_t> before;
    for (size_t p = 0; p < parts_.size(); ++p) {
      before.push_back(units);
      codes += parts_[p].n * streamed_[p].reader.format().k;
      if (!options_.together || p == 0) units += ceil_div(parts_[p].n, kUnitColumns);
    }
    // Units of a few columns and rows, all rows of the columns one after the other.
    const int64_t row_parts = ceil_div(m_, kUnitRows), tasks = units * row_parts;
    const auto work = [&](int64_t begin, int64_t end) {
      const FlushDenormals flush;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t unit = task / row_parts, row_part = task % row_parts;
        size_t part = 0;
        while (!options_.together && part + 1 < before.size() && before[part + 1] <= unit) ++part;
        run_unit(part, (unit - before[part]) * kUnitColumns, m_ * row_part / row_parts,
                 m_ * (row_part + 1) / row_parts);
      }
    };
    // Waking a thread costs microseconds.
    if (codes * m_ < 100000)
      work(0, tasks);
    else
      parallel_for(0, tasks, 1, work);
  }

 private:
  // The rows of A, once for all parts whose blocks and core are the same.
  void prepare(int64_t k, const GemmOperand& a) {
    const int64_t depth = round_up(std::max<int64_t>(k, 1), EncodedFormat::kGroupStep),
                  stride = round_up(depth, 16) + 16;
    std::vector<size_t> ways;  // the first part of each
    for (size_t p = 0; p < streamed_.size(); ++p)
      if (first_alike(p) == p) ways.push_back(p);
    int64_t numbers = 0;  // in bytes
    for (auto& part : streamed_)
      numbers = std::max(numbers, round_up(4 * m_ * (int64_t(part.blocks.size()) + sums_of(part)), 64));
    const int64_t integers = round_up(2 * m_ * stride, 64);
    char* at = static_cast<char*>(
        thread_scratch().rows.reserve(round_up(m_ * stride * 4, 64) + int64_t(ways.size()) * (numbers + integers)));
    float* floats = reinterpret_cast<float*>(at);
    core_.load(a.data, storage_of(a.type), a.row_stride, a.col_stride, m_, k, floats, stride);
    for (int64_t r = 0; r < m_; ++r) std::fill(floats + r * stride + k, floats + (r + 1) * stride, 0.0f);
    at += round_up(m_ * stride * 4, 64);
    for (size_t p : ways) {
      StreamedPart& part = streamed_[p];
      const int64_t count = int64_t(part.blocks.size()), sums = sums_of(part);
      float *scale = reinterpret_cast<float*>(at), *sum = scale + m_ * count;
      int8_t* halves = reinterpret_cast<int8_t*>(at + numbers);
      at += numbers + integers;
      const auto prepare_rows = [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          for (int64_t b = 0; b < count; ++b) {
            const CodeBlock& block = part.blocks[size_t(b)];
            prepare_block(*part.core, block, floats + r * stride + block.k, halves + r * 2 * stride + block.k, stride,
                          scale + r * count + b, sum + r * sums + block.sum);
          }
      };
      if (m_ * k < 65536)
        prepare_rows(0, m_);
      else
        parallel_for(0, m_, ceil_div(32768, k + 1), prepare_rows);
      if (part.core->integers)
        part.rows = {halves, 2 * stride, stride, scale, count, sum, sums};
      else
        part.rows = {floats, stride, 0, scale, count, sum, sums};
    }
    for (size_t p = 0; p < streamed_.size(); ++p) streamed_[p].rows = streamed_[first_alike(p)].rows;
  }

  static int64_t sums_of(const StreamedPart& part) { return part.blocks.back().sum + part.blocks.back().groups; }

  static void prepare_block(const EncodedCore& core, const CodeBlock& block, const float* from, int8_t* high,
                            int64_t low, float* scale, float* sum) {
    if (core.integers) return core.prepare(from, block.groups, block.depth, high, high + low, scale, sum);
    for (int64_t g = 0; g < block.groups; ++g) {
      float total = 0;
      for (int64_t i = 0; i < block.depth; ++i) total += from[g * block.depth + i];
      sum[g] = total;
    }
  }

  size_t first_alike(size_t p) const {
    for (size_t q = 0; q < p; ++q)
      if (streamed_[q].core == streamed_[p].core &&
          streamed_[q].reader.layout().group == streamed_[p].reader.layout().group)
        return q;
    return p;
  }

  // Columns [col, col + kUnitColumns) of one part, or of all of them abreast, and what follows; rows [r0, r1).
  void run_unit(size_t first, int64_t col, int64_t r0, int64_t r1) const {
    const size_t last = options_.together ? parts_.size() : first + 1;
    const int64_t rows = r1 - r0, cols = std::min(kUnitColumns, parts_[first].n - col);
    float* tiles = static_cast<float*>(thread_scratch().tile.reserve(int64_t(last - first) * rows * kUnitColumns * 4));
    void* shown[kMaxTogether];
    for (size_t p = first; p < last; ++p) {
      float* tile = tiles + int64_t(p - first) * rows * kUnitColumns;
      for (int64_t c = 0; c < cols; c += EncodedFormat::kPanel) run_panel(streamed_[p], col + c, r0, r1, tile + c);
      shown[p - first] = tile;
    }
    if (auto* epilogue = options_.epilogue)
      epilogue->function(epilogue->context, shown, options_.together ? 0 : int64_t(first), r0, col, rows, cols,
                         kUnitColumns);
    for (size_t p = first; p < last; ++p) {
      const GemmOutput& c = parts_[p].c;
      if (!c.data) continue;
      const int64_t size = c.type == GemmType::f32 ? 4 : 2;
      core_.store(static_cast<const float*>(shown[p - first]), kUnitColumns, rows, cols,
                  static_cast<char*>(c.data) + (r0 * c.row_stride + col * c.col_stride) * size, storage_of(c.type),
                  c.row_stride, c.col_stride);
    }
  }

  void run_panel(const StreamedPart& part, int64_t col, int64_t r0, int64_t r1, float* tile) const {
    const PreparedRows& rows = part.rows;
    EncodedArgs args{};
    args.table = part.reader.table();
    args.a_row_stride = rows.row_stride;
    args.low = rows.low;
    args.a_scale_stride = rows.scale_stride;
    args.a_sum_stride = rows.sum_stride;
    args.c_row_stride = kUnitColumns;
    const int64_t size = part.core->integers ? 1 : 4, chunks = ceil_div(r1 - r0, part.core->max_rows);
    for (size_t b = 0; b < part.blocks.size(); ++b) {
      const CodeBlock& block = part.blocks[b];
      args.groups = block.groups;
      args.depth = block.depth;
      args.codes = part.reader.codes(col, block.k);
      args.numbers = part.reader.numbers(col, block.group);
      args.accumulate = b > 0;
      for (int64_t chunk = 0, row = r0; chunk < chunks; ++chunk) {
        const int64_t end = r0 + (r1 - r0) * (chunk + 1) / chunks;
        args.a = static_cast<const char*>(rows.a) + (row * rows.row_stride + block.k) * size;
        args.a_scale = rows.scale + row * rows.scale_stride + int64_t(b);
        args.a_sum = rows.sum + row * rows.sum_stride + block.sum;
        args.c = tile + (row - r0) * kUnitColumns;
        part.core->rows[part.reader.kind()][end - row - 1](args);
        row = end;
      }
    }
  }

  const int64_t m_;
  const std::span<const GemmPart> parts_;
  const JointOptions& options_;
  const GemmCore<float>& core_;
  std::vector<StreamedPart> streamed_;
};

}  // namespace

void stream_encoded(int64_t m, int64_t k, const GemmOperand& a, std::span<const GemmPart> parts,
                    const JointOptions& options) {
  Stream(m, k, a, parts, options).run();
}

}  // namespace sinter::runtime::gemm_detail
