#include "python/sinter/exchange.h"

#include <utility>

namespace sinter_python {

namespace {

constexpr char kPlain[] = "dltensor", kVersioned[] = "dltensor_versioned";
constexpr char kUsedPlain[] = "used_dltensor", kUsedVersioned[] = "used_dltensor_versioned";
constexpr char kExchange[] = "dlpack_exchange_api";

const Exchange* find_exchange(PyTypeObject* type) {
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  if (!capsule) {
    PyErr_Clear();
    return nullptr;
  }
  auto* found = static_cast<const Exchange*>(PyCapsule_GetPointer(capsule, kExchange));
  Py_DECREF(capsule);
  if (!found) PyErr_Clear();
  while (found && found->version.major > 1) found = found->previous;
  return found && found->lend && found->to_object && found->current_work_stream ? found : nullptr;
}

}  // namespace

const Exchange* exchange_of(PyTypeObject* type) {
  struct Known {
    PyTypeObject* type;
    const Exchange* exchange;
  };
  // A call's tensors are of one or two classes. Classes are kept, so that no other can come to lie at the same address.
  static std::vector<Known> known;
  for (auto& entry : known)
    if (entry.type == type) return entry.exchange;
  const Exchange* found = find_exchange(type);
  Py_INCREF(type);
  known.push_back({type, found});
  return found;
}

Lent::Lent(Lent&& other) noexcept
    : tensor(other.tensor),
      exchange(other.exchange),
      is_taken_(std::exchange(other.is_taken_, false)),
      capsule_(std::exchange(other.capsule_, nullptr)) {}

// A capsule that nobody has consumed frees its tensor.
Lent::~Lent() { Py_XDECREF(capsule_); }

bool Lent::take(PyObject* object) {
  exchange = exchange_of(Py_TYPE(object));
  if (!exchange) return take_capsule(object);
  if (exchange->lend(object, &tensor) != 0) return false;
  return is_taken_ = true;
}

bool Lent::take_capsule(PyObject* object) {
  capsule_ = PyObject_CallMethod(object, "__dlpack__", nullptr);
  if (!capsule_) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "an input of the type %R is neither a number nor a tensor that speaks DLPack",
                   reinterpret_cast<PyObject*>(Py_TYPE(object)));
    }
    return false;
  }
  if (PyCapsule_IsValid(capsule_, kVersioned))
    tensor = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule_, kVersioned))->dl_tensor;
  else if (auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule_, kPlain)))
    tensor = managed->dl_tensor;
  else
    return false;
  return is_taken_ = true;
}

bool Example::read(PyObject* tuple) {
  int code, bits, device, number;
  PyObject *its_sizes, *its_strides;
  if (!PyArg_ParseTuple(tuple, "iiiiOO", &code, &bits, &device, &number, &its_sizes, &its_strides)) return false;
  for (auto [from, to] : {std::pair{its_sizes, &sizes}, {its_strides, &strides}}) {
    const Py_ssize_t count = PySequence_Size(from);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = PySequence_GetItem(from, i);
      if (!item) return false;
      to->push_back(PyLong_AsLongLong(item));
      Py_DECREF(item);
      if (PyErr_Occurred()) return false;
    }
  }
  tensor = {nullptr, {device, number},  int32_t(sizes.size()), {uint8_t(code), uint8_t(bits), 1}, sizes.data(),
            strides.data(), 0};
  return sizes.size() == strides.size();
}

namespace {

// What another library holds: a tensor that it frees with `inner`, if there is one, and an object that lives as long.
ManagedTensor* hold(const DLTensor& tensor, ManagedTensor* inner, PyObject* object) {
  struct Held {
    ManagedTensor managed;
    ManagedTensor* inner;
    PyObject* object;
  };
  Py_INCREF(object);
  auto* held = new Held{{sinter::dlpack::kDLPackVersion, nullptr, nullptr, 0, tensor}, inner, object};
  held->managed.manager_ctx = held;
  held->managed.deleter = [](ManagedTensor* self) {
    auto* held = static_cast<Held*>(self->manager_ctx);
    if (held->inner) held->inner->deleter(held->inner);
    if (Py_IsInitialized()) {
      PyGILState_STATE state = PyGILState_Ensure();
      Py_DECREF(held->object);
      PyGILState_Release(state);
    }
    delete held;
  };
  return &held->managed;
}

}  // namespace

ManagedTensor* keep_alive(ManagedTensor* tensor, PyObject* object) { return hold(tensor->dl_tensor, tensor, object); }

// --- sinter.Array

namespace {

struct Array {
  PyObject_HEAD
  ManagedTensor* tensor;
};

ManagedTensor* tensor_of(PyObject* object) { return reinterpret_cast<Array*>(object)->tensor; }

void destroy(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (auto* tensor = tensor_of(object)) tensor->deleter(tensor);
  PyObject_Free(object);
  Py_DECREF(type);
}

void free_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kVersioned)) return;  // consumed
  auto* tensor = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kVersioned));
  tensor->deleter(tensor);
}
void free_plain(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kPlain)) return;
  auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
  tensor->deleter(tensor);
}

// In the form before version 1, for those who do not ask for it.
PyObject* plain_capsule(ManagedTensor* kept) {
  auto* plain = new DLManagedTensor{kept->dl_tensor, kept, [](DLManagedTensor* self) {
                                      auto* kept = static_cast<ManagedTensor*>(self->manager_ctx);
                                      kept->deleter(kept);
                                      delete self;
                                    }};
  return PyCapsule_New(plain, kPlain, free_plain);
}

PyObject* dlpack(PyObject* object, PyObject*, PyObject* keywords) {
  PyObject* version = keywords ? PyDict_GetItemString(keywords, "max_version") : nullptr;
  long major = 0;
  if (version && version != Py_None) {
    PyObject* first = PySequence_GetItem(version, 0);
    if (!first) return nullptr;
    major = PyLong_AsLong(first);
    Py_DECREF(first);
  }
  ManagedTensor* kept = hold(tensor_of(object)->dl_tensor, nullptr, object);
  return major >= 1 ? PyCapsule_New(kept, kVersioned, free_versioned) : plain_capsule(kept);
}

PyObject* dlpack_device(PyObject* object, PyObject*) {
  auto& device = tensor_of(object)->dl_tensor.device;
  return Py_BuildValue("(ii)", int(device.device_type), int(device.device_id));
}

PyObject* shape(PyObject* object, void*) {
  auto& tensor = tensor_of(object)->dl_tensor;
  PyObject* out = PyTuple_New(tensor.ndim);
  for (int32_t d = 0; out && d < tensor.ndim; ++d) PyTuple_SetItem(out, d, PyLong_FromLongLong(tensor.shape[d]));
  return out;
}

PyMethodDef methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack)), METH_VARARGS | METH_KEYWORDS,
     "The tensor as a capsule."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "The type of its device, and which one."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef fields[] = {{"shape", shape, nullptr, "Its sizes.", nullptr}, {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, fields},
                       {0, nullptr}};
PyType_Spec spec = {"sinter.Array", sizeof(Array), 0, Py_TPFLAGS_DEFAULT, slots};
PyObject* the_array_type = nullptr;

}  // namespace

PyObject* array_type() {
  if (!the_array_type) the_array_type = PyType_FromSpec(&spec);
  Py_XINCREF(the_array_type);
  return the_array_type;
}

PyObject* make_array(ManagedTensor* tensor) {
  auto* out = PyObject_New(Array, reinterpret_cast<PyTypeObject*>(the_array_type));
  if (!out) {
    tensor->deleter(tensor);
    return nullptr;
  }
  out->tensor = tensor;
  return reinterpret_cast<PyObject*>(out);
}

}  // namespace sinter_python
