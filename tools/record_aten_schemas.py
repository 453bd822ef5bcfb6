"""Records PyTorch's schemas of the functions that exported programs may call: tests/data/recorded/aten_schemas.txt.

  python3 tools/record_aten_schemas.py

Reads the names from sinter/interop/aten and writes what PyTorch says of each.
"""
import pathlib
import re

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent


def names():
    for path in sorted((ROOT / "sinter/interop/aten").glob("*.cpp")):
        text = re.sub(r'"\s*\n\s*"', "", path.read_text())  # literals that go on in the next line
        yield from re.findall(r'\{"(\w+(?:\.\w+)?)\(', text)


def main():
    schemas = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            name = schema.name[6:] + (f".{schema.overload_name}" if schema.overload_name else "")
            schemas[name] = str(schema)[6:]
    with open(ROOT / "tests/data/recorded/aten_schemas.txt", "w") as file:
        file.writelines(schemas[name] + "\n" for name in sorted(names()))


if __name__ == "__main__":
    main()
