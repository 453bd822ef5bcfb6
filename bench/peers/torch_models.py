"""The models that PyTorch is measured with: a Llama over a static cache, written for torch.compile, and those of
transformers as functions of one tensor. Weights are random."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from torch_programs import turned

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class RmsNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


def head_size(c):
    return c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.size = c["num_attention_heads"], c["num_key_value_heads"], head_size(c)
        width = c["hidden_size"]
        self.q_proj = nn.Linear(width, self.heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, self.kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(width, self.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, width, bias=False)

    def forward(self, x, position, mask, grouped, cos, sin, keys, values):
        count = x.shape[1]
        split = lambda t, heads: t.view(1, count, heads, self.size).transpose(1, 2)
        q = turned(split(self.q_proj(x), self.heads), cos, sin)
        k = turned(split(self.k_proj(x), self.kv_heads), cos, sin)
        v = split(self.v_proj(x), self.kv_heads)
        keys.index_copy_(2, position, k)
        values.index_copy_(2, position, v)
        shared = self.heads != self.kv_heads
        if mask is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shared)
        elif grouped:
            rows = q.view(1, self.kv_heads, self.heads // self.kv_heads, self.size)
            y = F.scaled_dot_product_attention(rows, keys, values, attn_mask=mask).reshape(1, self.heads, 1, self.size)
        else:
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=shared)
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


def inverse_frequencies(c):
    size = head_size(c)
    inverse = c["rope_theta"] ** (-torch.arange(0, size, 2, device="cpu").float() / size)
    scaling = c.get("rope_scaling")
    if scaling is None:
        return inverse
    wave, length = 2 * math.pi / inverse, scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = ((length / wave - low) / (high - low)).clamp(0, 1)
    return inverse * smooth + inverse / scaling["factor"] * (1 - smooth)


class Llama(nn.Module):
    """All in one graph, for one token or a prompt; its parameters have the names of a checkpoint.

    Every call looks at the whole cache through a mask, as the CPU's attention likes it. `grouped` is what the GPU's likes:
    a prompt, which must be at the beginning, sees itself alone, and in a step the query heads of a group are rows of one
    attention, so that nothing is repeated in memory."""

    def __init__(self, c, grouped=False):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList(Block(c) for _ in range(c["num_hidden_layers"]))
        self.model.norm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        if not c["tie_word_embeddings"]:
            self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        self.tied, self.grouped = c["tie_word_embeddings"], grouped
        self.frequencies = inverse_frequencies(c).tolist()
        self.register_buffer("inverse", torch.tensor(self.frequencies), persistent=False)

    def _apply(self, function, recurse=True):
        """Frequencies stay in f32, whatever the parameters become and wherever they go."""
        super()._apply(function, recurse)
        self.inverse = torch.tensor(self.frequencies, device=self.model.norm.weight.device)
        return self

    def make_cache(self, length, make, **options):
        """Keys and values of each layer, by turns."""
        attention = self.model.layers[0].self_attn
        shape = (1, attention.kv_heads, length, attention.size)
        return [make(shape, **options) for _ in range(2 * len(self.model.layers))]

    def forward(self, ids, position, *cache):
        """The logits of the last token."""
        x = self.model.embed_tokens(ids)
        angles = torch.cat([position.float()[:, None] * self.inverse] * 2, -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        mask = None
        if not self.grouped or ids.shape[1] == 1:
            mask = (torch.arange(cache[0].shape[2], device=ids.device) <= position[:, None])[None, None]
        for i, layer in enumerate(self.model.layers):
            x = layer(x, position, mask, self.grouped, cos, sin, cache[2 * i], cache[2 * i + 1])
        head = self.model.embed_tokens.weight if self.tied else self.lm_head.weight
        return (F.linear(self.model.norm(x[:, -1:]), head),)


class OverCache(nn.Module):
    """A Llama with a cache of its own, in buffers: they have fixed addresses, so a recorded graph may write them."""

    def __init__(self, llama, cache):
        super().__init__()
        self.llama, self.names = llama, [f"cache{i}" for i in range(len(cache))]
        for name, tensor in zip(self.names, cache):
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, ids, position):
        return self.llama(ids, position, *[getattr(self, name) for name in self.names])


class LlamaSteps:
    """The two programs of a Llama that generates text on a GPU: a prompt, and one step after it."""

    CACHE_LENGTH = 1024

    def __init__(self, config, dtype, device, prompt):
        self.dtype = dtype
        llama = random_llama(config, dtype, device, grouped=True)
        cache = llama.make_cache(self.CACHE_LENGTH, torch.randn, dtype=dtype, device=device)
        self.program = OverCache(llama, cache).eval().requires_grad_(False)
        integers = lambda *values: torch.tensor(values, device=device)
        self.inputs = {"prefill": (torch.randint(config["vocab_size"], (1, prompt), device=device),
                                   torch.arange(prompt, device=device)),
                       "decode": (integers(17)[None], integers(prompt))}

    def state(self):
        return self.program.llama.state_dict()

    def exact(self, kind):
        """The same step in f32."""
        out = self.program.float()(*self.inputs[kind])
        self.program.to(self.dtype)
        return out


def draw(model):
    """Random weights that keep activations at a sensible size."""
    for name, p in model.named_parameters():
        if p.dim() > 1:
            p.normal_(0, 0.02)
        elif name.endswith("bias"):
            p.normal_(0, 0.02)
        else:
            p.fill_(1.0).add_(torch.randn_like(p), alpha=0.05)


def random_llama(config, dtype=torch.bfloat16, device="cpu", grouped=False):
    with torch.device("meta"):
        model = Llama(config, grouped)
    model = model.to(dtype).to_empty(device=device)
    draw(model)
    return model


# --- transformers

def transformers_model(config):
    """Of random weights, as transformers draws them."""
    import transformers
    name = config["architectures"][0]
    options = {"add_pooling_layer": False} if name == "BertModel" else {}
    return getattr(transformers, name)(transformers.AutoConfig.for_model(**config), **options)


class Model(nn.Module):
    """A transformers model as a function of one tensor."""

    def __init__(self, model):
        super().__init__()
        name = type(model).__name__
        self.model, self.options = model, {}
        self.argument, self.result = "input_ids", "logits"
        if name.endswith("ForImageClassification"):
            self.argument = "pixel_values"
        elif name == "BertModel":
            self.result = "last_hidden_state"
        else:
            self.options = {"use_cache": False}

    def forward(self, x):
        return (self.model(**{self.argument: x}, **self.options)[self.result],)


def relative_error(got, expected):
    error = lambda a, b: float((a.double() - b.double()).norm() / b.double().norm())
    return max(error(a, b) for a, b in zip(got, expected))


def compile_options(mode):
    return {} if mode == "default" else {"mode": mode}
