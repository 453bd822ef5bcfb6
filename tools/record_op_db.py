#!/usr/bin/env python3
"""What PyTorch gives for the sample inputs of its own test data base.

For every operator of torch.testing._internal.common_methods_invocations.op_db and every sample of it one line of JSON, with the
graph of ATen calls that the operator is (as torch.export would write it), and beside it a safetensors file with operands, results
and gradients. build/bin/op_db_check runs them.

  record_op_db.py OUT                           # everything: some hundred megabytes
  record_op_db.py OUT --most 2 --bytes 2000     # a part: at most so many samples of an operator, chosen by a seed, no larger than that
  record_op_db.py OUT --of FOLDER,FOLDER --most 1 --bytes 1500
                                                # of what is recorded already a part, in one pair of files OUT

Needs torch, numpy, safetensors, expecttest and scipy.
"""
import argparse
import glob
import json
import os
import random
import warnings
import zlib

import torch
from safetensors.torch import load_file, save_file
from torch._export.serde.serialize import EnumEncoder, GraphModuleSerializer, _dataclass_to_dict
from torch.export.graph_signature import ExportGraphSignature
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i64": torch.int64, "bool": torch.bool,
          "c64": torch.complex64, "c128": torch.complex128}
NAMES = {dtype: name for name, dtype in DTYPES.items()} | {torch.float16: "f16", torch.int32: "i32", torch.int16: "i16",
                                                           torch.int8: "i8", torch.uint8: "u8"}

# Operators of whose results nothing is certain.
NOT_COMPARED = dict.fromkeys(["empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
                              "resize_", "resize_as_"], "memory that nobody has written")

# Of equal elements any may be the one whose position is told.
POSITIONS = {"argsort", "kthvalue", "mode", "topk", "sort", "median", "nanmedian"}

# Factors are unique but for signs and bases: of these the function of them that is, which the data base gives with each sample.
COMPARED_IN_PART = {"linalg.svd", "svd", "linalg.eigh", "linalg.eig", "svd_lowrank", "pca_lowrank"}

# Eigenvalues of any matrix come in any order: they are recorded along a direction in which few are equal.
ANY_ORDER = {"linalg.eig", "linalg.eigvals"}


def in_order(results):
    values, *vectors = results if isinstance(results, tuple) else (results,)
    order = (values.real + 0.37 * values.imag).argsort(-1)
    return (values.gather(-1, order), *(v.gather(-1, order.unsqueeze(-2).expand(v.shape)) for v in vectors))


class Skip(Exception):
    """A sample that nothing can be recorded of; the text says why."""


def span_of(sizes, strides):
    return 0 if 0 in sizes else 1 + sum((n - 1) * s for n, s in zip(sizes, strides))


class Tensors:
    """Operands and results of a file: the memory of those of one dtype lies one behind another."""

    def __init__(self):
        self.memory = {}

    def add(self, tensor):
        tensor = tensor.detach().resolve_conj().resolve_neg()
        if tensor.layout != torch.strided or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise Skip("a tensor that is not strided")
        if tensor.dtype not in NAMES:
            raise Skip(f"dtype {tensor.dtype}")
        span = span_of(tensor.shape, tensor.stride())
        pieces = self.memory.setdefault(NAMES[tensor.dtype], [])
        at = sum(len(piece) for piece in pieces)
        pieces.append(tensor.as_strided((span,), (1,)).clone())
        return {"dtype": NAMES[tensor.dtype], "at": at, "sizes": list(tensor.shape), "strides": list(tensor.stride())}

    def adopt(self, other):
        """Adds what another has; the places in the records of the other are moved."""
        moved = {name: sum(len(piece) for piece in self.memory.get(name, [])) for name in other.memory}
        for name, pieces in other.memory.items():
            self.memory.setdefault(name, []).extend(pieces)
        return moved

    def bytes(self):
        return sum(piece.numel() * piece.element_size() for pieces in self.memory.values() for piece in pieces)

    def save(self, path):
        joined = {name: torch.cat(pieces) for name, pieces in self.memory.items()}
        save_file({name: torch.view_as_real(t).clone() if t.is_complex() else t for name, t in joined.items()}, path)


def move(record, moved):
    for kind in ("inputs", "outputs", "seeds", "grads"):
        for meta in record.get(kind, []):
            if meta is not None:
                meta["at"] += moved[meta["dtype"]]


class Recording:
    """A pair of files: what is known of each sample, and the tensors."""

    def __init__(self, path):
        self.path, self.tensors, self.records = path, Tensors(), []

    def add(self, record, tensors):
        move(record, self.tensors.adopt(tensors))
        self.records.append(record)

    def save(self):
        if not self.records:
            return
        self.tensors.save(self.path + ".safetensors")
        with open(self.path + ".jsonl", "w") as f:
            for record in self.records:
                f.write(json.dumps(record, cls=EnumEncoder, separators=(",", ":")) + "\n")


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def program_of(graph_module):
    """The graph as a .pt2 file has it, but for what the checker knows without being told."""
    graph = plain(_dataclass_to_dict(GraphModuleSerializer(ExportGraphSignature([], []), []).serialize_graph(graph_module)))
    nodes = [{"target": node["target"], "inputs": [{"name": i["name"], "arg": i["arg"]} for i in node["inputs"]],
              "outputs": node["outputs"]} for node in graph["nodes"]]
    return {"inputs": [i["as_tensor"]["name"] for i in graph["inputs"]], "nodes": nodes, "outputs": graph["outputs"]}


def plain(value):
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if str(k) != "metadata"}
    return [plain(v) for v in value] if isinstance(value, list) else value


set_seed = torch.manual_seed


def same(a, b):
    return a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))


def record_sample(op, sample, tensors):
    flat, spec = tree_flatten((sample.input, sample.args, dict(sample.kwargs)))
    at = [i for i, value in enumerate(flat) if is_tensor(value)]
    if not at:
        raise Skip("no tensor operand")
    if op.name in POSITIONS and flat[at[0]].unique().numel() < flat[at[0]].numel():
        raise Skip("equal elements")
    operands = [flat[i].detach().clone(memory_format=torch.preserve_format) if flat[i].numel() else flat[i].detach()
                for i in at]
    # clone() loses strides of memory that overlaps itself or has gaps.
    operands = [o if o.stride() == flat[i].stride() else flat[i].detach() for o, i in zip(operands, at)]

    def call(*given):
        values = list(flat)
        for i, tensor in zip(at, given):
            values[i] = tensor
        input_, args, kwargs = tree_unflatten(values, spec)
        result = op.op(input_, *args, **kwargs)
        if op.name in COMPARED_IN_PART:
            result = sample.output_process_fn_grad(result)
        if op.name in ANY_ORDER:
            result = in_order(result)
        return [x for x in tree_flatten(result)[0] if is_tensor(x)]

    def run(seed, grads):
        # Some operators of the data base set a seed themselves, so that gradcheck sees no difference.
        torch.manual_seed = lambda _: set_seed(seed)
        torch.manual_seed(seed)
        given = [o.clone().requires_grad_(grads and (o.is_floating_point() or o.is_complex())) if grads else o for o in operands]
        return given, call(*given)

    versions = [o._version for o in operands]
    _, results = run(0, False)
    if versions != [o._version for o in operands]:
        raise Skip("an operand is written to")
    if not results:
        raise Skip("no tensor result")
    traced = make_fx(call, pre_dispatch=True)(*operands)
    if any(node.op == "get_attr" for node in traced.graph.nodes):
        raise Skip("a constant tensor inside")
    draws = any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in traced.graph.nodes)
    # Few draws may agree by accident.
    for seed in range(1, 9 if draws else 2):
        _, again = run(seed, False)
        if len(results) != len(again) or not all(map(same, results, again)):
            raise Skip("random")
    record = {"op": op.name, "variant": op.variant_test_name,
              "program": program_of(traced),
              "inputs": [tensors.add(o) for o in operands], "outputs": [tensors.add(r) for r in results]}
    if op.supports_autograd and any(o.is_floating_point() or o.is_complex() for o in operands):
        given, results = run(0, True)
        roots = [k for k, r in enumerate(results) if r.requires_grad and (r.is_floating_point() or r.is_complex())]
        if roots:
            generator = torch.Generator().manual_seed(7)
            seeds = [torch.randn(results[k].shape, generator=generator, dtype=torch.float64).to(results[k].dtype) for k in roots]
            leaves = [k for k, g in enumerate(given) if g.requires_grad]
            grads = torch.autograd.grad([results[k] for k in roots], [given[k] for k in leaves], seeds, allow_unused=True)
            record["roots"] = roots
            record["seeds"] = [tensors.add(s) for s in seeds]
            record["leaves"] = leaves
            record["grads"] = [None if g is None else tensors.add(g) for g in grads]
    return record


def samples_of(op, dtype):
    grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    yield from op.sample_inputs("cpu", dtype, requires_grad=grad)


def name_of(op, dtype):
    return f"{op.name}{'-' + op.variant_test_name if op.variant_test_name else ''}-{dtype}".replace("/", "_")


def record_op(op, name, args, recording):
    """Adds the samples of an operator; gives what came of them."""
    torch.manual_seed(args.seed)
    samples = list(samples_of(op, DTYPES[name]))
    random.Random(args.seed ^ zlib.crc32(name_of(op, name).encode())).shuffle(samples)
    recorded, skipped = 0, {}
    for number, sample in enumerate(samples):
        if recorded >= args.most:
            break
        tensors = Tensors()
        try:
            record = {"sample": f"{name_of(op, name)} #{number}"} | record_sample(op, sample, tensors)
            if tensors.bytes() > args.bytes:
                raise Skip("large")
            recording.add(record, tensors)
            recorded += 1
        except Exception as error:  # what torch itself cannot trace or differentiate is counted, not recorded
            first = (str(error).splitlines() or [""])[0]
            reason = first if isinstance(error, Skip) else f"{type(error).__name__}: {first[:120]}"
            skipped[reason] = skipped.get(reason, 0) + 1
    return {"recorded": recorded, "samples": len(samples), "skipped": skipped}


def choose(args):
    """A part of what is recorded."""
    chosen = Recording(args.out)
    for folder in args.of.split(","):
        for file in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
            memory = load_file(file.replace(".jsonl", ".safetensors"))
            taken = 0
            for line in open(file):
                record, tensors = json.loads(line), Tensors()
                for meta in (m for kind in ("inputs", "outputs", "seeds", "grads") for m in record.get(kind, []) if m):
                    at, span = meta["at"], span_of(meta["sizes"], meta["strides"])
                    pieces = tensors.memory.setdefault(meta["dtype"], [])
                    meta["at"] = sum(len(piece) for piece in pieces)
                    pieces.append(memory[meta["dtype"]][at:at + span])
                if taken < args.most and tensors.bytes() <= args.bytes:
                    chosen.add(record, tensors)
                    taken += 1
    chosen.save()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--dtypes", default="f32,f64")
    parser.add_argument("--most", type=int, default=1 << 30)
    parser.add_argument("--bytes", type=int, default=1 << 22, help="of one sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--of", default="", help="folders with recordings to choose from")
    parser.add_argument("--only", default="", help="operators whose names have this in them")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if args.of:
        choose(args)
        return
    os.makedirs(args.out, exist_ok=True)
    for op in op_db:
        for dtype in args.dtypes.split(","):
            file = os.path.join(args.out, name_of(op, dtype))
            if args.only not in op.name or DTYPES[dtype] not in op.supported_dtypes("cpu") or os.path.exists(file + ".jsonl"):
                continue
            if op.name in NOT_COMPARED:
                print(json.dumps({"file": file, "skipped": NOT_COMPARED[op.name]}), flush=True)
                continue
            recording = Recording(file)
            print(json.dumps({"file": file, **record_op(op, dtype, args, recording)}), flush=True)
            recording.save()


if __name__ == "__main__":
    main()
