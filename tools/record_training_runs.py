#!/usr/bin/env python3
"""Records the losses of two hundred training steps by PyTorch, in training_runs.safetensors.

    python3 tools/record_training_runs.py

Five small models, each with its C++ counterpart of the same name in tests/training/runs.cpp: the same layers, weights and
batches, which both sides draw from one generator of whole numbers. A step is zero_grad, forward, backward, clipping and AdamW.
Recorded are f32, and bf16 autocast eagerly and by torch.compile. Sizes and rates are such that training is not chaotic: f32
stays within 1e-5 of f64, which this script checks, so that a difference of 1e-4 is one of arithmetic and not of rounding.
"""
import torch
import torch.nn.functional as F
from torch import nn

from record_ops import recorded_path, save_safetensors

STEPS = 200


class Numbers:
    """Lehmer's generator."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = self.state * 48271 % 2147483647
        return self.state

    def below(self, end):
        return self.next() % end

    def uniform(self, *shape):
        """From -1 to 1."""
        count = torch.Size(shape).numel()
        return torch.tensor([self.next() / 2**30 - 1 for _ in range(count)], dtype=torch.float64).view(shape)


# --- models


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(16, 64), nn.Linear(64, 64), nn.Linear(64, 8)

    def forward(self, x):
        return self.last(F.gelu(self.second(F.relu(self.first(x)))))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 8)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.relu(self.norm2(self.conv2(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.norm2, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        n, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, 32))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(32, 32), nn.Embedding(16, 32)
        self.block1, self.block2, self.norm = Block(), Block(), nn.LayerNorm(32)
        self.head = nn.Linear(32, 32, bias=False)

    def forward(self, x):
        h = self.tokens(x) + self.positions(torch.arange(16))
        return self.head(self.norm(self.block2(self.block1(h)))).flatten(0, 1)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 32))
        self.positions = nn.Parameter(torch.zeros(1, 5, 32))
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.layer1, self.layer2 = (nn.TransformerEncoderLayer(32, 4, 64, dropout=0, activation="gelu", batch_first=True,
                                                               norm_first=True) for _ in range(2))
        self.head = nn.Linear(32, 8)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.layer2(self.layer1(x))[:, 0])


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.lstm, self.head = nn.Embedding(32, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 32)

    def forward(self, x):
        return self.head(self.lstm(self.tokens(x))[0]).flatten(0, 1)


def fill(module):
    """Matrices and what is larger are drawn; of vectors biases are zeros, and weights ones."""
    numbers = Numbers(1)
    with torch.no_grad():
        for name, p in module.named_parameters():
            if p.dim() > 1:
                p.copy_(numbers.uniform(*p.shape) * (3 * p.shape[0] / p.numel()) ** 0.5)
            else:
                p.fill_(0 if "bias" in name else 1)


# --- batches


def points(numbers):
    """Labels are the octants of the first three coordinates."""
    x = numbers.uniform(32, 16)
    return x, ((x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long() + 4 * (x[:, 2] > 0).long())


def images(numbers):
    """Noise with a bright square in one of four corners, for half of the labels in another colour."""
    y = torch.tensor([numbers.below(8) for _ in range(16)])
    x = numbers.uniform(16, 3, 8, 8)
    for i, label in enumerate(y.tolist()):
        top, left = 4 * (label % 2), 4 * (label // 2 % 2)
        x[i, label // 4, top:top + 4, left:left + 4] += 1
    return x, y


def text(numbers):
    """Each token is mostly three times the one before, and one more."""
    rows = []
    for _ in range(8):
        row = [numbers.below(32)]
        while len(row) < 17:
            row.append((3 * row[-1] + 1 + (numbers.below(8) == 0)) % 32)
        rows.append(row)
    tokens = torch.tensor(rows)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()


# name -> model, batches, learning rate
RUNS = {"mlp": (Mlp, points, 1e-3), "cnn": (Cnn, images, 1e-3), "gpt": (Gpt, text, 1e-3), "vit": (Vit, images, 1e-3),
        "lstm": (Lstm, text, 1e-3)}


def train(name, dtype=torch.float32, autocast=False, compiled=False):
    make, batch, rate = RUNS[name]
    model, numbers = make().to(dtype), Numbers(2)
    fill(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.1)

    def loss_of(x, y):
        return F.cross_entropy(model(x).to(dtype), y)

    loss_of = torch.compile(loss_of) if compiled else loss_of
    losses = []
    for _ in range(STEPS):
        x, y = batch(numbers)
        x = x.to(dtype) if x.is_floating_point() else x
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = loss_of(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def distance(a, b):
    return ((a - b).abs() / b.abs()).max().item()


def main():
    torch.set_num_threads(1)
    torch._dynamo.config.allow_rnn = True
    tensors = {}
    for name in RUNS:
        exact, plain = train(name, torch.float64), train(name)
        eager, compiled = train(name, autocast=True), train(name, autocast=True, compiled=True)
        print(f"{name}: loss {plain[0]:.4f} to {plain[-1]:.4f}; f32 from f64 {distance(plain, exact):.1e}; autocast from f32 "
              f"{distance(eager, plain):.1e}, its torch.compile from eager {distance(compiled, eager):.1e}", flush=True)
        assert distance(plain, exact) < 1e-5
        tensors |= {f"{name}/f32": plain.float(), f"{name}/autocast": eager.float(), f"{name}/autocast_compiled": compiled.float()}
    save_safetensors(recorded_path("training_runs.safetensors"), tensors, {"PyTorch": torch.__version__})


if __name__ == "__main__":
    main()
