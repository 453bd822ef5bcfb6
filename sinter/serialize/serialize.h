#pragma once
// LibTorch's save(what, path) and load(what, path), of tensors, lists of them, modules and optimisers; in place of a path a stream.
//
//   save(net, "net.pt");                // in Python: net.load_state_dict(torch.load("net.pt"))
//   load(net, "net.pt");                // also what Python's torch.save(net.state_dict(), "net.pt") wrote
//
// Loading fills a module's parameters and buffers, and an optimiser's states and rates; what does not fit is an Error. A device
// that is named is where tensors are put; modules and optimisers stay where they are.
//
// serialize::OutputArchive and InputArchive are such files entry by entry: archive.write("epoch", 3); net->save(archive).
#include <concepts>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/nn/module.h"
#include "sinter/optim/optimizer.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

void save(const Tensor& tensor, const std::string& path);
void save(const Tensor& tensor, std::ostream& out);
void load(Tensor& tensor, const std::string& path, const std::optional<Device>& device = {});
void load(Tensor& tensor, std::istream& in, const std::optional<Device>& device = {});

void save(const TensorList& tensors, const std::string& path);
void save(const TensorList& tensors, std::ostream& out);
void load(TensorList& tensors, const std::string& path, const std::optional<Device>& device = {});
void load(TensorList& tensors, std::istream& in, const std::optional<Device>& device = {});

void save(const nn::Module& module, const std::string& path);
void save(const nn::Module& module, std::ostream& out);
void load(nn::Module& module, const std::string& path, const std::optional<Device>& = {});
void load(nn::Module& module, std::istream& in, const std::optional<Device>& = {});

void save(const optim::Optimizer& optimizer, const std::string& path);
void save(const optim::Optimizer& optimizer, std::ostream& out);
void load(optim::Optimizer& optimizer, const std::string& path, const std::optional<Device>& = {});
void load(optim::Optimizer& optimizer, std::istream& in, const std::optional<Device>& = {});

// Handles on modules.
template <class Handle, class Place>
requires requires(const Handle& handle) {
  { *handle } -> std::convertible_to<const nn::Module&>;
}
void save(const Handle& module, Place&& place) { save(static_cast<const nn::Module&>(*module), place); }
template <class Handle, class Place>
requires requires(const Handle& handle) {
  { *handle } -> std::convertible_to<nn::Module&>;
}
void load(const Handle& module, Place&& place, const std::optional<Device>& device = {}) {
  load(static_cast<nn::Module&>(*module), place, device);
}

namespace serialize {

struct Entries;

// Entries by name: tensors, plain values and archives inside.
class OutputArchive {
 public:
  OutputArchive();
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, const OutputArchive& nested);
  void write(const std::string& key, const std::string& value);
  void write(const std::string& key, double value);
  template <std::integral T>
  void write(const std::string& key, T value) {
    write_int(key, int64_t(value));
  }
  // The entries of a state dict; also module.save(archive), optimizer.save(archive).
  void write(const nn::Module& module);
  void write(const optim::Optimizer& optimizer);
  void save_to(const std::string& path) const;
  void save_to(std::ostream& out) const;

 private:
  void write_int(const std::string& key, int64_t value);
  std::shared_ptr<Entries> entries_;
};

// What is there under a name; an Error when there is nothing, or something of another kind. try_read() gives false instead where
// there is no such name.
class InputArchive {
 public:
  InputArchive();
  void load_from(const std::string& path, const std::optional<Device>& device = {});
  void load_from(std::istream& in, const std::optional<Device>& device = {});
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, InputArchive& nested);
  void read(const std::string& key, std::string& value);
  void read(const std::string& key, double& value);
  void read(const std::string& key, bool& value);
  template <std::integral T>
  void read(const std::string& key, T& value) {
    int64_t number = 0;
    read_int(key, number);
    value = T(number);
  }
  template <class T>
  bool try_read(const std::string& key, T& value, bool = false) {
    if (!contains(key)) return false;
    read(key, value);
    return true;
  }
  // Also module.load(archive), optimizer.load(archive).
  void read(nn::Module& module);
  void read(optim::Optimizer& optimizer);
  bool contains(const std::string& key) const;
  std::vector<std::string> keys() const;

 private:
  void read_int(const std::string& key, int64_t& value);
  std::shared_ptr<const Entries> entries_;
  std::optional<Device> device_;
};

}  // namespace serialize
}  // namespace SINTER_API
