#!/usr/bin/env python3
"""Writes the node cases of the onnx wheel, which say what ONNX's operators do, as one file.

  python3 tools/record_onnx_cases.py all.pb                       # every case, for build/bin/onnx_cases
  python3 tools/record_onnx_cases.py tests/data/onnx/cases.pb --one-of 12 --bytes 4000   # the part that is tested

Needs onnx. The file is a protobuf message of repeated cases (field 1): name 1, model 2, inputs 3, outputs 4, relative and
absolute tolerance 5 and 6. An input or output is a message of its own: a TensorProto (field 1), or the name of what else it is
(field 2). Which cases are taken is drawn from a seed.
"""
import argparse
import random
import struct

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def real(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def value(held):
    if isinstance(held, onnx.TensorProto):
        return field(1, held.SerializeToString())
    if isinstance(held, numpy.ndarray | numpy.generic):
        return field(1, numpy_helper.from_array(numpy.asarray(held)).SerializeToString())
    return field(2, type(held).__name__.encode())


def case_bytes(case):
    out = field(1, case.name.encode()) + field(2, case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    out += b"".join(field(3, value(each)) for each in inputs)
    out += b"".join(field(4, value(each)) for each in outputs)
    return out + real(5, case.rtol) + real(6, case.atol)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--one-of", type=int, default=1, help="take one of so many cases")
    parser.add_argument("--bytes", type=int, help="leave out larger cases")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    numpy.random.seed(arguments.seed)
    draw = random.Random(arguments.seed)
    taken = 0
    with open(arguments.file, "wb") as out:
        for case in sorted(load_model_tests(kind="node"), key=lambda case: case.name):
            if case.data_sets is None or not case.data_sets:
                continue
            if draw.randrange(arguments.one_of) != 0:
                continue
            content = case_bytes(case)
            if arguments.bytes and len(content) > arguments.bytes:
                continue
            out.write(field(1, content))
            taken += 1
    print(f"{taken} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
