"""The roads a model of the zoo takes, each in a process of its own (run.py): `export` writes what bench/zoo.cpp reads, `backend` is
torch.compile, and `referee` is asked where results differ. Each fills a record as it goes, so that what was reached is known
where it ends early."""
import contextlib
import os
import time

import torch

from compare import RIGHT, Model, save, worst, worst_gradient


@contextlib.contextmanager
def timed(record, name):
    start = time.time()
    yield
    record[name] = time.time() - start


def rounding_of(model, results, record):
    """How far torch's own results in f32 are from those in f64, where the model runs in f64."""
    try:
        model.widen()
        record["rounding"] = worst(results, model.results(), dtypes=False)
    except Exception:  # whatever a model has against doubles
        pass


def export_onnx(model, path):
    """Writes the model and gives the number of its nodes."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        program = torch.onnx.export(model.module, tuple(model.fresh()), dynamo=True, verbose=False)
        program.save(path)
    graph = program.model_proto.graph
    stored = {tensor.name for tensor in graph.initializer}
    kept = [value for value in graph.input if value.name not in stored]
    if len(kept) != len(model.inputs):
        raise RuntimeError(f"{len(kept)} of {len(model.inputs)} inputs are left")
    return len(graph.node)


def export(record, build, folder, roads, gradients):
    """Writes model.pt2, decomposed.pt2 and model.onnx, as far as torch can, and what torch computes."""
    model = Model(build)
    record["parameters"] = sum(p.numel() for p in model.module.parameters())
    first, second = model.results(seed=1), model.results(seed=2)
    record["draws"] = not worst(first, second) == 0
    tensors = {f"input.{i}": t for i, t in enumerate(model.inputs)} | {f"output.{i}": t for i, t in enumerate(first)}
    program = None
    for road in roads:
        told = record[road] = {}
        try:
            with torch.no_grad(), timed(told, "export"):
                if road == "onnx":
                    told["nodes"] = export_onnx(model, f"{folder}/model.onnx")
                    continue
                program = program or torch.export.export(model.module, tuple(model.fresh()))
                written = program if road == "pt2" else program.run_decompositions()
                torch.export.save(written, f"{folder}/{road}.pt2")
                told["nodes"] = len(written.graph.nodes)
        except Exception as error:
            told["not exported"] = f"{type(error).__name__}: {error}"[:400]
    if gradients:
        tensors |= {f"grad.{n}": g for n, g in model.gradients().items()}
    save(f"{folder}/recorded.safetensors", tensors)


def referee(record, build):
    model = Model(build)
    rounding_of(model, model.results(seed=1), record)


def count(record):
    """What the backend tells of the graphs it was handed."""
    import sinter
    told = sinter.report()
    record.update(graphs=told.graphs, whole=told.whole, nodes=told.nodes, in_torch=dict(told.in_torch),
                  reasons={n: r[:200] for n, r in told.reasons.items()}, compiling=told.seconds)
    sinter.reset_report()


def step_time(run, least=3, seconds=0.5):
    """The best of a few calls."""
    times = []
    while len(times) < least or sum(times) < seconds and len(times) < 100:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def backend(record, build, name, gradients, times):
    """Two calls without gradients, and the gradients of one, beside eager torch."""
    model = Model(build)
    first, second = model.results(seed=1), model.results(seed=2)
    record["draws"] = not worst(first, second) == 0
    fast = torch.compile(model.module, backend=name)
    with timed(record, "cold"):
        have = model.results(fast)
    record["off"] = worst(have, first)
    record["again"] = worst(model.results(fast), first)
    if name == "sinter":
        count(record)
    if times:
        inputs = model.fresh()
        with torch.no_grad():
            record["step"] = step_time(lambda: fast(*inputs))
            record["eager step"] = step_time(lambda: model.module(*inputs))
    wanted = None
    if gradients:
        told = {}
        try:
            wanted = model.gradients()
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            record["not trained"] = f"{type(error).__name__}: {error}"[:200]
        if wanted:
            record["gradients"] = told
            torch._dynamo.reset()
            try:
                fast = torch.compile(model.module, backend=name)
                with timed(told, "cold"):
                    have = model.gradients(fast)
                told["off"], told["worst"] = worst_gradient(have, wanted)
            except Exception as error:
                told["error"] = f"{type(error).__name__}: {error}"[:600]
            if name == "sinter":
                count(told)
    if max(record["off"], record["again"], record.get("gradients", {}).get("off", 0)) > RIGHT:
        rounding_of(model, first, record)
        if "rounding" in record and wanted:
            with contextlib.suppress(Exception):
                record["gradients"]["rounding"] = worst_gradient(wanted, model.gradients())[0]
