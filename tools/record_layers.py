#!/usr/bin/env python3
"""Records what PyTorch's layers, its CTC loss and its parametrizations give, with gradients, in layers.safetensors.

    python3 tools/record_layers.py

Each case here has its C++ counterpart of the same name in tests/nn or tests/ops. Computed in double precision.
"""
import math

import torch
from torch import nn
from torch.nn.utils import parametrizations

from record_ops import recorded_path, save_safetensors


def ramp(low, high, *shape):
    return torch.linspace(low, high, math.prod(shape), dtype=torch.float64).view(shape)


def fill_parameters(module):
    """As tests/nn/common.h does."""
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(0.5 * torch.cos(ramp(-3, 4, *p.shape)))


def flat(results):
    return [results] if torch.is_tensor(results) else [t for r in results for t in flat(r)]


def differentiated(name, results, inputs, module, tensors):
    """Results, and gradients of what they weigh together."""
    results = flat(results)
    for i, r in enumerate(results):
        tensors[f"{name}/out{i}"] = r.detach().float()
    loss = sum((r * torch.sin(ramp(0, 5 + i, *r.shape))).sum() for i, r in enumerate(results))
    named = {**{f"in{i}": x for i, x in enumerate(inputs)}, **(dict(module.named_parameters()) if module else {})}
    for key, grad in zip(named, torch.autograd.grad(loss, list(named.values()))):
        tensors[f"{name}/grad/{key}"] = grad.float()


RECURRENT = {
    "rnn": (nn.RNN(3, 4), [5, 2, 3], None),
    "rnn_relu": (nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True), [2, 5, 3], None),
    "lstm": (nn.LSTM(3, 4), [5, 2, 3], None),
    "lstm_deep": (nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True), [2, 5, 3], ([4, 2, 4], [4, 2, 4])),
    "lstm_projected": (nn.LSTM(3, 4, num_layers=2, proj_size=2), [5, 2, 3], ([2, 2, 2], [2, 2, 4])),
    "lstm_single": (nn.LSTM(3, 4), [5, 3], ([1, 4], [1, 4])),
    "gru": (nn.GRU(3, 4), [5, 2, 3], [1, 2, 4]),
    "gru_deep": (nn.GRU(3, 4, num_layers=2, bidirectional=True), [5, 2, 3], None),
    "rnn_cell": (nn.RNNCell(3, 4), [2, 3], [2, 4]),
    "lstm_cell": (nn.LSTMCell(3, 4), [2, 3], ([2, 4], [2, 4])),
    "gru_cell": (nn.GRUCell(3, 4), [2, 3], [2, 4]),
}


def recurrent(name, tensors):
    module, size, state = RECURRENT[name]
    module = module.double()
    fill_parameters(module)
    inputs = [torch.sin(ramp(-2, 3, *size)).requires_grad_()]
    for i, shape in enumerate([] if state is None else [state] if isinstance(state, list) else state):
        inputs.append(torch.cos(ramp(-1, 2 + i, *shape)).requires_grad_())
    args = inputs[:1] if state is None else inputs if isinstance(state, list) else [inputs[0], tuple(inputs[1:])]
    differentiated(name, module(*args), inputs, module, tensors)


IMAGE = [2, 4, 6, 5]
# Layers of tensors of these shapes; what is random is not training.
LAYERS = {
    "conv_reflect": (nn.Conv2d(4, 3, 3, padding=(1, 2), padding_mode="reflect"), IMAGE),
    "conv_same_circular": (nn.Conv1d(2, 3, 4, padding="same", padding_mode="circular"), [2, 2, 7]),
    "conv_replicate": (nn.Conv3d(1, 2, 2, padding=1, padding_mode="replicate"), [1, 1, 3, 2, 3]),
    "max_pool3d": (nn.MaxPool3d(2, stride=1), [1, 2, 3, 3, 4]),
    "avg_pool3d": (nn.AvgPool3d(2, stride=1, padding=1, count_include_pad=False), [1, 2, 3, 3, 4]),
    "avg_pool2d_divisor": (nn.AvgPool2d(2, divisor_override=3), IMAGE),
    "lp_pool2d": (nn.LPPool2d(2, 2), IMAGE),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d((3, 2)), IMAGE),
    "adaptive_avg_pool3d": (nn.AdaptiveAvgPool3d(2), [1, 2, 3, 3, 4]),
    "reflection_pad2d": (nn.ReflectionPad2d((2, 1, 0, 3)), IMAGE),
    "replication_pad1d": (nn.ReplicationPad1d(2), [2, 3, 4]),
    "circular_pad2d": (nn.CircularPad2d(1), IMAGE),
    "constant_pad3d": (nn.ConstantPad3d(1, 0.5), [1, 1, 2, 3, 2]),
    "zero_pad2d": (nn.ZeroPad2d((1, 0, -1, 2)), IMAGE),
    "upsample": (nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), IMAGE),
    "pixel_shuffle": (nn.PixelShuffle(2), IMAGE),
    "unfold": (nn.Unfold((2, 3), padding=1, stride=2), IMAGE),
    "fold": (nn.Fold((4, 5), (2, 2)), [2, 8, 12]),
    "instance_norm": (nn.InstanceNorm2d(4, affine=True), IMAGE),
    "instance_norm_tracked": (nn.InstanceNorm1d(3, track_running_stats=True), [2, 3, 5]),
    "local_response_norm": (nn.LocalResponseNorm(2, alpha=0.1), IMAGE),
    "prelu": (nn.PReLU(4), IMAGE),
    "rrelu": (nn.RReLU().eval(), IMAGE),
    "softmax2d": (nn.Softmax2d(), IMAGE),
    "hardshrink": (nn.Hardshrink(), IMAGE),
    "bilinear": (nn.Bilinear(3, 4, 2), [5, 3], [5, 4]),
    "cosine_similarity": (nn.CosineSimilarity(dim=1), [3, 4], [3, 4]),
    "pairwise_distance": (nn.PairwiseDistance(), [3, 4], [3, 4]),
    "huber_loss": (nn.HuberLoss(reduction="sum", delta=0.5), [3, 4], [3, 4]),
    "triplet_margin_loss": (nn.TripletMarginLoss(margin=0.5), [3, 4], [3, 4], [3, 4]),
    "attention_kv": (nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True, batch_first=True),
                     [2, 3, 4], [2, 5, 3], [2, 5, 5]),
    "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0, norm_first=True), 2), [3, 2, 4]),
    "decoder": (nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0, "gelu"), 2), [3, 2, 4], [5, 2, 4]),
    "transformer": (nn.Transformer(4, 2, 1, 2, 8, 0, batch_first=True), [2, 5, 4], [2, 3, 4]),
}


def layer(name, tensors):
    module, *sizes = LAYERS[name]
    module = module.double()
    fill_parameters(module)
    inputs = [torch.sin(ramp(-2, 3 + i, *size)).requires_grad_() for i, size in enumerate(sizes)]
    differentiated(name, module(*inputs), inputs, module, tensors)
    tensors |= {f"{name}/buffer/{key}": b.float() for key, b in module.named_buffers() if b.is_floating_point()}


# Of three sequences the second is as short as it can be and the third too short; the fourth has nothing to say.
TARGETS = torch.tensor([[1, 2, 3], [2, 2, 0], [3, 3, 3], [0, 0, 0]])
CTC = {
    "ctc_mean": dict(reduction="mean", zero_infinity=True),
    "ctc_sum": dict(reduction="sum", zero_infinity=True),
    "ctc_none": dict(reduction="none", zero_infinity=True),
    "ctc_blank": dict(reduction="sum", zero_infinity=True, blank=4),
}


def ctc(name, options, tensors):
    logits = (2 * torch.sin(ramp(0, 60, 6, 4, 5))).requires_grad_()
    lengths, target_lengths = torch.tensor([6, 3, 4, 5]), torch.tensor([3, 2, 3, 0])
    loss = nn.functional.ctc_loss(logits.log_softmax(-1), TARGETS, lengths, target_lengths, **options)
    differentiated(name, loss, [logits], None, tensors)


def more_ctc(tensors):
    lengths, target_lengths = torch.tensor([6, 3, 4, 5]), torch.tensor([3, 2, 3, 0])
    log_probs = (2 * torch.sin(ramp(0, 60, 6, 4, 5))).log_softmax(-1)
    tensors["ctc_infinite/out0"] = nn.functional.ctc_loss(log_probs, TARGETS, lengths, target_lengths,
                                                          reduction="none").float()
    joined = torch.tensor([1, 2, 3, 2, 2, 3, 3, 3])
    tensors["ctc_joined/out0"] = nn.functional.ctc_loss(log_probs, joined, lengths, target_lengths, reduction="none",
                                                        zero_infinity=True).float()
    tensors["ctc_single/out0"] = nn.functional.ctc_loss(log_probs[:, 0], TARGETS[0], lengths[0], target_lengths[0]).float()


def adaptive(tensors):
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2, head_bias=True).double()
    fill_parameters(module)
    x = torch.sin(ramp(-2, 3, 5, 8)).requires_grad_()
    output, loss = module(x, torch.tensor([0, 5, 11, 2, 8]))
    differentiated("adaptive_log_softmax", [output, loss, module.log_prob(x)], [x], module, tensors)


def fractional_pools(tensors):
    samples2, samples3 = (torch.sin(ramp(0, 9, 2, 3, 2)) + 1) * 0.49, (torch.sin(ramp(0, 9, 1, 2, 3)) + 1) * 0.49
    for name, function, size, options in [
        ("fractional_max_pool2d", nn.functional.fractional_max_pool2d, [2, 3, 9, 8],
         dict(kernel_size=(2, 3), output_size=(4, 3), _random_samples=samples2)),
        ("fractional_max_pool2d_ratio", nn.functional.fractional_max_pool2d, [2, 3, 9, 8],
         dict(kernel_size=2, output_ratio=(0.5, 0.7), _random_samples=samples2)),
        ("fractional_max_pool3d", nn.functional.fractional_max_pool3d, [1, 2, 6, 7, 5],
         dict(kernel_size=2, output_size=3, _random_samples=samples3)),
    ]:
        x = torch.sin(ramp(-20, 30, *size)).requires_grad_()
        y, indices = function(x, return_indices=True, **options)
        differentiated(name, y, [x], None, tensors)
        tensors[f"{name}/indices"] = indices.float()


def weight_norms(tensors):
    for name, module, size, dim in [("weight_norm", nn.Linear(3, 4), [2, 3], 0), ("weight_norm_dim1", nn.Linear(3, 4), [2, 3], 1),
                                    ("weight_norm_conv", nn.Conv1d(2, 3, 2), [1, 2, 5], 0)]:
        module = module.double()
        fill_parameters(module)
        parametrizations.weight_norm(module, dim=dim)
        x = torch.sin(ramp(-2, 3, *size)).requires_grad_()
        differentiated(name, module(x), [x], module, tensors)


def spectral_norms(tensors):
    """Three calls while training, which move u and v, then one that does not."""
    for name, module, size in [("spectral_norm", nn.Linear(3, 4), [2, 3]), ("spectral_norm_conv", nn.Conv1d(2, 3, 2), [1, 2, 5])]:
        module = module.double()
        fill_parameters(module)
        parametrizations.spectral_norm(module)
        u, v = module.parametrizations.weight[0]._u, module.parametrizations.weight[0]._v
        u.copy_(nn.functional.normalize(torch.cos(ramp(0, 2, *u.shape)), dim=0))
        v.copy_(nn.functional.normalize(torch.cos(ramp(0, 3, *v.shape)), dim=0))
        x = torch.sin(ramp(-2, 3, *size)).requires_grad_()
        for _ in range(3):
            y = module(x)
        differentiated(name, y, [x], module, tensors)
        module.eval()
        tensors[f"{name}/eval"] = module(x).detach().float()
        tensors[f"{name}/u"], tensors[f"{name}/v"] = u.float(), v.float()


def main():
    tensors = {}
    for name in RECURRENT:
        recurrent(name, tensors)
    for name in LAYERS:
        layer(name, tensors)
    for name, options in CTC.items():
        ctc(name, options, tensors)
    more_ctc(tensors)
    adaptive(tensors)
    fractional_pools(tensors)
    weight_norms(tensors)
    spectral_norms(tensors)
    save_safetensors(recorded_path("layers.safetensors"), tensors, {"PyTorch": torch.__version__})
    print(f"{len(tensors)} tensors with PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
