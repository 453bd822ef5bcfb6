"""What both roads of the zoo share: results as lists of tensors, how far they are apart, and tensors as a file."""
import json
import struct

import torch

RIGHT = 1e-3      # of a result's norm
CANCELLED = 1e-3  # gradients below this share of the largest are sums that cancel: they are measured by it
ROUNDINGS = 3     # where torch's own f32 is further than RIGHT from its f64: so many times as far is right


def flat_tensors(out):
    leaves = torch.utils._pytree.tree_leaves(out)
    return [t if isinstance(t, torch.Tensor) else torch.tensor(t) for t in leaves if t is not None and not isinstance(t, str)]


def distance(have, want, least=0.0, dtypes=True):
    """The norm of what differs by that of what is wanted, or by `least` where that is smaller."""
    if have.shape != want.shape or dtypes and have.dtype != want.dtype:
        return float("inf")
    if want.is_complex():
        have, want = torch.view_as_real(have.resolve_conj()), torch.view_as_real(want.resolve_conj())
    have, want = have.detach().double(), want.detach().double()
    same = (have == want) | (have.isnan() & want.isnan())
    if bool(same.all()):
        return 0.0
    size = max(want[want.isfinite()].norm().item(), least)
    off = (have - want).masked_fill(same, 0).norm().item()
    off = off / size if size > 0 else off
    return off if off == off else float("inf")


def worst(have, want, **how):
    if len(have) != len(want):
        return float("inf")
    return max((distance(a, b, **how) for a, b in zip(have, want)), default=0.0)


def loss_of(out):
    """What the gradients are those of: the weighted sum of all results that have some (bench/zoo.cpp takes the same)."""
    return sum((t * torch.arange(t.numel()).to(t.dtype).cos().view(t.shape)).sum() for t in flat_tensors(out)
               if t.is_floating_point() and t.requires_grad)


def worst_gradient(have, want):
    """(distance, name) of the worst of gradients by name."""
    largest = max((g.norm().item() for g in want.values()), default=0.0)
    offs = {n: distance(have[n], g, CANCELLED * largest, dtypes=False) if n in have else float("inf") for n, g in want.items()}
    name = max(offs, key=offs.get, default="")
    return offs.get(name, 0.0), name


class Model:
    """A model of the zoo, whose calls all begin from one state."""

    def __init__(self, build):
        torch.manual_seed(0)
        self.module, inputs = build()
        self.inputs = torch.utils._pytree.tree_leaves(inputs)
        self.state = {n: b.clone() for n, b in self.module.named_buffers()}

    def fresh(self):
        """The inputs of a call, with every buffer as it was."""
        with torch.no_grad():
            for name, buffer in self.module.named_buffers():
                if name in self.state and buffer.shape == self.state[name].shape:
                    buffer.copy_(self.state[name])
        return [t.clone() for t in self.inputs]

    def results(self, call=None, seed=1):
        inputs = self.fresh()
        torch.manual_seed(seed)
        with torch.no_grad():
            return [t.clone() for t in flat_tensors((self.module if call is None else call)(*inputs))]

    def gradients(self, call=None):
        inputs = self.fresh()
        self.module.zero_grad()
        torch.manual_seed(1)
        loss_of((self.module if call is None else call)(*inputs)).backward()
        return {n: p.grad.clone() for n, p in self.module.named_parameters() if p.grad is not None}

    def widen(self):
        """In f64 from now on: a referee for what f32 rounds."""
        self.module.double()
        self.inputs = [t.double() if t.is_floating_point() else t for t in self.inputs]
        self.state = {n: b.double() if b.is_floating_point() else b for n, b in self.state.items()}


TYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


def save(path, tensors):
    """A safetensors file; complex tensors are pairs of reals."""
    tensors = {name: torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for name, t in tensors.items()}
    header, data, at = {}, [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))
