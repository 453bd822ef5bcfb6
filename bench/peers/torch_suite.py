"""The patterns and models of the peer suite in PyTorch: eager, torch.compile default and max-autotune, on the CPU.

torch_suite.py --serve --models build/bench/models --threads N [--no-max-autotune | --only-eager]

A line `ENTRY FOLDER SECONDS` on standard input answers with the times of one round. The first one of an entry writes
the folder that bench/models reads: inputs, weights, the results of eager mode, the checkpoint of a model. Sizes are
here alone; the arithmetic of a pattern is also in bench/models.cpp, by the same name.
"""
import argparse
import gc
import json
import math
import pathlib
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch._inductor.utils import fresh_cache

CACHE_LENGTH, POSITION = 1024, 512
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 4e-2}


# --- patterns: functions of arguments x and weights w

def layer_norm(x, w, heads):
    return (F.layer_norm(x[0], w[0].shape, w[0], w[1]),)


def rms_norm_residual(x, w, heads):
    h = x[0] + x[1]
    return F.rms_norm(h, w[0].shape, w[0], 1e-6), h


def softmax(x, w, heads):
    return (torch.softmax(x[0], -1),)


def gelu_mlp(x, w, heads):
    return (F.linear(F.gelu(F.linear(x[0], w[0], w[1])), w[2], w[3]),)


def swiglu(x, w, heads):
    return (F.linear(F.silu(F.linear(x[0], w[0])) * F.linear(x[0], w[1]), w[2]),)


def rotary(x, w, heads):
    a, b = x[0].chunk(2, -1)
    return (x[0] * w[0] + torch.cat([-b, a], -1) * w[1],)


def attention_block(x, w, heads):
    batch, length, width = x[0].shape
    parts = F.linear(F.layer_norm(x[0], (width,), w[0], w[1]), w[2], w[3]).chunk(3, -1)
    q, k, v = (t.view(batch, length, heads, width // heads).transpose(1, 2) for t in parts)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return (x[0] + F.linear(y.transpose(1, 2).reshape(batch, length, width), w[4], w[5]),)


def bn_relu_conv(x, w, heads):
    return (F.conv2d(torch.relu(F.batch_norm(x[0], w[0], w[1], w[2], w[3])), w[4], padding=1),)


def adamw(x, w, heads):
    p, g, m, v = x
    rate, beta1, beta2, decay = 1e-3, 0.9, 0.999, 1e-2
    p.mul_(1 - rate * decay)
    m.lerp_(g, 1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    denominator = (v.sqrt() / math.sqrt(1 - beta2**10)) + 1e-8
    p.addcdiv_(m, denominator, value=-rate / (1 - beta1**10))
    return (p,)


def cross_entropy(x, w, heads):
    return (F.nll_loss(torch.log_softmax(x[0], -1), x[1]),)


class Pattern(nn.Module):
    """Its weights are parameters, so that max-autotune may freeze them."""

    def __init__(self, function, weights, heads):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(w, requires_grad=False) for w in weights])
        self.function, self.heads = function, heads

    def forward(self, *x):
        return self.function(x, list(self.weights), self.heads)


def randn(*sizes, scale=1.0):
    return torch.randn(*sizes) * scale


def linear_weights(*sizes, bias=True):
    out = []
    for rows, columns in sizes:
        out.append(randn(rows, columns, scale=columns**-0.5))
        out += [randn(rows, scale=0.1)] if bias else []
    return out


def norm_weights(width):
    return [1 + randn(width, scale=0.1), randn(width, scale=0.1)]


def rotary_case(batch, length):
    angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, 64, 2) / 64)).repeat(1, 2)
    return [randn(batch, 32, length, 64)], [angles.cos(), angles.sin()]


def attention_case(batch, length, width):
    return [randn(batch, length, width)], norm_weights(width) + linear_weights((3 * width, width), (width, width))


def conv_case(batch, size):
    weights = [randn(64, scale=0.1), 0.5 + torch.rand(64)] + norm_weights(64) + [randn(64, 64, 3, 3, scale=0.04)]
    return [randn(batch, 64, size, size)], weights


def adamw_case(n):
    return [randn(n), randn(n), randn(n, scale=0.1), torch.rand(n)], []


# pattern -> (function, heads, bound and data of the size that second-level caches hold, the same beyond all caches)
MEMORY, GEMM = "memory", "gemm"
PATTERNS = {
    "layer_norm": (layer_norm, 0, MEMORY, lambda: ([randn(128, 768)], norm_weights(768)),
                   MEMORY, lambda: ([randn(16384, 1024)], norm_weights(1024))),
    "rms_norm_residual": (rms_norm_residual, 0,
                          MEMORY, lambda: ([randn(64, 768), randn(64, 768)], norm_weights(768)[:1]),
                          MEMORY, lambda: ([randn(16384, 1024), randn(16384, 1024)], norm_weights(1024)[:1])),
    "softmax": (softmax, 0, MEMORY, lambda: ([randn(128, 768)], []), MEMORY, lambda: ([randn(16384, 1024)], [])),
    "gelu_mlp": (gelu_mlp, 0, GEMM, lambda: ([randn(32, 192)], linear_weights((768, 192), (192, 768))),
                 MEMORY, lambda: ([randn(4, 2048)], linear_weights((8192, 2048), (2048, 8192)))),
    "swiglu": (swiglu, 0, GEMM,
               lambda: ([randn(32, 192)], linear_weights((512, 192), (512, 192), (192, 512), bias=False)),
               MEMORY,
               lambda: ([randn(4, 2048)], linear_weights((5632, 2048), (5632, 2048), (2048, 5632), bias=False))),
    "rotary": (rotary, 0, MEMORY, lambda: rotary_case(1, 32), MEMORY, lambda: rotary_case(8, 1024)),
    "attention_block": (attention_block, 8, GEMM, lambda: attention_case(1, 64, 256),
                        GEMM, lambda: attention_case(8, 512, 768)),
    "bn_relu_conv": (bn_relu_conv, 0, GEMM, lambda: conv_case(1, 28), GEMM, lambda: conv_case(8, 112)),
    "adamw": (adamw, 0, MEMORY, lambda: adamw_case(1 << 15), MEMORY, lambda: adamw_case(1 << 24)),
    "cross_entropy": (cross_entropy, 0, MEMORY, lambda: ([randn(64, 2048), torch.randint(2048, (64,))], []),
                      MEMORY, lambda: ([randn(1024, 32000), torch.randint(32000, (1024,))], [])),
}


# --- a Llama over a static cache, written for torch.compile: all in one graph, for one token or a prompt

class RmsNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        width, self.size = c["hidden_size"], c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])
        self.q_proj = nn.Linear(width, self.heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, self.kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(width, self.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, width, bias=False)

    def forward(self, x, position, mask, cos, sin, keys, values):
        count = x.shape[1]
        split = lambda t, heads: t.view(1, count, heads, self.size).transpose(1, 2)
        q = turned(split(self.q_proj(x), self.heads), cos, sin)
        keys.index_copy_(2, position, turned(split(self.k_proj(x), self.kv_heads), cos, sin))
        values.index_copy_(2, position, split(self.v_proj(x), self.kv_heads))
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=self.heads != self.kv_heads)
        return self.o_proj(y.transpose(1, 2).reshape(1, count, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.gate_proj, self.up_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), Mlp(c)
        self.input_layernorm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.post_attention_layernorm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])

    def forward(self, x, *rest):
        x = x + self.self_attn(self.input_layernorm(x), *rest)
        return x + self.mlp(self.post_attention_layernorm(x))


def inverse_frequencies(c, size):
    inverse = c["rope_theta"] ** (-torch.arange(0, size, 2).float() / size)
    scaling = c.get("rope_scaling")
    if scaling is None:
        return inverse
    wave, length = 2 * math.pi / inverse, scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = ((length / wave - low) / (high - low)).clamp(0, 1)
    return inverse * smooth + inverse / scaling["factor"] * (1 - smooth)


class Llama(nn.Module):
    """Its parameters have the names of a checkpoint; the head is the embedding."""

    def __init__(self, c):
        super().__init__()
        assert c["tie_word_embeddings"]
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.model.norm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.inverse = inverse_frequencies(c, self.model.layers[0].self_attn.size)

    def forward(self, ids, position, *cache):
        """The logits of the last token."""
        x = self.model.embed_tokens(ids)
        angles = torch.cat([position.float()[:, None] * self.inverse] * 2, -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        mask = (torch.arange(cache[0].shape[2]) <= position[:, None])[None, None]
        for i, layer in enumerate(self.model.layers):
            x = layer(x, position, mask, cos, sin, cache[2 * i], cache[2 * i + 1])
        return (F.linear(self.model.norm(x[:, -1:]), self.model.embed_tokens.weight),)


# --- models: entry -> the program of bench/models, the configuration it names, dtype, arguments

class Model(nn.Module):
    """A transformers model as a function of one tensor."""

    def __init__(self, model, argument, result, **options):
        super().__init__()
        self.model, self.argument, self.result, self.options = model, argument, result, options

    def forward(self, x):
        return (self.model(**{self.argument: x}, **self.options)[self.result],)


def ids(batch):
    return lambda: [torch.randint(1000, 30000, (batch, 128))]


def image():
    return [randn(1, 3, 224, 224)]


MODELS = {
    "gpt2_small_1x128": ("causal_lm", "gpt2-small", torch.float32, ids(1)),
    "bert_base_1x128": ("text_encoder", "bert-base", torch.float32, ids(1)),
    "bert_base_8x128": ("text_encoder", "bert-base", torch.float32, ids(8)),
    "vit_b_1": ("image_classifier", "vit-b", torch.float32, image),
    "resnet_50_1": ("image_classifier", "resnet-50", torch.float32, image),
    "llama_125m_decode_f32": ("decode", "llama-125m", torch.float32, None),
    "llama_125m_decode_bf16": ("decode", "llama-125m", torch.bfloat16, None),
    "llama_1b_decode_f32": ("decode", "llama-1b", torch.float32, None),
    "llama_1b_decode_bf16": ("decode", "llama-1b", torch.bfloat16, None),
}


def draw(model):
    """Random weights that keep activations at a sensible size."""
    for name, p in model.named_parameters():
        if p.dim() > 1:
            p.normal_(0, 0.02)
        elif name.endswith("bias"):
            p.normal_(0, 0.02)
        else:
            p.fill_(1.0).add_(torch.randn_like(p), alpha=0.05)


def checkpoint(text, folder, save):
    """What `save` writes, and config.json; where the folder has them already, they are the same."""
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        save()
        (folder / "config.json").write_text(text)


def random_llama(config):
    """In bf16."""
    with torch.device("meta"):
        model = Llama(config)
    model = model.to(torch.bfloat16).to_empty(device="cpu")
    model.inverse = inverse_frequencies(config, model.model.layers[0].self_attn.size)
    draw(model)
    return model


def make_llama(config, text, dtype, folder):
    """Weights are those of bf16 in both types, so that one checkpoint serves both."""
    model = random_llama(config)
    checkpoint(text, folder, lambda: save_file(model.state_dict(), folder / "model.safetensors"))
    attention = model.model.layers[0].self_attn
    cache = []
    for _ in range(2 * config["num_hidden_layers"]):
        t = torch.zeros(1, attention.kv_heads, CACHE_LENGTH, attention.size, dtype=dtype)
        t[:, :, :POSITION].normal_()
        cache.append(t)
    return model.to(dtype), [torch.tensor([[17]]), torch.tensor([POSITION])] + cache


def make_transformer(program, config, text, folder, arguments):
    import transformers
    known = transformers.AutoConfig.for_model(**config)
    name = config["architectures"][0]
    options = {"add_pooling_layer": False} if program == "text_encoder" else {}
    model = getattr(transformers, name)(known, **options).eval()
    if name != "ResNetForImageClassification":
        draw(model)
    # Its own way of saving, which gives parameters the names that checkpoints have.
    checkpoint(text, folder, lambda: model.save_pretrained(folder))
    if program == "causal_lm":
        return Model(model, "input_ids", "logits", use_cache=False), arguments()
    if program == "text_encoder":
        return Model(model, "input_ids", "last_hidden_state"), arguments()
    return Model(model, "pixel_values", "logits"), arguments()


# --- an entry with its data, in all kinds

def relative_error(got, expected):
    error = lambda a, b: float((a.double() - b.double()).norm() / b.double().norm())
    return max(error(a, b) for a, b in zip(got, expected))


class Case:
    def __init__(self, entry, folder, args):
        torch.manual_seed(1)
        torch._dynamo.reset()
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights, heads, dtype = [], 0, torch.float32
        if entry in MODELS:
            program, name, dtype, arguments = MODELS[entry]
            text = subprocess.run([args.models, "--config", name], capture_output=True, text=True, check=True).stdout
            shared = folder.parent / name
            if program == "decode":
                module, inputs = make_llama(json.loads(text), text, dtype, shared)
            else:
                module, inputs = make_transformer(program, json.loads(text), text, shared, arguments)
            (folder / "model").symlink_to(shared)
            self.bound = MEMORY if program == "decode" else GEMM
        else:
            program, _, size = entry.rpartition("_")
            function, heads, *cases = PATTERNS[program]
            self.bound, make = cases[:2] if size == "l2" else cases[2:]
            inputs, weights = make()
            module = Pattern(function, weights, heads)
        module = module.eval().requires_grad_(False)
        tensors = {f"x{i}": t for i, t in enumerate(inputs)} | {f"w{i}": t for i, t in enumerate(weights)}
        # The same for both: torch's own steps in bf16 are 0.025 to 0.031 from f32.
        self.tolerance = TOLERANCE[dtype]
        facts = {"program": program, "heads": heads, "tolerance": TOLERANCE[dtype],
                 "dtype": "bf16" if dtype == torch.bfloat16 else "f32"}
        save_file(tensors, folder / "inputs.safetensors", {key: str(value) for key, value in facts.items()})
        self.works, self.first, self.error = {}, {}, {}
        # The reference is eager arithmetic in f32 on the very same values.
        exact = [t.float() if t.dtype == dtype else t for t in inputs]
        self.expected = [t.clone() for t in module.float()(*(t.clone() for t in exact))]
        module.to(dtype)
        save_file({f"y{i}": t.contiguous() for i, t in enumerate(self.expected)}, folder / "expected.safetensors")
        self.add("eager", module, inputs)
        if not args.only_eager:
            with fresh_cache():
                self.add("default", torch.compile(module), inputs)
        if args.max_autotune and not args.only_eager:
            # Frozen weights are what its templates for products ask for.
            with fresh_cache(), torch._inductor.config.patch(freezing=True):
                self.add("max-autotune", torch.compile(module, mode="max-autotune"), inputs)
        self.expected = None

    def add(self, kind, program, inputs):
        """Every kind has its own copy of the arguments, since programs may write them."""
        own = [t.clone() for t in inputs]
        start = time.perf_counter()
        got = program(*own)
        self.first[kind] = time.perf_counter() - start
        self.error[kind] = relative_error(got, self.expected)
        self.works[kind] = lambda: program(*own)


def timed_round(work, least):
    """The median call of a round of at least that long; the first call is not timed."""
    work()
    calls, end = [], time.perf_counter() + least
    while not calls or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        calls.append(time.perf_counter() - start)
    calls.sort()
    return (calls[len(calls) // 2] + calls[(len(calls) - 1) // 2]) / 2


def serve(args):
    # What the first compile in a process loads and builds is no part of an entry's.
    if not args.only_eager:
        torch.compile(lambda x: x * 2 + 1)(torch.ones(17))
    current, case = None, None
    for line in sys.stdin:
        entry, folder, least = line.split()
        try:
            if entry != current:
                case, current = None, None
                gc.collect()
                case, current = Case(entry, folder, args), entry
            rounds = {kind: timed_round(work, float(least)) for kind, work in case.works.items()}
            reply = {"bound": case.bound, "first_s": case.first, "error": case.error, "round_s": rounds,
                     "wrong": {kind: not error < case.tolerance for kind, error in case.error.items()}}
        except Exception as e:
            reply = {"failed": f"{type(e).__name__}: {e}"}
        print(json.dumps(reply), file=args.replies, flush=True)


ENTRIES = [f"{name}_{size}" for name in PATTERNS for size in ("l2", "memory")] + list(MODELS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--models")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-max-autotune", dest="max_autotune", action="store_false")
    parser.add_argument("--only-eager", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(ENTRIES))
        return
    # The compiler writes to standard output too; replies keep it for themselves.
    args.replies, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(args.threads)
    with torch.no_grad():
        serve(args)


if __name__ == "__main__":
    main()
