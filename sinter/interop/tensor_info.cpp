#include "sinter/interop/json_api.h"
#include "sinter/interop/tensor_info_api.h"

namespace sinter::interop {

using nlohmann::json;

int64_t size_seen(const JsonFile& file, const json& size) {
  auto [kind, value] = file.choice(size);
  if (kind == "as_int") return file.integer(*value);
  auto hint = value->find("hint");
  return hint != value->end() && hint->is_object() && hint->contains("as_int") ? file.integer((*hint)["as_int"]) : 1;
}

Expression read_size(const JsonFile& file, const json& size) {
  auto [kind, value] = file.choice(size);
  if (kind == "as_int") return {.number = file.integer(*value)};
  if (kind == "as_expr") return parse_expression(file.text(*value, "expr_str"));
  file.damaged("a size is neither a number nor an expression");
}

TensorInfo read_tensor_info(const JsonFile& file, const json& meta) {
  file.require(meta.is_object() && meta.contains("dtype"), "a tensor has no dtype");
  auto type = file_dtype(file.integer(meta["dtype"]));
  if (!type) file.damaged("a dtype is unknown");
  TensorInfo out{.dtype = type->dtype, .dtype_text = std::string(type->name)};
  const json& sizes = file.array(meta, "sizes");
  file.require(sizes.size() <= kMostRank, "a tensor has too many dimensions");
  for (auto& size : sizes) {
    out.sizes.push_back(read_size(file, size));
    out.seen.push_back(size_seen(file, size));
  }
  return out;
}

}  // namespace sinter::interop
