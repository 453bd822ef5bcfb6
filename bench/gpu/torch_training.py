#!/usr/bin/env python3
"""One training step by PyTorch, eager and torch.compile: the rows that bench/training is compared with.

torch_training.py gpt2-small --batch 16 --tokens 1024 [--modes eager,default] [--repeats 20]

bf16 autocast over f32 weights, clipping, fused AdamW, as in `training CONFIG --device cuda --dtype autocast`; for ResNet the
images are channels-last. Prints a line of JSON for each mode: milliseconds between device events, the first step, peak memory.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch_peers import configuration, transformers_model


class Training:
    def __init__(self, args):
        config = configuration(args.config, False)
        self.model = transformers_model(config).cuda().train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
        self.text = "vocab_size" in config
        if self.text:
            shape = (args.batch, args.tokens)
            self.x = torch.randint(config["vocab_size"], shape, device="cuda")
            self.y = torch.randint(config["vocab_size"], shape, device="cuda")
        else:
            size = config.get("image_size", 224)
            self.x = torch.randn(args.batch, 3, size, size, device="cuda")
            self.y = torch.randint(1000, (args.batch,), device="cuda")
            if config["model_type"] == "resnet":
                self.x = self.x.contiguous(memory_format=torch.channels_last)
                self.model = self.model.to(memory_format=torch.channels_last)

    def loss(self, x, y):
        logits = self.model(x).logits
        return F.cross_entropy(logits.flatten(0, -2), y.flatten())

    def step(self, loss):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            value = loss(self.x, self.y)
        value.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return value


def measure(args, mode):
    torch.manual_seed(1)
    torch.cuda.reset_peak_memory_stats()
    training = Training(args)
    loss = training.loss if mode == "eager" else torch.compile(training.loss, mode=None if mode == "default" else mode)
    start = time.time()
    training.step(loss).item()
    first = time.time() - start
    for _ in range(5):
        training.step(loss)
    marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(args.repeats)]
    for begin, end in marks:
        begin.record()
        value = training.step(loss)
        end.record()
    torch.cuda.synchronize()
    times = [begin.elapsed_time(end) for begin, end in marks]
    return {"model": args.config, "how": "torch " + mode, "batch": args.batch, "step_ms": statistics.median(times),
            "first_s": first, "loss": value.item(), "peak_gb": torch.cuda.max_memory_allocated() / 1e9}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--modes", default="eager,default")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    for mode in args.modes.split(","):
        print(json.dumps(measure(args, mode)), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
