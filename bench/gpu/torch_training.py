#!/usr/bin/env python3
"""One training step by PyTorch, eager and torch.compile: the rows that bench/training is compared with.

torch_training.py gpt2-small --batch 16 --tokens 1024 [--device cpu] [--modes eager,default] [--repeats 20]
torch_training.py --serve --threads N

bf16 autocast over f32 weights, clipping, fused AdamW, as in `training CONFIG --device cuda --dtype autocast`; on a CPU f32, as in
`training CONFIG`. Convolutional models and their images are channels-last. Prints a line of JSON for each mode: milliseconds a
step (between device events, or by the host's clock), the first step, peak memory. Served (bench/peers/training.py asks), a line
`CONFIG SECONDS` times one round of torch.compile's steps on the CPU.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
from answering import Latest, serve, timed, timed_calls
from torch_training_models import training_case


class Training:
    def __init__(self, config, device, **sizes):
        case = training_case(config, **sizes)
        self.device, self.model, self.x, self.y = device, case.model.to(device).train(), case.x.to(device), case.y.to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)

    def loss(self, x, y):
        return F.cross_entropy(self.model(x), y)

    def step(self, loss):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device != "cpu"):
            value = loss(self.x, self.y)
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return value


def device_times(training, loss, repeats):
    marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    for begin, end in marks:
        begin.record()
        training.step(loss)
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in marks]


def host_times(training, loss, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        training.step(loss).item()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def measure(args, mode):
    torch.manual_seed(1)
    if args.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    training = Training(args.config, args.device, **{key: getattr(args, key) for key in ("batch", "tokens") if getattr(args, key)})
    loss = training.loss if mode == "eager" else torch.compile(training.loss, mode=None if mode == "default" else mode)
    start = time.time()
    training.step(loss).item()
    first = time.time() - start
    for _ in range(5):
        training.step(loss)
    times = device_times(training, loss, args.repeats) if args.device == "cuda" else host_times(training, loss, args.repeats)
    row = {"model": args.config, "how": "torch " + mode, "batch": len(training.x), "step_ms": statistics.median(times),
           "first_s": first, "loss": training.step(loss).item()}
    if args.device == "cuda":
        row["peak_gb"] = torch.cuda.max_memory_allocated() / 1e9
    return row


class Served:
    """An entry of the suite, compiled."""

    def __init__(self, config):
        torch._dynamo.reset()
        torch.manual_seed(1)
        training = Training(config, "cpu")
        loss = torch.compile(training.loss)
        self.step = lambda: training.step(loss).item()
        self.first = timed(self.step)
        for _ in range(2):
            self.step()


def serve_suite():
    latest = Latest(Served)

    def answer(config, least):
        case = latest(config)
        calls = timed_calls(case.step, float(least))
        return {"first_s": case.first, "round_s": statistics.median(calls), "calls": len(calls)}

    serve(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--modes", default="eager,default")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.serve:
        return serve_suite()
    for mode in args.modes.split(","):
        print(json.dumps(measure(args, mode)), flush=True)
        if args.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
