// Layers and their gradients against PyTorch's (tools/record_layers.py): eagerly and compiled.
#include "tests/nn/recorded_layers.h"
#include "sinter/capture/compile.h"

namespace sinter {
namespace {

struct LayerCase {
  const char* name;
  std::vector<Shape> sizes;
  std::function<std::shared_ptr<nn::Module>()> make;
  std::function<TensorList(nn::Module&, const TensorList&)> run;
};
void PrintTo(const LayerCase& c, std::ostream* out) { *out << c.name; }

template <class Impl, class... Tensors>
TensorList results_of(Impl& layer, const Tensors&... x) {
  auto result = nn::call(layer, x...);
  if constexpr (std::is_same_v<decltype(result), Tensor>)
    return {result};
  else
    return {std::get<0>(result), std::get<1>(result)};
}

// `make` gives a handle on the layer.
template <class F>
LayerCase of(const char* name, const std::vector<Shape>& sizes, F make) {
  using Impl = typename decltype(make())::Impl;
  return {name, sizes, [=] { return std::shared_ptr<nn::Module>(make().ptr()); },
          [](nn::Module& m, const TensorList& x) {
            auto& layer = static_cast<Impl&>(m);
            if constexpr (requires { layer.forward(x[0]); }) {
              if (x.size() == 1) return results_of(layer, x[0]);
            }
            if constexpr (requires { layer.forward(x[0], x[1]); }) {
              if (x.size() == 2) return results_of(layer, x[0], x[1]);
            }
            if constexpr (std::is_same_v<Impl, nn::MultiheadAttentionImpl>)
              return results_of(layer, x[0], x[1], x[2], nn::AttentionArgs().need_weights(true));
            else if constexpr (requires { layer.forward(x[0], x[1], x[2]); })
              return results_of(layer, x[0], x[1], x[2]);
            return TensorList();
          }};
}

const std::vector<LayerCase>& cases() {
  using namespace nn;
  static const Shape image{2, 4, 6, 5}, volume{1, 2, 3, 3, 4}, rows{3, 4};
  static const std::vector<LayerCase> all = {
      of("conv_reflect", {image},
         [] {
           return Conv2d(Conv2dOptions(4, 3, 3).padding({1, 2}).padding_mode(kReflect));
         }),
      of("conv_same_circular", {{2, 2, 7}},
         [] { return Conv1d(Conv1dOptions(2, 3, 4).padding(kSame).padding_mode(kCircular)); }),
      of("conv_replicate", {{1, 1, 3, 2, 3}},
         [] { return Conv3d(Conv3dOptions(1, 2, 2).padding(1).padding_mode(kReplicate)); }),
      of("max_pool3d", {volume}, [] { return MaxPool3d(MaxPool3dOptions(2).stride(1)); }),
      of("avg_pool3d", {volume},
         [] { return AvgPool3d(AvgPool3dOptions(2).stride(1).padding(1).count_include_pad(false)); }),
      of("avg_pool2d_divisor", {image}, [] { return AvgPool2d(AvgPool2dOptions(2).divisor_override(3)); }),
      of("lp_pool2d", {image}, [] { return LPPool2d(2, 2); }),
      of("adaptive_max_pool2d", {image},
         [] {
           return AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions({3, 2}));
         }),
      of("adaptive_avg_pool3d", {volume}, [] { return AdaptiveAvgPool3d(2); }),
      of("reflection_pad2d", {image},
         [] {
           return ReflectionPad2d(ReflectionPad2dOptions({2, 1, 0, 3}));
         }),
      of("replication_pad1d", {{2, 3, 4}}, [] { return ReplicationPad1d(2); }),
      of("circular_pad2d", {image}, [] { return CircularPad2d(1); }),
      of("constant_pad3d", {{1, 1, 2, 3, 2}}, [] { return ConstantPad3d(1, 0.5); }),
      of("zero_pad2d", {image},
         [] {
           return ZeroPad2d(ZeroPad2dOptions({1, 0, -1, 2}));
         }),
      of("upsample", {image},
         [] { return Upsample(UpsampleOptions().scale_factor({2}).mode(kBilinear).align_corners(true)); }),
      of("pixel_shuffle", {image}, [] { return PixelShuffle(2); }),
      of("unfold", {image},
         [] {
           return Unfold(UnfoldOptions({2, 3}).padding(1).stride(2));
         }),
      of("fold", {{2, 8, 12}},
         [] {
           return Fold(FoldOptions({4, 5}, {2, 2}));
         }),
      of("instance_norm", {image}, [] { return InstanceNorm2d(InstanceNorm2dOptions(4).affine(true)); }),
      of("instance_norm_tracked", {{2, 3, 5}},
         [] { return InstanceNorm1d(InstanceNorm1dOptions(3).track_running_stats(true)); }),
      of("local_response_norm", {image}, [] { return LocalResponseNorm(LocalResponseNormOptions(2).alpha(0.1)); }),
      of("prelu", {image}, [] { return PReLU(4); }),
      of("rrelu", {image},
         [] {
           RReLU layer;
           layer->eval();
           return layer;
         }),
      of("softmax2d", {image}, [] { return Softmax2d(); }),
      of("hardshrink", {image}, [] { return Hardshrink(); }),
      of("bilinear", {{5, 3}, {5, 4}}, [] { return Bilinear(3, 4, 2); }),
      of("cosine_similarity", {rows, rows}, [] { return CosineSimilarity(CosineSimilarityOptions().dim(1)); }),
      of("pairwise_distance", {rows, rows}, [] { return PairwiseDistance(); }),
      of("huber_loss", {rows, rows}, [] { return HuberLoss(HuberLossOptions().reduction(kSum).delta(0.5)); }),
      of("triplet_margin_loss", {rows, rows, rows},
         [] { return TripletMarginLoss(TripletMarginLossOptions().margin(0.5)); }),
      of("attention_kv", {{2, 3, 4}, {2, 5, 3}, {2, 5, 5}},
         [] {
           return MultiheadAttention(
               MultiheadAttentionOptions(4, 2).kdim(3).vdim(5).add_bias_kv(true).add_zero_attn(true).batch_first(true));
         }),
      of("encoder", {{3, 2, 4}},
         [] {
           TransformerEncoderLayerOptions layer(4, 2);
           return TransformerEncoder(layer.dim_feedforward(8).dropout(0).norm_first(true), 2);
         }),
      of("decoder", {{3, 2, 4}, {5, 2, 4}},
         [] {
           TransformerDecoderLayerOptions layer(4, 2);
           return TransformerDecoder(layer.dim_feedforward(8).dropout(0).activation("gelu"), 2);
         }),
      of("transformer", {{2, 5, 4}, {2, 3, 4}},
         [] { return Transformer(TransformerOptions(4, 2, 1, 2).dim_feedforward(8).dropout(0).batch_first(true)); }),
  };
  return all;
}

class RecordedLayers : public ::testing::TestWithParam<LayerCase> {};

TEST_P(RecordedLayers, AgreeWithPyTorch) {
  auto& c = GetParam();
  for (bool compiled : {false, true}) {
    SCOPED_TRACE(compiled ? "compiled" : "eager");
    auto module = c.make();
    module->to(kFloat64);
    {
      NoGradGuard no_grad;
      for (auto& p : module->parameters()) p.copy_(cos(ramp64(p.sizes(), -3, 4)) * 0.5);
    }
    TensorList inputs;
    for (size_t i = 0; i < c.sizes.size(); ++i)
      inputs.push_back(sin(ramp64(c.sizes[i], -2, 3 + double(i))).detach().requires_grad_());
    auto f = [&](const TensorList& x) { return c.run(*module, x); };
    expect_differentiated(c.name, compiled ? compile(f, {.fullgraph = true})(inputs) : f(inputs), inputs, module.get());
    for (auto& [key, buffer] : module->named_buffers())
      if (buffer.is_floating_point()) expect_layer(format("{}/buffer/{}", c.name, key), buffer);
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, RecordedLayers, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sinter
