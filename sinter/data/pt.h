#pragma once
// Files of torch.save, read and written: a ZIP archive with a pickle program and the bytes of the tensors. The program is read, never run: it may
// make dictionaries, lists, tuples, texts, numbers, truth values, None and tensors, and whatever else it names is an Error.
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/io/safetensors.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace data {

// A value of such a file.
struct PtValue {
  using List = std::vector<PtValue>;                      // a list or a tuple
  using Dict = std::vector<std::pair<PtValue, PtValue>>;  // in the order of the file
  std::variant<std::monostate, bool, int64_t, double, std::string, Tensor, List, Dict> value;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value);
  }
  // An Error unless it is one.
  template <class T>
  const T& as() const {
    check(is<T>(), "load_pt: a value of the file is of another kind than asked for");
    return std::get<T>(value);
  }
  // The entry of a dictionary with this text as its key; an Error when there is none.
  const PtValue& at(std::string_view key) const;
  bool contains(std::string_view key) const;
};

// What the file, or the rest of the stream, holds. Tensors that shared memory when they were saved share it here; all are on the CPU.
PtValue load_pt(const std::string& path);
PtValue load_pt(std::istream& in);
// The tensors of a state dict, by name, or of those in it: {"model": {"weight": t}} gives "model.weight". What is no tensor
// is left out.
NamedTensors load_pt_tensors(const std::string& path);
NamedTensors pt_tensors(const PtValue& value);

// Writes a value as torch.save does, for Python's torch.load(path, weights_only=True) and load_pt. A tensor that is there
// several times is stored once; views are stored without what they leave out. A file appears whole or not at all; 4 GiB at most.
void save_pt(const std::string& path, const PtValue& value);
void save_pt(std::ostream& out, const PtValue& value);

}  // namespace data
}  // namespace SINTER_API
