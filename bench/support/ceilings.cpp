#include "bench/support/ceilings.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"

namespace sinter::bench {

using runtime::kStreamBlock;

std::optional<FmaCeiling> fma_ceiling(int threads) {
  auto loop = runtime::fma_loop();
  if (!loop) return std::nullopt;
  auto body = [threads, run = loop->run] {
    parallel_for(0, threads, 1, [run](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run();
    });
  };
  return FmaCeiling{repeat(body), loop->flops * threads};
}

double measure_fma_ceiling() {
  auto ceiling = fma_ceiling();
  if (!ceiling) return 0;
  return ceiling->flops / alternate({ceiling->work}, {.count = 20, .seconds = 0.005})[0].best;
}

std::optional<double> measure_free_cores() {
  auto together = fma_ceiling(), alone = fma_ceiling(1);
  if (!together || !alone) return std::nullopt;
  auto t = alternate({together->work, alone->work}, {.count = 15, .seconds = 0.005});
  return (together->flops / t[0].median) / (alone->flops / t[1].best);
}

const char* to_string(Traffic traffic) {
  return traffic == Traffic::kRead ? "1r" : traffic == Traffic::kCopy ? "1r1w" : "2r1w";
}

StreamCeiling::StreamCeiling(const Tensor& a, const Tensor& b)
    : array_bytes_(int64_t(a.numel()) * 4 / kStreamBlock * kStreamBlock), a_(a), b_(b), c_(ones({array_bytes_ / 4})) {
  check(a.is_contiguous() && b.is_contiguous() && a.dtype() == kFloat32 && b.dtype() == kFloat32 &&
            int64_t(a.numel()) == int64_t(b.numel()),
        "StreamCeiling: the operands must be contiguous f32 tensors of one size");
}

// The library's own tensors, so that pages are as large as those of the ops compared. Not zeros: pages never written
// would all be read from one.
StreamCeiling::StreamCeiling(int64_t bytes_per_array)
    : StreamCeiling(ones({bytes_per_array / 4}), ones({bytes_per_array / 4})) {}

Work StreamCeiling::work(Traffic traffic, bool streaming_stores) const {
  auto at = [](const Tensor& t) { return static_cast<char*>(t.data_ptr()); };
  runtime::StreamLoop loop = runtime::stream_loop(traffic, streaming_stores);
  int64_t blocks = array_bytes_ / kStreamBlock;
  // Few pieces while the arrays sit in caches; else small ones, so that no thread waits for a slower one.
  int64_t grain = std::clamp<int64_t>(blocks / num_threads(), 1, (int64_t(1) << 20) / kStreamBlock);
  return repeat([loop, grain, blocks, a = at(a_), b = at(b_), c = at(c_)] {
    parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
      loop(a + begin * kStreamBlock, b + begin * kStreamBlock, c + begin * kStreamBlock, (end - begin) * kStreamBlock);
    });
  });
}

int64_t StreamCeiling::bytes(Traffic traffic) const { return array_bytes_ * (int64_t(traffic) + 1); }

double measure_read_bandwidth() {
  StreamCeiling stream(int64_t(256) << 20);
  return double(stream.bytes(Traffic::kRead)) / alternate({stream.work(Traffic::kRead, false)}, {.count = 5})[0].best;
}

}  // namespace sinter::bench
