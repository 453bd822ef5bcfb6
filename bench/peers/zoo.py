#!/usr/bin/env python3
"""PyTorch models through torch.export and load_exported: built, exported, imported, right eagerly and compiled, gradients.

  bench/peers/zoo.py --models ZOO.py --python INTERPRETER --out results.json [--only TEXT] [--every 4] [--decomposed] [--gradients]

With --onnx they go through torch.onnx.export and load_onnx instead, which needs onnxscript.

ZOO.py has a dictionary ZOO of names to functions that give (module, inputs). Every model is exported and run in processes of its
own with limits of time and memory, on seeded weights and inputs. Results are kept as they come, and a run begins where the last one
ended. A result is right within 1e-3 of its norm. Models that draw random numbers are told apart by two runs in PyTorch.
"""
import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ZOO_BENCH = HERE.parent.parent / "build" / "bench" / "zoo"
RIGHT = 1e-3
STAGES = ["imported", "eager", "compiled", "in segments", "gradients"]


def load_zoo(path):
    spec = importlib.util.spec_from_file_location("zoo_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ZOO


# --- one model, in a process of its own

def save(path, tensors):
    import torch
    types = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
             torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
    header, data, at = {}, [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def tell(**what):
    print(json.dumps(what), flush=True)


def flat_tensors(out):
    import torch
    leaves = torch.utils._pytree.tree_leaves(out)
    return [t if isinstance(t, torch.Tensor) else torch.tensor(t) for t in leaves if t is not None and not isinstance(t, str)]


def export_onnx(model, inputs, path):
    """Writes the model and gives the number of its nodes."""
    import torch
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        program = torch.onnx.export(model, tuple(inputs), dynamo=True, verbose=False)
        program.save(path)
    graph = program.model_proto.graph
    stored = {tensor.name for tensor in graph.initializer}
    kept = [value for value in graph.input if value.name not in stored]
    if len(kept) != len(inputs):
        raise RuntimeError(f"{len(kept)} of {len(inputs)} inputs are left")
    return len(graph.node)


def export_one(options):
    """Builds and exports a model, and records its results: lines of JSON, as bench/zoo.cpp prints them."""
    import logging
    import warnings

    import torch
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    zoo = load_zoo(options.models)
    torch.manual_seed(0)
    start = time.time()
    model, inputs = zoo[options.one]()
    inputs = torch.utils._pytree.tree_leaves(inputs)
    tell(stage="built", seconds=time.time() - start, parameters=sum(p.numel() for p in model.parameters()))
    fresh = lambda: [t.clone() for t in inputs]
    state = {n: b.clone() for n, b in model.named_buffers()}

    def results(seed):
        torch.manual_seed(seed)
        with torch.no_grad():
            out = [t.clone() for t in flat_tensors(model(*fresh()))]
            for name, buffer in model.named_buffers():
                buffer.copy_(state[name])
        return out
    first, second = results(1), results(2)
    draws = any(a.shape != b.shape or not torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) for a, b in zip(first, second))
    tensors = {f"input.{i}": t for i, t in enumerate(inputs)} | {f"output.{i}": t for i, t in enumerate(first)}
    start = time.time()
    with torch.no_grad():
        if options.onnx:
            nodes = export_onnx(model, fresh(), f"{options.folder}/model.onnx")
        else:
            program = torch.export.export(model, tuple(fresh()))
            if options.decomposed:
                program = program.run_decompositions()
            torch.export.save(program, f"{options.folder}/model.pt2")
            nodes = len(program.graph.nodes)
    tell(stage="exported", seconds=time.time() - start, nodes=nodes, draws=draws)
    if options.gradients:
        out = flat_tensors(model(*fresh()))
        loss = sum((t * torch.arange(t.numel()).float().cos().view(t.shape)).sum() for t in out
                   if t.is_floating_point() and t.requires_grad)
        loss.backward()
        tensors |= {f"grad.{n}": p.grad for n, p in model.named_parameters() if p.grad is not None}
    save(f"{options.folder}/recorded.safetensors", tensors)
    tell(stage="recorded")


# --- all of them

def limited(command, seconds, memory, environment):
    """The lines of JSON that a process prints, and why it ended where it did not end well."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            code = subprocess.run(command, stdout=out, stderr=err, timeout=seconds, preexec_fn=limit,
                                  env={**os.environ, **environment}).returncode
            why = "" if code == 0 else f"ended with {code}"
        except subprocess.TimeoutExpired:
            why = f"took more than {seconds} s"
        out.seek(0)
        err.seek(0)
        lines = [json.loads(line) for line in out.read().splitlines() if line.startswith("{")]
        last = err.read().strip().splitlines()[-1:] or [""]
        return lines, f"{why}: {last[0][:300]}" if why else ""


def measure(name, options):
    record = {}
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        flags = [flag for flag in ("decomposed", "gradients", "onnx") if getattr(options, flag)]
        export = [options.python, __file__, "--models", options.models, "--one", name, "--folder", folder, *[f"--{f}" for f in flags]]
        quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        lines, why = limited(export, options.seconds, 64 << 30, quiet)
        record.update({line.pop("stage"): line for line in lines})
        if why or "recorded" not in record:
            return {**record, "export failed": why}
        run = [str(ZOO_BENCH), f"{folder}/model.{'onnx' if options.onnx else 'pt2'}", f"{folder}/recorded.safetensors"]
        lines, why = limited(run + (["--gradients"] if options.gradients else []), options.seconds, 64 << 30,
                             {"SINTER_NUM_THREADS": str(options.threads)})
        record.update({line.pop("stage"): line for line in lines})
        if why and "imported" in record and "error" not in record["imported"]:
            record["died"] = why
    return record


def is_right(record, stage):
    told = record.get(stage, {})
    return "off" in told and told["off"] is not None and told["off"] <= RIGHT


def summary(records):
    exported = {n: r for n, r in records.items() if "recorded" in r}
    steady = {n: r for n, r in exported.items() if not r["exported"]["draws"]}
    count = lambda among, holds: sum(1 for r in among.values() if holds(r))
    print(f"\n{len(records)} models, {count(records, lambda r: 'built' in r)} built, {len(exported)} exported, "
          f"{count(exported, lambda r: 'error' not in r.get('imported', {'error': 1}))} imported, "
          f"{len(exported) - len(steady)} of them draw random numbers; of the {len(steady)} others:")
    for stage in STAGES[1:]:
        print(f"  {stage}: {count(steady, lambda r: is_right(r, stage))} right")
    for name, record in sorted(steady.items()):
        wrong = [s for s in ("imported", "eager", "compiled", "in segments", "gradients") if s in record and ("error" in record[s] or s != "imported" and not is_right(record, s))]
        for stage in wrong:
            told = record[stage]
            print(f"  {name}: {stage}: {str(told.get('error', told.get('off')))[:300]}")
        if "died" in record:
            print(f"  {name}: {record['died']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", required=True)
    parser.add_argument("--python", default=os.environ.get("PEERS_PYTHON", "python3"))
    parser.add_argument("--out", default="zoo.json")
    parser.add_argument("--only", default="", help="models whose names contain this text")
    parser.add_argument("--every", type=int, default=1, help="one of so many models")
    parser.add_argument("--again", action="store_true", help="also models that were not right")
    parser.add_argument("--decomposed", action="store_true")
    parser.add_argument("--onnx", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300, help="for each process")
    parser.add_argument("--scratch", help="folder for exported models")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--names", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.names:
        return print("\n".join(load_zoo(options.models)))
    if options.one:
        return export_one(options)
    names = subprocess.run([options.python, __file__, "--models", options.models, "--names"], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    names = [n for n in names if n and options.only in n][::options.every]
    records = json.loads(pathlib.Path(options.out).read_text()) if os.path.exists(options.out) else {}
    for number, name in enumerate(names, 1):
        done = records.get(name)
        if done and not (options.again and not is_right(done, "compiled")):
            continue
        records[name] = measure(name, options)
        pathlib.Path(options.out + ".new").write_text(json.dumps(records, indent=1))
        os.replace(options.out + ".new", options.out)
        told = " ".join(f"{s}={'wrong' if not is_right(records[name], s) else 'right'}" for s in STAGES[1:] if s in records[name])
        print(f"[{number}/{len(names)}] {name}: {told or records[name].get('imported', {}).get('error') or 'not exported'}"[:240],
              file=sys.stderr, flush=True)
    summary({n: records[n] for n in names if n in records})


if __name__ == "__main__":
    main()
