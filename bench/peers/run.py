#!/usr/bin/env python3
"""Sinter and torch.compile on the same programs, in turns, in one table.

run.py [--fusion build/bench/fusion] [--python INTERPRETER] [--threads N] [--rounds 9]
       [--seconds 0.05] [--out FILE.json] [--keep-caches] [PROGRAM ...]

The interpreter needs torch; PEERS_PYTHON names it where --python does not. Both libraries stay loaded, each in a
process of its own; every round times single calls of both, kind by kind, and the best call counts. Both begin with
empty caches, so that the first calls tell what compiling costs; --keep-caches uses those of the environment and begins
sooner.
"""
import subprocess
import sys
import tempfile
import time

from asking import BENCHES, HERE, Peer, arguments, caches_in, geometric_mean, heading, in_turn, keep, line, micro, threads_of

KINDS = ("eager_s", "compiled_s")


def measure(peers, program, rounds, seconds):
    """One row: the best call of each kind of each peer."""
    row = {"program": program}
    for number in range(rounds):
        for name in in_turn(peers, number):
            got = peers[name].ask(program, seconds)
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


def cells(row):
    s, t = row["sinter"], row.get("torch", {})
    cell = lambda peer, key, text: text(peer[key]) if key in peer else "failed" if "failed" in peer else "-"
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
    mark = " WRONG" if s.get("wrong") else ""
    milli = lambda value: f"{value * 1e3:.0f}"
    return [row["program"], cell(s, "kernels", str), cell(s, "eager_s", micro), cell(s, "compiled_s", micro) + mark,
            cell(t, "eager_s", micro), cell(t, "compiled_s", micro), ratio, cell(s, "compiled_first_s", milli),
            cell(t, "compiled_first_s", milli)]


HEADINGS = ["program", "kernels", "sinter eager us", "sinter compiled us", "torch eager us", "torch.compile us",
            "torch.compile / sinter compiled", "first call ms: sinter", "torch.compile"]


def main():
    parser = arguments(__doc__, rounds=9)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--fusion", default=str(BENCHES / "fusion"))
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--keep-caches", action="store_true")
    args = parser.parse_args()
    programs = args.programs or subprocess.run([args.fusion, "--list"], capture_output=True, text=True,
                                               check=True).stdout.split()
    with tempfile.TemporaryDirectory(prefix="sinter-peers-") as scratch:
        environment = threads_of(args.threads) | ({} if args.keep_caches else caches_in(scratch))
        peers = {"sinter": Peer([args.fusion, "--serve"], environment),
                 "torch": Peer([args.python, str(HERE / "torch_compile.py"), "--serve", "--threads", str(args.threads)],
                               environment)}
        results = []
        print(heading(HEADINGS), flush=True)
        for program in programs:
            row = measure(peers, program, args.rounds, args.seconds)
            results.append(row)
            print(line(cells(row)), flush=True)
            for name in peers:
                if "failed" in row.get(name, {}):
                    print(f"{name} failed: {row[name]['failed']}", file=sys.stderr)
        for peer in peers.values():
            peer.close()
    ratios = sorted(row["ratio"] for row in results if "ratio" in row)
    if ratios:
        print(f"\nGeometric mean of torch.compile / sinter compiled over {len(ratios)} programs: "
              f"{geometric_mean(ratios):.2f}; worst {ratios[0]:.2f}, best {ratios[-1]:.2f}. Above 1: Sinter is faster.")
    keep(args.out, {"programs": results})


if __name__ == "__main__":
    main()
