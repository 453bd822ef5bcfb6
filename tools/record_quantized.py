#!/usr/bin/env python3
"""Records quantised checkpoints and what their own libraries make of them: tests/data/quantized.

    pip install torch safetensors compressed-tensors && pip install --no-deps autoawq
    python3 tools/record_quantized.py

Each folder is a tiny Llama with random weights, as the library named in its config.json packs it, and `golden.safetensors`,
two of the matrices in f32 that this library unpacks again.
"""
import importlib.util
import json
import math
import os
import sys

import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams
from safetensors.torch import save_file

HIDDEN, INTERMEDIATE, HEADS, VOCAB = 64, 96, 4, 40
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "quantized")

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "vocab_size": VOCAB, "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
# The sizes of the linear layers.
LINEAR = {
    "self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN // 2, HIDDEN), "self_attn.v_proj": (HIDDEN // 2, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (INTERMEDIATE, HIDDEN), "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}


def plain_tensors(generator, intermediate):
    def draw(*shape):
        return (torch.randn(shape, generator=generator) / math.sqrt(shape[-1])).to(torch.bfloat16)

    layer = "model.layers.0."
    tensors = {"model.embed_tokens.weight": draw(VOCAB, HIDDEN), "lm_head.weight": draw(VOCAB, HIDDEN)}
    for name in ("model.norm", layer + "input_layernorm", layer + "post_attention_layernorm"):
        tensors[name + ".weight"] = torch.ones(HIDDEN, dtype=torch.bfloat16)
    for name, (rows, columns) in LINEAR.items():
        rows, columns = (intermediate if size == INTERMEDIATE else size for size in (rows, columns))
        tensors[layer + name + ".weight"] = draw(rows, columns)
    return tensors


def save(folder, config, stored, golden):
    path = os.path.join(ROOT, folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(config, file, indent=1)
    save_file(stored, os.path.join(path, "model.safetensors"), {"format": "pt"})
    save_file(golden, os.path.join(path, "golden.safetensors"))


def compressed(folder, layout, intermediate=INTERMEDIATE, **weights):
    """One checkpoint of compressed-tensors."""
    args = QuantizationArgs(type="int", **weights)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    compressor = BaseCompressor.get_value_from_registry(layout)
    tensors, stored, golden = plain_tensors(torch.Generator().manual_seed(len(folder)), intermediate), {}, {}
    for name, tensor in tensors.items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor
            continue
        module = name[: -len("weight")]
        group = args.group_size if args.group_size and args.group_size > 0 else tensor.shape[1]
        grouped = tensor.reshape(tensor.shape[0], -1, group).float()
        scale, zero = calculate_qparams(grouped.amin(-1), grouped.amax(-1), args)
        scale = scale.to(torch.bfloat16)
        state = {"weight": tensor, "weight_scale": scale, "weight_zero_point": zero.to(torch.int8)}
        packed = compressor.compress(state, scheme)
        for end, value in packed.items():
            stored[module + end] = value.contiguous()
        if not name.endswith(("k_proj.weight", "down_proj.weight")):
            continue
        # As it unpacks, in f32: the library rounds to the scale's type.
        wide = {end: value.float() if end == "weight_scale" else value for end, value in packed.items()}
        golden[name] = compressor.decompress(wide, scheme)["weight"].float().contiguous()
    config = dict(CONFIG, intermediate_size=intermediate)
    group = {"targets": ["Linear"], "weights": json.loads(args.model_dump_json())}
    config["quantization_config"] = {"quant_method": "compressed-tensors", "format": layout, "config_groups": {"group_0": group},
                                     "ignore": ["lm_head"]}
    save(folder, config, stored, golden)


def awq_unpacking():
    """The file of AutoAWQ that unpacks; the package as a whole wants much more to be installed."""
    for folder in sys.path:
        path = os.path.join(folder, "awq", "utils", "packing_utils.py")
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location("packing_utils", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    sys.exit("pip install --no-deps autoawq")


def awq(folder, group_size):
    """One checkpoint of AWQ in the layout "gemm", whose words, being codes all through, are drawn."""
    generator = torch.Generator().manual_seed(len(folder))
    stored, golden = {}, {}
    for name, tensor in plain_tensors(generator, INTERMEDIATE).items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor.half()
            continue
        module, (rows, columns) = name[: -len("weight")], tensor.shape
        group = columns if group_size == -1 else group_size
        words = [torch.randint(-2**31, 2**31, (n, rows // 8), generator=generator, dtype=torch.int64).to(torch.int32)
                 for n in (columns, columns // group)]
        scales = (torch.rand(columns // group, rows, generator=generator) / 64 + 1e-3).half()
        stored |= {module + "qweight": words[0], module + "qzeros": words[1], module + "scales": scales}
        if name.endswith(("k_proj.weight", "down_proj.weight")):
            wide = awq_unpacking().dequantize_gemm(words[0], words[1], scales.float(), 4, group)
            golden[name] = wide.t().contiguous()
    config = dict(CONFIG, torch_dtype="float16")
    config["quantization_config"] = {"quant_method": "awq", "version": "gemm", "bits": 4, "group_size": group_size, "zero_point": True}
    save(folder, config, stored, golden)


if __name__ == "__main__":
    awq("awq-g32", 32)
    awq("awq-rows", -1)
    compressed("ct-int4-g32", "pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=True)
    compressed("ct-int4-g32-zeros", "pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=False)
    compressed("ct-int4-rows", "pack-quantized", intermediate=91, num_bits=4, strategy="channel", symmetric=False)
    compressed("ct-int8-g32-zeros", "pack-quantized", num_bits=8, strategy="group", group_size=32, symmetric=False)
    compressed("ct-int8-rows", "int-quantized", intermediate=91, num_bits=8, strategy="channel", symmetric=True)
