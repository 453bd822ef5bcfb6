"""Small programs in PyTorch, as functions of tensors; bench/support/programs.cpp has the same, by the same names."""
import math

import torch
import torch.nn.functional as F


def softmax(x):
    return (torch.softmax(x, -1),)


def cross_entropy(x, target):
    return (F.nll_loss(torch.log_softmax(x, -1), target),)


def layer_norm(x, weight, bias):
    return (F.layer_norm(x, weight.shape, weight, bias),)


def rms_norm_residual(x, residual, weight):
    h = x + residual
    return F.rms_norm(h, weight.shape, weight, 1e-6), h


def gelu_mlp(x, w1, b1, w2, b2):
    return (F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2),)


def swiglu(x, gate, up, down):
    return (F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down),)


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def rotary(x, cos, sin):
    return (turned(x, cos, sin),)


HEADS = 8


def attention_block(x, norm_weight, norm_bias, weight, bias, out_weight, out_bias):
    batch, length, width = x.shape
    parts = F.linear(F.layer_norm(x, (width,), norm_weight, norm_bias), weight, bias).chunk(3, -1)
    q, k, v = (t.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for t in parts)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return (x + F.linear(y.transpose(1, 2).reshape(batch, length, width), out_weight, out_bias),)


def bn_relu_conv(x, mean, variance, weight, bias, filters):
    return (F.conv2d(torch.relu(F.batch_norm(x, mean, variance, weight, bias)), filters, padding=1),)


def adamw(p, g, m, v):
    """One step, the 10th, in place."""
    rate, beta1, beta2, decay = 1e-3, 0.9, 0.999, 1e-2
    p.mul_(1 - rate * decay)
    m.lerp_(g, 1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    denominator = (v.sqrt() / math.sqrt(1 - beta2**10)) + 1e-8
    p.addcdiv_(m, denominator, value=-rate / (1 - beta1**10))
    return (p,)
