#include "sinter/nn/linear.h"

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/nn/init.h"
#include "sinter/nn/quantize.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/autocast.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/dequantize.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::nn {

namespace functional {

// The shape with another size in front.
static Shape with_front(const Dim& size, const Shape& shape) {
  Shape out{size};
  out.append(shape);
  return out;
}

Tensor linear_cross_entropy(const TensorArg& x_arg, const Tensor& linear_weight, const Tensor& target,
                            const Tensor& linear_bias, const Tensor& weight, Reduction reduction, int64_t ignore_index,
                            double label_smoothing) {
  constexpr auto op = "linear_cross_entropy";
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand(op, x_arg);
  const int64_t extra = linear_weight.dim() - 2;
  check(x.dim() >= 1 && extra >= 0 && (extra == 0 || x.dim() == 2) && x.size(-1) == linear_weight.size(-1),
        "{}: expected rows [..., in] and a linear_weight [out, in], or rows [n, in] and [out, …, in], got {} and {}",
        op, x.sizes(), linear_weight.sizes());
  check(!linear_bias.defined() || linear_bias.sizes() == removed(linear_weight.sizes(), linear_weight.dim() - 1),
        "{}: for a linear_weight {} expected a linear_bias without its last size, got {}", op, linear_weight.sizes(),
        linear_bias.defined() ? linear_bias.sizes() : Shape());
  check(reduction != Reduction::kBatchMean, "{}: kBatchMean is for kl_div", op);
  const bool classes = is_integral(target.dtype());
  // As in PyTorch no gradient flows into the weights of classes that a target names.
  const Tensor class_weight = classes && weight.defined() ? weight.detach() : weight;
  // Of the logits: the rows' sizes, the classes, and what the weight has besides.
  const Shape outputs = removed(linear_weight.sizes(), linear_weight.dim() - 1);
  Shape wanted = removed(x.sizes(), x.dim() - 1);
  for (size_t d = classes ? 1 : 0; d < outputs.size(); ++d) wanted.push_back(outputs[d]);
  check((classes || is_floating(target.dtype())) && target.sizes() == wanted,
        "{}: for rows {} and a linear_weight {} expected integer classes {}{}, got {} {}", op, x.sizes(),
        linear_weight.sizes(), classes ? "" : "or probabilities ", wanted, target.dtype(), target.sizes());
  const Tensor rows = x.reshape({-1, x.size(-1)});
  const Tensor targets = target.reshape(with_front(rows.size(0), Shape(wanted.begin() + (x.dim() - 1), wanted.end())));
  const Tensor matrix = linear_weight.reshape({-1, linear_weight.size(-1)});
  const Tensor bias = linear_bias.defined() ? linear_bias.reshape({-1}) : linear_bias;
  // Logits of a piece, in f32, are about so large; products like many rows.
  constexpr int64_t kPieceBytes = int64_t(64) << 20, kLeastRows = 256;
  const int64_t piece = std::max(kLeastRows, kPieceBytes / (4 * std::max<int64_t>(matrix.size(0), 1)));
  const Reduction of_piece = reduction == Reduction::kNone ? Reduction::kNone : Reduction::kSum;
  TensorList losses;
  const TensorList pieces = rows.split(piece), target_pieces = targets.split(piece);
  for (size_t p = 0; p < pieces.size(); ++p) {
    // Runs again when this call has returned.
    auto loss = [=](const Tensor& rows, const Tensor& targets, const Tensor& matrix, const Tensor& bias,
                    const Tensor& class_weight) {
      const Tensor logits = linear(rows, matrix, bias).reshape(with_front(rows.size(0), outputs));
      return cross_entropy(logits, targets, class_weight, of_piece, ignore_index, label_smoothing);
    };
    losses.push_back(checkpoint(loss, pieces[p], target_pieces[p], matrix, bias, class_weight));
  }
  if (reduction == Reduction::kNone) return cat(losses).view(classes ? wanted : removed(wanted, x.dim() - 1));
  Tensor total = losses[0];
  for (size_t p = 1; p < losses.size(); ++p) total = total + losses[p];
  if (reduction == Reduction::kSum) return total;
  if (!classes) return total * outputs[0] / targets.numel();
  const Tensor kept = targets != ignore_index;
  if (!class_weight.defined()) return total / kept.sum().to(total.dtype());
  const Tensor weights = index_select(class_weight, 0, where(kept, targets, 0).flatten()).view(targets.sizes());
  return total / where(kept, weights, 0).sum().to(total.dtype());
}

}  // namespace functional

// --- Linear

LinearImpl::LinearImpl(const LinearOptions& options) : options(options) { reset(); }

void LinearImpl::reset() {
  int64_t in = options.in_features(), out = options.out_features();
  check(in >= 0 && out >= 0, "nn::Linear: sizes {} and {} are no sizes", in, out);
  if (quantized) {
    // A copy of a layer gets memory of its own.
    quantized = std::make_shared<QuantizedWeight>(*quantized);
    for (Tensor* tensor : quantized->tensors())
      if (tensor->defined()) *tensor = empty_like(*tensor);
    register_quantized();
  } else {
    weight = register_parameter("weight", new_parameter({out, in}));
  }
  if (options.bias()) bias = register_parameter("bias", new_parameter({out}));
  if (initialises_parameters()) reset_parameters();
}

Device LinearImpl::device() const { return quantized ? quantized->codes.device() : weight.device(); }

void LinearImpl::register_quantized() {
  const auto tensors = quantized->tensors();
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i]->defined()) *tensors[i] = register_buffer(QuantizedWeight::kNames[i], *tensors[i]);
}

void LinearImpl::reset_parameters() {
  double bound = options.in_features() > 0 ? 1 / std::sqrt(double(options.in_features())) : 0;
  if (weight.defined()) init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const TensorArg& x) {
  if (!quantized) return linear(x, weight, bias);
  UserPosition here(x.where(), "nn::Linear");
  const TensorArg input = low(x);
  const Tensor weight = quantized->dequantize_as_stored(input.dtype());
  if (quantized->order.defined()) return linear(index_select(input, -1, quantized->order), weight, bias);
  return linear(input, weight, bias);
}

std::string LinearImpl::extra_repr() const {
  return format("in_features={}, out_features={}, bias={}{}", options.in_features(), options.out_features(), options.bias(),
                quantized ? ", weight=" + field_text(quantized->encoding) : "");
}

// --- Bilinear

BilinearImpl::BilinearImpl(const BilinearOptions& options) : options(options) { reset(); }

void BilinearImpl::reset() {
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
  return functional::bilinear(x1, x2, weight, bias);
}

std::string BilinearImpl::extra_repr() const {
  return format("in1_features={}, in2_features={}, out_features={}, bias={}", options.in1_features(),
                options.in2_features(), options.out_features(), options.bias());
}

// --- Embedding

// The row that stays zero, counted from the beginning.
static std::optional<int64_t> padding_row(const char* layer, std::optional<int64_t> padding, int64_t rows) {
  if (!padding) return padding;
  check(*padding >= -rows && *padding < rows, "{}: padding_idx {} is not one of {} rows", layer, *padding, rows);
  return *padding < 0 ? *padding + rows : *padding;
}

Tensor functional::embedding(const TensorArg& indices, const Tensor& weight, const EmbeddingFuncOptions& options) {
  UserPosition here(indices.where());
  check(weight.dim() == 2, "embedding: a table has rows and columns, got {}", weight.sizes());
  auto padding = options.padding_idx();
  if (padding) padding = padding_row("embedding", padding, weight.size(0));
  return sinter::embedding({weight, indices.where()}, indices, padding.value_or(-1));
}

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& given) : options(given) { reset(); }

void EmbeddingImpl::reset() {
  int64_t rows = options.num_embeddings();
  options.padding_idx(padding_row("nn::Embedding", options.padding_idx(), rows));
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

Embedding Embedding::from_pretrained(const Tensor& table, const EmbeddingFromPretrainedOptions& options) {
  check(table.dim() == 2, "nn::Embedding: a table has rows and columns, got {}", table.sizes());
  Embedding made(nullptr);
  {
    ParameterScope parameters(table.options(), /*initialise=*/false);
    made = Embedding(EmbeddingOptions(table.size(0), table.size(1)).padding_idx(options.padding_idx()));
  }
  made->weight.set_data(table.detach());
  made->weight.requires_grad_(!options.freeze());
  return made;
}
std::string EmbeddingImpl::extra_repr() const {
  std::string text = format("{}, {}", options.num_embeddings(), options.embedding_dim());
  return options.padding_idx() ? text + format(", padding_idx={}", *options.padding_idx()) : text;
}

// --- EmbeddingBag

EmbeddingBagImpl::EmbeddingBagImpl(const EmbeddingBagOptions& given) : options(given) { reset(); }

void EmbeddingBagImpl::reset() {
  int64_t rows = options.num_embeddings();
  options.padding_idx(padding_row("nn::EmbeddingBag", options.padding_idx(), rows));
  weight = register_parameter("weight", new_parameter({rows, options.embedding_dim()}));
  if (initialises_parameters()) reset_parameters();
}

void EmbeddingBagImpl::reset_parameters() {
  init::normal_(weight);
  NoGradGuard no_grad;
  if (options.padding_idx()) weight[*options.padding_idx()].zero_();
}

Tensor EmbeddingBagImpl::forward(const TensorArg& indices, const Tensor& offsets, const Tensor& per_sample_weights) {
  return embedding_bag({weight, indices.where()}, indices, offsets, options.mode(), per_sample_weights,
                       options.include_last_offset(), options.padding_idx());
}

std::string EmbeddingBagImpl::extra_repr() const {
  constexpr const char* kModes[] = {"sum", "mean", "max"};
  std::string text = format("{}, {}, mode={}", options.num_embeddings(), options.embedding_dim(),
                            kModes[size_t(options.mode())]);
  return options.padding_idx() ? text + format(", padding_idx={}", *options.padding_idx()) : text;
}

// --- similarities

Tensor CosineSimilarityImpl::forward(const TensorArg& x1, const TensorArg& x2) {
  return functional::cosine_similarity(x1, x2, options);
}
std::string CosineSimilarityImpl::extra_repr() const { return format("dim={}, eps={}", options.dim(), options.eps()); }

Tensor PairwiseDistanceImpl::forward(const TensorArg& x1, const TensorArg& x2) {
  return functional::pairwise_distance(x1, x2, options);
}
std::string PairwiseDistanceImpl::extra_repr() const {
  return format("p={}, eps={}, keepdim={}", options.p(), options.eps(), options.keepdim());
}

namespace functional {

Tensor embedding_bag(const TensorArg& indices, const TensorArg& weight, const EmbeddingBagFuncOptions& o) {
  return sinter::embedding_bag(weight, indices, o.offsets(), o.mode(), o.per_sample_weights(), o.include_last_offset(),
                               o.padding_idx());
}
Tensor cosine_similarity(const TensorArg& x1, const TensorArg& x2, const CosineSimilarityOptions& o) {
  return sinter::cosine_similarity(x1, x2, o.dim(), o.eps());
}
Tensor pairwise_distance(const TensorArg& x1, const TensorArg& x2, const PairwiseDistanceOptions& o) {
  return sinter::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}

}  // namespace functional

// --- shapes

Tensor FlattenImpl::forward(const TensorArg& x) { return flatten(x, start_dim, end_dim); }
std::string FlattenImpl::extra_repr() const { return format("start_dim={}, end_dim={}", start_dim, end_dim); }

Tensor UnflattenImpl::forward(const TensorArg& x) { return unflatten(x, dim, sizes); }
std::string UnflattenImpl::extra_repr() const { return format("dim={}, sizes={}", dim, sizes); }

}  // namespace sinter::nn
