"""Records PyTorch's schemas of the functions that exported programs may call: tests/data/recorded/aten_schemas.txt.

  build/tests/test_interop --gtest_filter=AtenTable.ListsItsNames | python3 tools/record_aten_schemas.py

Reads the names of the table's functions, one a line, "aten.add.Tensor", and writes what PyTorch says of each.
"""
import os
import sys

import torch

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/data/recorded/aten_schemas.txt")


def main():
    schemas = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            schemas[f"aten.{schema.name[6:]}.{schema.overload_name or 'default'}"] = str(schema)[6:]
    names = [line.strip() for line in sys.stdin if line.startswith("aten.")]
    with open(PATH, "w") as file:
        file.writelines(schemas[name] + "\n" for name in sorted(names))


if __name__ == "__main__":
    main()
