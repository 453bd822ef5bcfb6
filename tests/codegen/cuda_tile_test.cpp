// Products on tensor cores: that the text compiles for each architecture, the ways that are offered to tuning, what does not
// fit; and where there is a GPU, results against the host's.
#include "sinter/codegen/cuda/tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <set>

#include "sinter/base/format.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/stream.h"
#include "tests/codegen/on_gpu.h"

namespace sinter::codegen {
namespace {

constexpr TileDevice kHopper{.major = 9, .multiprocessors = 132, .shared_bytes = 227 * 1024},
    kAmpere{.major = 8, .multiprocessors = 108, .shared_bytes = 163 * 1024},
    kAda{.major = 8, .multiprocessors = 142, .shared_bytes = 99 * 1024};

constexpr int kSlots = 16, kNumberOfRows = 7;

// Epilogues such as generated ones: slot 0 is an address, slot 1 how far its rows are apart.
const char* const kFunctions = R"(
namespace k {
struct gate_run {
  template <class X>
  static __device__ void finish_(const X& a, const float* tiles, int apart, i64 row, i64 column) {
    for (int i = 0; i < 4 && column + i < a[1]; ++i)
      ((float*)a[0])[row * a[1] + column + i] = tiles[i] * tiles[apart + i];
  }
};
struct residual_run {
  template <class X>
  static __device__ void finish_(const X& a, const float* tiles, int, i64 row, i64 column) {
    ((float*)a[0])[row * a[1] + column] = 1 + tiles[0];
  }
};
}
)";

TileSpec product(DType dtype, int64_t k, std::vector<int64_t> widths, bool k_contiguous = true) {
  TileSpec spec{.name = "product",
                .dtype = dtype,
                .c = dtype,
                .k = k,
                .slots = kSlots,
                .m_slot = kNumberOfRows,
                .k_contiguous = k_contiguous,
                .a_slot = 0,
                .a_stride = k};
  for (int64_t n : widths) {
    int p = int(spec.parts.size());
    spec.parts.push_back({.n = n, .b_slot = 1 + p, .b_stride = k_contiguous ? k : n, .c_slot = 4 + p, .c_stride = n});
  }
  return spec;
}
TileSpec with_epilogue(TileSpec spec, const char* name, int lanes) {
  spec.together = std::string(name) == "gate";
  spec.parts[0].epilogue = name;
  spec.parts[0].epilogue_slot = 8;
  spec.parts[0].lanes = lanes;
  return spec;
}
TileSpec convolution(DType dtype, TileImage image, int64_t filters) {
  TileSpec spec = product(dtype, image.channels * image.filter_height * image.filter_width, {filters});
  spec.image = image;
  return spec;
}
const TileImage kImage{.channels = 24,
                       .height = 13,
                       .width = 17,
                       .result_height = 7,
                       .result_width = 8,
                       .filter_height = 3,
                       .filter_width = 2,
                       .stride = {2, 2},
                       .padding = {2, 1},
                       .dilation = {2, 3}};

std::vector<TileSpec> specs() {
  return {product(kBFloat16, 2048, {2048, 512, 512}),
          with_epilogue(product(kBFloat16, 2048, {8192, 8192}), "gate", 4),
          with_epilogue(product(kFloat16, 777, {1000}), "residual", 1),
          product(kFloat16, 512, {1000, 96}, false),
          with_epilogue(product(kBFloat16, 512, {640, 640}, false), "gate", 4),
          with_epilogue(convolution(kBFloat16, kImage, 64), "channels", 8),
          convolution(kFloat16,
                      {.channels = 3,
                       .height = 32,
                       .width = 32,
                       .result_height = 32,
                       .result_width = 32,
                       .filter_height = 3,
                       .filter_width = 3,
                       .padding = {1, 1}},
                      24)};
}

// What follows a convolution.
std::string channels_text() {
  return emit_tile_channels(
      {.dtype = kBFloat16, .n = 64, .c_slot = 0, .bias_slot = 1, .residual_slot = 2, .relu = true}, "channels");
}

// A program with a kernel for the first `most` ways of each.
std::string program(const std::vector<TileSpec>& all, int64_t m, const TileDevice& device, size_t most,
                    std::vector<TileSpec>* tuned = nullptr) {
  std::string text = cuda_prelude() + kFunctions + channels_text();
  int count = 0;
  for (auto& spec : all) {
    auto ways = tile_candidates(spec, m, device);
    for (size_t i = 0; i < std::min(most, ways.size()); ++i) {
      TileSpec one = spec;
      one.tuning = ways[i];
      one.name = format("product{}", count++);
      text += emit_tile(one).text;
      if (tuned) tuned->push_back(one);
    }
  }
  return text;
}

TEST(CudaTile, CompilesForEachArchitecture) {
  if (!runtime::nvrtc_problem().empty()) GTEST_SKIP() << runtime::nvrtc_problem();
  auto all = specs();
  EXPECT_FALSE(runtime::compile_cuda(program(all, 512, kAda, 1), "tiles", "sm_80").empty());
  EXPECT_FALSE(runtime::compile_cuda(program(all, 512, kHopper, 1), "tiles", "sm_90a").empty());
  // Elsewhere the same instructions: one kernel of each kind will do.
  std::vector<TileSpec> few{all[1], all[3], all[5]};
  for (auto* architecture : {"sm_86", "sm_89", "sm_90"})
    EXPECT_FALSE(runtime::compile_cuda(program(few, 512, kAda, 1), "tiles", architecture).empty()) << architecture;
  EXPECT_FALSE(runtime::compile_cuda(program(few, 512, kHopper, 1), "tiles", "sm_90").empty());
}

// Every way offered is different, fits the device, and takes all tiles.
TEST(CudaTile, Candidates) {
  for (auto& device : {kHopper, kAmpere, kAda})
    for (auto& spec : specs())
      for (int64_t m : {17, 512, 5000}) {
        std::set<std::string> seen;
        auto all = tile_candidates(spec, m, device);
        EXPECT_FALSE(all.empty());
        for (auto& t : all) {
          EXPECT_TRUE(seen.insert(to_string(t)).second) << to_string(t);
          EXPECT_EQ(t.hopper, device.major == 9);
          EXPECT_GE(t.stages, 3);
          TileSpec tuned = spec;
          tuned.tuning = t;
          EXPECT_LE(emit_tile(tuned).shared_bytes, device.shared_bytes) << to_string(t);
          unsigned blocks = tile_blocks(tuned, m, device);
          EXPECT_GE(blocks, 1u);
          EXPECT_TRUE(!t.hopper || blocks <= unsigned(device.multiprocessors));
          EXPECT_EQ(blocks % unsigned(t.split), 0u);
        }
      }
}

TEST(CudaTile, WhatDoesNotFit) {
  EXPECT_TRUE(tile_fits(product(kBFloat16, 64, {64}), kAda));
  EXPECT_FALSE(tile_fits(product(kFloat32, 64, {64}), kAda));
  EXPECT_FALSE(tile_fits(product(kBFloat16, 64, {64}), {.major = 7}));
  EXPECT_FALSE(tile_fits(with_epilogue(product(kBFloat16, 64, {64, 64, 64}), "gate", 4), kAda));
  TileImage large = kImage;
  large.width = 40000;
  EXPECT_FALSE(tile_fits(convolution(kBFloat16, large, 64), kAda));
}

// The left operand of a convolution, row by row.
std::vector<float> unfolded(const TileImage& g, const std::vector<float>& image, int64_t batch) {
  std::vector<float> out;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t oy = 0; oy < g.result_height; ++oy)
      for (int64_t ox = 0; ox < g.result_width; ++ox)
        for (int64_t fy = 0; fy < g.filter_height; ++fy)
          for (int64_t fx = 0; fx < g.filter_width; ++fx)
            for (int64_t c = 0; c < g.channels; ++c) {
              int64_t y = oy * g.stride[0] - g.padding[0] + fy * g.dilation[0],
                      x = ox * g.stride[1] - g.padding[1] + fx * g.dilation[1];
              bool inside = y >= 0 && y < g.height && x >= 0 && x < g.width;
              out.push_back(inside ? image[size_t(((b * g.height + y) * g.width + x) * g.channels + c)] : 0.0f);
            }
  return out;
}

struct Launch {
  uint64_t indirect[2] = {0, 0};
  const int64_t* block = nullptr;
  int64_t range = 0;
  int64_t slot[kSlots] = {};
};

// Launches a product and compares each part (the gate's product of two) with sums in double on the host. `shift`: bytes by
// which the left operand misses an address that 16-byte copies can take.
void expect_product(const TileSpec& spec, int64_t m, const runtime::CudaFunction& function, const TileDevice& device,
                    int64_t shift = 0) {
  int64_t batch = spec.image ? m / (spec.image->result_height * spec.image->result_width) : 0;
  int64_t count = spec.image ? batch * spec.image->height * spec.image->width * spec.image->channels : m * spec.k;
  OnGpu a(spec.dtype, numbers(count + shift / 2, 1, 1));
  std::vector<float> left = a.values();
  left.erase(left.begin(), left.begin() + shift / 2);
  if (spec.image) left = unfolded(*spec.image, left, batch);
  Launch launch;
  launch.slot[0] = a.address() + shift;
  launch.slot[kNumberOfRows] = m;
  std::vector<std::unique_ptr<OnGpu>> weights, results;
  std::vector<std::vector<double>> wanted;
  const bool gated = spec.parts[0].epilogue == "gate", more = spec.parts[0].epilogue == "residual";
  for (size_t p = 0; p < spec.parts.size(); ++p) {
    auto& part = spec.parts[p];
    weights.push_back(std::make_unique<OnGpu>(spec.dtype, numbers(part.n * spec.k, 2 + double(p), 0.1)));
    const bool wide = !part.epilogue.empty();
    results.push_back(std::make_unique<OnGpu>(wide ? kFloat32 : spec.c, std::vector<float>(size_t(m * part.n), NAN)));
    launch.slot[1 + p] = weights[p]->address();
    launch.slot[4 + p] = results[p]->address();
    std::vector<float> b = weights[p]->values();
    wanted.emplace_back();
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < part.n; ++j) {
        double sum = more && p == 0;
        for (int64_t q = 0; q < spec.k; ++q)
          sum += double(left[size_t(i * spec.k + q)]) * b[size_t(spec.k_contiguous ? j * spec.k + q : q * part.n + j)];
        wanted[p].push_back(sum);
      }
  }
  launch.slot[8] = results[0]->address();
  launch.slot[9] = spec.parts[0].n;
  TileText text = emit_tile(spec);
  runtime::CudaGrid grid{.blocks = {tile_blocks(spec, m, device), 1, 1},
                         .threads = {text.threads, 1, 1},
                         .shared_bytes = text.shared_bytes};
  runtime::cuda_launch(function, 0, grid, &launch, sizeof launch);
  runtime::cuda_synchronize(0);
  for (size_t p = 0; p < (gated ? 1 : spec.parts.size()); ++p) {
    double error = relative_error(results[p]->values(), [&](size_t i) {
      return gated ? wanted[0][i] * wanted[1][i] : wanted[p][i];
    });
    EXPECT_LE(error, !spec.parts[p].epilogue.empty() ? 1e-5 : 4e-3)
        << spec.name << " m " << m << " k " << spec.k << " part " << p << ": " << to_string(spec.tuning);
  }
}

// `most` ways of each, on this device's cores or on those that every device has.
void expect_products(const std::vector<TileSpec>& all, std::vector<int64_t> rows, bool hopper, size_t most,
                     int64_t shift = 0) {
  auto& info = runtime::cuda_device_info(0);
  TileDevice device{.major = info.major, .multiprocessors = info.multiprocessors, .shared_bytes = info.shared_bytes};
  if (!hopper) device.major = 8;
  std::vector<TileSpec> tuned;
  program(all, rows[0], device, most, &tuned);
  std::vector<runtime::CudaSource> sources;
  for (auto& spec : tuned) {
    TileText text = emit_tile(spec);
    sources.push_back({spec.name, text.text, int(text.shared_bytes)});
  }
  auto functions = runtime::load_cuda(sources, cuda_prelude() + kFunctions, 0);
  for (size_t i = 0; i < tuned.size(); ++i)
    for (int64_t m : rows)
      if (tuned[i].tuning.split == 1 || m <= rows[0]) expect_product(tuned[i], m, functions[i], device, shift);
}

bool has_wgmma() { return runtime::cuda_device_info(0).major == 9; }

TEST(GpuTile, AgreesWithTheHost) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  std::vector<TileSpec> all{product(kBFloat16, 512, {300, 70, 33}),
                            with_epilogue(product(kFloat16, 776, {150, 150}), "gate", 4),
                            with_epilogue(product(kBFloat16, 72, {333}), "residual", 1),
                            product(kBFloat16, 136, {304, 80, 48}),
                            with_epilogue(product(kFloat16, 64, {16, 208}), "residual", 1),
                            product(kFloat16, 333, {100}),
                            product(kBFloat16, 200, {232, 64}, false),
                            product(kFloat16, 77, {99}, false),
                            with_epilogue(product(kBFloat16, 130, {128, 128}, false), "gate", 4)};
  for (bool hopper : {false, true})
    if (!hopper || has_wgmma()) expect_products(all, {200, 1, 17, 128, 300}, hopper, 2);
}

// All widths and divisions of the inner dimension.
TEST(GpuTile, EveryWay) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  for (bool hopper : {false, true})
    if (!hopper || has_wgmma())
      expect_products({product(kBFloat16, 1100, {520}), with_epilogue(product(kBFloat16, 520, {264, 264}), "gate", 4)},
                      {150, 40}, hopper, 100);
}

TEST(GpuTile, AddressesThatAreNotAligned) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  for (bool hopper : {false, true})
    if (!hopper || has_wgmma()) expect_products({product(kBFloat16, 136, {70})}, {150}, hopper, 1, 2);
}

TEST(GpuTile, Convolutions) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  TileImage wide{.channels = 64,
                 .height = 9,
                 .width = 9,
                 .result_height = 9,
                 .result_width = 9,
                 .filter_height = 3,
                 .filter_width = 3,
                 .padding = {1, 1}};
  TileImage few{.channels = 8,
                .height = 20,
                .width = 21,
                .result_height = 10,
                .result_width = 11,
                .filter_height = 7,
                .filter_width = 7,
                .stride = {2, 2},
                .padding = {3, 3}};
  TileImage colors = few;
  colors.channels = 3;
  std::vector<std::pair<TileImage, int64_t>> all{{kImage, 40}, {wide, 96}, {few, 64}, {colors, 64}};
  for (bool hopper : {false, true})
    if (!hopper || has_wgmma())
      for (auto& [image, filters] : all)
        expect_products({convolution(kBFloat16, image, filters)}, {3 * image.result_height * image.result_width},
                        hopper, 2);
}

}  // namespace
}  // namespace sinter::codegen
