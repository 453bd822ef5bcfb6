#!/usr/bin/env python3
"""A Llama with random weights in llama.cpp on the CPU: time to the first token and time of a decode step.

ggml_llama.py --config FILE.json [--types bf16,f16] [--prompt 128] [--new 32] [--threads N] [--rounds 5] [--json]
ggml_llama.py --config FILE.json --serve ...    a line `TYPE SECONDS` on standard input answers with one round

FILE.json is a Hugging Face config.json, as `build/bench/models --config llama-1b` prints it. The GGUF files are written
to a temporary folder, 2.5 GB each for 1B parameters, or kept in --folder. The interpreter needs llama-cpp-python, gguf
and numpy.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import statistics
import tempfile
import time

import gguf
import llama_cpp
import numpy as np

from answering import serve, timed_generations

TYPES = {"bf16": gguf.GGMLQuantizationType.BF16, "f16": gguf.GGMLQuantizationType.F16}
FILE_TYPES = {"bf16": gguf.LlamaFileType.MOSTLY_BF16, "f16": gguf.LlamaFileType.MOSTLY_F16}


def rope_factors(c, size):
    """What llama.cpp divides the frequencies of rotary embeddings by; None without scaling."""
    scaling = c.get("rope_scaling")
    if scaling is None:
        return None
    inverse = c["rope_theta"] ** (-np.arange(0, size, 2) / size)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * inverse / (2 * np.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / (smooth + (1 - smooth) / scaling["factor"])).astype(np.float32)


def shapes(c, size):
    """The matrices by their names in a GGUF file."""
    width, inner = c["hidden_size"], c["intermediate_size"]
    heads, kv_heads = c["num_attention_heads"] * size, c["num_key_value_heads"] * size
    yield "token_embd", (c["vocab_size"], width)
    for i in range(c["num_hidden_layers"]):
        for name, shape in {"attn_q": (heads, width), "attn_k": (kv_heads, width), "attn_v": (kv_heads, width),
                            "attn_output": (width, heads), "ffn_gate": (inner, width), "ffn_up": (inner, width),
                            "ffn_down": (width, inner)}.items():
            yield f"blk.{i}.{name}", shape


def write_gguf(c, kind, path):
    """The head is the embedding; there is no vocabulary."""
    assert c["tie_word_embeddings"]
    size = c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_file_type(FILE_TYPES[kind])
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(c["rope_theta"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_vocab_size(c["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    draw = np.random.default_rng(1)
    for name, shape in shapes(c, size):
        values = draw.standard_normal(shape, np.float32) * np.float32(0.02)
        writer.add_tensor(name + ".weight", gguf.quants.quantize(values, TYPES[kind]), raw_dtype=TYPES[kind])
    layers = range(c["num_hidden_layers"])
    for name in ["output_norm"] + [f"blk.{i}.{part}_norm" for i in layers for part in ("attn", "ffn")]:
        writer.add_tensor(name + ".weight", np.ones(c["hidden_size"], np.float32))
    factors = rope_factors(c, size)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Case:
    """One file, loaded, with a context of its own."""

    def __init__(self, path, args):
        self.prompt, self.new = args.prompt, args.new
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), options)
        if not self.model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        options = llama_cpp.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = args.prompt + args.new, args.prompt, args.prompt
        options.n_threads = options.n_threads_batch = args.threads
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        ids = np.random.default_rng(2).integers(0, self.vocabulary, args.prompt)
        self.ids = (llama_cpp.llama_token * args.prompt)(*map(int, ids))
        self.generate(2)

    def step(self, tokens, count):
        """Seconds, and the likeliest next token."""
        start = time.perf_counter()
        if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(tokens, count)) != 0:
            raise RuntimeError("llama_decode failed")
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, -1), (self.vocabulary,))
        token = int(logits.argmax())
        return time.perf_counter() - start, token

    def generate(self, count):
        """Seconds to the first token and of each later one."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        seconds, token = self.step(self.ids, self.prompt)
        steps = []
        for _ in range(count - 1):
            taken, token = self.step((llama_cpp.llama_token * 1)(token), 1)
            steps.append(taken)
        return seconds, steps

    def round(self, least):
        return timed_generations(lambda: self.generate(self.new), least)


class Cases:
    """Cases by type, made when first asked for."""

    def __init__(self, args, folder):
        self.args, self.folder, self.known = args, pathlib.Path(folder), {}

    def __getitem__(self, kind):
        if kind not in self.known:
            path = self.folder / f"{pathlib.Path(self.args.config).stem}-{kind}.gguf"
            if not path.exists():
                part = path.with_suffix(".part")
                write_gguf(json.loads(pathlib.Path(self.args.config).read_text()), kind, part)
                part.rename(path)
            self.known[kind] = Case(path, self.args)
        return self.known[kind]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True)
    parser.add_argument("--types", default="bf16,f16")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    keep = contextlib.nullcontext(args.folder)
    with keep if args.folder else tempfile.TemporaryDirectory(prefix="sinter-llama-cpp-") as folder:
        cases = Cases(args, folder)
        if args.serve:
            return serve(lambda kind, least: cases[kind].round(float(least)))
        rows = []
        for kind in args.types.split(","):
            rounds = [cases[kind].round(0) for _ in range(args.rounds)]
            row = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
            rows.append({"type": kind, "threads": args.threads, "prompt": args.prompt, "new": args.new, **row,
                         "tokens_per_s": 1 / row["decode_s"]})
            if not args.json:
                print(f"{kind:6}first token of {args.prompt} after {row['prefill_s'] * 1e3:8.1f} ms   "
                      f"a step {row['decode_s'] * 1e3:7.2f} ms   {1 / row['decode_s']:6.2f} tokens/s", flush=True)
        if args.json:
            print(json.dumps({"llama_cpp_python": llama_cpp.__version__, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
