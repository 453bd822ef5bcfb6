// The Python module: programs of the C interface on tensors of any library that speaks DLPack. Stable ABI, Python 3.9 on.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <algorithm>
#include <string>
#include <vector>

#include "python/sinter/exchange.h"
#include "sinter/c/sinter.h"

namespace {

using namespace sinter_python;

PyObject* error_class = nullptr;  // sinter.Error

PyObject* raise_failure(SinterStatus status) {
  PyObject* type = status == SINTER_OUT_OF_MEMORY ? PyExc_MemoryError
                   : status == SINTER_INTERNAL    ? PyExc_RuntimeError
                                                  : error_class;
  PyObject* error = PyObject_CallFunction(type, "s", sinter_error());
  if (!error) return nullptr;
  PyObject* node = PyUnicode_FromString(sinter_error_node());
  if (node && type == error_class) PyObject_SetAttrString(error, "node", node);
  Py_XDECREF(node);
  PyErr_SetObject(type, error);
  Py_DECREF(error);
  return nullptr;
}

// While alive, other threads of Python run.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

struct Program {
  PyObject_HEAD
  SinterProgram* program;
  PyObject* constants;  // a tuple: tensors behind the inputs of each call
  PyObject* like;       // the class whose exchange makes results where no input tells; or null
  PyObject* wrap;       // makes a caller's tensor of an Array where its library has no exchange; or null
};

PyObject* text_of(const std::string& text) { return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size())); }

// A dictionary of texts as options.
struct Options {
  std::vector<std::string> texts;
  std::vector<SinterOption> list;

  bool read(PyObject* given) {
    if (!given || given == Py_None) return true;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    texts.reserve(2 * size_t(PyDict_Size(given)));
    while (PyDict_Next(given, &at, &key, &value)) {
      for (PyObject* part : {key, value}) {
        PyObject* bytes = PyUnicode_AsUTF8String(part);
        if (!bytes) return false;
        texts.emplace_back(PyBytes_AsString(bytes));
        Py_DECREF(bytes);
      }
    }
    for (size_t i = 0; i < texts.size(); i += 2) list.push_back({texts[i].c_str(), texts[i + 1].c_str()});
    return true;
  }
};

PyTypeObject* program_type = nullptr;

PyObject* make_program(SinterProgram* made) {
  auto* self = PyObject_New(Program, program_type);
  if (!self) {
    sinter_free(made);
    return nullptr;
  }
  self->program = made;
  self->constants = PyTuple_New(0);
  self->like = self->wrap = nullptr;
  return reinterpret_cast<PyObject*>(self);
}

// load(path, options) and read(json, options)
PyObject* open_program(PyObject* args, bool is_file) {
  const char* data;
  Py_ssize_t size;
  PyObject* given = nullptr;
  if (!PyArg_ParseTuple(args, "s#|O", &data, &size, &given)) return nullptr;
  Options options;
  if (!options.read(given)) return nullptr;
  SinterProgram* made = nullptr;
  SinterStatus status;
  {
    WithoutGil others;
    status = is_file ? sinter_load(data, options.list.data(), options.list.size(), &made)
                     : sinter_read(data, size_t(size), options.list.data(), options.list.size(), &made);
  }
  return status == SINTER_OK ? make_program(made) : raise_failure(status);
}
PyObject* load(PyObject*, PyObject* args) { return open_program(args, true); }
PyObject* read(PyObject*, PyObject* args) { return open_program(args, false); }

void destroy(PyObject* object) {
  auto* self = reinterpret_cast<Program*>(object);
  PyTypeObject* type = Py_TYPE(object);
  SinterProgram* program = self->program;
  Py_XDECREF(self->constants);
  Py_XDECREF(self->like);
  Py_XDECREF(self->wrap);
  PyObject_Free(object);
  Py_DECREF(type);
  WithoutGil others;
  sinter_free(program);
}

// --- a call

struct Call {
  std::vector<Lent> lent;
  std::vector<SinterValue> inputs, results;
  std::vector<PyObject*> objects;  // borrowed
};

bool read_input(PyObject* object, Call& call) {
  SinterValue value{SINTER_NOTHING, -1, nullptr, 0, 0};
  call.lent.emplace_back();
  if (PyLong_Check(object)) {
    value.kind = SINTER_INTEGER;
    value.integer = PyLong_AsLongLong(object);
    if (value.integer == -1 && PyErr_Occurred()) return false;
  } else if (PyFloat_Check(object)) {
    value.kind = SINTER_REAL;
    value.real = PyFloat_AsDouble(object);
  } else {
    value.kind = SINTER_TENSOR;
    if (!call.lent.back().take(object)) return false;
    value.tensor = &call.lent.back().tensor;
  }
  call.inputs.push_back(value);
  call.objects.push_back(object);
  return true;
}

bool read_inputs(PyObject* list, Call& call) {
  const Py_ssize_t count = PyList_Size(list);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!read_input(PyList_GetItem(list, i), call)) return false;
  return true;
}

PyObject* result_of(Program* self, SinterValue& value, const Call& call, const Exchange* exchange) {
  switch (value.kind) {
    case SINTER_INTEGER:
      return PyLong_FromLongLong(value.integer);
    case SINTER_REAL:
      return PyFloat_FromDouble(value.real);
    case SINTER_NOTHING:
      Py_INCREF(Py_None);
      return Py_None;
    default:
      break;
  }
  if (!value.tensor) {
    PyObject* same = call.objects[size_t(value.input)];
    Py_INCREF(same);
    return same;
  }
  auto* managed = static_cast<ManagedTensor*>(value.tensor);
  value.tensor = nullptr;
  if (value.input >= 0) managed = keep_alive(managed, call.objects[size_t(value.input)]);
  if (exchange) {
    void* out = nullptr;
    if (exchange->to_object(managed, &out) == 0) return static_cast<PyObject*>(out);
    managed->deleter(managed);
    return nullptr;
  }
  PyObject* array = make_array(managed);
  if (!array || !self->wrap) return array;
  PyObject* wrapped = PyObject_CallFunctionObjArgs(self->wrap, array, nullptr);
  Py_DECREF(array);
  return wrapped;
}

const Exchange* exchange_for(Program* self, const Call& call) {
  for (auto& lent : call.lent)
    if (lent.exchange) return lent.exchange;
  for (auto& value : call.inputs)
    if (value.kind == SINTER_TENSOR) return nullptr;
  return self->like ? exchange_of(reinterpret_cast<PyTypeObject*>(self->like)) : nullptr;
}

// Where the caller's work on a GPU is queued; null on the CPU.
bool find_stream(const Call& call, const Exchange* exchange, void** stream) {
  *stream = nullptr;
  for (auto& lent : call.lent) {
    if (!lent.is_taken() || lent.tensor.device.device_type != kCudaDevice) continue;
    if (exchange && exchange->current_work_stream(kCudaDevice, lent.tensor.device.device_id, stream) != 0) return false;
    // The driver's name for the default stream.
    if (!*stream) *stream = reinterpret_cast<void*>(uintptr_t(1));
    return true;
  }
  return true;
}

PyObject* run(PyObject* object, PyObject* args, PyObject*) {
  auto* self = reinterpret_cast<Program*>(object);
  PyObject* list = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : nullptr;
  if (!list || !PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "a program is called with one list of inputs");
    return nullptr;
  }
  Call call;
  const size_t constants = size_t(PyTuple_Size(self->constants)), count = size_t(PyList_Size(list)) + constants;
  call.lent.reserve(count);  // inputs point into it
  call.inputs.reserve(count);
  call.objects.reserve(count);
  if (!read_inputs(list, call)) return nullptr;
  for (size_t i = 0; i < constants; ++i)
    if (!read_input(PyTuple_GetItem(self->constants, Py_ssize_t(i)), call)) return nullptr;
  const Exchange* exchange = exchange_for(self, call);
  void* stream;
  if (!find_stream(call, exchange, &stream)) return nullptr;
  call.results.resize(sinter_result_count(self->program));
  SinterStatus status;
  {
    WithoutGil others;
    status = sinter_run(self->program, call.inputs.data(), count, stream, call.results.data(), call.results.size());
  }
  if (status != SINTER_OK) return raise_failure(status);
  PyObject* out = PyTuple_New(Py_ssize_t(call.results.size()));
  for (size_t i = 0; i < call.results.size(); ++i) {
    PyObject* result = out ? result_of(self, call.results[i], call, exchange) : nullptr;
    if (result)
      PyTuple_SetItem(out, Py_ssize_t(i), result);
    else
      Py_CLEAR(out);
    if (!out && call.results[i].tensor) {
      auto* managed = static_cast<ManagedTensor*>(call.results[i].tensor);
      managed->deleter(managed);
    }
  }
  return out;
}

// prepare([(kind code, bits, device type, device number, sizes, strides) | number, …])
PyObject* prepare(PyObject* object, PyObject* args) {
  auto* self = reinterpret_cast<Program*>(object);
  PyObject* list;
  if (!PyArg_ParseTuple(args, "O", &list) || !PyList_Check(list)) return nullptr;
  std::vector<Example> examples(size_t(PyList_Size(list)));
  std::vector<SinterValue> inputs;
  for (size_t i = 0; i < examples.size(); ++i) {
    PyObject* item = PyList_GetItem(list, Py_ssize_t(i));
    SinterValue value{SINTER_TENSOR, -1, nullptr, 0, 0};
    if (PyLong_Check(item)) {
      value.kind = SINTER_INTEGER;
      value.integer = PyLong_AsLongLong(item);
    } else if (PyFloat_Check(item)) {
      value.kind = SINTER_REAL;
      value.real = PyFloat_AsDouble(item);
    } else {
      if (!examples[i].read(item)) return nullptr;
      value.tensor = &examples[i].tensor;
    }
    inputs.push_back(value);
  }
  SinterStatus status;
  {
    WithoutGil others;
    status = sinter_prepare(self->program, inputs.data(), inputs.size());
  }
  if (status != SINTER_OK) return raise_failure(status);
  Py_RETURN_NONE;
}

// bind(constants, like, wrap)
PyObject* bind(PyObject* object, PyObject* args) {
  auto* self = reinterpret_cast<Program*>(object);
  PyObject *constants, *like, *wrap;
  if (!PyArg_ParseTuple(args, "OOO", &constants, &like, &wrap)) return nullptr;
  PyObject* tuple = PySequence_Tuple(constants);
  if (!tuple) return nullptr;
  auto put = [](PyObject*& place, PyObject* value) {
    if (value == Py_None) value = nullptr;
    Py_XINCREF(value);
    Py_XDECREF(place);
    place = value;
  };
  Py_XDECREF(self->constants);
  self->constants = tuple;
  put(self->like, like);
  put(self->wrap, wrap);
  Py_RETURN_NONE;
}

PyObject* input_names(PyObject* object, void*) {
  auto* self = reinterpret_cast<Program*>(object);
  const size_t count = sinter_input_count(self->program);
  PyObject* out = PyList_New(Py_ssize_t(count));
  for (size_t i = 0; out && i < count; ++i)
    PyList_SetItem(out, Py_ssize_t(i), text_of(sinter_input_name(self->program, i)));
  return out;
}

// --- the module

PyObject* takes(PyObject*, PyObject* name) {
  PyObject* bytes = PyUnicode_AsUTF8String(name);
  if (!bytes) return nullptr;
  const bool out = sinter_takes(PyBytes_AsString(bytes));
  Py_DECREF(bytes);
  return PyBool_FromLong(out);
}
PyObject* takes_dtype(PyObject*, PyObject* code) { return PyBool_FromLong(sinter_takes_dtype(PyLong_AsLongLong(code))); }
PyObject* set_threads(PyObject*, PyObject* count) {
  const SinterStatus status = sinter_set_threads(int(PyLong_AsLong(count)));
  if (status != SINTER_OK) return raise_failure(status);
  Py_RETURN_NONE;
}
PyObject* seed(PyObject*, PyObject* given) {
  sinter_seed(PyLong_AsUnsignedLongLongMask(given));
  Py_RETURN_NONE;
}

PyMethodDef program_methods[] = {
    {"prepare", prepare, METH_VARARGS, "Compiles what calls like this need; nothing is run."},
    {"bind", bind, METH_VARARGS, "Constants behind the inputs, and how results become tensors."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef program_fields[] = {{"input_names", input_names, nullptr, "The names of a file's inputs.", nullptr},
                                {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot program_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                               {Py_tp_call, reinterpret_cast<void*>(run)},
                               {Py_tp_methods, program_methods},
                               {Py_tp_getset, program_fields},
                               {0, nullptr}};
PyType_Spec program_spec = {"sinter._native.Program", sizeof(Program), 0, Py_TPFLAGS_DEFAULT, program_slots};

PyMethodDef functions[] = {
    {"load", load, METH_VARARGS, "load(path, options): a file of torch.export.save."},
    {"read", read, METH_VARARGS, "read(json, options): a graph without weights."},
    {"takes", takes, METH_O, "Whether programs may call a function of ATen."},
    {"takes_dtype", takes_dtype, METH_O, "Whether there is a dtype, by its number in exported programs."},
    {"set_threads", set_threads, METH_O, "The threads that parallel loops use."},
    {"seed", seed, METH_O, "What random numbers depend on."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "sinter._native", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native() {
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  program_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&program_spec));
  error_class = PyErr_NewExceptionWithDoc("sinter.Error", "What was asked for cannot be done; `node` is the node of the program.",
                                          PyExc_RuntimeError, nullptr);
  PyObject* array = array_type();
  if (!program_type || !error_class || !array) return nullptr;
  Py_INCREF(error_class);
  PyModule_AddObject(module, "Error", error_class);
  PyModule_AddObject(module, "Program", reinterpret_cast<PyObject*>(program_type));
  PyModule_AddObject(module, "Array", array);
  PyModule_AddStringConstant(module, "__version__", sinter_version());
  return module;
}
