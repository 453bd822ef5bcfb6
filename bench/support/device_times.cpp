#include "bench/support/device_times.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::bench {

Json device_times(const Pass& pass, int repeats) {
  for (int i = 0; i < 10; ++i) pass();
  runtime::cuda_synchronize(0);
  std::vector<std::unique_ptr<runtime::CudaEvent>> marks;
  for (int i = 0; i < 2 * repeats; ++i) marks.push_back(std::make_unique<runtime::CudaEvent>(0));
  auto stream = runtime::cuda_stream(0);
  for (int i = 0; i < repeats; ++i) {
    marks[size_t(2 * i)]->record(stream);
    pass();
    marks[size_t(2 * i + 1)]->record(stream);
  }
  runtime::cuda_synchronize(0);
  std::vector<double> ms;
  double sum = 0, squares = 0;
  for (int i = 0; i < repeats; ++i) {
    ms.push_back(marks[size_t(2 * i + 1)]->milliseconds_since(*marks[size_t(2 * i)]));
    sum += ms.back();
    squares += ms.back() * ms.back();
  }
  std::sort(ms.begin(), ms.end());
  auto at = [&](double part) { return ms[std::min(ms.size() - 1, size_t(part * double(ms.size())))]; };
  double mean = sum / double(repeats);
  return {{"mean", mean}, {"std", std::sqrt(std::max(0.0, squares / double(repeats) - mean * mean))},
          {"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}};
}

}  // namespace sinter::bench
