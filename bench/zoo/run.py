#!/usr/bin/env python3
"""The zoo: PyTorch models that nobody here wrote, by every road into Sinter, beside eager torch.

  PYTHONPATH=build/python INTERPRETER bench/zoo/run.py [--roads pt2,decomposed,backend] [--out zoo.json] [--only TEXT] [--table]

Roads: `pt2`, a file of torch.export.save and load_exported; `decomposed`, the same after run_decompositions(); `onnx`, torch.onnx.export
and load_onnx; `backend`, torch.compile(backend="sinter"), results and (unless --no-gradients) a training step. --peer NAME measures
another backend of torch.compile beside it. The interpreter has torch, torchvision, transformers, timm and diffusers; onnx needs
onnxscript. build/bench/zoo has to be built, and the package for the backend.

Every model takes each road in a process of its own, one after the other, with limits of time and memory, from seeded weights and
inputs. Results are kept as they come, and a run begins where the last one ended; --again repeats what was not right, --table prints
what is there. What is right: compare.py. Models that draw random numbers are listed. Known failures: known.txt.
"""
import argparse
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
ZOO_BENCH = HERE.parent.parent / "build" / "bench" / "zoo"
FILES = ("pt2", "decomposed", "onnx")


def limit(options):
    resource.setrlimit(resource.RLIMIT_DATA, (options.memory << 30, options.memory << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (options.seconds, options.seconds + 30))


def in_child(run, options):
    """run(record) in a process of its own; the record as far as it came."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        limit(options)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        if not options.loud:
            os.dup2(nowhere, 2)
        record = {}
        # Where time is up what is there is told.
        signal.signal(signal.SIGXCPU, lambda *_: (os.write(writer, json.dumps(record | {"error": "took too long"}).encode()),
                                                  os._exit(0)))
        try:
            run(record)
        except BaseException as error:
            record["error"] = f"{type(error).__name__}: {error}"[:800]
            record["where"] = traceback.format_exc()[-800:]
        os.write(writer, json.dumps(record).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else {"error": f"the process ended with {status}"}


def bench(path, folder, options):
    """What build/bench/zoo says of a file, by stage."""
    command = [str(ZOO_BENCH), str(path), f"{folder}/recorded.safetensors"] + (["--gradients"] if options.file_gradients else [])
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = subprocess.run(command, stdout=out, stderr=err, preexec_fn=lambda: limit(options),
                              env={**os.environ, "SINTER_NUM_THREADS": str(options.threads)}).returncode
        out.seek(0)
        err.seek(0)
        stages = {line.pop("stage"): line for line in map(json.loads, filter(lambda l: l.startswith("{"), out))}
        last = err.read().strip().splitlines()[-1:] or [""]
    if code and "error" not in stages.get("imported", {}):
        stages["died"] = f"ended with {code}: {last[0][:300]}"
    return stages


def measure(name, build, record, roads, options):
    import roads as ways
    files = [r for r in FILES if r in roads]
    if files:
        folder = pathlib.Path(options.scratch, name.replace("/", "-"))
        kept = folder / "export.json"
        told = json.loads(kept.read_text()) if kept.exists() else {}
        if not all(r in told for r in files):
            folder.mkdir(parents=True, exist_ok=True)
            told = in_child(lambda r: ways.export(r, build, folder, files, options.file_gradients), options)
            kept.write_text(json.dumps(told))
        by_road = {r: told.pop(r, {}) for r in files}
        record["model"] = told
        for road, entry in by_road.items():
            path = folder / ("model.onnx" if road == "onnx" else f"{road}.pt2")
            if "error" not in told and "not exported" not in entry and path.exists():
                entry.update(bench(path, folder, options))
            record[road] = entry
            if table_of().state(record, road) == "wrong" and "rounding" not in record["model"]:
                record["model"].update(in_child(lambda r: ways.referee(r, build), options))
        if all(table_of().state(record, r) in table_of().DONE for r in files):
            shutil.rmtree(folder)
    for road, backend in [("backend", "sinter"), ("peer", options.peer)]:
        if road not in roads or not backend:
            continue
        with tempfile.TemporaryDirectory() as folder, stores_in(folder if options.times else None):
            record[road] = in_child(lambda r: ways.backend(r, build, backend, options.gradients, options.times), options)
        record[road]["backend"] = backend
        if road == "backend" and table_of().state(record, road) != "right":
            # Whether torch's own tracing gets it right.
            record[road]["aot_eager"] = in_child(lambda r: ways.backend(r, build, "aot_eager", options.gradients, False), options)
    return record


@contextlib.contextmanager
def stores_in(folder):
    """Empty stores, so that what compiling takes is that of a first time; without a folder as they are, which is quicker."""
    variables = ("SINTER_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    before = {v: os.environ.get(v) for v in variables}
    os.environ.update({v: folder for v in variables} if folder else {})
    yield
    for v in variables:
        os.environ.pop(v, None)
        os.environ.update({v: before[v]} if before[v] is not None else {})


def table_of():
    import table
    return table


def prepare(roads):
    """What all processes need, once."""
    warnings.filterwarnings("ignore")
    import logging
    import torch
    logging.disable(logging.CRITICAL)
    import torch.export, torch._dynamo, torch._functorch.aot_autograd, torch._decomp  # noqa
    for library in ("torchvision", "transformers", "timm", "diffusers", "onnxscript" if "onnx" in roads else "torch"):
        try:
            __import__(library)
        except ImportError:
            print(f"{library} is missing: its models fail", file=sys.stderr)
    if "backend" in roads:
        from sinter.torch_backend import backend
        if "sinter" not in torch._dynamo.list_backends():
            torch._dynamo.register_backend(name="sinter")(backend)
    return torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="zoo.json")
    parser.add_argument("--roads", default="pt2,decomposed,backend", help="some of pt2, decomposed, onnx, backend")
    parser.add_argument("--peer", help="a backend of torch.compile, measured too")
    parser.add_argument("--only", default="", help="models whose names contain one of these texts, with commas between")
    parser.add_argument("--every", type=int, default=1, help="one of so many models")
    parser.add_argument("--first", type=int, default=0, help="with --every: which")
    parser.add_argument("--again", action="store_true", help="also what was not right")
    parser.add_argument("--table", action="store_true", help="nothing is run: what is there, as Markdown")
    parser.add_argument("--no-gradients", dest="gradients", action="store_false")
    parser.add_argument("--file-gradients", action="store_true", help="gradients of imported files, too")
    parser.add_argument("--no-times", dest="times", action="store_false", help="quicker: kernels are kept from model to model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=400, help="of processor time for each process")
    parser.add_argument("--memory", type=int, default=10, help="GiB for each process")
    parser.add_argument("--scratch", default="zoo.files", help="folder for exported models; what is not right stays there")
    parser.add_argument("--loud", action="store_true", help="show what models print")
    options = parser.parse_args()
    table = table_of()
    records = json.loads(pathlib.Path(options.out).read_text()) if os.path.exists(options.out) else {}
    if options.table:
        return print(table.markdown(records))
    if not ZOO_BENCH.exists():
        sys.exit(f"{ZOO_BENCH} is missing: cmake --build build --target bench_zoo")
    os.environ.update({"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})
    wanted = [*options.roads.split(","), *(["peer"] if options.peer else [])]
    prepare(wanted).set_num_threads(options.threads)
    from models import ZOO
    names = [n for n in ZOO if any(text in n for text in options.only.split(","))][options.first::options.every]
    for number, name in enumerate(names, 1):
        record = dict(records.get(name, {}))
        roads = [r for r in wanted if r not in record or options.again and table.state(record, r) not in table.DONE]
        if not roads:
            continue
        start = time.time()
        records[name] = measure(name, ZOO[name], record, roads, options)
        pathlib.Path(options.out + ".new").write_text(json.dumps(records, indent=1))
        os.replace(options.out + ".new", options.out)
        told = "; ".join(table.tell(record, r) for r in roads)
        print(f"[{number}/{len(names)}] {name} {time.time() - start:.0f} s: {told}"[:400], file=sys.stderr, flush=True)
    print(table.summary({n: records[n] for n in names if n in records}))


if __name__ == "__main__":
    main()
