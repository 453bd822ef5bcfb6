#pragma once
// Layers that multiply by a matrix, look up a table, or only change the shape.
#include <optional>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"

namespace sinter SINTER_API {
namespace nn {

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  SINTER_OPTION(int64_t, in_features);
  SINTER_OPTION(int64_t, out_features);
  SINTER_OPTION(bool, bias) = true;
};

// x @ weight^T + bias; weight is [out, in].
struct LinearImpl : Module {
  LinearOptions options;
  Tensor weight, bias;

  LinearImpl(int64_t in_features, int64_t out_features) : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options);
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(Linear);

struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  SINTER_OPTION(int64_t, in1_features);
  SINTER_OPTION(int64_t, in2_features);
  SINTER_OPTION(int64_t, out_features);
  SINTER_OPTION(bool, bias) = true;
};

// x1 weight[o] x2 + bias for every output o; weight is [out, in1, in2].
struct BilinearImpl : Module {
  BilinearOptions options;
  Tensor weight, bias;

  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  explicit BilinearImpl(const BilinearOptions& options);
  void reset_parameters();
  Tensor forward(const TensorArg& x1, const TensorArg& x2);
  std::string extra_repr() const override;
};
SINTER_MODULE(Bilinear);

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  SINTER_OPTION(int64_t, num_embeddings);
  SINTER_OPTION(int64_t, embedding_dim);
  // Starts as zeros and gets no gradient; negative counts from the end.
  SINTER_OPTION(std::optional<int64_t>, padding_idx);
};

// Rows of a table by index.
struct EmbeddingImpl : Module {
  EmbeddingOptions options;
  Tensor weight;

  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  void reset_parameters();
  Tensor forward(const TensorArg& indices);
  std::string extra_repr() const override;
};
SINTER_MODULE(Embedding);

// Gives its input.
struct IdentityImpl : Module {
  Tensor forward(const TensorArg& x) { return x.tensor(); }
};
SINTER_MODULE(Identity);

// Dimensions start_dim…end_dim as one.
struct FlattenImpl : Module {
  int64_t start_dim, end_dim;

  explicit FlattenImpl(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim(start_dim), end_dim(end_dim) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(Flatten);

// One dimension as several; one of the sizes may be -1.
struct UnflattenImpl : Module {
  int64_t dim;
  Shape sizes;

  UnflattenImpl(int64_t dim, const Shape& sizes) : dim(dim), sizes(sizes) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(Unflatten);

}  // namespace nn
}  // namespace sinter
