#!/usr/bin/env python3
"""Torch beside Sinter on the GPU, as a table in Markdown.

table.py --torch torch.json --sinter llama-1b.json llama-8b.json bert.json resnet.json [--bandwidth 4.27]

The first is what torch_peers.py writes; the others what gpu_steps prints, all modes of a model in one file:
  gpu_steps llama-1b > llama-1b.json
  gpu_steps bert-base --batch 8 --prompt 128 > bert.json
  gpu_steps resnet-50 --batch 16 > resnet.json
`sinter bench --json` prints the same rows, timed by the host's clock with its waiting.
Times are medians in ms with the 99th percentile behind them. The ratio is torch.compile's median by that of Sinter's
best mode. First calls are in seconds, with empty caches; for a Llama, prefill and decode together. The floor is the
time to read the weights once.
"""
import argparse
import json
import pathlib

# row -> what it is called, Sinter's configuration, its key of the times, batch, prompt, whether the floor is the weights
ROWS = {
    "llama-1b-decode": ("Llama 1B decode step", "llama-1b", "decode_ms", 1, 512, True),
    "llama-1b-prefill": ("Llama 1B prefill 512", "llama-1b", "prefill_ms", 1, 512, False),
    "llama-8b-decode": ("Llama 8B decode step", "llama-8b", "decode_ms", 1, 512, True),
    "llama-8b-prefill": ("Llama 8B prefill 512", "llama-8b", "prefill_ms", 1, 512, False),
    "bert-base": ("BERT-base 8 x 128", "bert-base", "prefill_ms", 8, 128, False),
    "resnet-50": ("ResNet-50, 16 images", "resnet-50", "prefill_ms", 16, None, False),
}
AIMS = {"llama-1b-decode": 0.75, "llama-1b-prefill": 2.2, "llama-8b-decode": 4.0, "llama-8b-prefill": 12.0,
        "bert-base": 0.85, "resnet-50": 1.05}
MODES = ("eager", "default", "reduce-overhead", "max-autotune")


def sinter_rows(files):
    rows = [row for file in files for row in json.loads(pathlib.Path(file).read_text())]
    return [row for row in rows if "workload" not in row]


def sinter_of(rows, name):
    """mode -> Sinter's row for one line of the table."""
    _, model, key, batch, prompt, _ = ROWS[name]
    fits = lambda row: (pathlib.Path(row["model"]).name == model and row["batch"] == batch and row.get(key)
                        and (prompt is None or row["prompt"] == prompt))
    return {row["mode"]: row for row in rows if fits(row)}


def milliseconds(times):
    return f"{times['p50']:.2f} ({times['p99']:.2f})" if times else "-"


def gigabytes(count):
    return f"{count / 1e9:.2f}" if count else "-"


def first_calls(rows, name, mode):
    """Torch's seconds until a model has answered: both of a Llama's graphs are compiled for it."""
    wanted = [other for other in ROWS if ROWS[other][1] == ROWS[name][1]]
    found = [row["first_s"] for row in rows if row["row"] in wanted and row["mode"] == mode and "first_s" in row]
    return " + ".join(f"{s:.1f}" for s in found) if found else "-"


def line_of(name, torch_rows, ours, bandwidth):
    title, key, weights = ROWS[name][0], ROWS[name][2], ROWS[name][5]
    torch = {row["mode"]: row for row in torch_rows if row["row"] == name}
    times = {mode: row[key] for mode, row in ours.items()}
    compiled = {mode: t for mode, t in times.items() if mode != "eager"}
    best = min(compiled, key=lambda mode: compiled[mode]["p50"], default=None)
    fastest = min((row["ms"]["p50"] for mode, row in torch.items() if mode != "eager" and "ms" in row), default=None)
    cell = lambda mode: milliseconds(torch[mode]["ms"]) if "ms" in torch.get(mode, {}) else \
        "failed" if mode in torch else "-"
    ratio = f"{fastest / compiled[best]['p50']:.2f}" if best and fastest else "-"
    floor = "-"
    if weights and best and ours[best].get("parameters"):
        floor = f"{2 * ours[best]['parameters'] / (bandwidth * 1e9):.2f}"
    peak = gigabytes(torch.get("reduce-overhead", {}).get("peak_bytes"))
    first = f"{ours[best]['first_call_s']:.2f}" if best else "-"
    return ([title, cell("eager"), cell("default"), cell("reduce-overhead"), cell("max-autotune")] +
            [milliseconds(times.get(mode)) for mode in MODES] +
            [ratio, floor, f"{AIMS[name]:.2f}", first_calls(torch_rows, name, "reduce-overhead"), first, peak,
             gigabytes(ours[best]["peak_bytes"]) if best else "-"])


HEADINGS = (["work"] + [f"torch {mode}" for mode in MODES] + [f"sinter {mode}" for mode in MODES] +
            ["torch.compile / sinter", "floor ms", "aim ms", "first calls s: torch reduce-overhead",
             "first call s: sinter", "peak GB: torch reduce-overhead", "peak GB: sinter"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="the JSON of torch_peers.py")
    parser.add_argument("--sinter", nargs="*", default=[], help="what `sinter bench --json` printed")
    parser.add_argument("--bandwidth", type=float, default=4.27, help="TB/s of the device, for the floor")
    args = parser.parse_args()
    torch_rows = json.loads(pathlib.Path(args.torch).read_text()) if args.torch else []
    rows = sinter_rows(args.sinter)
    lines = [line_of(name, torch_rows, sinter_of(rows, name), args.bandwidth) for name in ROWS
             if sinter_of(rows, name) or any(row["row"] == name for row in torch_rows)]
    # A mode that nobody measured needs no column.
    kept = [i for i in range(len(HEADINGS)) if any(line[i] != "-" for line in lines)] or list(range(len(HEADINGS)))
    for line in [HEADINGS, ["---"] * len(HEADINGS)] + lines:
        print("| " + " | ".join(line[i] for i in kept) + " |")
    wrong = [f"{row['row']} {row['mode']} {row['error']:.3f}" for row in torch_rows if (row.get("error") or 0) > 0.05]
    if wrong:
        print("\nFar from f32: " + ", ".join(wrong))
    devices = sorted({f"{row['device']}, torch {row['torch']}" for row in torch_rows})
    if devices:
        print("\n" + "; ".join(devices))


if __name__ == "__main__":
    main()
