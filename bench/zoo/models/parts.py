"""What the zoo's lists share: ZOO is a name -> a function that gives (module, inputs)."""

import torch
from torch import nn

ZOO = {}


def add(name, build):
    assert name not in ZOO, name
    ZOO[name] = build


def tensors_of(x):
    if isinstance(x, torch.Tensor):
        return [x]
    if x is None or isinstance(x, (int, float, str, bool)):
        return []
    if isinstance(x, dict) or hasattr(x, "items"):
        return [t for v in x.values() for t in tensors_of(v)]
    if isinstance(x, (list, tuple)):
        return [t for v in x for t in tensors_of(v)]
    return []


class Flat(nn.Module):
    def __init__(self, module, names, fixed):
        super().__init__()
        self.module, self.names, self.fixed = module, names, fixed

    def forward(self, *args):
        return tuple(tensors_of(self.module(**dict(zip(self.names, args)), **self.fixed)))


def flat(module, inputs, **fixed):
    return Flat(module.eval(), list(inputs), fixed), tuple(inputs.values())


def f(*shape):
    return torch.randn(*shape)


def ids(*shape, high=90, low=3):
    return torch.randint(low, high, shape)


def ones(*shape):
    return torch.ones(*shape, dtype=torch.long)
