#pragma once
// Layers that multiply by a matrix, look up a table, or only change the shape.
#include <optional>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/view.h"

namespace sinter SINTER_API {
namespace nn {

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  SINTER_OPTION(int64_t, in_features);
  SINTER_OPTION(int64_t, out_features);
  SINTER_OPTION(bool, bias) = true;
};

struct QuantizedWeight;

// x @ weight^T + bias; weight is [out, in].
struct LinearImpl : Cloneable<LinearImpl> {
  LinearOptions options;
  Tensor weight, bias;
  std::shared_ptr<QuantizedWeight> quantized;  // in place of the weight (sinter/nn/quantize.h)

  LinearImpl(int64_t in_features, int64_t out_features) : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
  // Of the weight.
  Device device() const;
  // Makes the tensors of `quantized` buffers of this layer.
  void register_quantized();
};
SINTER_MODULE(Linear);

namespace functional {

// cross_entropy(linear(x, linear_weight, linear_bias), target, weight) for classes [...], or probabilities [..., out],
// and rows [..., in], in pieces of rows: what would be the logits of all rows is never in memory whole, and gradients
// compute each piece again. Rows [n, in] may have a linear_weight [out, d1, …, in], for classes [n, d1, …] or
// probabilities [n, out, d1, …]. Where a compiled function lets its gradients flow itself, a plain cross_entropy of a
// linear layer is computed in pieces too, and nothing again.
Tensor linear_cross_entropy(const TensorArg& x, const Tensor& linear_weight, const Tensor& target,
                            const Tensor& linear_bias = {}, const Tensor& weight = {},
                            Reduction reduction = Reduction::kMean, int64_t ignore_index = -100,
                            double label_smoothing = 0);

}  // namespace functional

struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  SINTER_OPTION(int64_t, in1_features);
  SINTER_OPTION(int64_t, in2_features);
  SINTER_OPTION(int64_t, out_features);
  SINTER_OPTION(bool, bias) = true;
};

// x1 weight[o] x2 + bias for every output o; weight is [out, in1, in2].
struct BilinearImpl : Cloneable<BilinearImpl> {
  BilinearOptions options;
  Tensor weight, bias;

  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  explicit BilinearImpl(const BilinearOptions& options);
  void reset() override;
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

struct EmbeddingFromPretrainedOptions {
  EmbeddingFromPretrainedOptions() = default;
  SINTER_OPTION(bool, freeze) = true;
  SINTER_OPTION(std::optional<int64_t>, padding_idx);
};

// Rows of a table by index.
struct EmbeddingImpl : Cloneable<EmbeddingImpl> {
  EmbeddingOptions options;
  Tensor weight;

  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& indices);
  std::string extra_repr() const override;
};
class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  // One of this table, which is learned further only if not frozen.
  static Embedding from_pretrained(const Tensor& table, const EmbeddingFromPretrainedOptions& options = {});
};

struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  SINTER_OPTION(int64_t, num_embeddings);
  SINTER_OPTION(int64_t, embedding_dim);
  SINTER_OPTION(EmbeddingBagMode, mode) = EmbeddingBagMode::kMean;
  SINTER_OPTION(bool, include_last_offset) = false;
  SINTER_OPTION(std::optional<int64_t>, padding_idx);  // left out of every bag; starts as zeros
};

// Sums, means or largest elements of bags of rows: embedding_bag().
struct EmbeddingBagImpl : Cloneable<EmbeddingBagImpl> {
  EmbeddingBagOptions options;
  Tensor weight;

  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingBagImpl(const EmbeddingBagOptions& options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& indices, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});
  std::string extra_repr() const override;
};
SINTER_MODULE(EmbeddingBag);

struct CosineSimilarityOptions {
  CosineSimilarityOptions() = default;
  SINTER_OPTION(int64_t, dim) = 1;
  SINTER_OPTION(double, eps) = 1e-8;
};
// The cosine of the angle between two vectors.
struct CosineSimilarityImpl : Cloneable<CosineSimilarityImpl> {
  CosineSimilarityOptions options;
  explicit CosineSimilarityImpl(const CosineSimilarityOptions& options = {}) : options(options) {}
  Tensor forward(const TensorArg& x1, const TensorArg& x2);
  std::string extra_repr() const override;
};
SINTER_MODULE(CosineSimilarity);

struct PairwiseDistanceOptions {
  PairwiseDistanceOptions() = default;
  SINTER_OPTION(double, p) = 2;
  SINTER_OPTION(double, eps) = 1e-6;
  SINTER_OPTION(bool, keepdim) = false;
};
// The p-norm of the difference of two vectors.
struct PairwiseDistanceImpl : Cloneable<PairwiseDistanceImpl> {
  PairwiseDistanceOptions options;
  explicit PairwiseDistanceImpl(const PairwiseDistanceOptions& options = {}) : options(options) {}
  Tensor forward(const TensorArg& x1, const TensorArg& x2);
  std::string extra_repr() const override;
};
SINTER_MODULE(PairwiseDistance);

namespace functional {

struct EmbeddingFuncOptions {
  EmbeddingFuncOptions() = default;
  SINTER_OPTION(std::optional<int64_t>, padding_idx);
};
// The indices come first, as in LibTorch.
Tensor embedding(const TensorArg& indices, const Tensor& weight, const EmbeddingFuncOptions& options = {});
struct EmbeddingBagFuncOptions {
  EmbeddingBagFuncOptions() = default;
  SINTER_OPTION(Tensor, offsets);
  SINTER_OPTION(EmbeddingBagMode, mode) = EmbeddingBagMode::kMean;
  SINTER_OPTION(Tensor, per_sample_weights);
  SINTER_OPTION(bool, include_last_offset) = false;
  SINTER_OPTION(std::optional<int64_t>, padding_idx);
};
Tensor embedding_bag(const TensorArg& indices, const TensorArg& weight, const EmbeddingBagFuncOptions& options = {});
using CosineSimilarityFuncOptions = CosineSimilarityOptions;
Tensor cosine_similarity(const TensorArg& x1, const TensorArg& x2, const CosineSimilarityOptions& options = {});
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;
Tensor pairwise_distance(const TensorArg& x1, const TensorArg& x2, const PairwiseDistanceOptions& options = {});
using sinter::bilinear, sinter::linear, sinter::one_hot;

}  // namespace functional

// Gives its input.
struct IdentityImpl : Cloneable<IdentityImpl> {
  Tensor forward(const TensorArg& x) { return x.tensor(); }
};
SINTER_MODULE(Identity);

struct FlattenOptions {
  FlattenOptions() = default;
  SINTER_OPTION(int64_t, start_dim) = 1;
  SINTER_OPTION(int64_t, end_dim) = -1;
};
// Dimensions start_dim…end_dim as one.
struct FlattenImpl : Cloneable<FlattenImpl> {
  int64_t start_dim, end_dim;

  explicit FlattenImpl(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim(start_dim), end_dim(end_dim) {}
  explicit FlattenImpl(const FlattenOptions& options) : FlattenImpl(options.start_dim(), options.end_dim()) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(Flatten);

struct UnflattenOptions {
  UnflattenOptions(int64_t dim, const Shape& sizes) : dim_(dim), sizes_(sizes) {}
  SINTER_OPTION(int64_t, dim);
  SINTER_OPTION(Shape, sizes);
};
// One dimension as several; one of the sizes may be -1.
struct UnflattenImpl : Cloneable<UnflattenImpl> {
  int64_t dim;
  Shape sizes;

  UnflattenImpl(int64_t dim, const Shape& sizes) : dim(dim), sizes(sizes) {}
  explicit UnflattenImpl(const UnflattenOptions& options) : UnflattenImpl(options.dim(), options.sizes()) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(Unflatten);

}  // namespace nn
}  // namespace sinter
