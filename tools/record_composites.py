#!/usr/bin/env python3
"""Records what PyTorch gives for the functions that people call, with gradients, in composites.safetensors.

    python3 tools/record_composites.py

Each case here has its C++ counterpart of the same name in tests/ops/composites_recorded_test.cpp; the inputs are drawn
here and recorded. Values and gradients are computed in double precision and rounded once.
"""
import zlib

import torch
import torch.nn.functional as F

from record_ops import recorded_path, save_safetensors

CASES = {}


class Draw:
    """The inputs of one case; the same in every run."""

    def __init__(self, name):
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def normal(self, *shape):
        return torch.randn(shape, generator=self.generator)

    def uniform(self, low, high, *shape):
        return low + (high - low) * torch.rand(shape, generator=self.generator)

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)

    def mask(self, *shape):
        return torch.rand(shape, generator=self.generator) < 0.5


class Fixed:
    """An input that no gradient is asked for."""

    def __init__(self, tensor):
        self.tensor = tensor


def case(name, inputs, function):
    assert name not in CASES, name
    CASES[name] = (inputs, function)


def normals(*shapes):
    return lambda draw: [draw.normal(*shape) for shape in shapes]


def simple(name, function, *shapes):
    case(name, normals(*shapes), function)


def distribution(x):
    return torch.softmax(x, -1)


# --- products
simple("matmul_1d_1d", torch.matmul, [5], [5])
simple("matmul_2d_1d", torch.matmul, [3, 5], [5])
simple("matmul_1d_2d", torch.matmul, [5], [5, 4])
simple("matmul_2d_2d", torch.matmul, [3, 5], [5, 4])
simple("matmul_3d_1d", torch.matmul, [2, 3, 5], [5])
simple("matmul_1d_3d", torch.matmul, [5], [2, 5, 3])
simple("matmul_3d_2d", torch.matmul, [2, 3, 5], [5, 4])
simple("matmul_2d_3d", torch.matmul, [3, 5], [2, 5, 4])
simple("matmul_broadcast", torch.matmul, [2, 1, 3, 5], [4, 5, 2])
simple("linear", F.linear, [2, 3, 5], [4, 5], [4])
simple("linear_no_bias", F.linear, [5], [4, 5])
simple("bmm", torch.bmm, [2, 3, 4], [2, 4, 5])
simple("addmm", lambda i, a, b: torch.addmm(i, a, b, beta=0.5, alpha=2), [4], [3, 5], [5, 4])
simple("baddbmm", lambda i, a, b: torch.baddbmm(i, a, b, beta=0.5, alpha=2), [2, 3, 5], [2, 3, 4], [2, 4, 5])
simple("outer", torch.outer, [3], [4])
simple("dot", torch.dot, [7], [7])
simple("mv", torch.mv, [3, 4], [4])
simple("addmv", lambda i, a, v: torch.addmv(i, a, v, beta=2, alpha=-1), [3], [3, 4], [4])
simple("tensordot", lambda a, b: torch.tensordot(a, b, ([1, 2], [0, 1])), [2, 3, 4], [3, 4, 5])
simple("einsum_batched", lambda a, b: torch.einsum("bij,bjk->bik", a, b), [2, 3, 4], [2, 4, 5])
simple("einsum_trace", lambda a: torch.einsum("ii->", a), [4, 4])
simple("einsum_three", lambda a, b, c: torch.einsum("ab,bc,cd->ad", a, b, c), [2, 3], [3, 4], [4, 2])
simple("einsum_ellipsis", lambda a, b: torch.einsum("...i,...i->...", a, b), [2, 3, 4], [3, 4])
simple("einsum_implicit", lambda a, b: torch.einsum("bca,cb", a, b), [2, 3, 4], [3, 2])

# --- normalisations
simple("softmax", lambda x: torch.softmax(x, -1), [3, 7])
simple("softmax_dim0", lambda x: torch.softmax(x, 0), [3, 4, 2])
simple("log_softmax", lambda x: torch.log_softmax(x, 1), [3, 7])
simple("layer_norm", lambda x, w, b: F.layer_norm(x, [4, 5], w, b), [2, 3, 4, 5], [4, 5], [4, 5])
simple("layer_norm_plain", lambda x: F.layer_norm(x, [6], eps=1e-3), [3, 6])
simple("rms_norm", lambda x, w: F.rms_norm(x, [6], w), [3, 6], [6])
simple("rms_norm_eps", lambda x, w: F.rms_norm(x, [2, 3], w, 1e-3), [4, 2, 3], [2, 3])
simple("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), [2, 6, 3, 2], [6], [6])
simple("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [2, 3, 4, 3], [3], [3])
simple("normalize", lambda x: F.normalize(x, dim=1), [3, 5])
simple("local_response_norm", lambda x: F.local_response_norm(x, 3), [2, 5, 4])


def batch_norm(training):
    def run(x, w, b, mean, var):
        mean, var = mean.clone(), var.clone()
        return F.batch_norm(x, mean, var, w, b, training, 0.3), mean, var

    return run


def batch_norm_inputs(draw):
    return [draw.normal(4, 3, 5), draw.normal(3), draw.normal(3), Fixed(draw.normal(3)), Fixed(draw.uniform(0.5, 2, 3))]


case("batch_norm_train", batch_norm_inputs, batch_norm(True))
case("batch_norm_eval", batch_norm_inputs, batch_norm(False))

# --- activations
for name, function in {
    "relu": F.relu, "relu6": lambda x: F.relu6(3 * x), "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu, "mish": F.mish, "hardswish": lambda x: F.hardswish(2 * x),
    "hardsigmoid": lambda x: F.hardsigmoid(2 * x),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.7), "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.5), "selu": F.selu, "celu": lambda x: F.celu(x, 1.5),
    "softplus": lambda x: F.softplus(x, 2, 1), "logsigmoid": F.logsigmoid, "softsign": F.softsign,
    "threshold": lambda x: F.threshold(x, 0.1, -2), "glu": lambda x: F.glu(x, 1), "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}.items():
    simple(name, function, [5, 6])

# --- convolutions
simple("conv1d", lambda x, w, b: F.conv1d(x, w, b, 2, 1), [2, 3, 9], [4, 3, 3], [4])
simple("conv1d_same", lambda x, w: F.conv1d(x, w, padding="same"), [1, 2, 7], [3, 2, 4])
simple("conv2d", lambda x, w, b: F.conv2d(x, w, b, 1, 1), [2, 3, 5, 4], [4, 3, 3, 3], [4])
simple("conv2d_groups", lambda x, w: F.conv2d(x, w, None, (2, 1), (1, 0), (1, 2), 2), [1, 4, 6, 7], [6, 2, 3, 2])
simple("conv2d_depthwise", lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 3), [1, 3, 5, 5], [3, 1, 3, 3])
simple("conv2d_unbatched", lambda x, w: F.conv2d(x, w), [2, 5, 5], [3, 2, 3, 3])
simple("conv3d", lambda x, w, b: F.conv3d(x, w, b, (1, 2, 1), (0, 1, 0)), [1, 2, 3, 4, 4], [2, 2, 2, 2, 2], [2])
simple("conv_transpose1d", lambda x, w: F.conv_transpose1d(x, w, None, 3, 1, 2, 2), [2, 4, 4], [4, 3, 3])
simple("conv_transpose2d", lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), [1, 3, 3, 4], [3, 2, 3, 3], [2])
simple("conv_transpose3d", lambda x, w: F.conv_transpose3d(x, w, None, (1, 2, 1)), [1, 2, 2, 2, 3], [2, 2, 2, 2, 2])

# --- pools and resizing
simple("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), [2, 3, 9])
simple("max_pool2d", lambda x: F.max_pool2d(x, 2), [1, 2, 5, 6])
simple("max_pool2d_with_indices",
       lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), ceil_mode=True, return_indices=True), [1, 2, 6, 5])
simple("max_pool3d", lambda x: F.max_pool3d(x, 2, 1, 0, (1, 2, 1)), [1, 1, 3, 4, 3])
simple("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), [2, 3, 9])
simple("avg_pool2d", lambda x: F.avg_pool2d(x, 2), [1, 2, 5, 6])
simple("avg_pool2d_options", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), [1, 2, 6, 6])
simple("avg_pool2d_divisor", lambda x: F.avg_pool2d(x, 2, 2, 0, True, True, 3), [1, 2, 5, 4])
simple("avg_pool3d", lambda x: F.avg_pool3d(x, 2, 1, 1), [1, 1, 3, 2, 3])
simple("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 4), [2, 3, 7])
simple("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), [1, 2, 7, 5])
simple("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 1, 3)), [1, 1, 3, 2, 4])
simple("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True), [1, 2, 7, 5])
simple("interpolate_nearest", lambda x: F.interpolate(x, scale_factor=2), [1, 2, 3, 2])
simple("interpolate_nearest_size", lambda x: F.interpolate(x, size=(5, 3)), [1, 2, 3, 4])
simple("interpolate_bilinear", lambda x: F.interpolate(x, size=(5, 7), mode="bilinear"), [1, 2, 3, 4])
simple("interpolate_bilinear_corners", lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
       [1, 2, 3, 4])
simple("interpolate_linear", lambda x: F.interpolate(x, scale_factor=1.5, mode="linear"), [1, 2, 6])
simple("interpolate_bicubic", lambda x: F.interpolate(x, size=(5, 6), mode="bicubic"), [1, 1, 4, 4])
simple("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [1, 8, 2, 3])

# --- attention
Q, K, V = [2, 2, 4, 6], [2, 2, 5, 6], [2, 2, 5, 3]
attention = F.scaled_dot_product_attention
simple("attention", attention, Q, K, V)
simple("attention_causal", lambda q, k, v: attention(q, k, v, is_causal=True), Q, K, V)
simple("attention_scale", lambda q, k, v: attention(q, k, v, scale=0.3), Q, K, V)
simple("attention_added_mask", lambda q, k, v, m: attention(q, k, v, m), Q, K, V, [4, 5])
case("attention_mask", lambda draw: [*normals(Q, K, V)(draw), draw.mask(2, 1, 4, 5)],
     lambda q, k, v, m: attention(q, k, v, m))
simple("attention_gqa", lambda q, k, v: attention(q, k, v, enable_gqa=True), [1, 4, 3, 6], [1, 2, 5, 6], [1, 2, 5, 6])

# --- losses


def classes(draw):
    return [draw.normal(4, 5), draw.integers(5, 4)]


def weighted_classes(draw):
    return [draw.normal(4, 5), draw.integers(5, 4), Fixed(draw.uniform(0.5, 2, 5))]


case("cross_entropy", classes, lambda x, t: F.cross_entropy(x, t))
case("cross_entropy_sum", classes, lambda x, t: F.cross_entropy(x, t, reduction="sum"))
case("cross_entropy_none", classes, lambda x, t: F.cross_entropy(x, t, reduction="none"))
case("cross_entropy_smoothing", classes, lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1))
case("cross_entropy_weight", weighted_classes, lambda x, t, w: F.cross_entropy(x, t, w))
case("cross_entropy_all", lambda draw: [draw.normal(4, 5), torch.tensor([2, 0, 4, 2]), Fixed(draw.uniform(0.5, 2, 5))],
     lambda x, t, w: F.cross_entropy(x, t, w, ignore_index=2, label_smoothing=0.2))
case("cross_entropy_2d", lambda draw: [draw.normal(2, 4, 3), draw.integers(4, 2, 3)],
     lambda x, t: F.cross_entropy(x, t))
case("cross_entropy_probabilities", lambda draw: [draw.normal(4, 5), distribution(draw.normal(4, 5))],
     lambda x, t: F.cross_entropy(x, t))
case("nll_loss", lambda draw: [torch.log(distribution(draw.normal(4, 5))), draw.integers(5, 4)],
     lambda x, t: F.nll_loss(x, t))
simple("mse_loss", F.mse_loss, [3, 4], [3, 4])
simple("mse_loss_sum", lambda x, t: F.mse_loss(x, t, reduction="sum"), [3, 4], [3, 4])
simple("l1_loss", F.l1_loss, [3, 4], [3, 4])
simple("smooth_l1_loss", lambda x, t: F.smooth_l1_loss(x, t, beta=0.5), [3, 4], [3, 4])
simple("huber_loss", lambda x, t: F.huber_loss(x, t, delta=0.7), [3, 4], [3, 4])
case("bce_with_logits", lambda draw: [draw.normal(3, 4), draw.uniform(0, 1, 3, 4)], F.binary_cross_entropy_with_logits)
case("bce_with_logits_weight",
     lambda draw: [draw.normal(3, 4), draw.uniform(0, 1, 3, 4), Fixed(draw.uniform(0.5, 2, 4)),
                   Fixed(draw.uniform(0.5, 2, 4))],
     lambda x, t, w, p: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p, reduction="sum"))
case("bce", lambda draw: [draw.uniform(0.1, 0.9, 3, 4), draw.uniform(0, 1, 3, 4)], F.binary_cross_entropy)
case("kl_div", lambda draw: [torch.log(distribution(draw.normal(3, 5))), distribution(draw.normal(3, 5))],
     lambda x, t: F.kl_div(x, t, reduction="batchmean"))
case("kl_div_log",
     lambda draw: [torch.log(distribution(draw.normal(3, 5))), torch.log(distribution(draw.normal(3, 5)))],
     lambda x, t: F.kl_div(x, t, reduction="sum", log_target=True))
simple("cosine_similarity", F.cosine_similarity, [3, 4], [3, 4])

# --- rearranging
simple("cat", lambda a, b: torch.cat([a, b], 1), [2, 3], [2, 4])
simple("stack", lambda a, b: torch.stack([a, b], -1), [2, 3], [2, 3])
simple("chunk", lambda x: torch.chunk(x, 3, 1), [2, 7])
simple("split", lambda x: torch.split(x, 2), [5, 3])
simple("split_sizes", lambda x: torch.split(x, [1, 3, 2], -1), [2, 6])
simple("unbind", lambda x: torch.unbind(x, 1), [2, 3])
simple("roll", lambda x: torch.roll(x, (1, -2), (0, 1)), [3, 5])
simple("roll_flat", lambda x: torch.roll(x, 4), [3, 5])
simple("tile", lambda x: torch.tile(x, (2,)), [3, 2])
simple("repeat", lambda x: x.repeat(2, 1, 3), [3, 2])
simple("repeat_interleave", lambda x: torch.repeat_interleave(x, 3, 1), [2, 3])
simple("repeat_interleave_flat", lambda x: torch.repeat_interleave(x, 2), [2, 3])
case("repeat_interleave_counts", lambda draw: [draw.normal(3, 2), draw.integers(4, 3)],
     lambda x, n: torch.repeat_interleave(x, n, 0))
case("one_hot", lambda draw: [draw.integers(5, 2, 3)], lambda x: F.one_hot(x, 6))
simple("flip", lambda x: torch.flip(x, [0, -1]), [2, 3, 4])
simple("rot90", lambda x: torch.rot90(x, 3), [2, 3])
simple("movedim", lambda x: torch.movedim(x, (0, 2), (1, 0)), [2, 3, 4])
simple("pad_constant", lambda x: F.pad(x, (1, 2, 0, 1), value=1.5), [2, 3])
simple("pad_reflect", lambda x: F.pad(x, (2, 1), mode="reflect"), [1, 2, 4])
simple("pad_replicate", lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"), [1, 2, 3, 3])
simple("pad_circular", lambda x: F.pad(x, (2, 1), mode="circular"), [1, 2, 4])
simple("tril", lambda x: torch.tril(x, -1), [4, 4])
simple("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="xy"), [2], [3])

# --- scans, orderings, searches
simple("cumsum", lambda x: torch.cumsum(x, 1), [3, 5])
simple("cumprod", lambda x: torch.cumprod(x, 0), [4, 3])
case("cumprod_zero", lambda draw: [draw.normal(5) * torch.tensor([1.0, 1, 0, 1, 1])], lambda x: torch.cumprod(x, 0))
simple("sort", lambda x: torch.sort(x, 1), [3, 5])
simple("sort_descending", lambda x: torch.sort(x, 0, descending=True), [5, 3])
simple("argsort", lambda x: torch.argsort(x, -1), [3, 5])
simple("topk", lambda x: torch.topk(x, 2), [3, 5])
simple("topk_smallest", lambda x: torch.topk(x, 3, 0, False), [5, 3])
simple("kthvalue", lambda x: torch.kthvalue(x, 2), [3, 5])
simple("median", lambda x: torch.median(x, 1), [3, 4])
case("unique", lambda draw: [draw.integers(4, 3, 4)],
     lambda x: torch.unique(x, return_inverse=True, return_counts=True))
case("nonzero", lambda draw: [draw.mask(3, 4)], torch.nonzero)
case("searchsorted", lambda draw: [torch.sort(draw.normal(2, 6))[0], draw.normal(2, 3)],
     lambda s, v: torch.searchsorted(s, v, right=True))
case("bincount", lambda draw: [draw.integers(5, 12)], lambda x: torch.bincount(x, minlength=7))

# --- element by element
case("masked_fill", lambda draw: [draw.normal(3, 4), draw.mask(3, 1)], lambda x, m: x.masked_fill(m, -1.5))
case("where", lambda draw: [draw.mask(3, 4), draw.normal(4), draw.normal(3, 1)], torch.where)
simple("lerp", torch.lerp, [3, 4], [3, 4], [4])
simple("lerp_number", lambda a, b: torch.lerp(a, b, 0.3), [3, 4], [3, 4])
simple("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), [3, 4], [4], [3, 1])
case("addcdiv", lambda draw: [draw.normal(3, 4), draw.normal(4), draw.uniform(0.5, 2, 3, 1)],
     lambda x, a, b: torch.addcdiv(x, a, b, value=0.5))
simple("clamp", lambda x: torch.clamp(x, -0.5, 0.7), [3, 4])
simple("clamp_min_only", lambda x: torch.clamp(x, min=0.1), [3, 4])
simple("clamp_tensors", lambda x, low, high: torch.clamp(x, low, high), [3, 4], [4], [3, 1])
simple("add_alpha", lambda a, b: torch.add(a, b, alpha=2), [3, 4], [4])
case("pow", lambda draw: [draw.uniform(0.2, 2, 3, 4), draw.normal(4)], torch.pow)
simple("pow_number", lambda x: x**3, [3, 4])
simple("pow_of_number", lambda x: 2.0**x, [3, 4])
case("div_floor", lambda draw: [Fixed(5 * draw.normal(3, 4)), Fixed(draw.uniform(0.5, 2, 4))],
     lambda a, b: torch.div(a, b, rounding_mode="floor"))
simple("atan2", torch.atan2, [3, 4], [3, 4])
simple("broadcast_chain", lambda a, b, c: (a * b - c).exp() / (1 + c * c), [2, 1, 3], [4, 1], [3])

# --- reductions
simple("sum", lambda x: x.sum((0, 2), True), [2, 3, 4])
simple("mean", lambda x: x.mean(1), [3, 4])
simple("prod", lambda x: x.prod(1), [3, 4])
simple("std", lambda x: x.std(1), [3, 5])
simple("std_all", lambda x: x.std(), [3, 5])
simple("var", lambda x: x.var((0, 2), correction=0, keepdim=True), [2, 3, 4])
simple("var_mean", lambda x: torch.var_mean(x, 1), [3, 5])
simple("norm", lambda x: torch.norm(x), [3, 4])
simple("norm_1", lambda x: torch.linalg.vector_norm(x, 1, 1), [3, 4])
simple("norm_3", lambda x: torch.linalg.vector_norm(x, 3, 0, True), [3, 4])
simple("norm_inf", lambda x: torch.linalg.vector_norm(x, float("inf"), 1), [3, 4])
simple("logsumexp", lambda x: torch.logsumexp(x, 1), [3, 5])
simple("max_dim", lambda x: torch.max(x, 1), [3, 5])
simple("min_all", torch.min, [3, 5])
simple("amax", lambda x: torch.amax(x, (0, 1)), [3, 2, 4])
simple("argmin", lambda x: torch.argmin(x, 1, True), [3, 5])
case("amax_ties", lambda draw: [draw.integers(3, 3, 5).float()], lambda x: torch.amax(x, 1))
simple("count_nonzero", lambda x: torch.count_nonzero(F.relu(x), 1), [3, 5])

# --- indexing
simple("index_numbers", lambda x: x[1, -1], [3, 4, 2])
simple("index_slices", lambda x: x[1:, ::2], [3, 5])
simple("index_reversed", lambda x: x.flip(0)[1:3], [4, 2])
simple("index_ellipsis_new_axis", lambda x: x[..., None, 0], [2, 3, 4])
case("index_tensor", lambda draw: [draw.normal(5, 3), draw.integers(5, 4)], lambda x, i: x[i])
case("index_negative", lambda draw: [draw.normal(5, 3), draw.integers(5, 4) - 5], lambda x, i: x[i])
case("index_two_tensors", lambda draw: [draw.normal(3, 4, 5), draw.integers(3, 2, 1), draw.integers(5, 3)],
     lambda x, i, j: x[i, :, j])
case("index_mixed", lambda draw: [draw.normal(3, 4, 5), draw.integers(4, 2)], lambda x, i: x[1:, i, 2])
case("index_mask", lambda draw: [draw.normal(3, 4), draw.mask(3, 4)], lambda x, m: x[m])
case("masked_select", lambda draw: [draw.normal(3, 4), draw.mask(4)], torch.masked_select)
case("index_put", lambda draw: [draw.normal(5, 3), draw.normal(2, 3)],
     lambda x, v: x.index_put((torch.tensor([3, 1]),), v))
case("index_put_accumulate", lambda draw: [draw.normal(4, 3), draw.integers(4, 6), draw.normal(6, 3)],
     lambda x, i, v: x.index_put((i,), v, accumulate=True))
case("gather", lambda draw: [draw.normal(3, 4), draw.integers(4, 3, 2)], lambda x, i: x.gather(1, i))
case("scatter_add", lambda draw: [draw.normal(3, 4), draw.integers(4, 3, 5), draw.normal(3, 5)],
     lambda x, i, v: x.scatter_add(1, i, v))
case("scatter_reduce_mean", lambda draw: [draw.normal(3, 4), draw.integers(4, 3, 5), draw.normal(3, 5)],
     lambda x, i, v: x.scatter_reduce(1, i, v, "mean", include_self=False))
case("index_add_alpha", lambda draw: [draw.normal(4, 3), draw.integers(4, 5), draw.normal(5, 3)],
     lambda x, i, v: x.index_add(0, i, v, alpha=2))
case("take_along_dim", lambda draw: [draw.normal(3, 4), draw.integers(4, 1, 2)],
     lambda x, i: torch.take_along_dim(x, i, 1))
case("embedding", lambda draw: [draw.normal(6, 3), draw.integers(6, 2, 4)],
     lambda w, i: F.embedding(i, w, padding_idx=2))


def record(name, tensors):
    inputs, function = CASES[name]
    given = inputs(Draw(name))
    values = [x.tensor if isinstance(x, Fixed) else x for x in given]
    wide, moving = [], []
    for i, (x, value) in enumerate(zip(given, values)):
        tensors[f"{name}/{'fixed' if isinstance(x, Fixed) else 'in'}{i}"] = value
        wide.append(value.double() if value.is_floating_point() else value)
        if value.is_floating_point() and not isinstance(x, Fixed):
            moving.append(i)
            wide[i].requires_grad_()

    def run(x):
        y = function(*x)
        return list(y) if isinstance(y, (tuple, list)) else [y]

    native, outputs = run(values), run(wide)
    cotangents = {}
    for i, (n, y) in enumerate(zip(native, outputs)):
        tensors[f"{name}/out{i}"] = y.detach().to(n.dtype)
        if y.requires_grad:
            cotangents[i] = Draw(f"{name}/{i}").normal(*y.shape)
            tensors[f"{name}/cotangent{i}"] = cotangents[i]
    if not cotangents:
        return
    grads = torch.autograd.grad([outputs[i] for i in cotangents], [wide[i] for i in moving],
                                [c.double() for c in cotangents.values()], allow_unused=True)
    for i, grad in zip(moving, grads):
        if grad is not None:
            tensors[f"{name}/grad{i}"] = grad.float()


def main():
    tensors = {}
    for name in CASES:
        record(name, tensors)
    save_safetensors(recorded_path("composites.safetensors"), tensors, {"cases": " ".join(CASES)})
    print(f"{len(CASES)} cases with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
