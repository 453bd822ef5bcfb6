#include "sinter/engine/cpu/candidates.h"

#include "sinter/base/thread_pool.h"
#include "sinter/engine/eager/gemm_operand.h"

namespace sinter {

namespace {

// In candidates' names and so in keys: another release is another candidate.
std::string onednn_name() { return "onednn " + runtime::onednn_version(); }

}  // namespace

std::vector<std::shared_ptr<const ProductCandidate>> product_candidates(const ProductGeometry& g, bool epilogue) {
  std::vector<std::shared_ptr<const ProductCandidate>> out{
      std::make_shared<ProductCandidate>(ProductCandidate{.name = kDefaultCandidate, .onednn = {}})};
  for (auto [isa, name] : {std::pair(runtime::CpuIsa::kAvx2, "sinter avx2")})
    if (isa < runtime::best_cpu_isa() && runtime::cpu_supports(isa))
      out.push_back(std::make_shared<ProductCandidate>(ProductCandidate{name, isa, {}}));
  static const runtime::Epilogue some{};
  runtime::GemmOptions options;
  options.batch = g.batch;
  options.epilogue = epilogue ? &some : nullptr;
  if (auto made = runtime::OnednnProduct::make(g.m, g.n, g.k, g.a, g.b, g.c, options, num_threads()))
    out.push_back(std::make_shared<ProductCandidate>(ProductCandidate{.name = onednn_name(), .onednn = made}));
  return out;
}

void run_product(const ProductCandidate& by, int64_t m, int64_t n, int64_t k, const runtime::GemmOperand& a,
                 const runtime::GemmOperand& b, const runtime::GemmOutput& c, runtime::GemmOptions options) {
  if (by.onednn) return by.onednn->run(a, b, c, options.epilogue);
  options.isa = by.isa;
  runtime::gemm(m, n, k, a, b, c, options);
}

std::vector<ConvolutionCandidate> convolution_candidates(const ConvolutionAttrs& attrs, const TensorImpl& x,
                                                         const TensorImpl& w, const TensorImpl& result) {
  std::vector<ConvolutionCandidate> out{{kDefaultCandidate, nullptr}};
  size_t spatial = x.sizes.size() - 2;
  auto type = eager::gemm_type(x.dtype);
  if (!type || *type == runtime::GemmType::f64 || w.dtype != x.dtype || result.dtype != x.dtype) return out;
  if (attrs.transposed || spatial > 3 || result.numel == 0) return out;
  if (!x.contiguous || !w.contiguous || !result.contiguous) return out;
  runtime::OnednnConvolution shape{};
  shape.type = *type == runtime::GemmType::f32    ? runtime::kOnednnF32
               : *type == runtime::GemmType::bf16 ? runtime::kOnednnBf16
                                                  : runtime::kOnednnF16;
  shape.images = x.sizes[0];
  shape.groups = attrs.groups;
  shape.channels = w.sizes[1];
  shape.filters = w.sizes[0] / attrs.groups;
  for (int d = 0; d < 3; ++d) shape.in[d] = shape.kernel[d] = shape.out[d] = shape.stride[d] = shape.dilation[d] = 1;
  for (size_t d = 0; d < spatial; ++d) {
    size_t to = 3 - spatial + d;
    shape.in[to] = x.sizes[d + 2];
    shape.kernel[to] = w.sizes[d + 2];
    shape.out[to] = result.sizes[d + 2];
    shape.stride[to] = attrs.stride[d];
    shape.padding[to] = attrs.padding[d];
    shape.dilation[to] = attrs.dilation[d];
  }
  for (bool own : {false, true}) {
    shape.own_layouts = own;
    if (auto kernel = runtime::OnednnConvolutionKernel::make(shape, num_threads()))
      out.push_back({onednn_name() + (own ? " in its layouts" : ""), kernel});
  }
  return out;
}

}  // namespace sinter
