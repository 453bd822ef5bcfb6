"""Layers of torch.nn, and small architectures that everybody knows."""

import torch
from torch import nn

from .parts import add, f, ids


def classic(name):
    return lambda build: add(f"classic/{name}", build)


@classic("nn-transformer")
def _():
    return nn.Transformer(32, 4, 2, 2, 64, batch_first=True).eval(), (f(2, 9, 32), f(2, 7, 32))


@classic("nn-encoder-layer")
def _():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval(), (f(2, 9, 32),)


@classic("lstm-lm")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.l, self.o = nn.Embedding(100, 16), nn.LSTM(16, 32, 2, batch_first=True), nn.Linear(32, 100)

        def forward(self, x):
            return self.o(self.l(self.e(x))[0])

    return M().eval(), (ids(2, 9),)


@classic("gru-bidirectional")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.GRU(16, 32, 2, bidirectional=True)

        def forward(self, x):
            return self.l(x)

    return M().eval(), (f(7, 2, 16),)


@classic("dcgan")
def _():
    def up(i, o, s, p):
        return [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]

    return nn.Sequential(
        *up(16, 32, 1, 0), *up(32, 16, 2, 1), *up(16, 8, 2, 1), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()
    ).eval(), (
        f(2, 16, 1, 1),
    )


@classic("dlrm")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
            self.bottom = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
            self.top = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))

        def forward(self, dense, i, offsets):
            v = torch.stack([self.bottom(dense)] + [b(i[k], offsets) for k, b in enumerate(self.bags)], 1)
            z = torch.bmm(v, v.transpose(1, 2))
            r, c = torch.tril_indices(4, 4, -1)
            return torch.sigmoid(self.top(torch.cat([v[:, 0], z[:, r, c]], 1)))

    return M().eval(), (f(2, 4), ids(3, 6, high=50, low=0), torch.tensor([0, 3]))


@classic("unet")
def _():
    def block(i, o):
        return nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(),
            nn.Conv2d(o, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(),
        )

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = block(3, 8), block(8, 16), block(24, 8)
            self.up, self.o = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(8, 2, 1)

        def forward(self, x):
            a = self.a(x)
            b = self.b(nn.functional.max_pool2d(a, 2))
            return self.o(self.c(torch.cat([a, self.up(b)], 1)))

    return M().eval(), (f(2, 3, 32, 32),)


@classic("gcn")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 4)

        def forward(self, x, src, dst):
            for lin in (self.a, self.b):
                h = lin(x)
                deg = torch.zeros(x.shape[0]).scatter_add(0, dst, torch.ones(dst.shape[0])).clamp(min=1)
                x = torch.zeros_like(h).index_add(0, dst, h[src] / deg[dst, None]).relu()
            return x.log_softmax(-1)

    return M().eval(), (f(10, 8), ids(30, high=10, low=0), ids(30, high=10, low=0))


@classic("fourier-neural-operator")
def _():
    class Spectral(nn.Module):
        def __init__(self, c, m):
            super().__init__()
            self.w, self.m = nn.Parameter(torch.randn(c, c, m, dtype=torch.cfloat) * 0.1), m

        def forward(self, x):
            h = torch.fft.rfft(x)
            o = torch.zeros_like(h)
            o[..., : self.m] = torch.einsum("bim,iom->bom", h[..., : self.m], self.w)
            return torch.fft.irfft(o, n=x.shape[-1])

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.i, self.s, self.p, self.o = nn.Conv1d(1, 8, 1), Spectral(8, 6), nn.Conv1d(8, 8, 1), nn.Conv1d(8, 1, 1)

        def forward(self, x):
            h = self.i(x)
            return self.o(nn.functional.gelu(self.s(h) + self.p(h)))

    return M().eval(), (f(2, 1, 32),)


@classic("nerf-mlp")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = nn.Sequential(nn.Linear(63, 64), nn.ReLU(), nn.Linear(64, 4))

        def forward(self, x):
            e = torch.cat([x] + [g(2.0**k * x) for k in range(10) for g in (torch.sin, torch.cos)], -1)
            o = self.n(e)
            a = 1 - torch.exp(-torch.relu(o[..., 3]) * 0.1)
            w = a * torch.cumprod(torch.cat([torch.ones_like(a[:, :1]), 1 - a + 1e-10], -1), -1)[:, :-1]
            return (w[..., None] * torch.sigmoid(o[..., :3])).sum(-2)

    return M().eval(), (f(4, 8, 3),)


@classic("pointnet")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 64, 1))
            self.o = nn.Linear(64, 5)

        def forward(self, x):
            return self.o(self.t(x).max(-1)[0]).log_softmax(-1)

    return M().eval(), (f(2, 3, 40),)


@classic("spatial-transformer")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3 * 16 * 16, 6)

        def forward(self, x):
            g = nn.functional.affine_grid(self.l(x.flatten(1)).view(-1, 2, 3), x.shape, align_corners=False)
            return nn.functional.grid_sample(x, g, align_corners=False)

    return M().eval(), (f(2, 3, 16, 16),)


@classic("stft-vocoder")
def _():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.hann_window(64))
            self.c = nn.Conv1d(33, 33, 3, padding=1)

        def forward(self, x):
            s = torch.stft(x, 64, 16, window=self.w, return_complex=True)
            m = self.c(s.abs().log1p()).sigmoid()
            return torch.istft(s * m, 64, 16, window=self.w, length=x.shape[-1])

    return M().eval(), (f(2, 512),)
