#pragma once
// What the files of the recorder share.
#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/capture/recorder.h"

namespace sinter::capture {

// The line of the user's call under way; empty when there is none.
inline std::string user_line() {
  auto* where = UserPosition::current();
  return where ? to_string(*where) : std::string();
}

inline Type type_of(const Tensor& eager) {
  return {.dtype = eager.dtype(), .shape = Shape(std::span<const int64_t>(eager.impl().sizes)), .device = eager.device()};
}

inline bool same_geometry(const TensorImpl& a, const TensorImpl& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides &&
         a.dtype == b.dtype;
}

inline Handle& handle_of(const Tensor& tensor) {
  auto* handle = dynamic_cast<Handle*>(tensor.impl().traced.get());
  check(handle != nullptr, "a tensor of one capture is used in another; return it from the captured function instead");
  return *handle;
}

// Whether it is typed as a number: an argument of the function, or one that the host computes.
inline bool is_weak(const Tensor& tensor) {
  return tensor.is_traced() && !handle_of(tensor).pinned() && handle_of(tensor).storage->type.weak;
}

inline void set_layout(TensorImpl& impl, const IntList& sizes, const IntList& strides, int64_t offset) {
  impl.sizes = sizes;
  impl.strides = strides;
  impl.offset = offset;
  impl.numel = 1;
  for (int64_t size : sizes) impl.numel *= size;
  impl.contiguous = impl.numel == 0;
  if (impl.contiguous) return;
  impl.contiguous = true;
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected) impl.contiguous = false;
    expected *= sizes[d];
  }
}

// The gradient that a leaf has by now. Its stand-in of the present segment has it, which need not be the storage's root: a
// write that records nothing makes another of that.
inline Tensor grad_so_far(const std::map<const TensorImpl*, Storage*>& leaf_roots, const Storage& storage) {
  for (auto& [stand_in, of] : leaf_roots)
    if (of == &storage) {
      auto* state = autograd::state_of(*stand_in);
      return state ? state->grad : storage.grad;
    }
  return storage.grad;
}

}  // namespace sinter::capture
