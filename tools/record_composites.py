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
    "threshold": lambda x: F.threshold(x, 0.1, -2), "glu": lambda x: F.glu(x, 1), "hardshrink": lambda x: F.hardshrink(x, 0.4),
    "softshrink": lambda x: F.softshrink(x, 0.4), "tanhshrink": F.tanhshrink, "softmin": lambda x: F.softmin(x, 1),
    "rrelu_eval": lambda x: F.rrelu(x, 0.1, 0.5), "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}.items():
    simple(name, function, [5, 6])

simple("prelu", F.prelu, [2, 3, 4], [3])
simple("prelu_one", F.prelu, [5], [1])

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
simple("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), [2, 2, 4, 6])
simple("channel_shuffle", lambda x: F.channel_shuffle(x, 3), [2, 6, 4])
simple("interpolate_nearest_exact", lambda x: F.interpolate(x, size=(5, 3), mode="nearest-exact"), [1, 2, 3, 4])
simple("interpolate_trilinear", lambda x: F.interpolate(x, size=(3, 2, 5), mode="trilinear"), [1, 1, 2, 3, 3])
simple("interpolate_area", lambda x: F.interpolate(x, size=(3, 2), mode="area"), [1, 2, 5, 4])
simple("interpolate_bicubic_corners",
       lambda x: F.interpolate(x, size=(5, 6), mode="bicubic", align_corners=True), [1, 1, 4, 4])
simple("lp_pool1d", lambda x: F.lp_pool1d(x, 2, 3, 2), [2, 3, 8])
simple("lp_pool2d", lambda x: F.lp_pool2d(x, 2, (2, 3), ceil_mode=True), [1, 2, 5, 6])
simple("lp_pool3d", lambda x: F.lp_pool3d(x, 4, 2, 1), [1, 1, 3, 3, 2])
simple("max_pool1d_with_indices", lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True), [2, 3, 9])
simple("max_pool3d_with_indices", lambda x: F.max_pool3d(x, 2, return_indices=True), [1, 2, 4, 4, 4])
simple("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 4, return_indices=True), [2, 3, 7])
simple("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (2, 1, 3), return_indices=True), [1, 1, 3, 2, 4])


def unpooled(pool, unpool, *arguments, **options):
    def run(x):
        y, indices = pool(x, *arguments, return_indices=True)
        return unpool(2 * y, indices, *arguments, **options)

    return run


simple("max_unpool1d", unpooled(F.max_pool1d, F.max_unpool1d, 2, 2, output_size=[1, 2, 9]), [1, 2, 9])
simple("max_unpool2d", unpooled(F.max_pool2d, F.max_unpool2d, 2), [1, 2, 4, 6])
simple("max_unpool3d", unpooled(F.max_pool3d, F.max_unpool3d, 2), [1, 1, 2, 4, 4])
simple("im2col", lambda x: F.unfold(x, (2, 3), (1, 2), (1, 0), (2, 1)), [2, 3, 5, 6])
simple("im2col_unbatched", lambda x: F.unfold(x, 2), [2, 3, 4])
simple("col2im", lambda x: F.fold(x, (4, 5), (2, 3), 1, (1, 0), (2, 1)), [2, 12, 9])

# --- reading at given positions


def sampled(mode, padding, corners, *sizes):
    """A grid that also leaves the input, on either side and by more than its size."""
    name = f"grid_sample_{mode}_{padding}{'_corners' if corners else ''}{'_3d' if len(sizes[0]) == 5 else ''}"
    held = Fixed if mode == "nearest" else lambda grid: grid  # whose gradient is zero, and here none
    case(name, lambda draw: [draw.normal(*sizes[0]), held(draw.uniform(-2.6, 2.6, *sizes[1]))],
         lambda x, g: F.grid_sample(x, g, mode, padding, corners))


for padding in ["zeros", "border", "reflection"]:
    for corners in [False, True]:
        for mode in ["bilinear", "nearest", "bicubic"]:
            sampled(mode, padding, corners, [2, 3, 4, 5], [2, 3, 4, 2])
    sampled("bilinear", padding, False, [1, 2, 3, 4, 5], [1, 2, 3, 2, 3])
sampled("nearest", "zeros", True, [1, 2, 3, 4, 5], [1, 2, 3, 2, 3])
simple("affine_grid", lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), [2, 2, 3])
simple("affine_grid_corners", lambda t: F.affine_grid(t, [2, 3, 1, 5], align_corners=True), [2, 2, 3])
simple("affine_grid_3d", lambda t: F.affine_grid(t, [1, 2, 2, 3, 4], align_corners=False), [1, 3, 4])

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

simple("pairwise_distance", lambda a, b: F.pairwise_distance(a, b, 3, keepdim=True), [3, 4], [3, 4])
simple("poisson_nll_loss", F.poisson_nll_loss, [3, 4], [3, 4])
case("poisson_nll_loss_full", lambda draw: [draw.uniform(0.5, 3, 3, 4), Fixed(draw.integers(5, 3, 4).float())],
     lambda x, t: F.poisson_nll_loss(x, t, log_input=False, full=True, reduction="sum"))
case("gaussian_nll_loss", lambda draw: [draw.normal(3, 4), draw.normal(3, 4), draw.uniform(0.2, 2, 3, 4)],
     F.gaussian_nll_loss)
case("gaussian_nll_loss_full", lambda draw: [draw.normal(3, 4), draw.normal(3, 4), draw.uniform(0.2, 2, 3)],
     lambda x, t, v: F.gaussian_nll_loss(x, t, v, full=True, eps=0.5, reduction="none"))


def signs(draw, *shape):
    return Fixed(2.0 * draw.mask(*shape) - 1)


case("hinge_embedding_loss", lambda draw: [draw.normal(3, 4), signs(draw, 3, 4)],
     lambda x, t: F.hinge_embedding_loss(x, t, 0.7))
case("margin_ranking_loss", lambda draw: [draw.normal(5), draw.normal(5), signs(draw, 5)],
     lambda a, b, t: F.margin_ranking_loss(a, b, t, 0.3))
case("soft_margin_loss", lambda draw: [draw.normal(3, 4), signs(draw, 3, 4)], F.soft_margin_loss)
case("cosine_embedding_loss", lambda draw: [draw.normal(6, 4), draw.normal(6, 4), signs(draw, 6)],
     lambda a, b, t: F.cosine_embedding_loss(a, b, t, -0.2, reduction="sum"))
simple("triplet_margin_loss", F.triplet_margin_loss, [3, 4], [3, 4], [3, 4])
simple("triplet_margin_loss_swap", lambda a, p, n: F.triplet_margin_loss(a, p, n, 2, 1, swap=True, reduction="none"),
       [3, 4], [3, 4], [3, 4])
simple("triplet_margin_with_distance_loss",
       lambda a, p, n: F.triplet_margin_with_distance_loss(
           a, p, n, distance_function=lambda x, y: 1 - F.cosine_similarity(x, y), margin=0.5),
       [3, 4], [3, 4], [3, 4])
case("multi_margin_loss", classes, F.multi_margin_loss)
case("multi_margin_loss_weight", weighted_classes,
     lambda x, t, w: F.multi_margin_loss(x, t, 2, 0.5, w, reduction="sum"))
case("multilabel_margin_loss",
     lambda draw: [draw.normal(2, 4), torch.tensor([[3, 0, -1, 1], [-1, 2, 0, 1]])], F.multilabel_margin_loss)
case("multilabel_soft_margin_loss",
     lambda draw: [draw.normal(3, 4), draw.mask(3, 4).float(), Fixed(draw.uniform(0.5, 2, 4))],
     F.multilabel_soft_margin_loss)

# --- bags
BAG = torch.tensor([1, 4, 0, 2, 2, 5, 1])
OFFSETS = torch.tensor([0, 3, 3, 5])
for mode in ["sum", "mean", "max"]:
    case(f"embedding_bag_{mode}", lambda draw: [draw.normal(6, 3), BAG, OFFSETS],
         lambda w, i, o, mode=mode: F.embedding_bag(i, w, o, mode=mode))
    case(f"embedding_bag_{mode}_padding", lambda draw: [draw.normal(6, 3), draw.integers(6, 4, 3)],
         lambda w, i, mode=mode: F.embedding_bag(i, w, mode=mode, padding_idx=2))
case("embedding_bag_weights", lambda draw: [draw.normal(6, 3), BAG, torch.tensor([0, 3, 7]), draw.normal(7)],
     lambda w, i, o, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p, include_last_offset=True))

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
simple("pad_reflect_3d", lambda x: F.pad(x, (1, 0, 1, 2, 0, 1), mode="reflect"), [1, 1, 2, 3, 3])
simple("pad_replicate_3d", lambda x: F.pad(x, (1, 0, 1, 2, 0, 1), mode="replicate"), [1, 1, 2, 3, 3])
simple("pad_circular_2d", lambda x: F.pad(x, (2, 1, 0, 3), mode="circular"), [1, 2, 3, 3])
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


# --- joining, taking apart, diagonals
simple("hstack", lambda a, b: torch.hstack([a, b]), [2, 3], [2, 1])
simple("hstack_vectors", lambda a, b: torch.hstack([a, b]), [3], [2])
simple("vstack", lambda a, b: torch.vstack([a, b]), [3], [2, 3])
simple("dstack", lambda a, b: torch.dstack([a, b]), [3], [3])
simple("column_stack", lambda a, b: torch.column_stack([a, b]), [3], [3, 2])
simple("block_diag", lambda a, b, c: torch.block_diag(a, b, c), [2, 3], [2], [])
simple("cartesian_prod", lambda a, b: torch.cartesian_prod(a, b), [2], [3])
simple("combinations", lambda x: torch.combinations(x, 3), [5])
simple("combinations_replaced", lambda x: torch.combinations(x, 2, True), [3])
simple("atleast_3d", lambda x: torch.atleast_3d(x), [4])
simple("diag_vector", lambda x: torch.diag(x, 1), [3])
simple("diag_matrix", lambda x: torch.diag(x, -1), [4, 3])
simple("diag_embed", lambda x: torch.diag_embed(x, -1, 0, 2), [2, 3])
simple("diagflat", lambda x: torch.diagflat(x, 1), [2, 2])
simple("tensor_split", lambda x: torch.tensor_split(x, 3, 1), [2, 7])
simple("tensor_split_at", lambda x: torch.tensor_split(x, (1, 4)), [6, 2])
simple("hsplit", lambda x: torch.hsplit(x, 2), [2, 4])
simple("fliplr", torch.fliplr, [2, 3])
simple("broadcast_tensors", lambda a, b: torch.broadcast_tensors(a, b), [3, 1], [4])
case("put", lambda draw: [draw.normal(3, 4), Fixed(torch.tensor([[1, 7], [3, 11]])), draw.normal(2, 2)],
     lambda x, i, v: x.put(i, v))
case("put_accumulate", lambda draw: [draw.normal(3, 4), draw.integers(12, 9), draw.normal(9)],
     lambda x, i, v: x.put(i, v, accumulate=True))
case("index_reduce_amax", lambda draw: [draw.normal(3, 4), draw.integers(3, 5), draw.normal(5, 4)],
     lambda x, i, v: x.index_reduce(0, i, v, "amax"))
case("index_reduce_mean", lambda draw: [draw.normal(3, 4), draw.integers(4, 6), draw.normal(3, 6)],
     lambda x, i, v: x.index_reduce(1, i, v, "mean", include_self=False))
case("scatter_multiply", lambda draw: [Fixed(draw.normal(3, 4)), draw.integers(4, 3, 5), Fixed(draw.normal(3, 5))],
     lambda x, i, v: x.scatter(1, i, v, reduce="multiply"))

# --- more of element by element
odd_values = lambda draw: [torch.tensor([1.5, -2.25, 0.0, float("inf"), -float("inf"), float("nan")])]
case("nan_to_num", lambda draw: [Fixed(odd_values(draw)[0])], lambda x: torch.nan_to_num(x, 0.5, 7, -8))
simple("nan_to_num_grad", lambda x: torch.nan_to_num(torch.where(x > 0, x, float("nan")), 2), [7])
case("isneginf", odd_values, lambda x: (torch.isneginf(x.detach()), torch.isposinf(x.detach()), torch.isreal(x.detach())))
case("signbit", lambda draw: [Fixed(torch.tensor([1.5, -0.0, 0.0, -3]))], torch.signbit)
simple("frac", lambda x: torch.frac(3 * x), [7])
case("frexp", lambda draw: [torch.tensor([0.75, -8.0, 0.0, 1e-3, 3.5e5, 1.0, 0.5, 2.0])],
     lambda x: (torch.frexp(x)[0], torch.frexp(x)[1]))
simple("deg2rad", lambda x: torch.deg2rad(torch.rad2deg(x) * 2), [5])
case("sinc", lambda draw: [torch.cat([draw.normal(5), torch.zeros(1)])], torch.sinc)
case("logit", lambda draw: [draw.uniform(0.05, 0.95, 3, 4)], torch.logit)
case("logit_eps", lambda draw: [draw.uniform(0, 1, 3, 4)], lambda x: torch.logit(x, 0.3))
simple("round_decimals", lambda x: torch.round(100 * x.detach(), decimals=-1), [5])
case("float_power", lambda draw: [draw.uniform(0.2, 2, 3, 4), draw.normal(4)], torch.float_power)
simple("ldexp", torch.ldexp, [4], [4])
simple("logaddexp2", torch.logaddexp2, [3, 4], [4])
case("heaviside", lambda draw: [Fixed(torch.tensor([-1.5, 0.0, 2.0])), Fixed(torch.tensor([0.5]))], torch.heaviside)
case("isin", lambda draw: [draw.integers(9, 3, 4), draw.integers(9, 3)], torch.isin)
case("isin_many", lambda draw: [draw.integers(90, 3, 4), draw.integers(90, 40)],
     lambda x, t: torch.isin(x, t, invert=True))
simple("clip", lambda x: torch.clip(x, -0.5, 0.7), [3, 4])

# --- neighbours, more scans and orderings
simple("diff", lambda x: torch.diff(x, 2, 0), [5, 2])
simple("diff_joined", lambda x, a, b: torch.diff(x, prepend=a, append=b), [2, 3], [2, 1], [2, 2])
simple("cummax", lambda x: torch.cummax(x, 1), [3, 6])
simple("cummin", lambda x: torch.cummin(x, 0), [5, 2])
case("cummax_ties", lambda draw: [draw.integers(3, 9)], lambda x: torch.cummax(x, 0))
simple("logcumsumexp", lambda x: torch.logcumsumexp(5 * x, 1), [3, 6])
simple("trapezoid", lambda y: torch.trapezoid(y, dx=0.5, dim=0), [5, 3])
simple("trapezoid_at", lambda y, x: torch.trapezoid(y, x, dim=0), [5, 3], [5])
simple("cumulative_trapezoid", lambda y: torch.cumulative_trapezoid(y), [3, 4])
simple("cumulative_trapezoid_at", lambda y, x: torch.cumulative_trapezoid(y, x), [3, 4], [3, 4])
simple("gradient", lambda x: torch.gradient(x, spacing=0.5), [4, 3])
simple("gradient_edges", lambda x: torch.gradient(x, spacing=(2.0,), dim=1, edge_order=2), [3, 5])
case("gradient_at", lambda draw: [draw.normal(5, 3), Fixed(torch.tensor([0.0, 0.5, 0.75, 2.0, 3.5]))],
     lambda x, t: torch.gradient(x, spacing=(t,), dim=0, edge_order=2))
simple("msort", torch.msort, [5, 2])
case("nanmedian", lambda draw: [torch.where(draw.normal(3, 6) > 0.7, float("nan"), draw.normal(3, 6))],
     lambda x: torch.nanmedian(x, 1))
case("mode", lambda draw: [draw.integers(4, 3, 9)], lambda x: torch.mode(x, 1))
simple("quantile", lambda x: torch.quantile(x, torch.tensor([0.1, 0.5, 0.9], dtype=x.dtype), 1), [3, 6])
simple("quantile_all", lambda x: torch.quantile(x, 0.3, interpolation="higher"), [3, 6])
simple("quantile_keepdim", lambda x: torch.quantile(x, 0.75, 0, True, interpolation="midpoint"), [5, 2])
case("nanquantile", lambda draw: [torch.where(draw.normal(3, 6) > 0.7, float("nan"), draw.normal(3, 6))],
     lambda x: torch.nanquantile(x, 0.4, 1))
case("histc", lambda draw: [Fixed(draw.normal(40))], lambda x: torch.histc(x, 6))
case("histc_range", lambda draw: [Fixed(draw.normal(40))], lambda x: torch.histc(x, 5, -1, 1))
case("histogram", lambda draw: [Fixed(draw.normal(40)), Fixed(draw.uniform(0, 1, 40))],
     lambda x, w: torch.histogram(x, 5, weight=w, density=True))
case("histogram_edges", lambda draw: [Fixed(draw.normal(40)), Fixed(torch.tensor([-1.0, 0, 0.25, 2]))],
     lambda x, e: torch.histogram(x, e))
case("unique_consecutive", lambda draw: [draw.integers(2, 12)],
     lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True))
case("unique_consecutive_dim", lambda draw: [draw.integers(2, 2, 8)],
     lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=1))
case("unique_dim", lambda draw: [draw.integers(2, 2, 8)],
     lambda x: torch.unique(x, return_inverse=True, return_counts=True, dim=1))
case("bincount_weights", lambda draw: [draw.integers(5, 12), Fixed(draw.normal(12))], torch.bincount)
case("searchsorted_side", lambda draw: [torch.tensor([5, 1, 3]), torch.tensor([1, 4, 3]), torch.tensor([1, 2, 0])],
     lambda s, v, o: torch.searchsorted(s, v, out_int32=True, side="right", sorter=o))

# --- more reductions
case("nanmean", lambda draw: [torch.where(draw.normal(3, 6) > 0.7, float("nan"), draw.normal(3, 6))],
     lambda x: torch.nanmean(x, 1))
case("aminmax", lambda draw: [Fixed(draw.normal(3, 5))], lambda x: torch.aminmax(x, dim=1))
simple("std_mean", lambda x: torch.std_mean(x, 1), [3, 5])
simple("cov", lambda x: torch.cov(x), [3, 6])
case("cov_weights", lambda draw: [draw.normal(3, 6), draw.integers(4, 6) + 1, Fixed(draw.uniform(0.5, 2, 6))],
     lambda x, f, a: torch.cov(x, correction=0, fweights=f, aweights=a))
simple("corrcoef", lambda x: torch.corrcoef(x), [3, 6])

# --- numbers alone
case("logspace", lambda draw: [], lambda: torch.logspace(-1, 2, 7, 2))
case("tril_indices", lambda draw: [], lambda: (torch.tril_indices(3, 4, 1), torch.triu_indices(4, 3, -1)))

# --- linear algebra
def spd(x):
    """Symmetric and positive-definite."""
    return x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)


la = torch.linalg
simple("solve", la.solve, [2, 3, 3], [3, 2])
simple("solve_vector", la.solve, [2, 3, 3], [2, 3])
simple("solve_right", lambda a, b: la.solve(a, b, left=False), [3, 3], [2, 3])
simple("solve_triangular", lambda a, b: la.solve_triangular(a, b, upper=True, left=False, unitriangular=True), [3, 3], [2, 3])
simple("inv", la.inv, [2, 3, 3])
simple("det", la.det, [2, 4, 4])
simple("slogdet", lambda a: la.slogdet(a)[1], [2, 3, 3])
simple("logdet", lambda a: torch.logdet(spd(a)), [3, 3])
simple("cholesky", lambda a: la.cholesky(spd(a)), [2, 3, 3])
case("cholesky_leaf", lambda draw: [spd(draw.normal(3, 3))], lambda a: la.cholesky(a, upper=True))
simple("cholesky_solve", lambda b, a: torch.cholesky_solve(b, torch.tril(a) + 3 * torch.eye(3)), [2, 3, 2], [3, 3])
simple("cholesky_inverse", lambda a: torch.cholesky_inverse(torch.tril(a) + 3 * torch.eye(3)), [3, 3])
simple("qr", lambda a: list(la.qr(a)), [2, 4, 3])
simple("qr_wide", lambda a: list(la.qr(a, "complete")), [2, 3, 5])
simple("svd_rebuilt", lambda a: (lambda u, s, vh: [u * s.sqrt().unsqueeze(-2) @ vh, s])(*la.svd(a, full_matrices=False)), [2, 4, 3])
simple("svdvals", la.svdvals, [2, 3, 4])
simple("eigh_rebuilt", lambda a: (lambda w, v: [v * torch.sin(w).unsqueeze(-2) @ v.mT, w])(*la.eigh(a + a.mT)), [2, 3, 3])
case("eigvalsh_leaf", lambda draw: [spd(draw.normal(3, 3))], lambda a: la.eigvalsh(a, UPLO="U"))
simple("pinv", la.pinv, [2, 3, 4])
simple("pinv_hermitian", lambda a: la.pinv(a + a.mT, hermitian=True), [3, 3])
simple("lstsq", lambda a, b: la.lstsq(a, b).solution, [2, 5, 3], [2, 5, 2])
simple("lu", lambda a: list(la.lu(a)), [2, 4, 3])
simple("lu_solve", lambda a, b: la.lu_solve(*la.lu_factor(a), b, adjoint=True), [3, 3], [3, 2])
simple("matrix_power", lambda a: [la.matrix_power(a, 5), la.matrix_power(a, -2)], [2, 3, 3])
simple("matrix_exp", la.matrix_exp, [2, 3, 3])
simple("matrix_rank", lambda a: la.matrix_rank(torch.cat([a, a], 0)), [3, 5])
simple("cond", lambda a: [la.cond(a), la.cond(a.detach(), 1), la.cond(a.detach(), "fro"), la.cond(a, -2)], [2, 3, 3])
simple("matrix_norms", lambda a: [la.matrix_norm(a), la.matrix_norm(a, "nuc"), la.matrix_norm(a, 2, dim=(0, 2), keepdim=True),
                                  la.matrix_norm(a, -1), la.matrix_norm(a, float("inf"), dim=(2, 0))], [3, 2, 4])
simple("linalg_norm", lambda a: [la.norm(a), la.norm(a, 1), la.norm(a, 3, dim=1), la.norm(a, "fro", dim=(0, 1), keepdim=True)], [3, 4])
simple("multi_dot", lambda a, b, c: la.multi_dot([a, b, c]), [5], [5, 2], [2, 4])
simple("cross", lambda a, b: [la.cross(a, b, dim=0), torch.cross(a, b, dim=0)], [3, 4], [3, 4])
simple("vecdot", la.vecdot, [2, 3, 4], [3, 4])
case("householder_product", lambda draw: [draw.normal(2, 4, 3), draw.uniform(0.5, 1.5, 2, 2)], la.householder_product)
case("ormqr", lambda draw: [draw.normal(2, 4, 3), draw.uniform(0.5, 1.5, 2, 3), draw.normal(2, 4, 2)],
     lambda a, tau, c: [torch.ormqr(a, tau, c), torch.ormqr(a, tau, c, transpose=True), torch.ormqr(a, tau, c.mT, left=False),
                        torch.ormqr(a, tau, c.mT, left=False, transpose=True)])
case("geqrf", lambda draw: [Fixed(draw.normal(2, 4, 3))], lambda a: list(torch.geqrf(a)))
case("ldl_solve", lambda draw: [Fixed(draw.normal(2, 5, 5)), Fixed(draw.normal(2, 5, 3))],
     lambda a, b: la.ldl_solve(*la.ldl_factor(a + a.mT), b))
# What does not depend on the order of the eigenvalues, nor on the phases of the vectors.
simple("eig", lambda a: (lambda w, v: [torch.view_as_real(v * torch.exp(0.3j * w).unsqueeze(-2) @ la.inv(v)),
                                       torch.view_as_real((w * w * w).sum(-1)), (v.abs() ** 3).sum((-2, -1))])(*la.eig(a)), [2, 4, 4])
simple("eigvals", lambda a: (la.eigvals(a).abs() ** 3).sum(-1), [2, 4, 4])
simple("eig_of_complex", lambda a: (lambda w, v: [torch.view_as_real(v * torch.exp(0.3j * w).unsqueeze(-2) @ la.inv(v)),
                                                  (w.abs() ** 3).sum(-1)])(*la.eig(torch.view_as_complex(a))), [2, 3, 3, 2])
simple("polar", lambda a: list(la.polar(a)), [2, 5, 3])
simple("polar_square", lambda a: list(la.polar(a)), [3, 3])
simple("matrix_sqrth", lambda a: la.matrix_sqrth(spd(a)), [2, 3, 3])
case("matrix_sqrth_leaf", lambda draw: [spd(draw.normal(3, 3))], la.matrix_sqrth)
simple("tensorinv", lambda a: la.tensorinv(a, 1), [4, 2, 2])
simple("tensorsolve", la.tensorsolve, [2, 2, 4], [2, 2])
simple("vander", lambda x: la.vander(x, N=4), [2, 3])
simple("triangular_solve", lambda b, a: torch.triangular_solve(b, a, upper=False, transpose=True).solution, [3, 2], [3, 3])
simple("trace", torch.trace, [3, 4])
simple("kron", torch.kron, [2, 3], [3, 1, 2])
simple("addr", lambda i, a, b: torch.addr(i, a, b, beta=2, alpha=0.5), [3, 4], [3], [4])
simple("addbmm", lambda i, a, b: torch.addbmm(i, a, b, beta=2, alpha=0.5), [2, 5], [3, 2, 4], [3, 4, 5])
simple("inner", torch.inner, [2, 3, 4], [5, 4])
simple("tensordot_count", lambda a, b: torch.tensordot(a, b, 2), [2, 3, 4], [3, 4, 5])
simple("cdist", lambda a, b: [torch.cdist(a.detach(), b.detach(), 0.0)] + [
    torch.cdist(a, b, p) for p in (1.0, 2.0, 2.5, float("inf"))], [2, 3, 4], [5, 4])
simple("cdist_product", torch.cdist, [30, 4], [3, 4])
simple("pdist", lambda a: [F.pdist(a), F.pdist(a, 1)], [5, 3])
simple("dist", lambda a, b: [torch.dist(a, b), torch.dist(a, b, 3)], [3, 4], [4])
simple("renorm", lambda a: torch.renorm(a, 2, 1, 1.5), [3, 4, 2])

# --- drawn windows, runs of elements, points, whole numbers


def drawn_pool(name, function, x, kernel, size, samples):
    case(name, lambda draw: [draw.normal(*x), Fixed(draw.uniform(0, 1, *samples))],
         lambda x, s: list(function(x, kernel, size, return_indices=True, _random_samples=s)))


drawn_pool("fractional_max_pool2d", F.fractional_max_pool2d, [2, 3, 9, 8], (2, 3), (4, 5), [2, 3, 2])
drawn_pool("fractional_max_pool2d_unbatched", F.fractional_max_pool2d, [3, 7, 7], 2, (1, 6), [1, 3, 2])
drawn_pool("fractional_max_pool3d", F.fractional_max_pool3d, [2, 2, 6, 7, 8], (2, 3, 2), (3, 2, 4), [2, 2, 3])


def runs(x, lengths, **options):
    return [torch.segment_reduce(x, reduce, lengths=lengths, **options) for reduce in ("sum", "mean", "max", "min", "prod")]


case("segment_reduce", lambda draw: [draw.normal(6, 3), Fixed(torch.tensor([2, 1, 3]))], runs)
case("segment_reduce_initial", lambda draw: [draw.normal(6), Fixed(torch.tensor([2, 0, 4]))], lambda x, l: runs(x, l, initial=0.5))
case("segment_reduce_axis", lambda draw: [draw.normal(2, 5, 2), Fixed(torch.tensor([[2, 3], [4, 1]]))], lambda x, l: runs(x, l, axis=1))
case("segment_reduce_empty", lambda draw: [Fixed(draw.normal(4)), Fixed(torch.tensor([0, 4, 0]))], runs)
case("segment_reduce_offsets", lambda draw: [draw.normal(2, 6, 2), Fixed(torch.tensor([[0, 2, 6], [0, 5, 6]]))],
     lambda x, o: [torch.segment_reduce(x, "sum", offsets=o, axis=1), torch.segment_reduce(x, "max", offsets=o, axis=1)])
case("histogramdd", lambda draw: [Fixed(draw.normal(20, 2)), Fixed(draw.uniform(0, 1, 20))],
     lambda x, w: (lambda h, e: [h, *e])(*torch.histogramdd(x, [3, 4], range=[-1.0, 1, -2, 0.5], weight=w, density=True)))
case("histogramdd_own_range", lambda draw: [Fixed(draw.normal(2, 10, 2))], lambda x: (lambda h, e: [h, *e])(*torch.histogramdd(x, [3, 4])))
case("histogramdd_edges", lambda draw: [Fixed(draw.normal(20, 2)), Fixed(torch.tensor([-1.0, 0, 0.25, 1])), Fixed(torch.tensor([-2.0, 0.5, 1]))],
     lambda x, a, b: torch.histogramdd(x, [a, b])[0])
case("_chunk_cat", lambda draw: [Fixed(draw.normal(5, 2)), Fixed(draw.normal(2, 4))], lambda a, b: torch._chunk_cat([a, b], 0, 3))

case("linear_cross_entropy_weight",
     lambda draw: [draw.normal(6, 3), draw.normal(5, 3), torch.tensor([2, 0, 4, -100, 1, 2]), draw.normal(5), Fixed(draw.uniform(0.5, 2, 5))],
     lambda x, w, t, b, c: [F.linear_cross_entropy(x, w, t, linear_bias=b, weight=c, label_smoothing=0.1, reduction=r)
                            for r in ("none", "mean", "sum")])
case("linear_cross_entropy_probabilities",
     lambda draw: [draw.normal(6, 3), draw.normal(5, 3), Fixed(distribution(draw.normal(6, 5))), Fixed(draw.uniform(0.5, 2, 5))],
     lambda x, w, t, c: [F.linear_cross_entropy(x, w, t, weight=c, reduction=r) for r in ("none", "mean", "sum")])
case("linear_cross_entropy_many",
     lambda draw: [draw.normal(4, 3), draw.normal(5, 2, 3), draw.integers(5, 4, 2), draw.normal(5, 2)],
     lambda x, w, t, b: [F.linear_cross_entropy(x, w, t, linear_bias=b, reduction=r) for r in ("none", "mean")])


def whole(name, function, *shapes):
    case(name, lambda draw: [draw.integers(9, *shape) - 4 for shape in shapes], function)


whole("avg_pool_of_integers", lambda x: [F.avg_pool1d(x, 2, 1), F.avg_pool2d(x, 2, 1, 1, count_include_pad=False),
                                         F.avg_pool3d(x.unsqueeze(0), 2, ceil_mode=True), F.avg_pool2d(x, 3, divisor_override=4)], [2, 5, 5])
whole("losses_of_integers",
      lambda a, b, s: [F.cosine_embedding_loss(a, b, s[:, 0].sign()), F.margin_ranking_loss(a, b, s.sign(), 0.3), F.pairwise_distance(a, b),
                       F.poisson_nll_loss(a, b), F.triplet_margin_loss(a, b, s),
                       F.triplet_margin_with_distance_loss(a, b, s, margin=0.5, swap=True)], [3, 4], [3, 4], [3, 4])
whole("local_response_norm_of_integers", lambda x: F.local_response_norm(x, 3), [2, 5, 4])
case("addr_of_truth", lambda draw: [draw.mask(3, 4), draw.mask(3), draw.mask(4)],
     lambda i, a, b: [torch.addr(i, a, b), torch.addr(i, a, b, beta=2, alpha=3), torch.addr(i, a, b, beta=0, alpha=1)])
case("lgamma_near_zeros", lambda draw: [torch.tensor([1.0, 2, 0.999, 1.001, 1.9999, 2.0001, 0.5, 1.5, 2.5])],
     lambda x: [torch.lgamma(x), torch.lgamma(x.double())])


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
