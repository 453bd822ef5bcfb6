#include "bench/support/onednn.h"

#if defined(SINTER_HAVE_DNNL)
#include <dlfcn.h>
#include <dnnl.hpp>

#include <unordered_map>

#include "sinter/base/format.h"
#endif

namespace sinter::bench {

#if defined(SINTER_HAVE_DNNL)

bool have_onednn() { return true; }

const char* onednn_version() {
  static const std::string text = [] {
    const dnnl_version_t* v = dnnl_version();
    return format("{}.{}.{}", v->major, v->minor, v->patch);
  }();
  return text.c_str();
}

// By name, since oneDNN may have been built on any runtime, and this program links none.
void set_onednn_threads(int threads) {
  if (void* set = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(threads);
}

void onednn_sgemm(int64_t m, int64_t n, int64_t k, const float* a, const float* b, bool b_transposed, float* c) {
  dnnl_sgemm('N', b_transposed ? 'T' : 'N', m, n, k, 1.0f, a, k, b, b_transposed ? k : n, 0.0f, c, n);
}

#else

bool have_onednn() { return false; }
const char* onednn_version() { return ""; }
void set_onednn_threads(int) {}
void onednn_sgemm(int64_t, int64_t, int64_t, const float*, const float*, bool, float*) {}

#endif

#if defined(SINTER_HAVE_DNNL) && DNNL_VERSION_MAJOR == 2

std::optional<Work> onednn_convolution(const ConvolutionShape& s, float* x, float* weight, float* y, bool own_layouts) {
  using dnnl::memory;
  using Tag = memory::format_tag;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  int64_t out_h = (s.h + 2 * s.padding - s.kernel) / s.stride + 1;
  int64_t out_w = (s.w + 2 * s.padding - s.kernel) / s.stride + 1;
  memory::dims sizes[3] = {{s.n, s.c, s.h, s.w}, {s.filters, s.c, s.kernel, s.kernel}, {s.n, s.filters, out_h, out_w}};
  if (s.groups > 1) sizes[1] = {s.groups, s.filters / s.groups, s.c / s.groups, s.kernel, s.kernel};
  auto described = [&](int i, Tag tag) { return memory::desc(sizes[i], memory::data_type::f32, tag); };
  Tag plain[3] = {Tag::nchw, s.groups > 1 ? Tag::goihw : Tag::oihw, Tag::nchw};
  auto asked = [&](int i) { return described(i, own_layouts ? Tag::any : plain[i]); };
  dnnl::convolution_forward::desc operation(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                            asked(0), asked(1), asked(2), {s.stride, s.stride}, {s.padding, s.padding},
                                            {s.padding, s.padding});
  dnnl::convolution_forward::primitive_desc chosen(operation, engine);
  float* data[3] = {x, weight, y};
  memory::desc layouts[3] = {chosen.src_desc(), chosen.weights_desc(), chosen.dst_desc()};
  memory operands[3];
  for (int i = 0; i < 3; ++i) {
    operands[i] = memory(described(i, plain[i]), engine, data[i]);
    if (!own_layouts) continue;
    memory own(layouts[i], engine);
    dnnl::reorder(operands[i], own).execute(stream, operands[i], own);
    operands[i] = own;
  }
  stream.wait();
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, operands[0]}, {DNNL_ARG_WEIGHTS, operands[1]}, {DNNL_ARG_DST, operands[2]}};
  return repeat([primitive = dnnl::convolution_forward(chosen), stream, arguments]() mutable {
    primitive.execute(stream, arguments);
    stream.wait();
  });
}

#else

std::optional<Work> onednn_convolution(const ConvolutionShape&, float*, float*, float*, bool) { return std::nullopt; }

#endif

}  // namespace sinter::bench
