// /v1/embeddings.
#include <algorithm>
#include <bit>

#include "sinter/serve/json_api.h"

namespace sinter::serve {

namespace {

constexpr size_t kMostTexts = 2048;

// Little-endian f32, as clients ask for unless told otherwise.
std::string base64_of(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  const size_t size = values.size() * sizeof(float);
  std::string out;
  for (size_t i = 0; i < size; i += 3) {
    const size_t count = std::min<size_t>(3, size - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

Reply embed(const Json& body, Embedder& embedder, const ApiOptions& options) {
  const Fields f(body);
  const Json* input = f.find("input");
  demand(input != nullptr && (input->is_string() || (input->is_array() && !input->empty())), "input",
         "input must be a text, token ids, or a list of these");
  const std::string form = f.text("encoding_format", "float");
  demand(form == "float" || form == "base64", "encoding_format", "encoding_format must be float or base64");
  const bool is_one = input->is_string() || input->front().is_number();
  const Json all = is_one ? Json::array({*input}) : *input;
  demand(all.size() <= kMostTexts, "input", "input has {} texts; at most {} are taken", all.size(), kMostTexts);
  std::vector<std::vector<int64_t>> texts;
  int64_t tokens = 0;
  for (auto& each : all) {
    const Json wrapped{{"input", each}};
    texts.push_back(each.is_string() ? embedder.ids_of(each.get<std::string>()) : Fields(wrapped).integers("input"));
    tokens += int64_t(texts.back().size());
  }
  const auto found = embedder.embed(texts);
  const int64_t size = int64_t(found[0].size());
  demand(f.integer("dimensions", size, 1, INT32_MAX) == size, "dimensions", "the model has embeddings of {} numbers",
         size);
  Json data = Json::array();
  for (size_t i = 0; i < found.size(); ++i)
    data.push_back({{"object", "embedding"},
                    {"index", i},
                    {"embedding", form == "base64" ? Json(base64_of(found[i])) : Json(found[i])}});
  return {.body = to_line({{"object", "list"},
                           {"data", std::move(data)},
                           {"model", options.model_name},
                           {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}})};
}

}  // namespace sinter::serve
