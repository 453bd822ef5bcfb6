// compressed-tensors, as llm-compressor writes it: integers of four and eight bits, packed into words (pack-quantized)
// or plain (int-quantized), floating-point numbers of eight bits (float-quantized) and of four (nvfp4 and mxfp4), a
// scale for each group, block, row or tensor. Activations stay as they are.
#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/models/formats/float8_parts.h"
#include "sinter/models/formats/quantized_format.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

static_assert(std::endian::native == std::endian::little, "words are read as bytes");

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How a config_group says weights are stored.
struct Scheme {
  int64_t bits = 0, group_size = 0;  // 0: a scale a row, or for all
};

class CompressedTensors final : public QuantizedFormat {
 public:
  explicit CompressedTensors(const ConfigFile& config) {
    const std::string format = config.text("format", "");
    constexpr std::string_view kFormats[] = {"pack-quantized",  "int-quantized",        "float-quantized",
                                             "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized",
                                             "mixed-precision"};
    check(std::find(std::begin(kFormats), std::end(kFormats), format) != std::end(kFormats),
          "compressed-tensors: '{}' has weights of the format '{}'; pack-quantized, int-quantized, float-quantized, "
          "nvfp4-pack-quantized and mxfp4-pack-quantized are read",
          config.name(), format);
    auto groups = config.object("config_groups");
    check(groups.has_value(), "compressed-tensors: '{}' has no config_groups", config.name());
    for (auto& name : groups->keys()) {
      auto group = groups->object(name);
      auto weights = group ? group->object("weights") : std::nullopt;
      if (!weights) continue;
      const std::string type = weights->text("type", "int");
      check(type == "int" || type == "float", "compressed-tensors: '{}' has weights of the type '{}' in {}",
            config.name(), type, name);
      if (const auto block = weights->integers("block_structure"); block.size() == 2 && block[0] > 0 && block[1] > 0)
        blocks_.push_back({block[0], block[1]});
      Scheme scheme{weights->integer("num_bits"), std::max<int64_t>(0, weights->integer("group_size", 0))};
      check(scheme.bits == 4 || scheme.bits == 8,
            "compressed-tensors: '{}' has weights of {} bits in {}; 4 and 8 are read", config.name(), scheme.bits,
            name);
      schemes_.push_back(scheme);
    }
    check(!schemes_.empty(), "compressed-tensors: '{}' says of no weights how they are stored", config.name());
  }

  bool is_part(std::string_view end, const SafeTensorInfo& info) const override {
    if (end == "weight") return info.dtype == kInt8 || info.dtype_text == "F8_E4M3";
    return end == "weight_packed" || end == "weight_scale" || end == "weight_zero_point" || end == "weight_shape" ||
           end == "weight_g_idx" || end == "input_scale" || end == "input_zero_point" || end == "weight_global_scale" ||
           end == "input_global_scale";
  }

  nn::QuantizedWeight weight(const std::string& layer, const LayerParts& parts, int64_t out,
                             int64_t in) const override {
    const Reader reader{layer, parts, out, in};
    reader.check_shape();
    const bool packed = parts.contains("weight_packed");
    if (packed && parts.at("weight_packed").dtype() == kUInt8) return reader.four_bit_floats();
    if (auto plain = parts.find("weight"); plain != parts.end() && plain->second.dtype() == kUInt8)
      return e4m3_weight("compressed-tensors", layer, parts, "weight_scale", blocks_, out, in);
    const Tensor scale = reader.scale();
    const int64_t groups = scale.size(1);
    // What the group is called in the configuration is not asked: its sizes say which it is.
    auto fits = [&](const Scheme& s) {
      const bool grouped = groups == 1 || (s.group_size > 0 && ceil_div(in, s.group_size) == groups);
      return grouped && (!packed || reader.words() == ceil_div(in * s.bits, 32));
    };
    auto scheme = std::find_if(schemes_.begin(), schemes_.end(), fits);
    check(scheme != schemes_.end(),
          "compressed-tensors: '{}' has {} groups{}, which fits none of the ways that the configuration tells of for "
          "{} by {}",
          layer, groups, packed ? format(" and {} words a row", reader.words()) : std::string(), out, in);
    nn::QuantizedWeight made;
    made.columns = in;
    made.group_size = groups == 1 ? 0 : scheme->group_size;
    made.scale = scale;
    if (packed && scheme->bits == 4) {
      made.encoding = Encoding::kUInt4;
      made.codes = reader.bytes(ceil_div(in, 2), 0, kUInt8);
    } else {
      made.encoding = Encoding::kInt8;
      made.codes = packed ? reader.bytes(in, 0x80, kInt8) : reader.plain();
    }
    if (parts.contains("weight_zero_point"))
      made.zero = packed ? reader.packed_zeros(groups, scheme->bits) : reader.plain_zeros(groups);
    const auto order = reader.order(groups == 1 ? in : scheme->group_size);
    if (!order.empty()) sort_columns(made, order);
    return made;
  }

 private:
  // The tensors of one layer, each with the size that it has to have.
  struct Reader {
    const std::string& layer;
    const LayerParts& parts;
    int64_t out, in;

    Tensor part(const std::string& name, DType dtype) const {
      auto found = parts.find(name);
      check(found != parts.end(), "compressed-tensors: '{}' lacks its {}", layer, name);
      check(found->second.dtype() == dtype, "compressed-tensors: {} of '{}' is {}, not {}", name, layer,
            found->second.dtype(), dtype);
      return found->second.contiguous();
    }
    void expect(const std::string& name, const Tensor& tensor, const Shape& sizes) const {
      check(tensor.sizes().same_as(sizes), "compressed-tensors: {} of '{}', {} by {}, is {}, not {}", name, layer, out,
            in, tensor.sizes(), sizes);
    }

    void check_shape() const {
      auto found = parts.find("weight_shape");
      if (found == parts.end()) return;
      const std::vector<int64_t> told = found->second.to(kInt64).to_vector<int64_t>();
      check(told == std::vector<int64_t>({out, in}),
            "compressed-tensors: weight_shape of '{}' is not that of the model, {} by {}", layer, out, in);
    }
    // Of groups whose columns do not lie side by side; -1 all over says that they do.
    std::vector<int64_t> order(int64_t group) const {
      if (!parts.contains("weight_g_idx")) return {};
      const Tensor index = part("weight_g_idx", kInt32);
      expect("weight_g_idx", index, {in});
      const std::vector<int32_t> values = index.to_vector<int32_t>();
      if (std::all_of(values.begin(), values.end(), [](int32_t v) { return v == -1; })) return {};
      return order_by_group(index, group, "compressed-tensors: '" + layer + "'");
    }
    // E2M1, two in a byte; with a scale of E4M3 for 16, over one for all (nvfp4), or of E8M0 for 32 (mxfp4).
    nn::QuantizedWeight four_bit_floats() const {
      const bool nv = parts.contains("weight_global_scale");
      const int64_t group = nv ? 16 : 32;
      check(in % group == 0, "compressed-tensors: '{}' has rows of {}, no whole groups of {}", layer, in, group);
      nn::QuantizedWeight made;
      made.encoding = Encoding::kTable4;
      made.columns = in;
      made.group_size = in == group ? 0 : group;
      made.table = e2m1_table();
      made.codes = part("weight_packed", kUInt8).clone();
      expect("weight_packed", made.codes, {out, in / 2});
      const Tensor scale = part("weight_scale", kUInt8);
      expect("weight_scale", scale, {out, in / group});
      made.scale = nv ? e4m3_floats(scale) : e8m0_floats(scale);
      if (!nv) return made;
      const Tensor over = part("weight_global_scale", kFloat32);
      check(over.numel() == 1, "compressed-tensors: weight_global_scale of '{}' is {}", layer, over.sizes());
      made.scale = made.scale / over.reshape({1, 1});
      return made;
    }
    Tensor scale() const {
      auto found = parts.find("weight_scale");
      check(found != parts.end(), "compressed-tensors: '{}' lacks its weight_scale", layer);
      const Tensor& scale = found->second;
      check(scale.is_floating_point(), "compressed-tensors: weight_scale of '{}' is {}", layer, scale.dtype());
      if (scale.numel() == 1) return scale.reshape({1, 1}).expand({out, 1}).contiguous();
      check(scale.dim() == 2 && scale.size(0) == out && scale.size(1) >= 1 && scale.size(1) <= in,
            "compressed-tensors: weight_scale of '{}', {} by {}, is {}", layer, out, in, scale.sizes());
      return scale.clone();
    }
    int64_t words() const {
      const Tensor packed = part("weight_packed", kInt32);
      check(packed.dim() == 2 && packed.size(0) == out, "compressed-tensors: weight_packed of '{}', {} by {}, is {}",
            layer, out, in, packed.sizes());
      return packed.size(1);
    }
    // The first bytes of each row of words, with some bits turned.
    Tensor bytes(int64_t count, uint8_t turned, DType dtype) const {
      const Tensor packed = part("weight_packed", kInt32);
      Tensor made = empty({out, count}, dtype);
      const int64_t row = 4 * words();
      auto* from = static_cast<const uint8_t*>(packed.data_ptr());
      auto* to = static_cast<uint8_t*>(made.data_ptr());
      for (int64_t n = 0; n < out; ++n)
        for (int64_t i = 0; i < count; ++i) to[n * count + i] = uint8_t(from[n * row + i] ^ turned);
      return made;
    }
    Tensor plain() const {
      const Tensor codes = part("weight", kInt8);
      expect("weight", codes, {out, in});
      return codes.clone();
    }
    // Packed along the rows, a group after the other.
    Tensor packed_zeros(int64_t groups, int64_t bits) const {
      const Tensor packed = part("weight_zero_point", kInt32);
      expect("weight_zero_point", packed, {ceil_div(out * bits, 32), groups});
      Tensor made = empty({out, groups}, bits == 4 ? kUInt8 : kInt8);
      auto* from = packed.data_ptr<int32_t>();
      auto* to = static_cast<uint8_t*>(made.data_ptr());
      for (int64_t n = 0; n < out; ++n)
        for (int64_t g = 0; g < groups; ++g) {
          const uint32_t word = uint32_t(from[n * bits / 32 * groups + g]);
          const uint32_t code = word >> (n * bits % 32) & ((1u << bits) - 1);
          to[n * groups + g] = uint8_t(bits == 4 ? code : code ^ 0x80);
        }
      return made;
    }
    Tensor plain_zeros(int64_t groups) const {
      const Tensor zero = part("weight_zero_point", kInt8);
      if (zero.numel() == 1) return zero.reshape({1, 1}).expand({out, groups}).contiguous();
      expect("weight_zero_point", zero, {out, groups});
      return zero.clone();
    }
  };

  std::vector<Scheme> schemes_;
  std::vector<BlockSize> blocks_;
};

}  // namespace

std::unique_ptr<QuantizedFormat> compressed_tensors_format(const ConfigFile& config) {
  return std::make_unique<CompressedTensors>(config);
}

}  // namespace sinter::models
