#!/usr/bin/env python3
"""Records what PyTorch gives for Fourier transforms, with gradients, in fft.safetensors.

    python3 tools/record_fft.py

The metadata lists the calls, one a line: the function and its options, which tests/ops/fft_recorded_test.cpp reads and makes as
well. Everything is computed in doubles on operands that singles can hold; the two parts of a complex tensor are a last dimension
of size 2, and its key ends in ".c".
"""
import zlib

import torch

from record_complex import put
from record_ops import recorded_path, save_safetensors

CALLS = []  # (function, options, shape, complex?)


def call(function, shape, complex_input, **options):
    CALLS.append((function, options, shape, complex_input))


# --- torch.fft
for name, kinds in {"fft": [0, 1], "ifft": [0, 1], "rfft": [0], "ihfft": [0], "irfft": [0, 1], "hfft": [1]}.items():
    for kind in kinds:
        for options in [{}, {"norm": "ortho"}, {"norm": "forward"}, {"norm": "backward", "dim": 0}]:
            call(name, [3, 6], kind, **options)
        for options in [{"n": 4}, {"n": 9, "dim": -2}, {"n": 1}, {"n": 7, "dim": 1, "norm": "ortho"}]:
            call(name, [5, 6, 2], kind, **options)
        call(name, [5], kind)
for name, kinds in {"fft": [0, 1], "ifft": [0, 1], "rfft": [0], "ihfft": [0], "irfft": [0, 1], "hfft": [1]}.items():
    for kind in kinds:
        call(name + "2", [4, 5], kind)
        call(name + "2", [2, 4, 3], kind, norm="ortho")
        call(name + "2", [3, 4, 2], kind, s=[5, 3], dim=[0, -2], norm="forward")
        call(name + "2", [4, 5], kind, s=[-1, 4])
        call(name + "n", [3, 4, 2], kind)
        call(name + "n", [3, 4, 2], kind, s=[6, 5])
        call(name + "n", [3, 4, 2], kind, dim=[1], norm="ortho")
        call(name + "n", [3, 4, 2], kind, s=[2, 5, -1], dim=[2, 0, 1], norm="forward")
for name in ["fftshift", "ifftshift"]:
    for kind in [0, 1]:
        call(name, [4, 5], kind)
        call(name, [4, 5], kind, dim=[-1])

# --- frames
FRAMES = [
    {"n_fft": 8},
    {"n_fft": 8, "window": 8},
    {"n_fft": 9, "hop_length": 2, "window": 9},
    {"n_fft": 8, "hop_length": 3, "window": 8, "normalized": True},
    {"n_fft": 10, "hop_length": 2, "win_length": 6, "window": 6},
    {"n_fft": 7, "hop_length": 2, "win_length": 5},
    {"n_fft": 8, "hop_length": 4, "window": 8, "onesided": False},
    {"n_fft": 8, "hop_length": 1, "window": 8, "center": False},
]
for options in FRAMES:
    for shape in [[20], [2, 23]]:
        call("stft", shape, 0, **options, return_complex=True)
    call("stft", [17], 1, **{k: v for k, v in options.items() if k != "onesided"})
    frequencies = options["n_fft"] if options.get("onesided") is False else options["n_fft"] // 2 + 1
    call("istft", [frequencies, 6], 1, **options)
    call("istft", [2, frequencies, 5], 1, **options, length=8)
    call("istft", [options["n_fft"], 5], 1, **{**options, "onesided": False}, return_complex=True)
for mode in ["constant", "replicate", "circular"]:
    call("stft", [2, 20], 0, n_fft=8, window=8, pad_mode=mode, return_complex=True)
call("stft", [20], 0, n_fft=8, window=8, return_complex=False)
call("istft", [5, 4], 1, n_fft=8, window=8, length=40)

# --- without operands
for name in ["fftfreq", "rfftfreq"]:
    for options in [{"n": 8}, {"n": 7}, {"n": 1}, {"n": 6, "d": 0.25}]:
        call(name, None, 0, **options)
for name in ["hann", "hamming", "blackman", "bartlett", "kaiser"]:
    for options in [{}, {"periodic": True}, {"periodic": False}]:
        for length in [1, 2, 7, 8]:
            call(name + "_window", None, 0, length=length, **options)
call("hamming_window", None, 0, length=8, periodic=True, alpha=0.6)
call("hamming_window", None, 0, length=8, periodic=False, alpha=0.6, beta=0.3)
call("kaiser_window", None, 0, length=9, periodic=False, beta=3.5)
call("kaiser_window", None, 0, length=8, periodic=True, beta=25.0)


def draw(seed, shape, is_complex):
    generator = torch.Generator().manual_seed(zlib.crc32(seed.encode()))
    parts = [torch.randn(shape, generator=generator).double() for _ in range(1 + is_complex)]
    return torch.complex(*parts) if is_complex else parts[0]


def text(value):
    if isinstance(value, list):
        return ",".join(map(str, value))
    return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)


def make(function, options, x, window):
    options = dict(options)
    if function.endswith("_window"):
        options.setdefault("periodic", True)
        return getattr(torch, function)(options.pop("length"), options.pop("periodic"), **options, dtype=torch.float64)
    if function.endswith("freq"):
        return getattr(torch.fft, function)(options.pop("n"), **options, dtype=torch.float64)
    if function.endswith("stft"):
        return getattr(torch, function)(x, **{**options, "window": window})
    return getattr(torch.fft, function)(x, **options)


def record(number, tensors):
    function, options, shape, is_complex = CALLS[number]
    operands = {}
    if shape is not None:
        operands["in"] = draw(f"{number}", shape, is_complex)
    if "window" in options:
        operands["window"] = draw(f"{number} window", [options["window"]], 0).abs() + 0.5
    for name, x in operands.items():
        put(tensors, f"{number}/{name}", x)
        x.requires_grad_()
    y = make(function, options, operands.get("in"), operands.get("window"))
    put(tensors, f"{number}/out", y)
    if not operands:
        return
    cotangent = draw(f"{number} cotangent", y.shape, y.is_complex())
    put(tensors, f"{number}/cotangent", cotangent)
    for name, grad in zip(operands, torch.autograd.grad(y, list(operands.values()), cotangent)):
        put(tensors, f"{number}/grad_{name}", grad)


def main():
    tensors = {}
    for number in range(len(CALLS)):
        record(number, tensors)
    lines = [" ".join([function] + [f"{k}={text(v)}" for k, v in options.items()]) for function, options, _, _ in CALLS]
    save_safetensors(recorded_path("fft.safetensors"), tensors, {"calls": "\n".join(lines)})
    print(f"{len(CALLS)} calls with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
