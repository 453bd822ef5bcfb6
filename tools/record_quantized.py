#!/usr/bin/env python3
"""Records quantised checkpoints and what their own libraries make of them: tests/data/quantized.

    pip install torch safetensors compressed-tensors bitsandbytes gptqmodel && pip install --no-deps autoawq
    python3 tools/record_quantized.py

Each folder is a tiny Llama with random weights, as the library named in its config.json packs it, and `golden.safetensors`,
two of the matrices in f32 that this library unpacks again.
"""
import importlib.util
import json
import math
import os
import sys

import bitsandbytes.functional as bnb
import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization.utils import calculate_qparams
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from gptqmodel.utils.model import convert_gptq_v1_to_v2_format_module
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


def is_recorded(name):
    return name.endswith(("k_proj.weight", "down_proj.weight"))


def fields(values, bits):
    """Whole numbers [count, n] as words along the first dimension, the first one in the lowest bits; 32 of them fill whole words."""
    count = -(-values.shape[0] // 32) * 32
    stream = torch.zeros(count * bits, values.shape[1], dtype=torch.int64)
    for bit in range(bits):
        stream[bit : values.shape[0] * bits : bits] = values >> bit & 1
    words = (stream.reshape(-1, 32, values.shape[1]) << torch.arange(32).reshape(1, -1, 1)).sum(1)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)[: -(-values.shape[0] * bits // 32)]


def gptq(folder, bits, group_size, symmetric, act_order, version):
    """One checkpoint of GPTQ, whose codes and zeros are drawn; GPTQModel unpacks them."""
    generator = torch.Generator().manual_seed(len(folder) + bits)
    stored, golden = {}, {}
    for name, tensor in plain_tensors(generator, INTERMEDIATE).items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor.half()
            continue
        module, (rows, columns) = name[: -len("weight")], tensor.shape
        group = columns if group_size == -1 else group_size
        groups = columns // group
        codes = torch.randint(2**bits, (columns, rows), generator=generator)
        # What the older format cannot have: a zero of 0.
        zeros = torch.full((groups, rows), 2 ** (bits - 1)) if symmetric else torch.randint(1, 2**bits, (groups, rows), generator=generator)
        index = torch.arange(columns) // group
        if act_order:
            index = index[torch.randperm(columns, generator=generator)]
        scales = (torch.rand(groups, rows, generator=generator) / 64 + 1e-3).half()
        stored |= {module + "qweight": fields(codes, bits), module + "scales": scales, module + "g_idx": index.to(torch.int32),
                   module + "qzeros": fields((zeros - int(version == 1)).t(), bits).t().contiguous(),
                   module + "bias": torch.zeros(rows, dtype=torch.float16)}
        if not is_recorded(name):
            continue
        layer = TorchLinear(bits=bits, group_size=group, sym=symmetric, desc_act=act_order, in_features=columns, out_features=rows,
                            bias=False, pack_dtype=torch.int32, register_buffers=True)
        for end in ("qweight", "qzeros", "g_idx"):
            setattr(layer, end, stored[module + end].clone())
        layer.scales = scales.float()
        if version == 1:
            convert_gptq_v1_to_v2_format_module(layer, bits, torch.int32)
        layer.post_init()
        layer.dequant_dtype = torch.int32
        golden[name] = layer.dequantize_weight().float().t().contiguous()
    config = dict(CONFIG, torch_dtype="float16")
    config["quantization_config"] = {"quant_method": "gptq", "bits": bits, "group_size": group_size, "desc_act": act_order,
                                     "sym": symmetric, "checkpoint_format": "gptq" if version == 1 else "gptq_v2"}
    save(folder, config, stored, golden)


def fp8(folder, method, block, scale_name):
    """Weights of E4M3, in the ways of DeepSeek and of FBGEMM."""
    stored, golden = {}, {}
    for name, tensor in plain_tensors(torch.Generator().manual_seed(len(folder)), INTERMEDIATE).items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor
            continue
        rows, columns = tensor.shape
        down, across = block if block else (1, columns)
        wide = torch.nn.functional.pad(tensor.float(), (0, -columns % across, 0, -rows % down))
        tiles = wide.reshape(wide.shape[0] // down, down, -1, across)
        scale = tiles.abs().amax((1, 3)) / 448
        spread = scale.repeat_interleave(down, 0).repeat_interleave(across, 1)[:rows, :columns]
        codes = (tensor.float() / spread).to(torch.float8_e4m3fn)
        stored |= {name: codes, name[: -len("weight")] + scale_name: scale}
        if is_recorded(name):
            golden[name] = codes.float() * spread
    config = dict(CONFIG)
    config["quantization_config"] = {"quant_method": method, **({"weight_block_size": list(block), "activation_scheme": "dynamic"} if block else {})}
    save(folder, config, stored, golden)


def bitsandbytes(folder, kind, nested=False):
    """One checkpoint of bitsandbytes: nf4, fp4 or int8."""
    stored, golden = {}, {}
    # Blocks of 64 fill rows.
    for name, tensor in plain_tensors(torch.Generator().manual_seed(len(folder)), 128).items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor
        elif kind == "int8":
            codes, most, _ = bnb.int8_vectorwise_quant(tensor.half())
            stored |= {name: codes, name[: -len("weight")] + "SCB": most.float()}
            if is_recorded(name):
                golden[name] = codes.float() * (most.float().unsqueeze(1) / 127)
        else:
            packed, state = bnb.quantize_4bit(tensor, blocksize=64, compress_statistics=nested, quant_type=kind)
            stored[name] = packed
            stored |= {name + "." + end: value.contiguous() for end, value in state.as_dict(packed=True).items()}
            if is_recorded(name):
                state.dtype = torch.float32
                golden[name] = bnb.dequantize_4bit(packed, state)
    config = dict(CONFIG, intermediate_size=128)
    config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": kind != "int8", "load_in_8bit": kind == "int8",
                                     "bnb_4bit_quant_type": kind}
    save(folder, config, stored, golden)


def compressed_floats(folder, layout, **weights):
    """One checkpoint of compressed-tensors with floating-point codes."""
    args = QuantizationArgs(type="float", symmetric=True, **weights)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    compressor = BaseCompressor.get_value_from_registry(layout)
    stored, golden = {}, {}
    for name, tensor in plain_tensors(torch.Generator().manual_seed(len(folder)), INTERMEDIATE).items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor
            continue
        rows, columns = tensor.shape
        group = args.group_size or columns
        most = tensor.float().reshape(rows, -1, group).abs().amax(-1)
        state = {"weight": tensor, "weight_zero_point": torch.zeros(rows, columns // group, dtype=torch.int8)}
        if layout == "nvfp4-pack-quantized":
            state["weight_global_scale"] = (448 * 6 / tensor.float().abs().max()).reshape(1)
            state["weight_scale"] = (most / 6 * state["weight_global_scale"]).to(torch.float8_e4m3fn).float()
        elif layout == "mxfp4-pack-quantized":
            state["weight_scale"] = torch.exp2(torch.floor(torch.log2(most)) - 2).to(torch.bfloat16)
        else:
            state["weight_scale"] = (most / 448).to(torch.bfloat16)
        packed = compressor.compress(state, scheme)
        stored |= {name[: -len("weight")] + end: value.contiguous() for end, value in packed.items() if value is not None}
        if is_recorded(name):
            if layout == "nvfp4-pack-quantized":  # whose own way ends in bf16
                codes = unpack_fp4_from_uint8(packed["weight_packed"], rows, columns, dtype=torch.float32)
                golden[name] = dequantize(codes, packed["weight_scale"].float(), args=args, dtype=torch.float32,
                                          global_scale=packed["weight_global_scale"])
                continue
            wide = {end: value.float() if end == "weight_scale" and value.dtype == torch.bfloat16 else value for end, value in packed.items()}
            golden[name] = compressor.decompress(wide, scheme)["weight"].float().contiguous()
    config = dict(CONFIG)
    group = {"targets": ["Linear"], "weights": json.loads(args.model_dump_json())}
    config["quantization_config"] = {"quant_method": "compressed-tensors", "format": layout, "config_groups": {"group_0": group},
                                     "ignore": ["lm_head"]}
    save(folder, config, stored, golden)


if __name__ == "__main__":
    gptq("gptq-4-g32", 4, 32, True, False, 1)
    gptq("gptq-4-g32-order", 4, 32, False, True, 1)
    gptq("gptq-2-g32-v2", 2, 32, False, False, 2)
    gptq("gptq-3-g32", 3, 32, False, True, 1)
    gptq("gptq-3-rows", 3, -1, True, False, 1)
    gptq("gptq-8-g32", 8, 32, False, False, 2)
    gptq("gptq-8-rows", 8, -1, True, False, 1)
    fp8("fp8-blocks", "fp8", (32, 64), "weight_scale_inv")
    fp8("fp8-fbgemm", "fbgemm_fp8", None, "weight_scale")
    bitsandbytes("bnb-nf4", "nf4")
    bitsandbytes("bnb-nf4-nested", "nf4", True)
    bitsandbytes("bnb-fp4", "fp4")
    bitsandbytes("bnb-int8", "int8")
    compressed_floats("ct-fp8-rows", "float-quantized", num_bits=8, strategy="channel")
    compressed_floats("ct-nvfp4", "nvfp4-pack-quantized", num_bits=4, strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn)
    compressed_floats("ct-mxfp4", "mxfp4-pack-quantized", num_bits=4, strategy="group", group_size=32, scale_dtype=torch.uint8)
    awq("awq-g32", 32)
    awq("awq-rows", -1)
    compressed("ct-int4-g32", "pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=True)
    compressed("ct-int4-g32-zeros", "pack-quantized", num_bits=4, strategy="group", group_size=32, symmetric=False)
    compressed("ct-int4-rows", "pack-quantized", intermediate=91, num_bits=4, strategy="channel", symmetric=False)
    compressed("ct-int8-g32-zeros", "pack-quantized", num_bits=8, strategy="group", group_size=32, symmetric=False)
    compressed("ct-int8-rows", "int-quantized", intermediate=91, num_bits=8, strategy="channel", symmetric=True)
