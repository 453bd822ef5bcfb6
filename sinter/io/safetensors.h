#pragma once
// The safetensors format: 8 bytes of header length, a JSON header, the tensors' bytes. Files come from anywhere, so
// every number in the header is checked before it is used; what is wrong throws an Error that names the file.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// Names and tensors in a fixed order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct SafeTensorInfo {
  std::string dtype_text;      // as in the file: "BF16", "F8_E4M3"
  std::optional<DType> dtype;  // none when sinter has no such type
  Shape shape;
  uint64_t begin = 0, end = 0;  // bytes, counted from the first byte after the header
};

// A file mapped into memory. Reading it costs no more than the header until the values are used. Copies share the
// mapping. The file must not be truncated while it is in use; replacing it by a rename is fine.
class SafeTensorsFile {
 public:
  explicit SafeTensorsFile(const std::string& path);
  // One that lies inside another file, from a multiple of 4096 on.
  SafeTensorsFile(const std::string& path, uint64_t offset, uint64_t size);

  // In the order of the header.
  const std::vector<std::string>& names() const;
  const std::map<std::string, std::string>& metadata() const;
  bool contains(std::string_view name) const;
  const SafeTensorInfo& info(std::string_view name) const;
  // A view of the mapping, which lives as long as the view; copied only where the file does not align it. Writing to it
  // changes neither the file nor other readers of it, but is seen by other tensors of this name from this object.
  Tensor tensor(std::string_view name) const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

NamedTensors load_safetensors(const std::string& path);

// Writes a file that appears whole or not at all. The header keeps the order given; the bytes are laid out by falling
// element size, so that every tensor is aligned in the file.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace sinter
