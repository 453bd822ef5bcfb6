#!/usr/bin/env python3
"""Tiny random checkpoints of model families with inputs and outputs recorded from transformers.

    make_fixtures.py [family ...]      writes tests/data/models/<family>, all families by default

Needs torch, transformers and safetensors. A folder holds config.json and model.safetensors as transformers saves them,
and golden.safetensors: input_ids with logits (decoders also `greedy`, 40 tokens after the first row of input_ids,
without a stop at an end token), or last_hidden_state for encoders; pixel_values with logits for images. Encoder-decoders
have logits of decoder_input_ids, and `greedy` after decoder_start_token_id; Whisper's first input is that of tones.wav.
"""
import json
import pathlib
import sys
import wave

import numpy as np
import torch
import transformers as hf
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "models"
VOCAB, LENGTH, STEPS, LEAST_TOKENS = 96, 24, 40, 8
SMALL = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
LEAN = dict(SMALL, hidden_size=16, intermediate_size=24, num_attention_heads=2, num_key_value_heads=1,
            tie_word_embeddings=False)
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
    half = dict(rope("default"), partial_rotary_factor=0.5)
    yield "phi", hf.PhiConfig(**LEAN, rope_parameters=half)
    yield "phi-normed", hf.PhiConfig(**LEAN, rope_parameters=half, qk_layernorm=True)
    # As Phi-4-mini is: tied, and three quarters of each head rotated.
    yield "phi4", hf.Phi3Config(**dict(LEAN, tie_word_embeddings=True), original_max_position_embeddings=32,
                                rope_parameters=rope("longrope", partial_rotary_factor=0.75,
                                                     short_factor=factors[:3], long_factor=[f * 2 for f in factors[:3]],
                                                     original_max_position_embeddings=32))
    yield "granite", hf.GraniteConfig(**dict(LEAN, tie_word_embeddings=True), embedding_multiplier=6.0,
                                      attention_multiplier=0.25, residual_multiplier=0.4, logits_scaling=2.0)
    yield "olmo2", hf.Olmo2Config(**LEAN)
    quarter = dict(rope("default"), partial_rotary_factor=0.25)
    yield "stablelm", hf.StableLmConfig(**LEAN, rope_parameters=quarter, use_qkv_bias=True)
    yield "stablelm-parallel", hf.StableLmConfig(**LEAN, rope_parameters=quarter, use_parallel_residual=True,
                                                 qk_layernorm=True)
    yield "cohere", hf.CohereConfig(**dict(LEAN, tie_word_embeddings=True), logit_scale=0.5)
    yield "cohere-normed", hf.CohereConfig(**dict(LEAN, tie_word_embeddings=True), logit_scale=0.5, use_qk_norm=True,
                                           attention_bias=True)
    yield "cohere2", hf.Cohere2Config(**dict(LEAN, tie_word_embeddings=True), logit_scale=0.5, sliding_window=7,
                                      layer_types=["sliding_attention", "full_attention"])
    falcon = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_hidden_size=48,
                  max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    yield "falcon", hf.FalconConfig(**falcon)
    yield "falcon-grouped", hf.FalconConfig(**falcon, new_decoder_architecture=True, num_kv_heads=2,
                                            tie_word_embeddings=False)
    yield "falcon-serial", hf.FalconConfig(**falcon, multi_query=False, parallel_attn=False, bias=True,
                                           alibi=True)
    yield "glm", hf.GlmConfig(**LEAN, head_dim=8, rope_parameters=half)
    yield "glm4", hf.Glm4Config(**LEAN, head_dim=8, rope_parameters=half)
    yield "starcoder2", hf.Starcoder2Config(**dict(LEAN, tie_word_embeddings=True), sliding_window=7)
    experts = dict(LEAN, num_experts_per_tok=2)
    yield "mixtral", hf.MixtralConfig(**dict(experts, intermediate_size=12), num_local_experts=4, sliding_window=7)
    yield "qwen2_moe", hf.Qwen2MoeConfig(**experts, num_experts=4, moe_intermediate_size=8,
                                         shared_expert_intermediate_size=16, mlp_only_layers=[0])
    yield "qwen3_moe", hf.Qwen3MoeConfig(**experts, head_dim=8, num_experts=6, moe_intermediate_size=8,
                                         norm_topk_prob=True)
    yield "olmoe", hf.OlmoeConfig(**dict(experts, intermediate_size=8), num_experts=4)
    yield "smollm3", hf.SmolLM3Config(**dict(LLAMA, num_hidden_layers=4))
    yield "smollm3-window", hf.SmolLM3Config(**LLAMA, no_rope_layers=[0, 1], use_sliding_window=True, sliding_window=7)


    t5 = dict(vocab_size=VOCAB, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, decoder_start_token_id=0,
              relative_attention_num_buckets=8, relative_attention_max_distance=20)
    yield "t5", hf.T5Config(**t5)
    yield "t5-gated", hf.T5Config(**dict(t5, num_decoder_layers=1), feed_forward_proj="gated-gelu",
                                  tie_word_embeddings=False)
    pair = dict(vocab_size=VOCAB, d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=24,
                decoder_ffn_dim=32, encoder_attention_heads=4, decoder_attention_heads=2, pad_token_id=0,
                bos_token_id=1, eos_token_id=2)
    yield "bart", hf.BartConfig(**pair, max_position_embeddings=64, scale_embedding=True)
    yield "whisper", hf.WhisperConfig(**pair, num_mel_bins=16, max_source_positions=50, max_target_positions=64,
                                      decoder_start_token_id=1)


# Families written in the older form of config.json: rope_theta and rope_scaling at the top.
OLDER_FORM = {"mistral", "phi", "stablelm", "glm", "llama-linear", "llama-yarn", "phi3-longrope"}


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
    if "partial_rotary_factor" in scaling:
        config["partial_rotary_factor"] = scaling.pop("partial_rotary_factor")
    if scaling["rope_type"] == "default":
        scaling = None
    elif config["model_type"] == "llama":
        scaling["type"] = scaling.pop("rope_type")
    config["rope_scaling"] = scaling
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def greedy(model, row):
    cache, step, length = None, row, row.shape[1]
    for _ in range(STEPS):
        out = model(step, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        step = out.logits[:, -1:].argmax(-1)
        row = torch.cat([row, step], 1)
    return row[:, length:].contiguous()


# The next seed where 40 tokens are ever the same few: they would say little.
def make(name, config):
    seed = sum(map(ord, name))
    while not make_from(name, config, seed):
        seed += 1


# As checkpoints of T5 since 1.1 are: the head is a matrix of its own.
def untie(model, folder):
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB, model.config.d_model) * 0.3)
    state = {k: v for k, v in model.state_dict().items() if "embed_tokens" not in k}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config.pop("scale_decoder_outputs", None)
    config["tie_word_embeddings"] = False
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


# A second of two tones that rise, 16 bits a sample; the file is shorter than what the model reads.
def sound(folder):
    extractor = hf.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    extractor.save_pretrained(folder)
    at = np.arange(9000) / 16000
    wave_ = 0.4 * np.sin(2 * np.pi * (300 + 500 * at) * at) + 0.2 * np.sin(2 * np.pi * (1500 + 900 * at) * at)
    samples = np.round(wave_ * 32767).astype("<i2")
    with wave.open(str(folder / "tones.wav"), "wb") as file:
        file.setparams((1, 2, 16000, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())
    heard = samples.astype(np.float32) / 32768
    return extractor(heard, sampling_rate=16000, return_tensors="pt").input_features


def encoder_decoder(model, name, folder):
    ids = torch.randint(3, VOCAB, (2, LENGTH))
    mask = torch.ones_like(ids)
    mask[1, 17:] = 0
    first = torch.full((1, 1), model.config.decoder_start_token_id)
    written = torch.randint(3, VOCAB, (2, 12))
    golden = {"decoder_input_ids": written}
    if name == "whisper":
        features = torch.cat([sound(folder), torch.randn(1, 16, 100)])
        golden["input_features"], mask = features, None
        read = {"input_features": features}
    else:
        golden["input_ids"], golden["attention_mask"] = ids, mask
        read = {"input_ids": ids, "attention_mask": mask}
    golden["logits"] = model(**read, decoder_input_ids=written).logits.contiguous()
    encoded = model.get_encoder()(**{k: v[:1] for k, v in read.items()})

    def step(ids, **more):
        return model(encoder_outputs=encoded, decoder_input_ids=ids, **more)

    golden["greedy"] = greedy(step, first)
    return golden


@torch.no_grad()
def make_from(name, config, seed):
    hf.logging.disable_progress_bar()
    torch.manual_seed(seed)
    image, encoder = name == "resnet", name in ("distilbert", "roberta")
    decoder, pair = not image and not encoder, config.is_encoder_decoder
    # Eager attention of Falcon adds the biases of alibi twice.
    config._attn_implementation = "sdpa" if getattr(config, "alibi", False) else "eager"
    kind = hf.AutoModelForImageClassification if image else hf.AutoModel if encoder else hf.AutoModelForCausalLM
    if pair:
        kind = hf.AutoModelForSpeechSeq2Seq if name == "whisper" else hf.AutoModelForSeq2SeqLM
    model = kind.from_config(config).eval()
    randomize(model)
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if name in OLDER_FORM:
        to_older_form(folder / "config.json")
    if name == "t5-gated":
        untie(model, folder)
    ids = torch.randint(3, VOCAB, (2, LENGTH))
    golden = {"input_ids": ids}
    if pair:
        golden = encoder_decoder(model, name, folder)
        if len(set(golden["greedy"][0].tolist())) < LEAST_TOKENS:
            return False
    elif image:
        pixels = torch.randn(2, 3, 32, 32)
        golden = {"pixel_values": pixels, "logits": model(pixels).logits.contiguous()}
    elif decoder:
        golden["logits"] = model(ids, use_cache=False).logits.float().contiguous()
        golden["greedy"] = greedy(model, ids[:1])
        if len(set(golden["greedy"][0].tolist())) < LEAST_TOKENS:
            return False
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
    return True


if __name__ == "__main__":
    wanted = set(sys.argv[1:])
    for name, config in families():
        if not wanted or name in wanted:
            make(name, config)
