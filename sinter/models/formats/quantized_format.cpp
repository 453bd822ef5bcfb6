#include "sinter/models/formats/quantized_format.h"

#include <algorithm>
#include <numeric>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dequantize.h"

namespace sinter::models {

namespace {

struct Method {
  const char* name;
  std::unique_ptr<QuantizedFormat> (*make)(const ConfigFile& config);
};

constexpr Method kMethods[] = {{"awq", awq_format},
                               {"gptq", gptq_format},
                               {"compressed-tensors", compressed_tensors_format},
                               {"bitsandbytes", bitsandbytes_format},
                               {"fp8", fp8_format},
                               {"fbgemm_fp8", fp8_format}};

}  // namespace

std::unique_ptr<QuantizedFormat> quantized_format(const ConfigFile& file) {
  auto config = file.object("quantization_config");
  if (!config) return nullptr;
  std::string method = config->text("quant_method", ""), known;
  // bitsandbytes once left its name out.
  if (method.empty() && (config->boolean("load_in_4bit", false) || config->boolean("load_in_8bit", false)))
    method = "bitsandbytes";
  for (auto& each : kMethods) {
    if (method == each.name) return each.make(*config);
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw_error(format("models: the weights of '{}' are quantised by '{}', which is not read yet: {} are", file.name(),
                     method, known));
}

std::vector<int64_t> order_by_group(const Tensor& groups, int64_t group_size, const std::string& layer) {
  const int64_t count = groups.numel();
  auto* of = groups.data_ptr<int32_t>();
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return of[a] < of[b]; });
  for (int64_t at = 0; at < count; ++at)
    check(of[order[size_t(at)]] == at / group_size, "{} has columns in groups that are not of {} each", layer,
          group_size);
  return std::is_sorted(order.begin(), order.end()) ? std::vector<int64_t>() : order;
}

void sort_columns(nn::QuantizedWeight& weight, const std::vector<int64_t>& order) {
  const Tensor from = weight.codes.contiguous();
  Tensor to = zeros(from.sizes(), from.dtype());
  const int64_t rows = from.size(0), bytes = from.size(1);
  const bool nibbles = codes_in_byte(weight.encoding) == 2;
  auto* old = static_cast<const uint8_t*>(from.data_ptr());
  auto* made = static_cast<uint8_t*>(to.data_ptr());
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t c = 0; c < weight.columns; ++c) {
      const int64_t k = order[size_t(c)];
      if (nibbles)
        made[n * bytes + c / 2] |= uint8_t((old[n * bytes + k / 2] >> (k % 2 * 4) & 15) << (c % 2 * 4));
      else
        made[n * bytes + c] = old[n * bytes + k];
    }
  weight.codes = to;
  weight.order = tensor(order);
}

}  // namespace sinter::models
