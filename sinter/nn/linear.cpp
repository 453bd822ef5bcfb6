#include "sinter/nn/linear.h"

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/nn/init.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::nn {

// --- Linear

LinearImpl::LinearImpl(const LinearOptions& options) : options(options) {
  int64_t in = options.in_features(), out = options.out_features();
  check(in >= 0 && out >= 0, "nn::Linear: sizes {} and {} are no sizes", in, out);
  weight = register_parameter("weight", new_parameter({out, in}));
  if (options.bias()) bias = register_parameter("bias", new_parameter({out}));
  if (initialises_parameters()) reset_parameters();
}

void LinearImpl::reset_parameters() {
  double bound = options.in_features() > 0 ? 1 / std::sqrt(double(options.in_features())) : 0;
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const TensorArg& x) { return linear(x, weight, bias); }

std::string LinearImpl::extra_repr() const {
  return format("in_features={}, out_features={}, bias={}", options.in_features(), options.out_features(),
                options.bias());
}

// --- Bilinear

BilinearImpl::BilinearImpl(const BilinearOptions& options) : options(options) {
  Dim out = options.out_features();
  weight = register_parameter("weight", new_parameter({out, options.in1_features(), options.in2_features()}));
  if (options.bias()) bias = register_parameter("bias", new_parameter({out}));
  if (initialises_parameters()) reset_parameters();
}

void BilinearImpl::reset_parameters() {
  double bound = 1 / std::sqrt(double(options.in1_features()));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor BilinearImpl::forward(const TensorArg& x1, const TensorArg& x2) {
  UserPosition here(x1.where(), "nn::Bilinear");
  Tensor y = einsum("...i,oij,...j->...o", {x1.tensor(), weight, x2.tensor()});
  return bias.defined() ? y + bias : y;
}

std::string BilinearImpl::extra_repr() const {
  return format("in1_features={}, in2_features={}, out_features={}, bias={}", options.in1_features(),
                options.in2_features(), options.out_features(), options.bias());
}

// --- Embedding

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& given) : options(given) {
  int64_t rows = options.num_embeddings();
  if (auto padding = options.padding_idx()) {
    check(*padding >= -rows && *padding < rows, "nn::Embedding: padding_idx {} is not one of {} rows", *padding, rows);
    options.padding_idx(*padding < 0 ? *padding + rows : *padding);
  }
  weight = register_parameter("weight", new_parameter({rows, options.embedding_dim()}));
  if (initialises_parameters()) reset_parameters();
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  NoGradGuard no_grad;
  if (options.padding_idx()) weight[*options.padding_idx()].zero_();
}

Tensor EmbeddingImpl::forward(const TensorArg& indices) {
  return embedding({weight, indices.where()}, indices, options.padding_idx().value_or(-1));
}

std::string EmbeddingImpl::extra_repr() const {
  std::string text = format("{}, {}", options.num_embeddings(), options.embedding_dim());
  return options.padding_idx() ? text + format(", padding_idx={}", *options.padding_idx()) : text;
}

// --- shapes

Tensor FlattenImpl::forward(const TensorArg& x) { return flatten(x, start_dim, end_dim); }
std::string FlattenImpl::extra_repr() const { return format("start_dim={}, end_dim={}", start_dim, end_dim); }

Tensor UnflattenImpl::forward(const TensorArg& x) { return unflatten(x, dim, sizes); }
std::string UnflattenImpl::extra_repr() const { return format("dim={}, sizes={}", dim, sizes); }

}  // namespace sinter::nn
