// AWQ in the layout of AutoAWQ's "gemm": codes of four bits packed along the outputs, eight in a word, in an order of its own.
#include <array>

#include "sinter/base/error.h"
#include "sinter/models/formats/quantized_format.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

constexpr int64_t kInWord = 8;
// Which four bits of a word have the code of its first, second, … column.
constexpr std::array<int, kInWord> kPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

class Awq final : public QuantizedFormat {
 public:
  explicit Awq(const ConfigFile& config) {
    const int64_t bits = config.integer("bits", config.integer("w_bit", 4));
    check(bits == 4, "AWQ: '{}' has weights of {} bits; those of 4 are read", config.name(), bits);
    const std::string version = config.text("version", "gemm");
    check(version == "gemm" || version == "GEMM",
          "AWQ: '{}' has weights in the layout '{}'; that of 'gemm' is read, which AutoAWQ and llm-compressor write",
          config.name(), version);
    group_size_ = config.integer("group_size", config.integer("q_group_size", 128));
    check(group_size_ == -1 || group_size_ > 0, "AWQ: '{}' has groups of {}", config.name(), group_size_);
    check(config.boolean("zero_point", true), "AWQ: '{}' has weights without zeros, which this layout does not have",
          config.name());
  }

  bool is_part(std::string_view end, const SafeTensorInfo&) const override {
    return end == "qweight" || end == "qzeros" || end == "scales";
  }

  nn::QuantizedWeight weight(const std::string& layer, const LayerParts& parts, int64_t out,
                             int64_t in) const override {
    const int64_t group = group_size_ == -1 ? in : group_size_, groups = (in + group - 1) / group;
    check(out % kInWord == 0, "AWQ: '{}' has {} outputs, which fill no words of {}", layer, out, kInWord);
    auto part = [&](const std::string& name, DType dtype, const Shape& sizes) {
      auto found = parts.find(name);
      check(found != parts.end(), "AWQ: '{}' lacks its {}", layer, name);
      const Tensor& tensor = found->second;
      check((dtype == kInt32 ? tensor.dtype() == dtype : tensor.is_floating_point()) && tensor.sizes().same_as(sizes),
            "AWQ: {} of '{}', {} by {} in groups of {}, is {} {}, not {} {}", name, layer, out, in, group,
            tensor.dtype(), tensor.sizes(), dtype, sizes);
      return tensor.contiguous();
    };
    const Tensor words = part("qweight", kInt32, {in, out / kInWord}),
                 zeros = part("qzeros", kInt32, {groups, out / kInWord});
    nn::QuantizedWeight made;
    made.encoding = Encoding::kUInt4;
    made.columns = in;
    made.group_size = groups == 1 ? 0 : group;
    made.scale = part("scales", kFloat16, {groups, out}).t().contiguous();
    made.codes = sinter::zeros({out, (in + 1) / 2}, kUInt8);
    made.zero = empty({out, groups}, kUInt8);
    auto* codes = made.codes.data_ptr<uint8_t>();
    auto* zero = made.zero.data_ptr<uint8_t>();
    for_each_code(words, out, [&](int64_t n, int64_t k, int code) {
      codes[n * ((in + 1) / 2) + k / 2] |= uint8_t(code << (k % 2 * 4));
    });
    for_each_code(zeros, out, [&](int64_t n, int64_t g, int code) { zero[n * groups + g] = uint8_t(code); });
    return made;
  }

 private:
  template <class F>
  static void for_each_code(const Tensor& words, int64_t out, F&& f) {
    auto* from = words.data_ptr<int32_t>();
    const int64_t rows = words.size(0);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t n = 0; n < out; n += kInWord) {
        const uint32_t word = uint32_t(*from++);
        for (int64_t i = 0; i < kInWord; ++i) f(n + i, row, int(word >> (4 * kPlaces[size_t(i)]) & 15));
      }
  }

  int64_t group_size_ = 128;
};

}  // namespace

std::unique_ptr<QuantizedFormat> awq_format(const ConfigFile& config) { return std::make_unique<Awq>(config); }

}  // namespace sinter::models
