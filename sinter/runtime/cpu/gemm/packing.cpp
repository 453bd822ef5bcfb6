#include "sinter/runtime/cpu/gemm/packing.h"

#include "sinter/base/thread_pool.h"

namespace sinter::runtime::gemm_detail {

template <class T>
void pack_panels(const Problem<T>& p, int64_t p0, int64_t k, int64_t c0, int64_t c1, int64_t first, int64_t last,
                 Storage to, void* dst) {
  const GemmCore<T>& core = *p.core;
  const int64_t depth = padded_depth(k, to), size = element_size<T>(to);
  // Where columns are adjacent the panels advance together, so that a page is read in one visit.
  const int64_t step = p.b.col_stride == 1 ? 32 : k;
  for (int64_t row = 0; row < k; row += step) {
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t col = c0 + panel * core.panel, cols = std::min<int64_t>(core.panel, c1 - col);
      char* at = static_cast<char*>(dst) + ((panel - first) * depth + row) * core.panel * size;
      const int64_t rows = std::min(step, k - row);
      if (p.maker) {
        p.maker->pack(p.maker->context, p0 + row, rows, col, cols, at);
        continue;
      }
      const char* from = element<T>(p.b, p0 + row, col);
      if (to == kPairs)
        core.pack_pairs(from, p.b.row_stride, p.b.col_stride, rows, cols, at);
      else
        core.pack_panel(from, p.b.storage, p.b.row_stride, p.b.col_stride, rows, cols, reinterpret_cast<T*>(at));
    }
  }
}

template <class T>
void pack_chunk(const Problem<T>& p, int64_t depth, int64_t c0, int64_t c1, Storage to, void* dst, int threads) {
  const int64_t width = p.core->panel, panels = ceil_div(c1 - c0, width), blocks = ceil_div(p.k, depth);
  const int64_t groups = ceil_div(panels, kPanelGroup), units = groups * blocks;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t p0 = unit / groups * depth, k = std::min(depth, p.k - p0);
      const int64_t first = unit % groups * kPanelGroup, last = std::min(panels, first + kPanelGroup);
      char* at = static_cast<char*>(dst) + (p0 * panels + first * padded_depth(k, to)) * width * element_size<T>(to);
      pack_panels(p, p0, k, c0, c1, first, last, to, at);
    }
  };
  if (threads > 1)
    parallel_for(0, units, ceil_div(units, 8 * threads), run);
  else
    run(0, units);
}

template <class T>
int64_t packed_elements(const GemmCore<T>& core, int64_t k, int64_t n, Storage storage) {
  return padded_depth(k, packed_as(storage)) * round_up(n, core.panel);
}

template <class T>
void pack_whole(const GemmCore<T>& core, int64_t k, int64_t n, const View& b, void* dst) {
  const int threads = n * k > 65536 ? num_threads() : 1;
  Problem<T> p{};
  p.core = &core;
  p.n = n;
  p.k = k;
  p.b = b;
  if (b.storage != kHalf) return pack_chunk(p, block_depth<T>(k), 0, n, packed_as(b.storage), dst, threads);

  const int64_t depth = block_depth<T>(k), panels = ceil_div(n, core.panel), width = core.panel;
  uint16_t* out = static_cast<uint16_t*>(dst);
  parallel_for(0, panels, ceil_div(panels, 8 * threads), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      for (int64_t row = 0; row < k; ++row) {
        const int64_t p0 = row / depth * depth, rows = std::min(depth, k - p0);
        uint16_t* line = out + (p0 * panels + panel * rows + row - p0) * width;
        const uint16_t* from = reinterpret_cast<const uint16_t*>(element<T>(b, row, panel * width));
        for (int64_t j = 0; j < width; ++j) line[j] = panel * width + j < n ? from[j * b.col_stride] : uint16_t(0);
      }
    }
  });
}

template void pack_panels(const Problem<float>&, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, Storage, void*);
template void pack_panels(const Problem<double>&, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, Storage, void*);
template void pack_chunk(const Problem<float>&, int64_t, int64_t, int64_t, Storage, void*, int);
template void pack_chunk(const Problem<double>&, int64_t, int64_t, int64_t, Storage, void*, int);
template int64_t packed_elements(const GemmCore<float>&, int64_t, int64_t, Storage);
template int64_t packed_elements(const GemmCore<double>&, int64_t, int64_t, Storage);
template void pack_whole(const GemmCore<float>&, int64_t, int64_t, const View&, void*);
template void pack_whole(const GemmCore<double>&, int64_t, int64_t, const View&, void*);

}  // namespace sinter::runtime::gemm_detail
