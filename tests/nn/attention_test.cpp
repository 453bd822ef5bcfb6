// Attention layers against values recorded from PyTorch with the parameters of fill_parameters().
#include "tests/nn/common.h"

namespace sinter {
namespace {

const std::vector<double> kPlain{-0.381183, 0.803676,  -0.401191, -0.531512, -0.512556, 0.874447,  -0.311089, -0.654826,
                                 -1.091893, 1.270375,  0.037365,  -1.253953, 0.852128,  -1.929609, -0.040601, 1.991497,
                                 0.823611,  -1.905729, -0.026009, 1.959108,  0.901282,  -1.956079, -0.074319, 2.037629};
const std::vector<double> kCausal{-1.590866, 2.236657,  -0.027144, -2.182617, -1.323224, 1.866066,
                                  -0.078678, -1.781974, -1.091893, 1.270375,  0.037365,  -1.253953,
                                  1.198258,  -2.239986, -0.205736, 2.398171,  1.283108,  -2.432368,
                                  -0.1784,   2.574612,  0.901282,  -1.956079, -0.074319, 2.037629};
const std::vector<double> kPadded{-1.304382, 1.853796,  -0.090365, -1.762889, -1.323224, 1.866066,
                                  -0.078678, -1.781974, -1.388005, 1.912555,  -0.041007, -1.85043,
                                  1.198258,  -2.239986, -0.205736, 2.398171,  1.198258,  -2.239986,
                                  -0.205736, 2.398171,  1.198258,  -2.239986, -0.205736, 2.398171};

class Attention : public testing::Test {
 protected:
  Attention() : layer(nn::MultiheadAttentionOptions(4, 2).batch_first(true)), x(sin(ramp({2, 3, 4}, -2, 3))) {
    fill_parameters(*layer);
  }
  Tensor run(const nn::AttentionArgs& args) { return std::get<0>(layer(x, x, x, args)); }

  nn::MultiheadAttention layer;
  Tensor x;
  Tensor padding = from_data(std::vector<bool>{false, false, true, false, true, true}, {2, 3});
};

TEST_F(Attention, Plain) {
  expect_values(run({}), kPlain, 1e-5);
  expect_values(run(nn::AttentionArgs().need_weights(true)), kPlain, 1e-5);
  // Tensors that are not one object are projected apart.
  expect_values(std::get<0>(layer(x, x.clone(), x.clone())), kPlain, 1e-5);
}

TEST_F(Attention, Causal) {
  expect_values(run(nn::AttentionArgs().is_causal(true)), kCausal, 1e-5);
  expect_values(run(nn::AttentionArgs().is_causal(true).need_weights(true)), kCausal, 1e-5);
  Tensor mask = triu(ones({3, 3}), 1).to(kBool);
  expect_values(run(nn::AttentionArgs().attn_mask(mask)), kCausal, 1e-5);
  expect_values(run(nn::AttentionArgs().attn_mask(mask.expand({4, 3, 3}).contiguous())), kCausal, 1e-5);
}

TEST_F(Attention, PaddingAndWeights) {
  expect_values(run(nn::AttentionArgs().key_padding_mask(padding)), kPadded, 1e-5);
  auto [y, weights] = layer(x, x, x, nn::AttentionArgs().key_padding_mask(padding).need_weights(true));
  expect_values(y, kPadded, 1e-5);
  expect_values(weights,
                {0.41758, 0.58242, 0, 0.444538, 0.555462, 0, 0.541006, 0.458994, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0});
  EXPECT_FALSE(std::get<1>(layer(x, x, x)).defined());
}

TEST_F(Attention, FloatingMaskIsAdded) {
  Tensor y = run(nn::AttentionArgs().attn_mask(ramp({3, 3}, -1, 1)).key_padding_mask(padding));
  expect_values(y[0],
                {-1.278918, 1.813363, -0.092251, -1.721356, -1.296171, 1.824474, -0.081477, -1.73875, -1.359514,
                 1.86992, -0.044636, -1.80568},
                1e-5);
}

TEST_F(Attention, GradientsReachEveryParameter) {
  run({}).square().sum().backward();
  for (auto& [name, parameter] : layer->named_parameters())
    EXPECT_GT(parameter.grad().abs().sum().item<double>(), 0) << name;
}

TEST_F(Attention, WrongShapesAreNamed) {
  EXPECT_NE(error_of([&] { layer(ones({2, 3, 5}), x, x); }).find("[2, 3, 5]"), std::string::npos);
  EXPECT_NE(error_of([] { nn::MultiheadAttention(4, 3); }).find("no multiple"), std::string::npos);
}

TEST(CrossAttention, LengthFirstAndWithoutBatch) {
  nn::MultiheadAttention layer(4, 2);
  fill_parameters(*layer);
  Tensor q = sin(ramp({2, 1, 4}, -1, 2)), k = cos(ramp({3, 1, 4}, -1, 2)), v = sin(ramp({3, 1, 4}, 0, 5));
  std::vector<double> expected{0.154728, -0.553841, -0.145473, 0.676884, -0.85488, 0.191742, 0.429352, -0.403905};
  auto [y, weights] = layer(q, k, v, nn::AttentionArgs().need_weights(true).average_attn_weights(false));
  expect_values(y, expected, 1e-5);
  expect_values(weights, {0.359083, 0.363488, 0.277429, 0.023747, 0.020175, 0.956079, 0.33808, 0.340634, 0.321286,
                          0.329317, 0.360868, 0.309815});
  expect_values(std::get<0>(layer(q.squeeze(1), k.squeeze(1), v.squeeze(1))), expected, 1e-5);
}

TEST(TransformerEncoderLayer, AgreesWithPyTorch) {
  Tensor x = sin(ramp({2, 3, 4}, -2, 3));
  auto options = nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).batch_first(true);
  nn::TransformerEncoderLayer post(options);
  post->eval();
  fill_parameters(*post);
  expect_values(post(x), {-0.043834, 1.00903,  -0.055978, -0.056869, -0.124219, 1.011596, -0.054749, -0.01005,
                          -0.130573, 1.013714, -0.054028, -0.009012, -0.074131, 0.937193, -0.072377, 0.015371,
                          -0.034371, 0.93573,  -0.07296,  -0.00812,  0.002632,  0.934128, -0.073196, -0.032271},
                1e-5);
  nn::TransformerEncoderLayer pre(options.norm_first(true).activation("gelu"));
  pre->eval();
  fill_parameters(*pre);
  expect_values(pre(x), {-2.140343, 0.046912, -0.949492, -1.932773, -2.023533, 0.131888, -0.656265, -1.28557,
                         -1.342363, 0.841529, 0.141036,  -0.397944, -0.04832,  1.067691, 0.664679,  0.809609,
                         0.38117,   1.306839, 0.745432,  0.721046,  0.058242,  0.823717, 0.211789,  0.024059},
                1e-5);
  std::string names;
  for (auto& [name, parameter] : pre->named_parameters()) names += name + " ";
  EXPECT_EQ(names,
            "self_attn.in_proj_weight self_attn.in_proj_bias self_attn.out_proj.weight self_attn.out_proj.bias "
            "linear1.weight linear1.bias linear2.weight linear2.bias norm1.weight norm1.bias norm2.weight norm2.bias ");
}

}  // namespace
}  // namespace sinter
