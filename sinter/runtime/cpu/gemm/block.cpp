#include "sinter/runtime/cpu/gemm/block.h"

#include <algorithm>
#include <cstring>

#include "sinter/runtime/cpu/flush_denormals.h"
#include "sinter/runtime/cpu/gemm/packing.h"

namespace sinter::runtime::gemm_detail {
namespace {

constexpr int64_t kFinishBytes = 32 << 10;  // of a piece that an epilogue works on

template <class T>
char* output_at(const Problem<T>& p, int64_t row, int64_t col) {
  return static_cast<char*>(p.c) + (row * p.c_row_stride + col * p.c_col_stride) * element_size<T>(p.c_storage);
}

template <class T>
class Block {
 public:
  Block(const Group<T>& group, int64_t r0, int64_t r1, int64_t u0, int64_t u1)
      : group_(group),
        plan_(group.plan()),
        core_(*group.parts.front().core),
        k_(group.parts.front().k),
        r0_(r0),
        rows_(r1 - r0),
        u0_(u0),
        u1_(u1),
        blocks_(std::max<int64_t>(1, ceil_div(k_, plan_.depth))) {
    // Tiles that several k blocks update all live at once.
    stride_ = (blocks_ > 1 ? u1 - u0 : 1) * plan_.step;
    const int64_t abreast = group.together ? int64_t(group.parts.size()) : 1;
    for (const auto& p : group.parts) {
      if (!is_staged(group, p)) continue;
      tiles_ = reserve(thread_scratch().tile, abreast * rows_ * stride_);
      break;
    }
    if (plan_.supply == Supply::kFresh)
      fresh_ = reserve(thread_scratch().b, abreast * plan_.depth * core_.panel * kPanelGroup);
    args_.alpha = group.parts.front().alpha;
  }

  void run() {
    for (int64_t block = 0; block < blocks_; ++block) {
      const int64_t p0 = block * plan_.depth, k = std::min(plan_.depth, k_ - p0);
      place_a(p0, k);
      args_.k = plan_.bf16 ? ceil_div(k, 2) : k;
      depth_ = k;
      if (group_.together) {
        columns(group_.parts, 0, block, u0_, u1_, 0);
        continue;
      }
      int64_t before = 0;
      for (size_t i = 0; i < group_.parts.size(); ++i) {
        const int64_t units = group_.units_of(group_.parts[i]);
        const int64_t first = std::max(u0_ - before, int64_t(0)), last = std::min(u1_ - before, units);
        if (first < last) columns(group_.parts.subspan(i, 1), int64_t(i), block, first, last, before + first - u0_);
        before += units;
      }
    }
  }

 private:
  static T* reserve(Scratch& scratch, int64_t elements) {
    return static_cast<T*>(scratch.reserve(elements * int64_t(sizeof(T))));
  }

  // A's rows of a k block: where they lie, or copied in their own order, since kernels take any strides.
  void place_a(int64_t p0, int64_t k) {
    const View& view = group_.parts.front().a;
    if (plan_.bf16) {
      // Rows of pairs, an odd last element followed by zero.
      const int64_t pairs = ceil_div(k, 2), stride = round_up(pairs, 32) + 16;
      T* packed = reserve(thread_scratch().a, rows_ * stride);
      for (int64_t i = 0; i < rows_; ++i) {
        uint16_t* to = reinterpret_cast<uint16_t*>(packed + i * stride);
        const uint16_t* from = reinterpret_cast<const uint16_t*>(element<T>(view, r0_ + i, p0));
        if (view.col_stride == 1)
          std::memcpy(to, from, size_t(2 * k));
        else
          for (int64_t j = 0; j < k; ++j) to[j] = from[j * view.col_stride];
        if (k % 2) to[k] = 0;
      }
      a_ = packed;
      args_.a_row_stride = stride;
      args_.a_k_stride = 1;
      return;
    }
    if (plan_.direct_a) {
      a_ = reinterpret_cast<const T*>(element<T>(view, r0_, p0));
      args_.a_row_stride = view.row_stride;
      args_.a_k_stride = view.col_stride;
      return;
    }
    const bool by_column = view.row_stride == 1 && view.col_stride != 1;
    // The odd line keeps rows out of each other's sets.
    const int64_t stride = round_up(by_column ? rows_ : k, 32) + 16;
    T* packed = reserve(thread_scratch().a, (by_column ? k : rows_) * stride);
    const char* from = element<T>(view, r0_, p0);
    if (by_column)
      core_.load(from, view.storage, view.col_stride, view.row_stride, k, rows_, packed, stride);
    else
      core_.load(from, view.storage, view.row_stride, view.col_stride, rows_, k, packed, stride);
    a_ = packed;
    args_.a_row_stride = by_column ? 1 : stride;
    args_.a_k_stride = by_column ? stride : 1;
  }

  // One k block of units [first, last) of `parts`, abreast; `at` is the first one's place among the tiles.
  void columns(std::span<const Problem<T>> parts, int64_t part, int64_t block, int64_t first, int64_t last,
               int64_t at) {
    const Source& source = parts.front().source;
    const int64_t c0 = source.begin + first * plan_.step, c1 = std::min(source.end, source.begin + last * plan_.step);
    const bool staged = is_staged(group_, parts.front()), dots = plan_.supply == Supply::kDots;
    const int64_t stride = staged ? stride_ : parts.front().c_row_stride;
    args_.c_row_stride = stride;
    // Where neighbouring columns lie side by side a wide piece costs an epilogue less than many narrow ones.
    const bool waits = group_.epilogue && (!staged || blocks_ > 1);
    int64_t finished = c0;  // up to which columns are complete
    T* out[kMaxTogether];
    for (int64_t col = c0, cols; col < c1; col += cols) {
      // Only the last vector of a kernel is masked: an edge is taken by the widest kernel it fills.
      int width = plan_.width;
      if (!dots) {
        while (width > 0 && c1 - col <= int64_t(core_.lanes) << (width - 1)) --width;
        if (width > 1 && c1 - col < int64_t(core_.lanes) << width) --width;
      }
      cols = std::min(dots ? plan_.step : int64_t(core_.lanes) << width, c1 - col);
      for (size_t i = 0; i < parts.size(); ++i) {
        const Problem<T>& p = parts[i];
        if (staged) {
          out[i] = tiles_ + int64_t(i) * rows_ * stride_ + (blocks_ > 1 ? at * plan_.step + col - c0 : 0);
          if (block == 0 && p.accumulate)
            core_.load(output_at(p, r0_, col), p.c_storage, p.c_row_stride, p.c_col_stride, rows_, cols, out[i],
                       stride);
        } else {
          out[i] = reinterpret_cast<T*>(output_at(p, r0_, col));
        }
        const bool accumulate = block > 0 || p.accumulate;
        if (dots)
          dot_products(p, element<T>(p.b, block * plan_.depth, col), cols, out[i], stride, accumulate);
        else
          kernels(p, int64_t(i), block * plan_.depth, c0, c1, col, cols, width, out[i], accumulate);
      }
      if (block + 1 < blocks_) continue;
      const int64_t pending = col + cols - finished;
      if (waits && col + cols < c1 && pending * rows_ * int64_t(sizeof(T)) < kFinishBytes) continue;
      for (size_t i = 0; i < parts.size(); ++i) out[i] -= col - finished;
      finish(parts, part, staged, out, stride, finished, pending);
      finished = col + cols;
    }
  }

  // Of a few rows at a time with the same columns of B.
  void dot_products(const Problem<T>& p, const void* b, int64_t cols, T* out, int64_t stride, bool accumulate) {
    const int64_t groups = ceil_div(rows_, int64_t(kMaxDotRows));
    for (int64_t group = 0, row = 0; group < groups; ++group) {
      const int64_t end = rows_ * (group + 1) / groups;
      DotArgs<T> args{args_.k, a_ + row * args_.a_row_stride, args_.a_row_stride, b, p.b.col_stride, out + row * stride, stride,
                      cols, p.alpha, accumulate};
      if constexpr (sizeof(T) == 4)
        if (plan_.bf16) args.b_col_stride /= 2;  // pairs
      dot_kernel(p, end - row)(args);
      row = end;
    }
  }

  auto dot_kernel(const Problem<T>& p, int64_t rows) const {
    if constexpr (sizeof(T) == 4)
      if (plan_.bf16) return p.bf16->dot[rows - 1];
    return core_.dot[p.b.storage][rows - 1];
  }

  void kernels(const Problem<T>& p, int64_t i, int64_t p0, int64_t c0, int64_t c1, int64_t col, int64_t cols, int width,
               T* out, bool accumulate) {
    const int64_t k = padded_depth(depth_, p.source.storage);
    const int64_t b_size = element_size<T>(p.source.storage), from = col - p.source.begin;
    if (plan_.supply == Supply::kFresh) {
      const int64_t group = p.b.col_stride == 1 ? kPanelGroup : 1;
      const int64_t panel = (col - c0) / core_.panel, slot = panel % group;
      T* fresh = fresh_ + i * plan_.depth * core_.panel * kPanelGroup;
      if (slot == 0)
        pack_panels(p, p0, depth_, c0, c1, panel, std::min(panel + group, ceil_div(c1 - c0, core_.panel)),
                    p.source.storage, fresh);
      args_.b = reinterpret_cast<const char*>(fresh) + slot * k * core_.panel * b_size;
    } else if (plan_.supply == Supply::kDirect) {
      args_.b = p.source.data + (p0 * p.source.stride + from) * b_size;
    } else {
      args_.b = p.source.data + (p0 * p.source.stride * core_.panel + from * k) * b_size;
    }
    const bool direct = plan_.supply == Supply::kDirect;
    args_.b_k_stride = direct ? p.source.stride : core_.panel;
    args_.b_ahead = direct ? 256 / b_size : 16 * core_.panel;
    args_.cols = cols;
    args_.accumulate = accumulate;
    const int64_t row_panels = ceil_div(rows_, plan_.max_rows);
    for (int64_t panel = 0, row = 0; panel < row_panels; ++panel) {
      const int64_t end = rows_ * (panel + 1) / row_panels;
      args_.a = a_ + row * args_.a_row_stride;
      args_.c = out + row * args_.c_row_stride;
      run_kernel(p, end - row, width);
      row = end;
    }
  }

  void run_kernel(const Problem<T>& p, int64_t rows, int width) {
    if constexpr (sizeof(T) == 4) {
      if (plan_.tiles) return p.bf16->tile(args_, rows);
      if (plan_.bf16) return p.bf16->micro[rows - 1][width](args_);
    }
    core_.micro[p.source.storage][rows - 1][width](args_);
  }

  // Epilogue and, when staged, the store of tiles whose sums are complete.
  void finish(std::span<const Problem<T>> parts, int64_t part, bool staged, T* const* tiles, int64_t stride,
              int64_t col, int64_t cols) {
    const JointEpilogue* epilogue = group_.epilogue;
    void* shown[kMaxTogether];
    const bool turn = parts.front().swapped && epilogue;
    for (size_t i = 0; i < parts.size(); ++i) shown[i] = tiles[i];
    if (turn) {
      T* turned = reserve(thread_scratch().turned, int64_t(parts.size()) * rows_ * cols);
      for (size_t i = 0; i < parts.size(); ++i, turned += rows_ * cols) {
        core_.load(tiles[i], kNative, 1, stride, cols, rows_, turned, rows_);
        shown[i] = turned;
      }
      epilogue->function(epilogue->context, shown, group_.first_part + part, group_.first_row + col, r0_, cols, rows_,
                         rows_);
    } else if (epilogue) {
      epilogue->function(epilogue->context, shown, group_.first_part + part, group_.first_row + r0_, col, rows_, cols,
                         stride);
    }
    if (!staged) return;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Problem<T>& p = parts[i];
      if (!p.c) continue;
      const T* from = static_cast<const T*>(shown[i]);
      if (turn)
        core_.store(from, rows_, cols, rows_, output_at(p, r0_, col), p.c_storage, p.c_col_stride, p.c_row_stride);
      else
        core_.store(from, stride, rows_, cols, output_at(p, r0_, col), p.c_storage, p.c_row_stride, p.c_col_stride);
    }
  }

  const Group<T>& group_;
  const Plan& plan_;
  const GemmCore<T>& core_;
  const int64_t k_, r0_, rows_, u0_, u1_, blocks_;
  int64_t stride_, depth_ = 0;
  T* tiles_ = nullptr;
  T* fresh_ = nullptr;
  const T* a_ = nullptr;
  MicroArgs<T> args_;
};

}  // namespace

template <class T>
void run_block(const Group<T>& group, int64_t r0, int64_t r1, int64_t u0, int64_t u1) {
  const FlushDenormals flush;
  Block<T>(group, r0, r1, u0, u1).run();
}

template void run_block(const Group<float>&, int64_t, int64_t, int64_t, int64_t);
template void run_block(const Group<double>&, int64_t, int64_t, int64_t, int64_t);

}  // namespace sinter::runtime::gemm_detail
