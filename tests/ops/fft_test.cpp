// Transforms, frames and windows beyond values: compiled functions of any sizes, vmap, types, and what is refused.
#include "sinter/ops/fft.h"

#include <gtest/gtest.h>

#include <numbers>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/functional.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.sizes().numbers(), b.sizes().numbers());
  const Tensor difference = abs(a - b);
  EXPECT_LT(difference.max().item().to_double(), 1e-4 * std::max(1.0, abs(b).max().item().to_double()));
}

// Eager and compiled values and gradients for several sizes; one program without a break.
template <class F>
void expect_compiles(F f, const std::vector<Shape>& shapes, DType dtype) {
  int traces = 0;
  auto counted = [&](const Tensor& x) {
    ++traces;
    return f(x);
  };
  auto compiled = compile(counted, {.fullgraph = true, .dynamic = Dynamic::kTrue});
  for (auto& shape : shapes) {
    SCOPED_TRACE(to_string(shape));
    Tensor x = randn(shape, dtype).requires_grad_(), y = x.detach().clone().requires_grad_();
    Tensor want = f(x), got = compiled(y);
    expect_close(got, want);
    abs(want).square().sum().backward();
    abs(got).square().sum().backward();
    expect_close(y.grad(), x.grad());
  }
  EXPECT_EQ(traces, 1);
}

TEST(Fft, OneProgramForAllSizes) {
  manual_seed(1);
  expect_compiles([](const Tensor& x) { return fft::fft(x); }, {{3, 8}, {4, 21}}, kComplexFloat);
  expect_compiles([](const Tensor& x) { return fft::ifft(x, {}, 0, "ortho"); }, {{9, 4}, {12, 5}}, kFloat);
  expect_compiles([](const Tensor& x) { return fft::irfft(fft::rfft(x) * 0.5, x.size(-1)); }, {{3, 8}, {4, 21}},
                  kFloat);
  expect_compiles(
      [](const Tensor& x) {
        return fft::fftshift(fft::fft2(x, {{16, 6}}));
      },
      {{3, 8, 9}, {4, 10, 11}}, kFloat);
  expect_compiles([](const Tensor& x) { return fft::hfft(x); }, {{3, 8}, {4, 21}}, kComplexFloat);
}

TEST(Fft, FramesInOneProgram) {
  manual_seed(2);
  auto there = [](const Tensor& x) { return stft(x, 16, 4, {}, hann_window(16), true, "reflect", false, {}, true); };
  expect_compiles(there, {{2, 100}, {3, 131}}, kFloat);
  auto and_back = [there](const Tensor& x) {
    return istft(there(x) * 2, 16, 4, {}, hann_window(16), true, false, {}, x.size(-1));
  };
  expect_compiles(and_back, {{2, 100}, {3, 131}}, kFloat);
  const Tensor x = randn({2, 100});
  expect_close(and_back(x), x * 2);
}

TEST(Fft, OverABatchAtOnce) {
  manual_seed(3);
  const Tensor x = randn({4, 40}), z = randn({4, 3, 10}, dtype(kComplexFloat));
  expect_close(func::vmap([](const Tensor& one) { return fft::rfft(one, 32); })(x), fft::rfft(x, 32));
  expect_close(func::vmap([](const Tensor& one) { return fft::fft(one, {}, 0); })(z), fft::fft(z, {}, 1));
  expect_close(func::vmap([](const Tensor& one) { return fft::irfftn(one); })(z), fft::irfftn(z, {}, {{1, 2}}));
  const Tensor window = hann_window(16);
  auto frames = [&](const Tensor& one) { return stft(one, 16, 4, {}, window, true, "reflect", false, {}, true); };
  expect_close(func::vmap(frames)(x), frames(x));
  auto signal = [&](const Tensor& one) { return istft(one, 16, 4, {}, window); };
  expect_close(func::vmap(signal)(frames(x)), signal(frames(x)));
}

TEST(Fft, TypesAreThoseOfTheNumbers) {
  EXPECT_EQ(fft::fft(ones({4}, kDouble)).dtype(), kComplexDouble);
  EXPECT_EQ(fft::fft(ones({4})).dtype(), kComplexFloat);
  EXPECT_EQ(fft::rfft(ones({4}, kInt64)).dtype(), kComplexFloat);
  EXPECT_EQ(fft::hfft(ones({4}, kBool)).dtype(), kFloat);
  EXPECT_EQ(fft::fftn(ones({}, kDouble)).dtype(), kComplexDouble);
  EXPECT_EQ(stft(ones({20}), 8, 2, 8, ones({8}, kDouble), true, "reflect", false, true, true).dtype(), kComplexDouble);
  EXPECT_EQ(fft::fftfreq(4, kDouble).dtype(), kDouble);
  EXPECT_EQ(hann_window(5, kBFloat16).dtype(), kBFloat16);
  EXPECT_TRUE(hamming_window(5, true, requires_grad()).requires_grad());
  EXPECT_EQ(hann_window(0).numel(), 0);
  EXPECT_EQ(fft::fft(zeros({0, 3})).sizes().numbers(), (IntList{0, 3}));
  AutocastGuard half(kCPU);
  EXPECT_EQ(fft::fft(ones({4}, kBFloat16)).dtype(), kComplexFloat);
}

// LibTorch's two ways to call it.
TEST(Fft, FramesWithoutCentering) {
  const Tensor x = randn({20}), window = ones({8});
  expect_close(stft(x, 8, 2, 8, window, true, true, true),
               stft(x, 8, 2, 8, window, false, "reflect", true, true, true));
}

TEST(Fft, FramesByMethods) {
  const Tensor x = randn({2, 40}), window = hann_window(16),
               frames = x.stft(16, 4, 16, window, true, "reflect", false, {}, true);
  EXPECT_EQ(frames.sizes().numbers(), (IntList{2, 9, 11}));
  expect_close(frames.istft(16, 4, 16, window), x);
}

// What is below a frequency stays, what is above it goes.
TEST(Fft, ALowPassFilter) {
  const Tensor t = arange(0, 1600, kFloat) / 1600, low = sin(2 * std::numbers::pi * 50 * t),
               high = cos(2 * std::numbers::pi * 400 * t);
  const Tensor spectrum = fft::rfft(low + high);
  const Tensor kept = where(fft::rfftfreq(1600, 1.0 / 1600) < 100, spectrum, 0);
  expect_close(fft::irfft(kept, 1600), low);
  EXPECT_EQ(fft::fftshift(fft::fftfreq(8, 1.0 / 8)).to_vector<float>(),
            (std::vector<float>{-4, -3, -2, -1, 0, 1, 2, 3}));
}

// A sample that no window weighs: eagerly an Error, and no number in a program.
TEST(Fft, ASampleWithoutWeightIsToldOf) {
  const Tensor frames = ones({5, 4}, kComplexFloat), window = hann_window(8);
  auto signal = [&](const Tensor& x) { return istft(x, 8, 2, 8, window, false); };
  EXPECT_NE(error_of([&] { signal(frames); }).find("has no weight"), std::string::npos);
  const Tensor got = compile(signal, {.fullgraph = true})(frames);
  EXPECT_TRUE(isnan(got[0]).item<bool>());
  EXPECT_EQ(isnan(got).sum().item<int64_t>(), 1);
}

TEST(Fft, WhatCannotBeTransformedIsAnError) {
  const auto fails = [](auto f, const char* part) {
    const std::string error = error_of(f);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  const Tensor x = ones({4, 5}), z = ones({4, 5}, kComplexFloat);
  fails([&] { fft::fft(x.to(kHalf)); }, "fft: takes f32, f64 and complex numbers, not f16; convert with .to(kFloat32)");
  fails([&] { fft::rfft(z); }, "rfft: takes real numbers, not c64[4, 5]");
  fails([&] { fft::ihfft(z); }, "ihfft: takes real numbers");
  fails([&] { fft::fft(x, 0); }, "0 elements along dimension 1 of [4, 5]");
  fails([&] { fft::fft(x, -1); }, "-1 elements");
  fails([&] { fft::fft(zeros({3, 0})); }, "0 elements along dimension 1");
  fails([&] { fft::irfft(ones({3, 1})); }, "0 elements along dimension 1 of [3, 1]");
  fails([&] { fft::fft(tensor(1.0)); }, "a 0-d tensor");
  fails([&] { fft::fft(x, {}, 2); }, "fft: dimension 2");
  fails([&] { fft::fft(x, {}, -1, "Ortho"); }, "there is no normalisation 'Ortho'");
  EXPECT_TRUE(error_of([&] { fft::fft2(x, {}, {0, 1}, "no"); }).starts_with("fft2: there is no normalisation 'no'"));
  EXPECT_TRUE(error_of([&] { kaiser_window(-1); }).starts_with("kaiser_window: a window cannot have -1 elements"));
  fails([&] { fft::rfftn(x, {}, IntList()); }, "no dimension to transform");
  fails([&] { fft::fftn(x, {{3}}, {{0, 1}}); }, "sizes [3] and dimensions [0, 1] differ in length");
  fails([&] { fft::fftn(x, {{3, 3, 3}}); }, "more than the dimensions of [4, 5]");
  fails([&] { fft::fftn(x, {}, {{1, 1}}); }, "fftn");
  fails([&] { fft::fftfreq(4, kInt64); }, "frequencies are floating numbers");
  fails([&] { hann_window(-1); }, "hann_window: a window cannot have -1 elements");
  fails([&] { hann_window(4, kInt64); }, "windows are of floating numbers");
}

TEST(Fft, FramesThatDoNotFitAreErrors) {
  const auto fails = [](auto f, const char* part) {
    const std::string error = error_of(f);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  const Tensor x = ones({40}), z = ones({9, 11}, kComplexFloat), window = hann_window(16);
  const auto with = [&](int64_t n_fft, std::optional<int64_t> hop, std::optional<int64_t> length,
                        const Tensor& signal) {
    return stft(signal, n_fft, hop, length, {}, true, "reflect", false, {}, true);
  };
  fails([&] { stft(x, 16); }, "return_complex must be given for a real signal");
  fails([&] { with(16, 0, {}, x); }, "hop_length must be positive, not 0");
  fails([&] { with(3, {}, {}, x); }, "which is n_fft / 4: say one");
  fails([&] { with(16, 4, 20, x); }, "win_length must be positive and at most n_fft = 16, not 20");
  fails([&] { with(16, 4, {}, ones({1, 1, 40})); }, "expected a signal [length] or [batch, length]");
  fails([&] { stft(x, 100, 25, {}, {}, false, "reflect", false, {}, true); },
        "n_fft = 100 is more than the 40 samples");
  fails([&] { stft(x, 16, 4, {}, ones({5}), true, "reflect", false, {}, true); },
        "expected a window of win_length = 16 elements");
  fails([&] { stft(ones({40}, kComplexFloat), 16, 4, {}, {}, true, "reflect", false, true); },
        "has no onesided transform");
  fails([&] { istft(x, 16); }, "expected complex numbers");
  fails([&] { istft(ones({9}, kComplexFloat), 16); }, "expected [frequencies, frames]");
  fails([&] { istft(z, 20); }, "expected 11 frequencies for n_fft = 20");
  fails([&] { istft(z, 16, 17, {}, window); }, "hop_length = 17 is more than win_length = 16");
  fails([&] { istft(z, 16, 4, {}, window, true, false, true, {}, true); }, "not one side");
  fails([&] { istft(z.narrow(1, 0, 0), 16, 4, {}, window); }, "there are no frames");
}

}  // namespace
}  // namespace sinter
