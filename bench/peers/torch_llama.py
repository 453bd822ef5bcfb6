"""A Llama with random weights in torch.compile on the CPU: time to the first token and time of a decode step.

torch_llama.py --config FILE.json [--dtype bf16] [--prompt 128] [--new 32] [--threads N]

A line `MODE SECONDS` on standard input answers with one round; the modes are default and max-autotune, the latter with
frozen weights. The prompt and the step are two graphs over one static cache; the likeliest token is chosen in them.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import torch
from torch_suite import random_llama

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Case:
    def __init__(self, model, mode, args):
        attention = model.model.layers[0].self_attn
        shape = (1, attention.kv_heads, args.prompt + args.new, attention.size)
        self.cache = [torch.zeros(shape, dtype=DTYPES[args.dtype]) for _ in range(2 * len(model.model.layers))]
        self.ids = torch.randint(model.model.embed_tokens.num_embeddings, (1, args.prompt))
        self.positions = torch.arange(args.prompt)
        self.new = args.new
        step = lambda ids, position, *cache: model(ids, position, *cache)[0].argmax(-1)
        options = {} if mode == "default" else {"mode": mode}
        with torch._inductor.config.patch(freezing=mode != "default"):
            self.prefill, self.step = (torch.compile(step, dynamic=False, **options) for _ in range(2))
            start = time.perf_counter()
            self.generate(2)
            self.first = time.perf_counter() - start
        self.generate(2)

    def generate(self, count):
        """Seconds to the first token and of each later one."""
        start = time.perf_counter()
        token = self.prefill(self.ids, self.positions, *self.cache)
        token.item()
        first, steps = time.perf_counter() - start, []
        for i in range(count - 1):
            start = time.perf_counter()
            token = self.step(token, torch.tensor([len(self.positions) + i]), *self.cache)
            token.item()
            steps.append(time.perf_counter() - start)
        return first, steps

    def round(self, least):
        """Medians over whole generations for at least that long."""
        prefills, steps, end = [], [], time.perf_counter() + least
        while not prefills or time.perf_counter() < end:
            first, later = self.generate(self.new)
            prefills.append(first)
            steps += later
        return {"prefill_s": statistics.median(prefills), "decode_s": statistics.median(steps), "first_s": self.first}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    # The compiler writes to standard output too; replies keep it for themselves.
    replies, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    with torch.no_grad():
        model = random_llama(json.loads(pathlib.Path(args.config).read_text())).to(DTYPES[args.dtype])
        model = model.eval().requires_grad_(False)
        cases = {}
        for line in sys.stdin:
            mode, least = line.split()
            try:
                if mode not in cases:
                    cases[mode] = Case(model, mode, args)
                reply = cases[mode].round(float(least))
            except Exception as error:  # the driver tells it
                reply = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
