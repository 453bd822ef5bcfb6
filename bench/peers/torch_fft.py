"""The cases of bench/fft.cpp in numpy and torch: torch_fft.py --threads N, asked by fft.py."""
import argparse
import re

import numpy as np
import torch

from answering import Latest, serve, timed_calls


class Case:
    def __init__(self, name):
        kind, dtype, n, lines = re.fullmatch(r"(\w+)/(\w+)/(\d+)x(\d+)", name).groups()
        n, lines = int(n), int(lines)
        real = np.float32 if dtype == "f32" else np.float64
        x = np.random.default_rng(0).standard_normal((lines, n)).astype(real)
        if kind == "c2c":
            x = x + 1j * x[:, ::-1]
            x = x.astype(np.result_type(real, np.complex64))
        t = torch.from_numpy(x)
        numpy_of, torch_of = (np.fft.rfft, torch.fft.rfft) if kind == "r2c" else (np.fft.fft, torch.fft.fft)
        out, torch_out = numpy_of(x), torch_of(t)
        # From numpy 2 on it computes in the operand's precision and takes a place for the result.
        assert out.dtype == np.result_type(real, np.complex64)
        self.works = {"numpy_s": lambda: numpy_of(x, out=out), "torch_s": lambda: torch_of(t, out=torch_out)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    latest = Latest(Case)
    serve(lambda name, least: {key: min(timed_calls(work, float(least))) for key, work in latest(name).works.items()})


if __name__ == "__main__":
    main()
