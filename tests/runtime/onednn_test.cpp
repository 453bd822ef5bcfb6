// oneDNN computes what our own cores and plain loops do, on our threads, and leaves those as they were.
#include "sinter/runtime/cpu/onednn.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/tensor/dtype.h"

namespace sinter::runtime {
namespace {

class Onednn : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string problem;
    if (onednn_version(&problem).empty()) GTEST_SKIP() << "no oneDNN plugin: " << problem;
    before_ = num_threads();
  }
  void TearDown() override {
    if (before_) set_num_threads(before_);
  }

 private:
  int before_ = 0;
};

template <class T>
std::vector<T> numbers(int64_t count, double shift = 0) {
  std::vector<T> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(T(float(std::sin(double(i) * 0.7 + shift))));
  return out;
}

template <class T>
double difference(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(float(a[i])) - double(float(b[i]))));
  return most;
}

template <class T>
constexpr GemmType type_of() {
  return sizeof(T) == 4 ? GemmType::f32 : GemmType::bf16;
}

// Counts its elements and marks them by their place.
struct Mark {
  std::atomic<int64_t> elements = 0;
  Epilogue epilogue() {
    return {[](void* context, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride) {
              static_cast<Mark*>(context)->elements += rows * cols;
              for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < cols; ++c)
                  static_cast<float*>(tile)[r * stride + c] += float((row + r) % 7) - float((col + c) % 5);
            },
            this};
  }
};

template <class T>
void compare(int64_t m, int64_t n, int64_t k, int64_t batch, bool a_transposed, bool b_transposed, bool with_epilogue,
             int threads) {
  SCOPED_TRACE(format("{}x{}x{} batch {} {} {} epilogue {} threads {}", m, n, k, batch, a_transposed, b_transposed,
                      with_epilogue, threads));
  set_num_threads(threads);
  auto a = numbers<T>(batch * m * k), b = numbers<T>(batch * k * n, 1);
  std::vector<T> want(size_t(batch * m * n)), got(want.size());
  auto type = type_of<T>();
  GemmOperand left{a.data(), a_transposed ? 1 : k, a_transposed ? m : 1, type, m * k};
  GemmOperand right{b.data(), b_transposed ? 1 : n, b_transposed ? k : 1, type, k * n};
  Mark ours, theirs;
  Epilogue our_epilogue = ours.epilogue(), their_epilogue = theirs.epilogue();
  GemmOptions options;
  options.batch = batch;
  if (with_epilogue) options.epilogue = &our_epilogue;
  gemm(m, n, k, left, right, {want.data(), n, 1, type, m * n}, options);
  GemmOutput to{got.data(), n, 1, type, m * n};
  auto product = OnednnProduct::make(m, n, k, left, right, to, options, threads);
  if (!product && sizeof(T) == 2) GTEST_SKIP() << "oneDNN has no fast bf16 product on this machine";
  ASSERT_TRUE(product);
  product->run(left, right, to, with_epilogue ? &their_epilogue : nullptr);
  EXPECT_LT(difference(got, want), (sizeof(T) == 4 ? 1e-5 : 2e-2) * std::sqrt(double(k)));
  EXPECT_EQ(theirs.elements, with_epilogue ? batch * m * n : 0);
}

TEST_F(Onednn, products_are_those_of_our_cores) {
  for (int threads : {1, 2, 3})
    for (bool epilogue : {false, true}) {
      compare<float>(64, 48, 32, 1, false, false, epilogue, threads);
      compare<float>(1, 300, 70, 1, false, false, epilogue, threads);
      compare<float>(70, 33, 50, 1, false, true, epilogue, threads);
      compare<float>(33, 70, 50, 1, true, false, epilogue, threads);
      compare<float>(20, 24, 28, 5, false, true, epilogue, threads);
      compare<float>(200, 24, 28, 2, false, false, epilogue, threads);
    }
}

TEST_F(Onednn, narrow_products_round_once) {
  for (int threads : {1, 2})
    for (bool epilogue : {false, true}) {
      compare<BFloat16>(64, 48, 32, 1, false, false, epilogue, threads);
      compare<BFloat16>(3, 3000, 70, 1, false, true, epilogue, threads);
      compare<BFloat16>(1500, 1000, 16, 1, false, false, epilogue, threads);  // more than one widened piece
      compare<BFloat16>(20, 24, 28, 5, false, false, epilogue, threads);
    }
}

TEST_F(Onednn, what_it_does_not_take_is_refused) {
  GemmOperand a{nullptr, 32, 1}, b{nullptr, 48, 1};
  GemmOutput c{nullptr, 48, 1};
  EXPECT_TRUE(OnednnProduct::make(16, 48, 32, a, b, c, {}, 1));
  EXPECT_FALSE(OnednnProduct::make(16, 48, 32, {nullptr, 64, 2}, b, c, {}, 1));
  EXPECT_FALSE(OnednnProduct::make(16, 48, 32, a, b, {nullptr, 1, 16}, {}, 1));
  EXPECT_FALSE(OnednnProduct::make(16, 48, 32, a, b, c, {.alpha = 2}, 1));
  EXPECT_FALSE(OnednnProduct::make(16, 48, 32, a, b, c, {.accumulate = true}, 1));
  EXPECT_FALSE(OnednnProduct::make(0, 48, 32, a, b, c, {}, 1));
  a.type = b.type = c.type = GemmType::f64;
  EXPECT_FALSE(OnednnProduct::make(16, 48, 32, a, b, c, {}, 1));
}

// --- convolution -----------------------------------------------------------------------------------------------------

std::vector<float> convolve(const OnednnConvolution& s, const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> out;
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t f = 0; f < s.groups * s.filters; ++f)
      for (int64_t y = 0; y < s.out[1]; ++y)
        for (int64_t z = 0; z < s.out[2]; ++z) {
          double sum = 0;
          for (int64_t c = 0; c < s.channels; ++c)
            for (int64_t i = 0; i < s.kernel[1]; ++i)
              for (int64_t j = 0; j < s.kernel[2]; ++j) {
                int64_t row = y * s.stride[1] - s.padding[1] + i * s.dilation[1];
                int64_t col = z * s.stride[2] - s.padding[2] + j * s.dilation[2];
                if (row < 0 || row >= s.in[1] || col < 0 || col >= s.in[2]) continue;
                int64_t channel = (image * s.groups + f / s.filters) * s.channels + c;
                sum += double(x[size_t((channel * s.in[1] + row) * s.in[2] + col)]) *
                       double(w[size_t(((f * s.channels + c) * s.kernel[1] + i) * s.kernel[2] + j)]);
              }
          out.push_back(float(sum));
        }
  return out;
}

TEST_F(Onednn, convolutions_are_those_of_plain_loops) {
  struct Try {
    int64_t images, groups, channels, filters, size, kernel, stride, padding, dilation;
  };
  for (auto& t : {Try{1, 1, 8, 48, 10, 3, 1, 1, 1}, Try{3, 1, 3, 16, 11, 3, 2, 1, 1}, Try{1, 4, 4, 4, 9, 3, 1, 0, 1},
                  Try{2, 1, 16, 20, 12, 3, 1, 2, 2}, Try{1, 1, 16, 33, 7, 1, 1, 0, 1}})
    for (int threads : {1, 2, 3})
      for (int64_t own : {0, 1}) {
        SCOPED_TRACE(format("{} images, {} groups, {} filters, {} threads, own layouts {}", t.images, t.groups,
                            t.filters, threads, own));
        set_num_threads(threads);
        int64_t out = (t.size + 2 * t.padding - t.dilation * (t.kernel - 1) - 1) / t.stride + 1;
        OnednnConvolution s{kOnednnF32,
                            own,
                            t.images,
                            t.groups,
                            t.channels,
                            t.filters,
                            {1, t.size, t.size},
                            {1, t.kernel, t.kernel},
                            {1, out, out},
                            {1, t.stride, t.stride},
                            {0, t.padding, t.padding},
                            {1, t.dilation, t.dilation}};
        auto x = numbers<float>(t.images * t.groups * t.channels * t.size * t.size);
        auto w = numbers<float>(t.groups * t.filters * t.channels * t.kernel * t.kernel, 1);
        std::vector<float> got(size_t(t.images * t.groups * t.filters * out * out));
        auto kernel = OnednnConvolutionKernel::make(s, threads);
        ASSERT_TRUE(kernel);
        kernel->run(x.data(), w.data(), got.data());
        EXPECT_LT(difference(got, convolve(s, x, w)), 1e-4);
      }
}

// --- manners ---------------------------------------------------------------------------------------------------------

int64_t threads_alive() {
  int64_t count = 0;
  for (auto& entry : std::filesystem::directory_iterator("/proc/self/task")) count += entry.exists();
  return count;
}

TEST_F(Onednn, starts_no_threads_and_moves_none) {
  set_num_threads(2);
  parallel_for(0, 64, 1, [](int64_t, int64_t) {});  // our own exist
  int64_t alive = threads_alive();
  cpu_set_t before, after;
  pthread_getaffinity_np(pthread_self(), sizeof before, &before);
  compare<float>(256, 256, 256, 1, false, false, true, 2);
  pthread_getaffinity_np(pthread_self(), sizeof after, &after);
  EXPECT_EQ(threads_alive(), alive);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// Run by the test below, as a process that is told of a plugin that does not exist.
TEST(OnednnProcess, DISABLED_says_what_is_missing) {
  std::string problem, version = onednn_version(&problem);
  std::printf("version '%s', problem '%s'.\n", version.c_str(), problem.c_str());
}

TEST(OnednnProcess, a_missing_plugin_is_no_error_and_says_why) {
  std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string command = format(
      "SINTER_ONEDNN_PLUGIN=/nowhere/plugin.so '{}' --gtest_also_run_disabled_tests "
      "--gtest_filter=OnednnProcess.DISABLED_says_what_is_missing 2>&1",
      program);
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  for (char buffer[256]; fgets(buffer, sizeof buffer, pipe);) output += buffer;
  EXPECT_EQ(pclose(pipe), 0) << output;
  EXPECT_NE(output.find("version '', problem '"), std::string::npos) << output;
  EXPECT_NE(output.find("/nowhere/plugin.so"), std::string::npos) << output;
}

}  // namespace
}  // namespace sinter::runtime
