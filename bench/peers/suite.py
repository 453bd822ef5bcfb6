#!/usr/bin/env python3
"""Patterns and whole models: PyTorch eager, torch.compile default and max-autotune beside Sinter's three, in turns.

suite.py [--python INTERPRETER] [--models build/bench/models] [--threads N] [--rounds 7] [--seconds 0.1] [--quick]
         [--no-max-autotune] [--only PATTERN] [--out FILE.json] [--profile ENTRY] [--list]

The interpreter, or PEERS_PYTHON, needs torch, transformers and safetensors. Each library runs in a process of its own,
on the same cores with the same number of threads; every round times all kinds of both, and who begins changes. Results
are compared before anything is timed: where they differ the row says WRONG and has no ratio. Ratios are medians over
the rounds of torch's time by Sinter's, with their relative standard deviation, marked `!` above 5 %. First calls have
empty caches on both sides.
"""
import fnmatch
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

from asking import (BENCHES, HERE, KEEP_MEMORY, NOISE, Peer, arguments, caches_in, deviation, geometric_mean, heading, in_turn,
                    keep, line, micro, ratio_cell, threads_of)

KINDS = ("eager", "default", "max-autotune")


class Suite:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, pathlib.Path(scratch)
        self.environment = threads_of(args.threads)
        self.modes = [] if args.max_autotune else ["--no-max-autotune"]
        self.torch = Peer([args.python, str(HERE / "torch_suite.py"), "--serve", "--models", args.models, "--threads",
                           str(args.threads), *(["--only-eager"] if args.profile else self.modes)],
                          self.environment | KEEP_MEMORY | caches_in(self.scratch / "torch"))

    def folder(self, entry):
        return self.scratch / entry

    def measure(self, entry):
        """One row. The first question to each makes the entry ready; its time does not count."""
        row = {"entry": entry, "torch": self.torch.ask(entry, self.folder(entry), 0)}
        if "failed" in row["torch"]:
            return row
        # A process and a cache for each entry: the first call compiles everything.
        cache = self.scratch / f"cache-{entry}"
        sinter = Peer([self.args.models, "--serve", *self.modes], self.environment | caches_in(cache))
        row["sinter"] = sinter.ask(self.folder(entry), 0)
        if "failed" not in row["sinter"]:
            self.rounds(entry, row, {"torch": lambda s: self.torch.ask(entry, self.folder(entry), s),
                                     "sinter": lambda s: sinter.ask(self.folder(entry), s)})
        sinter.close()
        shutil.rmtree(cache, ignore_errors=True)
        return row

    def rounds(self, entry, row, asks):
        for name in asks:
            row[name]["rounds_s"] = {kind: [] for kind in row[name].pop("round_s")}
        for number in range(self.args.rounds):
            for name in in_turn(asks, number):
                # Threads that wait for work by spinning would take the other's cores.
                time.sleep(0.05)
                got = asks[name](self.args.seconds)
                if "failed" in got:
                    row[name] = got
                    return
                for kind, seconds in got["round_s"].items():
                    row[name]["rounds_s"][kind].append(seconds)
        summarize(row)


def summarize(row):
    """Medians of the kinds, and where both libraries have the right results their ratios."""
    for peer in (row["torch"], row["sinter"]):
        peer["median_s"] = {kind: statistics.median(rounds) for kind, rounds in peer["rounds_s"].items()}
    row["ratio"], row["ratio_deviation"] = {}, {}
    for kind, ours in row["sinter"]["rounds_s"].items():
        if row["sinter"]["wrong"][kind] or row["torch"]["wrong"][kind]:
            continue
        ratios = [a / b for a, b in zip(row["torch"]["rounds_s"][kind], ours)]
        row["ratio"][kind], row["ratio_deviation"][kind] = statistics.median(ratios), deviation(ratios)
    row["first_ratio"] = row["torch"]["first_s"]["default"] / row["sinter"]["first_s"]["default"]
    if "bytes" in row["sinter"]:
        best = min(s for kind, s in row["sinter"]["median_s"].items() if kind != "eager")
        row["of_read_bandwidth"] = row["sinter"]["bytes"] / best / row["sinter"]["read_bandwidth"]
        theirs = min(s for kind, s in row["torch"]["median_s"].items() if kind != "eager")
        row["torch_of_read_bandwidth"] = row["sinter"]["bytes"] / theirs / row["sinter"]["read_bandwidth"]


HEADINGS = ["entry", "bound", "torch eager us", "torch.compile us", "torch max-autotune us", "sinter eager us",
            "sinter us", "sinter max-autotune us", "default: torch / sinter", "max-autotune: torch / sinter",
            "of read bandwidth: sinter, torch", "first call ms: sinter", "torch.compile", "ratio"]


def cells(row):
    if "median_s" not in row.get("sinter", {}):
        return [row["entry"], row["torch"].get("bound", "-")] + ["failed"] + ["-"] * (len(HEADINGS) - 3)

    def time_cell(peer, kind):
        seconds = row[peer]["median_s"].get(kind)
        if seconds is None:
            return "-"
        return micro(seconds) + (" WRONG" if row[peer]["wrong"][kind] else "")

    def ratio_of(kind):
        if kind not in row["ratio"]:
            return "WRONG" if kind in row["sinter"]["median_s"] else "-"
        return ratio_cell(row["ratio"][kind], row["ratio_deviation"][kind])

    fraction = "-"
    if "of_read_bandwidth" in row:
        fraction = f"{100 * row['of_read_bandwidth']:.0f} %, {100 * row['torch_of_read_bandwidth']:.0f} %"
    first = [row[peer]["first_s"]["default"] for peer in ("sinter", "torch")]
    return ([row["entry"], row["torch"]["bound"]] + [time_cell(p, k) for p in ("torch", "sinter") for k in KINDS] +
            [ratio_of("default"), ratio_of("max-autotune"), fraction] + [f"{s * 1e3:.0f}" for s in first] +
            [f"{row['first_ratio']:.0f}"])


def summary(rows, models):
    out = []
    for kind in KINDS[1:]:
        for bound, title in (("memory", "memory- and overhead-bound"), ("gemm", "GEMM-bound"), (None, "all")):
            ratios = {row["entry"]: row["ratio"][kind] for row in rows
                      if kind in row.get("ratio", {}) and bound in (None, row["torch"]["bound"])}
            if ratios:
                worst = min(ratios, key=ratios.get)
                out.append(f"{kind}, {title}: geometric mean {geometric_mean(ratios.values()):.2f} over {len(ratios)} "
                           f"entries, worst {ratios[worst]:.2f} ({worst})")
        slow = [f"{row['entry']} {row['ratio'][kind]:.2f}" for row in rows if row.get("ratio", {}).get(kind, 1) < 0.9]
        if slow:
            out.append(f"{kind}, below 0.9: " + ", ".join(slow))
    compiles = [f"{row['entry']} {row['first_ratio']:.0f}" for row in rows if "first_ratio" in row
                and row["entry"] in models]
    if compiles:
        out.append("Cold first call, torch.compile / sinter, by model: " + ", ".join(compiles))
    noisy = [row["entry"] for row in rows if max(row.get("ratio_deviation", {}).values(), default=0) > NOISE]
    if noisy:
        out.append("Warning: ratios deviate by more than 5 % between rounds for " + ", ".join(noisy))
    wrong = [f"{row['entry']} ({peer} {kind}: {row[peer]['error'][kind]})"
             for row in rows for peer in ("torch", "sinter")
             for kind, is_wrong in row.get(peer, {}).get("wrong", {}).items() if is_wrong]
    if wrong:
        out.append("WRONG results, not counted: " + ", ".join(wrong))
    failed = [f"{row['entry']} ({peer}: {row[peer]['failed']})" for row in rows for peer in ("torch", "sinter")
              if "failed" in row.get(peer, {})]
    if failed:
        out.append("Failed: " + ", ".join(failed))
    return out


def entries_of(args):
    probe = subprocess.run([args.python, "-c", "import torch, transformers, safetensors"], capture_output=True,
                           text=True)
    if probe.returncode != 0:
        raise SystemExit(f"{args.python} cannot import what the peers need:\n{probe.stderr.strip().splitlines()[-1]}\n"
                         "Install it, for example in an environment of its own:\n"
                         "  python3 -m venv peers && peers/bin/pip install torch transformers safetensors\n"
                         "and name it: --python peers/bin/python, or PEERS_PYTHON.")
    if not pathlib.Path(args.models).exists():
        raise SystemExit(f"{args.models} is absent: cmake --build build --target bench_models")
    return subprocess.run([args.python, str(HERE / "torch_suite.py"), "--list"], capture_output=True, text=True,
                          check=True).stdout.split()


def parse():
    parser = arguments(__doc__, rounds=7)
    parser.add_argument("--models", default=str(BENCHES / "models"))
    parser.add_argument("--seconds", type=float, default=0.1, help="of a kind's turn in a round, at least")
    parser.add_argument("--quick", action="store_true", help="three short rounds")
    parser.add_argument("--only", default="*", help="entries that match, such as 'llama*' or '*_l2'")
    parser.add_argument("--no-max-autotune", dest="max_autotune", action="store_false")
    parser.add_argument("--profile", metavar="ENTRY", help="print Sinter's kernels and where their time goes, and end")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 3, 0.02
    if args.profile:
        args.only, args.max_autotune = args.profile, False
    return args


def main():
    args = parse()
    entries = [entry for entry in entries_of(args) if fnmatch.fnmatch(entry, args.only)]
    if args.list:
        return print("\n".join(entries))
    if not entries:
        raise SystemExit(f"no entry matches {args.only}; --list names them")
    # The same cores for both.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
    start, rows = time.time(), []
    with tempfile.TemporaryDirectory(prefix="sinter-peers-") as scratch:
        suite = Suite(args, scratch)
        if args.profile:
            got = suite.torch.ask(args.profile, suite.folder(args.profile), 0)
            suite.torch.close()
            if "failed" in got:
                raise SystemExit(got["failed"])
            return subprocess.run([args.models, "--profile", str(suite.folder(args.profile))], check=True,
                                  env={**os.environ, **suite.environment})
        print(heading(HEADINGS, names=2), flush=True)
        for entry in entries:
            rows.append(suite.measure(entry))
            print(line(cells(rows[-1])), flush=True)
            shutil.rmtree(suite.folder(entry), ignore_errors=True)
        suite.torch.close()
    models = [row["entry"] for row in rows if not row["entry"].endswith(("_l2", "_memory"))]
    lines = summary(rows, models)
    print("\n" + "\n".join(f"- {text}" for text in lines))
    print(f"\n{args.threads} threads, {args.rounds} rounds, {(time.time() - start) / 60:.1f} minutes. "
          "Above 1: Sinter is faster.")
    keep(args.out, {"threads": args.threads, "rounds": args.rounds, "summary": lines, "entries": rows})


if __name__ == "__main__":
    main()
