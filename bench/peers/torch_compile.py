"""The programs of bench/fusion.cpp in PyTorch, eager and torch.compile, on the CPU.

torch_compile.py [--json] [--rounds N] [--threads N] [PROGRAM ...]
torch_compile.py --serve    a line `PROGRAM SECONDS` on standard input times one round of each kind

Same names, shapes and arithmetic as there.
"""
import argparse
import json
import os

import torch
import torch.nn.functional as F

from answering import Latest, serve, timed, timed_calls
from torch_programs import (adamw, attention_block, cross_entropy, gelu_mlp, layer_norm, rms_norm_residual, rotary, softmax,
                            swiglu)

WIDTH, LAYERS = 256, 4


def pointwise(x, y):
    return (torch.relu(torch.sigmoid(x * 1.5 + y) - 0.25) * y,)


def transposed_add(x, y):
    return (x + y.transpose(0, 1),)


def gpt_parameters():
    out = []

    def weight(rows, columns):
        out.extend([torch.randn(rows, columns) * 0.05, torch.zeros(rows)])

    def norm():
        out.extend([torch.ones(WIDTH), torch.zeros(WIDTH)])

    for _ in range(LAYERS):
        norm()
        weight(3 * WIDTH, WIDTH)
        weight(WIDTH, WIDTH)
        norm()
        weight(4 * WIDTH, WIDTH)
        weight(WIDTH, 4 * WIDTH)
    return out


def gpt(x, *parameters):
    for at in range(0, len(parameters), 12):
        p = parameters[at : at + 12]
        (x,) = attention_block(x, *p[:6])
        h = F.gelu(F.linear(F.layer_norm(x, (WIDTH,), p[6], p[7]), p[8], p[9]), approximate="tanh")
        x = x + F.linear(h, p[10], p[11])
    return (x,)


# name -> (function, inputs, leaves of the gradients)
def rows(f, weights):
    inputs = [torch.randn(2048, 1024)] + [torch.randn(1024) for _ in range(weights)]
    return f, inputs, inputs


def mlp(n):
    inputs = [torch.randn(n, 1024), torch.randn(4096, 1024) * 0.03, torch.zeros(4096),
              torch.randn(1024, 4096) * 0.03, torch.zeros(1024)]
    return gelu_mlp, inputs, inputs


def make_cross_entropy():
    inputs = [torch.randn(1024, 8192), torch.randint(8192, (1024,))]
    return cross_entropy, inputs, inputs[:1]


def same(f, *inputs):
    return f, list(inputs), list(inputs)


def encoder_layer():
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, activation="gelu", batch_first=True).eval()
    x = torch.randn(2, 128, 256)
    return (lambda t: (layer(t),)), [x], list(layer.parameters()) + [x]


def bn_relu_conv():
    norm, conv = torch.nn.BatchNorm2d(64).eval(), torch.nn.Conv2d(64, 64, 3, padding=1, bias=False)
    return same(lambda t: (conv(torch.relu(norm(t))),), torch.randn(4, 64, 56, 56))


def square():
    return torch.randn(2048, 2048)


def swiglu_weights():
    return [torch.randn(2816, 1024) * 0.03, torch.randn(2816, 1024) * 0.03, torch.randn(1024, 2816) * 0.03]


PROGRAMS = {
    "softmax": lambda: rows(softmax, 0),
    "cross_entropy": make_cross_entropy,
    "layer_norm": lambda: rows(layer_norm, 2),
    "rms_norm_residual": lambda: same(rms_norm_residual, torch.randn(2048, 1024), torch.randn(2048, 1024),
                                      torch.randn(1024)),
    "gelu_mlp_1": lambda: mlp(1),
    "gelu_mlp_16": lambda: mlp(16),
    "gelu_mlp_256": lambda: mlp(256),
    "swiglu_64": lambda: same(swiglu, torch.randn(64, 1024), *swiglu_weights()),
    "rotary": lambda: same(rotary, torch.randn(2, 16, 512, 64), torch.randn(512, 64), torch.randn(512, 64)),
    "encoder_layer": encoder_layer,
    "bn_relu_conv": bn_relu_conv,
    "adamw_1m": lambda: same(adamw, torch.randn(1 << 20), torch.randn(1 << 20), torch.zeros(1 << 20),
                             torch.zeros(1 << 20)),
    "pointwise_6": lambda: same(pointwise, square(), square()),
    "transposed_add": lambda: same(transposed_add, square(), square()),
    "gpt_4_layers": lambda: same(gpt, torch.randn(1, 128, WIDTH), *gpt_parameters()),
}
TRAINED = ["softmax", "cross_entropy", "layer_norm", "rms_norm_residual", "gelu_mlp_256", "swiglu_64", "pointwise_6",
           "encoder_layer", "gpt_4_layers"]
NAMES = list(PROGRAMS) + [name + "_train" for name in TRAINED]


class Case:
    """A program on its data; `first` has the seconds of the first calls."""

    def __init__(self, name):
        torch.manual_seed(1)
        torch._dynamo.reset()
        train = name.endswith("_train")
        f, inputs, leaves = PROGRAMS[name.removesuffix("_train")]()
        if train:
            for leaf in leaves:
                leaf.requires_grad_()
            seed = torch.ones_like(f(*inputs)[0])

        def caller(program):
            def step():
                for leaf in leaves:
                    leaf.grad = None
                program(*inputs)[0].backward(seed)

            def call():
                with torch.no_grad():
                    program(*inputs)

            return step if train else call

        self.works = {"eager": caller(f), "compiled": caller(torch.compile(f))}
        self.first = {}
        for kind, work in self.works.items():
            self.first[kind] = timed(work)


def round_of(name, case, least):
    """The best calls of a round of at least that long."""
    out = {"program": name, "eager_first_s": case.first["eager"], "compiled_first_s": case.first["compiled"]}
    for kind, work in case.works.items():
        out[kind + "_s"] = min(timed_calls(work, least))
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.serve:
        latest = Latest(Case)
        return serve(lambda name, least: round_of(name, latest(name), float(least)))
    results = []
    for name in args.programs or NAMES:
        case = Case(name)
        best = round_of(name, case, 0.02)
        for _ in range(args.rounds - 1):
            again = round_of(name, case, 0.02)
            for key in ("eager_s", "compiled_s"):
                best[key] = min(best[key], again[key])
        results.append(best)
        if not args.json:
            print(f"{name:26}eager {best['eager_s'] * 1e6:10.1f} us   compiled {best['compiled_s'] * 1e6:10.1f} us   "
                  f"first call {best['compiled_first_s']:6.1f} s", flush=True)
    if args.json:
        print(json.dumps({"torch": torch.__version__, "threads": args.threads, "programs": results}, indent=1))


if __name__ == "__main__":
    main()
