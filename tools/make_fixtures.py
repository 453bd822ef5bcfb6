#!/usr/bin/env python3
"""Tiny random checkpoints of model families with inputs and outputs recorded from transformers.

    make_fixtures.py [family ...]      writes tests/data/models/<family>, all families by default

Needs torch, transformers and safetensors. A folder holds config.json and model.safetensors as transformers saves them,
and golden.safetensors: input_ids with logits (decoders also `greedy`, 40 tokens after the first row of input_ids,
without a stop at an end token), or last_hidden_state for encoders; pixel_values with logits for images.
"""
import json
import pathlib
import sys

import torch
import transformers as hf
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "models"
VOCAB, LENGTH, STEPS = 96, 24, 40
SMALL = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA = dict(SMALL, num_key_value_heads=2, tie_word_embeddings=False)


def rope(kind, **more):
    return dict(rope_type=kind, rope_theta=10000.0, **more)


def families():
    yield "mistral", hf.MistralConfig(**LLAMA, head_dim=8, sliding_window=7)
    yield "qwen3", hf.Qwen3Config(**LLAMA, head_dim=8)
    yield "phi3", hf.Phi3Config(**LLAMA)
    factors = [1.0 + 0.1 * i for i in range(4)]
    yield "phi3-longrope", hf.Phi3Config(**LLAMA, original_max_position_embeddings=32,
                                         rope_parameters=rope("longrope", short_factor=factors,
                                                              long_factor=[f * 2 for f in factors],
                                                              original_max_position_embeddings=32))
    yield "gemma", hf.GemmaConfig(**dict(LLAMA, tie_word_embeddings=True), head_dim=16)
    yield "gemma2", hf.Gemma2Config(**dict(LLAMA, tie_word_embeddings=True), head_dim=16, sliding_window=7,
                                    query_pre_attn_scalar=24, attn_logit_softcapping=5.0, final_logit_softcapping=3.0)
    yield "gemma3", hf.Gemma3TextConfig(**dict(LLAMA, tie_word_embeddings=True), head_dim=16, sliding_window=7,
                                        query_pre_attn_scalar=24, layer_types=["sliding_attention", "full_attention"])
    yield "gpt_neox", hf.GPTNeoXConfig(**SMALL, tie_word_embeddings=False, use_parallel_residual=True,
                                       rope_parameters=dict(rope("default"), partial_rotary_factor=0.5))
    yield "gpt_neox-serial", hf.GPTNeoXConfig(**SMALL, tie_word_embeddings=False, use_parallel_residual=False,
                                              rope_parameters=dict(rope("default"), partial_rotary_factor=0.25))
    yield "opt", hf.OPTConfig(vocab_size=VOCAB, hidden_size=32, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4,
                              max_position_embeddings=128, word_embed_proj_dim=32)
    yield "opt-projected", hf.OPTConfig(vocab_size=VOCAB, hidden_size=32, ffn_dim=64, num_hidden_layers=2,
                                        num_attention_heads=4, max_position_embeddings=128, word_embed_proj_dim=16,
                                        do_layer_norm_before=False)
    yield "llama-biased", hf.LlamaConfig(**LLAMA, attention_bias=True, mlp_bias=True)
    yield "llama-linear", hf.LlamaConfig(**LLAMA, rope_parameters=rope("linear", factor=4.0))
    yield "llama-dynamic", hf.LlamaConfig(**dict(LLAMA, max_position_embeddings=32),
                                          rope_parameters=rope("dynamic", factor=2.0))
    yield "llama-yarn", hf.LlamaConfig(**LLAMA, rope_parameters=rope("yarn", factor=4.0,
                                                                     original_max_position_embeddings=32))
    yield "distilbert", hf.DistilBertConfig(vocab_size=VOCAB, dim=32, hidden_dim=64, n_layers=2, n_heads=4,
                                            max_position_embeddings=64)
    yield "roberta", hf.RobertaConfig(**dict(SMALL, max_position_embeddings=66, pad_token_id=1, bos_token_id=0))
    yield "resnet", hf.ResNetConfig(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2], num_labels=5)
    yield "qwen2-window", hf.Qwen2Config(**LLAMA, use_sliding_window=True, sliding_window=7, max_window_layers=1)
    yield "smollm3", hf.SmolLM3Config(**dict(LLAMA, num_hidden_layers=4))
    yield "smollm3-window", hf.SmolLM3Config(**LLAMA, no_rope_layers=[0, 1], use_sliding_window=True, sliding_window=7)


# Families written in the older form of config.json: rope_theta and rope_scaling at the top.
OLDER_FORM = {"mistral", "llama-linear", "llama-yarn", "phi3-longrope"}


# Weights large enough that what attention and the layers do decides the next token, not the last token alone.
def randomize(model):
    embedding = 0.08 if getattr(model.config, "tie_word_embeddings", False) else 0.3
    gemma = "gemma" in type(model).__name__.lower()
    for name, p in model.named_parameters():
        if p.dim() == 4:
            p.normal_(0, 1 / p[0].numel() ** 0.5)
        elif p.dim() >= 2:
            p.normal_(0, embedding if "embed" in name or "wte" in name else 1.2 / p.shape[-1] ** 0.5)
        elif "norm" in name.lower() and name.endswith("weight"):
            p.normal_(0, 0.2).add_(0 if gemma else 1)
        else:
            p.normal_(0, 0.1)
    for name, b in model.named_buffers():
        if name.endswith("running_mean"):
            b.normal_(0, 0.2)
        elif name.endswith("running_var"):
            b.uniform_(0.5, 2)


def to_older_form(path):
    config = json.loads(path.read_text())
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    if scaling["rope_type"] == "default":
        scaling = None
    elif config["model_type"] == "llama":
        scaling["type"] = scaling.pop("rope_type")
    config["rope_scaling"] = scaling
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


@torch.no_grad()
def make(name, config):
    hf.logging.disable_progress_bar()
    torch.manual_seed(sum(map(ord, name)))
    image, encoder = name == "resnet", name in ("distilbert", "roberta")
    decoder = not image and not encoder
    config._attn_implementation = "eager"
    kind = hf.AutoModelForImageClassification if image else hf.AutoModel if encoder else hf.AutoModelForCausalLM
    model = kind.from_config(config).eval()
    randomize(model)
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if name in OLDER_FORM:
        to_older_form(folder / "config.json")
    ids = torch.randint(3, VOCAB, (2, LENGTH))
    golden = {"input_ids": ids}
    if image:
        pixels = torch.randn(2, 3, 32, 32)
        golden = {"pixel_values": pixels, "logits": model(pixels).logits.contiguous()}
    elif decoder:
        golden["logits"] = model(ids, use_cache=False).logits.float().contiguous()
        row = ids[:1]
        cache = None
        step = row
        for _ in range(STEPS):
            out = model(step, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            step = out.logits[:, -1:].argmax(-1)
            row = torch.cat([row, step], 1)
        golden["greedy"] = row[:, LENGTH:].contiguous()
    else:
        mask = torch.ones_like(ids)
        mask[1, 17:] = 0
        ids[1, 17:] = config.pad_token_id
        golden["attention_mask"] = mask
        golden["last_hidden_state"] = model(ids, attention_mask=mask).last_hidden_state.contiguous()
    save_file(golden, folder / "golden.safetensors")
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size} bytes", golden.get("greedy", torch.zeros(0))[0, :12].tolist() if decoder else "")
    assert size < 200_000


if __name__ == "__main__":
    wanted = set(sys.argv[1:])
    for name, config in families():
        if not wanted or name in wanted:
            make(name, config)
