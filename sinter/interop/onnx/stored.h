#pragma once
// The tensors of a model: each is read once, when a node first wants it, and becomes a parameter, a buffer or a number by what its
// readers take it for.
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/interop/host_tensor.h"
#include "sinter/interop/onnx/tensors.h"
#include "sinter/interop/onnx/translate.h"

namespace sinter::interop::onnx {

// What a parameter of an operator takes, as its schema's type says.
enum class Wanted : uint8_t { kTensor, kState, kNumber };
Wanted wanted_of(std::string_view type);

class StoredTensors {
 public:
  explicit StoredTensors(const TensorFiles& files) : files_(files) {}

  // One that is not read yet; it stays where it is.
  struct Entry {
    TensorBytes bytes;
    std::string name;
    bool is_weight = false;  // an initialiser, which may be trained
    bool is_number = false, is_state = false;
    Tensor tensor = {};
    std::shared_ptr<const HostTensor> host = {};
  };
  Entry& add(const TensorBytes& bytes, std::string_view name, bool is_weight);
  // As a reader wants it.
  Value value(Entry& entry, Wanted wanted) const;
  // All that were read, each under a name of its own.
  std::vector<StoredTensor> take();

 private:
  const TensorFiles& files_;
  std::deque<Entry> entries_;
};

}  // namespace sinter::interop::onnx
