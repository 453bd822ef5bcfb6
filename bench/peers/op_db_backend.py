#!/usr/bin/env python3
"""The samples of torch.testing's op_db through the torch backend: results and gradients beside eager torch.

  PYTHONPATH=build/python bench/peers/op_db_backend.py --out results.json [--dtypes f32,bf16,i64,bool] [--most 6] [--only TEXT]

Each operator runs in a process of its own. A sample goes through AOTAutograd with the backend's decompositions, so that what is
compiled is what torch.compile would compile. Counted are samples that are whole (no node in torch) and right, and those that are partly
in torch; what is wrong is listed. Needs torch, numpy, scipy and expecttest.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import sys
import warnings
import zlib

DTYPES = ("f32", "f64", "f16", "bf16", "i64", "i32", "bool")
# Memory that nobody has written; what draws gives other numbers.
NOT_COMPARED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_")
TOLERANCE = {"float32": (2e-4, 2e-5), "float64": (1e-6, 1e-7), "bfloat16": (3e-2, 2e-2), "float16": (5e-3, 2e-3)}


def torch_dtype(name):
    import torch
    return {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
            "i32": torch.int32, "bool": torch.bool}[name]


def difference(have, want):
    """What differs, as a text; empty where nothing does."""
    import torch
    if have is None or want is None:
        given = want if have is None else have
        # No gradient is one of zeros.
        return "" if given is None or not given.any() else "a gradient is missing"
    if have.dtype != want.dtype or have.shape != want.shape:
        return f"{have.dtype}{list(have.shape)} for {want.dtype}{list(want.shape)}"
    if want.numel() == 0:
        return ""
    if want.dtype.is_complex:
        have, want = torch.view_as_real(have.resolve_conj()), torch.view_as_real(want.resolve_conj())
    relative, absolute = TOLERANCE.get(str(want.dtype).removeprefix("torch."), (0, 0))
    finite = want[want.isfinite()].abs().double() if want.is_floating_point() else want
    scale = max(1.0, finite.max().item()) if want.is_floating_point() and finite.numel() else 1.0
    if torch.allclose(have.detach().double(), want.detach().double(), rtol=relative, atol=absolute * scale, equal_nan=True):
        return ""
    off = (have.detach().double() - want.detach().double()).abs()
    return f"off by {off[off.isfinite()].max().item() if off.isfinite().any() else float('nan'):.3g} of {scale:.3g}"


def is_closer(have, want, exact):
    """Whether it is at most as far from what is exact as eager torch is, or half as far again."""
    if have is None or exact is None or have.shape != exact.shape:
        return False
    far = lambda x: (x.double() - exact.double()).abs().nan_to_num(0, 0, 0).max().item()
    return far(have) <= 1.5 * far(want)


def run_sample(op, sample, options):
    """'right', 'partly', 'torch', 'skipped: …' or what is wrong."""
    import torch
    import sinter
    HALVES = (torch.bfloat16, torch.float16)
    from functorch.compile import aot_function, min_cut_rematerialization_partition
    from sinter import torch_backend
    flat, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, dict(sample.kwargs)))
    at = [i for i, v in enumerate(flat) if isinstance(v, torch.Tensor)]
    if not at:
        return "skipped: no tensor operand"

    def call(*given):
        values = list(flat)
        for i, tensor in zip(at, given):
            values[i] = tensor
        input_, args, kwargs = torch.utils._pytree.tree_unflatten(values, spec)
        return [x for x in torch.utils._pytree.tree_leaves(op.op(input_, *args, **kwargs)) if isinstance(x, torch.Tensor)]

    def with_grads(run, widen=lambda t: t):
        given = [widen(flat[i].detach().clone()).requires_grad_(flat[i].requires_grad) for i in at]
        results = run(*given)
        roots = [r for r in results if r.requires_grad]
        grads = []
        if roots:
            generator = torch.Generator().manual_seed(7)
            seeds = [torch.randn(r.shape, generator=generator, dtype=torch.float64).to(r.dtype) for r in roots]
            grads = torch.autograd.grad(roots, [g for g in given if g.requires_grad], seeds, allow_unused=True)
        return [r.detach() for r in results], list(grads)

    # Some operators set a seed themselves, so that gradcheck sees no difference.
    set_seed = torch.manual_seed

    def seeded(seed):
        torch.manual_seed = lambda _: set_seed(seed)
        set_seed(seed)
        return with_grads(call)
    try:
        (again, _), (want, want_grads) = seeded(1), seeded(0)
    except Exception as error:
        return f"skipped: torch: {type(error).__name__}"
    finally:
        torch.manual_seed = set_seed
    if any(difference(a, b) for a, b in zip(again, want)):
        return "skipped: random"
    sinter.reset_report()
    compiler = lambda graph, _: torch_backend.compile_with_rest(graph, {}, False)
    try:
        run = aot_function(call, compiler, compiler, partition_fn=min_cut_rematerialization_partition,
                           decompositions=torch_backend.decompositions(), inference_compiler=compiler)
        have, grads = with_grads(run)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return ("" if isinstance(error, (sinter.Error, torch_backend.Unsupported)) else "skipped: AOTAutograd: ") + text[:300]
    told = sinter.report()

    def truth():
        """What results and gradients would be without the rounding of half precision."""
        try:
            return [x for part in with_grads(call, lambda t: t.float() if t.dtype in HALVES else t) for x in part]
        except Exception:
            return []

    number = -1
    for name, a, b in [("result", have, want), ("gradient", grads, want_grads)]:
        if len(a) != len(b):
            return f"{len(a)} {name}s for {len(b)}"
        for x, y in zip(a, b):
            number += 1
            if problem := difference(x, y):
                exact = truth() if y is not None and y.dtype in HALVES else []
                if number < len(exact) and is_closer(x, y, exact[number]):
                    continue
                return f"{name}: {problem}" + (f" (in torch: {dict(told.in_torch)})" if told.in_torch else "")
    if not told.programs:
        return "torch: " + ", ".join(told.in_torch)
    return "partly: " + ", ".join(told.in_torch) if told.in_torch else "right"


def run_op(op, options):
    import torch
    out = {}
    for name in options.dtypes.split(","):
        dtype = torch_dtype(name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        try:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point))
        except Exception as error:
            out[name] = {f"skipped: samples: {type(error).__name__}": 1}
            continue
        random.Random(zlib.crc32(f"{op.name}{name}".encode())).shuffle(samples)
        counts = out[name] = {}
        for sample in samples[:options.most]:
            what = run_sample(op, sample, options)
            counts[what] = counts.get(what, 0) + 1
    return out


def in_child(op, options):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.write(writer, json.dumps(run_op(op, options)).encode())
        os._exit(0)
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(options.seconds)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    signal.alarm(0)
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text else {"died": {f"ended with {status}": 1}}


def summary(records):
    kinds = {"right": 0, "partly": 0, "torch": 0, "skipped": 0}
    wrong = {}
    for name, by_dtype in records.items():
        for dtype, counts in by_dtype.items():
            for what, count in counts.items():
                kind = what.partition(":")[0]
                if kind in kinds:
                    kinds[kind] += count
                else:
                    wrong.setdefault(f"{name} {dtype}", []).append((what, count))
    bad = sum(count for list_ in wrong.values() for _, count in list_)
    print(f"{len(records)} operators: {kinds['right']} samples whole and right, {kinds['partly']} right and partly in torch, {bad} wrong; "
          f"{kinds['torch']} in torch, {kinds['skipped']} skipped (torch cannot trace them, they draw, or have no tensor)")
    for name, list_ in sorted(wrong.items()):
        for what, count in list_:
            print(f"  {name}: {count} × {what[:240]}".replace("\n", " "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="op_db_backend.json")
    parser.add_argument("--dtypes", default="f32,bf16,i64,bool")
    parser.add_argument("--most", type=int, default=6, help="samples of an operator and dtype")
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="also operators of which something was wrong")
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    import torch
    torch.set_num_threads(1)
    from torch.testing._internal.common_methods_invocations import op_db
    import functorch.compile, sinter.torch_backend  # noqa: before the processes part
    records = json.loads(pathlib.Path(options.out).read_text()) if os.path.exists(options.out) else {}
    names = {}
    for op in op_db:
        if options.only in op.name and op.name not in NOT_COMPARED:
            names[op.name + (f"-{op.variant_test_name}" if op.variant_test_name else "")] = op
    is_wrong = lambda r: any(w.partition(":")[0] not in ("right", "partly", "torch", "skipped") for c in r.values() for w in c)
    for number, (name, op) in enumerate(list(names.items())[::options.every], 1):
        if name in records and not (options.again and is_wrong(records[name])):
            continue
        records[name] = in_child(op, options)
        pathlib.Path(options.out).write_text(json.dumps(records, indent=1))
        print(f"[{number}] {name}: {records[name]}"[:200], file=sys.stderr, flush=True)
    summary(records)


if __name__ == "__main__":
    main()
