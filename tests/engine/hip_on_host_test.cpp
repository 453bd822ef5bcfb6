// Programs on the device hip, end to end, on a stand-in for HIP's libraries that runs each launch on the CPU
// (tests/support/gpu_on_host.h): as a GPU with 64 lanes, and as one with 32. Says that what the host does is right, and that the
// kernels are; not that a real GPU takes them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compile.h"
#include "sinter/codegen/hip/prelude.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/gpu_on_host.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using testing::MemoryLayout;

std::string architecture() { return std::getenv("FAKE_HIP_ARCHITECTURE"); }

// The kernel of a program for the stand-in, behind the prelude of the host.
struct Loaded {
  codegen::GpuKernelText kernel;
  std::unique_ptr<testing::KernelsOnHost> code;
};
Loaded load(const std::string& text, const char* name) {
  const Target target = codegen::hip_target(architecture());
  const std::string prelude = codegen::hip_prelude(target);
  check(text.starts_with(prelude), "{} does not begin with the prelude", name);
  Loaded out;
  out.kernel.name = name;
  out.kernel.text = text.substr(prelude.size());
  const std::string mark = format(" {}(const __grid_constant__ Args<", name);
  out.kernel.slots = std::atoi(out.kernel.text.c_str() + out.kernel.text.find(mark) + mark.size());
  out.code = std::make_unique<testing::KernelsOnHost>(std::vector{out.kernel}, target);
  return out;
}

int launches = 0;

void launch(const char* text, const char* name, unsigned blocks, unsigned x, unsigned y, const void* params) {
  static std::mutex mutex;
  static std::map<std::string, Loaded> all;
  std::lock_guard lock(mutex);
  auto found = all.find(text);
  if (found == all.end()) found = all.emplace(text, load(text, name)).first;
  auto& [kernel, code] = found->second;
  auto* words = static_cast<const int64_t*>(params);
  codegen::GpuGeometry geometry{blocks, {x, y}, 0};
  std::string problem =
      code->run(kernel, geometry, words[8], std::vector<int64_t>(words + 9, words + 9 + kernel.slots));
  check(problem.empty(), "{}: {}", name, problem);
  ++launches;
}

// Each case in a process of its own: libraries are opened once.
[[noreturn]] void on_stand_in(const char* architecture, void (*checks)()) {
  setenv("FAKE_HIP_ARCHITECTURE", architecture, 1);
  const char* path = std::getenv("SINTER_TEST_FAKE_HIP");
  setenv("SINTER_HIP_RUNTIME", path, 1);
  setenv("SINTER_HIPRTC", path, 1);
  void* library = dlopen(path, RTLD_NOW);
  *static_cast<decltype(&launch)*>(dlsym(library, "fake_hip_launch")) = launch;
  try {
    checks();
    check(launches > 0, "nothing was launched");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "thrown: %s\n", error.what());
    std::exit(1);
  }
  std::exit(0);
}

class HipOnHost : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "not under ThreadSanitizer";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (std::getenv("SINTER_TEST_FAKE_HIP")) return;
    static struct Library {
      std::string path = ::testing::TempDir() + "sinter_fake_hip_" + std::to_string(getpid()) + ".so";
      ~Library() { std::filesystem::remove(path); }
    } library;
    std::string command = "cc -shared -fPIC -O1 -o " + library.path + " " SINTER_TEST_DATA "/fake_hip.c";
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no C compiler for the stand-in";
    setenv("SINTER_TEST_FAKE_HIP", library.path.c_str(), 1);
  }
};

void expect_same(const Tensor& got, const Tensor& want, double tolerance = 1e-4) {
  check(got.device() == hip(), "the result is on {}", got.device());
  double difference = (got.cpu() - want).abs().max().item<double>();
  check(difference <= tolerance, "off by {}", difference);
}

// The first sample of every op.
bool runs_first_sample(const Op& op) {
  for (DType dtype : {kFloat32, kInt64})
    for (auto& sample : testing::samples_of(op, dtype)) {
      if (!sample.accepted()) continue;
      FieldTexts fields = sample.fields;
      fields.emplace_back("device", "hip:0");
      try {
        sample.attrs = op.parse(fields);
      } catch (const Error&) {  // it does not say where its result goes
      }
      TensorList got = testing::run_eagerly(sample, MemoryLayout::kContiguous, hip());
      auto want = testing::referee(sample);
      for (size_t i = 0; i < got.size(); ++i) {
        std::string wrong = testing::difference(got[i], want[i], op.tolerance);
        check(wrong.empty(), "{} ({}) in {}: {}", op.name, sample.text, dtype, wrong);
      }
      return true;
    }
  return false;
}

void ops() {
  int run = 0;
  for (auto* op : all_ops()) {
    if (op->kind == OpKind::kInput || op->kind == OpKind::kScalar || op->name == "cond" || op->name == "while_loop")
      continue;
    run += runs_first_sample(*op);
  }
  check(run > 150, "only {} ops ran", run);
}

TEST_P(HipOnHost, EveryOp) { EXPECT_EXIT(on_stand_in(GetParam(), ops), ::testing::ExitedWithCode(0), ""); }

void programs() {
  auto network = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    Tensor h = gelu(matmul(x, w)) * 0.5;
    Tensor y = layer_norm(x + matmul(h, v), {24});
    return y.softmax(-1) + y.amax({-1}, true);
  };
  Tensor x = randn({5, 24}), w = randn({24, 40}) * 0.2, v = randn({40, 24}) * 0.2;
  auto fast = compile(network);
  for (int call = 0; call < 2; ++call) expect_same(fast(x.to(hip()), w.to(hip()), v.to(hip())), network(x, w, v));
  auto gradient = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
    Tensor leaf = b.detach().requires_grad_(true);
    return autograd::grad({network(a, leaf, c).square().sum()}, {leaf})[0];
  };
  expect_same(gradient(x.to(hip()), w.to(hip()), v.to(hip())), gradient(x, w, v), 1e-3);
  // An index out of range is told when the host waits.
  Tensor rows = x.to(hip()), at = tensor(std::vector<int64_t>{7}).to(hip());
  try {
    index_select(rows, 0, at).cpu();
    throw_error("an index out of range was not told");
  } catch (const Error& error) {
    check(error.message().find("7") != std::string::npos, "{}", error.message());
  }
  expect_same(rows * 2, x * 2);
}

TEST_P(HipOnHost, Programs) { EXPECT_EXIT(on_stand_in(GetParam(), programs), ::testing::ExitedWithCode(0), ""); }

// A batch norm and its gradient: channels side by side in memory are summed up in vectors; of 21 the last vector is cut off.
void images() {
  for (DType dtype : {kFloat32, kBFloat16})
    for (int64_t channels : {24, 21}) {
      auto network = [](const Tensor& image, const Tensor& weight, const Tensor& flow) {
        TensorList leaves{image.detach().requires_grad_(true), weight.detach().requires_grad_(true)};
        Tensor y = relu(batch_norm(leaves[0] * 2, {}, {}, leaves[1], leaves[1], true));
        TensorList out = autograd::grad({y}, leaves, {flow});
        out.push_back(y.detach());
        return out;
      };
      Shape shape{4, channels, 32, 30};
      TensorList host{randn(shape).to(dtype), randn({channels}), randn(shape).to(dtype)}, there;
      for (auto& t : host) there.push_back(t.to(hip()));
      for (int i : {0, 2}) there[size_t(i)] = there[size_t(i)].contiguous(MemoryFormat::kChannelsLast);
      auto want = network(host[0].to(kFloat32), host[1], host[2].to(kFloat32)),
           got = compile(network)(there[0], there[1], there[2]);
      for (size_t i = 0; i < want.size(); ++i) {
        Tensor scale = want[i].abs().max();
        expect_same((got[i].to(kFloat32) / scale.item<double>()), want[i] / scale, dtype == kFloat32 ? 1e-4 : 2e-2);
      }
    }
}

TEST_P(HipOnHost, Images) { EXPECT_EXIT(on_stand_in(GetParam(), images), ::testing::ExitedWithCode(0), ""); }

INSTANTIATE_TEST_SUITE_P(Architectures, HipOnHost, ::testing::Values("gfx90a", "gfx1100"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sinter
