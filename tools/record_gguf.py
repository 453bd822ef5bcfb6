#!/usr/bin/env python3
"""Records GGUF files: tests/data/gguf.

    pip install torch transformers sentencepiece gguf
    git clone --depth 1 https://github.com/ggml-org/llama.cpp
    PYTHONPATH=llama.cpp:llama.cpp/gguf-py python3 tools/record_gguf.py

types.gguf            a tiny Llama, each of its matrices stored in another way, with a tokenizer of 64 pieces
types.safetensors     some rows of each, in f32, as the gguf package unpacks them
NAME.gguf             the checkpoint of tests/data/models/NAME, as llama.cpp's converter writes it
llama3-rope.gguf      a tiny Llama whose positions are stretched as Llama 3.1's; llama3-rope.safetensors: logits of transformers
phi2.gguf             a tiny Phi of the shape that the converter takes them all to have; phi2.safetensors
tokenizer-NAME.gguf   the tokenizer of tests/data/tokenizers/NAME, as the converter writes it
tokenizer-spm.gguf    a SentencePiece model; tokenizer-spm.json: texts and their ids by the sentencepiece package
"""
import json
import logging
import os
import pathlib
import random
import shutil
import tempfile

import gguf
import numpy as np
import sentencepiece
import torch
import transformers
from conversion import get_model_class
from conversion.base import ModelBase
from gguf import GGMLQuantizationType as Type
from safetensors.torch import save_file

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
OUT = DATA / "gguf"

# --- ways to store numbers

HIDDEN, HEADS, KV_HEADS, HEAD, INTERMEDIATE, VOCAB = 256, 4, 2, 8, 32, 64
# Where numbers are floating-point in blocks: those that are drawn must not be infinite.
HALVES = {Type.Q2_K: (80, 82), Type.Q3_K: (108,), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,), Type.IQ4_NL: (0,), Type.IQ4_XS: (0,)}


def drawn_blocks(rng, shape, kind):
    """Blocks of random bytes, of types that the package does not quantise to."""
    items, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (shape[0], shape[1] // items, size), dtype=np.uint8)
    for at in HALVES[kind]:
        scale = (rng.standard_normal(blocks.shape[:2]) / 256).astype(np.float16)
        blocks[..., at : at + 2] = scale[..., None].view(np.uint8)
    return blocks.reshape(shape[0], -1)


def stored(rng, shape, kind):
    if kind in HALVES:
        return drawn_blocks(rng, shape, kind)
    values = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    values[0, :32] = 0  # a block without a scale
    values[1, :32] = -0.25  # and one whose numbers are all the same
    return gguf.quantize(values, kind)


def record_types():
    rng = np.random.default_rng(5)
    writer = gguf.GGUFWriter(OUT / "types.gguf", "llama")
    # One layer after the other: query, key, value, gate and up have rows of 256, output and down of 32.
    kinds = iter([Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.Q4_0, Type.Q4_1,
                  Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.IQ4_XS, Type.F16, Type.IQ4_NL, Type.MXFP4,
                  Type.Q6_K, Type.Q5_K, Type.Q4_K, Type.BF16, Type.F32, Type.Q8_0, Type.Q5_0])
    layers = 3
    writer.add_block_count(layers)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_layer_norm_rms_eps(1e-5)
    pieces = ["<unk>", "<s>", "</s>", "\u2581"] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    pieces += [a + b for a in "\u2581tsh" for b in "aeiouhtn"][: VOCAB - len(pieces)]
    pieces += [f"[PAD{i}]" for i in range(len(pieces), VOCAB)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([-float(i) for i in range(VOCAB)])
    writer.add_token_types([2, 3, 3] + [1 if not piece.startswith("[PAD") else 5 for piece in pieces[3:]])
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }} {% endfor %}")
    golden = {}

    def add(name, shape, kind):
        data = stored(rng, shape, kind)
        writer.add_tensor(name, data, raw_dtype=None if kind in (Type.F32, Type.F16) else kind)
        golden[name] = torch.from_numpy(gguf.dequantize(data, kind).reshape(shape)[::5].copy())

    def add_ones(name):
        writer.add_tensor(name, np.ones(HIDDEN, dtype=np.float32))

    add("token_embd.weight", (VOCAB, HIDDEN), Type.Q6_K)
    for layer in range(layers):
        shapes = {"attn_q": (HEADS * HEAD, HIDDEN), "attn_k": (KV_HEADS * HEAD, HIDDEN), "attn_v": (KV_HEADS * HEAD, HIDDEN),
                  "ffn_gate": (INTERMEDIATE, HIDDEN), "ffn_up": (INTERMEDIATE, HIDDEN),
                  "attn_output": (HIDDEN, HEADS * HEAD), "ffn_down": (HIDDEN, INTERMEDIATE)}
        for name, shape in shapes.items():
            add(f"blk.{layer}.{name}.weight", shape, next(kinds))
        add_ones(f"blk.{layer}.attn_norm.weight")
        add_ones(f"blk.{layer}.ffn_norm.weight")
    add_ones("output_norm.weight")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(golden, OUT / "types.safetensors")


# --- families

FAMILIES = ["llama-linear", "llama-yarn", "llama-biased", "qwen2-window", "qwen3", "gemma", "gemma2", "gemma3", "phi3",
            "phi3-longrope", "phi4", "granite", "olmo2", "starcoder2", "stablelm"]


def convert(folder, out, vocabulary):
    config = ModelBase.load_hparams(pathlib.Path(folder), False)
    made = get_model_class(config["architectures"][0])(pathlib.Path(folder), gguf.LlamaFileType.ALL_F32, pathlib.Path(out))
    if not vocabulary:
        made.set_vocab = lambda: None
    made.write()


def record_family(name):
    # Gemma 3's converter cuts the embedding to the tokens that there are.
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(DATA / "models" / name, folder, dirs_exist_ok=True)
        size = json.load(open(os.path.join(folder, "config.json")))["vocab_size"]
        vocab = {f"t{i}": i for i in range(size)}
        json.dump({"model": {"vocab": vocab}, "added_tokens": []}, open(os.path.join(folder, "tokenizer.json"), "w"))
        convert(folder, OUT / f"{name}.gguf", vocabulary=False)


def record_made(name, model_class, config):
    torch.manual_seed(3)
    model = model_class(config).eval()
    for parameter in model.parameters():  # biases and norms, too
        parameter.data += torch.randn_like(parameter) / 32
    ids = torch.randint(96, (1, 80))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model.save_pretrained(folder)
        convert(folder, OUT / f"{name}.gguf", vocabulary=False)
        save_file({"ids": ids, "logits": model(ids).logits}, OUT / f"{name}.safetensors")


def record_llama3():
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, vocab_size=96,
        max_position_embeddings=256, tie_word_embeddings=True,
        rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 64})
    record_made("llama3-rope", transformers.LlamaForCausalLM, config)


def record_phi2():
    config = transformers.PhiConfig(hidden_size=32, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
                                    num_key_value_heads=2, vocab_size=96, max_position_embeddings=256, partial_rotary_factor=0.5)
    record_made("phi2", transformers.PhiForCausalLM, config)


# --- tokenizers

# The way that the converter would find by a hash of what the tokenizer makes of a text, which it does for known models only.
SPLITTINGS = {"bpe-gpt2": "gpt-2", "bpe-llama3": "dbrx", "bpe-qwen2": "qwen2", "bpe-o200k": "gpt-4o"}


def tokenizer_folder(folder, size):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 8,
              "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": size, "max_position_embeddings": 8}
    json.dump(config, open(os.path.join(folder, "config.json"), "w"))
    torch.manual_seed(0)
    save_file({"model.embed_tokens.weight": torch.zeros(1, 1)}, os.path.join(folder, "model.safetensors"))


def write_vocabulary(folder, out, splitting):
    made = get_model_class("LlamaForCausalLM")(pathlib.Path(folder), gguf.LlamaFileType.ALL_F32, pathlib.Path(out))
    made.get_vocab_base_pre = lambda _: splitting
    made.write_vocab()


def record_tokenizer(name, splitting):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(DATA / "tokenizers" / name / "tokenizer.json", folder)
        tokens = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"))
        tokens.save_pretrained(folder)
        tokenizer_folder(folder, max(tokens.get_vocab().values()) + 1)
        write_vocabulary(folder, OUT / f"tokenizer-{name}.gguf", splitting)


def record_sentence_pieces():
    cases = json.load(open(DATA / "tokenizers" / "bpe-llama2" / "golden.json"))
    texts = [case["text"] for case in cases if "text" in case]
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "lines.txt")
        words = "the whale and a ship of in to sea that his it was with as all for from this not".split()
        draw = random.Random(1)
        with open(lines, "w") as file:
            for text in texts:
                file.write(text.replace("\n", " ") + "\n")
            for _ in range(400):
                file.write(" ".join(draw.choice(words) + draw.choice(["", "s", "ing", ",", "."]) for _ in range(12)) + "\n")
        sentencepiece.SentencePieceTrainer.train(
            input=lines, model_prefix=os.path.join(folder, "tokenizer"), vocab_size=480, model_type="bpe", byte_fallback=True,
            character_coverage=0.99, normalization_rule_name="identity", remove_extra_whitespaces=False,
            split_digits=True, allow_whitespace_only_pieces=True)
        tokenizer_folder(folder, 480)
        write_vocabulary(folder, OUT / "tokenizer-spm.gguf", None)
        model = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "tokenizer.model"))
        # The processor takes the zero character for the end of a text.
        cases = [{"text": text, "ids": [model.bos_id()] + model.encode(text)} for text in texts if text and "\0" not in text]
        json.dump(cases, open(OUT / "tokenizer-spm.json", "w"), ensure_ascii=False, indent=1)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    OUT.mkdir(exist_ok=True)
    record_types()
    for each in FAMILIES:
        record_family(each)
    record_llama3()
    record_phi2()
    for each, splitting in SPLITTINGS.items():
        record_tokenizer(each, splitting)
    record_sentence_pieces()
