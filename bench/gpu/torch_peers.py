#!/usr/bin/env python3
"""PyTorch on the GPU, eager and torch.compile: the rows that Sinter is compared with.

torch_peers.py [--rows llama-1b-decode,bert-base] [--modes eager,reduce-overhead] [--repeats 200] [--out FILE.json]
               [--export FOLDER] [--device cpu --tiny]

bf16, batch 1, a prompt of 512 tokens, a static cache of 1024 positions; BERT-base with 8 x 128 tokens, ResNet-50 with
16 channels-last images. Weights are random: speed does not depend on them. Times are between device events around
single calls, after warm-up. First calls compile with empty caches. Errors are relative norms against eager arithmetic
in f32. --export writes each model's checkpoint, its inputs and the results of eager mode and of f32, for others to
compare with.

The Llama is that of peers/torch_models.py. Configurations are those of sinter/models/presets.cpp.
"""
import argparse
import gc
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Before torch is loaded: compiled code of an earlier run must not shorten the first calls.
CACHES = tempfile.TemporaryDirectory(prefix="sinter-peers-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = CACHES.name + "/inductor"
os.environ["TRITON_CACHE_DIR"] = CACHES.name + "/triton"

import torch

sys.path.insert(0, str(ROOT / "bench" / "peers"))
from torch_models import DTYPES, LlamaSteps, Model, compile_options, draw, relative_error, transformers_model

PROMPT = 512
MODES = ("eager", "default", "reduce-overhead", "max-autotune")
TINY = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 100, "hidden_sizes": [16, 16, 32, 32],
        "depths": [1, 1, 1, 1], "embedding_size": 8}


def configuration(name, tiny):
    text = (ROOT / "sinter" / "models" / "presets.cpp").read_text()
    found = re.search(r'\{"' + re.escape(name) + r'", R"\((.*?)\)"\}', text, re.S)
    config = json.loads(found.group(1))
    return {key: TINY.get(key, value) for key, value in config.items()} if tiny else config


class Forward:
    """A transformers model that serves one row."""

    def __init__(self, config, args, make):
        self.model = transformers_model(config).eval().requires_grad_(False)
        if config["architectures"][0] == "BertModel":
            draw(self.model)
        self.model.to(args.device, args.dtype)
        self.dtype, self.inputs = args.dtype, {"forward": (make(config, args),)}
        if self.inputs["forward"][0].dim() == 4:
            self.model.to(memory_format=torch.channels_last)
        self.program = Model(self.model).eval()

    def state(self):
        return self.model.state_dict()

    def exact(self, kind):
        (x,) = self.inputs[kind]
        self.model.float()
        out = self.program(x.float() if x.is_floating_point() else x)
        self.model.to(self.dtype)
        return out


def tokens(config, args):
    return torch.randint(config["vocab_size"], (2, 16) if args.tiny else (8, 128), device=args.device)


def llama(config, args):
    """A model that serves two rows."""
    return LlamaSteps(config, args.dtype, args.device, 8 if args.tiny else PROMPT)


def images(config, args):
    x = torch.randn((2, 3, 32, 32) if args.tiny else (16, 3, 224, 224), device=args.device)
    return x.to(args.dtype, memory_format=torch.channels_last)


# row -> configuration, kind of call, how the model is made
ROWS = {
    "llama-1b-decode": ("llama-1b", "decode", llama),
    "llama-1b-prefill": ("llama-1b", "prefill", llama),
    "llama-8b-decode": ("llama-8b", "decode", llama),
    "llama-8b-prefill": ("llama-8b", "prefill", llama),
    "bert-base": ("bert-base", "forward", lambda c, args: Forward(c, args, tokens)),
    "resnet-50": ("resnet-50", "forward", lambda c, args: Forward(c, args, images)),
}


class Clock:
    """Device events where there is a GPU."""

    def __init__(self, device):
        self.gpu = device.type == "cuda"

    def synchronize(self):
        if self.gpu:
            torch.cuda.synchronize()

    def once(self, work):
        if not self.gpu:
            start = time.perf_counter()
            work()
            return (time.perf_counter() - start) * 1e3
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    def first(self, work):
        start = time.perf_counter()
        out = work()
        self.synchronize()
        return time.perf_counter() - start, out


def statistics_of(times):
    ordered = sorted(times)
    return {"p50": statistics.median(ordered), "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
            "mean": statistics.fmean(ordered), "min": ordered[0], "count": len(ordered)}


def measure(model, kind, mode, expected, args):
    torch._dynamo.reset()
    gc.collect()
    clock, gpu = Clock(args.device), args.device.type == "cuda"
    if gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    program = model.program
    if mode != "eager":
        program = torch.compile(program, dynamic=False, **compile_options(mode))
    inputs = model.inputs[kind]

    def work():
        if mode in ("reduce-overhead", "max-autotune"):
            torch.compiler.cudagraph_mark_step_begin()
        return program(*inputs)

    first_s, out = clock.first(work)
    error = relative_error(out, expected) if expected is not None else None
    del out
    # Graphs are recorded in the second and third call.
    calls = [first_s] + [clock.first(work)[0] for _ in range(2)]
    for _ in range(args.warmup):
        work()
    clock.synchronize()
    times, start = [], time.perf_counter()
    while len(times) < args.repeats and (len(times) < 100 or time.perf_counter() - start < args.max_seconds):
        times.append(clock.once(work))
    row = {"mode": mode, "ms": statistics_of(times), "first_s": first_s,
           "first_three_calls_s": sum(calls), "error": error}
    if gpu:
        row["peak_bytes"] = torch.cuda.max_memory_allocated()
        row["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
    return row


def export(folder, name, config, model):
    from safetensors.torch import save_file
    folder = pathlib.Path(folder) / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config) + "\n")
    save_file({key: value.contiguous() for key, value in model.state().items()}, folder / "model.safetensors")
    tensors = {}
    for kind, inputs in model.inputs.items():
        tensors |= {f"{kind}.x{i}": t.contiguous() for i, t in enumerate(inputs)}
        tensors[f"{kind}.y"] = model.program(*inputs)[0].contiguous()
        tensors[f"{kind}.exact"] = model.exact(kind)[0].contiguous()
    save_file(tensors, folder / "results.safetensors")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help="some of: " + ", ".join(ROWS))
    parser.add_argument("--modes", default="eager,reduce-overhead", help="some of: " + ", ".join(MODES))
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--max-seconds", type=float, default=20, help="of a row's timing, beyond its first 100 repeats")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--dtype", default="bf16", choices=DTYPES)
    parser.add_argument("--tiny", action="store_true", help="small models, to try the program itself")
    parser.add_argument("--no-check", action="store_true", help="no comparison with f32")
    parser.add_argument("--export", metavar="FOLDER")
    parser.add_argument("--no-export", default="", help="models that are not exported")
    parser.add_argument("--out", help="the rows, as JSON")
    args = parser.parse_args()
    args.dtype = DTYPES[args.dtype]
    args.rows, args.modes = args.rows.split(","), args.modes.split(",")
    for given, known in ((args.rows, ROWS), (args.modes, MODES)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"{', '.join(unknown)} is none of {', '.join(known)}")
    return args


def run_model(name, rows, args, results, facts):
    """The rows of one model; its memory is free again afterwards."""
    torch.manual_seed(1)
    config = configuration(name, args.tiny)
    model = ROWS[rows[0]][2](config, args)
    if args.export and name not in args.no_export.split(","):
        export(args.export, name, config, model)
    for row in rows:
        kind = ROWS[row][1]
        expected = None if args.no_check else model.exact(kind)
        for mode in args.modes:
            try:
                got = measure(model, kind, mode, expected, args)
            except Exception as error:  # the other rows are still wanted
                got = {"mode": mode, "failed": (str(error).strip() or repr(error)).splitlines()[0]}
            results.append({"row": row, "model": name, "kind": kind} | facts | got)
            text = got.get("failed") or (f"{got['ms']['p50']:9.3f} ms  p99 {got['ms']['p99']:9.3f}  first call "
                                         f"{got['first_s']:6.1f} s  peak {got.get('peak_bytes', 0) / 1e9:5.2f} GB  "
                                         f"error {got['error'] if got['error'] is None else round(got['error'], 4)}")
            print(f"{row:18} {mode:16} {text}", flush=True)
            if args.out:  # what there is survives an end before the last row
                pathlib.Path(args.out).write_text(json.dumps(results, indent=1) + "\n")


def main():
    args = parse()
    facts = {"torch": torch.__version__, "dtype": str(args.dtype).removeprefix("torch."),
             "device": torch.cuda.get_device_name(args.device) if args.device.type == "cuda" else "cpu"}
    # One trivial compile first: loading the compiler is no row's cost.
    if set(args.modes) - {"eager"}:
        torch.compile(lambda x: x + 1)(torch.ones(4, device=args.device))
    results = []
    with torch.no_grad():
        for name in dict.fromkeys(ROWS[row][0] for row in args.rows):
            run_model(name, [row for row in args.rows if ROWS[row][0] == name], args, results, facts)
            gc.collect()
            if args.device.type == "cuda":
                torch.cuda.empty_cache()
    if not args.out:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
