#pragma once
// Writing safetensors whose bytes are elements of types that sinter does not have.
#include "sinter/io/safetensors.h"

namespace sinter {

// As save_safetensors. Those tensors of u8 that `types` names are written as of these types of the format ("F8_E4M3").
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata,
                      const std::map<std::string, std::string>& types);

}  // namespace sinter
