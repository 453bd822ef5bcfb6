#!/usr/bin/env python3
"""Training steps on the CPU: Sinter compiled whole beside torch.compile, in turns, in f32.

training.py [--training build/bench/training] [--python INTERPRETER] [--threads N] [--rounds 7] [--seconds 0.3] [--out FILE.json]
            [MODEL ...]

The interpreter, or PEERS_PYTHON, needs torch and transformers. A step is zero_grad, forward, backward, clipping and AdamW;
torch compiles the loss and has its fused AdamW. Each library runs in a process of its own, on the same cores with the same number
of threads; every round times steps of both, and who begins changes. Ratios are medians over the rounds of torch's time by
Sinter's, with their relative standard deviation; beside them those of processor time, which with --threads 1 is what to look at
on a machine that others use: threads of torch that wait for each other spin, and lose more to them. First steps have empty caches
on both sides.
"""
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from asking import (BENCHES, HERE, KEEP_MEMORY, Peer, arguments, caches_in, deviation, geometric_mean, heading, in_turn, keep, line,
                    ratio_cell, threads_of)

HEADINGS = ["model", "torch.compile ms", "sinter ms", "torch.compile / sinter", "processor time: torch.compile ms", "sinter ms",
            "torch.compile / sinter", "first step s: torch.compile", "sinter"]
CLOCKS = ("round_s", "cpu_s")


def processor_seconds(peer):
    """Of the process and its threads so far."""
    fields = pathlib.Path(f"/proc/{peer.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one_turn(peer, model, seconds):
    before = processor_seconds(peer)
    got = peer.ask(model, seconds)
    # One call of a round is not timed.
    return got | {"cpu_s": (processor_seconds(peer) - before) / (got["calls"] + 1)}


def measure(peers, model, rounds, seconds):
    """One row. The first question to each makes the model ready; its time does not count."""
    row = {"model": model} | {name: peer.ask(model, 0) for name, peer in peers.items()}
    if any("failed" in row[name] for name in peers):
        return row
    turns = {name: [] for name in peers}
    for number in range(rounds):
        for name in in_turn(peers, number):
            # Threads that wait for work by spinning would take the other's cores.
            time.sleep(0.05)
            turns[name].append(one_turn(peers[name], model, seconds))
    row["turns"], row["median"], row["ratio"], row["ratio_deviation"] = turns, {}, {}, {}
    for clock in CLOCKS:
        row["median"][clock] = {name: statistics.median(turn[clock] for turn in turns[name]) for name in peers}
        ratios = [a[clock] / b[clock] for a, b in zip(turns["torch"], turns["sinter"])]
        row["ratio"][clock], row["ratio_deviation"][clock] = statistics.median(ratios), deviation(ratios)
    return row


def cells(row):
    if "ratio" not in row:
        return [row["model"]] + [row[name].get("failed", "-") for name in ("torch", "sinter")] + ["-"] * (len(HEADINGS) - 3)
    out = [row["model"]]
    for clock in CLOCKS:
        out += [f"{row['median'][clock][name] * 1e3:.1f}" for name in ("torch", "sinter")]
        out.append(ratio_cell(row["ratio"][clock], row["ratio_deviation"][clock]))
    return out + [f"{row[name]['first_s']:.1f}" for name in ("torch", "sinter")]


def main():
    parser = arguments(__doc__, rounds=7)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--training", default=str(BENCHES / "training"))
    parser.add_argument("--seconds", type=float, default=0.3, help="of a library's turn in a round, at least")
    args = parser.parse_args()
    models = args.models or subprocess.run([args.training, "--list"], capture_output=True, text=True, check=True).stdout.split()
    # The same cores for both.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
    rows = []
    with tempfile.TemporaryDirectory(prefix="sinter-peers-") as scratch:
        environment = threads_of(args.threads) | KEEP_MEMORY | caches_in(scratch)
        torch = [args.python, str(HERE.parent / "gpu" / "torch_training.py"), "--serve", "--threads", str(args.threads)]
        peers = {"torch": Peer(torch, environment), "sinter": Peer([args.training, "--serve"], environment)}
        print(heading(HEADINGS), flush=True)
        for model in models:
            rows.append(measure(peers, model, args.rounds, args.seconds))
            print(line(cells(rows[-1])), flush=True)
        for peer in peers.values():
            peer.close()
    print(f"\n{args.threads} threads, {args.rounds} rounds. Above 1: Sinter is faster.")
    for clock, title in zip(CLOCKS, ("Time", "Processor time")):
        ratios = [row["ratio"][clock] for row in rows if "ratio" in row]
        if ratios:
            print(f"{title}: geometric mean {geometric_mean(ratios):.2f}, worst {min(ratios):.2f}")
    keep(args.out, {"threads": args.threads, "rounds": args.rounds, "rows": rows})


if __name__ == "__main__":
    main()
