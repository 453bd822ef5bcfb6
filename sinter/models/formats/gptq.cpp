// GPTQ, as AutoGPTQ and GPTQModel write it: codes of 2, 3, 4 or 8 bits packed along the inputs, zeros along the
// outputs, and groups whose columns may lie anywhere (act-order).
#include <algorithm>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/models/formats/quantized_format.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

// Fields of so many bits, one after the other from the lowest on, in words that lie `stride` apart. Some span two
// words.
class Fields {
 public:
  Fields(const uint32_t* words, int64_t stride, int64_t bits) : words_(words), stride_(stride), bits_(bits) {}
  uint32_t operator[](int64_t i) const {
    const int64_t bit = i * bits_, word = bit / 32, shift = bit % 32;
    uint64_t both = words_[word * stride_];
    if (shift + bits_ > 32) both |= uint64_t(words_[(word + 1) * stride_]) << 32;
    return uint32_t(both >> shift) & ((1u << bits_) - 1);
  }

 private:
  const uint32_t* words_;
  int64_t stride_, bits_;
};

int64_t words_of(int64_t count, int64_t bits) { return (count * bits + 31) / 32; }

class Gptq final : public QuantizedFormat {
 public:
  explicit Gptq(const ConfigFile& config) {
    bits_ = config.integer("bits", 4);
    check(bits_ == 2 || bits_ == 3 || bits_ == 4 || bits_ == 8,
          "GPTQ: '{}' has weights of {} bits; those of 2, 3, 4 and 8 are read", config.name(), bits_);
    group_size_ = config.integer("group_size", 128);
    check(group_size_ == -1 || group_size_ > 0, "GPTQ: '{}' has groups of {}", config.name(), group_size_);
    const std::string format = config.text("checkpoint_format", config.text("format", "gptq"));
    check(format == "gptq" || format == "gptq_v2",
          "GPTQ: '{}' has weights in the layout '{}'; gptq and gptq_v2 are read", config.name(), format);
    less_one_ = format == "gptq";
  }

  bool is_part(std::string_view end, const SafeTensorInfo&) const override {
    return end == "qweight" || end == "qzeros" || end == "scales" || end == "g_idx" || end == "bias";
  }

  nn::QuantizedWeight weight(const std::string& layer, const LayerParts& parts, int64_t out,
                             int64_t in) const override {
    const int64_t group = group_size_ == -1 ? in : group_size_, groups = (in + group - 1) / group;
    auto part = [&](const std::string& name, DType dtype, const Shape& sizes) {
      auto found = parts.find(name);
      check(found != parts.end(), "GPTQ: '{}' lacks its {}", layer, name);
      const Tensor& tensor = found->second;
      check((dtype == kInt32 ? tensor.dtype() == dtype : tensor.is_floating_point()) && tensor.sizes().same_as(sizes),
            "GPTQ: {} of '{}', {} by {} in groups of {} by {} bits, is {} {}, not {} {}", name, layer, out, in, group,
            bits_, tensor.dtype(), tensor.sizes(), dtype, sizes);
      return tensor.contiguous();
    };
    check_no_bias(layer, parts);
    const Tensor words = part("qweight", kInt32, {words_of(in, bits_), out}),
                 zeros = part("qzeros", kInt32, {groups, words_of(out, bits_)});
    nn::QuantizedWeight made;
    made.columns = in;
    made.group_size = groups == 1 ? 0 : group;
    made.scale = part("scales", kFloat16, {groups, out}).t().contiguous();
    std::vector<int64_t> order;
    if (parts.contains("g_idx")) order = order_by_group(part("g_idx", kInt32, {in}), group, "GPTQ: '" + layer + "'");
    if (!order.empty()) made.order = tensor(order);
    const std::vector<int> zero_values = zeros_of(zeros, out, groups);
    int more = 0;
    if (bits_ == 8)
      add_eight_bits(made, zero_values);
    else
      more = add_four_bits(made, zero_values);
    auto* codes = static_cast<uint8_t*>(made.codes.data_ptr());
    auto* from = reinterpret_cast<const uint32_t*>(words.data_ptr<int32_t>());
    for (int64_t n = 0; n < out; ++n) {
      const Fields fields(from + n, out, bits_);
      for (int64_t k = 0; k < in; ++k) {
        const uint32_t code = fields[order.empty() ? k : order[size_t(k)]];
        if (bits_ == 8)
          codes[n * in + k] = uint8_t(code ^ 0x80);
        else
          codes[n * ((in + 1) / 2) + k / 2] |= uint8_t((code + uint32_t(more)) << (k % 2 * 4));
      }
    }
    return made;
  }

 private:
  // AutoGPTQ writes a bias for each layer, of nothing but zeros where the model has none.
  static void check_no_bias(const std::string& layer, const LayerParts& parts) {
    auto bias = parts.find("bias");
    if (bias == parts.end()) return;
    for (float value : bias->second.to(kFloat32).to_vector<float>())
      check(value == 0, "GPTQ: '{}' has a bias, and the model has none there", layer);
  }

  // Zeros as numbers, [out, groups].
  std::vector<int> zeros_of(const Tensor& packed, int64_t out, int64_t groups) const {
    const int64_t width = words_of(out, bits_);
    auto* from = reinterpret_cast<const uint32_t*>(packed.data_ptr<int32_t>());
    std::vector<int> values(size_t(out * groups));
    for (int64_t g = 0; g < groups; ++g) {
      std::vector<uint32_t> words(from + g * width, from + (g + 1) * width);
      // The older format has one less in each field, taken from whole words; of fields that span words, from each by
      // itself.
      if (less_one_ && bits_ != 3)
        for (auto& word : words) word += bits_ == 2 ? 0x55555555u : bits_ == 4 ? 0x11111111u : 0x01010101u;
      const Fields fields(words.data(), 1, bits_);
      for (int64_t n = 0; n < out; ++n)
        values[size_t(n * groups + g)] = int(fields[n] + (less_one_ && bits_ == 3)) & ((1 << bits_) - 1);
    }
    return values;
  }

  // Codes of eight bits become signed ones, of fewer bits codes of four. Where all zeros are one, they are not stored:
  // codes of four bits stand for 8 less then, and those of two and three have room to be moved there.
  static void add_eight_bits(nn::QuantizedWeight& made, const std::vector<int>& zeros) {
    made.encoding = Encoding::kInt8;
    made.codes = empty({made.scale.size(0), made.columns}, kInt8);
    if (std::all_of(zeros.begin(), zeros.end(), [](int v) { return v == 128; })) return;
    made.zero = empty(made.scale.sizes(), kInt8);
    std::transform(zeros.begin(), zeros.end(), made.zero.data_ptr<int8_t>(), [](int v) { return int8_t(v - 128); });
  }
  // Gives what is added to codes.
  int add_four_bits(nn::QuantizedWeight& made, const std::vector<int>& zeros) const {
    made.encoding = Encoding::kUInt4;
    made.codes = sinter::zeros({made.scale.size(0), (made.columns + 1) / 2}, kUInt8);
    const bool same = std::all_of(zeros.begin(), zeros.end(), [&](int v) { return v == zeros[0]; });
    if (same && (zeros[0] == 8 || bits_ < 4)) return 8 - zeros[0];
    made.zero = empty(made.scale.sizes(), kUInt8);
    std::transform(zeros.begin(), zeros.end(), made.zero.data_ptr<uint8_t>(), [](int v) { return uint8_t(v); });
    return 0;
  }

  int64_t bits_ = 4, group_size_ = 128;
  bool less_one_ = true;
};

}  // namespace

std::unique_ptr<QuantizedFormat> gptq_format(const ConfigFile& config) { return std::make_unique<Gptq>(config); }

}  // namespace sinter::models
