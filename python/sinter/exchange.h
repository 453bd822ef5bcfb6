#pragma once
// Tensors of other libraries in Python, by DLPack: lent for a call, and handed over.
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <cstdint>
#include <vector>

#include "sinter/tensor/dlpack_exchange.h"

namespace sinter_python {

using sinter::dlpack::DLManagedTensor;
using sinter::dlpack::DLTensor;
using ManagedTensor = sinter::dlpack::DLManagedTensorVersioned;
inline constexpr int32_t kCudaDevice = sinter::dlpack::kDLCUDA;

// How a library hands tensors over from C: the table behind its class's __dlpack_c_exchange_api__ (DLPack 1.3).
struct Exchange {
  sinter::dlpack::DLPackVersion version;
  Exchange* previous;
  int (*allocate)(DLTensor* prototype, ManagedTensor** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*from_object)(void* object, ManagedTensor** out);
  int (*to_object)(ManagedTensor* tensor, void** out);
  int (*lend)(void* object, DLTensor* out);
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out);
};

// That of a class; null where it has none.
const Exchange* exchange_of(PyTypeObject* type);

// The tensor of an object while this is alive; the object has to live as long.
class Lent {
 public:
  Lent() = default;
  Lent(Lent&& other) noexcept;
  Lent(const Lent&) = delete;
  ~Lent();

  // False with a Python error where the object is no tensor.
  bool take(PyObject* object);
  bool is_taken() const { return is_taken_; }

  DLTensor tensor = {};
  const Exchange* exchange = nullptr;  // of its library, where there is one

 private:
  bool take_capsule(PyObject* object);

  bool is_taken_ = false;
  PyObject* capsule_ = nullptr;
};

// The tensor that an example stands for, without memory.
struct Example {
  // (type code, bits, device type, device number, sizes, strides)
  bool read(PyObject* tuple);
  DLTensor tensor = {};
  std::vector<int64_t> sizes, strides;
};

// The same tensor, which keeps the object alive.
ManagedTensor* keep_alive(ManagedTensor* tensor, PyObject* object);

// sinter.Array: a tensor of Sinter's for libraries that take DLPack. Takes over the tensor.
PyObject* make_array(ManagedTensor* tensor);
PyObject* array_type();

}  // namespace sinter_python
