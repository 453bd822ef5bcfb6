#include "sinter/models/formats/gguf.h"

#include <algorithm>
#include <map>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

// Pieces of a layer's names, and what modules call them.
constexpr std::pair<const char*, const char*> kPieces[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_down", "mlp.down_proj"},
};

// Rows of query and key lie in pairs that are rotated together, where modules have them half a head apart: which row of
// the file is which of the model. None where they lie as they should.
std::vector<int64_t> order_of_rows(const GgufFile& file, const GgufTensor& tensor, const ModelConfig& config) {
  const std::string architecture = file.text("general.architecture");
  if (architecture != "llama" && architecture != "granite") return {};
  const bool query = tensor.name.find(".attn_q.") != std::string::npos;
  if (!query && tensor.name.find(".attn_k.") == std::string::npos) return {};
  const int64_t rows = tensor.shape[0].number(), heads = query ? config.heads : config.kv_heads, size = rows / heads;
  check(rows % heads == 0 && size % 2 == 0, "gguf: '{}' in '{}' has {} rows for {} heads", tensor.name, file.path(),
        rows, heads);
  std::vector<int64_t> order;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < size / 2; ++i) order.push_back(head * size + 2 * i + half);
  return order;
}

Tensor rows_in(const Tensor& x, const std::vector<int64_t>& order) {
  return x.defined() && !order.empty() ? x.index_select(0, tensor(order)) : x;
}

std::optional<DType> plain_type(const GgufTensor& t) {
  const std::string_view name = t.type.name;
  if (name == "F32") return kFloat32;
  if (name == "F16") return kFloat16;
  if (name == "BF16") return kBFloat16;
  return {};
}

}  // namespace

std::optional<std::string> gguf_module_name(const ModelConfig& config, const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return name;
  const std::string whole = name.substr(0, dot), end = name.substr(dot);
  if (whole == "rope_freqs" || whole == "rope_factors_long" || whole == "rope_factors_short") return {};
  if (whole == "token_embd") return "embed_tokens" + end;
  if (whole == "output_norm") return "norm" + end;
  if (whole == "output") return "lm_head" + end;
  const size_t second = whole.rfind('.');
  if (!whole.starts_with("blk.") || second < 4 || second == std::string::npos) return name;
  const std::string layer = "layers." + whole.substr(4, second - 4) + ".", piece = whole.substr(second + 1);
  if (piece == "ffn_norm")
    return layer +
           (config.order == BlockOrder::kNormsAround ? "pre_feedforward_layernorm" : "post_attention_layernorm") + end;
  if (piece == "ffn_up")
    return layer + (config.mlp == MlpKind::kJoinedGated ? "mlp.gate_up_proj" : "mlp.up_proj") + end;
  for (auto& [from, to] : kPieces)
    if (piece == from) return layer + to + end;
  return name;
}

nn::QuantizedWeight gguf_weight(const GgufFile& file, const GgufTensor& tensor, const ModelConfig& config) {
  check(tensor.shape.size() == 2, "gguf: '{}' in '{}' is of shape {}, no matrix", tensor.name, file.path(),
        tensor.shape);
  nn::QuantizedWeight made =
      decode_blocks(tensor.type, file.data(tensor), tensor.shape[0].number(), tensor.shape[1].number());
  const auto order = order_of_rows(file, tensor, config);
  for (Tensor* part : {&made.codes, &made.scale, &made.offset}) *part = rows_in(*part, order);
  return made;
}

Tensor gguf_tensor(const GgufFile& file, const GgufTensor& tensor, const ModelConfig& config, DType dtype) {
  if (is_encoded(tensor)) return gguf_weight(file, tensor, config).dequantize(dtype);
  const auto type = plain_type(tensor);
  check(type.has_value(), "gguf: '{}' in '{}' is of the type {}, which is not read", tensor.name, file.path(),
        tensor.type.name);
  void* data = const_cast<uint8_t*>(file.data(tensor));
  const bool aligned = uintptr_t(data) % uintptr_t(item_size(*type)) == 0;
  Tensor out = aligned ? from_blob(data, tensor.shape, *type, [file] {}) : from_bytes(data, tensor.shape, *type);
  out = rows_in(out, order_of_rows(file, tensor, config));
  // Norms by 1 + weight are stored with the 1.
  const bool shifted = config.norm == NormKind::kUnitOffsetRms && tensor.name.ends_with("norm.weight");
  return shifted ? out.to(kFloat32) - 1 : out;
}

DType gguf_type(const GgufFile& file) {
  std::map<DType, uint64_t> bytes;
  for (auto& tensor : file.tensors()) bytes[plain_type(tensor).value_or(kBFloat16)] += tensor.size;
  check(!bytes.empty(), "gguf: '{}' has no tensors", file.path());
  return std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
}

}  // namespace sinter::models
