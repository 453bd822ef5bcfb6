#!/usr/bin/env python3
"""PyTorch models through torch.compile(backend="sinter"): captured, right against eager, gradients, and what stays in torch.

  PYTHONPATH=build/python bench/peers/zoo_backend.py --models ZOO.py --out results.json [--only TEXT] [--every 4] [--gradients]

ZOO.py as for zoo.py. The interpreter has torch, and what the models need; every model runs in a process of its own with limits of
time and memory, on seeded weights and inputs. Results are kept as they come, and a run begins where the last one ended. A result is
right within 1e-3 of its norm; models that draw random numbers are told apart by two eager runs, and the rounding of a model by
one in f64. With --peer NAME another backend is measured in Sinter's place.
"""
import argparse
import json
import logging
import os
import pathlib
import resource
import signal
import sys
import time
import traceback
import warnings

from zoo import flat_tensors, load_zoo

RIGHT = 1e-3
CANCELLED = 1e-3  # gradients below this share of the largest are rounding


def distance(have, want, least=0.0):
    import torch
    if have.shape != want.shape or have.dtype != want.dtype:
        return float("inf")
    if want.is_complex():
        have, want = torch.view_as_real(have.resolve_conj()), torch.view_as_real(want.resolve_conj())
    have, want = have.detach().double(), want.detach().double()
    same = (have == want) | (have.isnan() & want.isnan())
    if bool(same.all()):
        return 0.0
    size = max(want[want.isfinite()].norm().item(), least)
    off = (have - want).masked_fill(same, 0).norm().item()
    return off / size if size > 0 else off


def seeded_run(call, seed=1):
    import torch
    torch.manual_seed(seed)
    return call()


def loss_of(out):
    import torch
    return sum((t * torch.arange(t.numel()).to(t.dtype).cos().view(t.shape)).sum() for t in flat_tensors(out)
               if t.is_floating_point() and t.requires_grad)


def grads_of(model, call):
    model.zero_grad()
    seeded_run(lambda: loss_of(call())).backward()
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def worst(pairs):
    return max(pairs, default=0.0)


def count(record):
    import sinter
    told = sinter.report()
    record.update(graphs=told.graphs, whole=told.whole, nodes=told.nodes, in_torch=dict(told.in_torch),
                  reasons={n: r[:200] for n, r in told.reasons.items()}, compiling=told.seconds)


def measure(build, backend, gradients):
    """A record of one model."""
    import torch
    import sinter
    torch.manual_seed(0)
    model, inputs = build()
    inputs = torch.utils._pytree.tree_leaves(inputs)
    state = {n: b.clone() for n, b in model.named_buffers()}

    def fresh():
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in state and buffer.shape == state[name].shape:
                    buffer.copy_(state[name])
        return [t.clone() for t in inputs]

    record = {}
    with torch.no_grad():
        first, second = ([t.clone() for t in flat_tensors(seeded_run(lambda: model(*fresh()), seed))] for seed in (1, 2))
        record["draws"] = any(distance(a, b) > 0 for a, b in zip(first, second))
        fast = torch.compile(model, backend=backend)
        start = time.time()
        have = flat_tensors(seeded_run(lambda: fast(*fresh())))
        record["cold"] = time.time() - start
        record["off"] = worst([distance(a, b) for a, b in zip(have, first)]) if len(have) == len(first) else float("inf")
        again = flat_tensors(seeded_run(lambda: fast(*fresh())))
        record["again"] = worst([distance(a, b) for a, b in zip(again, first)])
        if backend == "sinter":
            count(record)
            sinter.reset_report()
    if gradients:
        wanted = None
        try:
            wanted = grads_of(model, lambda: model(*fresh()))
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            record["eager gradients"] = str(error)[:200]
        if wanted:
            torch._dynamo.reset()
            told = record["gradients"] = {}
            fast = torch.compile(model, backend=backend)
            try:
                start = time.time()
                have = grads_of(model, lambda: fast(*fresh()))
                told["cold"] = time.time() - start
                largest = max(g.norm().item() for g in wanted.values())
                offs = {n: distance(have[n], g, CANCELLED * largest) if n in have else float("inf") for n, g in wanted.items()}
                told["worst"] = max(offs, key=offs.get)
                told["off"] = offs[told["worst"]]
            except Exception as error:
                told["error"] = f"{type(error).__name__}: {error}"[:600]
            if backend == "sinter":
                count(told)
    return record


def in_child(build, options):
    """Runs measure() in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (options.memory << 30, options.memory << 30))
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            if not options.loud:
                os.dup2(nothing.fileno(), 2)
        try:
            record = measure(build, options.peer or "sinter", options.gradients)
        except BaseException as error:
            record = {"error": f"{type(error).__name__}: {error}"[:600], "where": traceback.format_exc()[-600:]}
        os.write(writer, json.dumps(record).encode())
        os._exit(0)
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(options.seconds)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    signal.alarm(0)
    status = os.waitpid(child, 0)[1]
    if text:
        return json.loads(text)
    return {"error": f"took more than {options.seconds} s" if status == signal.SIGKILL else f"the process ended with {status}"}


def is_right(record):
    return record.get("off", 1) <= RIGHT and record.get("again", 1) <= RIGHT


def summary(records, peer):
    ran = {n: r for n, r in records.items() if "error" not in r}
    steady = {n: r for n, r in ran.items() if not r["draws"]}
    right = [n for n, r in steady.items() if is_right(r)]
    print(f"\n{len(records)} models, {len(ran)} ran, {len(ran) - len(steady)} of them draw random numbers; of the {len(steady)} others "
          f"{len(right)} are right")
    if not peer:
        nodes, in_torch = sum(r["nodes"] for r in ran.values()), sum(sum(r["in_torch"].values()) for r in ran.values())
        print(f"  no node in torch: {sum(not r['in_torch'] for r in ran.values())} of {len(ran)}; {in_torch} of {nodes} nodes")
    trained = {n: r["gradients"] for n, r in steady.items() if "gradients" in r}
    if trained:
        print(f"  gradients: {sum(r.get('off', 1) <= RIGHT for r in trained.values())} of {len(trained)} right")
        if not peer:
            print(f"  no node of a training step in torch: {sum(not r.get('in_torch') for r in trained.values())} of {len(trained)}")
    for name, record in sorted(records.items()):
        problems = []
        if "error" in record:
            problems.append(record["error"])
        elif not record["draws"] and not is_right(record):
            problems.append(f"off by {record['off']:.2g}, {record['again']:.2g}")
        told = record.get("gradients", {})
        if "error" in told:
            problems.append("gradients: " + told["error"])
        elif not record.get("draws") and told.get("off", 0) > RIGHT:
            problems.append(f"gradients off by {told['off']:.2g} ({told['worst']})")
        for where, r in (("", record), ("backward: ", told)):
            problems += [f"{where}in torch: {f} × {k} ({r['reasons'].get(f, '')[:120]})" for f, k in r.get("in_torch", {}).items()]
        for problem in problems:
            print(f"  {name}: {problem[:300]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", required=True)
    parser.add_argument("--out", default="zoo_backend.json")
    parser.add_argument("--only", default="", help="models whose names contain this text")
    parser.add_argument("--every", type=int, default=1, help="one of so many models")
    parser.add_argument("--first", type=int, default=0, help="with --every: which")
    parser.add_argument("--again", action="store_true", help="also models that were not right")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--peer", help="a backend of torch.compile to measure instead")
    parser.add_argument("--seconds", type=int, default=300, help="for each model")
    parser.add_argument("--memory", type=int, default=64, help="GiB for each model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--loud", action="store_true", help="show what models print")
    options = parser.parse_args()
    os.environ.update({"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})
    warnings.filterwarnings("ignore")
    import torch
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(options.threads)
    import torch._dynamo, torch._functorch.aot_autograd  # noqa: before the processes part
    if not options.peer:
        from sinter.torch_backend import backend
        torch._dynamo.register_backend(name="sinter")(backend) if "sinter" not in torch._dynamo.list_backends() else None
    zoo = load_zoo(options.models)
    names = [n for n in zoo if options.only in n][options.first::options.every]
    records = json.loads(pathlib.Path(options.out).read_text()) if os.path.exists(options.out) else {}
    for number, name in enumerate(names, 1):
        done = records.get(name)
        if done and not (options.again and ("error" in done or not is_right(done) or done.get("in_torch") or
                                            (options.gradients and done.get("gradients", {}).get("off", 1) > RIGHT))):
            continue
        start = time.time()
        record = records[name] = in_child(zoo[name], options)
        pathlib.Path(options.out + ".new").write_text(json.dumps(records, indent=1))
        os.replace(options.out + ".new", options.out)
        told = record.get("error") or f"off {record['off']:.1g} gradients {record.get('gradients', {}).get('off', '')} {record.get('in_torch', '')}"
        print(f"[{number}/{len(names)}] {name} {time.time() - start:.1f} s: {told}"[:240], file=sys.stderr, flush=True)
    summary({n: records[n] for n in names if n in records}, options.peer)


if __name__ == "__main__":
    main()
