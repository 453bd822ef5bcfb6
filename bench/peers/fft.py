#!/usr/bin/env python3
"""Fourier transforms beside numpy (pocketfft) and torch (MKL, where it has it), in turns, in one table.

fft.py [--fft build/bench/fft] [--python INTERPRETER] [--threads N] [--rounds 5] [--seconds 0.01] [--out FILE.json] [CASE ...]

Cases are those of `fft --list`. The interpreter needs torch and numpy; PEERS_PYTHON names it where --python does not. The best
call of all rounds counts. numpy has one thread, whatever --threads says.
"""
import subprocess
import time

from asking import BENCHES, HERE, Peer, arguments, geometric_mean, heading, in_turn, keep, line, micro, threads_of

LIBRARIES = ("sinter", "numpy", "torch")


def measure(peers, case, rounds, seconds):
    """One row: the best call of each library."""
    row = {"case": case}
    for number in range(rounds):
        for name in in_turn(peers, number):
            got = peers[name].ask(case, seconds)
            if "failed" in got:
                raise SystemExit(f"{name} failed: {got['failed']}")
            for key, value in got.items():
                row[key] = min(row.get(key, value), value)
            # Threads that wait for work by spinning would take the other's cores.
            time.sleep(0.01)
    for name in LIBRARIES[1:]:
        row[f"{name}_ratio"] = row[f"{name}_s"] / row["sinter_s"]
    return row


def main():
    parser = arguments(__doc__, rounds=5)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--fft", default=str(BENCHES / "fft"))
    parser.add_argument("--seconds", type=float, default=0.01)
    args = parser.parse_args()
    cases = args.cases or subprocess.run([args.fft, "--list"], capture_output=True, text=True, check=True).stdout.split()
    environment = threads_of(args.threads)
    peers = {"sinter": Peer([args.fft, "--serve"], environment),
             "torch": Peer([args.python, str(HERE / "torch_fft.py"), "--threads", str(args.threads)], environment)}
    rows = []
    print(heading(["transform", "sinter us", "GFLOP/s", "numpy us", "torch us", "numpy / sinter", "torch / sinter"]), flush=True)
    for case in cases:
        row = measure(peers, case, args.rounds, args.seconds)
        rows.append(row)
        print(line([case, micro(row["sinter_s"]), f"{row['flops'] / row['sinter_s'] * 1e-9:.1f}", micro(row["numpy_s"]),
                    micro(row["torch_s"]), f"{row['numpy_ratio']:.2f}", f"{row['torch_ratio']:.2f}"]), flush=True)
    for peer in peers.values():
        peer.close()
    for name in LIBRARIES[1:]:
        ratios = sorted(row[f"{name}_ratio"] for row in rows)
        print(f"\n{name} / sinter over {len(ratios)} transforms: geometric mean {geometric_mean(ratios):.2f}, "
              f"worst {ratios[0]:.2f}, best {ratios[-1]:.2f}. Above 1: Sinter is faster.")
    keep(args.out, {"transforms": rows})


if __name__ == "__main__":
    main()
