#include "sinter/engine/ways.h"

#include "sinter/base/thread_pool.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/gemm_operand.h"

namespace sinter {

namespace {

// In candidates' names and so in keys: another release is another candidate.
std::string onednn_name() { return "onednn " + runtime::onednn_version(); }

// Of mm and bmm.
ProductGeometry product_geometry(const TensorImpl& a, const TensorImpl& b, const TensorImpl& c,
                                 runtime::GemmType type) {
  size_t rank = a.sizes.size();
  auto operand = [&](const TensorImpl& t) {
    return runtime::GemmOperand{nullptr, t.strides[rank - 2], t.strides[rank - 1], type, rank == 3 ? t.strides[0] : 0};
  };
  return {a.sizes[rank - 2],
          b.sizes[rank - 1],
          a.sizes[rank - 1],
          rank == 3 ? a.sizes[0] : 1,
          operand(a),
          operand(b),
          {nullptr, c.strides[rank - 2], c.strides[rank - 1], type, rank == 3 ? c.strides[0] : 0}};
}

void add_products(std::vector<OpWay>& ways, std::span<const TensorImpl* const> inputs, const TensorImpl& out,
                  runtime::GemmType type) {
  ProductGeometry g = product_geometry(*inputs[0], *inputs[1], out, type);
  for (auto& way : product_ways(g, /*epilogue=*/false)) {
    if (way->name == ways[0].name) continue;
    ways.push_back({way->name, [g, way](std::span<const TensorArg> operands, const Tensor& result) {
                      auto a = g.a, b = g.b;
                      auto c = g.c;
                      a.data = eager::data_of(operands[0].tensor().impl());
                      b.data = eager::data_of(operands[1].tensor().impl());
                      c.data = eager::data_of(result.impl());
                      run_product(way.get(), g.m, g.n, g.k, a, b, c, {.batch = g.batch});
                    }});
  }
}

void add_convolutions(std::vector<OpWay>& ways, const ConvolutionAttrs& attrs,
                      std::span<const TensorImpl* const> inputs, const TensorImpl& out) {
  for (auto& way : convolution_ways(attrs, *inputs[0], *inputs[1], out)) {
    if (!way.onednn) continue;
    ways.push_back({way.name, [kernel = way.onednn](std::span<const TensorArg> operands, const Tensor& result) {
                      kernel->run(eager::data_of(operands[0].tensor().impl()),
                                  eager::data_of(operands[1].tensor().impl()), eager::data_of(result.impl()));
                    }});
  }
}

}  // namespace

std::vector<std::shared_ptr<const ProductWay>> product_ways(const ProductGeometry& g, bool epilogue) {
  std::vector<std::shared_ptr<const ProductWay>> ways{
      std::make_shared<ProductWay>(ProductWay{.name = "sinter", .onednn = {}})};
  for (auto [isa, name] : {std::pair(runtime::CpuIsa::kAvx2, "sinter avx2")})
    if (isa < runtime::best_cpu_isa() && runtime::cpu_supports(isa))
      ways.push_back(std::make_shared<ProductWay>(ProductWay{name, isa, {}}));
  static const runtime::Epilogue some{};
  runtime::GemmOptions options;
  options.batch = g.batch;
  options.epilogue = epilogue ? &some : nullptr;
  if (auto made = runtime::OnednnProduct::make(g.m, g.n, g.k, g.a, g.b, g.c, options, num_threads()))
    ways.push_back(std::make_shared<ProductWay>(ProductWay{.name = onednn_name(), .onednn = made}));
  return ways;
}

void run_product(const ProductWay* way, int64_t m, int64_t n, int64_t k, const runtime::GemmOperand& a,
                 const runtime::GemmOperand& b, const runtime::GemmOutput& c, runtime::GemmOptions options) {
  if (way && way->onednn) return way->onednn->run(a, b, c, options.epilogue);
  if (way) options.isa = way->isa;
  runtime::gemm(m, n, k, a, b, c, options);
}

std::vector<ConvolutionWay> convolution_ways(const ConvolutionAttrs& attrs, const TensorImpl& x, const TensorImpl& w,
                                             const TensorImpl& out) {
  std::vector<ConvolutionWay> ways{{"sinter", nullptr}};
  size_t spatial = x.sizes.size() - 2;
  auto type = eager::gemm_type(x.dtype);
  if (!type || *type == runtime::GemmType::f64 || w.dtype != x.dtype || out.dtype != x.dtype) return ways;
  if (attrs.transposed || spatial > 3 || out.numel == 0) return ways;
  if (!x.contiguous || !w.contiguous || !out.contiguous) return ways;
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
    shape.out[to] = out.sizes[d + 2];
    shape.stride[to] = attrs.stride[d];
    shape.padding[to] = attrs.padding[d];
    shape.dilation[to] = attrs.dilation[d];
  }
  for (bool own : {false, true}) {
    shape.own_layouts = own;
    if (auto kernel = runtime::OnednnConvolutionKernel::make(shape, num_threads()))
      ways.push_back({onednn_name() + (own ? " in its layouts" : ""), kernel});
  }
  return ways;
}

std::vector<OpWay> op_ways(const Op& op, const Attrs& attrs, std::span<const TensorImpl* const> inputs,
                           const TensorImpl& out) {
  static const Op *mm = find_op("mm"), *bmm = find_op("bmm"), *convolution = find_op("convolution");
  std::vector<OpWay> ways{{"sinter", [&op, attrs](std::span<const TensorArg> operands, const Tensor& result) {
                             eager::execute(op, operands, attrs, &result);
                           }}};
  bool product = &op == mm || &op == bmm;
  if (!product && &op != convolution) return ways;
  if (!inputs[0] || !inputs[1] || inputs[0]->dtype != inputs[1]->dtype || inputs[0]->dtype != out.dtype) return ways;
  auto type = eager::gemm_type(inputs[0]->dtype);
  if (!type || *type == runtime::GemmType::f64) return ways;
  if (product)
    add_products(ways, inputs, out, *type);
  else
    add_convolutions(ways, attrs.as<ConvolutionAttrs>(), inputs, out);
  return ways;
}

}  // namespace sinter
