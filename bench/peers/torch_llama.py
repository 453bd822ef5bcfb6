"""A Llama with random weights in torch.compile on the CPU: time to the first token and time of a decode step.

torch_llama.py --config FILE.json [--dtype bf16] [--prompt 128] [--new 32] [--threads N]

A line `MODE SECONDS` on standard input answers with one round; the modes are default and max-autotune, the latter with
frozen weights. The prompt and the step are two graphs over one static cache; the likeliest token is chosen in them.
"""
import argparse
import json
import os
import pathlib
import time

import torch

from answering import serve, timed, timed_generations
from torch_models import DTYPES, compile_options, random_llama


class Case:
    def __init__(self, model, mode, args):
        self.cache = model.make_cache(args.prompt + args.new, torch.zeros, dtype=DTYPES[args.dtype])
        self.ids = torch.randint(model.model.embed_tokens.num_embeddings, (1, args.prompt))
        self.positions = torch.arange(args.prompt)
        self.new = args.new
        step = lambda ids, position, *cache: model(ids, position, *cache)[0].argmax(-1)
        with torch._inductor.config.patch(freezing=mode != "default"):
            self.prefill, self.step = (torch.compile(step, dynamic=False, **compile_options(mode)) for _ in range(2))
            self.first = timed(lambda: self.generate(2))
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
        return timed_generations(lambda: self.generate(self.new), least) | {"first_s": self.first}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    with torch.no_grad():
        model = random_llama(json.loads(pathlib.Path(args.config).read_text())).to(DTYPES[args.dtype])
        model = model.eval().requires_grad_(False)
        cases = {}

        def answer(mode, least):
            if mode not in cases:
                cases[mode] = Case(model, mode, args)
            return cases[mode].round(float(least))

        serve(answer)


if __name__ == "__main__":
    main()
