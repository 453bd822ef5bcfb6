"""The patterns and models of the peer suite in PyTorch: eager, torch.compile default and max-autotune, on the CPU.

torch_suite.py --serve --models build/bench/models --threads N [--no-max-autotune | --only-eager]

A line `ENTRY FOLDER SECONDS` on standard input answers with the times of one round. The first one of an entry writes
the folder that bench/models reads: inputs, weights, the results of eager mode, the checkpoint of a model. Sizes are
here alone; the arithmetic of a pattern is in torch_programs.py and, by the same name, in bench/support/programs.cpp.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch._inductor.utils import fresh_cache

import torch_programs
from answering import Latest, serve, timed_calls
from torch_models import Model, draw, random_llama, relative_error, transformers_model

CACHE_LENGTH, POSITION = 1024, 512
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 4e-2}


# --- patterns: their data

class Pattern(nn.Module):
    """Its weights are parameters, so that max-autotune may freeze them."""

    def __init__(self, function, weights):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(w, requires_grad=False) for w in weights])
        self.function = function

    def forward(self, *x):
        return self.function(*x, *self.weights)


def randn(*sizes, scale=1.0):
    return torch.randn(*sizes) * scale


def linear_weights(*sizes, bias=True):
    out = []
    for rows, columns in sizes:
        out.append(randn(rows, columns, scale=columns**-0.5))
        out += [randn(rows, scale=0.1)] if bias else []
    return out


def norm_weights(width):
    return [1 + randn(width, scale=0.1), randn(width, scale=0.1)]


def rotary_case(batch, length):
    angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, 64, 2) / 64)).repeat(1, 2)
    return [randn(batch, 32, length, 64)], [angles.cos(), angles.sin()]


def attention_case(batch, length, width):
    return [randn(batch, length, width)], norm_weights(width) + linear_weights((3 * width, width), (width, width))


def conv_case(batch, size):
    weights = [randn(64, scale=0.1), 0.5 + torch.rand(64)] + norm_weights(64) + [randn(64, 64, 3, 3, scale=0.04)]
    return [randn(batch, 64, size, size)], weights


def adamw_case(n):
    return [randn(n), randn(n), randn(n, scale=0.1), torch.rand(n)], []


# a function of torch_programs -> (bound and data of the size that second-level caches hold, the same beyond all caches)
MEMORY, GEMM = "memory", "gemm"
PATTERNS = {
    "layer_norm": (MEMORY, lambda: ([randn(128, 768)], norm_weights(768)),
                   MEMORY, lambda: ([randn(16384, 1024)], norm_weights(1024))),
    "rms_norm_residual": (MEMORY, lambda: ([randn(64, 768), randn(64, 768)], norm_weights(768)[:1]),
                          MEMORY, lambda: ([randn(16384, 1024), randn(16384, 1024)], norm_weights(1024)[:1])),
    "softmax": (MEMORY, lambda: ([randn(128, 768)], []), MEMORY, lambda: ([randn(16384, 1024)], [])),
    "gelu_mlp": (GEMM, lambda: ([randn(32, 192)], linear_weights((768, 192), (192, 768))),
                 MEMORY, lambda: ([randn(4, 2048)], linear_weights((8192, 2048), (2048, 8192)))),
    "swiglu": (GEMM, lambda: ([randn(32, 192)], linear_weights((512, 192), (512, 192), (192, 512), bias=False)),
               MEMORY,
               lambda: ([randn(4, 2048)], linear_weights((5632, 2048), (5632, 2048), (2048, 5632), bias=False))),
    "rotary": (MEMORY, lambda: rotary_case(1, 32), MEMORY, lambda: rotary_case(8, 1024)),
    "attention_block": (GEMM, lambda: attention_case(1, 64, 256), GEMM, lambda: attention_case(8, 512, 768)),
    "bn_relu_conv": (GEMM, lambda: conv_case(1, 28), GEMM, lambda: conv_case(8, 112)),
    "adamw": (MEMORY, lambda: adamw_case(1 << 15), MEMORY, lambda: adamw_case(1 << 24)),
    "cross_entropy": (MEMORY, lambda: ([randn(64, 2048), torch.randint(2048, (64,))], []),
                      MEMORY, lambda: ([randn(1024, 32000), torch.randint(32000, (1024,))], [])),
}


# --- models: entry -> the program of bench/models, the configuration it names, dtype, arguments

def ids(batch):
    return lambda: [torch.randint(1000, 30000, (batch, 128))]


def image():
    return [randn(1, 3, 224, 224)]


MODELS = {
    "gpt2_small_1x128": ("causal_lm", "gpt2-small", torch.float32, ids(1)),
    "bert_base_1x128": ("text_encoder", "bert-base", torch.float32, ids(1)),
    "bert_base_8x128": ("text_encoder", "bert-base", torch.float32, ids(8)),
    "vit_b_1": ("image_classifier", "vit-b", torch.float32, image),
    "resnet_50_1": ("image_classifier", "resnet-50", torch.float32, image),
    "llama_125m_decode_f32": ("decode", "llama-125m", torch.float32, None),
    "llama_125m_decode_bf16": ("decode", "llama-125m", torch.bfloat16, None),
    "llama_1b_decode_f32": ("decode", "llama-1b", torch.float32, None),
    "llama_1b_decode_bf16": ("decode", "llama-1b", torch.bfloat16, None),
}


def checkpoint(text, folder, save):
    """What `save` writes, and config.json; where the folder has them already, they are the same."""
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        save()
        (folder / "config.json").write_text(text)


def make_llama(config, text, dtype, folder):
    """Weights are those of bf16 in both types, so that one checkpoint serves both."""
    model = random_llama(config)
    checkpoint(text, folder, lambda: save_file(model.state_dict(), folder / "model.safetensors"))
    cache = model.make_cache(CACHE_LENGTH, torch.zeros, dtype=dtype)
    for t in cache:
        t[:, :, :POSITION].normal_()
    return model.to(dtype), [torch.tensor([[17]]), torch.tensor([POSITION])] + cache


def make_transformer(config, text, folder, arguments):
    model = transformers_model(config).eval()
    if config["architectures"][0] != "ResNetForImageClassification":
        draw(model)
    # Its own way of saving, which gives parameters the names that checkpoints have.
    checkpoint(text, folder, lambda: model.save_pretrained(folder))
    return Model(model), arguments()


# --- an entry with its data, in all kinds

class Case:
    def __init__(self, entry, folder, args):
        torch.manual_seed(1)
        torch._dynamo.reset()
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights, dtype = [], torch.float32
        if entry in MODELS:
            program, name, dtype, arguments = MODELS[entry]
            text = subprocess.run([args.models, "--config", name], capture_output=True, text=True, check=True).stdout
            shared = folder.parent / name
            if program == "decode":
                module, inputs = make_llama(json.loads(text), text, dtype, shared)
            else:
                module, inputs = make_transformer(json.loads(text), text, shared, arguments)
            (folder / "model").symlink_to(shared)
            self.bound = MEMORY if program == "decode" else GEMM
        else:
            program, _, size = entry.rpartition("_")
            self.bound, make = PATTERNS[program][:2] if size == "l2" else PATTERNS[program][2:]
            inputs, weights = make()
            module = Pattern(getattr(torch_programs, program), weights)
        module = module.eval().requires_grad_(False)
        tensors = {f"x{i}": t for i, t in enumerate(inputs)} | {f"w{i}": t for i, t in enumerate(weights)}
        # The same for both: torch's own steps in bf16 are 0.025 to 0.031 from f32.
        self.tolerance = TOLERANCE[dtype]
        facts = {"program": program, "tolerance": TOLERANCE[dtype], "dtype": "bf16" if dtype == torch.bfloat16 else "f32"}
        save_file(tensors, folder / "inputs.safetensors", {key: str(value) for key, value in facts.items()})
        self.works, self.first, self.error = {}, {}, {}
        # The reference is eager arithmetic in f32 on the very same values.
        exact = [t.float() if t.dtype == dtype else t for t in inputs]
        self.expected = [t.clone() for t in module.float()(*(t.clone() for t in exact))]
        module.to(dtype)
        save_file({f"y{i}": t.contiguous() for i, t in enumerate(self.expected)}, folder / "expected.safetensors")
        self.add("eager", module, inputs)
        if not args.only_eager:
            with fresh_cache():
                self.add("default", torch.compile(module), inputs)
        if args.max_autotune and not args.only_eager:
            # Frozen weights are what its templates for products ask for.
            with fresh_cache(), torch._inductor.config.patch(freezing=True):
                self.add("max-autotune", torch.compile(module, mode="max-autotune"), inputs)
        self.expected = None

    def add(self, kind, program, inputs):
        """Every kind has its own copy of the arguments, since programs may write them."""
        own = [t.clone() for t in inputs]
        start = time.perf_counter()
        got = program(*own)
        self.first[kind] = time.perf_counter() - start
        self.error[kind] = relative_error(got, self.expected)
        self.works[kind] = lambda: program(*own)


def serve_entries(args):
    # What the first compile in a process loads and builds is no part of an entry's.
    if not args.only_eager:
        torch.compile(lambda x: x * 2 + 1)(torch.ones(17))
    latest = Latest(lambda entry, folder: Case(entry, folder, args))

    def answer(entry, folder, least):
        case = latest(entry, folder)
        rounds = {kind: statistics.median(timed_calls(work, float(least))) for kind, work in case.works.items()}
        return {"bound": case.bound, "first_s": case.first, "error": case.error, "round_s": rounds,
                "wrong": {kind: not error < case.tolerance for kind, error in case.error.items()}}

    serve(answer)


ENTRIES = [f"{name}_{size}" for name in PATTERNS for size in ("l2", "memory")] + list(MODELS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--models")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-max-autotune", dest="max_autotune", action="store_false")
    parser.add_argument("--only-eager", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(ENTRIES))
        return
    torch.set_num_threads(args.threads)
    with torch.no_grad():
        serve_entries(args)


if __name__ == "__main__":
    main()
