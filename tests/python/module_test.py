"""The Python package with nothing but the standard library: programs on tensors that ctypes makes."""
import ctypes
import math
import pathlib
import threading
import unittest

import sinter

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "pt2"


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Floats:
    """A tensor of f32 that speaks DLPack."""

    def __init__(self, shape, values):
        self.shape = shape
        self.memory = (ctypes.c_float * len(values))(*values)
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        tensor = DLTensor(ctypes.addressof(self.memory), 1, 0, len(shape), 2, 32, 1, self.sizes, None, 0)
        self.managed = DLManagedTensor(tensor, None, None)

    def __dlpack__(self, **_):
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


def values_of(array):
    capsule = array.__dlpack__()  # which owns it
    tensor = DLManagedTensor.from_address(pointer_of(capsule, b"dltensor")).tensor
    count = math.prod(tensor.shape[d] for d in range(tensor.ndim))
    return list((ctypes.c_float * count).from_address(tensor.data + tensor.byte_offset))


class ModuleTest(unittest.TestCase):
    def setUp(self):
        self.program = sinter.load(DATA / "mlp.pt2")
        with open(DATA / "mlp.safetensors", "rb") as file:
            self.recorded = read_safetensors(file.read())

    def test_results_are_those_of_pytorch(self):
        shape, values = self.recorded["input.0"]
        wanted_shape, wanted = self.recorded["output.0"]
        result = self.program(Floats(shape, values))
        self.assertEqual(result.shape, tuple(wanted_shape))
        self.assertEqual(result.__dlpack_device__(), (1, 0))
        for have, want in zip(values_of(result), wanted):
            self.assertAlmostEqual(have, want, delta=2e-5)

    def test_inputs_by_name(self):
        shape, values = self.recorded["input.0"]
        (name,) = self.program.input_names
        self.assertEqual(values_of(self.program(**{name: Floats(shape, values)})), values_of(self.program(Floats(shape, values))))
        with self.assertRaisesRegex(TypeError, "missing"):
            self.program()
        with self.assertRaisesRegex(TypeError, "no input 'nothing'"):
            self.program(Floats(shape, values), nothing=1)

    def test_a_result_outlives_what_made_it(self):
        shape, values = self.recorded["input.0"]
        capsule = sinter.load(DATA / "mlp.pt2")(Floats(shape, values)).__dlpack__(max_version=(1, 0))
        self.assertTrue(pointer_of(capsule, b"dltensor_versioned"))

    def test_many_threads(self):
        shape, values = self.recorded["input.0"]
        wanted = values_of(self.program(Floats(shape, values)))
        results = []
        run = lambda: results.extend(values_of(self.program(Floats(shape, values))) == wanted for _ in range(20))
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 80)

    def test_errors(self):
        with self.assertRaisesRegex(sinter.Error, "nowhere.pt2"):
            sinter.load("nowhere.pt2")
        with self.assertRaisesRegex(sinter.Error, "fastest"):
            sinter.load(DATA / "mlp.pt2", mode="fastest")
        with self.assertRaisesRegex(sinter.Error, "exported for"):
            self.program(Floats([1], [0.0]))
        with self.assertRaisesRegex(TypeError, "DLPack"):
            self.program("a text")


def read_safetensors(data):
    import json
    import struct
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    out = {}
    for name, entry in header.items():
        begin, end = entry.get("data_offsets", (0, 0))
        if entry.get("dtype") == "F32":
            out[name] = entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end]))
    return out


if __name__ == "__main__":
    unittest.main()
