#!/usr/bin/env python3
"""Records what PyTorch gives for every op: tests/data/recorded/ops.safetensors.

    cmake -B build -DSINTER_BUILD_TOOLS=ON && cmake --build build --target dump_samples
    build/bin/dump_samples | python3 tools/record_ops.py

Run it after adding an op or changing its samples, with a Python that has PyTorch. A new op needs an entry in OPS, or in
OURS with the reason why PyTorch has nothing to compare with. Values are computed in double precision and rounded once
to the dtype that PyTorch gives.
"""
import json
import math
import os
import struct
import sys

import torch
import torch.nn.functional as F

aten = torch.ops.aten

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
}
FILE_DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}

# Ops that PyTorch cannot judge.
OURS = {
    "input": "a value of the graph, not a computation",
    "scalar": "a value of the graph, not a computation",
    "_standard_gamma": "its random numbers are a generator of our own",
    "_poisson": "its random numbers are a generator of our own",
    "_binomial": "its random numbers are a generator of our own",
    "special_airy_ai": "PyTorch's is off by 3e-5 near -2.2; record_special.py compares it with all digits",
    "nextafter": "its last operand is the dtype, which the function fills in; record_op_db.py compares it",
    "_standard_gamma_grad": "PyTorch's has four digits; record_distributions.py compares with a quadrature",
    "rand": "its random numbers are a generator of our own",
    "rand_words": "its random numbers are a generator of our own",
    "randn": "its random numbers are a generator of our own",
    "randint": "its random numbers are a generator of our own",
    "write": "what a captured in-place write becomes; PyTorch has no such op",
    "cond": "it carries graphs, whose ops are compared one by one",
    "while_loop": "it carries graphs, whose ops are compared one by one",
    "fused": "a group of ops, which are compared one by one",
    "to_device": "a copy on another device has the same values",
    "max_pool_grad": "PyTorch's takes the input too; max_pool's gradient is compared in composites",
    "dequantize": "PyTorch has it for layouts of its own kernels only; the formula is one line",
    "paged_attention": "PyTorch has no pages; it is compared with attention over whole rows",
    "grouped_mm": "PyTorch tells where groups end; programs that call it are compared in tests/data/pt2",
    "grouped_mm_weight_grad": "the gradient of grouped_mm",
    "modulus": "hypot, with a gradient of 0 at 0",
    "view_as_real": "complex numbers are compared in complex.safetensors",
    "view_as_complex": "complex numbers are compared in complex.safetensors",
}


def save_safetensors(path, tensors, metadata):
    """Writes the format that sinter/io reads, wide elements first so that all are aligned."""
    header, at, chunks = {"__metadata__": metadata}, 0, []
    for name, t in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        flat = t.detach().reshape(-1).clone(memory_format=torch.contiguous_format)
        data = bytes(flat.view(torch.uint8).tolist())
        header[name] = {"dtype": FILE_DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        chunks.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def recorded_path(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "recorded", name)


# --- attributes


def parse_attribute(text):
    if text in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text]
    if text in DTYPES:
        return DTYPES[text]
    return json.loads(text)


class Attributes(dict):
    """Attributes by name; those that are left out have the op's default, which the caller states."""

    def dims(self, x, name="dims"):
        return tuple(d % max(x.dim(), 1) for d in self.get(name) or range(x.dim()))


# --- ops: each takes the operands and the attributes


def as_tensor(value):
    return value if isinstance(value, torch.Tensor) else torch.tensor(value)


def tensors_only(f):
    """For functions that take no plain number: a 0-d tensor promotes alike here."""
    return lambda x, a: f(*[as_tensor(v) for v in x])


def reduce_one_by_one(f):
    def run(x, a):
        y = x[0]
        for d in sorted(a.dims(y), reverse=True):
            y = f(y, d, a.get("keepdim", False))
        return y if x[0].dim() else f(y, 0, False)

    return run


def arg_of(f):
    def run(x, a):
        dims, keep = sorted(a.dims(x[0])), a.get("keepdim", False)
        rest = [d for d in range(x[0].dim()) if d not in dims]
        moved = x[0].permute(rest + dims).flatten(len(rest)) if dims else x[0].reshape(1)
        y = f(moved, -1)
        for d in dims if keep else []:
            y = y.unsqueeze(d)
        return y

    return run


def of_rank(f, *ranks):
    """Gives the operand leading dimensions of size 1 until it has one of the ranks, and takes them away again."""

    def run(x, a):
        y, added = x[0], 0
        while y.dim() not in ranks:
            y, added = y.unsqueeze(0), added + 1
        y = f(y, a)
        for _ in range(added):
            y = y.squeeze(0)
        return y

    return run


def padded(mode, spatial):
    return of_rank(lambda x, a: F.pad(x, a["pad"], mode=mode), spatial + 1, spatial + 2)


def max_pool(x, a, indices):
    pool = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[len(a["kernel"])]
    both = pool(x, a["kernel"], a["stride"], a["padding"], a["dilation"], a.get("ceil_mode", False), True)
    return both[1] if indices else both[0]


def window_sum(x, a):
    """A convolution with ones, of the input padded by all that a window may reach."""
    x, n = x[0], len(a["kernel"])
    ones = torch.ones([1, 1] + a["kernel"], dtype=x.dtype)
    flat = x.reshape([x.shape[:-n].numel(), 1] + list(x.shape[-n:]))
    if a.get("transposed", False):
        y = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[n](flat, ones, stride=a["stride"])
        pads = [(-p, p + size - y.shape[d + 2]) for d, (p, size) in enumerate(zip(a["padding"], a["size"]))]
        y = F.pad(y, [p for pair in reversed(pads) for p in pair])
    else:
        pads = [(p, max(0, (size - 1) * s + k - p - flat.shape[d + 2]))
                for d, (p, size, s, k) in enumerate(zip(a["padding"], a["size"], a["stride"], a["kernel"]))]
        y = F.pad(flat, [p for pair in reversed(pads) for p in pair])
        y = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[n](y, ones, stride=a["stride"])
        y = y[(slice(None), slice(None)) + tuple(slice(size) for size in a["size"])]
    return y.reshape(list(x.shape[:-n]) + a["size"])


def windows(x, a, back):
    """F.unfold and F.fold of images; one dimension counts as an image of height 1."""
    x, n = x[0], len(a["kernel"])
    size, kernel, dilation, stride = ([1] * (2 - n) + a[key] for key in ("size", "kernel", "dilation", "stride"))
    padding = [0] * (2 - n) + a["padding"]
    counts = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(size, padding, dilation, kernel, stride)]
    lead = list(x.shape[:-2 * n if back else -n])
    images = math.prod(lead)
    if back:
        if images == 0:
            return x.new_zeros(lead + a["size"])
        columns = x.double().reshape(images, math.prod(kernel), math.prod(counts))
        y = F.fold(columns, size, kernel, dilation, padding, stride)
        return y.reshape(lead + a["size"]).to(x.dtype)
    shape = lead + a["kernel"] + counts[2 - n:]
    if images == 0:
        return x.new_zeros(shape)
    return F.unfold(x.double().reshape([images, 1] + size), kernel, dilation, padding, stride).reshape(shape).to(x.dtype)


def arange_end(x, a):
    """Between the last element and the next; whole for integers, of which PyTorch drops fractions."""
    count = a["size"][0]
    return x[0] + x[1] * (count - (0.5 if count and a["dtype"].is_floating_point else 0))


def adaptive_sum(x, a):
    size, n = a["size"], len(a["size"])
    pool = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}[n]
    y = pool(x[0].reshape([1, -1] + list(x[0].shape[-n:])) if x[0].numel() else x[0], size)
    for d in range(n):
        length = x[0].shape[d - n]
        counts = [math.ceil((o + 1) * length / size[d]) - o * length // size[d] for o in range(size[d])]
        y = y * torch.tensor(counts, dtype=y.dtype).reshape([-1] + [1] * (n - 1 - d))
    return y.reshape(list(x[0].shape[:-n]) + size)


def adaptive_max_indices(x, a):
    n = len(a["size"])
    pool = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}[n]
    if not x[0].numel():
        return torch.zeros(list(x[0].shape[:-n]) + a["size"], dtype=torch.int64)
    y = pool(x[0].reshape([1, -1] + list(x[0].shape[-n:])), a["size"], return_indices=True)[1]
    return y.reshape(list(x[0].shape[:-n]) + a["size"])


def weight_grad(x, a):
    groups, kernel = a.get("groups", 1), a["kernel"]
    weight = torch.zeros([x[1].shape[1], x[0].shape[1] // groups] + kernel, dtype=x[0].dtype)
    return aten.convolution_backward(x[1], x[0], weight, None, a["stride"], a["padding"], a["dilation"], False,
                                     [0] * len(kernel), groups, [False, True, False])[1]


def convolution(x, a):
    return aten.convolution(x[0], x[1], None, a["stride"], a["padding"], a["dilation"], a.get("transposed", False),
                            a.get("output_padding") or [0] * len(a["stride"]), a.get("groups", 1))


def index_list(dims, indices):
    out = [None] * (max(dims) + 1)
    for d, index in zip(dims, indices):
        out[d] = index
    return out


def index_put(x, a):
    value = x[1] if isinstance(x[1], torch.Tensor) else torch.tensor(x[1], dtype=x[0].dtype)
    return aten.index_put(x[0], index_list(a["dims"], x[2:]), value, a.get("accumulate", False))


def topk(x, a):
    dim, largest = a.get("dim", -1), a.get("largest", True)
    # PyTorch leaves the order of equal elements open here; a stable sort does not.
    order = torch.sort(x[0], dim=dim, descending=largest, stable=True)[1].narrow(dim, 0, a["k"])
    return torch.topk(x[0], a["k"], dim, largest)[0], order


def wide_enough(t):
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else t


def batch_norm_training(x, a):
    wide = [wide_enough(t) for t in x]
    dims = [d for d in range(wide[0].dim()) if d != 1]
    y = F.batch_norm(wide[0], None, None, *wide[1:], training=True, eps=a.get("eps", 1e-5))
    return y.to(x[0].dtype), wide[0].mean(dims), wide[0].var(dims, unbiased=False)


def batch_norm_backward(x, a):
    eps = a.get("eps", 1e-5)
    image, grad, mean, var, *weight = [wide_enough(t) for t in x]
    weight = weight[0] if weight else torch.ones_like(mean)
    dx, dweight, dbias = aten.native_batch_norm_backward(grad, image, weight, None, None, mean, torch.rsqrt(var + eps), True,
                                                         eps, [True, True, True])
    return dx.to(x[0].dtype), dweight, dbias


def row_norm(x, a, norm):
    wide = [wide_enough(t) for t in x]
    shape = wide[0].shape[wide[0].dim() - a.get("dims", 1):]
    return [(t.to(x[0].dtype) if n == 0 else t) for n, t in enumerate(norm(wide, list(shape), a.get("eps", 1e-5)))]


def layer_norm(x, a):
    return row_norm(x, a, lambda w, shape, eps: torch.native_layer_norm(
        w[0], shape, w[1] if len(w) > 1 else None, w[2] if len(w) > 2 else None, eps))


def rms_norm(x, a):
    def norm(w, shape, eps):
        dims = list(range(w[0].dim() - len(shape), w[0].dim()))
        rstd = torch.rsqrt(w[0].square().mean(dims, keepdim=True) + eps)
        return F.rms_norm(w[0], shape, w[1] if len(w) > 1 else None, eps), rstd
    return row_norm(x, a, norm)


def philox(counter, seed, offset):
    """The four words of a counter: Philox4x32-10."""
    low = 0xffffffff
    c, k = [counter & low, counter >> 32 & low, offset & low, offset >> 32 & low], [seed & low, seed >> 32 & low]
    for _ in range(10):
        a, b = c[0] * 0xd2511f53, c[2] * 0xcd9e8d57
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [k[0] + 0x9e3779b9 & low, k[1] + 0xbb67ae85 & low]
    return c


def kept_weights(weights, draw, p):
    """What dropout multiplies attention's weights by: a counter is for four keys of a row."""
    seed, offset = (int(x) for x in draw)
    keys, rows = weights.shape[-1], weights[..., 0].numel()
    counters = -(-keys // 4)
    words = [[word for c in range(counters) for word in philox(row * counters + c, seed, offset)][:keys]
             for row in range(rows)]
    uniform = (torch.tensor(words, dtype=torch.int64) >> 8).to(torch.float64) * 2.0 ** -24
    return (uniform.to(torch.float32) >= torch.tensor(p, dtype=torch.float32)).reshape(weights.shape).to(weights.dtype) / (1 - p)


def without_draw(x, a):
    """The operands but for seed and offset, and these."""
    return (x[:-2], x[-2:]) if a.get("dropout_p") else (x, None)


def attention(x, a):
    x, draw = without_draw(x, a)
    if draw:
        group = x[0].shape[-3] // x[2].shape[-3]
        weights = torch.softmax(attention_scores(x[0], x[1], x[3] if len(x) > 3 else None, a), -1)
        weights = torch.nan_to_num(weights, nan=0.0) * kept_weights(weights, draw, a["dropout_p"])
        return weights @ x[2].repeat_interleave(group, -3)
    return F.scaled_dot_product_attention(*x[:3], attn_mask=x[3] if len(x) > 3 else None,
                                          is_causal=a.get("is_causal", False), scale=a.get("scale"),
                                          enable_gqa=a.get("enable_gqa", False))


def attention_scores(q, k, mask, a):
    scale = float(a.get("scale", 1 / math.sqrt(q.shape[-1])))
    if a.get("enable_gqa"):
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    scores = q @ k.transpose(-2, -1) * scale
    if a.get("is_causal"):
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores


def attention_forward(x, a):
    tensors, _ = without_draw(x, a)
    log_sums = torch.logsumexp(attention_scores(x[0], x[1], tensors[3] if len(tensors) > 3 else None, a), -1)
    return attention(x, a), log_sums.masked_fill(log_sums == -math.inf, math.inf)


def attention_backward(x, a):
    """The gradients of the scores' own formula, with the given logarithms and means."""
    x, draw = without_draw(x, a)
    q, k, v, log_sums, means, grad = x[:6]
    group = q.shape[-3] // k.shape[-3] if a.get("enable_gqa") else 1
    spread = (lambda t: t.repeat_interleave(group, -3)) if group > 1 else (lambda t: t)
    gather = (lambda t: t.unflatten(-3, (-1, group)).sum(-3)) if group > 1 else (lambda t: t)
    weights = torch.exp(attention_scores(q, k, x[6] if len(x) > 6 else None, a) - log_sums.unsqueeze(-1))
    kept = kept_weights(weights, draw, a["dropout_p"]) if draw else 1
    flow = weights * (kept * (grad @ spread(v).transpose(-2, -1)) - means.unsqueeze(-1))
    weights = weights * kept
    flow = flow * float(a.get("scale", 1 / math.sqrt(q.shape[-1])))
    return flow @ spread(k), gather(flow.transpose(-2, -1) @ q), gather(weights.transpose(-2, -1) @ grad)


def turned(vectors):
    """1 or -1 for each column: the sign that makes its first element of more than 0.6 of the largest magnitude positive."""
    if not vectors.numel():
        return vectors.new_ones(vectors.shape[:-2] + vectors.shape[-1:])
    large = vectors.abs() > 0.6 * vectors.abs().amax(-2, keepdim=True)
    first = torch.take_along_dim(vectors, large.int().argmax(-2, keepdim=True), -2).squeeze(-2)
    return torch.where(first < 0, -1.0, 1.0).to(vectors.dtype)


def eigh(x, a):
    if not a.get("vectors", True):
        return torch.linalg.eigvalsh(x[0])
    values, vectors = torch.linalg.eigh(x[0])
    return values, vectors * turned(vectors).unsqueeze(-2)


def svd(x, a):
    if not a.get("vectors", True):
        return torch.linalg.svdvals(x[0])
    u, s, vt = torch.linalg.svd(x[0], full_matrices=False)
    return u * turned(u).unsqueeze(-2), s, vt * turned(u).unsqueeze(-1)


def eig(x, a):
    """Along a direction in order; of each vector the first large element is real and positive."""
    matrix = torch.view_as_complex(x[0]) if a.get("pairs") else x[0]
    values, vectors = torch.linalg.eig(matrix)
    order = (values.real + 0.37 * (values.imag if a.get("pairs") else values.imag.abs())).sort(dim=-1, stable=True)[1]
    values, vectors = values.gather(-1, order), vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape))
    if not a.get("vectors", True):
        return torch.view_as_real(values)
    sizes = vectors.abs()
    if vectors.numel():
        place = (sizes > 0.6 * sizes.amax(-2, keepdim=True)).int().argmax(-2, keepdim=True)
        vectors = vectors * vectors.gather(-2, place).sgn().conj()
    return torch.view_as_real(values), torch.view_as_real(vectors)


def solve_lyapunov(x, a):
    values, vectors = torch.linalg.eigh((x[0] + x[0].mT) / 2)
    inner = vectors.mT @ x[1] @ vectors / (values.unsqueeze(-1) + values.unsqueeze(-2))
    return vectors @ inner @ vectors.mT


def qr(x, a):
    q, r = torch.linalg.qr(x[0], mode="r" if a.get("only_r") else "complete" if a.get("complete") else "reduced")
    return r if a.get("only_r") else (q, r)


def cholesky(x, a):
    """What is not positive-definite has no factor: NaN here, the unfinished work in PyTorch."""
    lower, info = torch.linalg.cholesky_ex(x[0])
    return lower.masked_fill((info > 0)[..., None, None], math.nan), info


def lu_permutation(x, a):
    matrix = torch.zeros(list(x[0].shape[:-1]) + [a["rows"], x[0].shape[-1]])
    return torch.lu_unpack(matrix, x[0].int())[0].argmax(-2)


def direct(f):
    return lambda x, a: f(*x)


OPS = {name: direct(getattr(torch, name)) for name in """abs acos acosh asin asinh atan atanh bitwise_not ceil clone cos
    cosh erf erfc exp exp2 expm1 floor isfinite isinf isnan lgamma digamma erfinv log log10 log1p log2 logical_not neg reciprocal round rsqrt
    sigmoid sign sin sinh sqrt square tan tanh trunc relu selu celu add sub mul div floor_divide fmod remainder pow
    copysign xlogy lerp where eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift clamp_min clamp_max mm bmm i0""".split()}
OPS |= {name: tensors_only(getattr(torch, name)) for name in
        "atan2 hypot logaddexp maximum minimum fmax fmin clamp logical_and logical_or logical_xor".split()}
OPS |= {name: direct(getattr(F, name)) for name in """gelu silu mish hardtanh hardswish hardsigmoid leaky_relu elu
    softplus logsigmoid softsign threshold hardshrink softshrink""".split()}
OPS |= {f"special_{name}": direct(getattr(torch.special, name)) for name in """i0e i1 i1e bessel_j0 bessel_j1 bessel_y0
    bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 erfcx log_ndtr
    ndtri entr xlog1py zeta chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p""".split()}
OPS |= {
    "gcd": tensors_only(torch.gcd),
    "lcm": tensors_only(torch.lcm),
    "gammainc": tensors_only(torch.special.gammainc),
    "gammaincc": tensors_only(torch.special.gammaincc),
    "prelu": lambda x, a: torch.where(as_tensor(x[0]) > 0, x[0], x[0] * x[1]),
    "gelu_tanh": lambda x, a: F.gelu(x[0], approximate="tanh"),
    "trunc_divide": lambda x, a: torch.div(*x, rounding_mode="trunc"),
    "addcmul": lambda x, a: torch.addcmul(*x[:3], value=x[3]),
    "addcdiv": lambda x, a: torch.addcdiv(*x[:3], value=x[3]),
    "_to_copy": lambda x, a: x[0].to(a.get("dtype", torch.float32)),
    # reductions and scans
    "sum": lambda x, a: torch.sum(x[0], a.dims(x[0]), a.get("keepdim", False)),
    "prod": reduce_one_by_one(lambda x, d, keep: torch.prod(x, d, keep)),
    "amax": lambda x, a: torch.amax(x[0], a.dims(x[0]), a.get("keepdim", False)),
    "amin": lambda x, a: torch.amin(x[0], a.dims(x[0]), a.get("keepdim", False)),
    "argmax": arg_of(torch.argmax),
    "argmin": arg_of(torch.argmin),
    "any": reduce_one_by_one(lambda x, d, keep: torch.any(x, d, keep)),
    "all": reduce_one_by_one(lambda x, d, keep: torch.all(x, d, keep)),
    "cumsum": lambda x, a: torch.cumsum(x[0], a.get("dim", 0)),
    "_cummax": lambda x, a: torch.cummax(x[0], a.get("dim", 0))[0],
    "_cummin": lambda x, a: torch.cummin(x[0], a.get("dim", 0))[0],
    "cumprod": lambda x, a: torch.cumprod(x[0], a.get("dim", 0)),
    # creation
    "full": lambda x, a: as_tensor(x[0]).to(a.get("dtype", torch.float32)).expand(a["size"]),
    "arange": lambda x, a: torch.arange(x[0], arange_end(x, a), x[1],
                                        dtype=a["dtype"]),
    "linspace": lambda x, a: torch.linspace(x[0], x[1], a["size"][0], dtype=a["dtype"]),
    "eye": lambda x, a: torch.eye(*a["size"], dtype=a.get("dtype", torch.float32)),
    "sym_value": lambda x, a: torch.tensor(a["value"]),
    "tril": lambda x, a: torch.tril(x[0], a.get("diagonal", 0)),
    "triu": lambda x, a: torch.triu(x[0], a.get("diagonal", 0)),
    # views and rearrangements
    "alias": lambda x, a: aten.alias(x[0]),
    "view": lambda x, a: x[0].view(a["size"]),
    "permute": lambda x, a: x[0].permute(a.get("dims", [])),
    "expand": lambda x, a: x[0].expand(a["size"]),
    "squeeze": lambda x, a: x[0].squeeze(tuple(a["dims"])),
    "unsqueeze": lambda x, a: x[0].unsqueeze(a["dim"]),
    "select": lambda x, a: x[0].select(a.get("dim", 0), a["index"]),
    "slice": lambda x, a: aten.slice(x[0], a.get("dim", 0), a.get("start", 0), a.get("end"), a.get("step", 1)),
    "diagonal": lambda x, a: x[0].diagonal(a.get("offset", 0), a.get("dim1", 0), a.get("dim2", 1)),
    "unfold": lambda x, a: x[0].unfold(a["dim"], a["size"], a["step"]),
    "as_strided": lambda x, a: x[0].as_strided(a["size"], a["stride"], a.get("storage_offset", 0)),
    "cat": lambda x, a: torch.cat(x, a.get("dim", 0)),
    "repeat": lambda x, a: x[0].repeat(a["repeats"]),
    "flip": lambda x, a: x[0].flip(a.get("dims", [])),
    "roll": lambda x, a: x[0].roll(a["shifts"], a["dims"]),
    "select_scatter": lambda x, a: torch.select_scatter(*x, a.get("dim", 0), a["index"]),
    "slice_scatter": lambda x, a: torch.slice_scatter(*x, a.get("dim", 0), a.get("start", 0), a.get("end"),
                                                      a.get("step", 1)),
    "diagonal_scatter": lambda x, a: torch.diagonal_scatter(*x, a.get("offset", 0), a.get("dim1", 0), a.get("dim2", 1)),
    "constant_pad_nd": lambda x, a: F.pad(x[0], a.get("pad", []), value=a.get("value", 0)),
    "reflection_pad1d": padded("reflect", 1),
    "reflection_pad2d": padded("reflect", 2),
    "reflection_pad3d": padded("reflect", 3),
    "replication_pad1d": padded("replicate", 1),
    "replication_pad2d": padded("replicate", 2),
    "replication_pad3d": padded("replicate", 3),
    # indexing
    "index_select": lambda x, a: torch.index_select(x[0], a.get("dim", 0), x[1]),
    "gather": lambda x, a: torch.gather(x[0], a.get("dim", 0), x[1]),
    "embedding": lambda x, a: F.embedding(x[1], x[0], a.get("padding_idx")),
    "scatter": lambda x, a: torch.scatter(x[0], a.get("dim", 0), x[1], x[2]),
    "scatter_add": lambda x, a: torch.scatter_add(x[0], a.get("dim", 0), x[1], x[2]),
    "scatter_reduce": lambda x, a: torch.scatter_reduce(x[0], a.get("dim", 0), x[1], x[2], a.get("reduce", "sum")),
    "index_copy": lambda x, a: (torch.index_copy if isinstance(x[2], torch.Tensor) else torch.index_fill)(
        x[0], a.get("dim", 0), x[1], x[2]),
    "index_add": lambda x, a: torch.index_add(x[0], a.get("dim", 0), x[1], x[2]),
    "index": lambda x, a: aten.index(x[0], index_list(a["dims"], x[1:])),
    "index_put": index_put,
    # order
    "sort": lambda x, a: torch.sort(x[0], dim=a.get("dim", -1), descending=a.get("descending", False), stable=True),
    "topk": topk,
    "nonzero": lambda x, a: torch.nonzero(x[0]),
    "_unique2": lambda x, a: torch.unique(x[0], sorted=True, return_inverse=True, return_counts=True),
    "searchsorted": lambda x, a: torch.searchsorted(x[0], x[1], right=a.get("right", False)),
    # contractions, windows, attention
    "convolution": convolution,
    "convolution_weight_grad": weight_grad,
    "max_pool": lambda x, a: max_pool(x[0], a, False),
    "max_pool_indices": lambda x, a: max_pool(x[0], a, True),
    "window_sum": window_sum,
    "windows": lambda x, a: windows(x, a, False),
    "windows_back": lambda x, a: windows(x, a, True),
    "adaptive_sum": adaptive_sum,
    "adaptive_max_indices": adaptive_max_indices,
    "scaled_dot_product_attention": attention,
    "attention_forward": attention_forward,
    "attention_backward": attention_backward,
    # normalisations
    "batch_norm_training": batch_norm_training,
    "batch_norm_backward": batch_norm_backward,
    "native_layer_norm": layer_norm,
    "native_rms_norm": rms_norm,
    # linear algebra
    "linalg_lu_factor_ex": lambda x, a: torch.linalg.lu_factor_ex(x[0]),
    "lu_permutation": lu_permutation,
    "linalg_cholesky_ex": cholesky,
    "linalg_solve_triangular": lambda x, a: torch.linalg.solve_triangular(
        *x, upper=a.get("upper", False), unitriangular=a.get("unitriangular", False)),
    "linalg_qr": qr,
    "linalg_eigh": eigh,
    "linalg_eig": eig,
    "linalg_ldl_factor_ex": lambda x, a: torch.linalg.ldl_factor_ex(x[0]),
    "linalg_ldl_solve": lambda x, a: torch.linalg.ldl_solve(*x),
    "geqrf": lambda x, a: torch.geqrf(x[0]),
    "solve_lyapunov": solve_lyapunov,
    "linalg_matrix_sqrth": lambda x, a: torch.linalg.matrix_sqrth(x[0]),
    "linalg_polar": lambda x, a: torch.linalg.polar(x[0]),
    "_linalg_svd": svd,
    "linalg_matrix_exp": lambda x, a: torch.linalg.matrix_exp(x[0]),
    # Of row-major matrices PyTorch factors the transpose here, which only the factors tell.
    "_linalg_solve_ex": lambda x, a: (torch.linalg.solve_ex(*x)[0], *torch.linalg.lu_factor_ex(x[0])),
    "linalg_inv_ex": lambda x, a: torch.linalg.inv_ex(x[0]),
    "_linalg_det": lambda x, a: (torch.linalg.det(x[0]), *torch.linalg.lu_factor_ex(x[0])[:2]),
    "_linalg_slogdet": lambda x, a: (*torch.linalg.slogdet(x[0]), *torch.linalg.lu_factor_ex(x[0])[:2]),
    # Fourier transforms: complex numbers are pairs in the last dimension
    "_fft_c2c": lambda x, a: torch.view_as_real(
        aten._fft_c2c(torch.view_as_complex(x[0]), a["dims"], a.get("norm", 0), a.get("forward", True))),
    "_fft_r2c": lambda x, a: torch.view_as_real(aten._fft_r2c(x[0], a["dims"], a.get("norm", 0), a.get("onesided", True))),
    "_fft_c2r": lambda x, a: aten._fft_c2r(torch.view_as_complex(x[0]), a["dims"], a.get("norm", 0), a["last_size"]),
    "linalg_pinv": lambda x, a: torch.linalg.pinv(x[0], atol=a.get("atol"), rtol=a.get("rtol")),
}

# --- recording


def operand(o):
    if "number" in o:
        return o["number"]
    return torch.tensor(o["values"], dtype=DTYPES[o["dtype"]]).reshape(o["shape"])


def widened(x):
    return x.double() if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x


def results(op, operands, attributes):
    y = OPS[op](operands, attributes)
    return list(y) if isinstance(y, (tuple, list)) else [y]


def record(op, case):
    operands = [operand(o) for o in case["operands"]]
    attributes = Attributes({name: parse_attribute(text) for name, text in case["attributes"].items()})
    native = results(op, operands, attributes)
    wide = results(op, [widened(x) for x in operands], attributes)
    for i, (n, w) in enumerate(zip(native, wide)):
        w = w.to(n.dtype)
        assert n.shape == w.shape, case
        if not torch.allclose(n.double(), w.double(), 1e-3, 1e-4, True):
            print(f"{case['name']}: single and double precision disagree; the single one is kept", file=sys.stderr)
            continue
        if n.dtype == torch.float32:
            native[i] = w
    return native


def main():
    tensors, metadata, refused = {}, {}, {}
    for entry in json.load(sys.stdin):
        op = entry["op"]
        if op in OURS:
            continue
        if op not in OPS:
            sys.exit(f"{op}: say in OPS what PyTorch calls it, or in OURS why there is nothing to compare with")
        metadata[op] = entry["digest"]
        for case in entry["cases"]:
            try:
                outputs = record(op, case)
            except (RuntimeError, TypeError, NotImplementedError, IndexError) as error:
                if case["name"].startswith(f"{op}/f32/"):
                    sys.exit(f"{case['name']} ({case['text']}): {error}")
                refused[case["name"]] = str(error).split("\n")[0][:100]
                continue
            for i, t in enumerate(outputs):
                tensors[f"{case['name']}/{i}"] = t
    for name, reason in refused.items():
        print(f"PyTorch refuses {name}: {reason}", file=sys.stderr)
    metadata["refused"] = " ".join(refused)
    metadata |= {f"ours:{op}": reason for op, reason in OURS.items()}
    save_safetensors(recorded_path("ops.safetensors"), tensors, metadata)
    print(f"{len(tensors)} results of {len(metadata) - len(OURS) - 1} ops with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
