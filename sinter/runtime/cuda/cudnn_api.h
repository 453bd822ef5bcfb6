#pragma once
// cuDNN's backend interface, loaded at run time, and convolutions as graphs of it. For the .cpp files of the backend only,
// since it brings in cuDNN's own header; without that header it declares nothing and SINTER_HAS_CUDNN is 0.
#if !defined(SINTER_NO_CUDA) && __has_include(<cudnn.h>)
#define SINTER_HAS_CUDNN 1
#include <cudnn.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/base/dynamic_library.h"
#include "sinter/runtime/cuda/cudnn.h"

namespace sinter::runtime::dnn {

struct Library {
  std::optional<DynamicLibrary> file;
  std::string problem;
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnGetVersion) version = nullptr;
  decltype(&::cudnnGetErrorString) error_text = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;

  Library();
};

// Never unloaded: it keeps device memory of its own.
Library& library();

void dnn_check(cudnnStatus_t status, const char* what);

// A descriptor of the library's backend interface: made, given attributes, finalized, then read only.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    dnn_check(library().create_descriptor(type, &handle_), "making a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Descriptor() {
    if (handle_) library().destroy_descriptor(handle_);
  }
  cudnnBackendDescriptor_t handle() const { return handle_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const T* values) {
    dnn_check(library().set_attribute(handle_, name, type, count, values), "describing a convolution");
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& part) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, part.handle_);
  }
  cudnnStatus_t try_finalize() { return library().finalize(handle_); }
  void finalize() { dnn_check(try_finalize(), "describing a convolution"); }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

// What a graph's tensors are called, for those who bring their addresses.
enum Id : int64_t { kX = 1, kW, kY, kBias, kResidual, kFirstVirtual };

// What a way may assume of an address.
int64_t alignment(const void* pointer);

// The convolution and what follows it as a graph of the library's.
class Description {
 public:
  Description(cudnnHandle_t handle, const CudaConvolution& problem);
  const Descriptor& graph() const { return *graph_; }

 private:
  const Descriptor& keep(Descriptor part) { return parts_.emplace_back(std::move(part)); }
  const Descriptor& convolution_of(const CudaConvolution& p);
  void forward(const CudaConvolution& p);
  void gradient(const CudaConvolution& p);
  void pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b, const Descriptor& y);
  void add(Descriptor operation);

  std::vector<Descriptor> parts_;  // what the operations point to
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::optional<Descriptor> graph_;
};

}  // namespace sinter::runtime::dnn

#else
#define SINTER_HAS_CUDNN 0
#endif
