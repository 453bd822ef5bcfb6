#!/usr/bin/env python3
"""The table of the GPU in one command: torch_peers.py, then gpu_steps with empty caches, then table.py.

run.py [--sinter build/bench/gpu_steps] [--python INTERPRETER] [--rows ...] [--modes eager,reduce-overhead]
       [--sinter-modes eager,default,reduce-overhead] [--repeats 200] [--out FOLDER]

Each model has the GPU to itself while it is timed. FOLDER keeps what was measured, as JSON.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from table import ROWS

HERE = pathlib.Path(__file__).resolve().parent


def sinter_command(args, model):
    _, _, _, batch, prompt, _ = next(row for row in ROWS.values() if row[1] == model)
    command = [args.sinter, model, "--batch", str(batch), "--modes", args.sinter_modes, "--repeats", str(args.repeats)]
    if prompt is not None:
        command += ["--prompt", str(prompt)]
    return command


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
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    peers = subprocess.run([args.python, str(HERE / "torch_peers.py"), "--rows", args.rows, "--modes", args.modes,
                            "--device", args.device, "--repeats", str(args.repeats), "--out", str(out / "torch.json")])
    files = []
    for model in dict.fromkeys(ROWS[row][1] for row in args.rows.split(",")):
        with tempfile.TemporaryDirectory(prefix="sinter-bench-") as cache:
            done = subprocess.run(sinter_command(args, model), stdout=subprocess.PIPE,
                                  env={**os.environ, "SINTER_CACHE_DIR": cache})
        if done.returncode == 0:
            files.append(out / f"sinter-{model}.json")
            files[-1].write_bytes(done.stdout)
    command = [sys.executable, str(HERE / "table.py"), "--sinter", *map(str, files)]
    if peers.returncode == 0:
        command += ["--torch", str(out / "torch.json")]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
