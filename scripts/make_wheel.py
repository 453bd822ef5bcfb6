#!/usr/bin/env python3
"""Packs the Python package of a build tree as a wheel: make_wheel.py BUILD/python OUT VERSION. Needs nothing but Python."""
import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

SUMMARY = "A compiler for tensor programs: a backend of torch.compile, and a runner of exported PyTorch programs"


def c_library_of(module):
    """The oldest glibc that has the symbols of a shared library."""
    text = subprocess.run(["objdump", "-T", module], check=True, capture_output=True, text=True).stdout
    return max(tuple(map(int, v)) for v in re.findall(r"GLIBC_(\d+)\.(\d+)", text))


def stripped(library):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "--strip-unneeded", "-o", out.name, library], check=True)
        return pathlib.Path(out.name).read_bytes()


def contents(folder):
    """The package, what compiles in process where clang's libraries are, if it was built, and what runs NVRTC beside it."""
    for source in sorted(folder.glob("*.py")):
        yield f"sinter/{source.name}", source.read_bytes()
    for library in (folder / "_native.abi3.so", folder / "sinter" / "libsinter_clang.so", folder / "sinter" / "sinter-nvrtc"):
        if library.exists():
            yield "sinter/" + library.relative_to(folder).as_posix(), stripped(library)


def main():
    folder, out, version = pathlib.Path(sys.argv[1]) / "sinter", pathlib.Path(sys.argv[2]), sys.argv[3]
    major, minor = c_library_of(folder / "_native.abi3.so")
    tag = f"cp39-abi3-manylinux_{major}_{minor}_{platform.machine()}"
    info = f"sinter-{version}.dist-info"
    root = pathlib.Path(__file__).resolve().parent.parent
    files = list(contents(folder)) + [
        (f"{info}/METADATA", f"Metadata-Version: 2.1\nName: sinter\nVersion: {version}\nSummary: {SUMMARY}\n"
                             "Requires-Python: >=3.9\n".encode()),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()),
        (f"{info}/entry_points.txt", b"[torch_dynamo_backends]\nsinter = sinter.torch_backend:backend\n"),
        (f"{info}/licenses/LICENSE", (root / "LICENSE").read_bytes())]
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files) + f"{info}/RECORD,,\n"
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"sinter-{version}-{tag}.whl"
    for old in out.glob("sinter-*.whl"):
        old.unlink()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files + [(f"{info}/RECORD", record.encode())]:
            entry = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if data.startswith(b"\x7fELF") else 0o644) << 16
            archive.writestr(entry, data)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, glibc {major}.{minor}")


if __name__ == "__main__":
    main()
