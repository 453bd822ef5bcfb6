"""Records small programs of torch.export.save with inputs, results and gradients: tests/data/pt2.

  python3 tools/record_exported.py

Each model gives NAME.pt2, for some also NAME_decomposed.pt2, and NAME.safetensors: input.I, output.I, grad.NAME for parameters,
after.NAME for buffers that change; second.* for other sizes where there are dynamic ones.
"""
import json
import os
import struct

import torch
from torch import nn
from torch.export import Dim

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/data/pt2")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4)
        self.relu, self.fc = nn.ReLU(inplace=True), nn.Linear(4, 3)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.relu(self.norm(self.conv(x))), 2)
        return self.fc(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        return x + self.down(nn.functional.gelu(self.up(x), approximate="tanh"))


class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("scratch", torch.ones(2, 3), persistent=False)
        self.scale = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x):
        self.seen.add_(x.sum(0))
        y = torch.zeros(x.shape[0], 3)
        y[1:] = x[1:] * self.scale
        y[:, 0] += 5
        y.mul_(2).clamp_(max=9)
        x[0].fill_(7)
        return y, x[[0, 1], 1:] + self.scratch[:, 1:], self.seen * 2


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: self.fc(x).sin(), lambda x: x - 1, (x,))
        return y * 2


class Loop(nn.Module):
    def forward(self, x):
        i, y = torch._higher_order_ops.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (torch.tensor(0), x))
        return y, i


class Sizes(nn.Module):
    def forward(self, x, y):
        n, m = x.shape
        a = torch.zeros(n // 2 + m * 2, dtype=torch.int64)
        b = x / m ** 0.5 + torch.arange(m)
        with torch.no_grad():
            c = b * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            d = x @ y
        return a, c, d, x[:, -1:], torch.full((n,), -float("inf")), n + m


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True, proj_size=2)
        self.gru, self.rnn = nn.GRU(4, 3), nn.RNN(3, 2, nonlinearity="relu", bias=False)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, g = self.gru(y)
        return y, h, c, z, g, self.rnn(z)[0]


class Turned(nn.Module):
    """A norm whose result PyTorch lays out anew: the view is none of a tensor that lies as the operand does."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(nn.functional.gelu(x.transpose(1, 2))).view(-1, 4)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.weight = nn.Linear(8, 4, bias=False), nn.Parameter(torch.randn(4, 8, 12) / 3)

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        best, chosen = scores.max(-1)
        order = chosen.argsort()
        ends = (chosen[:, None] == torch.arange(4)).sum(0).cumsum(0).to(torch.int32)
        y = torch._grouped_mm(x[order], self.weight, offs=ends)
        return y[order.argsort()] * best[:, None]


class Data(nn.Module):
    def forward(self, x, n):
        size = n.item()
        torch._check(size >= 0)
        torch._check(size < 10)
        return torch.arange(size) + x.sum(), x.nonzero()


TYPES = {torch.float32: "F32", torch.int64: "I64", torch.bfloat16: "BF16", torch.bool: "BOOL", torch.float64: "F64"}


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def results(model, inputs):
    out = model(*inputs)
    return [torch.tensor(o) if isinstance(o, int) else o for o in (out if isinstance(out, (tuple, list)) else [out])]


def without_traces(program):
    """Drops what tells where a node comes from, which is most of the file."""
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", []):
            for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "from_node", "torch_fn"):
                node.meta.pop(key, None)
    return program


def record(name, model, inputs, second=None, shapes=None, gradients=True, decomposed=True):
    tensors = {}
    exported = torch.export.export(model, tuple(i.clone() for i in inputs), dynamic_shapes=shapes)
    torch.export.save(without_traces(exported), f"{FOLDER}/{name}.pt2")
    if decomposed:
        torch.export.save(without_traces(exported.run_decompositions()), f"{FOLDER}/{name}_decomposed.pt2")
    for prefix, given in [("", inputs), ("second.", second)]:
        if given is None:
            continue
        tensors |= {f"{prefix}input.{i}": t.clone() for i, t in enumerate(given)}
        given = [t.clone() for t in given]
        out = results(model, given)
        tensors |= {f"{prefix}output.{i}": t.clone() for i, t in enumerate(out)}
        tensors |= {f"{prefix}written.{i}": t.clone() for i, t in enumerate(given)}
        tensors |= {f"{prefix}after.{n}": b.clone() for n, b in model.named_buffers()}
        if gradients:
            model.zero_grad()
            sum((o * torch.arange(o.numel()).view(o.shape)).sum() for o in out if o.requires_grad).backward()
            tensors |= {f"{prefix}grad.{n}": p.grad.clone() for n, p in model.named_parameters()}
    save(f"{FOLDER}/{name}.safetensors", tensors)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    torch.manual_seed(0)
    batch = {0: Dim("batch", min=2, max=64)}
    record("mlp", Mlp(), [torch.randn(5, 4)], [torch.randn(9, 4)], (batch,))
    record("conv_net_train", ConvNet().train(), [torch.randn(2, 2, 9, 9)])
    record("conv_net", ConvNet().eval(), [torch.randn(2, 2, 9, 9)], [torch.randn(3, 2, 9, 9)], (batch,))
    record("block", Block(), [torch.randn(2, 5, 8)], [torch.randn(3, 7, 8)], ({**batch, 1: Dim("tokens", min=2, max=32)},))
    record("writes", Writes(), [torch.randn(4, 3)], [torch.randn(6, 3)], ({0: Dim("batch", min=3, max=64)},), gradients=False)
    record("branch", Branch(), [torch.rand(2, 3)], [-torch.rand(2, 3)], gradients=False)
    record("loop", Loop(), [torch.randn(3)], gradients=False)
    sizes = ({0: Dim("n", min=2), 1: Dim("m", min=2)}, {0: Dim("m", min=2)})
    record("sizes", Sizes(), [torch.randn(4, 6), torch.randn(6, 2)], [torch.randn(7, 3), torch.randn(3, 2)], sizes, gradients=False)
    record("tied", Tied(), [torch.tensor([[1, 3, 5]])])
    record("recurrent", Recurrent(), [torch.randn(2, 3, 3)])
    record("turned", Turned(), [torch.randn(2, 4, 3)], [torch.randn(5, 4, 3)], (batch,))
    record("experts", Experts(), [torch.randn(9, 8)], [torch.randn(6, 8)], (batch,))
    record("data", Data(), [torch.tensor([1, 0, 2]), torch.tensor(4)], [torch.tensor([0, 0, 2]), torch.tensor(7)], gradients=False)


if __name__ == "__main__":
    main()
