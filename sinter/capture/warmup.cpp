#include "sinter/capture/warmup.h"

#include <atomic>
#include <thread>

#include "sinter/autograd/autograd.h"
#include "sinter/base/progress.h"
#include "sinter/base/thread_pool.h"
#include "sinter/ops/view.h"

namespace sinter::capture {

void Warmup::add(FunctionRef<void(std::vector<std::function<void()>>& work)> capture) {
  Progress::Silence silence;
  capture(examples_.emplace_back());
}

void Warmup::run() {
  Progress progress("warming up " + name_, int64_t(examples_.size()), " programs");
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  auto compile = [&] {
    Progress::Silence silence;
    for (size_t i; (i = next.fetch_add(1)) < examples_.size();) {
      try {
        for (auto& work : examples_[i]) work();
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
      progress.advance();
    }
  };
  // Threads of their own: the kernels of a program are a parallel loop, whose workers go where there is work left.
  std::vector<std::thread> threads;
  size_t wanted = std::min<size_t>(size_t(num_threads()), examples_.size());
  for (size_t i = 1; i < wanted; ++i) threads.emplace_back(compile);
  compile();
  for (auto& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

std::vector<std::vector<int64_t>> combinations(std::span<const WarmupSizes> vary) {
  std::vector<std::vector<int64_t>> out = {{}};
  for (auto& one : vary) {
    check(!one.sizes.empty() && !one.dims.empty(),
          "warmup: sizes that vary need values, and the arguments and dimensions that have them");
    std::vector<std::vector<int64_t>> grown;
    for (auto& sizes : out)
      for (int64_t size : one.sizes) {
        check(size >= 0, "warmup: a size of {}", size);
        grown.push_back(sizes);
        grown.back().push_back(size);
      }
    out = std::move(grown);
  }
  return out;
}

void Resize::tensor(Tensor& tensor) {
  if (!tensor.defined()) return;
  NoGradGuard no_history;
  const Tensor given = tensor;
  for (size_t g = 0; g < vary_.size(); ++g)
    for (auto& place : vary_[g].dims) {
      if (place.argument != argument_) continue;
      int64_t rank = tensor.dim(), dim = place.dim < 0 ? place.dim + rank : place.dim;
      check(0 <= dim && dim < rank, "warmup: argument {} has {} dimensions, not one numbered {}", place.argument, rank,
            place.dim);
      int64_t now = tensor.impl().sizes[size_t(dim)], wanted = sizes_[g];
      if (now == wanted) continue;
      if (now > wanted) {
        tensor = tensor.narrow(dim, 0, wanted).clone();
      } else {
        Shape pads;
        for (int64_t d = rank; d-- > dim;) {
          pads.push_back(0);
          pads.push_back(d == dim ? wanted - now : 0);
        }
        tensor = constant_pad_nd(tensor, pads, 0);
      }
    }
  if (!tensor.is_same(given) && given.requires_grad()) tensor.requires_grad_();
}

std::vector<WarmupSizes> all_buckets(const BucketPolicy& policy) {
  std::vector<WarmupSizes> out;
  for (auto& buckets : policy.buckets()) out.push_back({buckets.sizes, buckets.dims});
  return out;
}

}  // namespace sinter::capture
