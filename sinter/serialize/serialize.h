#pragma once
// LibTorch's save(what, path) and load(what, path), of tensors, lists of them, modules and optimisers; in place of a path a stream.
//
//   save(net, "net.pt");                // in Python: net.load_state_dict(torch.load("net.pt"))
//   load(net, "net.pt");                // also what Python's torch.save(net.state_dict(), "net.pt") wrote
//
// Loading fills a module's parameters and buffers, and an optimiser's states and rates; what does not fit is an Error.
#include <concepts>
#include <iosfwd>
#include <memory>
#include <string>

#include "sinter/base/api.h"
#include "sinter/nn/module.h"
#include "sinter/optim/optimizer.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

void save(const Tensor& tensor, const std::string& path);
void save(const Tensor& tensor, std::ostream& out);
void load(Tensor& tensor, const std::string& path);
void load(Tensor& tensor, std::istream& in);

void save(const TensorList& tensors, const std::string& path);
void save(const TensorList& tensors, std::ostream& out);
void load(TensorList& tensors, const std::string& path);
void load(TensorList& tensors, std::istream& in);

void save(const nn::Module& module, const std::string& path);
void save(const nn::Module& module, std::ostream& out);
void load(nn::Module& module, const std::string& path);
void load(nn::Module& module, std::istream& in);

void save(const optim::Optimizer& optimizer, const std::string& path);
void save(const optim::Optimizer& optimizer, std::ostream& out);
void load(optim::Optimizer& optimizer, const std::string& path);
void load(optim::Optimizer& optimizer, std::istream& in);

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
void load(const Handle& module, Place&& place) { load(static_cast<nn::Module&>(*module), place); }

}  // namespace SINTER_API
