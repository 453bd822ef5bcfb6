#!/usr/bin/env python3
"""Text from a Llama on the CPU: Sinter, llama.cpp and torch.compile in turns; random weights of the same sizes.

llama.py [--config llama-1b] [--bench build/bench] [--python INTERPRETER] [--llama-python INTERPRETER]
         [--modes default] [--prompt 128] [--new 32] [--threads N] [--rounds 7] [--seconds 2] [--patience 300]
         [--gguf FOLDER] [--out FILE.json] [--no-torch] [--no-llama]

--python, or PEERS_PYTHON, needs torch; --llama-python, or LLAMA_PYTHON, needs llama-cpp-python, gguf
and numpy. A round asks every one of them, in an order that turns: prompts of --prompt tokens, --new tokens each, the
median time to the first token and of a step. A turn in which other programs were at work is repeated while --patience,
in seconds, lasts; how many were not is told. Ratios are medians over the rounds of the other's time by Sinter's.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from asking import (BENCHES, HERE, KEEP_MEMORY, Peer, arguments, caches_in, deviation, heading, in_turn, keep, line, ratio_cell,
                    threads_of)

KINDS = {"decode": "decode_s", "first token": "prefill_s"}


def processor_seconds(processes):
    """Of everyone, and of these alone."""
    ticks = os.sysconf("SC_CLK_TCK")
    everyone = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    own = 0
    for process in processes:
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        own += int(fields[11]) + int(fields[12])
    return (sum(everyone) - everyone[3] - everyone[4]) / ticks, own / ticks


class Turns:
    """Asks peers, again where other programs took more than a tenth of a core, for `patience` seconds in all."""

    def __init__(self, peers, patience):
        self.processes, self.left, self.disturbed = [peer.process for peer in peers], patience, 0

    def ask(self, question):
        while True:
            time.sleep(0.05)
            start, before = time.monotonic(), processor_seconds(self.processes)
            got = question()
            wall, after = time.monotonic() - start, processor_seconds(self.processes)
            others = ((after[0] - before[0]) - (after[1] - before[1])) / wall
            if "failed" in got or others < 0.1:
                return got
            if self.left <= 0:
                self.disturbed += 1
                return got
            time.sleep(2)
            self.left -= wall + 2


def summarize(results, base):
    """Medians, and ratios by Sinter's of the same round."""
    rows = []
    for name, rounds in results.items():
        row = {"name": name}
        for kind, key in KINDS.items():
            values = [r[key] for r in rounds]
            ratios = [theirs / ours[key] for theirs, ours in zip(values, results[base])]
            row[kind] = {"median_s": statistics.median(values), "best_s": min(values),
                         "ratio": statistics.median(ratios), "ratio_deviation": deviation(ratios)}
        rows.append(row)
    return rows


def main():
    parser = arguments(__doc__, rounds=7)
    parser.add_argument("--config", default="llama-1b")
    parser.add_argument("--bench", type=pathlib.Path, default=BENCHES)
    parser.add_argument("--llama-python", default=os.environ.get("LLAMA_PYTHON", "python3"))
    parser.add_argument("--modes", default="default")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--gguf")
    parser.add_argument("--no-torch", dest="torch", action="store_false")
    parser.add_argument("--no-llama", dest="llama", action="store_false")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sinter-peers-") as scratch:
        config = pathlib.Path(scratch) / f"{args.config}.json"
        config.write_text(subprocess.run([str(args.bench / "models"), "--config", args.config], capture_output=True,
                                         text=True, check=True).stdout)
        environment = threads_of(args.threads) | caches_in(scratch)
        common = ["--config", str(config), "--prompt", str(args.prompt), "--new", str(args.new), "--threads",
                  str(args.threads)]
        modes = args.modes.split(",")
        base = f"sinter {modes[0]}"
        peers = [Peer([str(args.bench / "generate"), args.config, "bf16", str(args.prompt), str(args.new)],
                      environment)]
        asks = {f"sinter {mode}": lambda s, mode=mode, peer=peers[-1]: peer.ask(mode, s) for mode in modes}
        if args.torch:
            peers.append(Peer([args.python, str(HERE / "torch_llama.py"), *common], environment | KEEP_MEMORY))
            asks |= {f"torch.compile {mode}": lambda s, mode=mode, peer=peers[-1]: peer.ask(mode, s) for mode in modes}
        if args.llama:
            peers.append(Peer([args.llama_python, str(HERE / "ggml_llama.py"), "--serve", *common, "--folder",
                               args.gguf or scratch], environment))
            asks |= {f"llama.cpp {kind}": lambda s, kind=kind, peer=peers[-1]: peer.ask(kind, s)
                     for kind in ("bf16", "f16")}
        results, turns = {name: [] for name in asks}, Turns(peers, args.patience)
        # The first question to each loads and compiles; it does not count.
        for number in range(-1, args.rounds):
            for name in in_turn(asks, number):
                got = asks[name](0) if number < 0 else turns.ask(lambda: asks[name](args.seconds))
                if "failed" in got:
                    sys.exit(f"{name} failed: {got['failed']}")
                if number >= 0:
                    results[name].append(got)
                    print(f"round {number + 1}: {name}: first token {got['prefill_s'] * 1e3:.1f} ms, step "
                          f"{got['decode_s'] * 1e3:.2f} ms", file=sys.stderr, flush=True)
        for peer in peers:
            peer.close()
    rows = summarize(results, base)
    headings = ["bf16 unless named", "step ms", "tokens/s", "step / Sinter's", f"first token of {args.prompt}, ms",
                "first token / Sinter's"]
    print(heading(headings))
    for row in rows:
        decode, first = row["decode"], row["first token"]
        own = row["name"] == base
        ratios = ["1" if own else ratio_cell(kind["ratio"], kind["ratio_deviation"]) for kind in (decode, first)]
        print(line([row["name"], f"{decode['median_s'] * 1e3:.1f}", f"{1 / decode['median_s']:.1f}", ratios[0],
                    f"{first['median_s'] * 1e3:.0f}", ratios[1]]))
    if turns.disturbed:
        print(f"\nOther programs were at work in {turns.disturbed} of {args.rounds * len(asks)} turns.")
    keep(args.out, {"rows": rows, "disturbed": turns.disturbed, "rounds": results})


if __name__ == "__main__":
    main()
