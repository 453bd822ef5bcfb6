#!/usr/bin/env python3
"""What `sinter train` writes, read by transformers and PEFT themselves.

  bench/peers/trained_models.py --python INTERPRETER [--only llama-gqa,vit] [--steps 3]

Every architecture that `sinter train` takes is trained for a few steps, small, from the configurations in tests/data/models: language
models on a part of assets/moby-dick.txt, classifiers on pictures drawn here; and an adapter for the bundled model. What is compared: the
logits of transformers (f32, eager attention) or PEFT on the folder that was written, with those of `sinter forward`. A weight that is
missing there, or not asked for, is an error. The interpreter, or PEERS_PYTHON, needs torch, transformers and peft.
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SINTER = ROOT / "build" / "bin" / "sinter"
WORDS = ROOT / "assets" / "whale-5m"
MODELS = ROOT / "tests" / "data" / "models"
TOLERANCE = 2e-4  # of the largest logit


def run(*words):
    done = subprocess.run([str(SINTER), *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


def write_png(path, rows):
    """Rows of (r, g, b)."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def draw_pictures(folder):
    for name, low in (("bright", 140), ("dark", 0)):
        (folder / name).mkdir(parents=True)
        for i in range(12):
            rows = [[((7 * x + 13 * y + 29 * c + 41 * i) % 100 + low for c in range(3)) for x in range(40)] for y in range(36)]
            write_png(folder / name / f"{i}.png", [[tuple(pixel) for pixel in row] for row in rows])


def config_of(name, folder):
    """The configuration of a small model, with the words of the bundled tokenizer."""
    config = json.loads((MODELS / name / "config.json").read_text())
    if "vocab_size" in config:
        config["vocab_size"] = json.loads((WORDS / "config.json").read_text())["vocab_size"]
        for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
            if key in config:
                config[key] = 0
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return config, path


def logits_of_sinter(model, inputs, folder, *more):
    from safetensors.torch import load_file, save_file
    save_file(inputs, folder / "in.safetensors")
    run("forward", "--model", model, "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors", "--dtype", "f32",
        *more)
    return load_file(folder / "out.safetensors")["logits"]


def from_transformers(config, folder):
    import transformers
    kind = getattr(transformers, config["architectures"][0])
    model, told = kind.from_pretrained(folder, dtype="float32", attn_implementation="eager", output_loading_info=True)
    wrong = {key: sorted(told[key]) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") if told[key]}
    if wrong:
        raise RuntimeError(f"weights do not fit: {wrong}")
    return model.eval()


def difference(ours, theirs):
    return ((ours.float() - theirs.float()).abs().max() / theirs.abs().max()).item()


def compare_model(name, folder, steps):
    import torch
    config, path = config_of(name, folder)
    out = folder / "run"
    torch.manual_seed(0)
    if "vocab_size" in config:
        run("train", "--config", path, "--tokenizer", WORDS, "--data", text_in(folder), "--out", out, "--steps", steps, "--length", 16,
            "--batch", 4, "--lr", 0.01)
        inputs = {"input_ids": torch.randint(config["vocab_size"], (2, 12))}
    else:
        draw_pictures(folder / "pictures")
        run("train", "--config", path, "--data", folder / "pictures", "--out", out, "--steps", steps, "--batch", 4, "--held-out", 0.2)
        size = config.get("image_size", 64)
        inputs = {"pixel_values": torch.randn(2, config["num_channels"], size, size)}
    with torch.no_grad():
        theirs = from_transformers(config, out / "latest")(**inputs).logits
    return difference(logits_of_sinter(out / "latest", inputs, folder), theirs)


def text_in(folder):
    path = folder / "text.txt"
    path.write_text((ROOT / "assets" / "moby-dick.txt").read_text()[:20000])
    return path


def compare_adapter(folder, steps):
    import peft
    import torch
    import transformers
    common = ["train", "--model", WORDS, "--data", text_in(folder), "--steps", steps, "--length", 16, "--batch", 4, "--lr", 0.02,
              "--lora-rank", 4, "--save-dtype", "f32"]
    run(*common, "--out", folder / "adapter")
    run(*common, "--out", folder / "merged", "--merge")
    torch.manual_seed(0)
    inputs = {"input_ids": torch.randint(2048, (2, 12))}
    base = transformers.AutoModelForCausalLM.from_pretrained(WORDS, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        plain = base(**inputs).logits
        theirs = peft.PeftModel.from_pretrained(base, folder / "adapter" / "latest").eval()(**inputs).logits
    if difference(plain, theirs) < 10 * TOLERANCE:
        raise RuntimeError("the adapter changes nothing")
    return difference(logits_of_sinter(folder / "merged" / "latest", inputs, folder), theirs)


def trainable():
    """Configurations of language models and classifiers."""
    for path in sorted(MODELS.iterdir()):
        kind = json.loads((path / "config.json").read_text())["architectures"][0]
        if kind.endswith(("ForCausalLM", "LMHeadModel", "ForImageClassification")):
            yield path.name


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--python", default=os.environ.get("PEERS_PYTHON", sys.executable))
    arguments.add_argument("--only", default="", help="names out of tests/data/models, and `adapter`")
    arguments.add_argument("--steps", type=int, default=3)
    o = arguments.parse_args()
    if os.path.realpath(o.python) != os.path.realpath(sys.executable) or not os.environ.get("PEERS_RUNS"):
        words = [o.python, __file__, "--only", o.only, "--steps", str(o.steps)]
        sys.exit(subprocess.call(words, env={**os.environ, "PEERS_PYTHON": o.python, "PEERS_RUNS": "1"}))
    only = [name for name in o.only.split(",") if name]
    worst = failed = 0
    print("| trained by sinter | largest difference of logits, of the largest logit |\n|---|--:|")
    for name in [*trainable(), "adapter"]:
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            try:
                found = compare_adapter(folder, o.steps) if name == "adapter" else compare_model(name, folder, o.steps)
                worst = max(worst, found)
                wrong = found > TOLERANCE
                told = f"{found:.1e}" + (" **too much**" if wrong else "")
            except Exception as error:  # one that fails is told, and the others are still compared
                wrong, told = True, f"**{error}**"
            failed += wrong
            print(f"| {name} | {told} |", flush=True)
    print(f"\nlargest: {worst:.1e}; {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
