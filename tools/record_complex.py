#!/usr/bin/env python3
"""Records what PyTorch gives for complex numbers, with gradients, in complex.safetensors.

    python3 tools/record_complex.py

Each case here has its C++ counterpart of the same name in tests/ops/complex_recorded_test.cpp. Everything is computed in
complex128 on operands that complex64 can hold, and stored in doubles; the two parts of a complex tensor are a last dimension of
size 2, and its key ends in ".c".
"""
import math
import zlib

import torch

from record_ops import recorded_path, save_safetensors

CASES = {}
INF, NAN = math.inf, math.nan


class Draw:
    """The inputs of one case; the same in every run."""

    def __init__(self, name):
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def real(self, *shape):
        return torch.randn(shape, generator=self.generator).double()

    def complex(self, *shape):
        return torch.complex(self.real(*shape), self.real(*shape))

    def mask(self, *shape):
        return torch.rand(shape, generator=self.generator) < 0.5

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)


def case(name, inputs, function):
    assert name not in CASES, name
    CASES[name] = (inputs, function)


def simple(name, function, *shapes):
    """Of complex operands; a shape in a tuple is that of a real one."""
    case(name, lambda draw: [draw.real(*s) if isinstance(s, tuple) else draw.complex(*s) for s in shapes], function)


# --- arithmetic
simple("add", torch.add, [2, 3], [2, 3])
simple("add_broadcast", torch.add, [2, 1, 3], [4, 1])
simple("add_real", torch.add, [2, 3], (3,))
simple("add_number", lambda x: x + 1.5, [2, 3])
simple("add_complex_number", lambda x: x + (1.5 - 2j), [2, 3])
simple("add_alpha", lambda a, b: torch.add(a, b, alpha=2), [3], [3])
simple("sub", torch.sub, [2, 3], [3])
simple("sub_from_number", lambda x: 2 - x, [2, 3])
simple("mul", torch.mul, [2, 3], [2, 3])
simple("mul_broadcast", torch.mul, [2, 1], [3])
simple("mul_real", torch.mul, [2, 3], (2, 3))
simple("real_mul", torch.mul, (2, 3), [3])
simple("mul_number", lambda x: x * 3, [2, 3])
simple("mul_complex_number", lambda x: x * 2j, [2, 3])
simple("real_by_complex_number", lambda x: x * (1 - 2j), (2, 3))
simple("div", torch.div, [2, 3], [2, 3])
simple("div_by_real", torch.div, [2, 3], (3,))
simple("real_div", torch.div, (2, 3), [2, 3])
simple("div_by_number", lambda x: x / 4, [2, 3])
simple("div_by_complex_number", lambda x: x / (3 - 4j), [2, 3])
simple("number_div", lambda x: 0.3 / x, [2, 3])
simple("neg", torch.neg, [2, 3])
simple("reciprocal", torch.reciprocal, [2, 3])
simple("square", torch.square, [2, 3])
simple("pow", torch.pow, [2, 3], [2, 3])
simple("pow_real", torch.pow, [2, 3], (3,))
simple("pow_of_number", lambda x: 2 ** x, [2, 3])
for exponent in [0, 1, 2, 3, 5, 0.5, -0.5, -1, -2, 2.5]:
    simple(f"pow_{exponent}".replace(".", "_").replace("-", "minus_"), lambda x, e=exponent: x ** e, [2, 3])
simple("pow_complex_number", lambda x: x ** (1 + 2j), [2, 3])
simple("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), [2, 3], [3], [2, 1])
simple("addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=0.5), [2, 3], [3], [2, 1])
simple("lerp", lambda a, b: torch.lerp(a, b, 0.3), [2, 3], [2, 3])

# --- functions
for name in ["sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
             "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "abs", "angle", "sgn"]:
    simple(name, getattr(torch, name), [3, 7])
simple("conj", lambda x: torch.conj_physical(x), [2, 3])
simple("real", torch.real, [2, 3])
simple("imag", torch.imag, [2, 3])
simple("view_as_real", torch.view_as_real, [2, 3])
simple("view_as_complex", torch.view_as_complex, (2, 3, 2))
simple("complex", torch.complex, (2, 3), (2, 3))
simple("polar", lambda r, t: torch.polar(r.abs(), t), (2, 3), (2, 3))
case("abs_of_zero", lambda draw: [torch.zeros(2, dtype=torch.complex128)], torch.abs)
case("sgn_of_zero", lambda draw: [torch.zeros(2, dtype=torch.complex128)], torch.sgn)

# --- where numbers are extreme: huge and tiny ones, infinities, signed zeros
HUGE = torch.tensor([1e30 + 1e30j, 1e-30 + 1e-30j, 3e38 + 1e38j, 2e-38 - 1e-37j, 1e30 - 1e-30j], dtype=torch.complex128)
CORNERS = torch.tensor([complex(a, b) for a in (0.0, -0.0, 1.0, -1.0, INF, -INF) for b in (0.0, -0.0, 1.0, -1.0, INF, -INF)],
                       dtype=torch.complex128)
case("abs_of_extremes", lambda draw: [HUGE], lambda x: torch.abs(x.detach()))
case("sqrt_of_extremes", lambda draw: [HUGE], lambda x: torch.sqrt(x.detach()))
case("log_of_extremes", lambda draw: [HUGE], lambda x: torch.log(x.detach()))
case("div_of_extremes", lambda draw: [HUGE], lambda x: x.detach() / x.detach())
case("sqrt_of_corners", lambda draw: [CORNERS], lambda x: torch.sqrt(x.detach()))
case("log_of_corners", lambda draw: [CORNERS], lambda x: torch.log(x.detach()))
case("abs_of_corners", lambda draw: [CORNERS], lambda x: torch.abs(x.detach()))
case("angle_of_corners", lambda draw: [CORNERS], lambda x: torch.angle(x.detach()))
case("classify_corners", lambda draw: [CORNERS],
     lambda x: [torch.isnan(x), torch.isinf(x), torch.isfinite(x), torch.isreal(x), x == 1, x != 1])

# --- reductions
simple("sum", torch.sum, [2, 3])
simple("sum_dim", lambda x: x.sum((0, 2), True), [2, 3, 4])
simple("mean", lambda x: x.mean(1), [3, 4])
simple("prod", torch.prod, [7])
simple("prod_dim", lambda x: x.prod(1, True), [3, 5, 2])
simple("cumsum", lambda x: x.cumsum(1), [2, 5])
simple("cumprod", lambda x: x.cumprod(0), [5, 2])
simple("var", lambda x: x.var(1), [3, 5])
simple("std", lambda x: x.std(0, correction=0), [3, 5])
simple("norm", lambda x: torch.linalg.vector_norm(x), [3, 4])
simple("norm_1", lambda x: torch.linalg.vector_norm(x, 1, 1), [3, 4])
simple("norm_inf", lambda x: torch.linalg.vector_norm(x, INF, 1), [3, 4])
simple("matrix_norm", lambda x: torch.linalg.matrix_norm(x), [3, 4])
case("any_all", lambda draw: [draw.complex(3, 4) * draw.mask(3, 4)], lambda x: [x.any(1), x.all(1), torch.count_nonzero(x)])

# --- looks and rearrangements
simple("permute", lambda x: x.permute(2, 0, 1), [2, 3, 4])
simple("reshape", lambda x: x.t().reshape(3, 2, 2), [4, 3])
simple("view", lambda x: x.view(6, -1), [3, 4])
simple("expand", lambda x: x.expand(2, -1, 4), [3, 1])
simple("squeeze", lambda x: x.squeeze(1).unsqueeze(-1), [3, 1, 2])
simple("slice", lambda x: x[1:, ::2], [4, 5])
simple("select", lambda x: x[:, -1], [4, 5])
simple("diagonal", lambda x: x.diagonal(1), [4, 5])
simple("unfold", lambda x: x.unfold(0, 3, 2), [7])
simple("as_strided", lambda x: x.as_strided((3, 2), (1, 2), 1), [8])
simple("cat", lambda a, b: torch.cat([a, b], 1), [2, 3], [2, 4])
simple("cat_real", lambda a, b: torch.cat([a, b], 0), [2, 3], (1, 3))
simple("stack", lambda a, b: torch.stack([a, b], -1), [2, 3], [2, 3])
simple("flip", lambda x: x.flip(0), [4, 2])
simple("roll", lambda x: x.roll(2, 1), [2, 5])
simple("repeat", lambda x: x.repeat(2, 3), [2, 2])
simple("pad", lambda x: torch.nn.functional.pad(x, (1, 2)), [2, 3])
simple("pad_value", lambda x: torch.constant_pad_nd(x, (1, 2), 1.5), [2, 3])
simple("tril", lambda x: x.tril(-1), [4, 4])
simple("diag", lambda x: torch.diag(x), [4])
simple("trace", torch.trace, [3, 3])
case("where", lambda draw: [draw.mask(2, 3), draw.complex(2, 3), draw.complex(3)], torch.where)
case("where_real", lambda draw: [draw.mask(2, 3), draw.complex(2, 3), draw.real(3)], lambda m, a, b: torch.where(m, a, b.detach()))
case("masked_fill", lambda draw: [draw.complex(2, 3), draw.mask(3)], lambda x, m: x.masked_fill(m, 2j))
case("gather", lambda draw: [draw.complex(3, 4), draw.integers(4, 3, 2)], lambda x, i: x.gather(1, i))
case("index_select", lambda draw: [draw.complex(5, 2), draw.integers(5, 3)], lambda x, i: x.index_select(0, i))
case("index", lambda draw: [draw.complex(5, 4), draw.integers(5, 3)], lambda x, i: x[i, 1:])
case("scatter_add", lambda draw: [draw.complex(4, 3), draw.integers(4, 2, 3), draw.complex(2, 3)],
     lambda x, i, s: x.scatter_add(0, i, s))
case("index_put", lambda draw: [draw.complex(4, 3), torch.tensor([2, 0]), draw.complex(2, 3)],
     lambda x, i, v: x.index_put([i], v))
case("index_add", lambda draw: [draw.complex(4, 3), draw.integers(4, 2), draw.complex(2, 3)], lambda x, i, s: x.index_add(0, i, s))

# --- products
simple("matmul", torch.matmul, [3, 5], [5, 4])
simple("matmul_batched", torch.matmul, [2, 1, 3, 5], [4, 5, 2])
simple("matmul_by_real", lambda a, b: torch.matmul(a, b + 0j), [3, 5], (5, 4))
simple("mv", torch.mv, [3, 5], [5])
simple("dot", torch.dot, [5], [5])
simple("vdot", torch.vdot, [5], [5])
simple("vecdot", torch.linalg.vecdot, [3, 5], [3, 5])
simple("outer", torch.outer, [3], [4])
simple("kron", torch.kron, [2, 2], [2, 3])
simple("linear", torch.nn.functional.linear, [2, 5], [3, 5], [3])
simple("addmm", lambda i, a, b: torch.addmm(i, a, b, beta=0.5, alpha=2), [4], [3, 5], [5, 4])
simple("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), [2, 3, 4], [2, 4, 2])
simple("tensordot", lambda a, b: torch.tensordot(a, b, 1), [2, 3], [3, 4])
simple("conv1d", lambda x, w: torch.nn.functional.conv1d(x, w, None, 1, 1), [2, 3, 6], [4, 3, 3])

simple("solve", torch.linalg.solve, [3, 3], [3, 2])
simple("solve_vectors", torch.linalg.solve, [2, 3, 3], [2, 3])
simple("solve_right", lambda a, b: torch.linalg.solve(a, b, left=False), [3, 3], [2, 3])
simple("inv", torch.linalg.inv, [2, 3, 3])
simple("det", torch.linalg.det, [2, 4, 4])
simple("slogdet", torch.linalg.slogdet, [4, 4])
simple("matrix_power", lambda a: torch.linalg.matrix_power(a, 3), [3, 3])

# --- conversions, and a longer formula
simple("to_real", lambda x: torch.real(x).double(), [2, 3])
simple("real_to_complex", lambda x: x.to(torch.complex128), (2, 3))
simple("phase_shift", lambda x, t: (x * torch.exp(1j * t)).abs().square().sum(), [2, 3], (3,))
simple("mobius", lambda z, a: (z - a) / (1 - a.conj() * z), [2, 3], [3])


def put(tensors, key, value):
    if value.is_complex():
        tensors[key + ".c"] = torch.view_as_real(value.detach().resolve_conj().contiguous())
    else:
        tensors[key] = value.detach()


def record(name, tensors):
    inputs, function = CASES[name]
    values = inputs(Draw(name))
    moving = [i for i, x in enumerate(values) if x.is_complex() or x.is_floating_point()]
    for i, x in enumerate(values):
        put(tensors, f"{name}/in{i}", x)
        if i in moving:
            values[i] = x.clone().requires_grad_()
    y = function(*values)
    outputs = list(y) if isinstance(y, (tuple, list)) else [y]
    cotangents = {}
    for i, y in enumerate(outputs):
        put(tensors, f"{name}/out{i}", y)
        if y.requires_grad:
            draw = Draw(f"{name}/{i}")
            cotangents[i] = draw.complex(*y.shape) if y.is_complex() else draw.real(*y.shape)
            put(tensors, f"{name}/cotangent{i}", cotangents[i])
    if not cotangents:
        return
    grads = torch.autograd.grad([outputs[i] for i in cotangents], [values[i] for i in moving], list(cotangents.values()),
                                allow_unused=True)
    for i, grad in zip(moving, grads):
        if grad is not None:
            put(tensors, f"{name}/grad{i}", grad)


def main():
    tensors = {}
    for name in CASES:
        record(name, tensors)
    save_safetensors(recorded_path("complex.safetensors"), tensors, {"cases": " ".join(CASES)})
    print(f"{len(CASES)} cases with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
