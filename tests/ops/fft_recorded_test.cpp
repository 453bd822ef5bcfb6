// Fourier transforms, frames and windows, with their gradients, against what PyTorch recorded: tools/record_fft.py lists the calls.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <map>
#include <sstream>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/fft.h"
#include "sinter/ops/view.h"

namespace sinter {
namespace {

const SafeTensorsFile& recording() {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/fft.safetensors");
  return file;
}

// A line of the recording: a function and its options.
struct Call {
  int number;
  std::string line, function;
  std::map<std::string, std::string> options;

  bool has(const std::string& key) const { return options.contains(key); }
  int64_t integer(const std::string& key) const { return std::stoll(options.at(key)); }
  double real(const std::string& key, double standard) const {
    return has(key) ? std::stod(options.at(key)) : standard;
  }
  bool truth(const std::string& key, bool standard) const { return has(key) ? options.at(key) == "1" : standard; }
  std::optional<int64_t> optional(const std::string& key) const {
    return has(key) ? std::optional(integer(key)) : std::nullopt;
  }
  std::optional<bool> optional_truth(const std::string& key) const {
    return has(key) ? std::optional(truth(key, false)) : std::nullopt;
  }
  std::optional<std::string_view> norm() const {
    return has("norm") ? std::optional<std::string_view>(options.at("norm")) : std::nullopt;
  }
  std::optional<IntList> list(const std::string& key) const {
    if (!has(key)) return {};
    IntList out;
    std::istringstream in(options.at(key));
    for (std::string item; std::getline(in, item, ',');) out.push_back(std::stoll(item));
    return out;
  }
};

std::vector<Call> recorded_calls() {
  std::vector<Call> out;
  std::istringstream lines(recording().metadata().at("calls"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Call call{int(out.size()), line, {}, {}};
    words >> call.function;
    for (std::string word; words >> word;)
      call.options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    out.push_back(call);
  }
  return out;
}

// In doubles, or rounded; undefined where it was not recorded.
Tensor recorded(const Call& call, const std::string& what, bool narrow = false) {
  const std::string key = format("{}/{}", call.number, what);
  Tensor x = recording().contains(key + ".c") ? view_as_complex(recording().tensor(key + ".c")).clone()
             : recording().contains(key)      ? recording().tensor(key).clone()
                                              : Tensor();
  return !x.defined() || !narrow ? x : x.to(x.is_complex() ? kComplexFloat : kFloat);
}

using OneDim = Tensor (*)(const TensorArg&, const std::optional<Dim>&, int64_t, std::optional<std::string_view>);
using TwoDims = Tensor (*)(const TensorArg&, const std::optional<Shape>&, const IntList&,
                           std::optional<std::string_view>);
using AnyDims = Tensor (*)(const TensorArg&, const std::optional<Shape>&, const std::optional<IntList>&,
                           std::optional<std::string_view>);
const std::map<std::string, OneDim> kOneDim = {{"fft", fft::fft},     {"ifft", fft::ifft}, {"rfft", fft::rfft},
                                               {"irfft", fft::irfft}, {"hfft", fft::hfft}, {"ihfft", fft::ihfft}};
const std::map<std::string, TwoDims> kTwoDims = {{"fft2", fft::fft2},   {"ifft2", fft::ifft2},
                                                 {"rfft2", fft::rfft2}, {"irfft2", fft::irfft2},
                                                 {"hfft2", fft::hfft2}, {"ihfft2", fft::ihfft2}};
const std::map<std::string, AnyDims> kAnyDims = {{"fftn", fft::fftn},   {"ifftn", fft::ifftn},
                                                 {"rfftn", fft::rfftn}, {"irfftn", fft::irfftn},
                                                 {"hfftn", fft::hfftn}, {"ihfftn", fft::ihfftn}};

Tensor window_of(const Call& c, DType dtype) {
  const int64_t n = c.integer("length");
  const bool periodic = c.truth("periodic", true);
  if (c.function == "hann_window") return hann_window(n, periodic, dtype);
  if (c.function == "blackman_window") return blackman_window(n, periodic, dtype);
  if (c.function == "bartlett_window") return bartlett_window(n, periodic, dtype);
  if (c.function == "hamming_window")
    return hamming_window(n, periodic, c.real("alpha", 0.54), c.real("beta", 0.46), dtype);
  return kaiser_window(n, periodic, c.real("beta", 12), dtype);
}

// The window may be undefined.
Tensor made(const Call& c, const Tensor& x, const Tensor& window, DType dtype) {
  std::optional<Shape> s;
  if (auto sizes = c.list("s")) s = Shape(std::span<const int64_t>(*sizes));
  if (auto f = kOneDim.find(c.function); f != kOneDim.end()) {
    const std::optional<Dim> n = c.has("n") ? std::optional<Dim>(c.integer("n")) : std::nullopt;
    return f->second(x, n, c.optional("dim").value_or(-1), c.norm());
  }
  if (auto f = kTwoDims.find(c.function); f != kTwoDims.end())
    return c.has("dim") ? f->second(x, s, *c.list("dim"), c.norm()) : f->second(x, s, {-2, -1}, c.norm());
  if (auto f = kAnyDims.find(c.function); f != kAnyDims.end()) return f->second(x, s, c.list("dim"), c.norm());
  if (c.function == "fftshift") return fft::fftshift(x, c.list("dim"));
  if (c.function == "ifftshift") return fft::ifftshift(x, c.list("dim"));
  if (c.function == "fftfreq") return fft::fftfreq(c.integer("n"), c.real("d", 1), dtype);
  if (c.function == "rfftfreq") return fft::rfftfreq(c.integer("n"), c.real("d", 1), dtype);
  if (c.function == "stft")
    return stft(x, c.integer("n_fft"), c.optional("hop_length"), c.optional("win_length"), window,
                c.truth("center", true), c.has("pad_mode") ? c.options.at("pad_mode") : "reflect",
                c.truth("normalized", false), c.optional_truth("onesided"), c.optional_truth("return_complex"));
  if (c.function == "istft")
    return istft(x, c.integer("n_fft"), c.optional("hop_length"), c.optional("win_length"), window,
                 c.truth("center", true), c.truth("normalized", false), c.optional_truth("onesided"),
                 c.has("length") ? std::optional<Dim>(c.integer("length")) : std::nullopt,
                 c.truth("return_complex", false));
  return window_of(c, dtype);
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.is_complex(), want.is_complex()) << what;
  ASSERT_EQ(got.sizes().numbers(), want.sizes().numbers()) << what;
  auto numbers = [](const Tensor& x) { return (x.is_complex() ? view_as_real(x) : x).to_vector<double>(); };
  auto a = numbers(got), b = numbers(want);
  double scale = 1;
  for (double v : b) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(std::abs(a[i] - b[i]) <= tolerance * scale)
        << what << ", number " << i << ": " << a[i] << ", PyTorch gives " << b[i];
}

// The same numbers, the last dimension outermost in memory and not side by side.
Tensor scattered(const Tensor& x) {
  Tensor apart = x.dim() == 1 ? stack({x, x}, -1).select(-1, 0) : x.transpose(0, -1).contiguous().transpose(0, -1);
  return apart.detach();
}

using Run = Tensor (*)(const Call&, const Tensor& x, const Tensor& window, DType dtype);

Tensor run_eagerly(const Call& call, const Tensor& x, const Tensor& window, DType dtype) {
  return made(call, x, window, dtype);
}
// As one program, by the referee.
Tensor run_compiled(const Call& call, const Tensor& x, const Tensor& window, DType dtype) {
  const CompileOptions options{.fullgraph = true, .backend = "interpreter"};
  if (!x.defined()) return compile([&] { return made(call, {}, {}, dtype); }, options)();
  if (!window.defined()) return compile([&](const Tensor& x) { return made(call, x, {}, dtype); }, options)(x);
  return compile([&](const Tensor& x, const Tensor& window) { return made(call, x, window, dtype); }, options)(x,
                                                                                                               window);
}

void compare(bool narrow, bool apart, double tolerance, Run run = run_eagerly) {
  for (const Call& call : recorded_calls()) {
    Tensor x = recorded(call, "in", narrow), window = recorded(call, "window", narrow);
    if (apart && !x.defined()) continue;
    TensorList operands, wanted;
    for (auto [tensor, name] : {std::pair(&x, "grad_in"), std::pair(&window, "grad_window")}) {
      if (!tensor->defined()) continue;
      if (apart) *tensor = scattered(*tensor);
      operands.push_back(tensor->requires_grad_());
      wanted.push_back(recorded(call, name));
    }
    Tensor out = run(call, x, window, narrow ? kFloat : kDouble);
    EXPECT_EQ(real_dtype(out.dtype()), narrow ? kFloat32 : kFloat64) << call.line;
    expect_close(out, recorded(call, "out"), tolerance, call.line);
    if (operands.empty()) continue;
    TensorList grads = autograd::grad({out}, operands, {recorded(call, "cotangent", narrow)});
    for (size_t i = 0; i < grads.size(); ++i)
      expect_close(grads[i], wanted[i], tolerance, format("{}, gradient {}", call.line, i));
  }
}

TEST(FftRecorded, InDoublePrecision) { compare(false, false, 1e-12); }
TEST(FftRecorded, InSinglePrecision) { compare(true, false, 1e-5); }
TEST(FftRecorded, InOneProgram) { compare(false, false, 1e-12, run_compiled); }
TEST(FftRecorded, OfOperandsThatLieApart) { compare(false, true, 1e-12); }

TEST(FftRecorded, CoversEveryFunction) {
  std::map<std::string, int> calls;
  for (auto& call : recorded_calls()) ++calls[call.function];
  for (auto* names : {"fft", "rfft", "irfft", "hfft", "ihfft", "ifft"})
    for (auto* end : {"", "2", "n"}) EXPECT_GE(calls[format("{}{}", names, end)], 4);
  for (auto* name : {"stft", "istft", "fftfreq", "rfftfreq", "fftshift", "ifftshift", "kaiser_window"})
    EXPECT_GE(calls[name], 4);
}

}  // namespace
}  // namespace sinter
