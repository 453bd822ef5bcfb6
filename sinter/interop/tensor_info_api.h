#pragma once
// What a file tells of a tensor, from JSON. For .cpp files only.
#include <nlohmann/json.hpp>

#include "sinter/interop/program.h"

namespace sinter::interop {

class JsonFile;

constexpr size_t kMostRank = 64;

TensorInfo read_tensor_info(const JsonFile& file, const nlohmann::json& meta);
// {"as_int": 3} or {"as_expr": {"expr_str": …}}.
// The number that a size or a stride had when the program was exported; 1 where the file does not tell.
int64_t size_seen(const JsonFile& file, const nlohmann::json& size);
Expression read_size(const JsonFile& file, const nlohmann::json& size);

}  // namespace sinter::interop
