// What goes wrong inside a layer, a loss or a filling is reported at the user's line, never at one of the library.
#include "sinter/sinter.h"
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

Tensor bad() { return ones({1, 7, 3}); }

TEST(ModuleErrors, NameTheLineOfTheCall) {
  EXPECT_ERROR(nn::Linear(4, 2)(bad()), "linear", "[1, 7, 3]");
  EXPECT_ERROR(nn::Bilinear(4, 4, 2)(bad(), bad()), "nn::Bilinear");
  EXPECT_ERROR(nn::Embedding(5, 2)(tensor({7})), "embedding", "7");
  EXPECT_ERROR(nn::Embedding(5, 2)(ones({3})), "embedding", "f32");
  EXPECT_ERROR(nn::Embedding(5, 2)->forward(tensor({-9})), "embedding", "-9");
  EXPECT_ERROR(nn::Flatten(2, 1)(bad()), "flatten");
  EXPECT_ERROR(nn::Unflatten(1, Shape{2, 2})(bad()), "unflatten");
  EXPECT_ERROR(nn::Conv1d(nn::Conv1dOptions(4, 2, 3))(bad()), "conv1d");
  EXPECT_ERROR(nn::Conv2d(nn::Conv2dOptions(4, 2, 3))(bad()), "conv2d");
  EXPECT_ERROR(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 2, 3))(bad()), "conv_transpose2d");
  EXPECT_ERROR(nn::LayerNorm(nn::LayerNormOptions({4}))(bad()), "layer_norm");
  EXPECT_ERROR(nn::RMSNorm(nn::RMSNormOptions({4}))(bad()), "rms_norm");
  EXPECT_ERROR(nn::GroupNorm(nn::GroupNormOptions(2, 4))(bad()), "group_norm");
  EXPECT_ERROR(nn::BatchNorm1d(4)(bad()), "batch_norm");
  EXPECT_ERROR(nn::BatchNorm2d(4)(bad()), "BatchNorm2d");
  EXPECT_ERROR(nn::MaxPool1d(9)(bad()), "max_pool1d");
  EXPECT_ERROR(nn::MaxPool2d(9)(bad()), "max_pool2d");
  EXPECT_ERROR(nn::AvgPool1d(9)(bad()), "avg_pool1d");
  EXPECT_ERROR(nn::AvgPool2d(9)(bad()), "avg_pool2d");
  EXPECT_ERROR(nn::AdaptiveAvgPool2d(2)(ones({3})), "adaptive_avg_pool2d");
  EXPECT_ERROR(nn::Softmax(5)(bad()), "softmax");
  EXPECT_ERROR(nn::LogSoftmax(5)(bad()), "log_softmax");
  EXPECT_ERROR(nn::GLU(1)(bad()), "glu");
  EXPECT_ERROR(nn::MultiheadAttention(4, 2)(bad(), bad(), bad()), "nn::MultiheadAttention");
  EXPECT_ERROR(nn::TransformerEncoderLayer(4, 2)(bad()), "nn::TransformerEncoderLayer");
  EXPECT_ERROR(nn::MSELoss()(ones({2}), ones({3})), "mse_loss");
  EXPECT_ERROR(nn::CrossEntropyLoss()(ones({2, 3}), tensor({1, 2, 0})), "cross_entropy");
  EXPECT_ERROR(nn::Sequential(nn::ReLU(), nn::Embedding(5, 2))(bad()), "nn::Sequential", "embedding");
}

TEST(ModuleErrors, NameTheLineOfAFilling) {
  Tensor x = ones({3});
  EXPECT_ERROR(nn::init::eye_(x), "init::eye_");
  EXPECT_ERROR(nn::init::kaiming_uniform_(x), "init::kaiming_uniform_", "2 dimensions");
  EXPECT_ERROR(nn::init::uniform_(x, 1, 0), "init::uniform_");
  EXPECT_ERROR(nn::init::orthogonal_(x), "init::orthogonal_");
  x.requires_grad_().set_grad(full({3}, INFINITY));
  EXPECT_ERROR(nn::utils::clip_grad_norm_({x}, 1, 2, true), "clip_grad_norm_");
}

// A user's own module has lines of its own.
struct OwnImpl : nn::Module {
  nn::Embedding table{nullptr};
  int line = 0;
  OwnImpl() { table = register_module("table", nn::Embedding(5, 2)); }
  Tensor forward(const Tensor& ids) {
    line = __LINE__ + 1;
    return table(ids) * 2;
  }
};
SINTER_MODULE(Own);

TEST(ModuleErrors, InsideAModuleOfTheUserItIsTheLineThere) {
  Own own;
  for (bool compiled : {false, true}) {
    auto fast = compile(own);
    std::string where;
    try {
      compiled ? fast(tensor({9})) : own(tensor({9}));
    } catch (const Error& e) {
      where = e.where() + e.what();
    }
    std::string expected = "modules_test.cpp:" + std::to_string(own->line);
    EXPECT_NE(where.find(expected), std::string::npos) << expected << " is not in: " << where;
  }
}

TEST(ModuleErrors, ALineOfTheLibraryIsNotThatOfTheUser) {
  try {
    nn::Linear layer(int64_t(1) << 40, int64_t(1) << 40);
    ADD_FAILURE() << "no Error was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.where(), "");
    EXPECT_EQ(std::string(e.what()).find("/sinter/"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace sinter
