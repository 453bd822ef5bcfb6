#!/usr/bin/env python3
"""One training step by PyTorch, eager and torch.compile: the rows that bench/training is compared with.

torch_training.py gpt2-small --batch 16 --tokens 1024 [--device cpu] [--modes eager,default] [--repeats 20]

bf16 autocast over f32 weights, clipping, fused AdamW, as in `training CONFIG --device cuda --dtype autocast`; on a CPU f32, as in
`training CONFIG`. For ResNet the images are channels-last. Prints a line of JSON for each mode: milliseconds a step (between
device events, or by the host's clock), the first step, peak memory.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch_peers import configuration, transformers_model


TINY = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 5000, "n_embd": 256, "n_layer": 4, "n_head": 4,
        "n_positions": 1024, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}


class Training:
    def __init__(self, args):
        config = TINY if args.config == "gpt-tiny" else configuration(args.config, False)
        device = self.device = args.device
        self.model = transformers_model(config).to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
        self.text = "vocab_size" in config
        if self.text:
            shape = (args.batch, args.tokens)
            self.x = torch.randint(config["vocab_size"], shape, device=device)
            self.y = torch.randint(config["vocab_size"], shape, device=device)
        else:
            size = config.get("image_size", 224)
            self.x = torch.randn(args.batch, 3, size, size, device=device)
            self.y = torch.randint(1000, (args.batch,), device=device)
            if config["model_type"] == "resnet":
                self.x = self.x.contiguous(memory_format=torch.channels_last)
                self.model = self.model.to(memory_format=torch.channels_last)

    def loss(self, x, y):
        logits = self.model(x).logits
        return F.cross_entropy(logits.flatten(0, -2), y.flatten())

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
    training = Training(args)
    loss = training.loss if mode == "eager" else torch.compile(training.loss, mode=None if mode == "default" else mode)
    start = time.time()
    training.step(loss).item()
    first = time.time() - start
    for _ in range(5):
        training.step(loss)
    times = device_times(training, loss, args.repeats) if args.device == "cuda" else host_times(training, loss, args.repeats)
    row = {"model": args.config, "how": "torch " + mode, "batch": args.batch, "step_ms": statistics.median(times),
           "first_s": first, "loss": training.step(loss).item()}
    if args.device == "cuda":
        row["peak_gb"] = torch.cuda.max_memory_allocated() / 1e9
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--modes", default="eager,default")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    for mode in args.modes.split(","):
        print(json.dumps(measure(args, mode)), flush=True)
        if args.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
