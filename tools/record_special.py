#!/usr/bin/env python3
"""Records special functions to all digits of f64: tests/data/recorded/special.safetensors.

    python3 tools/record_special.py

PyTorch's own have errors of some units of 1e-15 and larger ones beyond their tables: these are of mpmath. Needs PyTorch and mpmath.
"""
import math

import mpmath
import torch
from mpmath import mpf

from record_ops import recorded_path, save_safetensors

mpmath.mp.dps = 60


def spread(low, high, count=24):
    """Numbers from low to high, which no table has for nodes."""
    return [low + (high - low) * ((i * 0.6180339887498949 + 0.3) % 1) for i in range(count)]


SMALL = [1e-300, 1e-12, 3e-9, 1e-3]
POSITIVE = SMALL + spread(0.01, 2) + spread(2, 45) + [60.0, 123.456, 700.0]
BOTH = POSITIVE + [-x for x in POSITIVE]


def quantile(p):
    """Newton's method on the logarithm of the share of the nearer tail."""
    tail, sign = (p, -1) if p < 0.5 else (1 - p, 1)
    y = mpmath.sqrt(-2 * mpmath.log(tail))
    for _ in range(60):
        share = mpmath.erfc(y / mpmath.sqrt(2)) / 2
        y += mpmath.log(share / tail) * share / mpmath.npdf(y)
    return sign * y


def zeta(s, q):
    """mpmath's loses digits, of which this has enough."""
    with mpmath.workdps(150):
        return mpmath.zeta(s, q)


ONE = {
    "bessel_j0": (BOTH, lambda x: mpmath.besselj(0, x)),
    "bessel_j1": (BOTH, lambda x: mpmath.besselj(1, x)),
    "bessel_y0": (POSITIVE, lambda x: mpmath.bessely(0, x)),
    "bessel_y1": (POSITIVE, lambda x: mpmath.bessely(1, x)),
    "i0": (BOTH, lambda x: mpmath.besseli(0, x)),
    "i1": (BOTH, lambda x: mpmath.besseli(1, x)),
    "i0e": (BOTH, lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x))),
    "i1e": (BOTH, lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x))),
    "modified_bessel_k0": (POSITIVE, lambda x: mpmath.besselk(0, x)),
    "modified_bessel_k1": (POSITIVE, lambda x: mpmath.besselk(1, x)),
    "scaled_modified_bessel_k0": (POSITIVE, lambda x: mpmath.besselk(0, x) * mpmath.exp(x)),
    "scaled_modified_bessel_k1": (POSITIVE, lambda x: mpmath.besselk(1, x) * mpmath.exp(x)),
    "spherical_bessel_j0": (BOTH, lambda x: mpmath.sin(x) / x),
    "airy_ai": (spread(-30, 12, 60) + [-11.0, -1.0, 1.0, 50.0], mpmath.airyai),
    "erfcx": (spread(-20, 30, 60) + [1e10], lambda x: mpmath.exp(x * x) * mpmath.erfc(x) if x < 1e3 else 1 / (x * mpmath.sqrt(mpmath.pi))),
    "log_ndtr": (spread(-40, 8, 40) + [-1.0], lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)),
    "ndtri": (spread(0.001, 0.999, 40) + [1e-300, 1e-20, 1e-5, 1 - 2.0**-40], quantile),
}
TWO = {
    "zeta": zeta,
    "chebyshev_polynomial_t": lambda x, n: mpmath.chebyt(n, x),
    "chebyshev_polynomial_u": lambda x, n: mpmath.chebyu(n, x),
    "chebyshev_polynomial_v": lambda x, n: mpmath.chebyu(n, x) - mpmath.chebyu(n - 1, x),
    "chebyshev_polynomial_w": lambda x, n: mpmath.chebyu(n, x) + mpmath.chebyu(n - 1, x),
    "hermite_polynomial_h": lambda x, n: mpmath.hermite(n, x),
    "hermite_polynomial_he": lambda x, n: mpmath.hermite(n, x / mpmath.sqrt(2)) / mpmath.sqrt(2) ** n,
    "laguerre_polynomial_l": lambda x, n: sum(math.comb(n, k) * (-x) ** k / mpmath.factorial(k) for k in range(n + 1)),
    "legendre_polynomial_p": lambda x, n: sum((-1) ** k * math.comb(n, k) * math.comb(2 * n - 2 * k, n) * x ** (n - 2 * k)
                                              for k in range(n // 2 + 1)) / mpf(2) ** n,
}
DEGREES = [1, 2, 3, 5, 8, 20, 32, 33, 60, 90]


def main():
    tensors = {}
    def double(values):
        return torch.tensor([float(v) for v in values], dtype=torch.float64)

    for name, (points, function) in ONE.items():
        tensors[f"{name}/x"] = double(points)
        tensors[f"{name}/value"] = double(function(mpf(float(x))) for x in points)
    for name, function in TWO.items():
        if name == "zeta":
            pairs = list(zip(spread(1.05, 20, 30), spread(0.05, 30, 31)[1:]))
        else:
            pairs = [(x, n) for n in DEGREES for x in spread(-1.2, 1.2, 12) + [-1.0, 1.0, 0.0]]
        tensors[f"{name}/x"], tensors[f"{name}/n"] = double(x for x, _ in pairs), double(n for _, n in pairs)
        tensors[f"{name}/value"] = double(function(mpf(float(x)), n if name != "zeta" else mpf(float(n))) for x, n in pairs)
    save_safetensors(recorded_path("special.safetensors"), tensors, {"mpmath": mpmath.__version__})
    print(f"{len(tensors)} tensors with mpmath {mpmath.__version__}")


if __name__ == "__main__":
    main()
