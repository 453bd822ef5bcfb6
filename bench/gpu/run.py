#!/usr/bin/env python3
"""The table of the GPU in one command: torch_peers.py, then gpu_steps with empty caches, then table.py.

run.py [--sinter build/bench/gpu_steps] [--python INTERPRETER] [--rows ...] [--modes eager,reduce-overhead]
       [--sinter-modes eager,default,reduce-overhead] [--repeats 200] [--out FOLDER] [--unchecked llama-8b]

Sinter runs with torch's weights and inputs, and its results are compared with exact ones first; a wrong one is the exit
status 1. Models that are --unchecked have random weights on both sides: their checkpoints would be large.
Each model has the GPU to itself while it is timed. FOLDER keeps what was measured, as JSON.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from table import ROWS

HERE = pathlib.Path(__file__).resolve().parent


# A result may be off by as much as twice what PyTorch's arithmetic in bf16 is, or by this.
SLACK = 0.01


def sinter_command(args, model, checkpoints):
    _, _, _, batch, prompt, _ = next(row for row in ROWS.values() if row[1] == model)
    command = [args.sinter, model, "--batch", str(batch), "--modes", args.sinter_modes, "--repeats", str(args.repeats)]
    if prompt is not None:
        command += ["--prompt", str(prompt)]
    if (checkpoints / model / "results.safetensors").exists():
        command += ["--checkpoint", str(checkpoints / model)]
    return command


def wrong_results(file):
    """What of a model's rows is further from the exact results than it may be."""
    for row in json.loads(file.read_text()):
        for kind, error in row.get("error", {}).items():
            theirs = row["torch_error"][kind]
            verdict = "" if error <= max(2 * theirs, SLACK) else "  WRONG"
            print(f"{row['model']:10} {row['mode']:16} {kind:8} error {error:.5f}, torch {theirs:.5f}{verdict}")
            if verdict:
                yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sinter", default=str(HERE.parent.parent / "build" / "bench" / "gpu_steps"))
    parser.add_argument("--python", default=os.environ.get("PEERS_PYTHON", "python3"))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--modes", default="eager,reduce-overhead", help="torch's")
    parser.add_argument("--sinter-modes", default="eager,default,reduce-overhead")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", default="gpu-results")
    parser.add_argument("--unchecked", default="llama-8b")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    checkpoints = tempfile.TemporaryDirectory(prefix="sinter-checkpoints-")
    peers = subprocess.run([args.python, str(HERE / "torch_peers.py"), "--rows", args.rows, "--modes", args.modes,
                            "--device", args.device, "--repeats", str(args.repeats), "--out", str(out / "torch.json"),
                            "--export", checkpoints.name, "--no-export", args.unchecked])
    files = []
    for model in dict.fromkeys(ROWS[row][1] for row in args.rows.split(",")):
        with tempfile.TemporaryDirectory(prefix="sinter-bench-") as cache:
            done = subprocess.run(sinter_command(args, model, pathlib.Path(checkpoints.name)), stdout=subprocess.PIPE,
                                  env={**os.environ, "SINTER_CACHE_DIR": cache})
        if done.returncode == 0:
            files.append(out / f"sinter-{model}.json")
            files[-1].write_bytes(done.stdout)
    command = [sys.executable, str(HERE / "table.py"), "--sinter", *map(str, files)]
    if peers.returncode == 0:
        command += ["--torch", str(out / "torch.json")]
    wrong = [row for file in files for row in wrong_results(file)]
    return subprocess.run(command).returncode or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
