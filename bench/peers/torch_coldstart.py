"""One model in torch.compile, from the start of the process to its first result; for coldstart.py. Prints a line of JSON.

torch_coldstart.py --config FILE.json [--tokens 16] [--batch 1] [--dtype f32] [--device cpu] [--mode default] [--started NS]
torch_coldstart.py --trivial        compiles an addition, so that the next process finds everything in the page cache

Models are those of transformers, but for a Llama on a GPU: the one of torch_models.py, a prompt and a step over a static
cache. What is not counted: making the model with its weights, importing transformers, a GPU's context.
"""
import time

BEGIN = time.monotonic_ns()

import argparse
import json
import pathlib

import torch

from torch_models import DTYPES, LlamaSteps, Model, compile_options, transformers_model


def make_forward(config, args):
    import transformers  # noqa: F401    before anything is made on a device that has no memory
    with torch.device("meta"):
        model = transformers_model(config)
    model = model.to(DTYPES[args.dtype]).to_empty(device=args.device).eval().requires_grad_(False)
    for kind in (model.named_parameters, model.named_buffers):
        for key, tensor in kind():
            if tensor.is_floating_point():
                tensor.uniform_(-0.03, 0.03) if tensor.dim() > 1 else tensor.fill_(0 if key.endswith("bias") else 1)
            else:  # positions, types of tokens
                tensor.copy_(torch.arange(tensor.numel()).view_as(tensor) if "position" in key else 0)
    ids = torch.randint(config["vocab_size"], (args.batch, args.tokens), device=args.device)
    program = torch.compile(Model(model), **compile_options(args.mode))
    return lambda: program(ids)


def make_steps(config, args):
    model = LlamaSteps(config, DTYPES[args.dtype], torch.device(args.device), args.tokens)
    program = torch.compile(model.program, dynamic=False, **compile_options(args.mode))

    def call():
        for kind in ("prefill", "decode"):
            if args.mode != "default":
                torch.compiler.cudagraph_mark_step_begin()
            out = program(*model.inputs[kind])
        return out

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--started", type=int, default=BEGIN, help="nanoseconds of the monotonic clock")
    parser.add_argument("--trivial", action="store_true")
    args = parser.parse_args()
    gpu = args.device.startswith("cuda")
    if args.trivial:
        import transformers  # noqa: F401
        return torch.compile(lambda x: x + 1)(torch.ones(4, device=args.device))
    marks = [time.monotonic_ns()]

    def lap():
        if gpu:
            torch.cuda.synchronize()
        marks.append(time.monotonic_ns())
        return (marks[-1] - marks[-2]) / 1e6

    row = {"start_ms": (marks[0] - args.started) / 1e6}
    if gpu:
        torch.cuda.init()
        torch.empty(1, device=args.device)
    row["context_ms"] = lap()
    torch.manual_seed(1)
    config = json.loads(args.config.read_text())
    with torch.no_grad():
        decoder = config["architectures"][0].endswith("ForCausalLM")
        call = make_steps(config, args) if gpu and decoder else make_forward(config, args)
        row["weights_ms"] = lap()
        call()
        row["first_ms"] = lap()
        row["raw_ms"] = (marks[-1] - args.started) / 1e6
        row["total_ms"] = row["raw_ms"] - row["weights_ms"] - row["context_ms"]
        usual = []
        for _ in range(5):
            call()
            usual.append(lap())
        row["usual_ms"] = min(usual)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
