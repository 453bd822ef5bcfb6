#!/usr/bin/env python3
"""Records what LibTorch gives for the lines of tests/idioms: tests/data/recorded/idioms.safetensors.

    python3 tools/record_idioms.py [BUILD_FOLDER]

Run it after changing those lines, with a Python that has PyTorch, whose headers and libraries the very sources of the tests are
compiled with: a line that LibTorch does not take is no idiom. Needs g++ and GoogleTest; takes some minutes. Only sources that
have changed are compiled again.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch.utils import cpp_extension

from record_ops import recorded_path, save_safetensors

ROOT = Path(__file__).resolve().parent.parent
DTYPES = {
    "Bool": torch.bool, "Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32, "Long": torch.int64,
    "Half": torch.float16, "BFloat16": torch.bfloat16, "Float": torch.float32, "Double": torch.float64,
}


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def is_newer(file, *than):
    return file.exists() and all(file.stat().st_mtime > other.stat().st_mtime for other in than)


def compiled(build):
    """A program of all the sources, whose headers are LibTorch's."""
    flags = ["-std=c++20", "-O0", "-w", "-DIDIOMS_OF_LIBTORCH", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
             "-I", ROOT, *[f"-isystem{path}" for path in cpp_extension.include_paths()]]
    header = build / "precompiled.h"
    if not header.with_suffix(".h.gch").exists():
        header.write_text("#include <torch/torch.h>\n#include <gtest/gtest.h>\n")
        run("g++", *flags, "-x", "c++-header", header, "-o", header.with_suffix(".h.gch"))
    objects, failed, shared = [], [], ROOT / "tests" / "idioms" / "idioms.h"
    for source in sorted(shared.parent.glob("*.cpp")):
        objects.append(build / (source.stem + ".o"))
        if not is_newer(objects[-1], source, shared):
            command = ["g++", *flags, "-include", header, "-c", source, "-o", objects[-1]]
            if subprocess.run([str(word) for word in command]).returncode != 0:
                failed.append(source.name)
    if failed:
        sys.exit(f"LibTorch does not take lines of {', '.join(failed)}")
    program, libraries = build / "idioms", cpp_extension.library_paths()[0]
    run("g++", *objects, "-o", program, "-L", libraries, f"-Wl,-rpath,{libraries}", "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu",
        "-lc10", "-lgtest_main", "-lgtest", "-lpthread")
    return program


def results(path):
    """The tensors of a file that tests/idioms/idioms.cpp has written."""
    tensors, data, at = {}, path.read_bytes(), 0
    while at < len(data):
        end = data.index(b"\n", at)
        key, dtype, *sizes = data[at:end].decode().split(" ")
        empty = torch.empty([int(size) for size in sizes], dtype=DTYPES[dtype])
        at = end + 1 + empty.nbytes
        tensors[key] = torch.frombuffer(bytearray(data[end + 1:at]), dtype=empty.dtype).reshape(empty.shape) if empty.nbytes else empty
    return tensors


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else os.path.join(tempfile.gettempdir(), "record_idioms")).resolve()
    build.mkdir(parents=True, exist_ok=True)
    program, output = compiled(build), build / "results"
    run(program, "--gtest_brief=1", env={**os.environ, "IDIOMS_OUTPUT": str(output)})
    tensors = results(output)
    count = len({key.rsplit("#", 1)[0] for key in tensors})
    save_safetensors(recorded_path("idioms.safetensors"), tensors, {"idioms": str(count)})
    print(f"{count} idioms with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
