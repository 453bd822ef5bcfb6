#!/usr/bin/env python3
"""Sinter and torch.compile on the same programs, in turns, in one table.

run.py [--fusion build/bench/fusion] [--python INTERPRETER] [--threads N] [--rounds 9]
       [--seconds 0.05] [--out FILE.json] [--keep-caches] [PROGRAM ...]

The interpreter needs torch; PEERS_PYTHON names it where --python does not. Both libraries stay loaded, each in a
process of its own; every round times single calls of both, kind by kind, and the best call counts. Both begin with
empty caches, so that the first calls tell what compiling costs; --keep-caches uses those of the environment and begins
sooner.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("eager_s", "compiled_s")


class Peer:
    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})

    def round(self, program, seconds):
        self.process.stdin.write(f"{program} {seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"program": program, "failed": "the process ended"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def micro(seconds):
    return f"{seconds * 1e6:.0f}" if seconds * 1e6 >= 100 else f"{seconds * 1e6:.1f}"


def measure(peers, program, rounds, seconds):
    """One row: the best call of each kind of each peer."""
    row = {"program": program}
    for number in range(rounds):
        turn = list(peers) if number % 2 == 0 else list(reversed(peers))
        for name in turn:
            got = peers[name].round(program, seconds)
            kept = row.setdefault(name, got)
            if "failed" in got:
                row[name] = got
                return row
            for kind in KINDS:
                kept[kind] = min(kept[kind], got[kind])
            # Threads that wait for work by spinning would take the other's cores.
            time.sleep(0.02)
    row["ratio"] = row["torch"]["compiled_s"] / row["sinter"]["compiled_s"]
    return row


def line_of(row):
    s, t = row["sinter"], row.get("torch", {})
    cell = lambda peer, key, text: text(peer[key]) if key in peer else "failed" if "failed" in peer else "-"
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
    mark = " WRONG" if s.get("wrong") else ""
    milli = lambda value: f"{value * 1e3:.0f}"
    return [row["program"], cell(s, "kernels", str), cell(s, "eager_s", micro), cell(s, "compiled_s", micro) + mark,
            cell(t, "eager_s", micro), cell(t, "compiled_s", micro), ratio, cell(s, "compiled_first_s", milli),
            cell(t, "compiled_first_s", milli)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--fusion", default=str(HERE.parent.parent / "build" / "bench" / "fusion"))
    parser.add_argument("--python", default=os.environ.get("PEERS_PYTHON", "python3"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out")
    parser.add_argument("--keep-caches", action="store_true")
    args = parser.parse_args()
    programs = args.programs or subprocess.run([args.fusion, "--list"], capture_output=True, text=True,
                                               check=True).stdout.split()
    with tempfile.TemporaryDirectory(prefix="sinter-peers-") as scratch:
        environment = {"SINTER_NUM_THREADS": str(args.threads)}
        if not args.keep_caches:
            environment |= {"SINTER_CACHE_DIR": scratch + "/sinter", "TORCHINDUCTOR_CACHE_DIR": scratch + "/torch"}
        peers = {"sinter": Peer([args.fusion, "--serve"], environment),
                 "torch": Peer([args.python, str(HERE / "torch_compile.py"), "--serve", "--threads", str(args.threads)],
                               environment)}
        table = [["program", "kernels", "sinter eager us", "sinter compiled us", "torch eager us", "torch.compile us",
                  "torch.compile / sinter compiled", "first call ms: sinter", "torch.compile"]]
        results = []
        print("| " + " | ".join(table[0]) + " |\n|" + "---|" * len(table[0]), flush=True)
        for program in programs:
            row = measure(peers, program, args.rounds, args.seconds)
            results.append(row)
            print("| " + " | ".join(line_of(row)) + " |", flush=True)
            for name in peers:
                if "failed" in row.get(name, {}):
                    print(f"{name} failed: {row[name]['failed']}", file=sys.stderr)
        for peer in peers.values():
            peer.close()
    ratios = sorted(row["ratio"] for row in results if "ratio" in row)
    if ratios:
        product = 1.0
        for ratio in ratios:
            product *= ratio ** (1 / len(ratios))
        print(f"\nGeometric mean of torch.compile / sinter compiled over {len(ratios)} programs: {product:.2f}; "
              f"worst {ratios[0]:.2f}, best {ratios[-1]:.2f}. Above 1: Sinter is faster.")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps({"programs": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
