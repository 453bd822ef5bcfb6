"""Records small models of torch.onnx.export with inputs, results and gradients: tests/data/onnx.

  python3 tools/record_onnx.py

Needs torch and onnxscript. Models are those of record_exported.py; each gives NAME.onnx and NAME.safetensors, as there.
"""
import os

import onnx
import torch
from torch import nn

from record_exported import Block, Branch, ConvNet, Mlp, Tied, results, save

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/data/onnx")


class Shapes(nn.Module):
    """Sizes as values: they are computed, joined and compared."""

    def forward(self, x):
        n, m = x.shape
        y = x.reshape(m, n).repeat(2, 1)
        z = torch.cat([torch.zeros(n, m), x * m**0.5 + torch.arange(m)], 1)
        return y[: n + 1], z, torch.full((n * 2,), float(m)), x[:, -1:].expand(n, m)


class Norms(nn.Module):
    """A batch norm that the exporter cannot fold into a convolution."""

    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.BatchNorm2d(2), nn.Linear(9, 3)
        nn.init.uniform_(self.norm.running_mean)
        nn.init.uniform_(self.norm.running_var, 1, 2)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(x)))


def forget_origin(part):
    """Drops what the exporter noted of where nodes come from: paths of the machine, in the bodies of branches and loops too."""
    part.ClearField("metadata_props")
    for node in part.node:
        node.ClearField("metadata_props")
        for attribute in node.attribute:
            for body in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                forget_origin(body)


def record(name, model, inputs, second=None, shapes=None, gradients=True, outside=False):
    path = f"{FOLDER}/{name}.onnx"
    program = torch.onnx.export(model, tuple(inputs), dynamic_shapes=shapes, dynamo=True, verbose=False)
    proto = program.model_proto
    proto.graph.ClearField("value_info")
    proto.ClearField("metadata_props")
    for part in [proto.graph, *proto.functions]:
        forget_origin(part)
    if outside:
        onnx.save_model(proto, path, save_as_external_data=True, location=f"{name}.bin", size_threshold=0)
    else:
        onnx.save_model(proto, path)
    tensors = {}
    for prefix, given in [("", inputs), ("second.", second)]:
        if given is None:
            continue
        out = results(model, [t.clone() for t in given])
        tensors |= {f"{prefix}input.{i}": t for i, t in enumerate(given)}
        tensors |= {f"{prefix}output.{i}": t.clone() for i, t in enumerate(out)}
        if gradients:
            model.zero_grad()
            sum((o * torch.arange(o.numel()).view(o.shape)).sum() for o in out if o.requires_grad).backward()
            tensors |= {f"{prefix}grad.{n}": p.grad.clone() for n, p in model.named_parameters()}
    save(f"{FOLDER}/{name}.safetensors", tensors)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    torch.manual_seed(0)
    batch = {0: torch.export.Dim("batch", min=2, max=64)}
    record("mlp", Mlp(), [torch.randn(5, 4)], [torch.randn(9, 4)], (batch,))
    record("outside", Mlp(), [torch.randn(5, 4)], outside=True)
    record("conv_net", ConvNet().eval(), [torch.randn(2, 2, 9, 9)], [torch.randn(3, 2, 9, 9)], (batch,))
    tokens = {**batch, 1: torch.export.Dim("tokens", min=2, max=32)}
    record("block", Block(), [torch.randn(2, 5, 8)], [torch.randn(3, 7, 8)], (tokens,), gradients=False)
    record("branch", Branch(), [torch.rand(2, 3)], [-torch.rand(2, 3)], gradients=False)
    record("tied", Tied(), [torch.tensor([[1, 3, 5]])])
    record("norms", Norms().eval(), [torch.randn(2, 2, 3, 9)])
    sizes = ({0: torch.export.Dim("n", min=2)},)
    record("shapes", Shapes(), [torch.randn(4, 6)], [torch.randn(7, 6)], sizes, gradients=False)


if __name__ == "__main__":
    main()
