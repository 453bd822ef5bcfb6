#!/usr/bin/env python3
"""Cold compiles and warm starts: Sinter and torch.compile in turns, a fresh process each time.

coldstart.py [--python INTERPRETER] [--sinter build/bench/coldstart] [--models NAME,NAME] [--rounds 3] [--threads N]
             [--layers 1,8,32,96] [--torch-layers] [--tokens 16] [--dtype f32] [--device cpu] [--mode MODE] [--no-torch]
             [--json] [--out FILE.json]

Cold: caches are empty (SINTER_CACHE_DIR; TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR). Warm: the process after it, with the
same caches. Time is from the start of the process to the first result; the making of random weights is not counted, for
torch also the import of transformers and the making of the module, on a GPU neither side's context; `raw` has all of it. A
trivial compile beforehand brings both compilers into the page cache. The interpreter, or PEERS_PYTHON, needs torch and
transformers. `coldstart --configs` names the models; others are names of `sinter bench --config`. --layers adds a table of
the last model with so many layers, for torch too with --torch-layers (minutes). With --device cuda the models are llama-1b
and llama-8b in bf16, a prompt of 512 and one step, in reduce-overhead.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from asking import BENCHES, HERE, arguments, caches_in, heading, in_turn, keep, line, threads_of

AIMS = {"cpu": {"cold": (1000, 30), "warm": (100, 20)}, "cuda": {"cold": (1500, None), "warm": (150, None)}}


class Measurer:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, pathlib.Path(scratch)
        self.environment = os.environ | threads_of(args.threads)

    def command(self, peer, config):
        shared = ["--tokens", str(self.args.tokens), "--dtype", self.args.dtype, "--device", self.args.device, "--mode",
                  self.args.mode]
        if peer == "sinter":
            return [self.args.sinter, "--one", str(config), *shared]
        return [self.args.python, str(HERE / "torch_coldstart.py"), "--config", str(config), *shared]

    def run(self, command, cache):
        if "--trivial" not in command:
            command = command + ["--started", str(time.monotonic_ns())]
        done = subprocess.run(command, env=self.environment | caches_in(cache), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        return done.stdout

    def pair(self, peer, config):
        """A cold process and a warm one, over a cache of their own."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as cache:
            return {kind: json.loads(self.run(self.command(peer, config), cache).splitlines()[-1])
                    for kind in ("cold", "warm")}


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(measurer, label, config, peers, rounds):
    """{peer: {kind: median of each member}}, and torch's time by Sinter's, medians over the rounds."""
    got = {peer: {"cold": [], "warm": []} for peer in peers}
    for number in range(rounds):
        for peer in in_turn(peers, number):
            for kind, row in measurer.pair(peer, config).items():
                got[peer][kind].append(row)
                say(f"{label}: round {number + 1}, {peer} {kind}: {row['total_ms']:.0f} ms (raw {row['raw_ms']:.0f})")
    row = {"model": label, "rounds": got}
    for peer in peers:
        row[peer] = {kind: {key: statistics.median(r[key] for r in rows) for key in rows[0]}
                     for kind, rows in got[peer].items()}
    if "torch" in peers:
        row["ratio"] = {kind: statistics.median(t["total_ms"] / s["total_ms"]
                                                for t, s in zip(got["torch"][kind], got["sinter"][kind]))
                        for kind in ("cold", "warm")}
    return row


STAGES = ("start", "model", "capture", "passes", "schedule", "emit", "toolchain")


def table(rows):
    headings = ["model", "caches", "sinter ms", "torch.compile ms", "ratio", "usual call: sinter, torch", "raw: sinter, torch",
                *STAGES, "compiled"]
    print(heading(headings, names=2))
    for row in rows:
        for kind in ("cold", "warm"):
            ours, theirs = row["sinter"][kind], row.get("torch", {}).get(kind)
            pair = lambda key: f"{ours[key]:.0f}, " + (f"{theirs[key]:.0f}" if theirs else "-")
            cells = [row["model"], kind, f"{ours['total_ms']:.0f}", f"{theirs['total_ms']:.0f}" if theirs else "-",
                     f"{row['ratio'][kind]:.0f}" if theirs else "-", pair("usual_ms"), pair("raw_ms"),
                     *(f"{ours[stage + '_ms']:.1f}" for stage in STAGES), f"{ours['compiled']:.0f}"]
            print(line(cells))


def verdicts(rows, device):
    out = []
    for kind, (most, least) in AIMS[device].items():
        for row in rows:
            time_ms, ratio = row["sinter"][kind]["total_ms"], row.get("ratio", {}).get(kind)
            text = f"{row['model']}, {kind}: {time_ms:.0f} ms (aim {most}: {'met' if time_ms <= most else 'MISSED'})"
            if ratio and least:
                text += f", {ratio:.0f} times torch.compile's speed (aim {least}: {'met' if ratio >= least else 'MISSED'})"
            out.append(text)
    return out


def parse():
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--sinter", default=str(BENCHES / "coldstart"))
    parser.add_argument("--models", help="by default those of `coldstart --configs`")
    parser.add_argument("--layers", default="", help="such as 1,8,32,96")
    parser.add_argument("--torch-layers", action="store_true")
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--dtype")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--mode")
    parser.add_argument("--no-torch", dest="torch", action="store_false")
    parser.add_argument("--json", action="store_true", help="all rounds on standard output instead of the tables")
    args = parser.parse_args()
    gpu = args.device == "cuda"
    args.tokens = args.tokens or (512 if gpu else 16)
    args.dtype = args.dtype or ("bf16" if gpu else "f32")
    args.mode = args.mode or ("reduce-overhead" if gpu else "default")
    if not pathlib.Path(args.sinter).exists():
        raise SystemExit(f"{args.sinter} is absent: cmake --build build --target bench_coldstart")
    return args


def configurations(args):
    """{name: config.json}"""
    def ask(*words):
        return json.loads(subprocess.run([args.sinter, "--configs", *words], capture_output=True, text=True, check=True).stdout)
    if args.models:
        return ask(*args.models.split(","))
    return ask("llama-1b", "llama-8b") if args.device == "cuda" else ask()


def main():
    args = parse()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
    peers = ["sinter", "torch"] if args.torch else ["sinter"]
    rows, layer_rows = [], []
    with tempfile.TemporaryDirectory(prefix="sinter-coldstart-") as scratch:
        measurer = Measurer(args, scratch)
        configs = configurations(args)

        def file_of(config):
            path = pathlib.Path(scratch) / "config.json"
            path.write_text(json.dumps(config))
            return path

        if args.torch:
            say("into the page cache …")
            measurer.run([args.python, str(HERE / "torch_coldstart.py"), "--trivial", "--device", args.device], f"{scratch}/0")
        for name, config in configs.items():
            rows.append(measure(measurer, name, file_of(config), peers, args.rounds))
        for layers in filter(None, args.layers.split(",")):
            name, config = list(configs.items())[-1]
            config = config | {"n_layer" if "n_layer" in config else "num_hidden_layers": int(layers)}
            layer_rows.append(measure(measurer, f"{name}: {layers} layers", file_of(config),
                                      peers if args.torch_layers else ["sinter"], args.rounds))
    result = {"threads": args.threads, "tokens": args.tokens, "dtype": args.dtype, "device": args.device, "mode": args.mode,
              "configs": configs, "models": rows, "layers": layer_rows, "summary": verdicts(rows, args.device)}
    keep(args.out, result)
    if args.json:
        return print(json.dumps(result, indent=1))
    table(rows)
    if layer_rows:
        print()
        table(layer_rows)
    print("\n" + "\n".join(f"- {text}" for text in result["summary"]))
    print(f"\n{args.threads} threads, {args.tokens} tokens, {args.dtype}, medians of {args.rounds} rounds; ms from the start of a "
          "process to its first result without the making of weights. Stages are Sinter's.")


if __name__ == "__main__":
    main()
