// Fourier transforms on the CPU; made to be asked by peers/fft.py. A case is kind/dtype/length x lines, "r2c/f32/1024x256".
// Usage: fft [--threads N] [CASE ...]; --list names the cases; --serve answers a driver.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/support/serve.h"
#include "bench/support/timing.h"
#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/fft/fft.h"

using namespace sinter;
using namespace sinter::bench;
using namespace sinter::runtime;

namespace {

// Powers of two, products of small primes, primes.
constexpr int64_t kLengths[] = {64,   256,  1024,  4096,  16384,  65536, 262144, 1048576, 100,   360,
                                1000, 5040, 10000, 44100, 100000, 127,   1009,   10007,   65537, 1000003};
// With many lines as many elements altogether.
constexpr int64_t kElements = 1 << 18;

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const char* kind : {"c2c/f32", "r2c/f32", "c2c/f64"})
    for (int64_t n : kLengths) {
      names.push_back(format("{}/{}x1", kind, n));
      if (n * 8 <= kElements) names.push_back(format("{}/{}x{}", kind, n, kElements / n));
    }
  return names;
}

struct Case {
  Work work;
  double flops = 0;
};

template <class T>
Case make(bool real, int64_t n, int64_t lines) {
  const int64_t written = real ? n / 2 + 1 : n;
  std::vector<T> in(size_t(n * lines * (real ? 1 : 2))), out(size_t(2 * written * lines));
  for (size_t i = 0; i < in.size(); ++i) in[i] = T(std::sin(double(i)));
  Case made;
  made.flops = (real ? 2.5 : 5) * double(n) * std::log2(double(n)) * double(lines);
  made.work = repeat([=, in = std::move(in), out = std::move(out)]() mutable {
    const FftSide<const T> from{in.data(), 1, n};
    const FftSide<T> to{out.data(), 1, written};
    real ? fft_r2c<T>({n, lines}, from, to, {}) : fft_c2c<T>({n, lines}, from, to, {});
  });
  return made;
}

Case make_case(const std::string& name) {
  char kind[4] = {}, type[4] = {};
  long n = 0, lines = 0;
  check(std::sscanf(name.c_str(), "%3[^/]/%3[^/]/%ldx%ld", kind, type, &n, &lines) == 4, "{} is no case", name);
  const bool real = kind[0] == 'r';
  return std::string(type) == "f64" ? make<double>(real, n, lines) : make<float>(real, n, lines);
}

double best_of(const Case& c, double least) { return summarize(timed_calls(c.work, least)).best; }

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text == "--serve")
      return serve_cases(make_case, [](const std::string&, const Case& c, double least) {
        return Json{{"sinter_s", best_of(c, least)}, {"flops", c.flops}};
      });
    if (text == "--list") {
      for (auto& name : all_cases()) std::puts(name.c_str());
      return 0;
    }
    if (text == "--threads" && i + 1 < argc)
      set_num_threads(std::atoi(argv[++i]));
    else
      names.push_back(text);
  }
  if (names.empty()) names = all_cases();
  std::printf("%-24s %12s %9s\n", "transform", "us", "GFLOP/s");
  for (auto& name : names) {
    const Case c = make_case(name);
    const double best = best_of(c, 0.02);
    std::printf("%-24s %12.2f %9.1f\n", name.c_str(), best * 1e6, c.flops / best * 1e-9);
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "fft: %s\n", e.what());
  return 1;
}
